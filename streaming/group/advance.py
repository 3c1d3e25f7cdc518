"""How each event changes what is known of a group.

The rules, in the words of the coordinator (`ClassicGroup`, `ConsumerGroup`, `GroupMetadataManager`); "generation" is
the generation of a classic group and the group epoch of all others:

1. A record at or before the last position has been seen: no change. Re-reading the log is free. Positions of one
   partition only are compared. A record from a different partition shows that the group moved there, because the
   partition count of `__consumer_offsets` changed (`combine.own_partitions`): there it is created anew (rule 5).
2. The first record counts nothing: what came before it is unknown.
3. The same generation again is a static member rejoining (a new member id, the old assignment): no rebalance.
4. A higher generation counts the difference. When the group came out of it without members, the last step is a
   transition to Empty and is counted apart.
5. A lower generation, or any record after a tombstone, is a group created anew: counters stay, nothing is counted.
6. A tombstone whose very next record, of another type, is the same group's is no end: the group was upgraded to the
   consumer protocol or downgraded from it (one append holds both). It goes on counting from where it was; where it was
   empty and starts again at a lower generation, nothing is counted for that. A streams group's last record is the
   tombstone of its topology, which is no event: there the record after the next counts as well.
7. Numbers in between that no record of a classic group carries are kept as a `Skip` until somebody can tell whether the
   log was whole, also when the group dies meanwhile: what is counted must not depend on when the answer comes. Every
   epoch of the other types has its record: numbers without one were compacted away.
8. The state of a group whose assignment the coordinator makes follows from its records as in the coordinator, and is
   Unknown where records are missing. Streams groups keep part of theirs elsewhere: only Empty is told.
9. A group the brokers list no more is Gone, unless a record came after the listing was made. The time of its end is
   later than that of its last record.
10. A coordinator that is asked (`GroupDescribed`) replaces all that is known; an answer that says nothing new is no
   change. Of a classic group it names no generation: a settled answer counts one rebalance, or one transition to Empty,
   where members, what they said or what they hold are others than in the answer before, or where that one found it
   rebalancing. That is a lower bound. A group described under another type was upgraded or downgraded.
11. Where an earlier checkpoint's tables counted a group, the log is read again without counting up to there (`Resume`).
12. A record nobody could read makes the group Unknown, a classic one until its next record (which then counts nothing),
    any other until the next record of the same entry: the last value is not the present.
13. The assignor that a coordinator reports for a KIP-848 group counts at the epoch of its report, if no member names
    one. It stays for later epochs until a member names an assignor or the coordinator reports a different one.
"""

from __future__ import annotations

import msgspec

from streaming.events import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    AssignorReported,
    DecodeFailed,
    EpochWritten,
    GroupDescribed,
    GroupEvent,
    GroupForgotten,
    GroupMetadataWritten,
    GroupTombstoned,
    GroupVanished,
    LogEvent,
    ModernDescription,
    ModernEvent,
    Position,
    RegexResolved,
    SkipSettled,
    TopicMetadata,
    TopicsNamed,
    TopicsSampled,
)
from streaming.group.modern import ModernGroup, is_assigning, recount_members, replay, with_reported_assignor
from streaming.group.snapshot import (
    ASSIGNING,
    DEAD,
    EMPTY,
    GONE,
    REBALANCING,
    RECONCILING,
    STABLE,
    UNKNOWN,
    GroupSnapshot,
    GroupTotals,
    Resume,
    Skip,
)
from streaming.protocol.classic import GroupMetadata

KEPT_SKIPS = 16
"""More unanswered skips than this in one group are a storm; the oldest stay unproven rather than growing the state."""


def advance(snapshot: GroupSnapshot, event: GroupEvent) -> GroupSnapshot:
    """The snapshot after the event. Pure: the same two values always give the same third."""
    if isinstance(event, TopicsSampled):
        return _store_topics(snapshot, event)
    if isinstance(event, SkipSettled):
        return _settle_skips(snapshot, event)
    if isinstance(event, GroupVanished):
        return _mark_gone(snapshot, event)
    if isinstance(event, AssignorReported):
        return _store_assignor(snapshot, event)
    return snapshot if isinstance(event, GroupForgotten) else _apply_log_event(snapshot, event)


def _apply_log_event(snapshot: GroupSnapshot, event: LogEvent) -> GroupSnapshot:
    if _is_already_read(snapshot, event):
        return snapshot
    if snapshot.resume is None:
        return _apply(_leave_earlier_partition(snapshot, event), event)
    if snapshot.resume.is_before(event.position):
        resumed = _resume_counting(snapshot, snapshot.resume, event.position.offsets_topic_partition)
        return _apply(_leave_earlier_partition(resumed, event), event)
    return msgspec.structs.replace(_apply(snapshot, event), totals=snapshot.resume.totals, unsettled_skips=())


