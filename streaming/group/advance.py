"""Applies an event to the state of a group.

The terms are the same as in Kafka's coordinator (`ClassicGroup`, `ConsumerGroup`, `GroupMetadataManager`). "Generation"
means the generation of a classic group, or the group epoch of any other group. Rules:

1. A record at or before the position of the group's last record was already read and does not change the state. So the
   counts stay correct if the monitor reads the log a second time. Only positions in the same partition are compared. If
   the partition count of `__consumer_offsets` changes, a group can move to a different partition
   (`combine.own_partitions`). In that partition, the group counts as created again (rule 5).
2. The first record that the monitor reads of a group does not change the counts, because earlier records are unknown.
3. If a record has the same generation as the previous record, the group has not rebalanced. Such a record means that a
   static member rejoined with a new member id and its old assignment.
4. If the generation of a classic group is higher than before, the difference is added to the number of rebalances. A
   transition to Empty is not a rebalance and has its own counter. So if the group has no members now, the difference
   minus 1 is added. The coordinator of any other group can raise the epoch several times before it computes a new
   assignment. So each assignment epoch that is higher than the previous one counts as one rebalance.
5. If the generation is lower than before, or if the previous record was a tombstone, the group was created again. The
   record does not change the number of rebalances.
6. An upgrade from the classic protocol, or a downgrade to it, starts with a tombstone. The next record is from the same
   group and has a different group type. The coordinator writes the tombstone and the next record in one append, so both
   records have the same timestamp. The group keeps its counts. If the timestamps differ, an operator deleted the group,
   and the group was created again (rule 5). Share groups are never upgraded or downgraded. An empty group can start
   again at a lower generation, which does not change the counts. For a streams group, this rule also applies to the
   second record after the tombstone. The first record is then the tombstone of the topology, which creates no event.
7. The generation of a classic group can increase by more than 1 from one record to the next. The state then contains a
   `Skip` for the generations without a record. The monitor checks whether it has read the complete log between the
   two records, and then removes the `Skip`. If the group is deleted before this check, the `Skip` stays. So the counts
   do not depend on the time of the check. If the record of an epoch is missing for any other group type, compaction
   removed the record.
8. The monitor computes the state of a consumer or share group as the coordinator does. If records are missing, the
   state is Unknown. For streams groups, the records contain only a part of the state. So the state of a streams group
   is Empty or Unknown.
9. If the coordinator reports that a group does not exist, the group's state becomes Gone. If the monitor has already
   read a newer record of the group, the state does not change. The time of the state Gone is always later than the
   group's last record.
10. A coordinator's response (`GroupDescribed`) that differs from the previous response replaces the whole state. If the
    group type differs, the group was upgraded or downgraded. For a classic group, the response contains no generation.
    So a response counts as one rebalance (or one transition to Empty) only if two conditions are true. First, the
    response shows that the group is not in a rebalance. Second, the previous response showed a rebalance, or the two
    responses differ in the protocol, members, subscriptions or assignments. The number of rebalances is a lower bound,
    because the monitor can miss rebalances between two responses.
11. With a new checkpoint, the monitor reads the log again from its start. If the tables contain counts of the group
    from an earlier checkpoint, the monitor continues these counts. It counts only the records after the group's last
    row in the tables (`Resume`).
12. If a record cannot be decoded, the state of the group is Unknown, because the previous state is outdated. A classic
    group stays Unknown until its next record. The first record after an undecodable record does not change the counts.
    For other group types, each record replaces one entry, for example the metadata of a member. A group with an
    undecodable entry stays Unknown until the next record of the same entry. The metadata of topics is kept, because a
    group's record does not change topics.
13. A coordinator can report the assignor of a KIP-848 group at an epoch. From this epoch on, the monitor uses the
    assignor until the coordinator reports a different one. The assignors that members specify have priority.
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
"""Maximum number of `Skip` values in the state of a group, which keeps the state small in a rebalance storm. Above the
limit, later skips are not stored and never count as failed rebalances. So the count never decreases.
"""


def advance(snapshot: GroupSnapshot, event: GroupEvent) -> GroupSnapshot:
    """Return the snapshot after the event."""
    if isinstance(event, ExternalFact):
        return apply_fact(snapshot, event)
    known, read = snapshot.position, event.position
    is_moved = known is not None and read.offsets_topic_partition != known.offsets_topic_partition
    if known is not None and not is_moved and read.offsets_topic_offset <= known.offsets_topic_offset:
        return snapshot  # rule 1
    if snapshot.resume is None:
        return _apply(_leave_earlier_partition(snapshot, event), event)
    if snapshot.resume.is_before(event.position):
        resumed = _resume_counting(snapshot, snapshot.resume, event.position.offsets_topic_partition)
        return _apply(_leave_earlier_partition(resumed, event), event)
    return msgspec.structs.replace(_apply(snapshot, event), totals=snapshot.resume.totals, unsettled_skips=())


def _resume_counting(snapshot: GroupSnapshot, resume: Resume, offsets_topic_partition: int) -> GroupSnapshot:
    """Continue the counts from the last row of an earlier checkpoint (rule 11).

    If compaction removed all earlier records of the group, the result takes its values from this row.
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
        # If compaction removed all earlier records, only the tombstone shows the type of the group.
        group_type = event.group_type if snapshot.position is None else snapshot.group_type
        return msgspec.structs.replace(
            snapshot,
            group_type=group_type,
            state=DEAD,
            position=event.position,
            classic=None,
            modern=None,
            topics={},
        )
    if isinstance(event, GroupMetadataWritten):
        return _apply_metadata(_as_living(snapshot, event, CLASSIC), event)
    if isinstance(event, GroupDescribed):
        return _apply_description(snapshot, event)
    if isinstance(event, DecodeFailed) and event.group_type == CLASSIC:  # rule 12
        living, position = _as_living(snapshot, event, CLASSIC), event.position
        return msgspec.structs.replace(
            living, group_type=CLASSIC, state=UNKNOWN, position=position, generation_id=None, classic=None
        )
    return _replay(snapshot, event)


