"""Whether generation numbers that no record carries were failed rebalances or records compacted away.

1. They were failed rebalances if every offset between the two records was read. It is decided once, by the lane as of
   the batch that read the second record, and remembered until the group's own state has it (`SkipSettled`).
2. A lane remembers only its highest missing offset. One that comes later would hide what was before it: so nothing is
   decided twice, and no count falls because an answer came late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streaming.combine.partition_state import PartitionSnapshot
from streaming.events import SkipSettled
from streaming.group.not_known import REBALANCES_FAILED, not_known
from streaming.group.snapshot import GroupSnapshot, Skip

SkipDecisions = Mapping[tuple[str, int], bool]
"""Whether the log was whole before the record of a group at an offset, of skips that are not settled yet."""


def log_was_whole(skip: Skip, partition_state: PartitionSnapshot) -> bool:
    """Whether every offset between the two records was read, as far as the lane can tell."""
    return partition_state.last_missing_offset < skip.after_offset


def decide_skips(
    known: SkipDecisions, snapshots: Iterable[GroupSnapshot], partition_states: Mapping[int, PartitionSnapshot]
) -> dict[tuple[str, int], bool]:
    """What is decided of these groups' skips: what was before, and all that the lanes allow to decide now."""
    found = {}
    for snapshot in snapshots:
        partition_state = partition_states.get(snapshot.position.offsets_topic_partition) if snapshot.position else None
        for skip in snapshot.unsettled_skips:
            key = snapshot.group_id, skip.before_offset
            if key in known:
                found[key] = known[key]
            elif partition_state is not None:
                found[key] = log_was_whole(skip, partition_state)
    return found


def failed_rebalances(snapshot: GroupSnapshot, decisions: SkipDecisions) -> int | None:
    """Rebalances that were joined and never synced, as far as the log proves it; None where nothing could prove one."""
    if REBALANCES_FAILED in not_known(snapshot):
        return None
    proven = (
        skip.generations
        for skip in snapshot.unsettled_skips
        if decisions.get((snapshot.group_id, skip.before_offset), False)
    )
    return snapshot.totals.rebalances_failed + sum(proven)


def settlements(snapshot: GroupSnapshot, decisions: SkipDecisions) -> tuple[SkipSettled, ...]:
    """The answers that the group's own state is waiting for."""
    keys = ((skip, (snapshot.group_id, skip.before_offset)) for skip in snapshot.unsettled_skips)
    return tuple(SkipSettled(skip.before_offset, decisions[key]) for skip, key in keys if key in decisions)
