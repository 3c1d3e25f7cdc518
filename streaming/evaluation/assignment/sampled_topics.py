"""Check whether a topic had its sampled partition count at the time of a record.

A topic can be created, deleted or extended after a sample and before a record. Rules:

1. A sample is sufficient if it began after the record was written. An earlier sample is sufficient only if the record
   assigns exactly the sampled partitions.
2. A subscribed topic without a sufficient sample is *pending*. A pending topic needs a sample after the record.
3. A partition count is *certain* for a record if samples before and after the record show the same count.
4. If the count is not certain, a sample after the record can show that the topic *has changed*. First case: the record
   assigns a partition that does not exist in the sample. Second case: only the partitions with the highest numbers have
   no owner. The second case includes a new topic, in which no partition has an owner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from assignors import TopicPartition
from streaming.events import TopicMetadata
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot


def unknown_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None = None) -> tuple[str, ...]:
    """Return the sorted pending topics whose partition count is unknown.

    The count is unknown if the sample before the record does not contain the topic. The count is also unknown if the
    record assigns a partition that the sample does not contain.
    """
    return tuple(
        topic
        for topic, held in _pending_with_partitions(snapshot, owners).items()
        if not _has_room(snapshot.topics.get(topic), max(held, default=-1))
    )


def pending_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None = None) -> tuple[str, ...]:
    """Return the sorted subscribed topics that need a sample after the snapshot's record (rule 2)."""
    return tuple(_pending_with_partitions(snapshot, owners))


def changed_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition]) -> tuple[str, ...]:
    """Return the sorted subscribed topics whose partition count changed after the assignment (rule 4)."""
    doubtful = {
        topic: sampled
        for topic, sampled in snapshot.topics.items()
        if is_later(snapshot, sampled) and not is_certain(snapshot, sampled)
    }
    held = _partitions_by_topic(owners) if doubtful else {}
    return tuple(
        topic
        for topic in snapshot.subscribed_topics()
        if topic in doubtful and _has_changed(doubtful[topic].partitions or 0, held.get(topic, frozenset()))
    )


def is_later(snapshot: GroupSnapshot, sampled: TopicMetadata) -> bool:
    """Return True if the sample is as new as the record, or newer.

    For a polled group, the time of the assignment is unknown. The assignment is older than the poll, so each sample
    counts as later.
    """
    if snapshot.position is None:
        return False
    return snapshot.is_polled or sampled.sampled_at_ms >= snapshot.position.timestamp_ms


def is_certain(snapshot: GroupSnapshot, sampled: TopicMetadata) -> bool:
    """Return True if the topic certainly had the sampled partition count when the record was written (rule 3)."""
    if snapshot.position is None or snapshot.is_polled:
        return False
    return sampled.known_since_ms < snapshot.position.timestamp_ms <= sampled.sampled_at_ms


def _pending_with_partitions(
    snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None
) -> Mapping[str, Collection[int]]:
    """Return the pending topics, each with its assigned partitions."""
    written_at_ms = None if snapshot.position is None else snapshot.position.timestamp_ms
    later = {
        topic
        for topic, sampled in snapshot.topics.items()
        if written_at_ms is not None and sampled.sampled_at_ms >= written_at_ms
    }
    doubtful = [topic for topic in snapshot.subscribed_topics() if topic not in later]
    if not doubtful:  # The code below is slow: it iterates over all members, for every group at every sample.
        return {}
    held = _partitions_by_topic(
        (at for member in members(snapshot) for at in member.target or ()) if owners is None else owners
    )
    return {
        topic: held.get(topic, frozenset())
        for topic in doubtful
        if not _is_assigned_exactly(snapshot.topics.get(topic), held.get(topic, frozenset()))
    }


def _partitions_by_topic(held: Iterable[TopicPartition]) -> Mapping[str, Collection[int]]:
    numbers: dict[str, set[int]] = defaultdict(set)
    for topic, partition in held:
        numbers[topic].add(partition)
    return numbers


def _is_assigned_exactly(sampled: TopicMetadata | None, held: Collection[int]) -> bool:
    return sampled is not None and sampled.partitions is not None and _are_first(held, sampled.partitions)


def _are_first(held: Collection[int], count: int) -> bool:
    return len(held) == count and min(held, default=0) == 0 and max(held, default=-1) == count - 1


def _has_room(sampled: TopicMetadata | None, highest: int) -> bool:
    return sampled is not None and sampled.partitions is not None and sampled.partitions > highest


def _has_changed(partitions: int, held: Collection[int]) -> bool:
    has_shrunk = max(held, default=-1) >= partitions
    has_grown = len(held) < partitions and _are_first(held, len(held))
    return has_shrunk or has_grown
