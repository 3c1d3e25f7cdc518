"""Test that every demo group has the described state on a real broker, by Kafka's admin API and log."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import closing
from typing import TYPE_CHECKING, TypeVar

import kafka
import psutil
import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription, OffsetSpec
from kafka import KafkaConsumer

from streaming.demo.groups import DEMO_GROUPS, DemoGroup
from streaming.demo.load import DemoLoad
from streaming.protocol import RecordType, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka.consumer.fetcher import ConsumerRecord

    from streaming.embedded import EmbeddedBroker

pytestmark = pytest.mark.slow

Seen = TypeVar("Seen")

_PARENT = """
import sys, time
from streaming.demo.load import DemoLoad
load = DemoLoad(sys.argv[1], only={"demo-idle", "demo-roundrobin"}).start()
print(*(process.pid for process in load._processes.values()), flush=True)
time.sleep(600)
"""

each_group = pytest.mark.parametrize("group", DEMO_GROUPS, ids=lambda group: group.group_id)
each_group_with_members = pytest.mark.parametrize(
    "group", [group for group in DEMO_GROUPS if group.protocol], ids=lambda group: group.group_id
)


@pytest.fixture(scope="module")
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    """Return an admin client of librdkafka, which shares no code with the monitor."""
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def load(broker: EmbeddedBroker) -> Iterator[DemoLoad]:
    """Run all demo groups at once for all tests of this module."""
    with DemoLoad(broker.bootstrap_servers) as running:
        yield running
        running.check()


@each_group_with_members
@pytest.mark.usefixtures("load")
def test_a_group_is_stable_with_its_members_protocol_and_every_partition_once(group: DemoGroup, admin: AdminClient):
    described = _within(40, lambda: _described(admin, group), lambda seen: _is_complete(seen, group))
    assert described.partition_assignor == group.protocol
    assert described.type.name.lower() == group.group_protocol
    assert {member.group_instance_id for member in described.members} == {
        member.group_instance_id for member in group.members
    }
    assigned = sorted(partition for owned in _owned(described).values() for partition in owned)
    assert assigned == sorted((topic.name, number) for topic in group.topics for number in range(topic.partitions))


@pytest.mark.usefixtures("load")
def test_a_consumer_that_uses_assign_commits_all_partitions_and_is_no_member(admin: AdminClient):
    """The coordinator lists the group as empty, although it makes progress. A rebalance would need members."""
    group = _group("demo-assign")
    every = {(topic.name, number) for topic in group.topics for number in range(topic.partitions)}
    _within(40, lambda: set(_offsets(admin, group)), lambda seen: seen == every)
    described = _described(admin, group)
    assert (described.state.name, described.members) == ("EMPTY", [])


@each_group
@pytest.mark.usefixtures("load")
def test_the_committed_offsets_of_a_group_increase(group: DemoGroup, admin: AdminClient):
    first = _within(40, lambda: _committed(admin, group), lambda total: total > 0)
    _within(40, lambda: _committed(admin, group), lambda total: total > first)


@pytest.mark.parametrize(
    ("group_id", "partitions_per_member"),
    [
        pytest.param(
            "demo-range", [8, 8, 16], id="four partitions over three: the first member gets two of each topic"
        ),
        pytest.param("demo-roundrobin", [1, 1, 4], id="the example of an unfair roundrobin in Kafka's documentation"),
        pytest.param("demo-idle", [0, 0, 1, 1, 1], id="three partitions over five members"),
        pytest.param("demo-sticky", [6, 6, 6], id="18 over three"),
        pytest.param("demo-cooperative", [4, 4, 4], id="12 over three"),
        pytest.param("demo-static", [2, 2, 2], id="six over three"),
        pytest.param("demo-kip848", [6, 6], id="12 over two"),
    ],
)
@pytest.mark.usefixtures("load")
def test_the_sizes_of_the_assignments_are_those_of_the_strategy(
    group_id: str, partitions_per_member: list[int], admin: AdminClient
):
    group = _group(group_id)
    described = _within(40, lambda: _described(admin, group), lambda seen: _is_complete(seen, group))
    assert sorted(len(owned) for owned in _owned(described).values()) == partitions_per_member


@pytest.mark.usefixtures("load")
def test_the_lag_of_the_slow_consumer_increases(admin: AdminClient):
    group = _group("demo-slow")
    behind = _within(40, lambda: _lag(admin, group), lambda lag: lag > 10)
    _within(40, lambda: _lag(admin, group), lambda lag: lag > behind + 10)


@pytest.mark.usefixtures("load")
def test_the_flapping_member_causes_a_generation_at_each_join_and_leave(broker: EmbeddedBroker):
    """Each join and each leave writes a generation to the log, with three and two members in turn."""
    written = _within(60, lambda: _generations(broker, "demo-flapping"), lambda seen: len(seen) >= 5)
    generations = [generation for generation, _ in written]
    assert generations == sorted(set(generations))
    assert {members for _, members in written[-3:]} == {2, 3}


def test_the_load_uses_less_than_half_a_core(load: DemoLoad):
    """Spark and a broker run on the same two cores. A twentieth of a core was measured."""
    clients = _clients(load)
    assert len(clients) == 3
    before = _cpu_seconds(clients)
    time.sleep(5)
    assert _cpu_seconds(clients) - before < 0.5 * 5


@pytest.mark.usefixtures("load")
def test_a_single_group_runs_alone_and_leaves_when_stopped(broker: EmbeddedBroker, admin: AdminClient):
    """Its members join the group of the whole load. When stopped they leave at once, without a session timeout."""
    (group,) = (alone := DemoLoad(broker.bootstrap_servers, only={"demo-cooperative"})).groups
    with alone:
        _within(40, lambda: _described(admin, group), lambda seen: len(seen.members) == 2 * len(group.members))
        processes = _clients(alone)
        alone.stop(grace_seconds=60)
    assert [process.is_running() for process in processes] == [False, False]
    assert len(_described(admin, group).members) == len(group.members)


def test_all_clients_end_when_the_parent_is_killed(broker: EmbeddedBroker):
    command = [sys.executable, "-c", _PARENT, broker.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        clients = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(clients) == 3
    _, alive = psutil.wait_procs(clients, timeout=10)
    assert alive == []


def _within(seconds: float, ask: Callable[[], Seen], is_enough: Callable[[Seen], bool]) -> Seen:
    """Call `ask` until its answer is enough, and return it. A failure contains the last answer."""
    deadline = time.monotonic() + seconds
    while True:
        seen: Seen | str
        try:
            if is_enough(seen := ask()):
                return seen
        except (KafkaException, TimeoutError) as error:  # the coordinator of a new group is not available at once
            seen = repr(error)
        assert time.monotonic() < deadline, f"not within {seconds} s: {seen}"
        time.sleep(0.3)


def _clients(load: DemoLoad) -> list[psutil.Process]:
    return [psutil.Process(process.pid) for process in load._processes.values()]


def _group(group_id: str) -> DemoGroup:
    return next(group for group in DEMO_GROUPS if group.group_id == group_id)


def _described(admin: AdminClient, group: DemoGroup) -> ConsumerGroupDescription:
    return admin.describe_consumer_groups([group.group_id], request_timeout=10)[group.group_id].result(15)


def _is_complete(described: ConsumerGroupDescription, group: DemoGroup) -> bool:
    partitions = sum(topic.partitions for topic in group.topics)
    return (
        described.state.name == "STABLE"
        and len(described.members) == len(group.members)
        and sum(map(len, _owned(described).values())) == partitions
    )


def _owned(described: ConsumerGroupDescription) -> dict[str, list[tuple[str, int]]]:
    return {
        member.member_id: [(owned.topic, owned.partition) for owned in member.assignment.topic_partitions]
        for member in described.members
    }


def _offsets(admin: AdminClient, group: DemoGroup) -> dict[tuple[str, int], int]:
    request = ConsumerGroupTopicPartitions(group.group_id)
    listed = admin.list_consumer_group_offsets([request], request_timeout=10)[group.group_id].result(15)
    return {(at.topic, at.partition): at.offset for at in listed.topic_partitions}


def _committed(admin: AdminClient, group: DemoGroup) -> int:
    return sum(_offsets(admin, group).values())


def _lag(admin: AdminClient, group: DemoGroup) -> int:
    committed = _offsets(admin, group)
    asked = {TopicPartition(*partition): OffsetSpec.latest() for partition in committed}
    ends = {(found.topic, found.partition): end for found, end in admin.list_offsets(asked).items()} if asked else {}
    return sum(ends[partition].result(30).offset - offset for partition, offset in committed.items())


def _generations(broker: EmbeddedBroker, group_id: str) -> list[tuple[int, int]]:
    """Return the group's generations in the log and the number of members of each."""
    decoded = (decode(record.key, record.value) for record in _offsets_topic(broker))
    return [
        (record.value["generation"], len(record.value["members"]))
        for record in decoded
        if record.key_type == RecordType.GROUP_METADATA and record.key["group"] == group_id and record.value
    ]


def _offsets_topic(broker: EmbeddedBroker) -> Iterator[ConsumerRecord]:
    """Read the topic up to its present end offsets, because the demo always writes to it."""
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest")
    with closing(consumer):
        partitions = [
            kafka.TopicPartition("__consumer_offsets", number)
            for number in consumer.partitions_for_topic("__consumer_offsets")
        ]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for records in consumer.poll(timeout_ms=500).values():
                yield from records


def _cpu_seconds(processes: list[psutil.Process]) -> float:
    return sum(sum(process.cpu_times()[:2]) for process in processes)
