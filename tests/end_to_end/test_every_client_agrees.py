"""Test that the monitor shows groups of every client and type as Kafka's admin API describes them.

All tests use one broker, one monitor and one JVM. The expected values come from Java's Admin.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from kafka import KafkaAdminClient
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

from streaming.embedded import EmbeddedBroker
from tests.end_to_end.agreement import Agreement, Expected
from tests.end_to_end.conftest import create_topics
from tests.end_to_end.group_description import ShownGroups
from tests.end_to_end.java_clients import JavaClients
from tests.end_to_end.members import Joining, Member, OpenClient, Regex, kafka_python, librdkafka, librdkafka_classic
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Stage:
    """What every test of this file shares.

    Each partition of `topics` has ten records. Kafka Streams writes to the topic `copy`.
    """

    broker: EmbeddedBroker
    agreement: Agreement
    topics: tuple[str, str]
    copy: str

    @property
    def java(self) -> JavaClients:
        """Return the JVM with the Java clients."""
        return self.agreement.java

    @property
    def monitor(self) -> MonitorProcess:
        """Return the monitor."""
        return self.agreement.monitor


@pytest.fixture(scope="module")
def stage(
    broker: EmbeddedBroker, shared_monitor: MonitorProcess, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stage]:
    """Start the JVM and create the topics while the monitor starts."""
    folder = tmp_path_factory.mktemp("every-client")
    prefix = f"every{uuid.uuid4().hex[:8]}"
    topics, copy = (f"{prefix}-a", f"{prefix}-b"), f"{prefix}.copy"
    with ExitStack() as closing:
        java = JavaClients(broker.bootstrap_servers, folder)
        closing.callback(java.close)
        java.commits(prefix)  # A new broker creates __consumer_offsets when a client first needs a coordinator.
        create_topics(broker, {topics[0]: 4, topics[1]: 2, copy: 1})
        yield Stage(broker, Agreement(java, shared_monitor.wait_until_ready()), topics, copy)


@pytest.fixture
def join() -> Iterator[Callable[[OpenClient, Joining], Member]]:
    """Return a function that lets a member join. Remaining members leave at the end of the test."""
    joined: list[Member] = []

    def add_member(open_client: OpenClient, joining: Joining) -> Member:
        joined.append(Member(open_client, joining))
        return joined[-1]

    yield add_member
    for member in joined:
        member.start_leaving()
    for member in joined:
        member.leave()


Join = Callable[[OpenClient, Joining], Member]


def the_clients(stage: Stage) -> dict[str, tuple[str, OpenClient]]:
    """Return each client with each of its strategies, by a name for its group, and the group's type in Kafka."""
    servers, java = stage.broker.bootstrap_servers, stage.java
    return {
        # kafka-python implements the assignors itself. It orders partitions differently from Java.
        "kafka-python-range": ("classic", kafka_python(servers, RangePartitionAssignor)),
        "kafka-python-roundrobin": ("classic", kafka_python(servers, RoundRobinPartitionAssignor)),
        "kafka-python-sticky": ("classic", kafka_python(servers, StickyPartitionAssignor)),
        "kafka-python-cooperative": ("classic", kafka_python(servers, CooperativeStickyAssignor)),
        # librdkafka is the second implementation of the embedded protocol. It has no eager sticky assignor.
        "librdkafka-range": ("classic", librdkafka_classic(servers, "range")),
        "librdkafka-roundrobin": ("classic", librdkafka_classic(servers, "roundrobin")),
        "librdkafka-cooperative": ("classic", librdkafka_classic(servers, "cooperative-sticky")),
        # Its member ids are random bytes in standard base64, which contains slashes.
        "librdkafka-consumer": ("consumer", librdkafka(servers, group_protocol="consumer")),
        # Java defines the formats. Sticky keeps its state in userData, and cooperative-sticky takes two rounds.
        "java-range": ("classic", java.classic("RangeAssignor")),
        "java-roundrobin": ("classic", java.classic("RoundRobinAssignor")),
        "java-sticky": ("classic", java.classic("StickyAssignor")),
        "java-cooperative": ("classic", java.classic("CooperativeStickyAssignor")),
        "java-uniform": ("consumer", java.consumer()),
        "java-remote-range": ("consumer", java.consumer("range")),
        # Kafka Streams with the classic protocol is a consumer group with its own assignor.
        "java-streams-classic": ("classic", java.streams(into=stage.copy, group_protocol="classic")),
        # These are not consumer groups, but they are in the same log. The monitor must tell them apart.
        "java-share": ("share", java.share()),
        "java-streams": ("streams", java.streams(into=stage.copy)),
    }


