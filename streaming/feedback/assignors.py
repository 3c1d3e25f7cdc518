"""Decides when to request the assignor of a KIP-848 group from its coordinator, and when to use the answer.

If no member names an assignor, the coordinator uses the first assignor in the broker's `group.consumer.assignors`. No
record contains this assignor, and it can be different after a restart of the broker. Rules:

1. A request is sent about a group if three conditions are true: it has members, its records are complete, and no member
   names an assignor.
2. The first request is sent immediately. Further requests are sent every `ASK_AGAIN_SECONDS`.
3. At a new epoch, the request is sent earlier in two cases: the assignor is unknown, or the group's targets break a
   rule of the assignor. In the second case, the broker possibly uses a different assignor now.
4. An answer is valid for the epoch in the answer. If the group's records have an older epoch, the answer is stored
   until records with this epoch were read.
5. If there is no answer for a group, its present assignor does not change. Nothing else depends on the answer.
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
    """The last request about a group: its time, the group's epoch at that time, and the answer if there is one."""

    asked_seconds: float
    epoch: int
    answer: AssignorReported | None = None


def lacks_assignor(snapshot: GroupSnapshot) -> bool:
    """Return True if the assignor must be requested from the coordinator (rule 1)."""
    modern = snapshot.modern
    if modern is None or snapshot.group_type != CONSUMER or snapshot.is_polled:
        return False
    return bool(modern.members) and modern.shows_state and not modern.names_assignor()


def is_due(record: GroupState, last: AssignorRequest | None, now_seconds: float) -> bool:
    """Return True if a request must be sent now (rules 2 and 3). Rule 1 must already be true for the group."""
    if last is None or now_seconds - last.asked_seconds >= ASK_AGAIN_SECONDS:
        return True
    modern, evaluation = record.snapshot.modern, record.evaluation
    if modern is None or modern.epoch is None or modern.epoch <= last.epoch:
        return False
    drifts = evaluation.drifts if evaluation else ()
    return modern.assignor is None or any(one.is_group_strategy and one.verdict == DRIFT for one in drifts)


def answered_request(snapshot: GroupSnapshot, description: Description | None, asked_seconds: float) -> AssignorRequest:
    """Return the entry to store after a request. `description` is None if there was no answer."""
    answer = reported_assignor(description)
    known_epoch = snapshot.modern.epoch if snapshot.modern else None
    return AssignorRequest(asked_seconds, answer.epoch if answer else known_epoch or 0, answer)


def reported_assignor(description: Description | None) -> AssignorReported | None:
    """Return the assignor in a coordinator's description of a KIP-848 group, or None."""
    if not isinstance(description, DescribedGroup) or description.group_type != CONSUMER:
        return None
    if description.group_epoch is None or not description.protocol:
        return None
    return AssignorReported(description.group_epoch, description.protocol)


def pending_assignor(snapshot: GroupSnapshot, last: AssignorRequest | None) -> AssignorReported | None:
    """Return the answer if it is valid now (rule 4) and the group does not have it yet. Otherwise return None."""
    if last is None or last.answer is None or snapshot.modern is None:
        return None
    is_news = last.answer.assignor != snapshot.modern.assignor and last.answer.epoch == snapshot.modern.epoch
    return last.answer if is_news else None
