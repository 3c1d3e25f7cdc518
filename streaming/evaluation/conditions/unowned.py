"""Find the unowned partitions at one sample, and count the records that wait in these partitions.

Rules:

1. The group's records and the samples show which partitions have no owner, and since when (`common_rules`). If the last
   sample shows that a partition no longer exists, the partition is ignored.
2. For a partition with a committed offset, the number of waiting records is the lag. Without a committed offset, all
   records of the partition wait: end offset minus log start offset. If the number for one partition is unknown, the sum
   for the group is unknown.
3. A partition *lasts* if it has had no owner for longer than `stuck_after_seconds`. A withheld partition counts as
   unowned only if it lasts, because the next cooperative round should assign the partition before this time. This rule
   applies to the condition, to the reports and to the metrics.
4. `unowned_partitions`: at least one partition lasts. If a listing shows the group in a rebalance, the condition is
   unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from assignors import TopicPartition
from streaming.evaluation.assignment.common_rules import Unowned
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.phrases import counted, first_named, in_words
from streaming.evaluation.rebalances.condition_detectors import UNOWNED_PARTITIONS, Limits
from streaming.group.snapshot import DEAD, EMPTY, REBALANCING


@dataclass(frozen=True, slots=True)
class UnownedNow:
    """The unowned partitions of one group at the last sample, each with the number of its waiting records.

    `lasting` contains the partitions that last (rule 3).
    """

    waiting: Mapping[Unowned, int | None]
    lasting: tuple[Unowned, ...] = ()

    def records(self, of: Iterable[Unowned] | None = None) -> int | None:
        """Return the number of waiting records in the partitions `of`, or None if unknown (rule 2).

        If `of` is None, count the waiting records of all partitions that count as unowned (rule 3).
        """
        lasting = frozenset(self.lasting)
        asked = (one for one in self.waiting if not one.is_withheld or one in lasting) if of is None else of
        counts = [self.waiting[one] for one in asked]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


def unowned_now(
    groups: Mapping[str, GroupState], lag: pa.Table, sample: ClusterSample, now_ms: Mapping[int, int], limits: Limits
) -> Mapping[str, UnownedNow]:
    """Return the unowned partitions of each group that has some.

    `lag` has the columns of LAG_SCHEMA. `now_ms` is by `__consumer_offsets` partition, as in `ConditionInputs`.
    """
    unowned = {
        group_id: partitions
        for group_id, record in groups.items()
        if record.violations is not None
        and record.violations.is_known
        and (partitions := [one for one in record.violations.unowned if _exists(one, sample)])
    }
    lags = _lags(unowned, lag) if unowned else {}
    return {
        group_id: UnownedNow(
            {one: _waiting(group_id, one, lags, sample) for one in partitions},
            _lasting(partitions, groups[group_id], now_ms, limits),
        )
        for group_id, partitions in unowned.items()
    }


def unowned_condition(
    record: GroupState, unowned: UnownedNow | None, listed_state: str | None, now_ms: int
) -> Mapping[str, str | None]:
    """Return the name and the text of the condition, or an empty mapping if it is not active (rule 4).

    The text is None if it is unknown whether the condition is active.
    """
    if listed_state in REBALANCING or (record.violations is not None and not record.violations.is_known):
        return {UNOWNED_PARTITIONS: None}
    if unowned is None or not unowned.lasting or listed_state in {EMPTY, DEAD}:
        return {}
    return {UNOWNED_PARTITIONS: describe_unowned(unowned, now_ms)}


def describe_unowned(unowned: UnownedNow, now_ms: int) -> str:
    """Describe the condition `unowned_partitions` to a user.

    >>> of = Unowned("orders", 2, since_ms=0), Unowned("orders", 3, since_ms=60_000)
    >>> describe_unowned(UnownedNow({of[0]: 40, of[1]: 30}, of), 600_000)
    '2 partitions without an owner for 10 minutes: orders-2, orders-3 (70 records wait)'
    """
    lasting = unowned.lasting
    lasts_ms = now_ms - min(one.since_ms for one in lasting)
    names = first_named([f"{one.topic}-{one.partition}" for one in lasting])
    partitions, records = counted(len(lasting), "partition"), unowned.records(lasting)
    waiting = "unknown number of waiting records"
    if records is not None:
        waiting = f"{counted(records, 'record')} {'waits' if records == 1 else 'wait'}"
    return f"{partitions} without an owner for {in_words(lasts_ms)}: {names} ({waiting})"


def _lasting(
    partitions: Iterable[Unowned], record: GroupState, now_ms: Mapping[int, int], limits: Limits
) -> tuple[Unowned, ...]:
    """Return the partitions that last (rule 3). If "now" is unknown for the group, return none."""
    position = record.snapshot.position
    group_now_ms = None if position is None else now_ms.get(position.offsets_topic_partition)
    if group_now_ms is None:
        return ()
    return tuple(one for one in partitions if group_now_ms - one.since_ms > 1000 * limits.stuck_after_seconds)


def _exists(one: Unowned, sample: ClusterSample) -> bool:
    """Return False if the partition is pending, or if the sample shows that it does not exist (rule 1)."""
    sampled = sample.topics.get(one.topic)
    return not one.is_pending and (sampled is None or one.partition < (sampled.partitions or 0))


def _lags(group_ids: Iterable[str], lag: pa.Table) -> Mapping[tuple[str, TopicPartition], int | None]:
    rows = lag.filter(pc.is_in(lag["group_id"], value_set=pa.array(sorted(group_ids), pa.string())))
    columns = (rows[name].to_pylist() for name in ("group_id", "topic", "partition", "lag"))
    return {(group_id, (topic, partition)): known for group_id, topic, partition, known in zip(*columns, strict=True)}


def _waiting(
    group_id: str, one: Unowned, lags: Mapping[tuple[str, TopicPartition], int | None], sample: ClusterSample
) -> int | None:
    at = (one.topic, one.partition)
    if (group_id, at) in lags:
        return lags[group_id, at]
    end, start = sample.end_offsets.get(at), sample.log_start_offsets.get(at)
    return None if end is None or start is None else end - start
