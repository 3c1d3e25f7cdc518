"""Decides which records of a group get a row in the tables.

A classic group has one record for all members. The other types have one or more records per member after every change.
Each row contains all members. If each record had a row, the table size would grow with the square of the member count.
So only these records get a row:

- each record of a classic group,
- each group epoch,
- each record of an assignment epoch, because the coordinator writes all targets before this record,
- each current assignment and each undecodable record that changes the group's state,
- the record after which every member has reached its target,
- the record after which every member has acknowledged its target,
- the end of the group: its tombstone, or the proof that the group does not exist any more.

The rules do not depend on how records are divided into batches. A coordinator's response gets a row if the response
differs from the previous response in more than the members' progress towards their targets.
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


def is_reportable(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    """Return True if the table must contain a row for the snapshot `after`.

    The result is also True if the row was written with an earlier checkpoint (`is_reread`), because the monitor
    compares the next row with this row.
    """
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
    """Return True if two descriptions differ. The members' progress towards their targets is not compared."""

    def compared(snapshot: GroupSnapshot) -> tuple[object, ...]:
        assignment_epoch = snapshot.modern.assignment_epoch if snapshot.modern else None
        return snapshot.group_type, snapshot.state, snapshot.generation_id, assignment_epoch, snapshot.classic

    return compared(before) != compared(after)


def _is_acknowledged(snapshot: GroupSnapshot) -> bool:
    """Return True if every member has acknowledged its target.

    The row after the last acknowledgement shows which members wait for partitions that other members must release.
    """
    return snapshot.modern is not None and not snapshot.modern.unacknowledged_members


def _is_reconciled(snapshot: GroupSnapshot) -> bool:
    return snapshot.modern is not None and not snapshot.modern.unreconciled_members


def is_reread(snapshot: GroupSnapshot) -> bool:
    """Return True if the snapshot is older than the last row that was written with an earlier checkpoint (`Resume`).

    The last row is written again, because its verdict may be missing. If its state is Gone, it is not written again.
    """
    resume, position = snapshot.resume, snapshot.position
    if resume is None or position is None:
        return False
    if snapshot.state == GONE:
        return resume.state == GONE
    is_at_resume = position.offsets_topic_offset == resume.offsets_topic_offset
    return not is_at_resume and not resume.is_before(position)


def awaits_names(snapshot: GroupSnapshot) -> bool:
    """Return True if the snapshot has topic ids without a name, and a later sample can contain their names.

    If every subscribed topic was sampled after the record, a topic id without a name belongs to a deleted topic.
    """
    modern, position = snapshot.modern, snapshot.position
    if modern is None or position is None or not modern.unnamed_topic_ids():
        return False
    return any(
        (sampled := snapshot.topics.get(topic)) is None or sampled.sampled_at_ms < position.timestamp_ms
        for topic in modern.subscribed_topics()
    )
