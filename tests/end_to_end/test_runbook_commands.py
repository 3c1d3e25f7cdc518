"""Test every command of the runbook that uses Kafka's own tools, on a real broker.

1. Every command in the runbook that uses one of Kafka's tools has a row in `EXPECTED`, and every row is such a command.
2. The command ends with 0 and prints the expected text. Kafka's tools end with 0 on many errors, so the text decides.
3. If the command changes something, Kafka's admin API shows the change.

The tests start the classes of Kafka's tools as `bin/*.sh` do, with different JVM options.
"""

from __future__ import annotations

import os
import re
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from kafka import IsolationLevel, KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic, OffsetSpec
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from assignors.coordinator import coordinator_partition
from streaming.embedded import EmbeddedBroker
from streaming.jars import BROKER_SETS, KAFKA_VERSION, resolve
from streaming.java import find_java
from tests.end_to_end.conftest import QUICK_BROKER, Group, commit, is_in_transaction
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import until
from tests.end_to_end.runbook import commands_with_kafkas_tools, run_in_shell
from tests.streaming.log_records import commit_key, commit_value

pytestmark = pytest.mark.slow

TOPIC, WORKING, STOPPED, RETIRED, NOWHERE = "orders", "working", "stopped", "retired", "nowhere"
EXPIRING, LOST = "expiring", "lost"
"""A group whose offsets are saved, and a group that gets saved offsets."""
RETENTION_MS = str(14 * 24 * 3_600_000)
BLOCKED = TopicPartition("__consumer_offsets", 7)
"""The partition with the hanging transaction."""
OFFSETS_TOPIC_PARTITIONS = 8
NEIGHBOUR = next(
    group_id
    for group_id in (f"neighbour-{number}" for number in range(1_000))
    if coordinator_partition(group_id, OFFSETS_TOPIC_PARTITIONS) == BLOCKED.partition
)
"""Id of a group whose offsets are in that partition."""
HOUR_MS = 3_600_000

MAIN_CLASSES = {
    "kafka-broker-api-versions.sh": "org.apache.kafka.tools.BrokerApiVersionsCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-consumer-groups.sh": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "kafka-features.sh": "org.apache.kafka.tools.FeatureCommand",
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-transactions.sh": "org.apache.kafka.tools.TransactionsCommand",
}
"""Main class of each script in Kafka's `bin/`."""

TOOLS_LOGGING = """
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
rootLogger.level = WARN
rootLogger.appenderRef.stderr.ref = stderr
"""
"""Kafka's tools log to standard error (`config/tools-log4j2.yaml`). Otherwise the log would be counted like a key."""


@dataclass(frozen=True)
class Incident:
    """A broker with a working group, two groups without members, and a hanging transaction."""

    broker: EmbeddedBroker
    admin: KafkaAdminClient
    reference: KafkaReference
    hanging_since_offset: int

    def last_stable_offset(self) -> int:
        """Return the last stable offset of the blocked partition."""
        committed = IsolationLevel.READ_COMMITTED
        answer = self.admin.list_partition_offsets({BLOCKED: OffsetSpec.LATEST}, isolation_level=committed)
        return int(answer[BLOCKED].offset)

    def retention_ms(self) -> str:
        """Return the topic's retention.ms."""
        resource = ConfigResource(ConfigResourceType.TOPIC, TOPIC, {"retention.ms": None})
        configs = self.admin.describe_configs([resource], config_filter="all")["topic"][TOPIC]
        return str(configs["retention.ms"]["value"])


@dataclass(frozen=True)
class Output:
    """The text that a command prints for a group (a regular expression), and a check of its effect.

    `why` names what the command shows or does.
    """

    text: str
    why: str
    group: str = WORKING
    has_effect: Callable[[Incident], bool] = lambda _: True


_OFFSETS_TOPIC = '--topic __consumer_offsets --partition "$PARTITION"'
_BROKER = '--entity-type brokers --entity-name "$BROKER"'
_GROUP = '--group "$GROUP"'
_RETENTION = '--entity-type topics --entity-name "$TOPIC"'

