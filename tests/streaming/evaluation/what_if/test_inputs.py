"""The inputs of a what-if in the driver: its size limits, the strategies of each library, and the known rates."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from assignors import TopicPartition
from streaming.evaluation.assignment.consumer_drift import THE_BROKER
from streaming.evaluation.assignment.leader import (
    JAVA,
    KAFKA_GO,
    KAFKA_PYTHON,
    LIBRDKAFKA,
    SARAMA,
    UNRECOGNISED,
    Leader,
)
from streaming.evaluation.causes.cause import ASSIGNMENT, UNDER_PROVISIONED, Kind
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.what_if import inputs
from streaming.evaluation.what_if.advice import advise, late_group_inputs
from streaming.evaluation.what_if.inputs import group_produce_rates, what_if_inputs
from streaming.events import TopicMetadata, TopicsSampled
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import advanced, formed, member, sampled, written

CLASSIC = advanced(
    [written(5, 3, [member("a", {"orders": [0, 1]}), member("b", {"orders": [2]})]), sampled(9_000, orders=3)]
)
MODERN = advanced([*formed(0), TopicsSampled({"orders": TopicMetadata(2, 9_000, topic_id="id")})])
OWNED = [("orders", 0), ("orders", 1), ("orders", 2)]


@pytest.mark.parametrize(
    ("committed", "ends", "starts", "expected", "why"),
    [
        (dict.fromkeys(OWNED, 7.0), {}, {}, dict.fromkeys(OWNED, 7.0), "every partition has a rate"),
        ({OWNED[0]: 0.0, OWNED[1]: None}, {}, {}, {OWNED[0]: 0.0}, "0 is a rate, and an unknown rate is absent"),
        ({}, dict.fromkeys(OWNED, 9), {OWNED[0]: 9}, {OWNED[0]: 0.0}, "an empty partition receives nothing"),
        ({}, dict.fromkeys(OWNED, 9), dict.fromkeys(OWNED, 8), {}, "a partition without a commit has records"),
        ({}, {}, {}, {}, "the sample has no offsets, for example because the partition has no leader"),
        ({OWNED[0]: None}, {OWNED[0]: 9}, {OWNED[0]: 9}, {}, "retention deleted all records, but the rate is unknown"),
    ],
)
def test_only_measured_rates_are_known(
    committed: Mapping[TopicPartition, float | None],
    ends: Mapping[TopicPartition, int],
    starts: Mapping[TopicPartition, int],
    expected: Mapping[TopicPartition, float],
    why: str,
) -> None:
    """Rule 3: a rate of 0 instead of an unknown rate would make a busy member look idle."""
    rows = [
        {"topic": topic, "partition": number, "produced_records_per_second": rate}
        for (topic, number), rate in committed.items()
    ]
    sample = ClusterSample(9_000, end_offsets=ends, log_start_offsets=starts)
    assert group_produce_rates(rows, members(CLASSIC), sample) == expected, why


@pytest.mark.parametrize(
    ("snapshot", "leader", "expected", "why"),
    [
        (CLASSIC, UNRECOGNISED, "", "the library is unknown: kafka-node and pykafka have only two strategies"),
        (CLASSIC, Leader(JAVA, (), (JAVA,)), "range roundrobin sticky cooperative-sticky", "all strategies of Java"),
        (CLASSIC, Leader(LIBRDKAFKA, (), (LIBRDKAFKA,)), "range roundrobin", "it has no sticky"),
        (CLASSIC, Leader(SARAMA, (), (SARAMA,)), "range sticky cooperative-sticky", "its roundrobin is not Java's"),
        (CLASSIC, Leader(KAFKA_GO, (), (KAFKA_GO,)), "", "kafka-go computes its strategies in its own way"),
        (CLASSIC, Leader("unknown", (), (KAFKA_PYTHON, LIBRDKAFKA)), "range roundrobin", "both"),
        (MODERN, THE_BROKER, "uniform server-range", "KIP-848: the coordinator computes the targets"),
    ],
)
def test_a_group_gets_only_strategies_that_it_can_use(
    snapshot: GroupSnapshot, leader: Leader, expected: str, why: str
) -> None:
    late = late_group_inputs(snapshot, {}, [300.0, None], "range", leader)
    assert late is not None
    assert [one.name for one in late.strategies] == expected.split(), why
    assert late.can_be_custom == (
        leader.implementation not in {LIBRDKAFKA, "broker"} and LIBRDKAFKA not in leader.candidates
    )
    assert late.group == what_if_inputs(snapshot)
    assert late.capacity_records_per_second == 300
    assert late.group.owners[OWNED[1]] == members(snapshot)[0].member_id


@pytest.mark.parametrize("kind", [ASSIGNMENT, UNDER_PROVISIONED])
def test_kafka_go_gets_no_promise_that_only_java_would_keep(kind: Kind) -> None:
    """kafka-go's roundrobin starts again at each topic, so one member gets all topics with one partition.

    Before, the advice was: "After a rebalance with roundrobin, the busiest member would receive 300 instead of 800
    records/s." With a capacity of 250 records/s, it was: "4 members are enough".
    """
    topics = "abcdefgh"
    everything = member("a", {topic: [0] for topic in topics}, topics)
    idle = [member(name, {}, topics) for name in "bc"]
    snapshot = advanced([written(5, 3, [everything, *idle]), sampled(9_000, **dict.fromkeys(topics, 1))])
    rates = {(topic, 0): 100.0 for topic in topics}
    for capacity in (350.0, 250.0):
        by_kafka_go = late_group_inputs(snapshot, rates, [capacity], "roundrobin", Leader(KAFKA_GO, (), (KAFKA_GO,)))
        by_sarama = late_group_inputs(snapshot, rates, [capacity], "roundrobin", Leader(SARAMA, (), (SARAMA,)))
        assert by_kafka_go is not None
        assert by_sarama is not None
        assert advise(kind, by_kafka_go) is None
        assert (advise(kind, by_sarama) is None) == (kind == ASSIGNMENT and capacity == 250)


def test_without_a_known_capacity_there_is_nothing_to_compute() -> None:
    """No member was busy at three samples yet, or the only busy member consumed nothing."""
    for capacities in ([None, None], [], [0.0]):
        assert late_group_inputs(CLASSIC, {}, capacities, "range", UNRECOGNISED) is None


@pytest.mark.parametrize(("limit", "largest"), [("MAX_PARTITIONS", 3), ("MAX_MEMBERS", 2)])
def test_a_group_at_the_limit_is_computed_and_a_larger_one_is_not(
    monkeypatch: pytest.MonkeyPatch, limit: str, largest: int
) -> None:
    """Rule 2: the group has three partitions and two members."""
    group = what_if_inputs(CLASSIC)
    monkeypatch.setattr(inputs, limit, largest)
    assert not group.is_too_large
    monkeypatch.setattr(inputs, limit, largest - 1)
    assert group.is_too_large
    assert late_group_inputs(CLASSIC, {}, [300.0], "range", UNRECOGNISED) is None
