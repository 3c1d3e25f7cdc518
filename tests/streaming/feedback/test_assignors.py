"""Tests of assignors that only the group coordinator knows, because no record contains them.

The tests check when the monitor asks the coordinator, and which answer it uses for the group.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import CONSUMER, SHARE, AssignorReported, DecodeFailed, GroupEvent
from streaming.feedback.assignors import (
    ASK_AGAIN_SECONDS,
    AssignorRequest,
    answered_request,
    is_due,
    lacks_assignor,
    pending_assignor,
    reported_assignor,
)
from streaming.group.listing import DescribedGroup, Description, GroupNotFound, Unanswered
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import (
    advanced,
    at,
    epoch,
    formed,
    joined,
    left,
    modern_member,
    target,
    target_epoch,
    tombstoned,
    written,
)
from tests.streaming.polled.answers import answered, modern
from tests.streaming.situations import known

STRATEGIES = [assignor_named("uniform"), assignor_named("server-range")]
NAMES_RANGE = modern_member(server_assignor="range")
UNIFORM = AssignorReported(3, "uniform")


def record_of(*events: GroupEvent) -> GroupState:
    """Return the stored state of a group after these events, one batch each."""
    record = GroupState(GroupSnapshot("g"))
    for event in events:
        record = apply_batch(record, [event], STRATEGIES).record
    return record


@pytest.mark.parametrize(
    ("events", "lacks", "why"),
    [
        ([], False, "nothing is known"),
        (formed(0), True, "no member names an assignor"),
        ([*formed(0), UNIFORM], True, "it is in the state, but a restarted broker may report a different one"),
        ([joined(0, "m", NAMES_RANGE), epoch(1)], False, "a member names an assignor"),
        ([*formed(0), joined(5, "n", NAMES_RANGE)], False, "one of two members names an assignor"),
        ([*formed(0), *left(5)], False, "no member has an assignment"),
        ([written(0, 3)], False, "a classic group's record contains the strategy"),
        (formed(0, group_type=SHARE), False, "a share group has no server assignor of this kind"),
        ([epoch(0), target(1)], False, "the member's record is missing: it may name an assignor"),
        (
            [*formed(0), DecodeFailed(at(5), CONSUMER, "member", "n")],
            False,
            "an undecodable record may name an assignor",
        ),
        ([*formed(0), tombstoned(5)], False, "the group was deleted"),
        ([answered(1, modern(3))], False, "polled: each answer contains it"),
    ],
)
def test_only_a_living_group_whose_members_name_no_assignor_needs_the_answer(
    events: Sequence[GroupEvent], lacks: bool, why: str
) -> None:
    assert lacks_assignor(advanced(events)) == lacks, why


FOUR = [joined(5, "n"), epoch(6, 4)]
DRIFTING = [
    joined(0, "m"),
    joined(1, "n"),
    epoch(2),
    target(3, "m", (("id", (0, 1, 2)),)),
    target(4, "n", (("id", (3,)),)),
    target_epoch(5),
    known(orders=4),
    UNIFORM,
]
"""One member has three of four partitions. This breaks the rules of every assignor."""


@pytest.mark.parametrize(
    ("events", "last", "after_seconds", "due", "why"),
    [
        (formed(0), None, 0, True, "the coordinator was never asked"),
        (formed(0), AssignorRequest(0, 3, UNIFORM), ASK_AGAIN_SECONDS - 1, False, "the answer is pending"),
        (formed(0), AssignorRequest(0, 3), ASK_AGAIN_SECONDS - 1, False, "no answer: do not ask again at once"),
        (formed(0), AssignorRequest(0, 3), ASK_AGAIN_SECONDS, True, "no answer, and enough time has passed"),
        (
            [*formed(0), UNIFORM],
            AssignorRequest(0, 3, UNIFORM),
            ASK_AGAIN_SECONDS,
            True,
            "the default may have changed",
        ),
        ([*formed(0), *FOUR], AssignorRequest(0, 3), 1, True, "unknown, and at a new epoch"),
        ([*formed(0), *FOUR], AssignorRequest(0, 3, UNIFORM), 1, True, "the answer came too late for its epoch"),
        (
            [*formed(0), *FOUR],
            AssignorRequest(0, 5, AssignorReported(5, "uniform")),
            1,
            False,
            "the records are older than the answer",
        ),
        (
            [*formed(0), UNIFORM, *FOUR],
            AssignorRequest(0, 3, UNIFORM),
            1,
            False,
            "known, and nothing contradicts it",
        ),
        (
            [*DRIFTING, epoch(6, 4), target_epoch(7, 4)],
            AssignorRequest(0, 3, UNIFORM),
            1,
            True,
            "drift at a new epoch",
        ),
        (DRIFTING, AssignorRequest(0, 3, UNIFORM), 1, False, "drift, but the answer was confirmed at this epoch"),
    ],
)
def test_a_coordinator_is_asked_at_once_then_rarely_and_again_if_a_verdict_contradicts_the_answer(
    events: Sequence[GroupEvent], last: AssignorRequest | None, after_seconds: float, due: bool, why: str
) -> None:
    assert is_due(record_of(*events), last, after_seconds) == due, why


@pytest.mark.parametrize(
    ("description", "reported", "why"),
    [
        (modern(3), UNIFORM, "the coordinator's description"),
        (None, None, "no answer at all"),
        (Unanswered("group_authorization_failed"), None, "the DESCRIBE permission is missing"),
        (Unanswered("request_timed_out"), None, "the broker was too slow"),
        (GroupNotFound(), None, "the group is deleted"),
        (DescribedGroup("classic", "Stable", "consumer", "range", ()), None, "the group was downgraded meanwhile"),
        (DescribedGroup("consumer", "Stable", "consumer", None, (), 3, 3), None, "the answer has no name"),
    ],
)
def test_only_a_description_with_a_name_and_an_epoch_is_an_answer(
    description: Description | None, reported: AssignorReported | None, why: str
) -> None:
    assert reported_assignor(description) == reported, why
    asked = answered_request(advanced(formed(0)), description, 7)
    assert asked == AssignorRequest(7, 3, reported), why


@pytest.mark.parametrize(
    ("events", "answer", "is_pending", "why"),
    [
        (formed(0), UNIFORM, True, "the group does not have it"),
        (formed(0), None, False, "there is no answer"),
        ([*formed(0), UNIFORM], UNIFORM, False, "the group already has it"),
        ([*formed(0), UNIFORM], AssignorReported(3, "range"), True, "the broker reports a different one"),
        (
            [*formed(0), *FOUR],
            UNIFORM,
            False,
            "the answer is for an earlier epoch, in which other members may have named it",
        ),
        (formed(0), AssignorReported(4, "uniform"), False, "the answer is for an epoch that is not in the records yet"),
    ],
)
def test_an_answer_is_sent_to_a_group_that_can_use_it(
    events: Sequence[GroupEvent], answer: AssignorReported | None, is_pending: bool, why: str
) -> None:
    snapshot = advanced(events)
    found = pending_assignor(snapshot, AssignorRequest(0, 3, answer))
    assert found == (answer if is_pending else None), why
    assert pending_assignor(snapshot, None) is None


@given(st.integers(2, 5), st.sampled_from(["uniform", "range", "mine"]))
def test_after_its_feedback_an_answer_is_not_pending(number: int, assignor: str) -> None:
    """Level-triggered: a fact that is in the state is not sent again."""
    snapshot = advanced(formed(0, number))
    last = AssignorRequest(0, number, AssignorReported(number, assignor))
    fact = pending_assignor(snapshot, last)
    assert fact is not None
    assert pending_assignor(advanced([fact], snapshot), last) is None