EXPECTED = {
    f'kafka-configs.sh --describe --all {_RETENTION} | grep -E "^ *retention\\.(ms|bytes)="': Output(
        r"\A  retention\.(ms=604800000|bytes=-1) .*synonyms=\{.*\n  retention\.(ms=604800000|bytes=-1) .*\n\Z",
        "retention by time and by size, and whether the topic has values of its own",
    ),
    f'kafka-configs.sh --alter {_RETENTION} --add-config "retention.ms=$RETENTION_MS"': Output(
        r"Completed updating config for topic orders",
        "retention is two weeks instead of one",
        has_effect=lambda incident: incident.retention_ms() == RETENTION_MS,
    ),
    f"kafka-configs.sh --alter {_RETENTION} --delete-config retention.ms": Output(
        r"Completed updating config for topic orders",
        "retention is the broker's default again",
        has_effect=lambda incident: incident.retention_ms() == "604800000",
    ),
    'kafka-consumer-groups.sh --describe --group "$GROUP"': Output(
        r"TOPIC +PARTITION +CURRENT-OFFSET +LOG-END-OFFSET +LAG +CONSUMER-ID.*(\nworking +orders +\d +10 +10 +0 .*){3}",
        "offsets, lag and owner of each partition",
    ),
    'kafka-consumer-groups.sh --describe --group "$GROUP" --members --verbose': Output(
        r"CLIENT-ID +#PARTITIONS +CURRENT-EPOCH +CURRENT-ASSIGNMENT .*(\n.*working-client +[12] +- +orders:\d.*){2}",
        "partitions of each member",
    ),
    'kafka-consumer-groups.sh --describe --group "$GROUP" --state': Output(
        r"ASSIGNMENT-STRATEGY +STATE +#MEMBERS\nworking .* range +Stable +2\b",
        "state and number of members",
    ),
    f'kafka-consumer-groups.sh {_GROUP} --reset-offsets --shift-by 1 --topic "$TOPIC:$PARTITION" --execute': Output(
        r"TOPIC +PARTITION +NEW-OFFSET\nstopped +orders +0 +4\b",
        "the record at offset 3 is skipped",
        STOPPED,
        lambda incident: incident.reference.committed(STOPPED) == {(TOPIC, 0): 4},
    ),
    f"kafka-consumer-groups.sh {_GROUP} --reset-offsets --to-current --all-topics --export --dry-run": Output(
        r"\Aorders,0,3\n\n\Z",
        "committed offsets in a form that --from-file reads",
        EXPIRING,
    ),
    f"kafka-consumer-groups.sh {_GROUP} --reset-offsets --from-file offsets.csv --execute": Output(
        r"TOPIC +PARTITION +NEW-OFFSET\nlost +orders +0 +3\b",
        "a group without offsets gets the saved ones",
        LOST,
        lambda incident: incident.reference.committed(LOST) == {(TOPIC, 0): 3},
    ),
    'kafka-consumer-groups.sh --delete --group "$GROUP"': Output(
        r"Deletion of requested consumer groups \('retired'\) was successful",
        "deletion of a retired group",
        RETIRED,
        lambda incident: incident.reference.committed(RETIRED) == {},
    ),
    f"kafka-configs.sh --describe --all {_BROKER} | grep offsets.retention.minutes": Output(
        r"\A  offsets\.retention\.minutes=10080 ", "time after which the broker deletes committed offsets"
    ),
    'kafka-console-consumer.sh --topic "$TOPIC" --partition "$PARTITION" --offset "$OFFSET" --max-messages 10000 '
    "--timeout-ms 10000 --formatter-property print.key=true --formatter-property print.value=false"
    " | sort | uniq -c | sort -rn | head": Output(
        r"\A +7 hot\n +3 cold\n\Z", "number of records of each key in the partition, the hot key first", STOPPED
    ),
    "kafka-topics.sh --describe --topic __consumer_offsets --under-replicated-partitions": Output(
        r"\A\Z", "no partition, because every replica is in sync"
    ),
    "kafka-topics.sh --describe --topic __consumer_offsets --unavailable-partitions": Output(
        r"\A\Z", "no partition, because every partition has a leader"
    ),
    f"kafka-transactions.sh describe-producers {_OFFSETS_TOPIC}": Output(
        r"ProducerId\s+ProducerEpoch\s.*\sCurrentTransactionStartOffset\s*\n(.+\n)*\d+\s.*\s<start>\s*\n",
        "a transaction begins at the last stable offset",
    ),
    f"kafka-transactions.sh find-hanging {_OFFSETS_TOPIC}": Output(
        r"Topic\s+Partition\s+ProducerId\s.*\sStartOffset\s.*\n__consumer_offsets\s+7\s.*\s<start>\s.*\s6\d\s*\Z",
        "one transaction hangs for an hour; the transaction of a living producer is not listed",
    ),
    "kafka-transactions.sh list": Output(
        r"TransactionalId\s+Coordinator\s+ProducerId\s+TransactionState\s*\nliving\s+1\s+\d+\s+Ongoing\s*\Z",
        "transactional id of the producer to restart, if the transaction does not hang",
    ),
    f'kafka-transactions.sh abort {_OFFSETS_TOPIC} --start-offset "$OFFSET"': Output(
        r"\A\Z",
        "no output, and the last stable offset increases",
        has_effect=lambda incident: incident.last_stable_offset() > incident.hanging_since_offset,
    ),
    "kafka-features.sh describe": Output(
        rf"Feature: metadata\.version\s.*SupportedMaxVersion: {re.escape(KAFKA_VERSION[:3])}-.*FinalizedVersionLevel: ",
        "Kafka version of a cluster with undecodable records",
    ),
    'kafka-broker-api-versions.sh | grep "id: "': Output(
        r"\A127\.0\.0\.1:\d+ \(id: 1 .*\) -> \(\n\Z", "list of the brokers, one per line"
    ),
}
"""Expected output of each command, without the options for brokers and security.

`<start>` is the first offset of the hanging transaction.
"""


