"""An example of a custom assignor for kafka-python, with uneven assignments. No assignor of Kafka has its name."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kafka.cluster import ClusterMetadata
from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_VERSION = 0


def affinity(member_ids: Sequence[str], partitions_per_topic: Mapping[str, int]) -> dict[str, dict[str, list[int]]]:
    """Assign each partition by a hash of its topic and number. The same members always get the same, uneven assignment.

    The result maps each member id to topics, and each topic to sorted partitions. Example: `affinity(["a"], {"t": 2})`
    is `{"a": {"t": [0, 1]}}`, because a single member gets all partitions.
    """
    ordered = sorted(member_ids)
    assignment: dict[str, dict[str, list[int]]] = {member_id: defaultdict(list) for member_id in ordered}
    for topic, partitions in sorted(partitions_per_topic.items()):
        for partition in range(partitions):
            owner = ordered[zlib.crc32(f"{topic}-{partition}".encode()) % len(ordered)]
            assignment[owner][topic].append(partition)
    return {member_id: dict(topics) for member_id, topics in assignment.items()}


class AffinityAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Uses `affinity` in kafka-python. All members must subscribe to the same topics."""

    name = "demo-affinity"

    def assign(
        self, cluster: ClusterMetadata, members: Iterable[JoinGroupResponse.JoinGroupResponseMember]
    ) -> dict[str, ConsumerProtocolAssignment]:
        """Compute the assignment that the leader sends to the coordinator."""
        topics_of_member = {member.member_id: member.metadata.topics for member in members}
        topics = sorted({topic for topics in topics_of_member.values() for topic in topics})
        partitions_per_topic = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        assignment = affinity(list(topics_of_member), partitions_per_topic)
        return {
            member_id: ConsumerProtocolAssignment(_VERSION, sorted(owned.items()), b"")
            for member_id, owned in assignment.items()
        }

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Return the subscription of this member."""
        return ConsumerProtocolSubscription(_VERSION, sorted(topics), b"")

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Do nothing: the assignor keeps no data between two rebalances."""
