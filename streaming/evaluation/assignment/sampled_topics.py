"""What samples of topics prove of a record, and which topics have to be sampled once more.

A topic may be created, deleted or grown between a sample and a record. Rules:

1. A sample that began before the record was written proves nothing where the record disagrees with it. It is enough for
   a topic of which the record assigns exactly the partitions that were sampled.
2. All other subscribed topics are *awaited*: a sample that is later than the record decides.
3. A topic's number of partitions *at the record* is certain if samples before and after the record agree on it.
4. A topic *has changed* if its number at the record is not certain, and the later sample either has fewer partitions
   than were assigned, or more than the first ones, which were assigned (none of them if the topic is new).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from assignors import TopicPartition
from streaming.events import TopicMetadata
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot


def unknown_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None = None) -> tuple[str, ...]:
    """Awaited topics for which even the older sample is of no use, sorted: absent then, or with too few partitions."""
    return tuple(
        topic
        for topic, held in _pending(snapshot, owners).items()
        if not _has_room(snapshot.topics.get(topic), max(held, default=-1))
    )


def pending_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None = None) -> tuple[str, ...]:
    """Subscribed topics about which only a sample later than the current record decides (rule 2), sorted."""
    return tuple(_pending(snapshot, owners))


def changed_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition]) -> tuple[str, ...]:
    """Subscribed topics of which whoever assigned knew another number of partitions (rule 4), sorted."""
    doubtful = {
        topic: sampled
        for topic, sampled in snapshot.topics.items()
        if is_later(snapshot, sampled) and not is_certain(snapshot, sampled)
    }
    held = _numbers(owners) if doubtful else {}
    return tuple(
        topic
        for topic in snapshot.subscribed_topics()
        if topic in doubtful and _has_changed(doubtful[topic].partitions or 0, held.get(topic, frozenset()))
    )


def is_later(snapshot: GroupSnapshot, sampled: TopicMetadata) -> bool:
    """Whether the sample is not older than the record. The assignment of a polled group is older than its poll."""
    if snapshot.position is None:
        return False
    return snapshot.is_polled or sampled.sampled_at_ms >= snapshot.position.timestamp_ms


def is_certain(snapshot: GroupSnapshot, sampled: TopicMetadata) -> bool:
    """Whether the topic had this number of partitions when the record was written (rule 3)."""
    if snapshot.position is None or snapshot.is_polled:
        return False
    return sampled.known_since_ms < snapshot.position.timestamp_ms <= sampled.sampled_at_ms


def _pending(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None) -> Mapping[str, Collection[int]]:
    """The awaited topics with the partitions that are assigned of them."""
    written_at_ms = None if snapshot.position is None else snapshot.position.timestamp_ms
    later = {
        topic
        for topic, sampled in snapshot.topics.items()
        if written_at_ms is not None and sampled.sampled_at_ms >= written_at_ms
    }
    doubtful = [topic for topic in snapshot.subscribed_topics() if topic not in later]
    # It walks through all members, and every group is asked about in every sample: only where the answer hangs on it.
    if not doubtful:
        return {}
    held = _numbers((at for member in members(snapshot) for at in member.target or ()) if owners is None else owners)
    return {
        topic: held.get(topic, frozenset())
        for topic in doubtful
        if not _is_exactly(snapshot.topics.get(topic), held.get(topic, frozenset()))
    }


def _numbers(held: Iterable[TopicPartition]) -> Mapping[str, Collection[int]]:
    numbers: dict[str, set[int]] = defaultdict(set)
    for topic, partition in held:
        numbers[topic].add(partition)
    return numbers


def _is_exactly(sampled: TopicMetadata | None, held: Collection[int]) -> bool:
    return sampled is not None and sampled.partitions is not None and _are_first(held, sampled.partitions)


def _are_first(held: Collection[int], count: int) -> bool:
    return len(held) == count and min(held, default=0) == 0 and max(held, default=-1) == count - 1


def _has_room(sampled: TopicMetadata | None, highest: int) -> bool:
    return sampled is not None and sampled.partitions is not None and sampled.partitions > highest


def _has_changed(partitions: int, held: Collection[int]) -> bool:
    has_shrunk = max(held, default=-1) >= partitions
    has_grown = len(held) < partitions and _are_first(held, len(held))
    return has_shrunk or has_grown
