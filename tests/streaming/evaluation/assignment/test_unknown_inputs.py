"""Tests of KIP-848 groups with missing inputs: the verdict is unknown, and no rule is violated."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assignors import BUILT_IN
from streaming.evaluation.assignment.common_rules import rule_violations
from streaming.evaluation.assignment.drift import MATCH, UNKNOWN
from streaming.evaluation.snapshot_evaluation import Evaluation, evaluate_snapshot
from streaming.events import (
    CONSUMER,
    GroupDescribed,
    GroupEvent,
    ModernDescription,
    Position,
    RegexResolved,
    TopicMetadata,
    TopicsSampled,
)
from streaming.group.members import members
from streaming.protocol.modern import MemberAssignment
from tests.streaming.groups import SECOND_MS, advanced, at, current, epoch, joined, modern_member, target, target_epoch

SERVER = (BUILT_IN["uniform"], BUILT_IN["server-range"])
BY_REGEX = modern_member((), regex="ord.*", server_assignor="uniform")
BY_NAME = modern_member(server_assignor="uniform")
BOTH = (("id", (0, 1)),)
SAMPLE = TopicsSampled({"orders": TopicMetadata(2, 99 * SECOND_MS, topic_id="id")})


def described() -> GroupDescribed:
    """Return a described group whose member uses a regular expression. The response does not contain its topics."""
    has = MemberAssignment(3, None, "Stable", BOTH, None)
    description = ModernDescription(3, 3, "uniform", {"m": BY_REGEX}, {"m": BOTH}, {"m": has}, {"id": "orders"})
    return GroupDescribed(Position(-1, 1, 5 * SECOND_MS), CONSUMER, "Stable", modern=description)


def evaluated(events: Sequence[GroupEvent]) -> Evaluation:
    found = evaluate_snapshot(advanced(events), SERVER)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        pytest.param(
            [described(), SAMPLE], "resolved_regex", id="a response never contains the topics of a regular expression"
        ),
        pytest.param(
            [joined(0, "m", BY_REGEX), epoch(1), target(2), target_epoch(3), current(4), SAMPLE],
            "resolved_regex",
            id="the record with the topics of the expression was compacted",
        ),
        pytest.param(
            [joined(0, "m", BY_NAME), epoch(1), target(2, held=(("gone", (0,)),)), target_epoch(3), SAMPLE],
            "topic_names",
            id="a topic was deleted before its name was known",
        ),
        pytest.param(
            [joined(0, "m", BY_NAME), joined(1, "n", BY_NAME), epoch(2), target(3), target_epoch(4), SAMPLE],
            "target_assignment",
            id="the record of a member's target was compacted",
        ),
    ],
)
def test_the_verdict_is_unknown_with_a_reason_and_final(events: Sequence[GroupEvent], reason: str) -> None:
    """Before, each partition was `unknown_partition` or unassigned, so healthy groups had drift and an alert."""
    found = evaluated(events)
    assert {(drift.verdict, drift.reason, drift.drift_partitions) for drift in found.drifts} == {
        (UNKNOWN, reason, None)
    }
    assert found.is_complete
    whole = found.imbalances[0]
    assert reason in {whole.score_reason, whole.unknown_reason}


def test_a_member_with_an_unresolved_expression_can_own_its_topics() -> None:
    """Before, with `source.kind = "admin-api"`, each partition of such a member was `not_subscribed`."""
    group = advanced([described(), SAMPLE])
    assert group.subscribed_topics() == ("orders",), "the topic is requested, so that its partition count becomes known"
    assert [member.subscribed_topics for member in members(group)] == [None]
    violations = rule_violations(group, None)
    assert violations is not None
    assert (violations.unowned, violations.not_subscribed, violations.is_known) == ((), (), True)


def test_a_resolved_expression_is_evaluated_like_names() -> None:
    resolved = RegexResolved(at(5), "ord.*", ("orders",))
    events = [joined(0, "m", BY_REGEX), epoch(1), target(2), target_epoch(3), current(4), resolved, SAMPLE]
    assert evaluated(events).drifts[0].verdict == MATCH


def test_an_expression_that_the_coordinator_has_not_resolved_yet_is_not_a_missing_record() -> None:
    """Until then the coordinator assigns nothing to the member, which is valid."""
    events = [
        joined(0, "m", BY_NAME),
        joined(1, "n", BY_REGEX),
        epoch(2),
        target(3),
        target(4, "n", ()),
        target_epoch(5),
    ]
    assert evaluated([*events, SAMPLE]).drifts[0].verdict == MATCH
