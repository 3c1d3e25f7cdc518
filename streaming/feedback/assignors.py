"""Decide when to ask a coordinator for the assignor of a KIP-848 group, and when to use its response.

If no member specifies an assignor, the coordinator uses the first assignor in the broker's `group.consumer.assignors`.
No record contains the assignor of the coordinator. A restart of the broker can change this assignor. Rules:

1. The monitor sends a request about a group if the group has members, no member specifies an assignor, and the monitor
   has read enough records to know the state of the group.
2. The monitor sends the first request immediately, and then one request every `ASK_AGAIN_SECONDS`.
3. After a new epoch of the group, the monitor sends the next request immediately in two cases: if the assignor is
   unknown, and if the group's targets break a rule of the known assignor. In the second case, the broker possibly uses
   an assignor other than the known one.
4. The assignor in a response is valid only for the group epoch in the response. The monitor uses a response only after
   it has read records with this epoch.
5. If the coordinator does not answer, the known assignor of the group does not change.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.evaluation.assignment.drift import DRIFT
from streaming.evaluation.group_update import GroupState
from streaming.events import CONSUMER, AssignorReported
from streaming.group.listing import DescribedGroup, Description
from streaming.group.snapshot import GroupSnapshot

ASK_AGAIN_SECONDS = 600.0
"""Interval in seconds between two requests about the same group."""


@dataclass(frozen=True, slots=True)
class AssignorRequest:
    """The last request about a group. Without a response, `answer` is None and `epoch` comes from the records."""

    asked_seconds: float
    epoch: int
    answer: AssignorReported | None = None


def lacks_assignor(snapshot: GroupSnapshot) -> bool:
    """Return True if the monitor must ask the coordinator for the assignor (rule 1)."""
    modern = snapshot.modern
    if modern is None or snapshot.group_type != CONSUMER or snapshot.is_polled:
        return False
    return bool(modern.members) and modern.shows_state and not modern.names_assignor()


def is_due(record: GroupState, last: AssignorRequest | None, now_seconds: float) -> bool:
    """Return True if the monitor must send a request now (rules 2 and 3). The caller has already checked rule 1."""
    if last is None or now_seconds - last.asked_seconds >= ASK_AGAIN_SECONDS:
        return True
    modern, evaluation = record.snapshot.modern, record.evaluation
    if modern is None or modern.epoch is None or modern.epoch <= last.epoch:
        return False
    drifts = evaluation.drifts if evaluation else ()
    return modern.assignor is None or any(one.is_group_strategy and one.verdict == DRIFT for one in drifts)


def answered_request(snapshot: GroupSnapshot, description: Description | None, asked_seconds: float) -> AssignorRequest:
    """Return the request with its response. `description` is None if the coordinator did not answer."""
    answer = reported_assignor(description)
    known_epoch = snapshot.modern.epoch if snapshot.modern else None
    return AssignorRequest(asked_seconds, answer.epoch if answer else known_epoch or 0, answer)


def reported_assignor(description: Description | None) -> AssignorReported | None:
    """Return the assignor in the description of a KIP-848 group, or None if there is no assignor."""
    if not isinstance(description, DescribedGroup) or description.group_type != CONSUMER:
        return None
    if description.group_epoch is None or not description.protocol:
        return None
    return AssignorReported(description.group_epoch, description.protocol)


def pending_assignor(snapshot: GroupSnapshot, last: AssignorRequest | None) -> AssignorReported | None:
    """Return the last response if it is for the group's epoch and reports a new assignor (rule 4)."""
    if last is None or last.answer is None or snapshot.modern is None:
        return None
    is_news = last.answer.assignor != snapshot.modern.assignor and last.answer.epoch == snapshot.modern.epoch
    return last.answer if is_news else None
