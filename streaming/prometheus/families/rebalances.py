"""Creates the counters of rebalances and moved partitions. A counter starts when the monitor first sees the group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily, single_sample
from streaming.prometheus.lines import Sample
from streaming.signals import rebalances


def _by_cause(report: GroupReport) -> Iterator[Sample]:
    return _by_label(report, report.rebalances.by_cause)


def _moved(report: GroupReport) -> Iterator[Sample]:
    return _by_label(report, report.rebalances.moved_partitions)


def _by_label(report: GroupReport, counts: Mapping[str, int] | None) -> Iterator[Sample]:
    for label, count in sorted((counts or {}).items()):
        yield Sample((report.group_id, label), count)


REBALANCE_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    GroupFamily(rebalances.REBALANCES, single_sample(lambda report: report.rebalances.total)),
    GroupFamily(rebalances.REBALANCES_FAILED, single_sample(lambda report: report.rebalances.failed)),
    GroupFamily(rebalances.EMPTY_TRANSITIONS, single_sample(lambda report: report.rebalances.empty_transitions)),
    GroupFamily(rebalances.REBALANCES_BY_CAUSE, _by_cause),
    GroupFamily(rebalances.MOVED_PARTITIONS, _moved),
)
