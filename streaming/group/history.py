"""Which records of a group are told one by one: those after which the group is another than before.

A classic group is one record. The others write one record a member and more for every change, so a row for each would
be the square of the group's size. Told are: each record of a classic group, each epoch, each assignment epoch (the
targets are all there then), the record after which the state is another, the one after which every member has its
target (share and streams groups have no state for that), the one after which every member has heard of it, and the
end. Whether records come in one batch or in twenty makes no difference. Of a coordinator's answers those are told that
a record would be for.
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
    """Whether the snapshot after the event goes into the history."""
    return not is_reread(after) and _makes_another(before, event, after)


def was_reported(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    """Whether an earlier checkpoint told it: no row comes of it, and what comes after is still compared with it."""
    return is_reread(after) and _makes_another(before, event, after)


def _makes_another(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    if isinstance(event, GroupVanished):
        return after.state != before.state
    if after.position == before.position:
        return False
    if isinstance(event, GroupDescribed):
        return _is_another(before, after)
    if isinstance(event, TargetEpochWritten):
        return event.epoch is not None
    has_new_state = after.state != before.state
    if isinstance(event, CurrentWritten):
        return event.current is not None and (
            has_new_state or _is_settled(before) < _is_settled(after) or _have_heard(before) < _have_heard(after)
        )
    tells_by_state = isinstance(event, DecodeFailed) and has_new_state
    return tells_by_state or isinstance(event, GroupMetadataWritten | GroupTombstoned | EpochWritten)


def _is_another(before: GroupSnapshot, after: GroupSnapshot) -> bool:
    """Whether more changed between two descriptions than how far members are on their way to their targets."""

    def gist(snapshot: GroupSnapshot) -> tuple[object, ...]:
        assignment_epoch = snapshot.modern.assignment_epoch if snapshot.modern else None
        return snapshot.group_type, snapshot.state, snapshot.generation_id, assignment_epoch, snapshot.classic

    return gist(before) != gist(after)


def _have_heard(snapshot: GroupSnapshot) -> bool:
    """Whether every member has answered to its target.

    A member that gives nothing up holds all others back; only then does a row show who waits for whom.
    """
    return snapshot.modern is not None and not snapshot.modern.unheard_members


def _is_settled(snapshot: GroupSnapshot) -> bool:
    return snapshot.modern is not None and not snapshot.modern.unreconciled_members


def is_reread(snapshot: GroupSnapshot) -> bool:
    """Whether its record stands before an earlier checkpoint's last row.

    That row is told again: its verdict may be missing. That a group is Gone is no record's word: it was told if that is
    what the last row says.
    """
    resume, position = snapshot.resume, snapshot.position
    if resume is None or position is None:
        return False
    if snapshot.state == GONE:
        return resume.state == GONE
    is_at_resume = position.offsets_topic_offset == resume.offsets_topic_offset
    return not is_at_resume and not resume.is_before(position)


def awaits_names(snapshot: GroupSnapshot) -> bool:
    """Whether topic ids in it have no name yet and a sample to come can tell it.

    Once every subscribed topic was sampled after the record, an id that still has no name is that of a topic that was
    deleted: nobody can name it any more.
    """
    modern, position = snapshot.modern, snapshot.position
    if modern is None or position is None or not modern.unnamed_topic_ids():
        return False
    return any(
        (sampled := snapshot.topics.get(topic)) is None or sampled.sampled_at_ms < position.timestamp_ms
        for topic in modern.subscribed_topics()
    )
