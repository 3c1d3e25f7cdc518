"""What is told of the monitor itself, and of listings of groups: few series, made anew for each scrape."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress

import psutil

from streaming.evaluation.report import GroupReport
from streaming.prometheus.exposure import REASONS
from streaming.prometheus.families.members import member_lags
from streaming.prometheus.lines import Sample
from streaming.prometheus.shown import Shown
from streaming.signals import Signal, fairness, groups, kafka_exporter, members, monitor, rebalances
from streaming.state.present import Present

Told = tuple[Signal, Sequence[Sample]]
"""A metric and all its samples."""


def health(present: Present, memory_bytes: int, *, is_fresh: bool) -> Iterator[Told]:
    """What is shown also before the monitor was ready; what rests on a sample only while that is fresh.

    `memory_bytes` is that of all clusters together: they share their processes.
    """
    told = present.health
    yield monitor.READY, [Sample((), told.ready and is_fresh)]
    yield monitor.SOURCE, [Sample((told.source,), 1)]
    yield monitor.UNKNOWN, [Sample((what,), 1) for what in told.not_known]
    yield monitor.RECORDS_READ, _counts(lane.records_read for lane in present.lanes.values())
    yield monitor.RECORDS_SKIPPED, _counts(lane.records_skipped for lane in present.lanes.values())
    if is_fresh:
        yield from _own_lag(present)
        yield from _clocks(present)
    if told.batch_seconds is not None:
        yield monitor.LAST_BATCH_SECONDS, [Sample((), told.batch_seconds)]
    yield monitor.STATE_ROWS, [Sample((), len(present.groups) + len(present.lanes))]
    yield monitor.QUERY_RESTARTS, [Sample((), told.query_restarts)]
    yield monitor.RESIDENT_MEMORY_BYTES, [Sample((), memory_bytes)]


def of_the_cluster(present: Present, now_ms: int) -> Iterator[Told]:
    """What else the last sample and the last listing tell of brokers."""
    if present.sample is not None and present.sample.brokers is not None:
        yield kafka_exporter.BROKERS, [Sample((), present.sample.brokers)]
    if (listing := present.listing) is not None:
        yield groups.GROUP_LISTING_AGE_SECONDS, [Sample((), (now_ms - listing.sampled_at_ms) / 1000)]
        yield groups.GROUP_LISTING_GAPS, _counts([Counter(gap.reason for gap in listing.gaps)])


def of_groups(
    present: Present,
    recorded: Collection[GroupReport],
    with_findings: Collection[GroupReport],
    shown: Shown,
    now_ms: int,
) -> Iterator[Told]:
    """Series of groups: `recorded` are all groups, `with_findings` those with a condition or an unowned partition."""
    held = [(report.group_id, condition) for report in with_findings for condition in report.conditions]
    yield rebalances.GROUP_CONDITION, [Sample((group_id, one.name), 1) for group_id, one in held]
    since = [Sample((group_id, one.name), one.since_ms / 1000) for group_id, one in held]
    yield rebalances.GROUP_CONDITION_TIMESTAMP_SECONDS, since
    waiting = [(report.group_id, report.unowned_records) for report in with_findings]
    known = [Sample((group_id,), records) for group_id, records in waiting if records is not None]
    yield fairness.UNOWNED_RECORDS, known
    if present.listing is not None:
        yield groups.GROUP_REBALANCING_SECONDS, list(_rebalancing(recorded, now_ms))
    if members.MEMBER_LAG.name in shown.signals:
        yield members.MEMBER_LAG, [] if present.lag is None else member_lags(recorded, present.lag)


def _rebalancing(reports: Iterable[GroupReport], now_ms: int) -> Iterator[Sample]:
    for report in reports:
        since_ms = report.rebalances.under_way_since_ms
        if since_ms is not None:
            yield Sample((report.group_id,), max(0, now_ms - since_ms) / 1000)


def left_out(dropped: Mapping[str, int]) -> Iterator[Told]:
    """How many series the scrape itself lacks, by reason."""
    yield monitor.DROPPED_SERIES, [Sample((reason,), dropped[reason]) for reason in REASONS]


def _counts(of_parts: Iterable[Mapping[str, int]]) -> list[Sample]:
    total: Counter[str] = Counter()
    for counts in of_parts:
        total.update(counts)
    return [Sample((kind,), count) for kind, count in sorted(total.items())]


def _own_lag(present: Present) -> Iterator[Told]:
    ends = sorted(present.sample.offsets_topic.items()) if present.sample else []
    positions = present.health.positions
    behind = [(number, max(0, end.high_watermark - positions.get(number, 0))) for number, end in ends]
    held = [(number, end.high_watermark - end.last_stable_offset) for number, end in ends]
    yield monitor.OFFSETS_TOPIC_LAG, [Sample((str(number),), records) for number, records in behind]
    yield monitor.OFFSETS_TOPIC_HELD_BACK, [Sample((str(number),), records) for number, records in held]
    stable = [Sample((str(number),), end.last_stable_offset) for number, end in ends]
    yield monitor.OFFSETS_TOPIC_LAST_STABLE_OFFSET, stable


def _clocks(present: Present) -> Iterator[Told]:
    offsets = {} if present.sample is None else present.sample.clock_offsets
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
