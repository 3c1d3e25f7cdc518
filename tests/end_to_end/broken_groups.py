"""Groups of real clients, each broken in a way of its own: what an on-call person is called for."""

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
"""Of each topic here."""

Members = Iterable[JoinGroupResponse.JoinGroupResponseMember]
Assignments = dict[str, ConsumerProtocolAssignment]


class GreedyRange(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Calls itself range and gives everything to one member."""

    @classmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """The first member by id has all partitions."""
        lawful: Assignments = super().assign(cluster, members)
        first = min(lawful)
        topics = sorted({topic for member in members for topic in member.metadata.topics})
        everything = [(topic, sorted(cluster.partitions_for_topic(topic) or ())) for topic in topics]
        return {
            member_id: ConsumerProtocolAssignment(cls.version, everything if member_id == first else [], b"")
            for member_id in lawful
        }


class ForgetfulRange(RangePartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Calls itself range and gives partition 0 of every topic to nobody."""

    @classmethod
    def assign(cls, cluster: ClusterMetadata, members: Members) -> Assignments:
        """What range says, less one partition a topic."""
        lawful: Assignments = super().assign(cluster, members)
        return {
            member_id: ConsumerProtocolAssignment(cls.version, _without_first(said.assigned_partitions), b"")
            for member_id, said in lawful.items()
        }


def _without_first(assigned: Iterable[tuple[str, Iterable[int]]]) -> list[tuple[str, list[int]]]:
    return [(topic, [partition for partition in partitions if partition]) for topic, partitions in assigned]


class Claiming(CooperativeStickyAssignor):  # type: ignore[misc]  # kafka-python has no types
    """A member that believes to own partition 0 of all it reads, whoever else has it: a zombie's claim."""

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Claim it at every join."""
        claim = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=self.version,
            topics=sorted(topics),
            user_data=b"",
            owned_partitions=[claim(topic=topic, partitions=[0]) for topic in sorted(topics)],
        )


@dataclass
class Scene:
    """Where groups are broken: a broker, topics of three partitions, and how many members the monitor shows.

    Groups are called `<prefix>-<what is broken>`. Members stay until `closing` ends.
    """

    bootstrap_servers: str
    prefix: str
    topics: tuple[str, ...]
    closing: ExitStack
    wait_for_members: Callable[[str, int], object]

    def group_id(self, trouble: str) -> str:
        """The id of the group with this trouble."""
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
        """Let one more member join, by kafka-python unless `opens` is given."""
        client_id = f"{trouble}-{client}"
        joining = Joining(self.group_id(trouble), client_id, topics or self.topics[:1], instance_id)
        member = Member(opens or kafka_python(self.bootstrap_servers, *assignors), joining)
        self.closing.callback(member.leave)
        self.closing.callback(member.tell_to_leave)
        return member

    def joined(self, trouble: str, members: int, **of_each: object) -> list[Member]:
        """Let several members join under range and wait until they are there."""
        joined = [self.join(trouble, RangePartitionAssignor, client=str(n), **of_each) for n in range(members)]  # type: ignore[arg-type]
        self.wait_for_members(self.group_id(trouble), members)
        return joined


def healthy(scene: Scene) -> None:
    """Two members for three partitions: one has one more, and no assignment can help it."""
    for number in range(2):
        scene.join("healthy", RangePartitionAssignor, client=str(number))


def skew(scene: Scene) -> None:
    """Range over three topics: two members for three partitions each leave the first with six of nine."""
    scene.joined("skew", 2, topics=scene.topics)


def greed(scene: Scene) -> None:
    """The leader's program calls itself range and is not."""
    for number in range(2):
        scene.join("greed", GreedyRange, client=str(number))


def forgotten_partition(scene: Scene) -> None:
    """The leader's program gives a partition to nobody that somebody had before."""
    lawful = scene.joined("forgotten", 1)
    scene.join("forgotten", ForgetfulRange, client="forgetful")
    scene.wait_for_members(scene.group_id("forgotten"), 2)
    lawful[0].leave()


def rolling_restart(scene: Scene) -> None:
    """A deployment: one member after the other goes, and another comes for it."""
    for number, member in enumerate(scene.joined("rolling", 3)):
        member.leave()
        scene.wait_for_members(scene.group_id("rolling"), 2)
        scene.join("rolling", RangePartitionAssignor, client=f"new-{number}")
        scene.wait_for_members(scene.group_id("rolling"), 3)


def storm(scene: Scene) -> None:
    """Members that rejoin for no reason that a record would tell."""
    opens = rejoining_kafka_python(scene.bootstrap_servers, RangePartitionAssignor)
    for number in range(2):
        scene.join("storm", client=str(number), opens=opens)


def endless_rejoin(scene: Scene) -> None:
    """The same under cooperative-sticky: rounds and rounds in which nothing changes."""
    opens = rejoining_kafka_python(scene.bootstrap_servers, CooperativeStickyAssignor)
    for number in range(2):
        scene.join("endless", client=str(number), opens=opens)


def flapping(scene: Scene) -> None:
    """One member comes and goes while another stays."""
    scene.joined("flapping", 1)
    for _ in range(4):
        member = scene.join("flapping", RangePartitionAssignor, client="unsteady")
        scene.wait_for_members(scene.group_id("flapping"), 2)
        member.leave()
        scene.wait_for_members(scene.group_id("flapping"), 1)


def mixed_strategies(scene: Scene) -> None:
    """A member that knows only one strategy drags the whole group there and, when it goes, back again."""
    scene.join("mixed", RangePartitionAssignor, RoundRobinPartitionAssignor, client="old")
    scene.wait_for_members(scene.group_id("mixed"), 1)
    other = scene.join("mixed", RoundRobinPartitionAssignor, client="new")
    scene.wait_for_members(scene.group_id("mixed"), 2)
    other.leave()


def duplicate_claims(scene: Scene) -> None:
    """Two members join and both claim the same partition."""
    for number in range(2):
        scene.join("claims", Claiming, client=str(number))


def subscription_mismatch(scene: Scene) -> None:
    """Half of a deployment reads one topic, half the other, and it stays so."""
    for topic in scene.topics[:2]:
        scene.join("mismatch", RangePartitionAssignor, client=topic, topics=(topic,))


def silent_group(scene: Scene) -> None:
    """The one member works on one record for ever; its client goes on sending heartbeats."""
    for member in scene.joined("silent", 1):
        member.hold()


def silent_static_member(scene: Scene) -> None:
    """Of two static members one works on one record for ever; the other commits as ever."""
    held, _ = (scene.join("static", RangePartitionAssignor, client=pod, instance_id=pod) for pod in ("pod-0", "pod-1"))
    scene.wait_for_members(scene.group_id("static"), 2)
    held.hold()


def rewind(scene: Scene) -> None:
    """Somebody sets a committed offset back."""
    _commit(scene, "rewind", 0, 5, 6, 7, 3)


def retention_loss(scene: Scene) -> None:
    """Records are deleted before the group has read them: more than transaction markers could be."""
    producer = KafkaProducer(bootstrap_servers=scene.bootstrap_servers)
    for _ in range(2 * FEW_OFFSETS):
        producer.send(scene.topics[1], value=b"unread", partition=1)
    producer.close()
    _commit(scene, "loss", 1, 2)
    admin = KafkaAdminClient(bootstrap_servers=scene.bootstrap_servers)
    admin.delete_records({KafkaPythonTopicPartition(scene.topics[1], 1): 2 * FEW_OFFSETS})
    admin.close()


def _commit(scene: Scene, trouble: str, partition: int, *offsets: int) -> None:
    """Commit as a simple group does, in a second of its own each: of a second only the last commit counts."""
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
"""By the end of the group's id, how it is broken."""
