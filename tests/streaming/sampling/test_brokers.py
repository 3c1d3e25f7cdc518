"""Tests of a broker's answers about topics that are being deleted or have no id."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import SimpleNamespace

import pytest
from kafka import TopicPartition
from kafka.admin import OffsetSpec
from kafka.errors import UnknownTopicOrPartitionError

from streaming.group.topic_names import TopicNames
from streaming.sampling.brokers import Brokers

DELETED = "returns"


class Admin:
    """A client of a cluster with the topics `orders` and `returns`. `returns` is being deleted."""

    def __init__(self, topic_id: str | None = None) -> None:
        self._topic_id = topic_id
        self.is_interrupted = False

    def describe_cluster(self) -> Mapping[str, object]:
        """Return no brokers, because these tests need no racks."""
        return {"brokers": []}

    def describe_topics(self, topics: list[str]) -> list[Mapping[str, object]]:
        """Describe each topic with one partition."""
        partition = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1]}
        description = {"error_code": 0, "topic_id": self._topic_id, "partitions": [partition]}
        return [{"name": topic, **description} for topic in topics]

    def list_partition_offsets(
        self, asked: Mapping[TopicPartition, OffsetSpec], **_: object
    ) -> Mapping[TopicPartition, SimpleNamespace]:
        """Raise if one requested partition does not exist. The real client also fails the whole answer then."""
        if self.is_interrupted and OffsetSpec.EARLIEST in asked.values():
            raise OSError("the second request of a sample")
        if any(partition.topic == DELETED for partition in asked):
            raise UnknownTopicOrPartitionError
        return {partition: SimpleNamespace(offset=7) for partition in asked}


@pytest.mark.parametrize(
    ("broker_value", "topic_id", "why"),
    [
        ("0776430e-0986-46cd-a612-d0b6540caf21", "B3ZDDgmGRs2mEtC2VAyvIQ", "the form that Kafka's tools print"),
        ("00000000-0000-0000-0000-000000000000", None, "the client's value for brokers before 2.8"),
        (None, None, "the value of brokers before 2.8"),
    ],
)
def test_the_id_of_the_offsets_topic_comes_with_the_sample(broker_value: str | None, topic_id: str | None, why: str):
    """KIP-516: a recreated topic has a different id."""
    brokers = Brokers("eu", SimpleNamespace(admin=Admin(broker_value)), lambda: 0)  # type: ignore[arg-type]
    assert brokers.sample([]).offsets_topic_id == topic_id, why


def test_a_broker_that_is_down_does_not_count_and_has_no_rack():
    """Brokers since 4.0 also return fenced brokers (KIP-1073): `kafka_brokers` never fell, and racks never changed."""
    admin = Admin()
    alive, fenced = ({"broker_id": number, "rack": f"r{number}", "is_fenced": number == 2} for number in (1, 2))
    partition = {"partition_index": 0, "leader_id": 1, "replica_nodes": [1, 2]}
    topic = {"name": "orders", "error_code": 0, "topic_id": None, "partitions": [partition]}
    admin.describe_cluster = lambda: {"brokers": [alive, fenced]}  # type: ignore[method-assign]
    admin.describe_topics = lambda _: [topic]  # type: ignore[method-assign]
    connection = SimpleNamespace(admin=admin)
    sample = Brokers("eu", connection, lambda: 0, samples_offsets_topic=False).sample(["orders"])  # type: ignore[arg-type]
    assert sample.brokers == 1
    assert sample.topics["orders"].racks == (("r1", None),)


@pytest.mark.parametrize("samples_offsets_topic", [True, False])
def test_a_group_that_consumes_the_offsets_topic_has_a_lag_and_changes_nothing_else(*, samples_offsets_topic: bool):
    """`kafka-console-consumer --topic __consumer_offsets` committed. If the monitor read the log, its lag was unknown.

    In the polling mode, the samples looked as if the monitor read the log. So the status of each group was unknown.
    """
    connection = SimpleNamespace(admin=Admin())
    brokers = Brokers("eu", connection, lambda: 0, samples_offsets_topic=samples_offsets_topic)  # type: ignore[arg-type]
    sample, without = brokers.sample(["__consumer_offsets"]), brokers.sample([])
    assert sample.end_offsets == {("__consumer_offsets", 0): 7}
    assert "__consumer_offsets" in sample.topics
    assert sample.offsets_topic_partitions == without.offsets_topic_partitions == int(samples_offsets_topic)
    assert sample.offsets_topic == without.offsets_topic
    assert without.topics == without.end_offsets == {}


def test_a_topic_whose_offsets_are_unknown_is_logged_once_with_its_cluster(caplog: pytest.LogCaptureFixture):
    """The line names the cluster, because two clusters may have topics of the same name. The other topic is known.

    A sample sends several requests, and there is one sample every ten seconds. The problem is logged once, and once
    more if it returns.
    """
    connection = SimpleNamespace(admin=Admin())
    brokers = Brokers("eu", connection, lambda: 0, samples_offsets_topic=False)  # type: ignore[arg-type]
    logged = []
    with caplog.at_level(logging.WARNING):
        for topics in (["orders", DELETED], ["orders", DELETED], ["orders"], ["orders", DELETED]):
            caplog.clear()
            assert brokers.sample(topics).end_offsets == {("orders", 0): 7}
            logged.append([line.partition(" are unknown")[0] for line in caplog.messages])
    line = f"eu: offsets of topic {DELETED}"
    assert logged == [[line], [], [], [line]]


def test_an_interrupted_sample_logs_nothing_later(caplog: pytest.LogCaptureFixture):
    """Rule 2: the offsets may be known again, and the next sample requests them again."""
    admin = Admin()
    brokers = Brokers("eu", SimpleNamespace(admin=admin), lambda: 0, samples_offsets_topic=False)  # type: ignore[arg-type]
    admin.is_interrupted = True
    with pytest.raises(OSError, match="second request"):
        brokers.sample(["orders", DELETED])
    admin.is_interrupted = False
    brokers.sample(["orders"])
    assert caplog.messages == []


def test_the_names_of_all_topics_are_returned_by_topic_id():
    """Records of KIP-848 groups identify topics by id. Brokers before 2.8 have no ids."""
    described = [
        {"name": "orders", "error_code": 0, "topic_id": "0776430e-0986-46cd-a612-d0b6540caf21", "partitions": []},
        {"name": "old", "error_code": 0, "topic_id": None, "partitions": []},
        {"name": None, "error_code": 100, "topic_id": "0776430e-0986-46cd-a612-d0b6540caf22", "partitions": []},
    ]
    admin = SimpleNamespace(describe_topics=lambda: described)
    brokers = Brokers("eu", SimpleNamespace(admin=admin), lambda: 7)  # type: ignore[arg-type]
    assert brokers.topic_names() == TopicNames(7, {"B3ZDDgmGRs2mEtC2VAyvIQ": "orders"})


@pytest.mark.parametrize(
    ("error_code", "permissions", "missing", "why"),
    [
        (3, ["READ", "DESCRIBE"], {"ordres"}, "KIP-430: the same answer shows the permission DESCRIBE on this name"),
        (3, [], set(), "the answer shows no permission on this name"),
        (
            3,
            None,
            set(),
            "brokers before Kafka 2.3 report no permissions; those before 1.0 hide topics with this error",
        ),
        (29, None, set(), "TOPIC_AUTHORIZATION_FAILED: the topic possibly exists"),
        (5, ["DESCRIBE"], set(), "LEADER_NOT_AVAILABLE: the topic is being created"),
        (0, ["DESCRIBE"], set(), "the topic exists"),
    ],
)
def test_a_topic_is_missing_only_if_the_monitor_may_describe_it(
    error_code: int, permissions: list[str] | None, missing: set[str], why: str
):
    """Without the permission, a topic that exists looks like a topic that does not exist."""
    answer = {"name": "ordres", "error_code": error_code, "topic_id": None, "partitions": []}
    admin = SimpleNamespace(
        describe_cluster=lambda: {"brokers": []},
        describe_topics=lambda _: [{**answer, "authorized_operations": permissions}],
        list_partition_offsets=lambda *_, **__: {},
    )
    brokers = Brokers("eu", SimpleNamespace(admin=admin), lambda: 0, samples_offsets_topic=False)  # type: ignore[arg-type]
    assert brokers.sample(["ordres"]).missing_topics == missing, why
