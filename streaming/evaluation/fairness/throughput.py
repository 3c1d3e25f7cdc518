"""How fast topic partitions grow: records per second, from the end offsets sampled in a window up to the last sample.

Rules:

1. Only of topic partitions that the last sample speaks of.
2. The rate is that between the first and the last sample in the window. A flat run is kept as its first and its last
   time only (`offset_points`, rule 3): if the offset at the first sample in the window was the same before, it was so
   at the window's start, and the rate is that since then.
3. Where the window holds one sample only, and rule 2 tells of no other, the rate is unknown: absent, not 0. So is it
   after a topic was created anew, until its second sample.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assignors import TopicPartition
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

WINDOW_MS = 60_000


def end_offset_rates(
    ends: SampledOffsets, sampled_at_ms: int, window_ms: int = WINDOW_MS
) -> Mapping[TopicPartition, float]:
    """Records per second of each topic partition it is known of.

    >>> ends = SampledOffsets(limit=60)
    >>> for offset, at_ms in [(100, 0), (100, 30_000), (700, 60_000)]:
    ...     _ = ends.add({("orders", 0): offset}, at_ms)
    >>> end_offset_rates(ends, 60_000), end_offset_rates(ends, 60_000, window_ms=30_000)
    ({('orders', 0): 10.0}, {('orders', 0): 20.0})
    """
    rows, points = np.arange(len(ends)), ends.points
    newest = np.maximum(points.counts[rows] - 1, 0)
    first = np.minimum(points.first_since(rows, sampled_at_ms - window_ms), newest)
    offsets, times_ms = points.offsets[rows, first], points.times_ms[rows, first]
    was_the_same = (first > 0) & (points.offsets[rows, np.maximum(first - 1, 0)] == offsets)
    elapsed_ms = points.times_ms[rows, newest] - np.where(was_the_same, sampled_at_ms - window_ms, times_ms)
    known = np.flatnonzero(ends.sampled_at(rows, sampled_at_ms) & (elapsed_ms > 0))
    rates = (points.offsets[known, newest[known]] - offsets[known]) * 1000 / elapsed_ms[known]
    topics, partitions = ends.names()
    return dict(
        zip(zip(topics.take(known).to_pylist(), partitions[known].tolist(), strict=True), rates.tolist(), strict=True)
    )
