"""Creates the metrics about the monitor itself, about the brokers' listing of groups, and about conditions.

The metrics have few series, so each scrape creates them again.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

import psutil

from streaming.config.links import LinkSettings
from streaming.evaluation.report import GroupReport
from streaming.prometheus.families.members import member_lags
from streaming.prometheus.families.owners import lag_causes, worst_partitions
from streaming.prometheus.lines import Sample, histogram_samples
from streaming.prometheus.metric_selection import MetricSelection
from streaming.signals import Signal, fairness, groups, kafka_exporter, lag, members, monitor, rebalances
from streaming.spark.folder import nearest_existing
from streaming.state.monitor_view import BATCH_BUCKETS_SECONDS, MonitorView

_VERSION = version("kafka-rebalance-monitor")

FamilySamples = tuple[Signal, Sequence[Sample]]
"""A metric and all its samples."""


def is_ready(view: MonitorView, *, is_fresh: bool) -> bool:
    """Return the value of `rebalance_monitor_ready`. `is_fresh` is True if the last sample is fresh."""
    return view.health.ready and is_fresh


def health_families(
    view: MonitorView, links: LinkSettings, memory_bytes: int, *, is_fresh: bool
) -> Iterator[FamilySamples]:
    """Yield the metrics of the monitor itself. `/metrics` contains these metrics even if the cluster is not ready.

    If the last sample is not fresh, the metrics of this sample are missing. `memory_bytes` is the memory of the monitor
    for all clusters together.
    """
    health = view.health
    yield monitor.READY, [Sample((), is_ready(view, is_fresh=is_fresh))]
    yield monitor.WAITING_FOR_OFFSETS_TOPIC, [Sample((), health.waits_for_topic)]
    addresses = links.page_url, links.grafana_url, links.runbook_url
    yield monitor.MONITOR_INFO, [Sample((_VERSION, health.source, *addresses), 1)]
    limitations = (*health.not_known, *health.settings_not_known)
    yield monitor.SOURCE_LIMITATION, [Sample((capability,), 1) for capability in limitations]
    states = view.partition_states.values()
    yield monitor.RECORDS_READ, _sum_counts(state.records_read for state in states)
    yield monitor.RECORDS_SKIPPED, _sum_counts(state.records_skipped for state in states)
    if is_fresh:
        yield from _offsets_topic_families(view)
        yield from _clock_families(view)
    if health.last_batch_ms is not None:
        yield monitor.LAST_BATCH_TIMESTAMP_SECONDS, [Sample((), health.last_batch_ms / 1000)]
        durations = health.batch_durations
        samples = histogram_samples((), BATCH_BUCKETS_SECONDS, durations.buckets, durations.sum_seconds)
        yield monitor.BATCH_DURATION_SECONDS, list(samples)
    yield monitor.TABLE_WRITE_FAILURES, [Sample((), health.table_write_failures)]
    yield monitor.DISK_FREE_RATIO, list(_free_ratios(health.folders))
    if state_rows := len(view.groups) + len(view.partition_states):
        yield monitor.STATE_ROWS, [Sample((), state_rows)]
    yield monitor.QUERY_RESTARTS, [Sample((), health.query_restarts)]
    yield monitor.RESIDENT_MEMORY_BYTES, [Sample((), memory_bytes)]


def cluster_families(view: MonitorView) -> Iterator[FamilySamples]:
    """Yield the number of brokers, and the time and the gaps of the newest list of groups."""
    if view.sample is not None and view.sample.brokers is not None:
        yield kafka_exporter.BROKERS, [Sample((), view.sample.brokers)]
    if (listing := view.listing) is not None:
        yield groups.GROUP_LISTING_TIMESTAMP_SECONDS, [Sample((), listing.sampled_at_ms / 1000)]
        yield groups.GROUP_LISTING_GAPS, _sum_counts([Counter(gap.reason for gap in listing.gaps)])


def sampled_families(
    view: MonitorView,
    recorded: Collection[GroupReport],
    with_findings: Collection[GroupReport],
    selection: MetricSelection,
) -> Iterator[FamilySamples]:
    """Yield the group metrics that depend on the last sample.

    `recorded` contains the reports of all selected groups, without values from the sample. `with_findings` contains the
    reports of groups with a condition, an unowned partition or a cause of lag.
    """
    active = [(report.group_id, condition) for report in with_findings for condition in report.conditions]
    yield rebalances.GROUP_CONDITION, [Sample((group_id, one.name), 1) for group_id, one in active]
    since = [Sample((group_id, one.name), one.since_ms / 1000) for group_id, one in active]
    yield rebalances.GROUP_CONDITION_TIMESTAMP_SECONDS, since
    unowned = [(report.group_id, report.unowned_records) for report in with_findings]
    known = [Sample((group_id,), records) for group_id, records in unowned if records is not None]
    yield fairness.UNOWNED_RECORDS, known
    yield lag.GROUP_LAG_CAUSE_INFO, lag_causes(with_findings, selection.topics)
    if view.listing is not None:
        yield groups.GROUP_REBALANCE_START_TIMESTAMP_SECONDS, list(_rebalance_starts(recorded))
    if selection.is_for_every_group(lag.GROUP_WORST_PARTITION_INFO):
        worst = [] if view.lag is None else worst_partitions(recorded, view.lag.groups, selection.topics)
        yield lag.GROUP_WORST_PARTITION_INFO, worst
    if selection.is_for_every_group(members.MEMBER_LAG):
        yield members.MEMBER_LAG, [] if view.lag is None else member_lags(recorded, view.lag)


def _rebalance_starts(reports: Iterable[GroupReport]) -> Iterator[Sample]:
    for report in reports:
        since_ms = report.rebalances.under_way_since_ms
        if since_ms is not None:
            yield Sample((report.group_id,), since_ms / 1000)


def _free_ratios(folders: Mapping[str, str]) -> Iterator[Sample]:
    for name, path in folders.items():
        with suppress(OSError):
            disk = shutil.disk_usage(nearest_existing(Path(path)))
            yield Sample((name,), disk.free / disk.total)


def _sum_counts(parts: Iterable[Mapping[str, int]]) -> list[Sample]:
    total: Counter[str] = Counter()
    for counts in parts:
        total.update(counts)
    return [Sample((kind,), count) for kind, count in sorted(total.items())]


def _offsets_topic_families(view: MonitorView) -> Iterator[FamilySamples]:
    ends = sorted(view.sample.offsets_topic.items()) if view.sample else []
    positions = view.health.positions
    unread = [(number, max(0, end.high_watermark - positions.get(number, 0))) for number, end in ends]
    blocked = [(number, end.high_watermark - end.last_stable_offset) for number, end in ends]
    yield monitor.OFFSETS_TOPIC_LAG, [Sample((str(number),), records) for number, records in unread]
    yield monitor.OFFSETS_TOPIC_BLOCKED, [Sample((str(number),), records) for number, records in blocked]
    stable = [Sample((str(number),), end.last_stable_offset) for number, end in ends]
    yield monitor.OFFSETS_TOPIC_LAST_STABLE_OFFSET, stable
    if view.sample is not None and view.sample.offsets_topic_partitions:
        leaderless = view.sample.leaderless_offsets_topic_partitions
        yield monitor.OFFSETS_TOPIC_LEADERLESS_PARTITIONS, [Sample((), leaderless)]


def _clock_families(view: MonitorView) -> Iterator[FamilySamples]:
    offsets = {} if view.sample is None else view.sample.clock_offsets
    known = [(str(broker), offset) for broker, offset in sorted(offsets.items())]
    yield monitor.CLOCK_OFFSET_SECONDS, [Sample((broker,), offset.middle_ms / 1000) for broker, offset in known]
    yield monitor.CLOCK_OFFSET_WITHIN_SECONDS, [Sample((broker,), offset.within_ms / 1000) for broker, offset in known]


def own_processes() -> list[psutil.Process]:
    """Return the current process and all its descendant processes."""
    own = psutil.Process(os.getpid())
    return [own, *own.children(recursive=True)]


def resident_bytes(processes: Iterable[psutil.Process]) -> int:
    """Return the total resident memory of the processes. Ignore workers that Spark ended during the scrape."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total
