"""Decide the cause of generations without a record: failed rebalances, or records that compaction removed.

1. A skip is a range of generations without a record, between two records of a group. If every offset between the two
   records was read, the cause is failed rebalances. The monitor decides once, in the batch that contains the second
   record. The partition state stores the decision until the group's state contains it (`SkipSettled`). The partition
   state contains the whole batch. So a missing offset after the second record, but in the same batch, prevents the
   proof. After a start, batches are larger, so the monitor possibly counts fewer failed rebalances.
2. Each decision is made only once, so the count of failed rebalances never decreases. A second decision could be
   different, because `last_missing_offset` of the partition state can increase.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streaming.combine.partition_state import PartitionSnapshot
from streaming.events import SkipSettled
from streaming.group.not_known import REBALANCES_FAILED, not_known
from streaming.group.snapshot import GroupSnapshot, Skip

SkipDecisions = Mapping[tuple[str, int], bool]
"""Decisions that the groups' own states do not contain yet, by group id and offset of the record after the skip.

True means that every offset between the two records was read.
"""


def log_was_whole(skip: Skip, partition_state: PartitionSnapshot) -> bool:
    """Return True if the partition state shows that every offset between the two records was read."""
    return partition_state.last_missing_offset < skip.after_offset


def decide_skips(
    known: SkipDecisions, snapshots: Iterable[GroupSnapshot], partition_states: Mapping[int, PartitionSnapshot]
) -> dict[tuple[str, int], bool]:
    """Return the decisions for the skips of the given groups. A decision in `known` stays the same."""
    decisions = {}
    for snapshot in snapshots:
        partition_state = partition_states.get(snapshot.position.offsets_topic_partition) if snapshot.position else None
        for skip in snapshot.unsettled_skips:
            key = snapshot.group_id, skip.before_offset
            if key in known:
                decisions[key] = known[key]
            elif partition_state is not None:
                decisions[key] = log_was_whole(skip, partition_state)
    return decisions


def failed_rebalances(snapshot: GroupSnapshot, decisions: SkipDecisions) -> int | None:
    """Return the number of failed rebalances that the log proves, or None if unknown.

    In a failed rebalance, members joined but never synced.
    """
    if REBALANCES_FAILED in not_known(snapshot):
        return None
    skips = snapshot.unsettled_skips
    proven = (skip.generations for skip in skips if decisions.get((snapshot.group_id, skip.before_offset)))
    return snapshot.totals.rebalances_failed + sum(proven)


def settlements(snapshot: GroupSnapshot, decisions: SkipDecisions) -> tuple[SkipSettled, ...]:
    """Return the decisions that the group's state does not contain yet."""
    keys = ((skip, (snapshot.group_id, skip.before_offset)) for skip in snapshot.unsettled_skips)
    return tuple(SkipSettled(skip.before_offset, decisions[key]) for skip, key in keys if key in decisions)