def _resume_counting(snapshot: GroupSnapshot, resume: Resume, offsets_topic_partition: int) -> GroupSnapshot:
    """The snapshot with the log read again up to where counting goes on. Compaction may have left nothing before it."""
    known = snapshot
    if snapshot.position is None:
        read_in = offsets_topic_partition if resume.offsets_topic_partition is None else resume.offsets_topic_partition
        position = Position(read_in, resume.offsets_topic_offset, 0)
        known = msgspec.structs.replace(
            snapshot, group_type=resume.group_type, state=resume.state, position=position, totals=resume.totals
        )
    elif resume.state == GONE:
        known = msgspec.structs.replace(snapshot, state=GONE, classic=None, modern=None, topics={})
    return msgspec.structs.replace(known, generation_id=resume.generation_id, resume=None)


def _apply(snapshot: GroupSnapshot, event: LogEvent) -> GroupSnapshot:
    if isinstance(event, GroupTombstoned):
        return _mark_dead(snapshot, event)
    if isinstance(event, GroupMetadataWritten):
        return _write_metadata(_as_living(snapshot, event, CLASSIC), event)
    if isinstance(event, GroupDescribed):
        return _describe(snapshot, event)
    if isinstance(event, DecodeFailed) and event.group_type == CLASSIC:
        return _mark_unknown(_as_living(snapshot, event, CLASSIC), event)
    return _replay(snapshot, event)


def _is_already_read(snapshot: GroupSnapshot, event: LogEvent) -> bool:
    if snapshot.position is None or _is_in_other_partition(snapshot, event):
        return False
    return event.position.offsets_topic_offset <= snapshot.position.offsets_topic_offset


def _is_in_other_partition(snapshot: GroupSnapshot, event: LogEvent) -> bool:
    return (
        snapshot.position is not None
        and event.position.offsets_topic_partition != snapshot.position.offsets_topic_partition
    )


def _leave_earlier_partition(snapshot: GroupSnapshot, event: LogEvent) -> GroupSnapshot:
    """The snapshot before a record from a different partition: over there, where nobody uses the group any more.

    Its skipped generations cannot be settled any more, because the lane that knows is the earlier partition's.
    """
    if not _is_in_other_partition(snapshot, event):
        return snapshot
    return msgspec.structs.replace(snapshot, state=GONE, classic=None, modern=None, topics={}, unsettled_skips=())


def _as_living(snapshot: GroupSnapshot, event: LogEvent, group_type: str) -> GroupSnapshot:
    """The snapshot a living group's record of that type applies to: as it is, carried over (rule 6), or anew (5)."""
    if snapshot.position is None or (snapshot.group_type == group_type and not snapshot.is_over):
        return snapshot
    living = msgspec.structs.replace(
        snapshot, group_type=group_type, state=UNKNOWN, classic=None, modern=None, topics={}
    )
    offsets_between = event.position.offsets_topic_offset - snapshot.position.offsets_topic_offset - 1
    is_next_record = offsets_between == 0 or (offsets_between == 1 and snapshot.group_type == STREAMS)
    if snapshot.state == DEAD and is_next_record and snapshot.group_type != group_type:
        return msgspec.structs.replace(living, is_carried_over=True)
    if isinstance(event, GroupDescribed) and not snapshot.is_over:
        return msgspec.structs.replace(living, generation_id=None, is_carried_over=True)
    totals = msgspec.structs.replace(snapshot.totals, incarnations=snapshot.totals.incarnations + 1)
    return msgspec.structs.replace(living, generation_id=None, totals=totals, is_carried_over=False)


def _write_metadata(snapshot: GroupSnapshot, event: GroupMetadataWritten) -> GroupSnapshot:
    metadata = event.metadata
    state = STABLE if metadata.members else EMPTY
    totals, skip = _count(
        snapshot, metadata.generation_id, event.position.offsets_topic_offset, becomes_empty=state == EMPTY
    )
    skips = (*snapshot.unsettled_skips, skip)[-KEPT_SKIPS:] if skip else snapshot.unsettled_skips
    advanced = msgspec.structs.replace(
        snapshot,
        group_type=CLASSIC,
        state=state,
        position=event.position,
        generation_id=metadata.generation_id,
        classic=metadata,
        totals=totals,
        unsettled_skips=skips,
    )
    return _without_unsubscribed_topics(advanced)


