"""Tests for rules 5 to 9 of `evaluation.assignment.drift`: which differences from the replay are drift."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import AS_JAVA_LEADER, GroupSpec, MemberSubscription
from streaming.evaluation.assignment.drift import (
    DIFFERS_FROM_JAVA,
    DRIFT,
    EQUIVALENT,
    MATCH,
    REPLAY_DIFFERS,
    WITHHELD,
)
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.protocol.classic import Assignment, ClassicMember
from tests.streaming.evaluation.assignment.test_drift import AFTER_MS, BEFORE_MS, BOTH, group, sampled_before_and_after
from tests.streaming.groups import member

# Rules 5 to 9: a difference from the replay is drift only if a rule is broken or the leader's library is known.


def java(member_id: str, held: Sequence[int], owned: Sequence[int] = ()) -> ClassicMember:
    """Return a member as Java clients write it: version 3, no user data."""
    return member(member_id, {"orders": held}, owned=[("orders", partition) for partition in owned])


def other(member_id: str, held: Sequence[int], owned: Sequence[int] = ()) -> ClassicMember:
    """Return a member of an unknown library: assignments of version 2, empty user data."""
    written = java(member_id, held, owned)
    assert written.assignment is not None
    return replace(written, assignment=replace(written.assignment, version=2, user_data=b""))


def version_0(member_id: str, held: Sequence[int]) -> ClassicMember:
    """Return a member as kafka-python, aiokafka and Java before 2.4 write it: version 0, empty user data."""
    written = java(member_id, held)
    assert written.assignment is not None
    assert written.subscription is not None
    return replace(
        written,
        subscription=replace(written.subscription, version=0, user_data=b""),
        assignment=replace(written.assignment, version=0, user_data=b""),
    )


def old_java(member_id: str, held: Sequence[int], generation_id: int, owned: Sequence[int] = ()) -> ClassicMember:
    """Return a member as Java 2.8.1 to 3.3 writes it: version 1, the generation of its claim in the user data."""
    written = java(member_id, held, owned)
    assert written.subscription is not None
    assert written.assignment is not None
    return replace(
        written,
        subscription=replace(written.subscription, version=1, user_data=generation_id.to_bytes(4, "big")),
        assignment=replace(written.assignment, version=1),
    )


LAWFUL = [
    ("range", [other("a", [0, 2]), other("b", [1, 3])], DIFFERS_FROM_JAVA, (), "the range of a different library"),
    (
        "range",
        [java("a", [0, 2]), java("b", [1, 3])],
        DRIFT,
        (REPLAY_DIFFERS,),
        "Java would have assigned two consecutive ranges",
    ),
    (
        "range",
        [other("a", [0, 1, 2]), other("b", [3])],
        DIFFERS_FROM_JAVA,
        (),
        "the promises of its library are unknown",
    ),
    ("range", [java("a", [0, 1, 2]), java("b", [3])], DRIFT, ("unbalanced",), "Java's range is even in each topic"),
    (
        "range",
        [version_0("a", [0, 1, 2]), version_0("b", [3])],
        DRIFT,
        ("unbalanced",),
        "kafka-python, aiokafka or old Java: each of them promises an even assignment",
    ),
    (
        "sticky",
        [other("a", [0, 1, 2]), other("b", [3])],
        DIFFERS_FROM_JAVA,
        (),
        "uneven, but no promise of the library is known",
    ),
    ("roundrobin", [other("a", [0, 1]), other("b", [2, 3])], DIFFERS_FROM_JAVA, (), "as even as roundrobin"),
    (
        "sticky",
        [other("a", [0, 3]), other("b", [1, 2])],
        EQUIVALENT,
        (),
        "no member owned a partition before: both assignments are valid",
    ),
    ("sticky", [java("a", [0, 3]), java("b", [1, 2])], EQUIVALENT, (), "the same for a Java leader"),
    (
        "sticky",
        [other("a", [2, 3], owned=[0, 1]), other("b", [0, 1], owned=[2, 3])],
        EQUIVALENT,
        (),
        "all partitions could have stayed: this counts in the rebalance, and every owner is valid now",
    ),
    (
        "cooperative-sticky",
        [other("a", [0, 1], owned=[0, 1, 2, 3]), other("b", [])],
        MATCH,
        (),
        "the first round as in Java: 2 and 3 are revoked and have no owner yet",
    ),
    (
        "cooperative-sticky",
        [other("a", [2, 3], owned=[0, 1, 2, 3]), other("b", [])],
        WITHHELD,
        (),
        "a first round that revokes other partitions",
    ),
    (
        "cooperative-sticky",
        [other("a", [0, 1], owned=[0, 1, 2, 3]), other("b", [2, 3])],
        DRIFT,
        ("handed_over_early",),
        "b consumes a partition that a has not revoked: each record is read twice",
    ),
    (
        "cooperative-sticky",
        [old_java("a", [0, 1], 5, owned=[0, 1]), old_java("b", [2, 3], 5), old_java("c", [], 4, owned=[3])],
        DRIFT,
        ("handed_over_early",),
        "KAFKA-14639: Java 2.8.1 to 3.4.0 ignores the older claim of c, but c still has the partition",
    ),
    (
        "cooperative-sticky",
        [other("a", [0, 1], owned=[0, 1]), other("b", [3], owned=[3])],
        DRIFT,
        ("unassigned",),
        "no member owned 2 and no member gets it",
    ),
]


@pytest.mark.parametrize(
    ("protocol", "members", "verdict", "violations", "why"), LAWFUL, ids=[why for *_, why in LAWFUL]
)
def test_a_difference_from_the_replay_is_drift_only_with_a_reason(
    protocol: str, members: list[ClassicMember], verdict: str, violations: tuple[str, ...], why: str
) -> None:
    evaluation = evaluate_snapshot(
        group(members, {"orders": sampled_before_and_after(4)}, protocol), [AS_JAVA_LEADER[protocol]]
    )
    assert evaluation is not None
    (own,) = evaluation.drifts
    assert (own.verdict, own.violations) == (verdict, violations), why
    assert bool(own.misplaced) == (verdict == DRIFT)
    assert [one for one in own.misplaced if one.actual_members == (one.expected_member,)] == []
    assert (own.drift_partitions is None) == (verdict == DIFFERS_FROM_JAVA), (
        "a different library's assignment counts no drift"
    )


@pytest.mark.parametrize(
    ("owners", "expected", "why"),
    [
        ([[0, 1], [2, 3]], {2: None, 3: None}, "in this round, the partitions must have no owner"),
        ([[0, 1, 2], [2, 3]], {2: "a", 3: None}, "a keeps partition 2 until it has revoked it"),
    ],
)
def test_a_partition_that_was_handed_over_early_has_no_new_expected_owner(
    owners: Sequence[Sequence[int]], expected: dict[int, str | None], why: str
) -> None:
    """KIP-429. Before, the expected owner was the actual owner: the page showed "wrong owner: b, expected: b"."""
    members = [other("a", owners[0], owned=[0, 1, 2, 3]), other("b", owners[1])]
    known = group(members, {"orders": sampled_before_and_after(4)}, "cooperative-sticky")
    evaluation = evaluate_snapshot(known, [AS_JAVA_LEADER["cooperative-sticky"]])
    assert evaluation is not None
    (own,) = evaluation.drifts
    assert {one.partition: one.expected_member for one in own.misplaced} == expected, why


def test_a_verdict_names_its_missing_inputs() -> None:
    late = evaluate_snapshot(group([other("a", [0])], {"orders": (1, AFTER_MS)}), BOTH)
    assert late is not None
    assert late.not_known == ("metadata_of_the_time", "leader_implementation")
    known = evaluate_snapshot(group([java("a", [0])], {"orders": (1, BEFORE_MS)}), BOTH)
    assert known is not None
    assert known.not_known == ()
    assert known.assigned_by is not None
    assert known.assigned_by.implementation == "java"


CORRUPTIONS = ["drop", "double", "foreign", "pile"]


def corrupted(held: dict[str, list[tuple[str, int]]], how: str, at: int) -> dict[str, list[tuple[str, int]]]:
    """Return the assignment with one kind of damage."""
    members = sorted(held)
    giver = members[at % len(members)]
    taker = members[(at + 1) % len(members)]
    broken = {member_id: list(partitions) for member_id, partitions in held.items()}
    if how == "drop":
        broken[giver].pop()
    elif how == "double":
        broken[taker].append(broken[giver][0])
    elif how == "foreign":
        broken[giver].append(("foreign", 0))
    else:
        for other_member in members:
            while other_member != giver and len(broken[other_member]) > 1:
                broken[giver].append(broken[other_member].pop())
    return broken


@given(
    st.sampled_from(["range", "roundrobin", "sticky", "cooperative-sticky"]),
    st.integers(2, 4),
    st.sampled_from(CORRUPTIONS),
    st.integers(0, 3),
)
def test_a_corrupted_assignment_is_drift_for_every_strategy_and_library(
    protocol: str, count: int, how: str, at: int
) -> None:
    """Partitions of a valid assignment are dropped, doubled, foreign, or all given to one member.

    The first three break the rules of every library. Evenness is only a promise, so for the fourth kind Java leads.
    A partition beyond the topic's end is left out. A topic recreated with fewer partitions looks the same.
    """
    ids = [f"m{number}" for number in range(count)]
    spec = GroupSpec(tuple(MemberSubscription(one, ("orders",)) for one in ids), {"orders": 3 * count, "foreign": 1})
    lawful = AS_JAVA_LEADER[protocol].assign(spec).members
    broken = corrupted({member_id: sorted(partitions) for member_id, partitions in lawful.items()}, how, at)
    assignment = Assignment(3, (), None) if how == "pile" else Assignment(2, (), b"")
    members = [
        replace(java(member_id, []), assignment=replace(assignment, partitions=tuple(sorted(partitions))))
        for member_id, partitions in broken.items()
    ]
    snapshot = group(members, {"orders": sampled_before_and_after(3 * count)}, protocol)
    evaluation = evaluate_snapshot(snapshot, [AS_JAVA_LEADER[protocol]])
    assert evaluation is not None
    (own,) = evaluation.drifts
    assert own.verdict == DRIFT
    assert own.violations
    assert own.misplaced
