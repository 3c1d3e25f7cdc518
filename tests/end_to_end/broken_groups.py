"""Groups of real clients for the end-to-end tests. Each group has a different problem."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as LibrdkafkaTopicPartition
from kafka import KafkaAdminClient, KafkaProducer
from kafka import TopicPartition as KafkaPythonTopicPartition
from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from streaming.evaluation.lag.next_offsets import FEW_OFFSETS
from tests.end_to_end.members import Joining, Member, OpenClient, kafka_python, rejoining_kafka_python

PARTITIONS = 3
"""Number of partitions of each topic in this module."""

Members = Iterable[JoinGroupResponse.JoinGroupResponseMember]
Assignments = dict[str, ConsumerProtocolAssignment]


class GreedyRange(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """An assignor that is named range but gives all partitions to one member."""

    @classmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """Give all partitions to the member with the lowest id."""
        correct: Assignments = super().assign(cluster, members)
        first = min(correct)
        topics = sorted({topic for member in members for topic in member.metadata.topics})
        everything = [(topic, sorted(cluster.partitions_for_topic(topic) or ())) for topic in topics]
        return {
            member_id: ConsumerProtocolAssignment(cls.version, everything if member_id == first else [], b"")
            for member_id in correct
        }


class ForgetfulRange(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """An assignor that is named range but gives partition 0 of every topic to no member."""

    @classmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """Return the assignment of range without partition 0 of each topic."""
        correct: Assignments = super().assign(cluster, members)
        return {
            member_id: ConsumerProtocolAssignment(cls.version, _without_first(assignment.assigned_partitions), b"")
            for member_id, assignment in correct.items()
        }


def _without_first(assigned: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, list[int]]]:
    return [(topic, [partition for partition in partitions if partition]) for topic, partitions in assigned]


class Claiming(CooperativeStickyAssignor):  # type: ignore[misc]  # kafka-python has no types
    """A member that claims partition 0 of each subscribed topic, even if a different member owns it."""

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Claim partition 0 at every join."""
        claim = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=self.version,
            topics=sorted(topics),
            user_data=b"",
            owned_partitions=[claim(topic=topic, partitions=[0]) for topic in sorted(topics)],
        )


@dataclass
class Scene:
    """A broker with topics of three partitions, on which groups get their problems.

    A group's id is `<prefix>-<problem>`. Members stay until `closing` ends. `wait_for_members` waits until the monitor
    shows this number of members.
    """

    bootstrap_servers: str
    prefix: str
    topics: tuple[str, ...]
    closing: ExitStack
    wait_for_members: Callable[[str, int], object]

    def group_id(self, trouble: str) -> str:
        """Return the id of the group with this problem."""
        return f"{self.prefix}-{trouble}"

    def join(
        self,
        trouble: str,
        *assignors: type[AbstractPartitionAssignor],
        client: str = "client",
        topics: tuple[str, ...] | None = None,
        instance_id: str | None = None,
        opens: OpenClient | None = None,
    ) -> Member:
        """Let one more member join. It uses kafka-python unless `opens` is given."""
        client_id = f"{trouble}-{client}"
        joining = Joining(self.group_id(trouble), client_id, topics or self.topics[:1], instance_id)
        member = Member(opens or kafka_python(self.bootstrap_servers, *assignors), joining)
        self.closing.callback(member.leave)
        self.closing.callback(member.start_leaving)
        return member

    def joined(self, trouble: str, members: int, **of_each: object) -> list[Member]:
        """Let several members join with range and wait until the monitor shows them."""
        joined = [self.join(trouble, RangePartitionAssignor, client=str(n), **of_each) for n in range(members)]  # type: ignore[arg-type]
        self.wait_for_members(self.group_id(trouble), members)
        return joined


def healthy(scene: Scene) -> None:
    """Let two members share three partitions. One has one more than the other, which no assignment can avoid."""
    for number in range(2):
        scene.join("healthy", RangePartitionAssignor, client=str(number))


def skew(scene: Scene) -> None:
    """Let two members share three topics of three partitions under range. The first member gets six of nine."""
    scene.joined("skew", 2, topics=scene.topics)


def greed(scene: Scene) -> None:
    """Let a leader assign all partitions to one member under the name range."""
    for number in range(2):
        scene.join("greed", GreedyRange, client=str(number))


def forgotten_partition(scene: Scene) -> None:
    """Let a new leader leave a partition without an owner that had one before."""
    correct = scene.joined("forgotten", 1)
    scene.join("forgotten", ForgetfulRange, client="forgetful")
    scene.wait_for_members(scene.group_id("forgotten"), 2)
    correct[0].leave()