def _without_connection(command: str) -> str:
    return command.replace(' --bootstrap-server "$BROKERS" "${CONFIG[@]}"', "")


def _create_topic_with_a_hot_key(broker: EmbeddedBroker) -> None:
    with closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)) as admin:
        admin.create_topics([NewTopic(TOPIC, 3, 1)])
    with closing(KafkaProducer(bootstrap_servers=broker.bootstrap_servers)) as producer:
        for partition in range(3):
            for key in (b"hot", b"cold", b"hot", b"hot", b"hot", b"cold", b"hot", b"cold", b"hot", b"hot"):
                producer.send(TOPIC, key=key, value=b"", partition=partition)


def _create_hanging_transaction(admin: KafkaAdminClient) -> int:
    """Write a commit in a transaction that no coordinator knows, and return its offset.

    This happened with brokers that append without asking the transaction coordinator (KIP-890). A record arrives after
    its transaction has ended and begins a new transaction, which never ends. The broker lets clients with this id write
    to its internal topics.
    """
    producer = _send(admin, InitProducerIdRequest(transactional_id=None, producer_id=-1, producer_epoch=-1))
    batch = DefaultRecordBatchBuilder(2, 0, True, producer.producer_id, producer.producer_epoch, 0, 1_000)
    batch.append(0, int(time.time() * 1000) - HOUR_MS, commit_key("late", TOPIC), commit_value(5), [])
    of_topic = ProduceRequest.TopicProduceData
    late = of_topic.PartitionProduceData(index=BLOCKED.partition, records=bytes(batch.build()))
    topics = [of_topic(name=BLOCKED.topic, partition_data=[late])]
    # Later versions name topics by id.
    request = ProduceRequest(transactional_id="late", acks=-1, timeout_ms=10_000, topic_data=topics, max_version=9)
    (appended,) = _send(admin, request).responses[0].partition_responses
    assert appended.error_code == 0, appended
    return int(appended.base_offset)


def _send(admin: KafkaAdminClient, request: Any) -> Any:  # noqa: ANN401 - kafka-python's protocol has no types
    async def answer() -> Any:  # noqa: ANN401
        return await admin._manager.send(request, node_id=1)

    return admin._manager.run(answer)


def _begin_normal_transaction(bootstrap_servers: str) -> Producer:
    """Begin a normal transaction on the same partition, after the hanging one."""
    patient = {"transactional.id": "living", "transaction.timeout.ms": 600_000}
    producer = Producer({"bootstrap.servers": bootstrap_servers, **patient})
    producer.init_transactions()
    offsets = [LibrdkafkaTopicPartition(TOPIC, 0, 5)]
    with closing(Consumer({"bootstrap.servers": bootstrap_servers, "group.id": NEIGHBOUR})) as consumer:
        # The coordinator must first detect the foreign write to its partition and load the partition again.
        until("the coordinator", lambda: is_in_transaction(producer, offsets, consumer))
    return producer


@pytest.fixture(scope="module")
def incident(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Incident]:
    """Run a broker with the runbook's example partition. It appends without asking the transaction coordinator."""
    properties = {
        **QUICK_BROKER,
        "offsets.topic.num.partitions": str(OFFSETS_TOPIC_PARTITIONS),
        "transaction.partition.verification.enable": "false",
    }
    with ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(tmp_path_factory.mktemp("broker"), properties=properties))
        _create_topic_with_a_hot_key(broker)
        working = Group(broker.bootstrap_servers, WORKING)
        stack.callback(working.leave_all)
        for _ in range(2):
            working.join([TOPIC])
        for group_id in (STOPPED, RETIRED, NEIGHBOUR, EXPIRING):
            commit(broker, group_id, TOPIC, 3)
        admin = stack.enter_context(
            closing(KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers, client_id="__admin_client"))
        )
        reference = stack.enter_context(closing(KafkaReference(broker.bootstrap_servers)))
        hanging_since_offset = _create_hanging_transaction(admin)
        living = _begin_normal_transaction(broker.bootstrap_servers)
        stack.callback(living.abort_transaction)
        all_read = {(TOPIC, partition): 10 for partition in range(3)}
        until("the working group", lambda: reference.committed(WORKING) == all_read and _members(reference) == 2)
        yield Incident(broker, admin, reference, hanging_since_offset)


