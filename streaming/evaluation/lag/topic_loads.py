"""Measure how the new records of a topic are divided among its partitions.

A hot partition receives many more records than the mean of all partitions. No assignment can divide a hot partition. If
a topic is hot, check the keys of the records and the producer's partitioner. Rules:

1. The load of a partition is its produce rate (`rates`, rule 8): the mean of the last five minutes.
2. The load of a topic is known only if the last sample shows the partition count of the topic. The produce rate of each
   partition of the topic must also be known.
3. The load of a topic is also unknown if its hottest partition receives less than MIN_RECORDS_PER_SECOND. With so few
   records, the differences between partitions are not meaningful.
4. The *hottest partition* has the largest load. If several partitions have the largest load, the partition with the
   lowest number is the hottest. The *share* of the hottest partition is its load divided by the load of the topic.
   `max_to_mean_ratio` is the load of the hottest partition divided by the mean load of all partitions.
5. A topic is *hot* if `max_to_mean_ratio` is at least HOT_RATIO. So in a hot topic with 10 partitions, the hottest
   partition receives at least 15 % of the records.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.rates import produce_rates
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets

MIN_RECORDS_PER_SECOND = 1.0
HOT_RATIO = 1.5


@dataclass(frozen=True, slots=True)
class TopicLoad:
    """The load of a topic, and of its hottest partition."""

    topic: str
    partitions: int
    produced_records_per_second: float
    hottest_partition: int
    hottest_records_per_second: float
    hottest_share: float
    max_to_mean_ratio: float

    @property
    def is_hot(self) -> bool:
        """True if the hottest partition receives many more records than the mean (rule 5)."""
        return self.max_to_mean_ratio >= HOT_RATIO


def topic_loads(ends: SampledOffsets, sample: ClusterSample) -> Mapping[str, TopicLoad]:
    """Return the load of each topic. Topics with an unknown load are absent. `ends` must contain the last sample.

    >>> from streaming.events import TopicMetadata
    >>> ends = SampledOffsets(limit=60)
    >>> for hot, cold, at_ms in [(0, 0, 0), (5_400, 600, 60_000)]:
    ...     _ = ends.add({("orders", 0): cold, ("orders", 1): hot}, at_ms)
    >>> load = topic_loads(ends, ClusterSample(60_000, {"orders": TopicMetadata(2, 60_000)}))["orders"]
    >>> load.hottest_partition, load.hottest_share, load.max_to_mean_ratio, load.is_hot
    (1, 0.9, 1.8, True)
    """
    encoded, partitions = ends.names()[0].dictionary_encode(), ends.names()[1]
    topics, at = encoded.dictionary.to_pylist(), encoded.indices.to_numpy()
    if not topics:
        return {}
    sampled = (sample.topics.get(topic) for topic in topics)
    counts = np.array([(of_topic.partitions or 0) if of_topic else 0 for of_topic in sampled])
    rates = produce_rates(ends, sample.sampled_at_ms)
    rows = np.flatnonzero((partitions < counts[at]) & ~np.isnan(rates))
    rows = rows[np.lexsort((-partitions[rows], rates[rows], at[rows]))]  # the hottest partition of a topic is last
    at, partitions, rates = at[rows], partitions[rows], rates[rows]
    known, totals = np.bincount(at, minlength=len(topics)), np.bincount(at, rates, len(topics))
    hottest = np.flatnonzero(np.diff(at, append=-1) != 0)
    loads = {}
    for number, partition, rate in zip(at[hottest], partitions[hottest].tolist(), rates[hottest].tolist(), strict=True):
        topic, count, total = topics[number], int(counts[number]), float(totals[number])
        if known[number] == count and rate >= MIN_RECORDS_PER_SECOND:
            loads[topic] = TopicLoad(topic, count, total, partition, rate, rate / total, rate * count / total)
    return loads