def rolling_restart(scene: Scene) -> None:
    """Replace each member by a new one, one after the other, as a deployment does."""
    for number, member in enumerate(scene.joined("rolling", 3)):
        member.leave()
        scene.wait_for_members(scene.group_id("rolling"), 2)
        scene.join("rolling", RangePartitionAssignor, client=f"new-{number}")
        scene.wait_for_members(scene.group_id("rolling"), 3)


def storm(scene: Scene) -> None:
    """Let members rejoin for a reason that is in no record."""
    opens = rejoining_kafka_python(scene.bootstrap_servers, RangePartitionAssignor)
    for number in range(2):
        scene.join("storm", client=str(number), opens=opens)


def endless_rejoin(scene: Scene) -> None:
    """Let members rejoin under cooperative-sticky, in rounds that change nothing."""
    opens = rejoining_kafka_python(scene.bootstrap_servers, CooperativeStickyAssignor)
    for number in range(2):
        scene.join("endless", client=str(number), opens=opens)


def flapping(scene: Scene) -> None:
    """Let one member join and leave four times while a second member stays."""
    scene.joined("flapping", 1)
    for _ in range(4):
        member = scene.join("flapping", RangePartitionAssignor, client="unsteady")
        scene.wait_for_members(scene.group_id("flapping"), 2)
        member.leave()
        scene.wait_for_members(scene.group_id("flapping"), 1)


def mixed_strategies(scene: Scene) -> None:
    """Let a member with only one strategy join. The group changes to that strategy, and back when the member leaves."""
    scene.join("mixed", RangePartitionAssignor, RoundRobinPartitionAssignor, client="old")
    scene.wait_for_members(scene.group_id("mixed"), 1)
    other = scene.join("mixed", RoundRobinPartitionAssignor, client="new")
    scene.wait_for_members(scene.group_id("mixed"), 2)
    other.leave()


def duplicate_claims(scene: Scene) -> None:
    """Let two members join that both claim the same partition."""
    for number in range(2):
        scene.join("claims", Claiming, client=str(number))


def subscription_mismatch(scene: Scene) -> None:
    """Let the two members of a group subscribe to different topics permanently."""
    for topic in scene.topics[:2]:
        scene.join("mismatch", RangePartitionAssignor, client=topic, topics=(topic,))


def silent_group(scene: Scene) -> None:
    """Let the only member work on one record forever, while its client still sends heartbeats."""
    for member in scene.joined("silent", 1):
        member.hold()


def silent_static_member(scene: Scene) -> None:
    """Let one of two static members work on one record forever, while the other still commits."""
    held, _ = (scene.join("static", RangePartitionAssignor, client=pod, instance_id=pod) for pod in ("pod-0", "pod-1"))
    scene.wait_for_members(scene.group_id("static"), 2)
    held.hold()


def rewind(scene: Scene) -> None:
    """Set a committed offset back.

    The status is REWIND only for one minute (MIN_SILENCE_MS of `status.py`). After that it is STOP.
    """
    _commit(scene, "rewind", 0, 5, 6, 7)
    time.sleep(10)  # several batches, also on a busy machine
    _commit(scene, "rewind", 0, 3)


def retention_loss(scene: Scene) -> None:
    """Delete records before the group has read them, more than could be transaction markers."""
    producer = KafkaProducer(bootstrap_servers=scene.bootstrap_servers)
    for _ in range(2 * FEW_OFFSETS):
        producer.send(scene.topics[1], value=b"unread", partition=1)
    producer.close()
    _commit(scene, "loss", 1, 2)
    admin = KafkaAdminClient(bootstrap_servers=scene.bootstrap_servers)
    admin.delete_records({KafkaPythonTopicPartition(scene.topics[1], 1): 2 * FEW_OFFSETS})
    admin.close()


def _commit(scene: Scene, trouble: str, partition: int, *offsets: int) -> None:
    """Commit as a simple group does, each offset in its own second. Only the last commit of a second counts."""
    consumer = Consumer({"bootstrap.servers": scene.bootstrap_servers, "group.id": scene.group_id(trouble)})
    for offset in offsets:
        consumer.commit(offsets=[LibrdkafkaTopicPartition(scene.topics[1], partition, offset)], asynchronous=False)
        time.sleep(1.1)
    consumer.close()


TROUBLES: Mapping[str, Callable[[Scene], None]] = {
    "skew": skew,
    "greed": greed,
    "forgotten": forgotten_partition,
    "rolling": rolling_restart,
    "storm": storm,
    "endless": endless_rejoin,
    "flapping": flapping,
    "mixed": mixed_strategies,
    "claims": duplicate_claims,
    "mismatch": subscription_mismatch,
    "silent": silent_group,
    "static": silent_static_member,
    "rewind": rewind,
    "loss": retention_loss,
}
"""Function that creates each problem, by the end of the group's id."""
