"""Find out quickly, from the state of a group, whether the group can have a condition."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.evaluation.conditions.silence import GroupCommits, OwnedPartitions
from streaming.evaluation.group_update import GroupState
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot


@dataclass(frozen=True, slots=True)
class GroupInputs:
    """The state of a group, and values that depend only on this state.

    The values show whether the group can have a condition. Most groups cannot have a condition, so the monitor does not
    evaluate them further.
    """

    record: GroupState
    offsets_topic_partition: int | None
    is_reconciling: bool
    owned: OwnedPartitions | None
    owned_partitions: int

    def misses_commits(self, commits: GroupCommits | None) -> bool:
        """Return True if the group has committed fewer partitions than its static members own."""
        return commits is not None and commits.partitions < self.owned_partitions


def group_inputs(record: GroupState) -> GroupInputs:
    """Compute the values from the state of a group."""
    snapshot = record.snapshot
    position = None if snapshot.is_over else snapshot.position
    owned = None if position is None else _static_owners(snapshot, position.timestamp_ms)
    return GroupInputs(
        record=record,
        offsets_topic_partition=None if position is None else position.offsets_topic_partition,
        is_reconciling=snapshot.modern is not None and snapshot.modern.unreconciled_members > 0,
        owned=owned,
        owned_partitions=0 if owned is None else sum(map(len, owned.of_member.values())),
    )


def _static_owners(snapshot: GroupSnapshot, since_ms: int) -> OwnedPartitions | None:
    """Return the partitions of the static members, or None if no static member has partitions.

    The static members have had their partitions at least since `since_ms`, the time of the group's last record.
    """
    of_member = {
        member.group_instance_id: member.assigned
        for member in members(snapshot)
        if member.group_instance_id is not None and member.assigned
    }
    return OwnedPartitions(of_member, since_ms) if of_member else None
