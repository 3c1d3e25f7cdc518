"""What the runbook has somebody do with Kafka's own tools, done: on a real broker, each command as it stands.

1. Every command in the runbook that uses one of Kafka's tools has a row in `SHOWN`, and every row is such a command.
2. It ends with 0 and shows what it is asked for. Kafka's tools end with 0 on many errors, so their words count.
3. One that changes something has changed it, by Kafka's own word.

The tools are Kafka's classes, started as its `bin/*.sh` do, but for the JVM's options.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from kafka import IsolationLevel, KafkaAdminClient, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, OffsetSpec
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.jars import BROKER_SETS, KAFKA_VERSION, resolve
from streaming.java import find_java
from tests.end_to_end.conftest import QUICK_BROKER, Group, commit, create_topics, is_in_transaction
from tests.end_to_end.monitor_process import until
from tests.end_to_end.runbook import commands_with_kafkas_tools, typed
from tests.end_to_end.what_kafka_says import WhatKafkaSays
from tests.streaming.log_records import commit_key, commit_value

pytestmark = pytest.mark.slow

TOPIC, WORKING, STOPPED, RETIRED, NOWHERE = "orders", "working", "stopped", "retired", "nowhere"
HELD = TopicPartition("__consumer_offsets", 7)
"""The partition that the runbook takes for its example."""
OFFSETS_TOPIC_PARTITIONS = 8
NEIGHBOUR = next(
    group_id
    for group_id in (f"neighbour-{number}" for number in range(1_000))
    if coordinator_partition(group_id, OFFSETS_TOPIC_PARTITIONS) == HELD.partition
)
"""A group whose offsets are in that partition."""
HOUR_MS = 3_600_000

MAIN_CLASSES = {
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}
"""As in Kafka's `bin/`."""


@dataclass(frozen=True)
class Incident:
    """A broker with a group at work, two without members, and a transaction that nobody will end."""

    broker: EmbeddedBroker
    admin: KafkaAdminClient
    says: WhatKafkaSays
    hanging_since_offset: int

    def last_stable_offset(self) -> int:
        """Up to where the held partition can be read."""
        committed = IsolationLevel.READ_COMMITTED
        answer = self.admin.list_partition_offsets({HELD: OffsetSpec.LATEST}, isolation_level=committed)
        return int(answer[HELD].offset)

    def retention_ms(self) -> str:
        """The topic's retention."""
        asked = ConfigResource(ConfigResourceType.TOPIC, TOPIC, {"retention.ms": None})
        found = self.admin.describe_configs([asked], config_filter="all")["topic"][TOPIC]
        return str(found["retention.ms"]["value"])


@dataclass(frozen=True)
class Shown:
    """What a command shows (a regular expression), of which group, and what is so afterwards."""

    text: str
    why: str
    group: str = WORKING
    afterwards: Callable[[Incident], bool] = lambda _: True


