"""Creates the histogram of commit gaps. A commit gap is the time without commits around a rebalance."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from typing import Final

from streaming.combine.gaps import GAP_BUCKETS_SECONDS
from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily
from streaming.prometheus.lines import Sample
from streaming.signals.rebalances import COMMIT_GAP_SECONDS

_BOUNDS = (*(str(float(bound)) for bound in GAP_BUCKETS_SECONDS), "+Inf")


def _commit_gaps(report: GroupReport) -> Iterator[Sample]:
    """Return the histogram of known commit gaps. A group without a known commit gap has no series."""
    gaps = report.rebalances.commit_gaps
    if gaps is None or not any(gaps.buckets):
        return
    for bound, count in zip(_BOUNDS, accumulate(gaps.buckets), strict=True):
        yield Sample((report.group_id, bound), count, "_bucket")
    yield Sample((report.group_id,), sum(gaps.buckets), "_count")
    yield Sample((report.group_id,), gaps.sum_ms / 1000, "_sum")


GAP_FAMILIES: Final[tuple[GroupFamily, ...]] = ((COMMIT_GAP_SECONDS, _commit_gaps),)
