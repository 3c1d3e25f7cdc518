"""Tests for the rules of `streaming.evaluation.assignment.drift` as tables of situations and verdicts.

The examples come from the javadoc of RangeAssignor and RoundRobinAssignor, and from the project's demo groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import AS_JAVA_LEADER, BUILT_IN, GroupSpec, MemberSubscription, assignor_named
from streaming.evaluation.assignment.drift import (
    DIFFERS,
    DRIFT,
    EQUIVALENT,
    MATCH,
    NOT_EVALUATED,
    SAME,
    UNKNOWN,
    MisplacedPartition,
    StrategyDrift,
)
from streaming.evaluation.assignment.sampled_topics import METADATA_MAX_AGE_MS
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import GroupMetadataWritten, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.layouts import STICKY_USER_DATA
from tests.bench.encoder import encode
from tests.streaming.groups import SECOND_MS, advanced, at, member, metadata

WRITTEN = 1_000
BEFORE_MS, AFTER_MS = (WRITTEN - 1) * SECOND_MS, (WRITTEN + 1) * SECOND_MS
LONG_BEFORE_MS = WRITTEN * SECOND_MS - METADATA_MAX_AGE_MS - 1
BOTH = (assignor_named("range"), assignor_named("roundrobin"))
Topics = Mapping[str, tuple[Any, ...]]
"""Topic to (partitions, sampled at), optionally with more fields of `TopicMetadata`."""


def sampled_before_and_after(partitions: int, known_since_ms: int = LONG_BEFORE_MS) -> tuple[Any, ...]:
    """Return a topic that has this number of partitions after the record, and so long before it that a leader knew."""
    return partitions, AFTER_MS, (), None, known_since_ms


def group(
    members: Sequence[ClassicMember], topics: Topics, protocol: str = "range", kind: str = "consumer"
) -> GroupSnapshot:
    """Return a group whose record was written at WRITTEN, with topics sampled before or after."""
    record = GroupMetadataWritten(at(WRITTEN), metadata(3, members, protocol=protocol, protocol_type=kind))
    samples = TopicsSampled({topic: TopicMetadata(*sampled) for topic, sampled in topics.items()})
    return advanced([record, samples])


def own_drift(snapshot: GroupSnapshot) -> StrategyDrift:
    """Return the verdict for the group's own strategy."""
    evaluation = evaluate_snapshot(snapshot, BOTH)
    assert evaluation is not None
    (own,) = [drift for drift in evaluation.drifts if drift.is_group_strategy]
    return own


def spread(*held: Sequence[int]) -> list[ClassicMember]:
    """Return members c0, c1, ... of the topic `orders`, each with the given partitions."""
    return [member(f"c{number}", {"orders": partitions}) for number, partitions in enumerate(held)]


# Common situations of consumer groups.

RANGE_7_OVER_5 = ([0, 1], [2, 3], [4], [5], [6])
ROUND_7_OVER_5 = ([0, 5], [1, 6], [2], [3], [4])


@pytest.mark.parametrize(
    ("protocol", "held", "verdict", "why"),
    [
        ("range", RANGE_7_OVER_5, MATCH, "7 over 5: the first two members get one more, in consecutive partitions"),
        ("roundrobin", ROUND_7_OVER_5, MATCH, "7 over 5: one partition at a time, in turn"),
        ("range", ROUND_7_OVER_5, DRIFT, "balanced, but a different assignment than range's"),
        ("roundrobin", RANGE_7_OVER_5, DRIFT, "balanced, but a different assignment than roundrobin's"),
        ("range", ([0, 1, 2], [3], [4], [5], [6]), DRIFT, "one member has more than its share"),
        ("range", ([0, 1], [2, 3], [4], [5], []), DRIFT, "the last partition has no owner"),
        ("range", ([0, 1], [2, 3], [4], [5], [5, 6]), DRIFT, "one partition has two owners"),
    ],
)
def test_seven_partitions_over_five_members(
    protocol: str, held: Sequence[Sequence[int]], verdict: str, why: str
) -> None:
    assert own_drift(group(spread(*held), {"orders": sampled_before_and_after(7)}, protocol)).verdict == verdict, why


