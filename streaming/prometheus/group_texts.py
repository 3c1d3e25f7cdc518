"""Caches the text of each group's series until the inputs of the text change.

1. The cached text depends only on the *stable parts* of a group's report. Lag and conditions are not stable parts,
   because they can change without a new record of the group. Other modules write the metrics of lag and conditions.
2. The cache stores the stable parts together with the text. If at least one stable part changes, the text is written
   again.
3. If a scrape does not include a group, the cache removes the text of the group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streaming.evaluation.report import GroupReport
from streaming.prometheus.counted_lines import SeriesCounts
from streaming.prometheus.exposition import Text
from streaming.prometheus.lines import Sample, Writer
from streaming.prometheus.series_limit import SeriesLimit
from streaming.signals import Granularity, Signal

Samples = Callable[[GroupReport], Iterable[Sample]]
"""A function that returns the samples of one metric for one group."""


class GroupFamily(NamedTuple):
    """A metric, and the function that returns its samples for a group.

    If `level` is set, the samples have this granularity instead of the granularity of the metric. So one metric can be
    in two families: a family for every group, and a family only for groups in full detail.
    """

    signal: Signal
    samples: Samples
    level: Granularity | None = None

    @property
    def granularity(self) -> Granularity:
        """The granularity of the samples."""
        return self.level or self.signal.granularity


def single_sample(value: Callable[[GroupReport], float | None]) -> Samples:
    """Return the `Samples` function of a metric with at most one sample per group.

    If `value` returns None, the group has no sample.
    """

    def samples(report: GroupReport) -> Iterable[Sample]:
        measured = value(report)
        return () if measured is None else (Sample((report.group_id,), measured),)

    return samples


def _stable_parts(report: GroupReport) -> tuple[Any, ...]:
    return report.membership, report.assignment, report.fairness, report.rebalances, report.members, report.limits


class _CachedText(NamedTuple):
    parts: tuple[Any, ...]
    texts: tuple[str, ...]
    series: int


@dataclass(frozen=True, slots=True)
class GroupLines:
    """The lines of the metrics `names` for several groups. All these metrics have the same granularity."""

    granularity: Granularity
    names: tuple[str, ...]
    groups: Mapping[str, _CachedText]

    def count_series(self) -> int:
        """Return the number of series, including dropped series."""
        return sum(cached.series for cached in self.groups.values())

    def count_by_group(self) -> Iterator[SeriesCounts]:
        """Return the number of series of each group, including dropped series."""
        series = np.array([cached.series for cached in self.groups.values()], dtype=np.int64)
        yield SeriesCounts(self.granularity, list(self.groups), series)

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """Return the lines of the shown series. The keys are metric names."""
        shown = [cached.texts for group_id, cached in self.groups.items() if limit.shows(group_id, self.granularity)]
        by_metric = zip(*shown, strict=True)
        return {name: "".join(texts).encode() for name, texts in zip(self.names, by_metric, strict=bool(shown))}


class GroupTexts:
    """Caches the lines of all groups of one cluster. Ignores families whose granularity is not `granularity`.

    Several threads can call `lines` at the same time.
    """

    def __init__(
        self, granularity: Granularity, families: Iterable[GroupFamily], constant: Callable[[Signal], Mapping[str, str]]
    ) -> None:
        self._granularity = granularity
        self._writers = {
            one.signal.name: (Writer(one.signal, constant(one.signal)).text, one.samples)
            for one in families
            if one.granularity == granularity
        }
        self._cache: Mapping[str, _CachedText] = {}

    @property
    def is_empty(self) -> bool:
        """True if the settings select no metric of this granularity."""
        return not self._writers

    def lines(self, reports: Iterable[GroupReport]) -> GroupLines:
        """Return all lines of these groups."""
        previous, current = self._cache, {}
        for report in reports:
            cached, parts = previous.get(report.group_id), _stable_parts(report)
            # Equal parts can be different objects. The cache keeps the newest objects, because the next scrape usually
            # has the same objects. Then the comparison is fast, and the old objects use no memory.
            current[report.group_id] = (
                cached._replace(parts=parts)
                if cached is not None and cached.parts == parts
                else self._write(report, parts)
            )
        self._cache = current
        return GroupLines(self._granularity, tuple(self._writers), current)

    def _write(self, report: GroupReport, parts: tuple[Any, ...]) -> _CachedText:
        texts = tuple(text(samples(report)) for text, samples in self._writers.values())
        return _CachedText(parts, texts, sum(text.count("\n") for text in texts))
