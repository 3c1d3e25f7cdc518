"""What nobody tells of a KIP-848 group leaves its verdict unknown: nothing is made up, and no law is called broken."""

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


def asked() -> GroupDescribed:
    """Return a coordinator's answer on a member with a regular expression: its topics are in no answer."""
    has = MemberAssignment(3, None, "Stable", BOTH, None)
    said = ModernDescription(3, 3, "uniform", {"m": BY_REGEX}, {"m": BOTH}, {"m": has}, {"id": "orders"})
    return GroupDescribed(Position(-1, 1, 5 * SECOND_MS), CONSUMER, "Stable", modern=said)


def evaluated(events: Sequence[GroupEvent]) -> Evaluation:
    found = evaluate_snapshot(advanced(events), SERVER)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        pytest.param([asked(), SAMPLE], "resolved_regex", id="an answer never names the topics of an expression"),
        pytest.param(
            [joined(0, "m", BY_REGEX), epoch(1), target(2), target_epoch(3), current(4), SAMPLE],
            "resolved_regex",
            id="the record of an expression's topics was compacted away",
        ),
        pytest.param(
            [joined(0, "m", BY_NAME), epoch(1), target(2, held=(("gone", (0,)),)), target_epoch(3), SAMPLE],
            "topic_names",
            id="a topic was deleted before its name was known",
        ),
        pytest.param(
            [joined(0, "m", BY_NAME), joined(1, "n", BY_NAME), epoch(2), target(3), target_epoch(4), SAMPLE],
            "target_assignment",
            id="the record of a member's target was compacted away",
        ),
    ],
)
def test_the_verdict_is_unknown_by_name_and_final(events: Sequence[GroupEvent], reason: str) -> None:
    """Each partition was an `unknown_partition` or unassigned: drift, and an alert on groups without a fault."""
    found = evaluated(events)
    assert {(drift.verdict, drift.reason, drift.drift_partitions) for drift in found.drifts} == {
        (UNKNOWN, reason, None)
    }
    assert found.is_complete
    whole = found.imbalances[0]
    assert reason in {whole.score_reason, whole.unknown_reason}


def test_a_member_whose_expression_nobody_resolved_is_no_stranger_to_its_topics() -> None:
    """With `source.kind = "admin-api"` each partition of such a member was `not_subscribed`."""
    group = advanced([asked(), SAMPLE])
    assert group.subscribed_topics() == ("orders",), "so that it is known how many partitions the topic has"
    assert [member.subscribed_topics for member in members(group)] == [None]
    violations = rule_violations(group, None)
    assert violations is not None
    assert (violations.unowned, violations.not_subscribed, violations.is_known) == ((), (), True)


def test_a_resolved_expression_is_judged_as_names_are() -> None:
    resolved = RegexResolved(at(5), "ord.*", ("orders",))
    events = [joined(0, "m", BY_REGEX), epoch(1), target(2), target_epoch(3), current(4), resolved, SAMPLE]
    assert evaluated(events).drifts[0].verdict == MATCH


def test_an_expression_that_the_coordinator_has_still_to_resolve_is_no_missing_record() -> None:
    """Until then it gives the member nothing, and that is right."""
    events = [
        joined(0, "m", BY_NAME),
        joined(1, "n", BY_REGEX),
        epoch(2),
        target(3),
        target(4, "n", ()),
        target_epoch(5),
    ]
    assert evaluated([*events, SAMPLE]).drifts[0].verdict == MATCH
