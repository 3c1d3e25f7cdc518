"""Lines of the series that are wanted. They are counted first, and then `exposure` decides how many are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from streaming.combine.wire import Int64Array
from streaming.prometheus.exposition import Text
from streaming.prometheus.lines import Sample, Writer
from streaming.prometheus.series_limit import RequestedSeries, SeriesLimit
from streaming.signals import GRANULARITIES, Granularity, Signal


class Counted(NamedTuple):
    """Series by group, each group once; or, where there are no groups, series of topics."""

    granularity: Granularity
    group_ids: Sequence[str] | None
    series: Int64Array


class Lines(Protocol):
    """Some metrics' lines. What is counted adds up to `series`, and the lines of all of it to `text` without a cut."""

    def series(self) -> int:
        """How many there are in all."""

    def counted(self) -> Iterator[Counted]:
        """How many there are of what."""

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """The lines that are shown, by metric."""


@dataclass(frozen=True, slots=True)
class SampleLines:
    """Few series of groups, made anew for each scrape; the group is the first of each sample's labels."""

    reported: Sequence[tuple[Signal, Sequence[Sample]]]
    writers: Mapping[str, Writer]

    def series(self) -> int:
        """How many there are in all."""
        return sum(len(samples) for _, samples in self.reported)

    def counted(self) -> Iterator[Counted]:
        """How many there are of each group."""
        for signal, samples in self.reported:
            of_group = Counter(sample.labels[0] for sample in samples)
            yield Counted(signal.granularity, list(of_group), np.array(list(of_group.values()), dtype=np.int64))

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """The lines that are shown, by metric."""
        return {
            signal.name: self.writers[signal.name]
            .text(sample for sample in samples if limit.shows(sample.labels[0], signal.granularity))
            .encode()
            for signal, samples in self.reported
        }


def asked(own: int, lines: Sequence[Lines]) -> tuple[Sequence[str], RequestedSeries]:
    """All groups that have series, in the order of their ids, and what was asked for of them and of topics."""
    counted = [one for some in lines for one in some.counted()]
    group_ids = sorted({group_id for one in counted for group_id in one.group_ids or ()})
    row_of = {group_id: row for row, group_id in enumerate(group_ids)}
    groups = np.zeros((len(group_ids), len(GRANULARITIES)), dtype=np.int64)
    topics = np.zeros(len(GRANULARITIES), dtype=np.int64)
    for one in counted:
        level = GRANULARITIES.index(one.granularity)
        if one.group_ids is None:
            topics[level] += one.series.sum()
        else:
            groups[[row_of[group_id] for group_id in one.group_ids], level] += one.series
    return group_ids, RequestedSeries(own, topics, groups)
