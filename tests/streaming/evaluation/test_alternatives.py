"""Tests of the what-if of an evaluated generation and of its topic skew.

The numbers are the rules of `alternatives`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given

from assignors import AS_JAVA_LEADER, BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec, assignor_named
from streaming.evaluation.alternatives import (
    AS_IT_IS,
    MOST_PARTITIONS,
    MOST_PARTITIONS_CHANGED,
    TODAY,
    Alternatives,
    compute_alternatives,
)
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import GroupEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import Assignment, ClassicMember
from tests.assignors.groups import groups
from tests.streaming.groups import (
    advanced,
    current,
    epoch,
    joined,
    member,
    metadata,
    modern_member,
    target,
    target_epoch,
    written,
)

RANGE, STICKY = assignor_named("range"), assignor_named("sticky")
BOTH = (RANGE, STICKY)
EVERY = tuple(AS_JAVA_LEADER.values())
LATER_MS = 10**9
TOPICS = ("t", "u", "v")
SKEWED = [
    member("a", {topic: [0] for topic in TOPICS}, TOPICS),
    member("b", {topic: [1] for topic in TOPICS}, TOPICS),
    member("c", {}, TOPICS),
]
"""Range over three topics of two partitions: `c` is idle although there are six partitions."""


def known(**partitions: int) -> TopicsSampled:
    """Return the partition counts, sampled after all records."""
    return TopicsSampled({topic: TopicMetadata(count, LATER_MS) for topic, count in partitions.items()})


def alternatives_of(members: Sequence[ClassicMember], **partitions: int) -> Alternatives | None:
    """Return the alternatives for the generation of these members."""
    snapshot = advanced([written(0, 1, members), known(**partitions)])
    evaluation = evaluate_snapshot(snapshot, BOTH)
    assert evaluation is not None
    return compute_alternatives(evaluation, snapshot, BOTH)


def evenly_assigned(members: int, partitions: int) -> list[ClassicMember]:
    """Return members of the topic `orders` with roundrobin's assignment."""
    return [member(f"c{one:03}", {"orders": range(one, partitions, members)}) for one in range(members)]


def test_a_skewed_group_gets_the_strategy_that_removes_the_skew_and_its_cost() -> None:
    """Sticky moves two of six.

    Under range a fourth member would also be idle, because range assigns topics separately.
    """
    found = alternatives_of(SKEWED, t=2, u=2, v=2)
    assert found is not None
    assert (found.group_strategy, found.is_skewed, found.remedy) == ("range", True, "sticky")
    assert [
        (one.change, one.strategy, one.score, one.excess_partitions, one.idle_members, one.moved_partitions)
        for one in found.outcomes
    ] == [
        (AS_IT_IS, TODAY, 50, 1, 1, 0),
        (AS_IT_IS, "range", 50, 1, 1, 0),
        (AS_IT_IS, "sticky", 100, 0, 0, 2),
        ("1 member more", "range", 50, 1, 2, 0),
        ("1 member more", "sticky", 100, 0, 0, 2),
        ("1 member fewer", "range", 100, 0, 0, 3),
        ("1 member fewer", "sticky", 100, 0, 0, 3),
    ]
    assert [one.change for one in found.as_it_is().outcomes] == [AS_IT_IS] * 3


def of_library(one: ClassicMember, version: int, user_data: bytes | None, assigned_version: int) -> ClassicMember:
    """Return the member with the bytes of a different library."""
    assert one.subscription is not None
    assert one.assignment is not None
    subscription = replace(one.subscription, version=version, user_data=user_data)
    return replace(
        one, subscription=subscription, assignment=Assignment(assigned_version, one.assignment.partitions, user_data)
    )


def as_kafka_go(one: ClassicMember) -> ClassicMember:
    """Return the member with the bytes of kafka-go."""
    written_by_kafka_go = of_library(one, 1, None, 1)
    assert written_by_kafka_go.subscription is not None
    return replace(written_by_kafka_go, subscription=replace(written_by_kafka_go.subscription, ends_before_owned=True))


