"""How each event changes what is known of a group.

The rules, in the words of the coordinator (`ClassicGroup`, `GroupMetadataManager`):

1. A record at or before the last position has been seen: no change. Re-reading the log is free.
2. The first record counts nothing: what came before it is unknown.
3. The same generation again is a static member rejoining (a new member id, the old assignment): no rebalance.
4. A higher generation counts the difference. When the group came out of it without members, the last step is a
   transition to Empty and is counted apart.
5. A lower generation, or any generation after a tombstone, is a group created anew: counters stay, nothing is counted.
6. Numbers in between that no record carries are kept as a `Skip` until somebody can tell whether the log was whole,
   also when the group dies meanwhile: what is counted must not depend on when the answer comes.
"""

from __future__ import annotations

import msgspec

from streaming.events import (
    GroupEvent,
    GroupForgotten,
    GroupMetadataWritten,
    GroupSeen,
    GroupTombstoned,
    LogEvent,
    SkipSettled,
    TopicsSampled,
)
from streaming.group.snapshot import DEAD, EMPTY, SEEN, STABLE, GroupSnapshot, GroupTotals, Skip

KEPT_SKIPS = 16
"""More unanswered skips than this in one group are a storm; the oldest stay unproven rather than growing the state."""


def advance(snapshot: GroupSnapshot, event: GroupEvent) -> GroupSnapshot:
    """The snapshot after the event. Pure: the same two values always give the same third."""
    if isinstance(event, TopicsSampled):
        return _know_topics(snapshot, event)
    if isinstance(event, SkipSettled):
        return _settle(snapshot, event)
    if isinstance(event, GroupForgotten) or _is_seen(snapshot, event):
        return snapshot
    if isinstance(event, GroupMetadataWritten):
        return _write_metadata(snapshot, event)
    if isinstance(event, GroupSeen):
        return _see(snapshot, event)
    return _bury(snapshot, event)


def _is_seen(snapshot: GroupSnapshot, event: LogEvent) -> bool:
    return snapshot.position is not None and event.position.kafka_offset <= snapshot.position.kafka_offset


def _write_metadata(snapshot: GroupSnapshot, event: GroupMetadataWritten) -> GroupSnapshot:
    metadata = event.metadata
    state = STABLE if metadata.members else EMPTY
    totals, skip = _count(snapshot, metadata.generation_id, event.position.kafka_offset, becomes_empty=state == EMPTY)
    skips = (*snapshot.unsettled_skips, skip)[-KEPT_SKIPS:] if skip else snapshot.unsettled_skips
    advanced = msgspec.structs.replace(
        snapshot,
        group_type="classic",
        state=state,
        position=event.position,
        generation_id=metadata.generation_id,
        metadata=metadata,
        totals=totals,
        unsettled_skips=skips,
    )
    return _without_left_topics(advanced)


def _count(
    snapshot: GroupSnapshot, generation_id: int, kafka_offset: int, *, becomes_empty: bool
) -> tuple[GroupTotals, Skip | None]:
    totals = snapshot.totals
    if snapshot.position is None:
        return totals, None
    if snapshot.state in (DEAD, SEEN) or generation_id < snapshot.generation_id:
        return msgspec.structs.replace(totals, incarnations=totals.incarnations + 1), None
    steps = generation_id - snapshot.generation_id
    if steps == 0:
        return totals, None
    counted = msgspec.structs.replace(
        totals,
        rebalances=totals.rebalances + steps - becomes_empty,
        empty_transitions=totals.empty_transitions + becomes_empty,
    )
    skip = Skip(snapshot.position.kafka_offset, kafka_offset, steps - 1) if steps > 1 else None
    return counted, skip


def _without_left_topics(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Forget metadata of topics nobody subscribes to any more, so that a group's state follows its subscriptions."""
    subscribed = set(snapshot.subscribed_topics())
    kept = {topic: known for topic, known in snapshot.topics.items() if topic in subscribed}
    return msgspec.structs.replace(snapshot, topics=kept)


def _know_topics(snapshot: GroupSnapshot, event: TopicsSampled) -> GroupSnapshot:
    """Keep the later sample of each topic, in whatever order two of them arrive."""
    topics = dict(snapshot.topics)
    for topic in snapshot.subscribed_topics():
        sampled, known = event.topics.get(topic), topics.get(topic)
        if sampled is not None and (known is None or sampled.sampled_at_ms > known.sampled_at_ms):
            topics[topic] = sampled
    return msgspec.structs.replace(snapshot, topics=topics)


def _settle(snapshot: GroupSnapshot, event: SkipSettled) -> GroupSnapshot:
    settled = [skip for skip in snapshot.unsettled_skips if skip.before_offset == event.kafka_offset]
    kept = tuple(skip for skip in snapshot.unsettled_skips if skip.before_offset != event.kafka_offset)
    failed = sum(skip.generations for skip in settled) if event.log_was_whole else 0
    totals = msgspec.structs.replace(snapshot.totals, rebalances_failed=snapshot.totals.rebalances_failed + failed)
    return msgspec.structs.replace(snapshot, unsettled_skips=kept, totals=totals)


def _see(snapshot: GroupSnapshot, event: GroupSeen) -> GroupSnapshot:
    return msgspec.structs.replace(
        snapshot,
        group_type=event.group_type,
        state=SEEN,
        position=event.position,
        generation_id=event.epoch,
        metadata=None,
        topics={},
    )


def _bury(snapshot: GroupSnapshot, event: GroupTombstoned) -> GroupSnapshot:
    return msgspec.structs.replace(snapshot, state=DEAD, position=event.position, metadata=None, topics={})
