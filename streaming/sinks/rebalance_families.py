"""Metric families of rebalances: counted by cause, moves by need, and the conditions that hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

from streaming.judgement.turn import GroupRecord
from streaming.signals.rebalances import (
    GROUP_CONDITION,
    GROUP_CONDITION_TIMESTAMP_SECONDS,
    MOVED_PARTITIONS,
    REBALANCES_BY_CAUSE,
)
from streaming.sinks.families import add, counter, gauge
from streaming.sinks.registry import Present


def rebalance_families(cluster: str, records: Iterable[tuple[str, GroupRecord]]) -> Iterator[Metric]:
    """Totals since each group was first seen, kept with the group."""
    by_cause, moved = counter(REBALANCES_BY_CAUSE), counter(MOVED_PARTITIONS)
    for group_id, record in records:
        totals = record.story.totals
        for cause, count in sorted(totals.rebalances_by_cause.items()):
            add(by_cause, (cluster, group_id, cause), count)
        for need, partitions in sorted(totals.moved_partitions.items()):
            add(moved, (cluster, group_id, need), partitions)
    yield by_cause
    yield moved


def condition_families(cluster: str, present: Present) -> Iterator[Metric]:
    """What is the matter with groups, as of the last sample, and since when. Who it is, is in `group_conditions`."""
    family, since = gauge(GROUP_CONDITION), gauge(GROUP_CONDITION_TIMESTAMP_SECONDS)
    for group_id, conditions in sorted(present.conditions.items()):
        record = present.groups.get(group_id)
        if record is None or record.snapshot.is_over:
            continue
        for condition in conditions:
            add(family, (cluster, group_id, condition.name), 1)
            add(since, (cluster, group_id, condition.name), condition.since_ms / 1000)
    yield family
    yield since
