"""Check whether a topic had its sampled partition count and its sampled racks at the time of a record.

A topic can be created, deleted or extended after a sample and before a record. Its replicas can move to other racks.
Rules:

1. A sample is sufficient if it began after the record was written. An earlier sample is sufficient only if the record
   assigns exactly the sampled partitions.
2. A subscribed topic without a sufficient sample is *pending*. A pending topic needs a sample after the record.
3. A partition count is *certain* for a record if samples before and after the record show the same count.
4. The leader of a classic group can use metadata that is as old as `metadata.max.age.ms`. So the leader certainly knew
   the sampled count only if the count is certain, and was already known `METADATA_MAX_AGE_MS` before the record. In a
   KIP-848 group, the coordinator computes the assignment and knows each change at once.
5. If the leader may have known a different count, a sample after the record can show that the topic *has changed* for
   the leader. First case: the record assigns a partition that does not exist in the sample. Second case: only the
   partitions with the highest numbers have no owner, and the coordinator does not withhold these partitions (KIP-429).
   The second case includes a new topic, in which no partition has an owner. In all other cases, growth does not explain
   partitions without an owner.
6. The leader of a classic group certainly knew the sampled racks only if all samples show the same racks: from
   `METADATA_MAX_AGE_MS` before the leader computed the assignment until after the record. If the broker of a replica is
   down, the sample does not contain the rack of the replica. So this outage changes the sampled racks. If a static
   member rejoins, the record contains the assignment of an earlier record. So the time when the group entered its state
   also counts, not only the time of the record.
7. In the polling mode, rule 6 uses the time of the first poll that showed the assignment. Polls can fail, so this poll
   can be late. Therefore the racks must be the same for twice as long before this poll. If the group has static
   members, the racks are never certain: after a rejoin, a poll shows an old assignment, and no response contains the
   time of this assignment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

from assignors import TopicPartition
from assignors.coordinator import EAGER_STRATEGIES
from streaming.events import TopicMetadata
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot

METADATA_MISSING, METADATA_CHANGED = "metadata_missing", "metadata_changed"
"""Reasons of the verdict `unknown`: a sample after the record is needed, or the leader possibly used other metadata."""

METADATA_MAX_AGE_MS = 300_000
"""The default of the consumer setting `metadata.max.age.ms`. No record contains the leader's value."""


def unknown_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None = None) -> tuple[str, ...]:
    """Return the sorted pending topics whose sample is missing, or does not contain an assigned partition."""
    return tuple(
        topic
        for topic, held in _pending_with_partitions(snapshot, owners).items()
        if not _has_room(snapshot.topics.get(topic), max(held, default=-1))
    )


def pending_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None = None) -> tuple[str, ...]:
    """Return the sorted subscribed topics that need a sample after the snapshot's record (rule 2)."""
    return tuple(_pending_with_partitions(snapshot, owners))


def changed_topics(snapshot: GroupSnapshot, owners: Iterable[TopicPartition]) -> tuple[str, ...]:
    """Return the sorted subscribed topics whose partition count can differ from the leader's count (rule 5)."""
    max_age_ms = 0 if snapshot.classic is None else METADATA_MAX_AGE_MS
    doubtful = {
        topic: sampled
        for topic, sampled in snapshot.topics.items()
        # A polled assignment is older than its poll, so each sample can be later than the assignment.
        if (snapshot.is_polled or is_later(snapshot, sampled)) and not is_certain(snapshot, sampled, max_age_ms)
    }
    if not doubtful:
        return ()
    # If the strategy is eager, no partition is withheld, so no claim counts.
    is_eager = snapshot.classic is None or snapshot.protocol in EAGER_STRATEGIES
    subscriptions = (member.subscription for member in (snapshot.classic.members if snapshot.classic else ()))
    claims = () if is_eager else (at for subscription in subscriptions if subscription for at in subscription.owned)
    held, claimed = _partitions_by_topic(owners), _partitions_by_topic(claims)
    return tuple(
        topic
        for topic in snapshot.subscribed_topics()
        if topic in doubtful and _has_changed(doubtful[topic].partitions or 0, held[topic], claimed[topic])
    )