def test_every_client_with_every_strategy_is_shown_as_kafka_describes_it(stage: Stage, join: Join, name: str):
    """The clients together write every record format."""
    run_group_lifecycle(stage, join, name, the_clients(stage))


def run_group_lifecycle(stage: Stage, join: Join, name: str, clients: Mapping[str, tuple[str, OpenClient]]) -> None:
    """Run the life of one group for each client: two members join, a third joins, one leaves, all leave.

    Check at each stage that Kafka and the monitor agree.
    """

    def members_join(*numbers: int) -> dict[str, list[Member]]:
        return {
            client: [join(opens, Joining(f"{name}-{client}", f"{client}-{n}", stage.topics)) for n in numbers]
            for client, (_, opens) in clients.items()
        }

    def agreed(members: int) -> None:
        stage.agreement.until_agreed(
            {f"{name}-{client}": Expected(group_type, members) for client, (group_type, _) in clients.items()}
        )

    first = members_join(1, 2)
    agreed(members=2)
    third = members_join(3)
    agreed(members=3)
    everyone = {client: [*first[client], *third[client]] for client in clients}
    _generations_are_what_the_clients_believe(stage, name, everyone)
    if "java-remote-range" in clients:
        shown = ShownGroups.now(stage.monitor).group(f"{name}-java-remote-range")
        assert shown is not None
        assert shown.assignor == "range"
    _leave([members[0] for members in everyone.values()])
    agreed(members=2)
    _leave([member for members in everyone.values() for member in members[1:]])
    agreed(members=0)
    for client, (group_type, _) in clients.items():
        assert bool(stage.agreement.until_commits_agree(f"{name}-{client}")) == (group_type != "share"), client


def _leave(members: list[Member]) -> None:
    for member in members:
        member.start_leaving()
    for member in members:
        member.leave()


def _generations_are_what_the_clients_believe(stage: Stage, name: str, everyone: dict[str, list[Member]]) -> None:
    """Compare generations. The admin API does not return classic generations, but Java and kafka-python show them."""
    for client, members in everyone.items():
        shown = stage.monitor.value("rebalance_monitor_group_generation", group=f"{name}-{client}")
        assert {member.generation() for member in members} in ({None}, {shown}), client


def test_a_static_member_comes_back_with_a_new_id_and_its_old_partitions(stage: Stage, join: Join, name: str):
    """KIP-345, KIP-814 and KIP-848: there is no rebalance, but a new member id in the same generation.

    In the consumer protocol a stopped static member stays in the group with epoch -2 until it is back.
    """
    servers, java = stage.broker.bootstrap_servers, stage.java
    clients = {
        "kafka-python": ("classic", kafka_python(servers, RangePartitionAssignor)),
        "librdkafka": ("classic", librdkafka_classic(servers, "range")),
        "java": ("classic", java.classic("RangeAssignor")),
        "librdkafka-848": ("consumer", librdkafka(servers, group_protocol="consumer")),
        "java-848": ("consumer", java.consumer()),
    }
    groups = {f"{name}-{client}": Expected(group_type, 2) for client, (group_type, _) in clients.items()}

    def member_joins(client: str, instance_id: str) -> Member:
        joining = Joining(f"{name}-{client}", f"{client}-{instance_id}", stage.topics[:1], instance_id)
        return join(clients[client][1], joining)

    restarting = {client: member_joins(client, "one") for client in clients}
    for client in clients:
        member_joins(client, "two")
    stage.agreement.until_agreed(groups)
    before = {group_id: _owned_by_instance(stage, group_id) for group_id in groups}
    for client, member in restarting.items():
        member.leave()
        stage.agreement.until_agreed_as_it_is(f"{name}-{client}")
    for client in clients:
        member_joins(client, "one")
    until("new ids", lambda: all(_owned_by_instance(stage, at)["one"] != before[at]["one"] for at in groups))
    stage.agreement.until_agreed(groups)
    for group_id, owned in before.items():
        after = _owned_by_instance(stage, group_id)
        assert after["two"] == owned["two"], group_id
        assert after["one"][1] == owned["one"][1], group_id


