"""Creates the histogram of commit gaps. A commit gap is the time without commits before and after a rebalance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streaming.combine.gaps import GAP_BUCKETS_SECONDS
from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily
from streaming.prometheus.lines import Sample, histogram_samples
from streaming.signals.rebalances import COMMIT_GAP_SECONDS


def _commit_gaps(report: GroupReport) -> Iterator[Sample]:
    """Yield the histogram of known commit gaps. A group without a known commit gap has no series."""
    gaps = report.rebalances.commit_gaps
    if gaps is None or not any(gaps.buckets):
        return
    yield from histogram_samples((report.group_id,), GAP_BUCKETS_SECONDS, gaps.buckets, gaps.sum_ms / 1000)


GAP_FAMILIES: Final[tuple[GroupFamily, ...]] = (GroupFamily(COMMIT_GAP_SECONDS, _commit_gaps),)
