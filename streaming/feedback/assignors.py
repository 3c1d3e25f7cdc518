"""The assignor of a KIP-848 group whose members name none: when its coordinator is asked, and what goes to the group.

No record has this assignor. It is the first of the broker's `group.consumer.assignors`, which can differ after a
restart of the broker. Rules:

1. A group is asked about if it has members, its records are complete and no member names an assignor.
2. It is asked about at once, and again every `ASK_AGAIN_SECONDS`.
3. At a new epoch it is asked about earlier in two cases: its assignor is unknown, or its targets break a rule of the
   assignor. Then the broker may use a different one by now.
4. An answer counts at the epoch that it names. If the group's records are older, the answer waits for them.
5. A group without an answer keeps what it has. Nothing else depends on the answer.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.evaluation.assignment.drift import DRIFT
from streaming.evaluation.group_update import GroupState
from streaming.events import CONSUMER, AssignorReported
from streaming.group.listing import DescribedGroup, Description
from streaming.group.snapshot import GroupSnapshot

ASK_AGAIN_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class AssignorRequest:
    """The last request about a group: when it was, the group's epoch then, and the answer if there was one."""

    asked_seconds: float
    epoch: int
    answer: AssignorReported | None = None


def lacks_assignor(snapshot: GroupSnapshot) -> bool:
    """Whether only the coordinator can name the assignor (rule 1)."""
    modern = snapshot.modern
    if modern is None or snapshot.group_type != CONSUMER or snapshot.is_polled:
        return False
    return bool(modern.members) and modern.shows_state and not modern.names_assignor()


def is_due(record: GroupState, last: AssignorRequest | None, now_seconds: float) -> bool:
    """Whether to ask about a group of rule 1 now (rules 2 and 3)."""
    if last is None or now_seconds - last.asked_seconds >= ASK_AGAIN_SECONDS:
        return True
    modern, evaluation = record.snapshot.modern, record.evaluation
    if modern is None or modern.epoch is None or modern.epoch <= last.epoch:
        return False
    drifts = evaluation.drifts if evaluation else ()
    return modern.assignor is None or any(one.is_group_strategy and one.verdict == DRIFT for one in drifts)


def answered_request(snapshot: GroupSnapshot, description: Description | None, asked_seconds: float) -> AssignorRequest:
    """What to remember of a request; None is no description at all."""
    answer = reported_assignor(description)
    known_epoch = snapshot.modern.epoch if snapshot.modern else None
    return AssignorRequest(asked_seconds, answer.epoch if answer else known_epoch or 0, answer)


def reported_assignor(description: Description | None) -> AssignorReported | None:
    """The assignor in a coordinator's description of a KIP-848 group."""
    if not isinstance(description, DescribedGroup) or description.group_type != CONSUMER:
        return None
    if description.group_epoch is None or not description.protocol:
        return None
    return AssignorReported(description.group_epoch, description.protocol)


def pending_assignor(snapshot: GroupSnapshot, last: AssignorRequest | None) -> AssignorReported | None:
    """The answer if the group does not have it yet and can use it (rule 4)."""
    if last is None or last.answer is None or snapshot.modern is None:
        return None
    is_news = last.answer.assignor != snapshot.modern.assignor and last.answer.epoch == snapshot.modern.epoch
    return last.answer if is_news else None