@pytest.mark.parametrize(
    ("members", "remedy", "why"),
    [
        (SKEWED, "sticky", "Java moves the fewest partitions with sticky"),
        (
            [of_library(one, 3, b"", 0) for one in SKEWED],
            "roundrobin",
            "librdkafka has no sticky, and refuses to start with range and cooperative-sticky in one list",
        ),
        ([of_library(one, 0, b"", 0) for one in SKEWED], "roundrobin", "all four candidates have it"),
        ([as_kafka_go(one) for one in SKEWED], None, "the roundrobin of kafka-go is as skewed as range"),
    ],
)
def test_the_remedy_is_a_strategy_that_the_leaders_library_has(
    members: Sequence[ClassicMember], remedy: str | None, why: str
) -> None:
    """Before, the alert asked users of librdkafka and kafka-go to use `sticky`, and their consumers did not start."""
    snapshot = advanced([written(0, 1, members), known(t=2, u=2, v=2)])
    evaluation = evaluate_snapshot(snapshot, EVERY)
    assert evaluation is not None
    found = compute_alternatives(evaluation, snapshot, EVERY)
    assert found is not None
    assert (found.is_skewed, found.remedy) == (True, remedy), why
    assert {one.strategy for one in found.outcomes} == {TODAY, *BUILT_IN}, "the table still has every strategy"


def test_the_remedy_of_a_kip_848_group_is_an_assignor_of_the_coordinator() -> None:
    """The members vote for `range`. Before, the remedy was `sticky`, which no coordinator has."""
    targets = {"a": [(topic, (0,)) for topic in TOPICS], "b": [(topic, (1,)) for topic in TOPICS], "c": []}
    offsets = iter(range(100))
    records = [
        *(joined(next(offsets), name, modern_member(TOPICS, server_assignor="range")) for name in targets),
        epoch(next(offsets)),
        *(target(next(offsets), name, tuple(held)) for name, held in targets.items()),
        target_epoch(next(offsets)),
        *(current(next(offsets), name, tuple(held)) for name, held in targets.items()),
    ]
    sample = TopicsSampled({topic: TopicMetadata(2, LATER_MS, topic_id=topic) for topic in TOPICS})
    snapshot = advanced([*records, sample])
    evaluation = evaluate_snapshot(snapshot, EVERY)
    assert evaluation is not None
    found = compute_alternatives(evaluation, snapshot, EVERY)
    assert found is not None
    assert (found.group_strategy, found.is_skewed, found.remedy) == ("server-range", True, "uniform")


@pytest.mark.parametrize(
    ("members", "partitions", "changes", "why"),
    [
        (2, 4, {AS_IT_IS, "1 member more", "1 member fewer"}, "2: small"),
        (1, 4, {AS_IT_IS, "1 member more"}, "2: no member would remain"),
        (
            2,
            MOST_PARTITIONS_CHANGED,
            {AS_IT_IS, "1 member more", "1 member fewer"},
            "2: the largest group that counts as small",
        ),
        (2, MOST_PARTITIONS_CHANGED + 1, {AS_IT_IS}, "2: large"),
        (2, MOST_PARTITIONS + 1, set(), "2: too large"),
    ],
)
def test_fewer_alternatives_are_computed_for_larger_groups(
    members: int, partitions: int, changes: set[str], why: str
) -> None:
    """One huge group must not delay all other groups."""
    found = alternatives_of(evenly_assigned(members, partitions), orders=partitions)
    assert {one.change for one in found.outcomes} == changes if found else not changes, why


@pytest.mark.parametrize(
    ("events", "why"),
    [
        ([written(0, 1, [member("m", {"orders": [0]})])], "1: the number of partitions is unknown"),
        ([written(0, 1, [member("m", {"orders": [0]})]), known(orders=2)], "1: a partition has no owner"),
        (
            [written(0, 1, [member("m", {"orders": [0]}), member("n", {"orders": [0]})]), known(orders=1)],
            "1: a partition has two owners",
        ),
        ([written(0, 1, [member("m", {}, [])])], "no partition is assigned"),
    ],
)
def test_nothing_is_computed_from_an_incomplete_assignment(events: Sequence[GroupEvent], why: str) -> None:
    snapshot = advanced(events)
    evaluation = evaluate_snapshot(snapshot, BOTH)
    assert evaluation is not None
    assert compute_alternatives(evaluation, snapshot, BOTH) is None, why