def test_five_members_on_three_partitions_leave_two_idle_and_match() -> None:
    snapshot = group(spread([0], [1], [2], [], []), {"orders": (3, BEFORE_MS)})
    assert own_drift(snapshot) == StrategyDrift("range", True, MATCH, "", 0)


def test_the_skew_of_range_over_topics_is_not_drift() -> None:
    """RangeAssignor's javadoc: the first members get one more partition of *each* topic."""
    topics = {f"t{number}": (3, BEFORE_MS) for number in range(4)}
    first = member("c0", {topic: [0, 1] for topic in topics}, list(topics))
    second = member("c1", {topic: [2] for topic in topics}, list(topics))
    assert own_drift(group([first, second], topics)).verdict == MATCH


def test_roundrobin_with_unequal_subscriptions_assigns_one_one_and_four_and_that_is_not_drift() -> None:
    """RoundRobinAssignor's javadoc: C0:{t0} C1:{t0,t1} C2:{t0,t1,t2} with 1, 2 and 3 partitions."""
    members = [
        member("c0", {"t0": [0]}, ["t0"]),
        member("c1", {"t1": [0]}, ["t0", "t1"]),
        member("c2", {"t1": [1], "t2": [0, 1, 2]}, ["t0", "t1", "t2"]),
    ]
    topics = {"t0": (1, BEFORE_MS), "t1": (2, BEFORE_MS), "t2": (3, BEFORE_MS)}
    assert own_drift(group(members, topics, "roundrobin")).verdict == MATCH


def test_static_members_are_ordered_by_instance_id_not_by_member_id() -> None:
    """KIP-345: member ids change at every restart, but the assignment must not change."""
    members = [member("z", {"orders": [0]}, instance_id="a"), member("a", {"orders": [1]}, instance_id="b")]
    assert own_drift(group(members, {"orders": (2, BEFORE_MS)})).verdict == MATCH


def test_drift_names_the_current_and_the_expected_owner() -> None:
    snapshot = group(spread([0, 1, 2], [], [3, 2]), {"orders": (5, BEFORE_MS)})
    assert own_drift(snapshot) == StrategyDrift(
        "range",
        True,
        DRIFT,
        "",
        3,
        (
            MisplacedPartition("orders", 2, ("c0", "c2"), "c1"),
            MisplacedPartition("orders", 3, ("c2",), "c1"),
            MisplacedPartition("orders", 4, (), "c2"),
        ),
        ("assigned_twice", "unassigned"),
    )


