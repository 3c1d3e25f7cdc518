"""Counts the selected series of each group. `series_limit` needs the numbers before the lines are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from streaming.combine.big_endian import Int64Array
from streaming.prometheus.exposition import Text
from streaming.prometheus.lines import Sample, Writer
from streaming.prometheus.series_limit import RequestedSeries, SeriesLimit
from streaming.signals import GRANULARITIES, Granularity, Signal


class SeriesCounts(NamedTuple):
    """The number of series of each group at one granularity.

    `series` contains one number for each group in `group_ids`. If `group_ids` is None, `series` counts series of topics
    instead.
    """

    granularity: Granularity
    group_ids: Sequence[str] | None
    series: Int64Array


class Lines(Protocol):
    """The lines of several metrics."""

    def count_series(self) -> int:
        """Return the number of series, including dropped series."""

    def count_by_group(self) -> Iterator[SeriesCounts]:
        """Return the numbers of series of each group and of topics, including dropped series."""

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """Return the lines of the shown series. The keys are metric names."""


@dataclass(frozen=True, slots=True)
class SampleLines:
    """Lines about groups. Each scrape creates the lines again. The first label of a sample is the group id."""

    families: Sequence[tuple[Signal, Sequence[Sample]]]
    writers: Mapping[str, Writer]

    def count_series(self) -> int:
        """Return the number of series, including dropped series."""
        return sum(len(samples) for _, samples in self.families)

    def count_by_group(self) -> Iterator[SeriesCounts]:
        """Return the number of series of each group."""
        for signal, samples in self.families:
            by_group = Counter(sample.labels[0] for sample in samples)
            yield SeriesCounts(signal.granularity, list(by_group), np.array(list(by_group.values()), dtype=np.int64))

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """Return the lines of the shown series. The keys are metric names."""
        return {
            signal.name: self.writers[signal.name]
            .text(sample for sample in samples if limit.shows(sample.labels[0], signal.granularity))
            .encode()
            for signal, samples in self.families
        }


def requested_series(own: int, lines: Sequence[Lines]) -> tuple[Sequence[str], RequestedSeries]:
    """Return the sorted ids of all groups with series, and the numbers of series. Dropped series are included.

    `own` is the number of series that describe the monitor itself.
    """
    counts = [one for some in lines for one in some.count_by_group()]
    group_ids = sorted({group_id for one in counts for group_id in one.group_ids or ()})
    row_of = {group_id: row for row, group_id in enumerate(group_ids)}
    groups = np.zeros((len(group_ids), len(GRANULARITIES)), dtype=np.int64)
    topics = np.zeros(len(GRANULARITIES), dtype=np.int64)
    for one in counts:
        level = GRANULARITIES.index(one.granularity)
        if one.group_ids is None:
            topics[level] += one.series.sum()
        else:
            groups[[row_of[group_id] for group_id in one.group_ids], level] += one.series
    return group_ids, RequestedSeries(own, topics, groups)