def _owned_by_instance(stage: Stage, group_id: str) -> dict[str | None, tuple[str, object]]:
    members = stage.agreement.describe(group_id).members.items()
    return {member.group_instance_id: (member_id, member.assignment) for member_id, member in members}


def test_a_regular_expression_is_shown_with_the_topics_it_matches(stage: Stage, join: Join, name: str):
    """KIP-848: the broker resolves the expression with RE2/J and writes the result to the log as a separate record."""
    prefix = stage.topics[0].removesuffix("-a")
    # librdkafka joins all patterns of a subscription into one and puts each in brackets.
    clients = {
        "librdkafka": (librdkafka(stage.broker.bootstrap_servers, group_protocol="consumer"), f"^{prefix}-.*", "(%s)"),
        "java": (stage.java.consumer(), f"{prefix}-[ab]", "%s"),
    }
    for client, (opens, regex, _) in clients.items():
        for number in (1, 2):
            join(opens, Joining(f"{name}-{client}", f"{client}-{number}", Regex(regex)))
    stage.agreement.until_agreed({f"{name}-{client}": Expected("consumer", 2) for client in clients})
    for client, (_, regex, sent_as) in clients.items():
        described = stage.agreement.describe(f"{name}-{client}")
        assert {topic for member in described.members.values() for topic, _ in member.target or ()} == {*stage.topics}
        last = max(
            stage.monitor.rows_of("group_generations", f"{name}-{client}"), key=lambda row: row["offsets_topic_offset"]
        )
        assert {member["subscribed_regex"] for member in last["members"]} == {sent_as % regex}


def test_an_assignor_that_no_member_names_is_shown_as_the_broker_reports_it(stage: Stage, join: Join, name: str):
    """The default, the first of `group.consumer.assignors`, is in no record. A member's own choice overrides it."""
    java = stage.java
    unnamed = {
        f"{name}-librdkafka": librdkafka(stage.broker.bootstrap_servers, group_protocol="consumer"),
        f"{name}-java": java.consumer(),
    }
    named = f"{name}-named"
    for group_id, opens in {**unnamed, named: java.consumer("range")}.items():
        join(opens, Joining(group_id, "one", stage.topics))
    for group_id in unnamed:
        until("the report", lambda at=group_id: _strategy(stage, at) == ("uniform", "broker"))
        assert stage.agreement.describe(group_id).assignor == "uniform", "as Kafka's admin API describes it"
    until("its record", lambda: _strategy(stage, named) == ("range", "records"))
    for group_id, opens in unnamed.items():
        join(opens, Joining(group_id, "two", stage.topics))
    stage.agreement.until_agreed({group_id: Expected("consumer", 2) for group_id in unnamed})
    for group_id in unnamed:
        last = max(stage.monitor.rows_of("group_generations", group_id), key=lambda row: row["offsets_topic_offset"])
        assert (last["protocol"], last["protocol_source"]) == ("uniform", "broker")
        until("its verdict", lambda at=group_id: _own_verdicts(stage, at) == [("uniform", "match")])
        document = json.loads(stage.monitor.ask(f"/api/v1/groups/{group_id}")[1])
        assert (document["protocol"], document["protocol_source"]) == ("uniform", "broker")
        for page in (f"/groups/{group_id}", f"/?q={group_id}"):
            assert "reported by the broker</small>" in stage.monitor.ask(page)[1]
    assert "reported by the broker</small>" not in stage.monitor.ask(f"/groups/{named}")[1]
    join(java.consumer("range"), Joining(f"{name}-java", "three", stage.topics))
    until("its name", lambda: _strategy(stage, f"{name}-java") == ("range", "records"))