@pytest.mark.parametrize(
    ("held", "topics", "verdict", "reason", "why"),
    [
        ([[0, 1]], {}, UNKNOWN, "metadata_missing", "rule 2: the topic was never sampled"),
        (
            [[0, 1]],
            {"orders": (None, BEFORE_MS)},
            UNKNOWN,
            "metadata_missing",
            "rule 2: the topic was absent then and exists now",
        ),
        (
            [[0, 1]],
            {"orders": (1, BEFORE_MS)},
            UNKNOWN,
            "metadata_missing",
            "rule 2: the leader knew more partitions than the sample",
        ),
        (
            [[0, 1]],
            {"orders": (2, BEFORE_MS)},
            MATCH,
            "",
            "rule 3: sampled before the record, and the count still matched",
        ),
        ([[0, 1]], {"orders": (2, AFTER_MS)}, MATCH, "", "rule 3: sampled after the record"),
        (
            [[]],
            {"orders": (None, AFTER_MS)},
            MATCH,
            "",
            "rule 3: a topic that does not exist has no partitions to assign",
        ),
        ([[0, 1]], {"orders": (4, AFTER_MS)}, UNKNOWN, "metadata_changed", "rule 4: the topic has grown since"),
        (
            [[0], [1]],
            {"orders": (3, AFTER_MS)},
            UNKNOWN,
            "metadata_changed",
            "rule 4: the topic has grown since, with several members",
        ),
        (
            [[0, 1]],
            {"orders": (1, AFTER_MS)},
            UNKNOWN,
            "metadata_changed",
            "rule 4: the topic was recreated with fewer partitions",
        ),
        ([[0, 1]], {"orders": (None, AFTER_MS)}, UNKNOWN, "metadata_changed", "rule 4: the topic was deleted since"),
        (
            [[0, 1]],
            {"orders": (4, BEFORE_MS)},
            UNKNOWN,
            "metadata_missing",
            "rule 2: the topic had four before and may have been recreated with two: only a later sample can show this",
        ),
        (
            [[1], [1]],
            {"orders": (4, BEFORE_MS)},
            DRIFT,
            "",
            "rule 5: two owners break a rule for every partition count",
        ),
        ([[]], {"orders": (3, AFTER_MS)}, UNKNOWN, "metadata_changed", "rule 4: the topic was created since"),
        (
            [[0, 1]],
            {"orders": sampled_before_and_after(4)},
            DRIFT,
            "",
            "rule 5: it had four when the leader gave out two",
        ),
        (
            [[]],
            {"orders": sampled_before_and_after(4)},
            DRIFT,
            "",
            "rule 5: the topic existed, and no member got its partitions",
        ),
        (
            [[0], [1]],
            {"orders": sampled_before_and_after(4, BEFORE_MS)},
            UNKNOWN,
            "metadata_changed",
            "rule 4: it had four, but the leader may not have known this yet",
        ),
        ([[0, 1]], {"orders": sampled_before_and_after(2, BEFORE_MS)}, MATCH, "", "rule 3: it explains all owners"),
        (
            [[0, 1], [1, 2]],
            {"orders": sampled_before_and_after(3, BEFORE_MS)},
            DRIFT,
            "",
            "rule 5: no smaller count explains these owners",
        ),
        (
            [[0, 2]],
            {"orders": (3, AFTER_MS)},
            DRIFT,
            "",
            "rule 6: the missing partition is not the last one, so growth does not explain it",
        ),
        ([[1], [0]], {"orders": (2, AFTER_MS)}, DRIFT, "", "rule 6: all partitions are assigned, to the wrong members"),
    ],
)
def test_the_samples_of_a_topic_decide_the_verdict(
    held: list[list[int]], topics: Topics, verdict: str, reason: str, why: str
) -> None:
    own = own_drift(group(spread(*held), topics))
    assert (own.verdict, own.reason) == (verdict, reason), why
    assert (own.drift_partitions is None) == (verdict == UNKNOWN), "an unknown verdict has no count"


def test_one_unknown_topic_makes_the_whole_verdict_unknown() -> None:
    """Roundrobin assigns all topics together. If one count is missing, the owner of every partition is unknown."""
    both = member("c0", {"a": [0], "b": [0]}, ["a", "b"])
    assert own_drift(group([both], {"a": (1, AFTER_MS)}, "roundrobin")).reason == "metadata_missing"


@pytest.mark.parametrize(
    ("protocol", "kind", "verdict", "reason", "why"),
    [
        (
            "stream",
            "consumer",
            NOT_EVALUATED,
            "kafka_streams",
            "Kafka Streams' own assignor, which the project does not replay",
        ),
        ("my-own", "consumer", NOT_EVALUATED, "strategy_not_known", "a custom assignor"),
        ("sticky", "consumer", NOT_EVALUATED, "strategy_not_known", "not in the configured strategies"),
    ],
)
def test_strategies_without_a_replay_are_not_evaluated(
    protocol: str, kind: str, verdict: str, reason: str, why: str
) -> None:
    own = own_drift(group(spread([1], [0]), {"orders": (2, AFTER_MS)}, protocol, kind))
    assert own == StrategyDrift(protocol, True, verdict, reason), why


