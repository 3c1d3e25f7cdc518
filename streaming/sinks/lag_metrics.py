"""Metric families of lag: in records and seconds, status, and what retention takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client.core import Metric

from streaming.judgement.lag_judgement import LagJudgement
from streaming.judgement.status import Status
from streaming.signals import Signal, kafka_exporter
from streaming.signals import lag as signals
from streaming.sinks.families import add, gauge
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
        partitions = gauge(kafka_exporter.TOPIC_PARTITIONS)
        for topic, sampled in sorted(present.sample.topics.items()):
            if sampled.partitions is not None:
                add(partitions, (topic,), sampled.partitions)
        yield partitions


def _group_lag(cluster: str, lag: LagJudgement, is_held_back: Callable[[str], bool]) -> Metric:
    total = gauge(signals.GROUP_LAG)
    for group_id, records in sorted(lag.report.by_group().items()):
        if records is not None and not is_held_back(group_id):
            add(total, (cluster, group_id), records)
    return total


_JUDGED: tuple[tuple[Signal, str], ...] = (
    (signals.GROUP_LAG_SECONDS, "lag_seconds"),
    (signals.GROUP_LAG_SECONDS_IS_BOUND, "is_at_least"),
    (signals.GROUP_RECORDS_LOST, "records_lost"),
    (signals.GROUP_SECONDS_UNTIL_LOST, "seconds_until_lost"),
    (signals.GROUP_STATUS_COMPLETENESS, "completeness"),
)


def _judged(cluster: str, lag: LagJudgement, is_held_back: Callable[[str], bool]) -> Iterator[Metric]:
    rows = [row for row in lag.by_group().to_pylist() if not is_held_back(row["group_id"])]
    for signal, column in _JUDGED:
        family = gauge(signal)
        for row in rows:
            if row[column] is not None and (column != "is_at_least" or row["lag_seconds"] is not None):
                add(family, (cluster, row["group_id"]), row[column])
        yield family
    status = gauge(signals.GROUP_STATUS)
    for row in rows:
        if row["status"] is not None:
            add(status, (cluster, row["group_id"], _STATUS_NAMES[row["status"]]), 1)
    yield status


def _unknown(cluster: str, lag: LagJudgement) -> Metric:
    family = gauge(signals.LAG_UNKNOWN_PARTITIONS)
    for (group_id, reason), partitions in sorted(lag.report.unknown_partitions().items()):
        add(family, (cluster, group_id, reason), partitions)
    return family


def _compatible(lag: LagJudgement, is_held_back: Callable[[str], bool]) -> Iterator[Metric]:
    """The families of kafka_exporter, for the dashboards people already have."""
    offsets, lags = gauge(kafka_exporter.CONSUMERGROUP_CURRENT_OFFSET), gauge(kafka_exporter.CONSUMERGROUP_LAG)
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
    summed = gauge(kafka_exporter.CONSUMERGROUP_LAG_SUM)
    for labelled in sorted(set(sums) - unknown):
        add(summed, labelled, sums[labelled])
    yield summed
