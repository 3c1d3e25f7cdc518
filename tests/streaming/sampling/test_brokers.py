"""Answers about topics that a broker gives only in bad times."""

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
    """The client of a cluster that has the topics `orders` and `returns`, the second of which is being deleted."""

    def __init__(self, topic_id: str | None = None) -> None:
        self._topic_id = topic_id
        self.breaks_off = False

    def describe_cluster(self) -> Mapping[str, object]:
        """Nobody's rack is asked for here."""
        return {"brokers": []}

    def describe_topics(self, topics: list[str]) -> list[Mapping[str, object]]:
        """Tell of one partition each."""
        partition = {"partition_index": 0, "replica_nodes": [1]}
        reported = {"error_code": 0, "topic_id": self._topic_id, "partitions": [partition]}
        return [{"name": topic, **reported} for topic in topics]

    def list_partition_offsets(
        self, asked: Mapping[TopicPartition, OffsetSpec], **_: object
    ) -> Mapping[TopicPartition, SimpleNamespace]:
        """Raise for one partition that is gone, as the client does: it spoils the whole answer."""
        if self.breaks_off and OffsetSpec.EARLIEST in asked.values():
            raise OSError("the second question of a sample")
        if any(partition.topic == DELETED for partition in asked):
            raise UnknownTopicOrPartitionError
        return {partition: SimpleNamespace(offset=7) for partition in asked}


@pytest.mark.parametrize(
    ("reported", "topic_id", "why"),
    [
        ("0776430e-0986-46cd-a612-d0b6540caf21", "B3ZDDgmGRs2mEtC2VAyvIQ", "as Kafka's own tools print it"),
        ("00000000-0000-0000-0000-000000000000", None, "what brokers before 2.8 are taken to say"),
        (None, None, "what they say"),
    ],
)
def test_the_id_of_the_offsets_topic_comes_with_the_sample(reported: str | None, topic_id: str | None, why: str):
    """KIP-516: a topic that is created anew has another."""
    brokers = Brokers("eu", SimpleNamespace(admin=Admin(reported)), lambda: 0)  # type: ignore[arg-type]
    assert brokers.sample([]).offsets_topic_id == topic_id, why


def test_a_topic_whose_offsets_are_unknown_is_said_once_with_the_cluster_it_is_of(caplog: pytest.LogCaptureFixture):
    """Two clusters have topics of the same names: whom is on-call to ask? The other topic is known all the same.

    A sample asks several times, and another one comes every ten seconds: one line, and one more if it comes again.
    """
    connection = SimpleNamespace(admin=Admin())
    brokers = Brokers("eu", connection, lambda: 0, samples_offsets_topic=False)  # type: ignore[arg-type]
    said = []
    with caplog.at_level(logging.WARNING):
        for topics in (["orders", DELETED], ["orders", DELETED], ["orders"], ["orders", DELETED]):
            caplog.clear()
            assert brokers.sample(topics).end_offsets == {("orders", 0): 7}
            said.append([line.partition(" are unknown")[0] for line in caplog.messages])
    line = f"eu: offsets of topic {DELETED}"
    assert said == [[line], [], [], [line]]


def test_of_a_sample_that_broke_off_nothing_is_said_later(caplog: pytest.LogCaptureFixture):
    """Rule 2: what it had found unknown by then may be known again, and the next one asks anew."""
    admin = Admin()
    brokers = Brokers("eu", SimpleNamespace(admin=admin), lambda: 0, samples_offsets_topic=False)  # type: ignore[arg-type]
    admin.breaks_off = True
    with pytest.raises(OSError, match="second question"):
        brokers.sample(["orders", DELETED])
    admin.breaks_off = False
    brokers.sample(["orders"])
    assert caplog.messages == []


def test_the_names_of_all_topics_come_by_id():
    """Records of KIP-848 groups name topics by id; brokers before 2.8 have no ids."""
    described = [
        {"name": "orders", "error_code": 0, "topic_id": "0776430e-0986-46cd-a612-d0b6540caf21", "partitions": []},
        {"name": "old", "error_code": 0, "topic_id": None, "partitions": []},
        {"name": None, "error_code": 100, "topic_id": "0776430e-0986-46cd-a612-d0b6540caf22", "partitions": []},
    ]
    admin = SimpleNamespace(describe_topics=lambda: described)
    brokers = Brokers("eu", SimpleNamespace(admin=admin), lambda: 7)  # type: ignore[arg-type]
    assert brokers.topic_names() == TopicNames(7, {"B3ZDDgmGRs2mEtC2VAyvIQ": "orders"})
