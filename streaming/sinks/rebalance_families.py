"""Metric families of rebalances: counted by cause, moves by need, and what the last of them show together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from streaming.judgement.detectors import Limits, conditions
from streaming.judgement.turn import GroupRecord
from streaming.sinks.families import GROUP, add
from streaming.sinks.registry import Present


def rebalance_families(cluster: str, records: Iterable[tuple[str, GroupRecord]]) -> Iterator[Metric]:
    """Totals since each group was first seen, kept with the group."""
    by_cause = CounterMetricFamily(
        "rebalance_monitor_rebalances_by_cause",
        "Rebalances read since the group was first seen, by primary cause; generations without a record left out.",
        labels=(*GROUP, "cause"),
    )
    moved = CounterMetricFamily(
        "rebalance_monitor_moved_partitions",
        "Partitions that went from one owner to another; necessary false: an assignment as balanced left them.",
        labels=(*GROUP, "necessary"),
    )
    for group_id, record in records:
        totals = record.story.totals
        for cause, count in sorted(totals.rebalances_by_cause.items()):
            add(by_cause, (cluster, group_id, cause), count)
        for need, partitions in sorted(totals.moved_partitions.items()):
            add(moved, (cluster, group_id, need), partitions)
    yield by_cause
    yield moved


def condition_family(cluster: str, present: Present, limits: Limits) -> Metric:
    """What the last rebalances show together, as of the time up to which the group's partition was read."""
    family = GaugeMetricFamily(
        "rebalance_monitor_group_condition",
        "1 for each condition the group's last rebalances show: a storm, a flapping member, ...",
        labels=(*GROUP, "condition"),
    )
    is_held_back = present.held_back_groups()
    for group_id, record in present.alive_groups().items():
        position = record.snapshot.position
        read = present.read_up_to.get(position.kafka_partition) if position else None
        if read is None or read.read_up_to_ms is None or is_held_back(group_id):
            continue
        for condition in conditions(record.story.recent, read.read_up_to_ms, limits):
            add(family, (cluster, group_id, condition), 1)
    return family