def _leave_earlier_partition(snapshot: GroupSnapshot, event: LogEvent) -> GroupSnapshot:
    """If the event is from a different partition, mark the group in its earlier partition as Gone.

    The `Skip` values are removed, because only the log of the earlier partition can settle them.
    """
    known = snapshot.position
    if known is None or known.offsets_topic_partition == event.position.offsets_topic_partition:
        return snapshot
    return msgspec.structs.replace(snapshot, state=GONE, classic=None, modern=None, topics={}, unsettled_skips=())


def _as_living(snapshot: GroupSnapshot, event: LogEvent, group_type: str) -> GroupSnapshot:
    """Return the snapshot to which a record of this group type is applied.

    If the stored group was upgraded or downgraded (rule 6), or created again (rule 5), the result has no members.
    """
    if snapshot.position is None or (snapshot.group_type == group_type and not snapshot.is_over):
        return snapshot
    living = msgspec.structs.replace(
        snapshot, group_type=group_type, state=UNKNOWN, classic=None, modern=None, topics={}
    )
    if snapshot.state == DEAD and _is_in_append_of(snapshot.position, snapshot.group_type, event, group_type):
        return msgspec.structs.replace(living, is_carried_over=True)
    if isinstance(event, GroupDescribed) and not snapshot.is_over:
        return msgspec.structs.replace(living, generation_id=None, is_carried_over=True)
    totals = msgspec.structs.replace(snapshot.totals, incarnations=snapshot.totals.incarnations + 1)
    return msgspec.structs.replace(living, generation_id=None, totals=totals, is_carried_over=False)


def _is_in_append_of(tombstone: Position, tombstone_type: str, event: LogEvent, group_type: str) -> bool:
    """Return True if the event and the tombstone belong to one append, which changes the group type (rule 6)."""
    offsets_between = event.position.offsets_topic_offset - tombstone.offsets_topic_offset - 1
    is_next_record = offsets_between == 0 or (offsets_between == 1 and tombstone_type == STREAMS)
    is_same_time = event.position.timestamp_ms == tombstone.timestamp_ms
    types = {tombstone_type, group_type}
    return is_next_record and is_same_time and len(types) > 1 and SHARE not in types


def _apply_metadata(snapshot: GroupSnapshot, event: GroupMetadataWritten) -> GroupSnapshot:
    metadata = event.metadata
    state = STABLE if metadata.members else EMPTY
    totals, steps = _count_generations(snapshot, metadata.generation_id, becomes_empty=state == EMPTY)
    if steps:
        totals = msgspec.structs.replace(totals, rebalances=totals.rebalances + steps - (state == EMPTY))
    skips = snapshot.unsettled_skips
    if steps > 1 and snapshot.position is not None and len(skips) < KEPT_SKIPS:
        skips += (Skip(snapshot.position.offsets_topic_offset, event.position.offsets_topic_offset, steps - 1),)
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
    return _without_unneeded_topics(advanced)


def _count_generations(
    snapshot: GroupSnapshot, generation_id: int | None, *, becomes_empty: bool
) -> tuple[GroupTotals, int]:
    """Count a new incarnation or transition to Empty. Return the totals and the increase of the generation or epoch."""
    totals = snapshot.totals
    if snapshot.position is None or snapshot.generation_id is None or generation_id is None:
        return totals, 0
    is_first_record = snapshot.classic is None and (snapshot.modern is None or snapshot.modern.epoch is None)
    steps = generation_id - snapshot.generation_id
    if steps < 0:
        return msgspec.structs.replace(totals, incarnations=totals.incarnations + (not is_first_record)), 0
    is_transition = becomes_empty and steps > 0
    return msgspec.structs.replace(totals, empty_transitions=totals.empty_transitions + is_transition), steps