@pytest.mark.parametrize(
    ("protocol", "reason"), [("stream", "kafka_streams"), ("faust", "copartitioned"), ("copartition", "copartitioned")]
)
def test_a_library_that_copartitions_topics_has_numbers_but_neither_score_nor_alternatives(
    protocol: str, reason: str
) -> None:
    """Kafka Streams, Faust and Goka. Before, a healthy Faust group of 2 members raised KafkaAssignmentSkewed.

    Faust assigned 12 and 8 partitions of 4 topics on purpose, and the alert asked to change the strategy to `sticky`.
    """
    from streaming.events import GroupMetadataWritten  # noqa: PLC0415 - used only in this test
    from tests.streaming.groups import at  # noqa: PLC0415 - used only in this test

    topics = ("t0", "t1", "t2", "t3")
    members = [
        member("a", {topic: [0, 1, 2] for topic in topics}, topics),
        member("b", {topic: [3, 4] for topic in topics}, topics),
    ]
    record = GroupMetadataWritten(at(0), metadata(1, members, protocol=protocol))
    snapshot = advanced([record, known(**dict.fromkeys(topics, 5))])
    evaluation = evaluate_snapshot(snapshot, BOTH)
    assert evaluation is not None
    total = evaluation.imbalances[0]
    assert (total.largest, total.score, total.score_reason, evaluation.skew) == (12, None, reason, None)
    assert compute_alternatives(evaluation, snapshot, BOTH) is None


def test_a_custom_strategy_that_fails_gives_an_outcome_with_its_reason() -> None:
    class Broken:
        name = "own"

        def assign(self, group: GroupSpec) -> GroupAssignment:
            raise AssignorFailedError("exception", f"{len(group.members)} members are too many")

    snapshot = advanced([written(0, 1, evenly_assigned(2, 4)), known(orders=4)])
    evaluation = evaluate_snapshot(snapshot, [Broken()])
    assert evaluation is not None
    found = compute_alternatives(evaluation, snapshot, [Broken()])
    assert found is not None
    failed = found.outcomes[1]
    assert (failed.strategy, failed.failure, failed.score, failed.moved_partitions) == (
        "own",
        ("exception", "2 members are too many"),
        None,
        None,
    )


def test_only_the_last_of_several_generations_in_one_batch_is_computed_and_kept() -> None:
    """Rule 5. In separate batches each generation is computed. The stored state is the same in both cases."""
    fresh = GroupState(GroupSnapshot("g"))
    learned = apply_batch(fresh, [written(0, 1, evenly_assigned(2, 4)), known(orders=4)], BOTH)
    learned = apply_batch(learned.record, [known(orders=4)], BOTH)
    generations = [written(1, 2, evenly_assigned(3, 4)), written(2, 3, evenly_assigned(4, 4))]
    at_once = apply_batch(learned.record, generations, BOTH)
    first = apply_batch(learned.record, generations[:1], BOTH)
    second = apply_batch(first.record, generations[1:], BOTH)
    assert len(at_once.evaluations) == 2
    assert at_once.alternatives == second.alternatives
    assert [update.alternatives and update.alternatives.generation_id for update in (at_once, first, second)] == [
        3,
        2,
        3,
    ]
    assert at_once.record == second.record
    assert {one.change for one in at_once.record.alternatives.outcomes} == {AS_IT_IS}  # type: ignore[union-attr]


def test_alternatives_are_kept_and_removed_together_with_their_verdict() -> None:
    learned = apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1, evenly_assigned(2, 4)), known(orders=4)], BOTH)
    learned = apply_batch(learned.record, [known(orders=4)], BOTH)
    again = apply_batch(learned.record, [written(1, 1, evenly_assigned(2, 4))], BOTH)
    assert (again.alternatives, again.record.alternatives) == (None, learned.record.alternatives)
    assert again.record.alternatives is not None
    assert apply_batch(again.record, [written(2, 2, ())], BOTH).record.alternatives is None


@given(groups())
def test_a_strategy_with_a_score_of_100_has_no_excess(spec: GroupSpec) -> None:
    """The score is relative to the fairest possible assignment. So 100 means no excess, and no score is below 0."""
    if not spec.members:
        return
    held = BUILT_IN["roundrobin"].assign(spec).members
    members = [
        member(
            one.member_id,
            {topic: [number for at, number in held[one.member_id] if at == topic] for topic in one.topics},
            one.topics,
        )
        for one in spec.members
    ]
    found = alternatives_of(
        members, **{topic: count for topic, count in spec.partitions.items() if topic.isidentifier()}
    )
    for one in found.outcomes if found else ():
        assert one.excess_partitions is not None
        assert one.excess_partitions >= 0
        assert one.score != 100 or one.excess_partitions == 0
