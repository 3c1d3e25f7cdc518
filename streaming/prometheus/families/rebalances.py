"""Creates the counters of rebalances and moved partitions, and the histogram of commit gaps.

The counters start when the monitor first sees the group. A commit gap is the time around a rebalance in which no member
of the group commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from streaming.combine.gaps import GAP_BUCKETS_SECONDS
from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily, Samples, single_sample
from streaming.prometheus.lines import Sample, histogram_samples
from streaming.signals import rebalances


def _by_label(counts: Callable[[GroupReport], Mapping[str, int] | None]) -> Samples:
    def samples(report: GroupReport) -> Iterator[Sample]:
        for label, count in sorted((counts(report) or {}).items()):
            yield Sample((report.group_id, label), count)

    return samples


def _commit_gaps(report: GroupReport) -> Iterator[Sample]:
    gaps = report.rebalances.commit_gaps
    if gaps is None or not any(gaps.buckets):
        return
    yield from histogram_samples((report.group_id,), GAP_BUCKETS_SECONDS, gaps.buckets, gaps.sum_ms / 1000)


REBALANCE_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    GroupFamily(rebalances.REBALANCES, single_sample(lambda report: report.rebalances.total)),
    GroupFamily(rebalances.REBALANCES_FAILED, single_sample(lambda report: report.rebalances.failed)),
    GroupFamily(rebalances.EMPTY_TRANSITIONS, single_sample(lambda report: report.rebalances.empty_transitions)),
    GroupFamily(rebalances.REBALANCES_BY_CAUSE, _by_label(lambda report: report.rebalances.by_cause)),
    GroupFamily(rebalances.MOVED_PARTITIONS, _by_label(lambda report: report.rebalances.moved_partitions)),
    GroupFamily(rebalances.COMMIT_GAP_SECONDS, _commit_gaps),
)