def _count_assignment(snapshot: GroupSnapshot, totals: GroupTotals, assignment_epoch: int | None) -> GroupTotals:
    """Count a new assignment of a consumer, share or streams group (rule 4).

    After a rebuild of the checkpoint, the assignment epoch is compared with the epoch in the last row.
    """
    known = snapshot.generation_id if snapshot.modern is None else snapshot.modern.assignment_epoch
    if known is None or assignment_epoch is None or assignment_epoch <= known:
        return totals
    return msgspec.structs.replace(totals, rebalances=totals.rebalances + 1)


def _without_unneeded_topics(snapshot: GroupSnapshot) -> GroupSnapshot:
    """Remove the metadata of topics that the group does not need any more, to limit the size of the state."""
    needed = set(snapshot.topics_to_sample())
    kept = {topic: known for topic, known in snapshot.topics.items() if topic in needed}
    return msgspec.structs.replace(snapshot, topics=kept)


def _replay(snapshot: GroupSnapshot, event: ModernEvent | DecodeFailed) -> GroupSnapshot:
    """Apply one record of a consumer, share or streams group."""
    group_type = CONSUMER if isinstance(event, RegexResolved | TopicsNamed) else event.group_type
    if _is_deletion(event) and (snapshot.modern is None or snapshot.group_type != group_type):
        # The group does not exist any more, or this is its first known record. Such a deletion is ignored (rule 2).
        return snapshot if snapshot.position is None else msgspec.structs.replace(snapshot, position=event.position)
    living = _as_living(snapshot, event, group_type)
    modern = replay(living.modern or ModernGroup(), event)
    totals, generation_id = _count_assignment(living, living.totals, modern.assignment_epoch), living.generation_id
    if isinstance(event, EpochWritten):
        totals, _ = _count_generations(living, event.epoch, becomes_empty=not modern.members)
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
    modern = None
    if (description := event.modern) is not None:
        described = ModernGroup(
            epoch=description.epoch,
            assignment_epoch=description.assignment_epoch,
            members=description.members,
            targets=description.targets,
            currents=description.currents,
            topic_names=description.names,
            assignor=description.assignor,
        )
        modern = recount_members(described)
    if _is_unchanged(snapshot, event, modern):
        return snapshot
    living = _as_living(snapshot, event, event.group_type)
    advanced = msgspec.structs.replace(
        living,
        group_type=event.group_type,
        state=event.state,
        position=event.position,
        generation_id=modern.epoch if modern else None,
        classic=event.classic,
        modern=modern,
        totals=_count_described(living, event),
    )
    return _without_unneeded_topics(advanced)


def _is_unchanged(snapshot: GroupSnapshot, event: GroupDescribed, modern: ModernGroup | None) -> bool:
    """Return True if the response and the snapshot differ only in their times.

    Topic names are not compared, because the snapshot keeps the last name of a deleted topic.
    """
    if (snapshot.group_type, snapshot.state, snapshot.classic) != (event.group_type, event.state, event.classic):
        return False
    if snapshot.modern is None or modern is None:
        return snapshot.modern is modern
    return msgspec.structs.replace(snapshot.modern, topic_names={}) == msgspec.structs.replace(modern, topic_names={})


def _count_described(snapshot: GroupSnapshot, event: GroupDescribed) -> GroupTotals:
    totals = snapshot.totals
    if event.modern is not None:
        totals, _ = _count_generations(snapshot, event.modern.epoch, becomes_empty=not event.modern.members)
        return _count_assignment(snapshot, totals, event.modern.assignment_epoch)
    if snapshot.classic is None or event.classic is None or event.state in REBALANCING:
        return totals
    if snapshot.state not in REBALANCING and not _has_rebalanced(snapshot.classic, event.classic):
        return totals
    if event.state == EMPTY:
        return msgspec.structs.replace(totals, empty_transitions=totals.empty_transitions + 1)
    return msgspec.structs.replace(totals, rebalances=totals.rebalances + 1)


def _has_rebalanced(before: GroupMetadata, after: GroupMetadata) -> bool:
    """Return True if two descriptions prove that the group has rebalanced between them.

    No rebalance ran at the time of either description.

    If a member with the same id has a new subscription, the member has joined again. The new member id of a static
    member proves nothing, because a static member can rejoin without a rebalance (rule 3).
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
    """Return True if the record deletes an entry. In this case, the last field of the event is None."""
    return msgspec.structs.astuple(event)[-1] is None


def _compute_state(group_type: str, modern: ModernGroup) -> str:
    """Compute the group's state in the same way as `maybeUpdateGroupState` in Kafka's class for this group type."""
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