def split(
    name: str, held: Sequence[int], *, topics: Sequence[str] = ("orders",), owned: int | None = None
) -> ClassicMember:
    """Return a member of `orders` that can also claim a partition."""
    return member(name, {"orders": held}, topics, owned=[] if owned is None else [("orders", owned)])


STICKY_CLAIM_OF_1 = encode(STICKY_USER_DATA, 0, {"previousAssignment": [{"topic": "orders", "partitions": [1]}]})


@pytest.mark.parametrize(
    ("protocol", "members", "topics", "violations", "partitions", "why"),
    [
        ("my-own", [split("a", [0])], sampled_before_and_after(2), ("unassigned",), 1, "one partition is not assigned"),
        (
            "stream",
            [split("a", [0])],
            sampled_before_and_after(2),
            ("unassigned",),
            1,
            "the same rule applies under Kafka Streams",
        ),
        ("my-own", [split("a", [0])], (2, AFTER_MS), (), None, "the topic may have grown since"),
        ("my-own", [split("a", [0])], (2, BEFORE_MS), (), None, "the sample is older than the record"),
        (
            "my-own",
            [split("a", [0], owned=1)],
            sampled_before_and_after(2),
            (),
            None,
            "the partition may be withheld, because member a claims it",
        ),
        (
            "my-own",
            [member("a", {"orders": [0]}, user_data=STICKY_CLAIM_OF_1)],
            sampled_before_and_after(2),
            ("unassigned",),
            1,
            "member a revoked the partition before it joined, so it is not withheld",
        ),
        (
            "RoundRobinAssigner",
            [split("a", [0]), split("b", [1], topics=["sales"])],
            sampled_before_and_after(2),
            ("not_subscribed",),
            1,
            "KafkaJS: the leader ignores the subscriptions of members",
        ),
        (
            "stream",
            [split("a", [0, 1]), split("b", [1])],
            sampled_before_and_after(2),
            ("assigned_twice",),
            1,
            "an active task has one owner",
        ),
        (
            "faust",
            [split("a", [0, 1]), split("b", [1])],
            sampled_before_and_after(2),
            (),
            None,
            "Faust's standby tables have a second owner",
        ),
        (
            "RoundRobinAssigner",
            [split("a", [0, 1]), split("b", [1])],
            sampled_before_and_after(2),
            ("assigned_twice",),
            1,
            "KafkaJS assigns each partition to one member",
        ),
        (
            "my-own",
            [split("a", [0, 1]), member("b", {"nobodys": [0]})],
            sampled_before_and_after(2),
            ("not_subscribed",),
            1,
            "no member subscribes to this topic, so its partition count is unknown",
        ),
    ],
)
def test_common_rules_are_evaluated_under_every_strategy(  # noqa: PLR0913, PLR0917 - one row of the table
    protocol: str,
    members: list[ClassicMember],
    topics: tuple[Any, ...],
    violations: tuple[str, ...],
    partitions: int | None,
    why: str,
) -> None:
    """Before, a strategy that the project cannot replay was never `drift`."""
    known = {"orders": topics, "sales": sampled_before_and_after(0)}
    own = own_drift(group(members, known, protocol))
    assert (own.verdict, own.violations, own.drift_partitions) == (
        DRIFT if violations else NOT_EVALUATED,
        violations,
        partitions,
    ), why
    assert own.reason == ("kafka_streams" if protocol == "stream" else "strategy_not_known")


def test_kafka_streams_groups_get_no_advice_from_other_strategies() -> None:
    evaluation = evaluate_snapshot(group(spread([0]), {"orders": (1, AFTER_MS)}, "stream"), BOTH)
    assert evaluation is not None
    assert [drift.strategy for drift in evaluation.drifts] == ["stream"]