def _strategy(stage: Stage, group_id: str) -> tuple[str, str] | None:
    shown = ShownGroups.now(stage.monitor).labels("rebalance_monitor_group_info", group_id)
    return (shown[0]["protocol"], shown[0]["protocol_source"]) if shown else None


def _own_verdicts(stage: Stage, group_id: str) -> list[tuple[str, str]]:
    shown = ShownGroups.now(stage.monitor).labels("rebalance_monitor_assignment_verdict", group_id)
    return [(labels["strategy"], labels["verdict"]) for labels in shown]


def test_a_group_is_upgraded_to_the_consumer_protocol_and_back_while_it_runs(stage: Stage, join: Join, name: str):
    """KIP-848, online migration: the group's type changes while it has members, and ids and epochs continue."""
    cooperative, consumer = stage.java.classic("CooperativeStickyAssignor"), stage.java.consumer()

    def agreed(group_type: str, members: int) -> None:
        stage.agreement.until_agreed({name: Expected(group_type, members)})

    classic = join(cooperative, Joining(name, "classic", stage.topics))
    agreed("classic", 1)
    modern = join(consumer, Joining(name, "modern", stage.topics))
    agreed("consumer", 2)
    classic.leave()
    agreed("consumer", 1)
    again = join(cooperative, Joining(name, "classic-again", stage.topics))
    agreed("consumer", 2)
    modern.leave()
    agreed("classic", 1)
    again.leave()
    agreed("classic", 0)
    stage.agreement.until_commits_agree(name)


def test_a_group_is_shown_reconciling_while_a_member_keeps_its_partitions(stage: Stage, join: Join, name: str):
    """KIP-848: target and assignment differ until a member gives up the partitions that a new member must get."""
    opens = librdkafka(stage.broker.bootstrap_servers, group_protocol="consumer")
    holding = join(opens, Joining(name, "holding", stage.topics))
    stage.agreement.until_agreed({name: Expected("consumer", 1)})
    holding.hold()
    join(opens, Joining(name, "waiting", stage.topics))
    until("a target not reached", lambda: _waits_for_partitions(stage, name))
    stage.agreement.until_agreed_as_it_is(name)
    assert _waits_for_partitions(stage, name)
    holding.go_on()
    stage.agreement.until_agreed({name: Expected("consumer", 2)})


def _waits_for_partitions(stage: Stage, group_id: str) -> bool:
    described = stage.agreement.describe(group_id)
    waiting = [member for member in described.members.values() if member.target and not member.assignment]
    return described.state == "Reconciling" and len(waiting) == 1


def test_a_deleted_group_is_gone_and_a_new_group_with_its_name_starts_anew(stage: Stage, join: Join, name: str):
    """DeleteGroups writes tombstones for the group and all its offsets. A new group with this name inherits nothing."""
    java = stage.java
    clients = {
        "classic": java.classic("RangeAssignor"),
        "consumer": java.consumer(),
        "share": java.share(),
        "streams": java.streams(into=stage.copy),
    }
    for life in ("first", "second"):
        members = [
            join(opens, Joining(f"{name}-{kind}", f"{kind}-{life}", stage.topics)) for kind, opens in clients.items()
        ]
        stage.agreement.until_agreed({f"{name}-{kind}": Expected(kind, 1) for kind in clients})
        _leave(members)
        stage.agreement.until_agreed({f"{name}-{kind}": Expected(kind, 0) for kind in clients})
        for kind in clients:
            assert bool(stage.agreement.until_commits_agree(f"{name}-{kind}")) == (kind != "share")
            java.delete(kind, f"{name}-{kind}")
        for kind in clients:
            until("the end", lambda kind=kind: stage.monitor.group_state(f"{name}-{kind}") is None)
            assert stage.agreement.until_commits_agree(f"{name}-{kind}") == {}
            assert stage.monitor.value("rebalance_monitor_group_lag", group=f"{name}-{kind}") is None


