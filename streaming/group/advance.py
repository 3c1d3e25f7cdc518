"""Applies an event to the state of a group.

The terms are those of the coordinator (`ClassicGroup`, `ConsumerGroup`, `GroupMetadataManager`). "Generation" means the
generation of a classic group and the group epoch of any other group. Rules:

1. A record at or before the last position was already read. It changes nothing, so the log can be read again. Only
   positions in the same partition are compared. A record from a different partition shows that the group moved there,
   because the partition count of `__consumer_offsets` changed (`combine.own_partitions`). In the new partition, the
   group is created again (rule 5).
2. The first record of a group changes no counts, because the earlier records of the group are unknown.
3. A record with the same generation is not a rebalance: a static member rejoined with a new member id and got the old
   assignment.
4. If the generation is higher, the difference is added to the counts. If the group has no members at the higher
   generation, the last step is a transition to Empty. Such a transition is counted separately.
5. A lower generation, or any record after a tombstone, means that the group was created again. The counts stay, and
   this record adds nothing.
6. If the next record after a tombstone is a record of the same group with a different type, the group was upgraded to
   the consumer protocol or downgraded from it. The coordinator writes the tombstone and the record in one append.
   Counting continues. If the group was empty and starts again at a lower generation, the counts do not change. For a
   streams group, the last record is the tombstone of its topology. This tombstone is not an event. So for a streams
   group, the second record after the tombstone counts as the next record, too.
7. In a classic group, generation numbers without a record are stored as a `Skip`. It stays until the monitor knows
   whether the log was complete there. A `Skip` stays even if the group is deleted, because the counts must not depend
   on the time of the decision. For other group types, the coordinator writes a record for every epoch. If this record
   is missing, compaction removed it.
8. The state of a consumer or share group is computed from its records, as in the coordinator. The state is Unknown if
   records are missing. For streams groups, the records contain only a part of the state, so a streams group is Empty or
   Unknown.
9. If the brokers do not have a group any more, the group is Gone, unless it has a record after the listing. The end of
   the group is later than its last record.
10. A coordinator's answer (`GroupDescribed`) replaces the whole state. An answer without a change has no effect. For a
    classic group, the answer has no generation. If an answer shows the group outside a rebalance, it adds one
    rebalance, or one transition to Empty, in two cases. In the first case, members, subscriptions or assignments differ
    from the previous answer. In the second case, the previous answer showed a rebalance. This count is a lower bound.
    If the answer has a different group type, the group was upgraded or downgraded.
11. If the tables contain counts of the group from an earlier checkpoint, the log is read again from its start. Records
    up to the last row of the tables are not counted (`Resume`).
12. An undecodable record makes the group Unknown, because the last value is out of date. A classic group stays Unknown
    until its next record. That record adds nothing to the counts. Any other group stays Unknown until the next record
    of the same entry.
13. A coordinator can report the assignor of a KIP-848 group. The report is used for the epoch of the report, and only
    if no member names an assignor. It is also used for later epochs, until a member names an assignor or the
    coordinator reports a different assignor.
"""

from __future__ import annotations

import msgspec

from streaming.events import (
    CLASSIC,
    CONSUMER,
    SHARE,
    STREAMS,
    DecodeFailed,
    EpochWritten,
    ExternalFact,
    GroupDescribed,
    GroupEvent,
    GroupMetadataWritten,
    GroupTombstoned,
    LogEvent,
    ModernDescription,
    ModernEvent,
    Position,
    RegexResolved,
    TopicsNamed,
)
from streaming.group.apply_fact import apply_fact
from streaming.group.modern import ModernGroup, is_assigning, recount_members, replay
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
"""Maximum number of undecided skips per group. This limits the size of the state in a rebalance storm.

The oldest skips are removed and never count as failed rebalances.
"""


def advance(snapshot: GroupSnapshot, event: GroupEvent) -> GroupSnapshot:
    """Return the snapshot after the event. This is a pure function: the same arguments always have the same result."""
    return apply_fact(snapshot, event) if isinstance(event, ExternalFact) else _apply_log_event(snapshot, event)


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
    """Return the snapshot after the log was read again up to the last row. Counting continues from this snapshot.

    Compaction may have removed all earlier records of the group.
    """
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
        return _apply_metadata(_as_living(snapshot, event, CLASSIC), event)
    if isinstance(event, GroupDescribed):
        return _apply_description(snapshot, event)
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
    """Mark the group as Gone in its earlier partition if the event is from a different partition.

    Its undecided skips are removed, because only the state of the earlier partition could decide them.
    """
    if not _is_in_other_partition(snapshot, event):
        return snapshot
    return msgspec.structs.replace(snapshot, state=GONE, classic=None, modern=None, topics={}, unsettled_skips=())