SHOWN = {
    'kafka-consumer-groups.sh --describe --group "$GROUP"': Shown(
        r"TOPIC +PARTITION +CURRENT-OFFSET +LOG-END-OFFSET +LAG +CONSUMER-ID.*(\nworking +orders +\d +10 +10 +0 .*){3}",
        "how far each partition is, and whose it is",
    ),
    'kafka-consumer-groups.sh --describe --group "$GROUP" --members --verbose': Shown(
        r"CLIENT-ID +#PARTITIONS +CURRENT-EPOCH +CURRENT-ASSIGNMENT .*(\n.*working-client +[12] +- +orders:\d.*){2}",
        "which member has which partitions",
    ),
    'kafka-consumer-groups.sh --describe --group "$GROUP" --state': Shown(
        r"ASSIGNMENT-STRATEGY +STATE +#MEMBERS\nworking .* range +Stable +2\b",
        "whether it rebalances, and how many members it has",
    ),
    'kafka-consumer-groups.sh --group "$GROUP" --reset-offsets --shift-by 1 --topic TOPIC:PARTITION --execute': Shown(
        r"TOPIC +PARTITION +NEW-OFFSET\nstopped +orders +0 +4\b",
        "the record at offset 3 is skipped",
        STOPPED,
        lambda incident: incident.says.committed(STOPPED) == {(TOPIC, 0): 4},
    ),
    'kafka-consumer-groups.sh --delete --group "$GROUP"': Shown(
        r"Deletion of requested consumer groups \('retired'\) was successful",
        "a group that is needed no more",
        RETIRED,
        lambda incident: incident.says.committed(RETIRED) == {},
    ),
    "kafka-configs.sh --alter --entity-type topics --entity-name TOPIC --add-config retention.ms=1209600000": Shown(
        r"Completed updating config for topic orders",
        "retention takes nothing for two weeks, where it was one",
        afterwards=lambda incident: incident.retention_ms() == "1209600000",
    ),
    "kafka-transactions.sh describe-producers --topic __consumer_offsets --partition 7": Shown(
        r"ProducerId\s+ProducerEpoch\s.*\sCurrentTransactionStartOffset\s*\n(.+\n)*\d+\s.*\s<start>\s*\n",
        "where the last stable offset stands a transaction begins",
    ),
    "kafka-transactions.sh find-hanging --topic __consumer_offsets --partition 7": Shown(
        r"Topic\s+Partition\s+ProducerId\s.*\sStartOffset\s.*\n__consumer_offsets\s+7\s.*\s<start>\s.*\s6\d\s*\Z",
        "that one hangs, since an hour; the one that its producer may yet end does not",
    ),
    "kafka-transactions.sh list": Shown(
        r"TransactionalId\s+Coordinator\s+ProducerId\s+TransactionState\s*\nliving\s+1\s+\d+\s+Ongoing\s*\Z",
        "whom to restart for a transaction that does not hang",
    ),
    "kafka-transactions.sh abort --topic __consumer_offsets --partition 7 --start-offset OFFSET": Shown(
        r"\A\Z",
        "it says nothing, and the last stable offset moves on",
        afterwards=lambda incident: incident.last_stable_offset() > incident.hanging_since_offset,
    ),
    "kafka-features.sh describe": Shown(
        rf"Feature: metadata\.version\s.*SupportedMaxVersion: {re.escape(KAFKA_VERSION[:3])}-.*FinalizedVersionLevel: ",
        "which Kafka it is that writes what cannot be read",
    ),
    'kafka-broker-api-versions.sh | grep "id: "': Shown(
        r"\A127\.0\.0\.1:\d+ \(id: 1 .*\) -> \(\n\Z", "which brokers there are, one a line"
    ),
}
"""By the command without `--bootstrap-server "$BROKERS"`. `<start>` is where the hanging transaction began."""


def _row(command: str) -> str:
    return command.replace(' --bootstrap-server "$BROKERS"', "")


def _hanging(admin: KafkaAdminClient) -> int:
    """Leave a commit in a transaction that no coordinator knows of, and return its offset.

    As it was with brokers that ask no coordinator before they append (KIP-890): a record arrives when its transaction
    is over, and begins another that nobody ends. The broker lets clients of this id write to its own topics.
    """
    producer = _asked(admin, InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1))
    batch = DefaultRecordBatchBuilder(2, 0, True, producer.producer_id, producer.producer_epoch, 0, 1_000)
    batch.append(0, int(time.time() * 1000) - HOUR_MS, commit_key("late", TOPIC), commit_value(5), [])
    of_topic = ProduceRequest.TopicProduceData
    late = of_topic.PartitionProduceData(index=HELD.partition, records=bytes(batch.build()))
    topics = [of_topic(name=HELD.topic, partition_data=[late])]
    # Later versions name topics by id.
    request = ProduceRequest(transactional_id="late", acks=-1, timeout_ms=10_000, topic_data=topics, max_version=9)
    (appended,) = _asked(admin, request).responses[0].partition_responses
    assert appended.error_code == 0, appended
    return int(appended.base_offset)


def _asked(admin: KafkaAdminClient, request: Any) -> Any:  # noqa: ANN401 - kafka-python's protocol has no types
    async def answer() -> Any:  # noqa: ANN401
        return await admin._manager.send(request, node_id=1)

    return admin._manager.run(answer)


