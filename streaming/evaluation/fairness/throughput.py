"""Compute the throughput of each topic partition: the growth of the end offset in records per second.

The rate is computed from the samples of end offsets in a time window. The window ends at the last sample. Rules:

1. A topic partition has a rate only if it is in the last sample.
2. The rate is measured between the first and the last sample in the window. If several samples in sequence have the
   same end offset, only the first and the last of these samples are stored (`offset_points`, rule 3). So the last
   stored sample before the window can have the same end offset as the first stored sample in the window. In this case,
   the rate is measured from the start of the window.
3. The rate is unknown if the window has only one sample and rule 2 does not apply. An unknown rate is absent. It is not
   reported as 0. After a topic is created again, its rate is unknown until the second sample.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from assignors import TopicPartition
from streaming.evaluation.lag.sampled_offsets import SampledOffsets

WINDOW_MS = 60_000
"""Length of the window in milliseconds."""


def end_offset_rates(
    ends: SampledOffsets, sampled_at_ms: int, window_ms: int = WINDOW_MS
) -> Mapping[TopicPartition, float]:
    """Return the throughput of each topic partition in records per second. Partitions with an unknown rate are absent.

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
