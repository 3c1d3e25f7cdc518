"""Which facts a group is waiting for, told from its snapshot and what the driver knows.

Level-triggered: the same comparison is made after every sample until the group's own state shows the fact. A fact lost
on the way is simply found missing again.
"""

from __future__ import annotations

from streaming.combine.lanes import PartitionSnapshot
from streaming.events import GroupForgotten, HandedBackEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import DEAD, GroupSnapshot
from streaming.judgement.group_spec import unknown_topics
from streaming.judgement.lag import ClusterSample
from streaming.judgement.skips import settlements

FORGET_AFTER_MS = 7 * 24 * 3_600_000
"""A group created anew within a week after its deletion goes on with its old totals."""


def awaited_facts(
    snapshot: GroupSnapshot, sample: ClusterSample, lane: PartitionSnapshot | None
) -> tuple[HandedBackEvent, ...]:
    """Everything the group does not know yet and could."""
    settled = settlements(snapshot.unsettled_skips, lane) if lane else ()
    if snapshot.state == DEAD:
        died_at_ms = snapshot.position.timestamp_ms if snapshot.position else 0
        return (GroupForgotten(),) if sample.sampled_at_ms - died_at_ms > FORGET_AFTER_MS else settled
    topics = _awaited_topics(snapshot, sample)
    return (*([TopicsSampled(topics)] if topics else []), *settled)


def _awaited_topics(snapshot: GroupSnapshot, sample: ClusterSample) -> dict[str, TopicMetadata]:
    unknown = set(unknown_topics(snapshot))
    wants_racks = _has_racked_member(snapshot)
    awaited = {}
    for topic in snapshot.subscribed_topics():
        sampled = _without_racks(sample.topics.get(topic), wants_racks=wants_racks)
        if sampled is not None and (topic in unknown or _differs(snapshot.topics.get(topic), sampled)):
            awaited[topic] = sampled
    return awaited


def _differs(known: TopicMetadata | None, sampled: TopicMetadata) -> bool:
    return known is None or (known.partitions, known.racks) != (sampled.partitions, sampled.racks)


def _without_racks(sampled: TopicMetadata | None, *, wants_racks: bool) -> TopicMetadata | None:
    """Racks matter only where a member names its own; without one they would only make every state larger."""
    if sampled is None or wants_racks:
        return sampled
    return TopicMetadata(sampled.partitions, sampled.sampled_at_ms)


def _has_racked_member(snapshot: GroupSnapshot) -> bool:
    members = snapshot.metadata.members if snapshot.metadata else ()
    return any(member.subscription is not None and bool(member.subscription.rack_id) for member in members)
