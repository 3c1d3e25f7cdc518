"""Tests that compare the targets of KIP-848 groups with the strategy that the coordinator used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import BUILT_IN, GroupSpec, MemberSubscription
from streaming.evaluation.assignment.drift import (
    DIFFERS_FROM_JAVA,
    DRIFT,
    EQUIVALENT,
    MATCH,
    NOT_EVALUATED,
    UNKNOWN,
    StrategyDrift,
)
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import AssignorReported, LogEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import (
    SECOND_MS,
    advanced,
    current,
    epoch,
    joined,
    modern_member,
    target,
    target_epoch,
)

SERVER = (BUILT_IN["uniform"], BUILT_IN["server-range"])


def settled(held: Mapping[str, Sequence[int]], assignor: str | None, partitions: int | None = 4) -> GroupSnapshot:
    """Return a group of the topic `orders` with the given targets."""
    offsets = iter(range(100))
    records: list[LogEvent] = [
        *(joined(next(offsets), name, modern_member(server_assignor=assignor)) for name in held),
        epoch(next(offsets)),
        *(target(next(offsets), name, (("id", tuple(numbers)),)) for name, numbers in held.items()),
        target_epoch(next(offsets)),
        *(current(next(offsets), name, (("id", tuple(numbers)),)) for name, numbers in held.items()),
    ]
    sample = TopicsSampled({"orders": TopicMetadata(partitions, 99 * SECOND_MS, topic_id="id")})
    return advanced([*records, sample])


def own(snapshot: GroupSnapshot) -> StrategyDrift:
    """Return the verdict for the group's own strategy."""
    evaluation = evaluate_snapshot(snapshot, SERVER)
    assert evaluation is not None
    (found,) = [drift for drift in evaluation.drifts if drift.is_group_strategy]
    return found


@pytest.mark.parametrize(
    ("held", "assignor", "verdict", "violations", "why"),
    [
        ({"a": [0, 1], "b": [2, 3]}, "uniform", MATCH, (), "even, and uniform would keep it"),
        ({"a": [0, 3], "b": [1, 2]}, "uniform", MATCH, (), "uniform accepts any even assignment"),
        (
            {"a": [0, 1, 2], "b": [3]},
            "uniform",
            DRIFT,
            ("unbalanced",),
            "one member has three partitions, the other has one",
        ),
        ({"a": [1], "b": [2, 3]}, "uniform", DRIFT, ("unassigned",), "no target has partition 0"),
        ({"a": [0, 1], "b": [2]}, "uniform", UNKNOWN, (), "no target has partition 3: the topic may just have grown"),
        ({"a": [0, 1, 2], "b": [2, 3]}, "uniform", DRIFT, ("assigned_twice",), "two targets have partition 2"),
        ({"a": [0, 1], "b": [2, 3]}, "range", MATCH, (), "the same as range"),
        ({"a": [0, 1], "b": [2, 3]}, None, MATCH, (), "no record names a strategy: it is one of the broker's"),
        (
            {"a": [0, 1, 2], "b": [3]},
            None,
            UNKNOWN,
            (),
            "neither built-in strategy fits; the broker may use a custom assignor",
        ),
        ({"a": [0, 1], "b": [2, 3]}, "mine", NOT_EVALUATED, (), "an assignor that only the broker has"),
    ],
)
def test_a_target_is_compared_with_its_strategy(
    held: Mapping[str, Sequence[int]], assignor: str | None, verdict: str, violations: tuple[str, ...], why: str
) -> None:
    """KIP-848: the log has the target itself.

    Several targets can be valid, and Kafka's version decides between them.
    """
    found = own(settled(held, assignor))
    assert (found.verdict, found.violations) == (verdict, violations), why


@pytest.mark.parametrize("assignor", ["uniform", "range", "mine", None])
def test_a_target_of_a_topic_without_a_name_gives_no_verdict(assignor: str | None) -> None:
    """Before, for a recreated topic, the old partitions were `not_subscribed` and the new partitions `unassigned`."""
    group = settled({"a": [0, 1], "b": [2, 3]}, assignor)
    samples = [
        TopicsSampled({"orders": TopicMetadata(4, at_ms * SECOND_MS, topic_id="another", since_ms=1)})
        for at_ms in (100, 101)
    ]
    later = advanced(samples, group)
    verdict = NOT_EVALUATED if assignor == "mine" else UNKNOWN
    assert (own(later).verdict, own(later).violations) == (verdict, ())
    evaluation = evaluate_snapshot(later, SERVER)
    assert evaluation is not None
    assert {one.score_reason for one in evaluation.imbalances if one.scope == "member"} == {"topic_names"}


