"""The assignor that no record has: when a coordinator is asked, and what of its answer goes to the group."""

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
    """Return what is stored of a group after events, a batch each."""
    record = GroupState(GroupSnapshot("g"))
    for event in events:
        record = apply_batch(record, [event], STRATEGIES).record
    return record


@pytest.mark.parametrize(
    ("events", "lacks", "why"),
    [
        ([], False, "nothing is known"),
        (formed(0), True, "no member names an assignor"),
        ([*formed(0), UNIFORM], True, "it is in the state, but a broker that restarts may report a different one"),
        ([joined(0, "m", NAMES_RANGE), epoch(1)], False, "a member names one"),
        ([*formed(0), joined(5, "n", NAMES_RANGE)], False, "one of two members names one"),
        ([*formed(0), *left(5)], False, "nobody is assigned anything"),
        ([written(0, 3)], False, "a classic group's record has the strategy"),
        (formed(0, group_type=SHARE), False, "a share group has no server assignor of this kind"),
        ([epoch(0), target(1)], False, "the member's own record is missing: it may name one"),
        (
            [*formed(0), DecodeFailed(at(5), CONSUMER, "member", "n")],
            False,
            "a record that may name one is unreadable",
        ),
        ([*formed(0), tombstoned(5)], False, "the group is over"),
        ([answered(1, modern(3))], False, "polled: each answer has it"),
    ],
)
def test_only_a_living_group_whose_members_name_no_assignor_lacks_it(
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
"""One member has three of four partitions: that breaks the rules of every assignor."""


@pytest.mark.parametrize(
    ("events", "last", "after_seconds", "due", "why"),
    [
        (formed(0), None, 0, True, "never asked"),
        (formed(0), AssignorRequest(0, 3, UNIFORM), ASK_AGAIN_SECONDS - 1, False, "the answer is on its way"),
        (formed(0), AssignorRequest(0, 3), ASK_AGAIN_SECONDS - 1, False, "no answer: not again at once"),
        (formed(0), AssignorRequest(0, 3), ASK_AGAIN_SECONDS, True, "no answer, and a while has passed"),
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
            "the records are behind it",
        ),
        (
            [*formed(0), UNIFORM, *FOUR],
            AssignorRequest(0, 3, UNIFORM),
            1,
            False,
            "known, and nothing speaks against it",
        ),
        (
            [*DRIFTING, epoch(6, 4), target_epoch(7, 4)],
            AssignorRequest(0, 3, UNIFORM),
            1,
            True,
            "a drift at a new epoch",
        ),
        (DRIFTING, AssignorRequest(0, 3, UNIFORM), 1, False, "a drift, confirmed at its epoch"),
    ],
)
def test_a_coordinator_is_asked_at_once_then_rarely_and_when_something_speaks_against_the_answer(
    events: Sequence[GroupEvent], last: AssignorRequest | None, after_seconds: float, due: bool, why: str
) -> None:
    assert is_due(record_of(*events), last, after_seconds) == due, why


@pytest.mark.parametrize(
    ("description", "reported", "why"),
    [
        (modern(3), UNIFORM, "as its coordinator describes it"),
        (None, None, "no answer at all"),
        (Unanswered("group_authorization_failed"), None, "the right DESCRIBE is missing"),
        (Unanswered("request_timed_out"), None, "the broker was too slow"),
        (GroupNotFound(), None, "it is gone"),
        (DescribedGroup("classic", "Stable", "consumer", "range", ()), None, "it was downgraded meanwhile"),
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
        ([*formed(0), UNIFORM], UNIFORM, False, "the group has it"),
        ([*formed(0), UNIFORM], AssignorReported(3, "range"), True, "the broker reports a different one"),
        ([*formed(0), *FOUR], UNIFORM, False, "of an earlier epoch, when other members may have named it"),
        (formed(0), AssignorReported(4, "uniform"), False, "of an epoch that the records do not show yet"),
    ],
)
def test_an_answer_goes_to_a_group_that_can_use_it(
    events: Sequence[GroupEvent], answer: AssignorReported | None, is_pending: bool, why: str
) -> None:
    snapshot = advanced(events)
    found = pending_assignor(snapshot, AssignorRequest(0, 3, answer))
    assert found == (answer if is_pending else None), why
    assert pending_assignor(snapshot, None) is None


@given(st.integers(2, 5), st.sampled_from(["uniform", "range", "mine"]))
def test_once_handed_back_it_is_not_awaited_any_more(number: int, assignor: str) -> None:
    """Level-triggered: what the state shows is not sent again."""
    snapshot = advanced(formed(0, number))
    last = AssignorRequest(0, number, AssignorReported(number, assignor))
    fact = pending_assignor(snapshot, last)
    assert fact is not None
    assert pending_assignor(advanced([fact], snapshot), last) is None
