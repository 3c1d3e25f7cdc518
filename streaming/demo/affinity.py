"""An assignor as users write them: plugged into kafka-python under a name of its own, and not quite fair."""

from __future__ import annotations

import zlib
from collections import defaultdict
from typing import TYPE_CHECKING

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kafka.cluster import ClusterMetadata
    from kafka.protocol.consumer.group import JoinGroupResponse

_VERSION = 0


def affinity(member_ids: Sequence[str], partitions_per_topic: Mapping[str, int]) -> dict[str, dict[str, list[int]]]:
    """Give each partition to the member its own hash names: same place always, but as uneven as hashes are.

    Returns member id to topic to partitions, both sorted; every member has an entry.
    Example: with one member it gets everything: `{"a": {"t": [0, 1]}}` for `affinity(["a"], {"t": 2})`.
    """
    ordered = sorted(member_ids)
    assigned: dict[str, dict[str, list[int]]] = {member_id: defaultdict(list) for member_id in ordered}
    for topic, partitions in sorted(partitions_per_topic.items()):
        for partition in range(partitions):
            owner = ordered[zlib.crc32(f"{topic}-{partition}".encode()) % len(ordered)]
            assigned[owner][topic].append(partition)
    return {member_id: dict(topics) for member_id, topics in assigned.items()}


class AffinityAssignor(AbstractPartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """`affinity` as kafka-python wants it. All members must subscribe to the same topics, as in the demo they do."""

    name = "demo-affinity"

    def assign(
        self, cluster: ClusterMetadata, members: Iterable[JoinGroupResponse.JoinGroupResponseMember]
    ) -> dict[str, ConsumerProtocolAssignment]:
        """Compute the leader's answer from its view of the cluster."""
        topics_of_member = {member.member_id: member.metadata.topics for member in members}
        topics = sorted({topic for topics in topics_of_member.values() for topic in topics})
        partitions_per_topic = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        assigned = affinity(list(topics_of_member), partitions_per_topic)
        return {
            member_id: ConsumerProtocolAssignment(_VERSION, sorted(owned.items()), b"")
            for member_id, owned in assigned.items()
        }

    def metadata(self, topics: Iterable[str]) -> ConsumerProtocolSubscription:
        """Say what this member subscribes to."""
        return ConsumerProtocolSubscription(_VERSION, sorted(topics), b"")

    def on_assignment(self, assignment: ConsumerProtocolAssignment, generation: int) -> None:
        """Keep nothing: the hash remembers."""