def _as_living(snapshot: GroupSnapshot, event: LogEvent, group_type: str) -> GroupSnapshot:
    """Return the snapshot to which a record of this group type applies.

    This is one of three: the same snapshot, the group after an upgrade or downgrade (rule 6), or the group that was
    created again (rule 5).
    """
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


def _apply_metadata(snapshot: GroupSnapshot, event: GroupMetadataWritten) -> GroupSnapshot:
    metadata = event.metadata
    state = STABLE if metadata.members else EMPTY
    totals, skip = _count_generations(
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


def _count_generations(
    snapshot: GroupSnapshot, generation_id: int | None, offsets_topic_offset: int, *, becomes_empty: bool
) -> tuple[GroupTotals, Skip | None]:
    totals = snapshot.totals
    if snapshot.position is None or snapshot.generation_id is None or generation_id is None:
        return totals, None
    is_first_record = snapshot.classic is None and (snapshot.modern is None or snapshot.modern.epoch is None)
    if generation_id < snapshot.generation_id:
        incarnations = totals.incarnations + (not is_first_record)
        return msgspec.structs.replace(totals, incarnations=incarnations), None
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
    """Remove the metadata of topics without subscribed members. This limits the size of the state."""
    subscribed = set(snapshot.subscribed_topics())
    kept = {topic: known for topic, known in snapshot.topics.items() if topic in subscribed}
    return msgspec.structs.replace(snapshot, topics=kept)


def _mark_unknown(snapshot: GroupSnapshot, event: DecodeFailed) -> GroupSnapshot:
    """Apply rule 12 to a classic group: its state, members and generation are unknown."""
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
    """Apply one entry of a consumer, share or streams group.

    If the group does not exist any more, a deletion changes only the position.
    """
    group_type = CONSUMER if isinstance(event, RegexResolved | TopicsNamed) else event.group_type
    if _is_deletion(event) and (snapshot.modern is None or snapshot.group_type != group_type):
        # A deletion as the first record is of a member that left. It does not show an earlier group (rule 2).
        return snapshot if snapshot.position is None else msgspec.structs.replace(snapshot, position=event.position)
    living = _as_living(snapshot, event, group_type)
    modern = replay(living.modern or ModernGroup(), event)
    totals, generation_id = living.totals, living.generation_id
    if isinstance(event, EpochWritten):
        totals, _ = _count_generations(
            living, event.epoch, event.position.offsets_topic_offset, becomes_empty=not modern.members
        )
        generation_id = event.epoch
    return msgspec.structs.replace(
        living,
        group_type=group_type,
        state=_compute_state(group_type, modern),
        position=event.position,
        generation_id=generation_id,
        modern=modern,
        totals=totals,
    )


def _apply_description(snapshot: GroupSnapshot, event: GroupDescribed) -> GroupSnapshot:
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
    # In a rebalance the answer has no subscriptions. They are probably the same afterwards, so the topics stay.
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
    """Return True if only the time is new.

    Topic names are not compared, because a deleted topic still has its last name.
    """
    if (snapshot.group_type, snapshot.state, snapshot.classic) != (event.group_type, event.state, event.classic):
        return False
    if snapshot.modern is None or modern is None:
        return snapshot.modern is modern
    return msgspec.structs.replace(snapshot.modern, topic_names={}) == msgspec.structs.replace(modern, topic_names={})


def _count_described(snapshot: GroupSnapshot, event: GroupDescribed) -> GroupTotals:
    totals = snapshot.totals
    if event.modern is not None:
        becomes_empty = not event.modern.members
        return _count_generations(
            snapshot, event.modern.epoch, event.position.offsets_topic_offset, becomes_empty=becomes_empty
        )[0]
    if snapshot.classic is None or event.classic is None or event.state in REBALANCING:
        return totals
    if snapshot.state not in REBALANCING and not _has_rebalanced(snapshot.classic, event.classic):
        return totals
    if event.state == EMPTY:
        return msgspec.structs.replace(totals, empty_transitions=totals.empty_transitions + 1)
    return msgspec.structs.replace(totals, rebalances=totals.rebalances + 1)


def _has_rebalanced(before: GroupMetadata, after: GroupMetadata) -> bool:
    """Return True if the group has rebalanced between two descriptions.

    Both descriptions must show the group outside a rebalance. A new subscription proves that the member has joined
    again. A static member can rejoin within the generation, with a new member id and the old assignment. So a new
    member id alone proves nothing.
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
    """Return True if the record is a deletion: its last field is None. The fields before are position, type and key."""
    return msgspec.structs.astuple(event)[-1] is None


def _compute_state(group_type: str, modern: ModernGroup) -> str:
    """Compute the state as `ConsumerGroup.maybeUpdateGroupState` does, and the same method for other group types."""
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


def _mark_dead(snapshot: GroupSnapshot, event: GroupTombstoned) -> GroupSnapshot:
    return msgspec.structs.replace(snapshot, state=DEAD, position=event.position, classic=None, modern=None, topics={})