def _begin(bootstrap_servers: str) -> Producer:
    """A transaction as it should be, on the same partition, after the one that hangs."""
    patient = {"transactional.id": "living", "transaction.timeout.ms": 600_000}
    producer = Producer({"bootstrap.servers": bootstrap_servers, **patient})
    producer.init_transactions()
    offsets = [LibrdkafkaTopicPartition(TOPIC, 0, 5)]
    with closing(Consumer({"bootstrap.servers": bootstrap_servers, "group.id": NEIGHBOUR})) as consumer:
        # The coordinator first has to find that somebody else wrote to its partition, and to load it anew.
        until("the coordinator", lambda: is_in_transaction(producer, offsets, consumer))
    return producer


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    """A broker of its own: the runbook's example partition, and no asking of coordinators before an append."""
    properties = {
        **QUICK_BROKER,
        "offsets.topic.num.partitions": str(OFFSETS_TOPIC_PARTITIONS),
        "transaction.partition.verification.enable": "false",
    }
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(tmp_path_factory.mktemp("broker"), properties=properties))
        create_topics(broker, {TOPIC: 3})
        working = Group(broker.bootstrap_servers, WORKING)
        stack.callback(working.leave_all)
        for _ in range(2):
            working.join([TOPIC])
        for group_id in (STOPPED, RETIRED, NEIGHBOUR):
            commit(broker, group_id, TOPIC, 3)
        admin = stack.enter_context(
            closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, client_id="__admin_client"))
        )
        says = stack.enter_context(closing(WhatKafkaSays(broker.bootstrap_servers)))
        hanging_since_offset = _hanging(admin)
        living = _begin(broker.bootstrap_servers)
        stack.callback(living.abort_transaction)
        read = {(TOPIC, partition): 10 for partition in range(3)}
        until("the group at work", lambda: says.committed(WORKING) == read and _members(says) == 2)
        yield Incident(broker, admin, says, hanging_since_offset)


def _members(says: WhatKafkaSays) -> int:
    described = says.group(WORKING)
    return len(described["members"]) if described["group_state"] == "Stable" else 0  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH on which Kafka's tools are."""
    folder = tmp_path_factory.mktemp("bin")
    class_path = os.pathsep.join(map(str, (*resolve("tools"), *resolve(BROKER_SETS[KAFKA_VERSION]))))
    quick = "-Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    for name, main_class in MAIN_CLASSES.items():
        script = folder / name
        java = shlex.quote(str(find_java()))
        script.write_text(f'#!/bin/sh\nexec {java} {quick} -cp {shlex.quote(class_path)} {main_class} "$@"\n')
        script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def _reported(incident: Incident, path: str, command: str, group: str) -> str:
    """What somebody is told who puts in what stands in capitals, and types it."""
    stands_for = {"TOPIC": TOPIC, "PARTITION": "0", "OFFSET": str(incident.last_stable_offset())}
    command = re.sub(r"(?<![$\w])[A-Z]+\b", lambda found: stands_for[found[0]], command)
    variables = {"BROKERS": incident.broker.bootstrap_servers, "GROUP": group, "PATH": path}
    ran = typed(command, variables, os.environ)
    assert ran.returncode == 0, f"{ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-2000:]}"
    return ran.stdout


def test_it_is_known_of_every_command_with_kafkas_tools_what_it_shows():
    """Rule 1: a new one that nobody has tried would be tried at 3 a.m."""
    assert set(map(_row, commands_with_kafkas_tools())) == set(SHOWN)


@pytest.mark.parametrize("command", commands_with_kafkas_tools(), ids=_row)
def test_a_command_with_kafkas_tools_shows_what_the_runbook_looks_for(incident: Incident, path: str, command: str):
    """Rules 2 and 3. In the order of the runbook: what hangs is looked at before it is aborted."""
    shown = SHOWN[_row(command)]
    text = shown.text.replace("<start>", str(incident.hanging_since_offset))
    reported = _reported(incident, path, command, shown.group)
    assert not re.search(r"\bError\b|Exception", reported), reported
    assert re.search(text, reported), f"{shown.why}\n{reported}"
    until(shown.why, lambda: shown.afterwards(incident), 30)


def test_of_a_group_that_vanished_kafka_says_that_it_knows_none(incident: Incident, path: str):
    """KafkaGroupVanished: whether Kafka knows the group decides what to do."""
    (command,) = (one for one in commands_with_kafkas_tools() if "--state" in one)
    assert f"Group {NOWHERE} not found" in _reported(incident, path, command, NOWHERE)
