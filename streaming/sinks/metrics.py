"""Metric families, built from the registry at scrape time: a group that vanished has no series left behind.

Until the monitor has caught up for the first time it shows its own health and nothing else: no verdict from half a log.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import psutil
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from streaming.group.listing import GroupListing, shown_state
from streaming.group.not_known import REBALANCES_FAILED, not_known
from streaming.group.snapshot import UNKNOWN
from streaming.judgement.turn import GroupRecord
from streaming.signals import Signal, fairness, groups, kafka_exporter, monitor, rebalances
from streaming.sinks.families import add, counter, exported_family, gauge
from streaming.sinks.gap_families import commit_gap_family
from streaming.sinks.imbalance_families import imbalance_families, verdict_family
from streaming.sinks.lag_metrics import lag_families
from streaming.sinks.owner_families import owner_families
from streaming.sinks.rebalance_families import condition_families, rebalance_families
from streaming.sinks.registry import Present, Registry
from streaming.sinks.shown import Choose, show_everything


class MonitorCollector(Collector):
    """All families of one cluster.

    `now_ms` is asked for the age of the sample only: one older than `stale_after_ms` is not the present any more, so
    nothing that rests on it is shown, and the monitor is not ready.
    """

    def __init__(
        self,
        cluster: str,
        registry: Registry,
        now_ms: Callable[[], int],
        stale_after_ms: int,
        choose: Choose = show_everything,
    ) -> None:
        self._cluster = cluster
        self._registry = registry
        self._now_ms = now_ms
        self._stale_after_ms = stale_after_ms
        self._choose = choose

    def collect(self) -> Iterator[Metric]:
        """Build every family that is shown from one consistent view of the registry."""
        present = self._registry.present()
        shown = self._choose(present)
        for family in self._families(present):
            if exported_family(family) in shown.signals:
                yield family

    def _families(self, present: Present) -> Iterator[Metric]:
        is_fresh = self._is_fresh(present)
        yield from _health(self._cluster, present, is_fresh=is_fresh)
        if present.health.was_ready:
            yield from _groups(self._cluster, present, is_fresh=is_fresh)
            if is_fresh:
                yield from condition_families(self._cluster, present)
                yield from lag_families(self._cluster, present)
                yield from _listing(self._cluster, present, self._now_ms())

    def _is_fresh(self, present: Present) -> bool:
        return present.sample is not None and self._now_ms() - present.sample.sampled_at_ms <= self._stale_after_ms


def _groups(cluster: str, present: Present, *, is_fresh: bool) -> Iterator[Metric]:
    alive, is_held_back = present.alive_groups(), present.held_back_groups()
    listing, work = (present.listing, present.work) if is_fresh else (None, {})
    every_record = list(alive.items())
    records = [(group_id, record) for group_id, record in every_record if not is_held_back(group_id)]
    for signal, value in _GROUP_GAUGES:
        family = gauge(signal)
        for group_id, record in records:
            if (measured := value(record)) is not None:
                add(family, (cluster, group_id), measured)
        yield family
    for signal, count in _GROUP_COUNTERS:
        counts = counter(signal)
        for group_id, record in every_record:
            if (counted := count(record)) is not None:
                add(counts, (cluster, group_id), counted)
        yield counts
    yield from rebalance_families(cluster, every_record)
    yield commit_gap_family(cluster, present, alive)
    yield _group_state(cluster, every_record, listing, is_held_back)
    yield _drift(cluster, records)
    yield verdict_family(cluster, every_record, listing, is_held_back)
    yield from imbalance_families(cluster, records, work)
    yield from owner_families(cluster, records)
    yield _members_compatible(records)


def _members(record: GroupRecord) -> float | None:
    """Number of members; None where some of their records are missing."""
    snapshot = record.snapshot
    is_told = snapshot.classic is not None if snapshot.modern is None else snapshot.modern.tells_state
    return snapshot.member_count() if is_told else None


def _generation(record: GroupRecord) -> float | None:
    return record.snapshot.generation_id


_GROUP_GAUGES: tuple[tuple[Signal, Callable[[GroupRecord], float | None]], ...] = (
    (groups.GROUP_MEMBERS, _members),
    (groups.GROUP_GENERATION, _generation),
)


def _failed(record: GroupRecord) -> int | None:
    """Rebalances proven to have failed; None where nothing could prove one."""
    return None if REBALANCES_FAILED in not_known(record.snapshot) else record.snapshot.totals.rebalances_failed


_GROUP_COUNTERS: tuple[tuple[Signal, Callable[[GroupRecord], int | None]], ...] = (
    (rebalances.REBALANCES, lambda record: record.snapshot.totals.rebalances),
    (rebalances.REBALANCES_FAILED, _failed),
    (rebalances.EMPTY_TRANSITIONS, lambda record: record.snapshot.totals.empty_transitions),
)


def _group_state(
    cluster: str,
    records: list[tuple[str, GroupRecord]],
    listing: GroupListing | None,
    is_held_back: Callable[[str], bool],
) -> Metric:
    family = gauge(groups.GROUP_STATE)
    for group_id, record in records:
        snapshot = record.snapshot
        protocol_type, protocol = snapshot.protocol_type or "", snapshot.protocol or ""
        state = UNKNOWN if is_held_back(group_id) else shown_state(snapshot, listing)
        add(family, (cluster, group_id, snapshot.group_type, protocol_type, protocol, state), 1)
    return family


def _listing(cluster: str, present: Present, now_ms: int) -> Iterator[Metric]:
    """What only a listing of groups shows, and how old and whole it is."""
    if (listing := present.listing) is None:
        return
    rebalancing = gauge(groups.GROUP_REBALANCING_SECONDS)
    for group_id, since_ms in sorted(present.rebalancing_since_ms.items()):
        add(rebalancing, (cluster, group_id), max(0, now_ms - since_ms) / 1000)
    yield rebalancing
    yield _one(groups.GROUP_LISTING_AGE_SECONDS, cluster, (now_ms - listing.sampled_at_ms) / 1000)
    gaps = gauge(groups.GROUP_LISTING_GAPS)
    for reason, brokers in sorted(Counter(gap.reason for gap in listing.gaps).items()):
        add(gaps, (cluster, reason), brokers)
    yield gaps


def _drift(cluster: str, records: list[tuple[str, GroupRecord]]) -> Metric:
    family = gauge(fairness.DRIFT_PARTITIONS)
    for group_id, record in records:
        for drift in record.judgement.drifts if record.judgement else ():
            if drift.drift_partitions is not None:
                add(family, (cluster, group_id, drift.strategy), drift.drift_partitions)
    return family


def _members_compatible(records: list[tuple[str, GroupRecord]]) -> Metric:
    family = gauge(kafka_exporter.CONSUMERGROUP_MEMBERS)
    for group_id, record in records:
        if (members := _members(record)) is not None:
            add(family, (group_id,), members)
    return family


def _health(cluster: str, present: Present, *, is_fresh: bool) -> Iterator[Metric]:
    health = present.health
    yield _one(monitor.READY, cluster, health.ready and is_fresh)
    yield from _source(cluster, present)
    yield _counts(monitor.RECORDS_READ, cluster, _sum(present, "records_read"))
    yield _counts(monitor.RECORDS_SKIPPED, cluster, _sum(present, "records_skipped"))
    if is_fresh:
        yield from _own_lag(cluster, present)
    if health.batch_seconds is not None:
        yield _one(monitor.LAST_BATCH_SECONDS, cluster, health.batch_seconds)
    yield _one(monitor.STATE_ROWS, cluster, len(present.groups) + len(present.lanes))
    restarts = counter(monitor.QUERY_RESTARTS)
    add(restarts, (cluster,), health.query_restarts)
    yield restarts
    yield _one(monitor.RESIDENT_MEMORY_BYTES, cluster, _resident_bytes(_own_processes()))


def _source(cluster: str, present: Present) -> Iterator[Metric]:
    """Where groups and commits are known from, and what that leaves open."""
    source, unknown = gauge(monitor.SOURCE), gauge(monitor.UNKNOWN)
    add(source, (cluster, present.health.source), 1)
    yield source
    for what in present.health.not_known:
        add(unknown, (cluster, what), 1)
    yield unknown


def _own_processes() -> list[psutil.Process]:
    own = psutil.Process(os.getpid())
    return [own, *own.children(recursive=True)]


def _resident_bytes(processes: Iterable[psutil.Process]) -> int:
    """Memory of those that still run: Spark ends idle workers, also in the middle of a scrape."""
    total = 0
    for process in processes:
        with suppress(psutil.Error):
            total += process.memory_info().rss
    return total


def _one(signal: Signal, cluster: str, value: float) -> Metric:
    family = gauge(signal)
    add(family, (cluster,), value)
    return family


def _sum(present: Present, counter: str) -> Counter[str]:
    total: Counter[str] = Counter()
    for lane in present.lanes.values():
        total.update(getattr(lane, counter))
    return total


def _counts(signal: Signal, cluster: str, counts: Counter[str]) -> Metric:
    family = counter(signal)
    for kind, count in sorted(counts.items()):
        add(family, (cluster, kind), count)
    return family


def _own_lag(cluster: str, present: Present) -> Iterator[Metric]:
    behind, held = gauge(monitor.OFFSETS_TOPIC_LAG), gauge(monitor.OFFSETS_TOPIC_HELD_BACK)
    for partition, ends in sorted(present.sample.offsets_topic.items()) if present.sample else ():
        position = present.health.positions.get(partition, 0)
        add(behind, (cluster, str(partition)), max(0, ends.high_watermark - position))
        add(held, (cluster, str(partition)), ends.high_watermark - ends.last_stable_offset)
    yield behind
    yield held
