"""Every demo group reaches on a real broker what the table promises, as Kafka's own admin API and log tell it."""

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

from streaming.demo import DEMO_GROUPS, DemoGroup, DemoLoad
from streaming.protocol import RecordType, decode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka.consumer.fetcher import ConsumerRecord

    from streaming.embedded import EmbeddedBroker

pytestmark = pytest.mark.slow

Seen = TypeVar("Seen")

_PARENT = """
import sys, time
from streaming.demo import DemoLoad
print(*DemoLoad(sys.argv[1], only={"demo-idle", "demo-roundrobin"}).start().pids, flush=True)
time.sleep(600)
"""

each_group = pytest.mark.parametrize("group", DEMO_GROUPS, ids=[group.group_id for group in DEMO_GROUPS])


@pytest.fixture(scope="module")
def admin(broker: EmbeddedBroker) -> Iterator[AdminClient]:
    """Kafka's own view, by a client that shares no code with what it checks. Left open, it outlives no broker."""
    with AdminClient({"bootstrap.servers": broker.bootstrap_servers}) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def load(broker: EmbeddedBroker) -> Iterator[DemoLoad]:
    """All demo groups at once, for all tests of this module."""
    with DemoLoad(broker.bootstrap_servers) as running:
        yield running
        running.check()


@each_group
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


@each_group
@pytest.mark.usefixtures("load")
def test_a_group_commits_more_and_more(group: DemoGroup, admin: AdminClient):
    first = _within(40, lambda: _committed(admin, group), lambda total: total > 0)
    _within(40, lambda: _committed(admin, group), lambda total: total > first)


@pytest.mark.parametrize(
    ("group_id", "partitions_per_member"),
    [
        pytest.param("demo-range", [8, 8, 16], id="four partitions over three: two of each topic to the first member"),
        pytest.param("demo-roundrobin", [1, 1, 4], id="the documentation's own example of an unfair roundrobin"),
        pytest.param("demo-idle", [0, 0, 1, 1, 1], id="three partitions can't keep five busy"),
        pytest.param("demo-sticky", [6, 6, 6], id="18 over three"),
        pytest.param("demo-cooperative", [4, 4, 4], id="12 over three"),
        pytest.param("demo-static", [2, 2, 2], id="six over three"),
        pytest.param("demo-kip848", [6, 6], id="12 over two"),
    ],
)
@pytest.mark.usefixtures("load")
def test_the_work_is_shared_as_the_strategy_shares_it(
    group_id: str, partitions_per_member: list[int], admin: AdminClient
):
    group = _group(group_id)
    described = _within(40, lambda: _described(admin, group), lambda seen: _is_complete(seen, group))
    assert sorted(len(owned) for owned in _owned(described).values()) == partitions_per_member


@pytest.mark.usefixtures("load")
def test_the_slow_consumer_falls_behind_further_and_further(admin: AdminClient):
    group = _group("demo-slow")
    behind = _within(40, lambda: _lag(admin, group), lambda lag: lag > 10)
    _within(40, lambda: _lag(admin, group), lambda lag: lag > behind + 10)


@pytest.mark.usefixtures("load")
def test_the_flapping_member_makes_generation_after_generation(broker: EmbeddedBroker):
    """As the coordinator's log says it: each join and leave writes one, with three and with two members in turn."""
    written = _within(60, lambda: _generations(broker, "demo-flapping"), lambda seen: len(seen) >= 5)
    generations = [generation for generation, _ in written]
    assert generations == sorted(set(generations))
    assert {members for _, members in written[-3:]} == {2, 3}


def test_the_load_leaves_the_machine_to_others(load: DemoLoad):
    """Beside it run Spark and a broker, on two cores: half a core is the most, a twentieth what was measured."""
    clients = [psutil.Process(pid) for pid in load.pids]
    assert len(clients) == 3
    before = _cpu_seconds(clients)
    time.sleep(5)
    assert _cpu_seconds(clients) - before < 0.5 * 5


@pytest.mark.usefixtures("load")
def test_a_single_group_runs_alone_and_leaves_when_stopped(broker: EmbeddedBroker, admin: AdminClient):
    """Its members join those of the whole load, and leave when asked: no session has to end first."""
    (group,) = (alone := DemoLoad(broker.bootstrap_servers, only={"demo-cooperative"})).groups
    with alone:
        _within(40, lambda: _described(admin, group), lambda seen: len(seen.members) == 2 * len(group.members))
        processes = [psutil.Process(pid) for pid in alone.pids]
        alone.stop(grace_seconds=60)
    assert [process.is_running() for process in processes] == [False, False]
    assert len(_described(admin, group).members) == len(group.members)


def test_no_client_is_left_behind_when_the_parent_is_killed(broker: EmbeddedBroker):
    command = [sys.executable, "-c", _PARENT, broker.bootstrap_servers]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        clients = [psutil.Process(int(pid)) for pid in parent.stdout.readline().split()]
        parent.kill()
    assert len(clients) == 3
    _, alive = psutil.wait_procs(clients, timeout=10)
    assert alive == []


def _within(seconds: float, look: Callable[[], Seen], enough: Callable[[Seen], bool]) -> Seen:
    """Look until it is enough; the last look is in the failure's message."""
    deadline = time.monotonic() + seconds
    while True:
        seen: Seen | str
        try:
            if enough(seen := look()):
                return seen
        except (KafkaException, TimeoutError) as error:  # a young group's coordinator isn't there at once
            seen = repr(error)
        assert time.monotonic() < deadline, f"not within {seconds} s: {seen}"
        time.sleep(0.3)


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
    asked = ConsumerGroupTopicPartitions(group.group_id)
    listed = admin.list_consumer_group_offsets([asked], request_timeout=10)[group.group_id].result(15)
    return {(found.topic, found.partition): found.offset for found in listed.topic_partitions}


def _committed(admin: AdminClient, group: DemoGroup) -> int:
    return sum(_offsets(admin, group).values())


def _lag(admin: AdminClient, group: DemoGroup) -> int:
    committed = _offsets(admin, group)
    asked = {TopicPartition(*partition): OffsetSpec.latest() for partition in committed}
    ends = {(found.topic, found.partition): end for found, end in admin.list_offsets(asked).items()} if asked else {}
    return sum(ends[partition].result(30).offset - offset for partition, offset in committed.items())


def _generations(broker: EmbeddedBroker, group_id: str) -> list[tuple[int, int]]:
    """Read the group's generations and how many members each had, as the coordinator wrote them."""
    decoded = (decode(record.key, record.value) for record in _offsets_topic(broker))
    return [
        (record.value["generation"], len(record.value["members"]))
        for record in decoded
        if record.key_type == RecordType.GROUP_METADATA and record.key["group"] == group_id and record.value
    ]


def _offsets_topic(broker: EmbeddedBroker) -> Iterator[ConsumerRecord]:
    """Read it up to where it ends now: the demo never stops writing to it."""
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