def _count(
    snapshot: GroupSnapshot, generation_id: int | None, offsets_topic_offset: int, *, becomes_empty: bool
) -> tuple[GroupTotals, Skip | None]:
    totals = snapshot.totals
    if snapshot.position is None or snapshot.generation_id is None or generation_id is None:
        return totals, None
    is_first_of_life = snapshot.classic is None and (snapshot.modern is None or snapshot.modern.epoch is None)
    if generation_id < snapshot.generation_id:
        lives = totals.incarnations + (not is_first_of_life)
        return msgspec.structs.replace(totals, incarnations=lives), None
    steps = generation_id - snapshot.generation_id
    if steps == 0:
        return totals, None
    counted = msgspec.structs.replace(
        totals,
        rebalances=totals.rebalances + steps - becomes_empty,
        empty_transitions=totals.empty_transitions + becomes_empty,
    )
    skip = Skip(snapshot.position.offsets_topic_offset, offsets_topic_offset, steps - 1) if steps > 1 else None
    return counted, skip


def _without_unsubscribed_topics(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Forget metadata of topics nobody subscribes to any more, so that a group's state follows its subscriptions."""
    subscribed = set(snapshot.subscribed_topics())
    kept = {topic: known for topic, known in snapshot.topics.items() if topic in subscribed}
    return msgspec.structs.replace(snapshot, topics=kept)


def _mark_unknown(snapshot: GroupSnapshot, event: DecodeFailed) -> GroupSnapshot:
    """Rule 12: nothing of a classic group is the present any more; what its next record counts from is not known."""
    return msgspec.structs.replace(
        snapshot,
        group_type=CLASSIC,
        state=UNKNOWN,
        position=event.position,
        generation_id=None,
        classic=None,
        topics={},
    )


def _replay(snapshot: GroupSnapshot, event: ModernEvent | DecodeFailed) -> GroupSnapshot:
    """Take one entry of a group whose assignment the coordinator makes. Deletions in a dead group change nothing."""
    group_type = CONSUMER if isinstance(event, RegexResolved | TopicsNamed) else event.group_type
    if _is_deletion(event) and (snapshot.modern is None or snapshot.group_type != group_type):
        # As the first record of all it is a departed member's. That a group lived before is not known from it (rule 2).
        return snapshot if snapshot.position is None else msgspec.structs.replace(snapshot, position=event.position)
    living = _as_living(snapshot, event, group_type)
    modern = replay(living.modern or ModernGroup(), event)
    totals, generation_id = living.totals, living.generation_id
    if isinstance(event, EpochWritten):
        totals, _ = _count(living, event.epoch, event.position.offsets_topic_offset, becomes_empty=not modern.members)
        generation_id = event.epoch
    return msgspec.structs.replace(
        living,
        group_type=group_type,
        state=_state(group_type, modern),
        position=event.position,
        generation_id=generation_id,
        modern=modern,
        totals=totals,
    )


def _describe(snapshot: GroupSnapshot, event: GroupDescribed) -> GroupSnapshot:
    modern = _described_modern(event.modern) if event.modern else None
    if _is_unchanged(snapshot, event, modern):
        return snapshot
    living = _as_living(snapshot, event, event.group_type)
    described = msgspec.structs.replace(
        living,
        group_type=event.group_type,
        state=event.state,
        position=event.position,
        generation_id=modern.epoch if modern else None,
        classic=event.classic,
        modern=modern,
        totals=_count_described(living, event),
    )
    # A group that rebalances tells no subscriptions; it is likely to have the same ones afterwards.
    return described if event.state in REBALANCING else _without_unsubscribed_topics(described)


def _described_modern(description: ModernDescription) -> ModernGroup:
    described = ModernGroup(
        epoch=description.epoch,
        assignment_epoch=description.assignment_epoch,
        members=description.members,
        targets=description.targets,
        currents=description.currents,
        topic_names=description.names,
        assignor=description.assignor,
    )
    return recount_members(described)


def _is_unchanged(snapshot: GroupSnapshot, event: GroupDescribed, modern: ModernGroup | None) -> bool:
    """Whether nothing but the time is new; names are left out, for a deleted topic keeps its last."""
    if (snapshot.group_type, snapshot.state, snapshot.classic) != (event.group_type, event.state, event.classic):
        return False
    if snapshot.modern is None or modern is None:
        return snapshot.modern is modern
    return msgspec.structs.replace(snapshot.modern, topic_names={}) == msgspec.structs.replace(modern, topic_names={})


def _count_described(snapshot: GroupSnapshot, event: GroupDescribed) -> GroupTotals:
    totals = snapshot.totals
    if event.modern is not None:
        becomes_empty = not event.modern.members
        return _count(snapshot, event.modern.epoch, event.position.offsets_topic_offset, becomes_empty=becomes_empty)[0]
    if snapshot.classic is None or event.classic is None or event.state in REBALANCING:
        return totals
    if snapshot.state not in REBALANCING and not _has_rebalanced(snapshot.classic, event.classic):
        return totals
    if event.state == EMPTY:
        return msgspec.structs.replace(totals, empty_transitions=totals.empty_transitions + 1)
    return msgspec.structs.replace(totals, rebalances=totals.rebalances + 1)


def _has_rebalanced(before: GroupMetadata, after: GroupMetadata) -> bool:
    """Whether the second settled description cannot be of the first one's generation.

    A member that says something new has joined again. A static member that rejoins does so within the generation, under
    a new member id and with the old assignment: that alone proves nothing.
    """
    known = {member.group_instance_id or member.member_id: member for member in before.members}
    found = {member.group_instance_id or member.member_id: member for member in after.members}
    if before.protocol != after.protocol or known.keys() != found.keys():
        return True
    return any(
        member.assignment != known[name].assignment
        or (member.member_id == known[name].member_id and member.subscription != known[name].subscription)
        for name, member in found.items()
    )


def _is_deletion(event: ModernEvent | DecodeFailed) -> bool:
    """Whether the record is a deletion: its one field beside position, type and key is None."""
    return msgspec.structs.astuple(event)[-1] is None


def _state(group_type: str, modern: ModernGroup) -> str:
    """`ConsumerGroup.maybeUpdateGroupState`, and its like in share and streams groups."""
    if not modern.shows_state:
        return UNKNOWN
    if not modern.members:
        return EMPTY
    if group_type == SHARE:
        return STABLE
    if group_type == STREAMS:
        return UNKNOWN
    if is_assigning(modern):
        return ASSIGNING
    return RECONCILING if modern.unreconciled_members else STABLE


def _store_topics(snapshot: GroupSnapshot, event: TopicsSampled) -> GroupSnapshot:
    """Keep the later sample of each topic, in whatever order two of them arrive, and what its id stands for."""
    topics = dict(snapshot.topics)
    for topic in snapshot.subscribed_topics():
        sampled, known = event.topics.get(topic), topics.get(topic)
        if sampled is not None and (known is None or sampled.sampled_at_ms > known.sampled_at_ms):
            topics[topic] = _with_known_since(known, sampled)
    known_now = msgspec.structs.replace(snapshot, topics=topics)
    return known_now if snapshot.modern is None else _with_names(known_now, snapshot.modern)


def _with_known_since(known: TopicMetadata | None, sampled: TopicMetadata) -> TopicMetadata:
    """The later sample, with the time since when all samples agree."""
    if known is None or (known.partitions, known.topic_id) != (sampled.partitions, sampled.topic_id):
        return sampled
    return msgspec.structs.replace(sampled, since_ms=known.known_since_ms)


def _with_names(snapshot: GroupSnapshot, modern: ModernGroup) -> GroupSnapshot:
    """Name the ids of sampled topics; an id nobody holds any more, or whose name another topic has now, loses its."""
    current = {known.topic_id: topic for topic, known in snapshot.topics.items() if known.topic_id is not None}
    held, taken = modern.topic_ids(), set(current.values())
    kept = {of: topic for of, topic in modern.topic_names.items() if of in held and topic not in taken}
    names = {**kept, **current}
    return msgspec.structs.replace(snapshot, modern=msgspec.structs.replace(modern, topic_names=names))


def _settle_skips(snapshot: GroupSnapshot, event: SkipSettled) -> GroupSnapshot:
    settled = [skip for skip in snapshot.unsettled_skips if skip.before_offset == event.offsets_topic_offset]
    kept = tuple(skip for skip in snapshot.unsettled_skips if skip.before_offset != event.offsets_topic_offset)
    failed = sum(skip.generations for skip in settled) if event.log_was_whole else 0
    totals = msgspec.structs.replace(snapshot.totals, rebalances_failed=snapshot.totals.rebalances_failed + failed)
    return msgspec.structs.replace(snapshot, unsettled_skips=kept, totals=totals)


def _store_assignor(snapshot: GroupSnapshot, event: AssignorReported) -> GroupSnapshot:
    """Rule 13."""
    modern = with_reported_assignor(snapshot.modern, event) if snapshot.modern else None
    return msgspec.structs.replace(snapshot, modern=modern)


def _mark_gone(snapshot: GroupSnapshot, event: GroupVanished) -> GroupSnapshot:
    if snapshot.is_over or snapshot.position is None or snapshot.position.offsets_topic_offset != event.after_offset:
        return snapshot
    if event.offsets_topic_partition not in {None, snapshot.position.offsets_topic_partition}:
        return snapshot
    # Later than the record, whatever the clocks say: the last of the group's rows is the one with the latest time.
    gone_at_ms = max(event.listed_at_ms, snapshot.position.timestamp_ms + 1)
    position = msgspec.structs.replace(snapshot.position, timestamp_ms=gone_at_ms)
    return msgspec.structs.replace(snapshot, state=GONE, position=position, classic=None, modern=None, topics={})


def _mark_dead(snapshot: GroupSnapshot, event: GroupTombstoned) -> GroupSnapshot:
    return msgspec.structs.replace(snapshot, state=DEAD, position=event.position, classic=None, modern=None, topics={})