@pytest.mark.parametrize(
    ("held", "reported", "verdict", "strategy", "why"),
    [
        ({"a": [0, 1], "b": [2, 3]}, "uniform", MATCH, "uniform", "matches the reported assignor"),
        ({"a": [0, 1], "b": [2, 3]}, "range", MATCH, "server-range", "matches the reported assignor"),
        ({"a": [0, 1, 2], "b": [3]}, "uniform", DRIFT, "uniform", "without a report it would be unknown"),
        ({"a": [0, 1, 2], "b": [3]}, "range", DRIFT, "server-range", "without a report it would be unknown"),
        (
            {"a": [0, 3], "b": [1, 2]},
            "range",
            DIFFERS_FROM_JAVA,
            "server-range",
            "without a report, uniform would explain the target",
        ),
        ({"a": [0, 1], "b": [2, 3]}, "mine", NOT_EVALUATED, "mine", "an assignor that only the broker has"),
    ],
)
def test_a_target_is_compared_with_the_assignor_that_the_coordinator_reports(
    held: Mapping[str, Sequence[int]], reported: str, verdict: str, strategy: str, why: str
) -> None:
    """ConsumerGroupDescribe returns the default assignor. No record contains it."""
    snapshot = advanced([AssignorReported(3, reported)], settled(held, None))
    found = own(snapshot)
    assert (found.verdict, found.strategy) == (verdict, strategy), why


def settled_by_votes(held: Mapping[str, Sequence[int]], *votes: str) -> GroupSnapshot:
    """Return the same group with members that vote for these strategies."""
    group = settled(held, None)
    assert group.modern is not None
    asking = dict(zip(held, votes, strict=True))
    members = {name: replace(member, server_assignor=asking[name]) for name, member in group.modern.members.items()}
    return msgspec.structs.replace(group, modern=msgspec.structs.replace(group.modern, members=members))


@pytest.mark.parametrize(
    ("held", "votes", "verdict", "strategy", "why"),
    [
        (
            {"a": [0, 3], "b": [1, 2]},
            ("range", "uniform"),
            MATCH,
            "uniform",
            "range would assign differently, uniform would keep it",
        ),
        ({"a": [0, 1], "b": [2, 3]}, ("range", "uniform"), MATCH, "uniform", "both strategies would keep it"),
        (
            {"a": [0, 1, 2], "b": [3]},
            ("range", "uniform"),
            DRIFT,
            "uniform",
            "the target breaks the rules of both strategies",
        ),
        (
            {"a": [0, 1, 2], "b": [3]},
            ("mine", "uniform"),
            UNKNOWN,
            "",
            "the other strategy exists only in the broker and may have made the target",
        ),
    ],
)
def test_a_tie_of_votes_is_evaluated_by_the_better_strategy(
    held: Mapping[str, Sequence[int]], votes: tuple[str, str], verdict: str, strategy: str, why: str
) -> None:
    """The coordinator can use any strategy of a tie. Before, the first name was assumed, and valid targets drifted."""
    snapshot = settled_by_votes(held, *votes)
    found = own(snapshot)
    assert (found.verdict, found.strategy) == (verdict, strategy), why
    assert snapshot.protocol is None


def test_without_partition_counts_the_verdict_is_unknown() -> None:
    snapshot = settled({"a": [0], "b": [1]}, "uniform", partitions=2)
    unsampled = advanced([TopicsSampled({})], GroupSnapshot("g"))
    assert own(snapshot).verdict == MATCH
    assert evaluate_snapshot(unsampled, SERVER) is None


@given(st.sampled_from(["uniform", "server-range"]), st.integers(1, 5), st.integers(1, 12))
def test_a_strategy_keeps_its_own_assignment(name: str, members: int, partitions: int) -> None:
    """`match` relies on this. Both server assignors are sticky, so they do not change their own result."""
    ids = [f"m{number}" for number in range(members)]
    spec = GroupSpec(tuple(MemberSubscription(one, ("orders",)) for one in ids), {"orders": partitions})
    made = BUILT_IN[name].assign(spec).members
    held = {member_id: [partition for _, partition in sorted(of)] for member_id, of in made.items()}
    kafka_name = "range" if name == "server-range" else name
    assert own(settled(held, kafka_name, partitions)).verdict in (MATCH, EQUIVALENT)


@given(st.sampled_from(["uniform", "range", None, "mine"]), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_every_strategy_has_one_verdict_and_one_of_them_is_the_groups_own(
    assignor: str | None, owner_of: list[int]
) -> None:
    """The key of the table is record and strategy. Two verdicts of one strategy would be a duplicate row."""
    held = {str(name): [number for number, owner in enumerate(owner_of) if owner == name] for name in range(3)}
    evaluation = evaluate_snapshot(settled(held, assignor, 6), tuple(BUILT_IN.values()))
    assert evaluation is not None
    names = [drift.strategy for drift in evaluation.drifts]
    assert len(names) == len(set(names))
    assert sum(drift.is_group_strategy for drift in evaluation.drifts) == 1