def is_later(snapshot: GroupSnapshot, sampled: TopicMetadata) -> bool:
    """Return True if the sample is not older than the record (in the polling mode: not older than the poll)."""
    return snapshot.position is not None and sampled.sampled_at_ms >= snapshot.position.timestamp_ms


def is_certain(snapshot: GroupSnapshot, sampled: TopicMetadata, max_age_ms: int = 0) -> bool:
    """Return True if the topic certainly had the sampled partition count when the record was written (rule 3).

    With `max_age_ms`, the topic must also have had this count at all times in the `max_age_ms` before the record.
    """
    if snapshot.position is None or snapshot.is_polled:
        return False
    written_at_ms = snapshot.position.timestamp_ms
    return sampled.known_since_ms < written_at_ms - max_age_ms and written_at_ms <= sampled.sampled_at_ms


def why_racks_are_uncertain(snapshot: GroupSnapshot) -> str:
    """Return the reason why the leader possibly used racks that differ from the sampled racks (rules 6, 7), or "".

    The reason is METADATA_MISSING if the racks of a topic were not sampled after the record or poll.
    """
    if snapshot.classic is None or snapshot.position is None:
        return ""
    written_at_ms = snapshot.position.timestamp_ms
    entered_at_ms = snapshot.classic.current_state_timestamp_ms
    computed_at_ms = written_at_ms if entered_at_ms is None else min(written_at_ms, entered_at_ms)
    sampled = [snapshot.topics.get(topic) for topic in snapshot.subscribed_topics()]
    if any(one is None or not is_later(snapshot, one) for one in sampled):
        return METADATA_MISSING
    since_ms = max((one.racks_known_since_ms for one in sampled if one is not None), default=0)
    max_age_ms = METADATA_MAX_AGE_MS * (2 if snapshot.is_polled else 1)
    hides_time = snapshot.is_polled and any(one.group_instance_id is not None for one in snapshot.classic.members)
    return "" if since_ms < computed_at_ms - max_age_ms and not hides_time else METADATA_CHANGED


def _pending_with_partitions(
    snapshot: GroupSnapshot, owners: Iterable[TopicPartition] | None
) -> Mapping[str, Collection[int]]:
    later = {topic for topic, sampled in snapshot.topics.items() if is_later(snapshot, sampled)}
    doubtful = [topic for topic in snapshot.subscribed_topics() if topic not in later]
    if not doubtful:  # The code below is slow: it iterates over all members, for every group at every sample.
        return {}
    held = _partitions_by_topic(
        (at for member in members(snapshot) for at in member.target or ()) if owners is None else owners
    )
    return {
        topic: held.get(topic, frozenset())
        for topic in doubtful
        if (sampled := snapshot.topics.get(topic)) is None
        or sampled.partitions is None
        or not _are_first(held.get(topic, frozenset()), sampled.partitions)
    }


def _partitions_by_topic(held: Iterable[TopicPartition]) -> defaultdict[str, set[int]]:
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for topic, partition in held:
        numbers[topic].add(partition)
    return numbers


def _are_first(held: Collection[int], count: int) -> bool:
    return len(held) == count and min(held, default=0) == 0 and max(held, default=-1) == count - 1


def _has_room(sampled: TopicMetadata | None, highest: int) -> bool:
    return sampled is not None and sampled.partitions is not None and sampled.partitions > highest


def _has_changed(partitions: int, held: set[int], claimed: set[int]) -> bool:
    has_shrunk = max(held, default=-1) >= partitions
    known = held | claimed
    has_grown = len(known) < partitions and _are_first(known, len(known))
    return has_shrunk or has_grown