def test_a_topic_deleted_and_recreated_is_a_new_topic(stage: Stage, join: Join, name: str):
    """The broker deletes the old commits and gives the topic a new id. Nothing of the old topic affects the new one."""
    # Java's classic consumer would wait five minutes for its last commit to the deleted topic.
    clients = {
        "classic": librdkafka_classic(stage.broker.bootstrap_servers, "range"),
        "consumer": stage.java.consumer(),
    }
    groups = {f"{name}-{kind}": Expected(kind, 1) for kind in clients}

    def agreed(partitions: int) -> None:
        until("partitions", lambda: all(len(_owned(stage, group_id)) == partitions for group_id in groups))
        stage.agreement.until_agreed(groups)
        for group_id in groups:
            until("commits", lambda at=group_id: len(stage.agreement.until_commits_agree(at)) == partitions)

    admin = KafkaAdminClient(bootstrap_servers=stage.broker.bootstrap_servers)
    create_topics(stage.broker, {name: 3})
    for kind, opens in clients.items():
        join(opens, Joining(f"{name}-{kind}", f"{kind}-member", (name, stage.topics[1])))
    agreed(partitions=3 + 2)
    admin.delete_topics([name])
    agreed(partitions=2)
    create_topics(stage.broker, {name: 1})
    agreed(partitions=1 + 2)
    for group_id in groups:
        until("lag", lambda at=group_id: stage.monitor.value("rebalance_monitor_group_lag", group=at) == 0)
    admin.close()


def _owned(stage: Stage, group_id: str) -> set[tuple[str, int]]:
    members = stage.agreement.describe(group_id).members.values()
    return {at for member in members for at in member.assignment or ()}


def test_offsets_of_an_aborted_transaction_count_nowhere(stage: Stage, name: str):
    """KIP-98: only the marker decides. An aborted commit is in the log like any other commit, at a higher offset."""
    topic, servers = stage.topics[0], stage.broker.bootstrap_servers
    consumer = Consumer({"bootstrap.servers": servers, "group.id": name, "enable.auto.commit": False})
    consumer.subscribe([topic])
    until("its assignment", lambda: consumer.poll(0.1) is not None or consumer.assignment())

    def transaction(offsets: dict[int, int], end: Callable[[Producer], None]) -> None:
        producer = Producer({"bootstrap.servers": servers, "transactional.id": name})
        producer.init_transactions()
        producer.begin_transaction()
        at = [LibrdkafkaTopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
        producer.send_offsets_to_transaction(at, consumer.consumer_group_metadata())
        end(producer)

    transaction({0: 3, 1: 4}, Producer.commit_transaction)
    transaction({0: 9, 1: 8, 2: 7}, Producer.abort_transaction)
    # When the monitor shows this commit, it has read all earlier ones: a group's records are in one partition.
    transaction({1: 5}, Producer.commit_transaction)
    until("the last", lambda: stage.agreement.until_commits_agree(name) == {(topic, 0): 3, (topic, 1): 5})
    lag = {at: 10 - offset for at, offset in ((0, 3), (1, 5))}
    until("its lag", lambda: stage.monitor.value("rebalance_monitor_group_lag", group=name) == sum(lag.values()))
    rows = stage.monitor.rows_of("group_lag", name)
    assert {(row["partition"], row["committed_offset"]) for row in rows} <= {(0, 3), (1, 4), (1, 5)}
    until("its rows", lambda: {row["partition"]: row["lag"] for row in _by_time(stage, name)} == lag)
    consumer.close()


def _by_time(stage: Stage, group_id: str) -> list[dict[str, Any]]:
    return sorted(stage.monitor.rows_of("group_lag", group_id), key=lambda row: row["sampled_time"])