@pytest.mark.parametrize("kind", ["connect", "sr", ""])
def test_groups_of_other_protocol_types_have_members_without_partitions(kind: str) -> None:
    """Kafka Connect and Schema Registry use the group protocol for their own kinds of work."""
    opaque = [member("c0", topics=[])]
    evaluation = evaluate_snapshot(group(opaque, {}, "sessioned", kind), BOTH)
    assert evaluation is not None
    assert (evaluation.drifts, evaluation.imbalances) == ((), ())


@pytest.mark.parametrize(("held", "verdict", "partitions"), [([[0, 2], [1]], SAME, 0), ([[0, 1], [2]], DIFFERS, 2)])
def test_other_strategies_are_compared_but_not_evaluated(held: list[list[int]], verdict: str, partitions: int) -> None:
    evaluation = evaluate_snapshot(group(spread(*held), {"orders": (3, AFTER_MS)}, "my-own"), BOTH)
    assert evaluation is not None
    (other,) = [drift for drift in evaluation.drifts if drift.strategy == "roundrobin"]
    assert other == StrategyDrift("roundrobin", False, verdict, "", partitions)


@pytest.mark.parametrize(("held", "verdict", "partitions"), [([[0], [1]], MATCH, 0), ([[1], [0]], EQUIVALENT, 0)])
def test_a_difference_from_one_of_several_valid_assignments_counts_no_drift(
    held: list[list[int]], verdict: str, partitions: int | None
) -> None:
    """Sticky has many valid assignments. A drift count would alert on a valid one."""
    evaluation = evaluate_snapshot(
        group(spread(*held), {"orders": (2, AFTER_MS)}, "sticky"), [assignor_named("sticky")]
    )
    assert evaluation is not None
    (own,) = evaluation.drifts
    assert (own.verdict, own.drift_partitions, own.misplaced) == (verdict, partitions, ())


@pytest.mark.parametrize("end", [metadata(4, ())])
def test_a_group_without_members_is_not_evaluated(end: object) -> None:
    assert evaluate_snapshot(advanced([]), BOTH) is None
    assert evaluate_snapshot(group([], {}), BOTH) is None, end


def test_a_verdict_has_the_age_of_its_oldest_metadata() -> None:
    both = member("c0", {"a": [0], "b": [0]}, ["a", "b"])
    evaluation = evaluate_snapshot(group([both], {"a": (1, 100), "b": (1, 90)}), BOTH)
    assert evaluation is not None
    assert evaluation.metadata_sampled_at_ms == 90


MEMBER_IDS = st.text(max_size=3)
SUBSCRIPTIONS = st.lists(st.sampled_from(["a", "b", "c", "\N{ROCKET}"]), max_size=5)
PARTITIONS = st.tuples(st.sampled_from(["a", "b", "z"]), st.integers(-(2**31), 2**31 - 1) | st.integers(0, 3))


@given(
    st.lists(
        st.builds(
            MemberSubscription,
            MEMBER_IDS,
            SUBSCRIPTIONS.map(tuple),
            st.none() | st.text(max_size=2),
            st.none() | st.sampled_from(["", "r1", "r2"]),
            st.lists(PARTITIONS, max_size=5).map(tuple),
            st.integers(-(2**31), 2**31 - 1),
            st.sampled_from([0, 1]),
        ),
        max_size=5,
        unique_by=lambda one: one.member_id,
    ),
    st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(0, 4)),
    st.booleans(),
)
def test_no_built_in_strategy_raises_for_any_group_that_a_record_can_contain(
    members: list[MemberSubscription], partitions: dict[str, int], racked: bool
) -> None:
    """Input can be hostile. One group that makes an assignor raise would stop the evaluation of all groups."""
    racks = {topic: (("r1", None), ("r2",), (), ("r1", "r2"))[:count] for topic, count in partitions.items()}
    spec = GroupSpec(tuple(members), partitions, racks if racked else {})
    for assignor in (*BUILT_IN.values(), *AS_JAVA_LEADER.values()):
        assigned = assignor.assign(spec).members
        given_out = [one for held in assigned.values() for one in held]
        assert len(given_out) == len(set(given_out))
