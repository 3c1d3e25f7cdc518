"""What is told of the monitor itself, and of listings of groups: few series, made anew for each scrape."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import psutil

from streaming.evaluation.report import GroupReport
from streaming.prometheus.families.members import member_lags
from streaming.prometheus.lines import Sample
from streaming.prometheus.metric_selection import MetricSelection
from streaming.prometheus.series_limit import REASONS
from streaming.signals import Signal, fairness, groups, kafka_exporter, members, monitor, rebalances
from streaming.state.monitor_view import MonitorView

FamilySamples = tuple[Signal, Sequence[Sample]]
"""A metric and all its samples."""


def health(view: MonitorView, memory_bytes: int, *, is_fresh: bool) -> Iterator[FamilySamples]:
    """What is shown also before the monitor was ready; what rests on a sample only while that is fresh.

    `memory_bytes` is that of all clusters together: they share their processes.
    """
    reported = view.health
    yield monitor.READY, [Sample((), reported.ready and is_fresh)]
    yield monitor.SOURCE, [Sample((reported.source,), 1)]
    yield monitor.SOURCE_LIMITATION, [Sample((capability,), 1) for capability in reported.not_known]
    yield (
        monitor.RECORDS_READ,
        _counts(partition_state.records_read for partition_state in view.partition_states.values()),
    )
    yield (
        monitor.RECORDS_SKIPPED,
        _counts(partition_state.records_skipped for partition_state in view.partition_states.values()),
    )
    if is_fresh:
        yield from _own_lag(view)
        yield from _clocks(view)
    if reported.batch_seconds is not None:
        yield monitor.LAST_BATCH_SECONDS, [Sample((), reported.batch_seconds)]
    yield monitor.STATE_ROWS, [Sample((), len(view.groups) + len(view.partition_states))]
    yield monitor.QUERY_RESTARTS, [Sample((), reported.query_restarts)]
    yield monitor.RESIDENT_MEMORY_BYTES, [Sample((), memory_bytes)]


def of_the_cluster(view: MonitorView, now_ms: int) -> Iterator[FamilySamples]:
    """What else the last sample and the last listing tell of brokers."""
    if view.sample is not None and view.sample.brokers is not None:
        yield kafka_exporter.BROKERS, [Sample((), view.sample.brokers)]
    if (listing := view.listing) is not None:
        yield groups.GROUP_LISTING_AGE_SECONDS, [Sample((), (now_ms - listing.sampled_at_ms) / 1000)]
        yield groups.GROUP_LISTING_GAPS, _counts([Counter(gap.reason for gap in listing.gaps)])


def of_groups(
    view: MonitorView,
    recorded: Collection[GroupReport],
    with_findings: Collection[GroupReport],
    shown: MetricSelection,
    now_ms: int,
) -> Iterator[FamilySamples]:
    """Series of groups: `recorded` are all groups, `with_findings` those with a condition or an unowned partition."""
    held = [(report.group_id, condition) for report in with_findings for condition in report.conditions]
    yield rebalances.GROUP_CONDITION, [Sample((group_id, one.name), 1) for group_id, one in held]
    since = [Sample((group_id, one.name), one.since_ms / 1000) for group_id, one in held]
    yield rebalances.GROUP_CONDITION_TIMESTAMP_SECONDS, since
    waiting = [(report.group_id, report.unowned_records) for report in with_findings]
    known = [Sample((group_id,), records) for group_id, records in waiting if records is not None]
    yield fairness.UNOWNED_RECORDS, known
    if view.listing is not None:
        yield groups.GROUP_REBALANCING_SECONDS, list(_rebalancing(recorded, now_ms))
    if members.MEMBER_LAG.name in shown.signals:
        yield members.MEMBER_LAG, [] if view.lag is None else member_lags(recorded, view.lag)


def _rebalancing(reports: Iterable[GroupReport], now_ms: int) -> Iterator[Sample]:
    for report in reports:
        since_ms = report.rebalances.under_way_since_ms
        if since_ms is not None:
            yield Sample((report.group_id,), max(0, now_ms - since_ms) / 1000)


def left_out(dropped: Mapping[str, int]) -> Iterator[FamilySamples]:
    """How many series the scrape itself lacks, by reason."""
    yield monitor.DROPPED_SERIES, [Sample((reason,), dropped[reason]) for reason in REASONS]


def _counts(of_parts: Iterable[Mapping[str, int]]) -> list[Sample]:
    total: Counter[str] = Counter()
    for counts in of_parts:
        total.update(counts)
    return [Sample((kind,), count) for kind, count in sorted(total.items())]


def _own_lag(view: MonitorView) -> Iterator[FamilySamples]:
    ends = sorted(view.sample.offsets_topic.items()) if view.sample else []
    positions = view.health.positions
    behind = [(number, max(0, end.high_watermark - positions.get(number, 0))) for number, end in ends]
    held = [(number, end.high_watermark - end.last_stable_offset) for number, end in ends]
    yield monitor.OFFSETS_TOPIC_LAG, [Sample((str(number),), records) for number, records in behind]
    yield monitor.OFFSETS_TOPIC_BLOCKED, [Sample((str(number),), records) for number, records in held]
    stable = [Sample((str(number),), end.last_stable_offset) for number, end in ends]
    yield monitor.OFFSETS_TOPIC_LAST_STABLE_OFFSET, stable


def _clocks(view: MonitorView) -> Iterator[FamilySamples]:
    offsets = {} if view.sample is None else view.sample.clock_offsets
    known = [(str(broker), offset) for broker, offset in sorted(offsets.items())]
    yield monitor.CLOCK_OFFSET_SECONDS, [Sample((broker,), offset.middle_ms / 1000) for broker, offset in known]
    yield monitor.CLOCK_OFFSET_WITHIN_SECONDS, [Sample((broker,), offset.within_ms / 1000) for broker, offset in known]


def own_processes() -> list[psutil.Process]:
    """The one that runs here, and those it started."""
    own = psutil.Process(os.getpid())
    return [own, *own.children(recursive=True)]


def resident_bytes(processes: Iterable[psutil.Process]) -> int:
    """Memory of those that still run: Spark ends idle workers, also in the middle of a scrape."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total
