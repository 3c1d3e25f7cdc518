"""The metric family of commit gaps: how long groups did not commit at their rebalances."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import accumulate

from prometheus_client.core import Metric

from streaming.combine.gaps import GAP_BUCKETS_SECONDS
from streaming.signals.rebalances import COMMIT_GAP_SECONDS
from streaming.sinks.families import histogram, printable
from streaming.sinks.registry import Present

_BOUNDS = (*(str(float(bound)) for bound in GAP_BUCKETS_SECONDS), "+Inf")


def commit_gap_family(cluster: str, present: Present, group_ids: Iterable[str]) -> Metric:
    """Known gaps of some groups, kept with the group; a group without one has no series."""
    family = histogram(COMMIT_GAP_SECONDS)
    for group_id in group_ids:
        totals = present.gap_totals.get(group_id)
        if totals is not None and any(totals.buckets):
            buckets = list(zip(_BOUNDS, accumulate(totals.buckets), strict=True))
            family.add_metric(printable((cluster, group_id)), buckets, totals.sum_ms / 1000)
    return family