def _members(reference: KafkaReference) -> int:
    described = reference.group(WORKING)
    return len(described["members"]) if described["group_state"] == "Stable" else 0  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a PATH that contains scripts with the names of Kafka's tools."""
    folder = tmp_path_factory.mktemp("bin")
    class_path = os.pathsep.join(map(str, (*resolve("tools"), *resolve(BROKER_SETS[KAFKA_VERSION]))))
    logging = folder / "tools-log4j2.properties"
    logging.write_text(TOOLS_LOGGING)
    quick = f"-Xmx256m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Dlog4j2.configurationFile={shlex.quote(str(logging))}"
    for name, main_class in MAIN_CLASSES.items():
        script = folder / name
        java = shlex.quote(str(find_java()))
        script.write_text(f'#!/bin/sh\nexec {java} {quick} -cp {shlex.quote(class_path)} {main_class} "$@"\n')
        script.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the engineer, with the settings of a client and saved offsets."""
    folder = tmp_path_factory.mktemp("engineer")
    (folder / "client.properties").write_text("security.protocol=PLAINTEXT\nclient.id=on-call\n")
    (folder / "offsets.csv").write_text("orders,0,3\n\n")
    return folder


@dataclass(frozen=True)
class Engineer:
    """Runs commands of the runbook with Kafka's tools, in one folder."""

    incident: Incident
    path: str
    folder: Path

    def output(self, command: str, group: str) -> str:
        """Run the command in the folder, and return its output."""
        variables = {
            "BROKERS": self.incident.broker.bootstrap_servers,
            "GROUP": group,
            "TOPIC": TOPIC,
            "PARTITION": str(BLOCKED.partition if BLOCKED.topic in command else 0),
            "OFFSET": str(self.incident.last_stable_offset() if BLOCKED.topic in command else 0),
            "RETENTION_MS": RETENTION_MS,
            "PATH": self.path,
        }
        secured = f"cd {shlex.quote(str(self.folder))}\nCONFIG=(--command-config client.properties)"
        completed = run_in_shell(command, variables, os.environ, secured)
        printed = f"{completed.returncode}\n{completed.stdout[-2000:]}\n{completed.stderr[-2000:]}"
        assert completed.returncode == 0, printed
        return completed.stdout


@pytest.fixture(scope="module")
def engineer(incident: Incident, path: str, folder: Path) -> Engineer:
    """Return an engineer at this broker. The tools get a file of settings, as on a secured cluster."""
    return Engineer(incident, path, folder)


def test_the_output_of_every_command_with_kafkas_tools_is_known():
    """Rule 1: an untested command would be tried for the first time during an incident."""
    assert set(map(_without_connection, commands_with_kafkas_tools())) == set(EXPECTED)


def _changes_something(command: str) -> bool:
    return any(word in command for word in (" --alter ", " --delete ", " --execute", " abort "))


@pytest.mark.parametrize(
    "command", sorted(commands_with_kafkas_tools(), key=_changes_something), ids=_without_connection
)
def test_a_command_with_kafkas_tools_prints_what_the_runbook_expects(engineer: Engineer, command: str):
    """Rules 2 and 3. Commands that change something run last. The commands before them show the incident."""
    expected = EXPECTED[_without_connection(command)]
    text = expected.text.replace("<start>", str(engineer.incident.hanging_since_offset))
    output = engineer.output(command, expected.group)
    assert not re.search(r"\bError\b|Exception", output), output
    assert re.search(text, output), f"{expected.why}\n{output}"
    until(expected.why, lambda: expected.has_effect(engineer.incident), 30)


def test_kafkas_tool_reports_that_a_vanished_group_does_not_exist(engineer: Engineer):
    """For KafkaGroupVanished the remedy depends on whether Kafka knows the group."""
    (command,) = (one for one in commands_with_kafkas_tools() if "--state" in one)
    assert f"Group {NOWHERE} not found" in engineer.output(command, NOWHERE)
