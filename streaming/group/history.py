"""Decides which records of a group get a row in the tables.

A classic group is one record. The other types write one or more records per member for every change, and a table row
has all members. A row for each record would make the number of cells grow with the square of the members. So these
records get a row:

- each record of a classic group,
- each group epoch,
- each assignment epoch, because all targets are written by then,
- a current assignment or an undecodable record that changes the group's state,
- the record after which every member has its target (share and streams groups have no state for this),
- the record after which every member has acknowledged its target,
- the end of the group: its tombstone, or the proof that the brokers do not have it any more.

The choice does not depend on how records are divided into batches. A coordinator's answer gets a row if it differs from
the answer before in more than the members' progress towards their targets.
"""

from __future__ import annotations

from streaming.events import (
    CurrentWritten,
    DecodeFailed,
    EpochWritten,
    GroupDescribed,
    GroupEvent,
    GroupMetadataWritten,
    GroupTombstoned,
    GroupVanished,
    TargetEpochWritten,
)
from streaming.group.snapshot import GONE, GroupSnapshot


def should_report(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    """Return True if the snapshot after the event gets a row."""
    return not is_reread(after) and _is_reportable(before, event, after)


def was_reported(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    """Return True if an earlier checkpoint has written this row.

    The row is not written again, but the next row is compared with it.
    """
    return is_reread(after) and _is_reportable(before, event, after)


def _is_reportable(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    if isinstance(event, GroupVanished):
        return after.state != before.state
    if after.position == before.position:
        return False
    if isinstance(event, GroupDescribed):
        return _has_changed(before, after)
    if isinstance(event, TargetEpochWritten):
        return event.epoch is not None
    has_new_state = after.state != before.state
    if isinstance(event, CurrentWritten):
        return event.current is not None and (
            has_new_state
            or _is_reconciled(before) < _is_reconciled(after)
            or _is_acknowledged(before) < _is_acknowledged(after)
        )
    is_lost = isinstance(event, DecodeFailed) and has_new_state
    return is_lost or isinstance(event, GroupMetadataWritten | GroupTombstoned | EpochWritten)


def _has_changed(before: GroupSnapshot, after: GroupSnapshot) -> bool:
    """Return True if two descriptions differ in more than the members' progress towards their targets."""

    def compared(snapshot: GroupSnapshot) -> tuple[object, ...]:
        assignment_epoch = snapshot.modern.assignment_epoch if snapshot.modern else None
        return snapshot.group_type, snapshot.state, snapshot.generation_id, assignment_epoch, snapshot.classic

    return compared(before) != compared(after)


def _is_acknowledged(snapshot: GroupSnapshot) -> bool:
    """Return True if every member has acknowledged its target.

    A member that does not release its partitions delays other members. A row from this time on shows which member waits
    for which.
    """
    return snapshot.modern is not None and not snapshot.modern.unacknowledged_members


def _is_reconciled(snapshot: GroupSnapshot) -> bool:
    return snapshot.modern is not None and not snapshot.modern.unreconciled_members


def is_reread(snapshot: GroupSnapshot) -> bool:
    """Return True if the snapshot's record is before the last row that an earlier checkpoint wrote.

    The last row itself is written again, because its verdict may be missing. No record shows that a group is Gone. So
    this state was written before if it is the state in the last row.
    """
    resume, position = snapshot.resume, snapshot.position
    if resume is None or position is None:
        return False
    if snapshot.state == GONE:
        return resume.state == GONE
    is_at_resume = position.offsets_topic_offset == resume.offsets_topic_offset
    return not is_at_resume and not resume.is_before(position)


def awaits_names(snapshot: GroupSnapshot) -> bool:
    """Return True if the snapshot has topic ids without a name, and a later sample may have their names.

    If every subscribed topic was sampled after the record and an id still has no name, its topic was deleted. Then its
    name stays unknown.
    """
    modern, position = snapshot.modern, snapshot.position
    if modern is None or position is None or not modern.unnamed_topic_ids():
        return False
    return any(
        (sampled := snapshot.topics.get(topic)) is None or sampled.sampled_at_ms < position.timestamp_ms
        for topic in modern.subscribed_topics()
    )
