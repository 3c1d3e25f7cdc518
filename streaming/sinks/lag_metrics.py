"""Metric families of lag: in records and seconds, status, and what retention takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from streaming.judgement.lag_judgement import LagJudgement
from streaming.judgement.status import Status
from streaming.sinks.families import GROUP, add
from streaming.sinks.registry import Present

_STATUS_NAMES = {status.value: status.name for status in Status}


def lag_families(cluster: str, present: Present) -> Iterator[Metric]:
    """Everything told from the last sample; groups that an open transaction holds back have no lag."""
    if present.lag is not None:
        is_held_back = present.held_back_groups()
        yield _group_lag(cluster, present.lag, is_held_back)
        yield from _judged(cluster, present.lag, is_held_back)
        yield _unknown(cluster, present.lag)
        yield from _compatible(present.lag, is_held_back)
    if present.sample is not None:
        partitions = GaugeMetricFamily("kafka_topic_partitions", "Partitions of the topic.", labels=("topic",))
        for topic, sampled in sorted(present.sample.topics.items()):
            if sampled.partitions is not None:
                add(partitions, (topic,), sampled.partitions)
        yield partitions


def _group_lag(cluster: str, lag: LagJudgement, is_held_back: Callable[[str], bool]) -> Metric:
    total = GaugeMetricFamily("rebalance_monitor_group_lag", "Records the group has yet to commit.", labels=GROUP)
    for group_id, records in sorted(lag.report.by_group().items()):
        if records is not None and not is_held_back(group_id):
            add(total, (cluster, group_id), records)
    return total


_JUDGED = (
    (
        "rebalance_monitor_group_lag_seconds",
        "How long ago the next record was written that the group has to read; of its partitions the most.",
        "lag_seconds",
    ),
    (
        "rebalance_monitor_group_lag_seconds_is_bound",
        "1 where that is a lower bound: the record is older than every sample kept.",
        "is_at_least",
    ),
    (
        "rebalance_monitor_group_records_lost",
        "Offsets that retention took before the group committed them.",
        "records_lost",
    ),
    (
        "rebalance_monitor_group_seconds_until_lost",
        "Time until retention takes records the group has not committed, at its present rate.",
        "seconds_until_lost",
    ),
    (
        "rebalance_monitor_group_status_completeness",
        "Share of the group's partitions whose status rests on ten commits.",
        "completeness",
    ),
)


def _judged(cluster: str, lag: LagJudgement, is_held_back: Callable[[str], bool]) -> Iterator[Metric]:
    rows = [row for row in lag.by_group().to_pylist() if not is_held_back(row["group_id"])]
    for name, text, column in _JUDGED:
        family = GaugeMetricFamily(name, text, labels=GROUP)
        for row in rows:
            if row[column] is not None and (column != "is_at_least" or row["lag_seconds"] is not None):
                add(family, (cluster, row["group_id"]), row[column])
        yield family
    status = GaugeMetricFamily(
        "rebalance_monitor_group_status", "1 for the worst status of the group's partitions.", labels=(*GROUP, "status")
    )
    for row in rows:
        if row["status"] is not None:
            add(status, (cluster, row["group_id"], _STATUS_NAMES[row["status"]]), 1)
    yield status


def _unknown(cluster: str, lag: LagJudgement) -> Metric:
    family = GaugeMetricFamily(
        "rebalance_monitor_lag_unknown_partitions",
        "Partitions of the group whose lag is not known, by reason.",
        labels=(*GROUP, "reason"),
    )
    for (group_id, reason), partitions in sorted(lag.report.unknown_partitions().items()):
        add(family, (cluster, group_id, reason), partitions)
    return family


def _compatible(lag: LagJudgement, is_held_back: Callable[[str], bool]) -> Iterator[Metric]:
    """The families of kafka_exporter, for the dashboards people already have."""
    labels = ("consumergroup", "topic", "partition")
    offsets = GaugeMetricFamily("kafka_consumergroup_current_offset", "Committed offset.", labels=labels)
    lags = GaugeMetricFamily("kafka_consumergroup_lag", "Records after the committed offset.", labels=labels)
    sums: Counter[tuple[str, str]] = Counter()
    unknown = set()
    columns = ("group_id", "topic", "partition", "committed_offset", "lag")
    for group_id, topic, partition, committed, records in zip(
        *(lag.report.partitions[column].to_pylist() for column in columns), strict=True
    ):
        if is_held_back(group_id):
            continue
        add(offsets, (group_id, topic, str(partition)), committed)
        if records is None:
            unknown.add((group_id, topic))
        else:
            add(lags, (group_id, topic, str(partition)), records)
            sums[group_id, topic] += records
    yield offsets
    yield lags
    summed = GaugeMetricFamily("kafka_consumergroup_lag_sum", "Sum over partitions.", labels=("consumergroup", "topic"))
    for labelled in sorted(set(sums) - unknown):
        add(summed, labelled, sums[labelled])
    yield summed
