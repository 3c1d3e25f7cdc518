"""Applies an external fact to the state of a group: a sample of topics, or a fact of rule 7, 9 or 13 of `advance`."""

from __future__ import annotations

import msgspec

from streaming.events import AssignorReported, ExternalFact, GroupVanished, SkipSettled, TopicMetadata, TopicsSampled
from streaming.group.modern import ModernGroup
from streaming.group.snapshot import GONE, GroupSnapshot


def apply_fact(snapshot: GroupSnapshot, fact: ExternalFact) -> GroupSnapshot:
    """Return the snapshot after the fact. The caller handles `GroupForgotten` and removes the state of the group."""
    if isinstance(fact, TopicsSampled):
        return _store_topics(snapshot, fact)
    if isinstance(fact, SkipSettled):
        return _settle_skips(snapshot, fact)
    if isinstance(fact, GroupVanished):
        return _mark_gone(snapshot, fact)
    if isinstance(fact, AssignorReported):
        return _store_assignor(snapshot, fact)
    return snapshot


def _store_topics(snapshot: GroupSnapshot, event: TopicsSampled) -> GroupSnapshot:
    """Store the latest sample and the name of each topic. Samples can arrive in any order.

    If `is_time_corrected` is True, the event replaces the stored samples, because their times are wrong.
    """
    topics = dict(snapshot.topics)
    for topic in snapshot.topics_to_sample():
        sampled, known = event.topics.get(topic), topics.get(topic)
        if sampled is not None and (
            known is None or sampled.sampled_at_ms > known.sampled_at_ms or event.is_time_corrected
        ):
            topics[topic] = _with_known_since(known, sampled)
    known_now = msgspec.structs.replace(snapshot, topics=topics)
    return known_now if snapshot.modern is None else _with_names(known_now, snapshot.modern)


def _with_known_since(known: TopicMetadata | None, sampled: TopicMetadata) -> TopicMetadata:
    """Return the new sample. If partition count and topic id did not change, copy the known start time (`since_ms`).

    If the racks did not change either, also copy their start time. If the known sample has a later time than the new
    sample, its times are wrong and nothing is copied.
    """
    if (
        known is None
        or known.sampled_at_ms > sampled.sampled_at_ms
        or (known.partitions, known.topic_id) != (sampled.partitions, sampled.topic_id)
    ):
        return sampled
    racks_since_ms = known.racks_known_since_ms if known.racks == sampled.racks else None
    return msgspec.structs.replace(sampled, since_ms=known.known_since_ms, racks_since_ms=racks_since_ms)


def _with_names(snapshot: GroupSnapshot, modern: ModernGroup) -> GroupSnapshot:
    """Add the names of sampled topics. Remove names of unused topic ids, and names that a different topic has now."""
    current = {known.topic_id: topic for topic, known in snapshot.topics.items() if known.topic_id is not None}
    held, taken = modern.topic_ids(), set(current.values())
    kept = {
        topic_id: topic for topic_id, topic in modern.topic_names.items() if topic_id in held and topic not in taken
    }
    names = {**kept, **current}
    return msgspec.structs.replace(snapshot, modern=msgspec.structs.replace(modern, topic_names=names))


def _settle_skips(snapshot: GroupSnapshot, event: SkipSettled) -> GroupSnapshot:
    settled = [skip for skip in snapshot.unsettled_skips if skip.before_offset == event.offsets_topic_offset]
    kept = tuple(skip for skip in snapshot.unsettled_skips if skip.before_offset != event.offsets_topic_offset)
    failed = sum(skip.generations for skip in settled) if event.log_was_whole else 0
    totals = msgspec.structs.replace(snapshot.totals, rebalances_failed=snapshot.totals.rebalances_failed + failed)
    return msgspec.structs.replace(snapshot, unsettled_skips=kept, totals=totals)


def _store_assignor(snapshot: GroupSnapshot, event: AssignorReported) -> GroupSnapshot:
    modern = snapshot.modern
    if modern is None or event.epoch != modern.epoch or modern.names_assignor():
        return snapshot
    return msgspec.structs.replace(snapshot, modern=msgspec.structs.replace(modern, assignor=event.assignor))


def _mark_gone(snapshot: GroupSnapshot, event: GroupVanished) -> GroupSnapshot:
    if snapshot.is_over or snapshot.position is None or snapshot.position.offsets_topic_offset != event.after_offset:
        return snapshot
    if event.offsets_topic_partition not in {None, snapshot.position.offsets_topic_partition}:
        return snapshot
    # Readers of the table use the row with the latest time. So this time must be later than the last record's time.
    gone_at_ms = max(event.listed_at_ms, snapshot.position.timestamp_ms + 1)
    position = msgspec.structs.replace(snapshot.position, timestamp_ms=gone_at_ms)
    return msgspec.structs.replace(snapshot, state=GONE, position=position, classic=None, modern=None, topics={})
