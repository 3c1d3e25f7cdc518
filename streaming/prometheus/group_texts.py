"""The text of each group's series, kept for as long as what it is made of is the same.

Rules:

1. A group's samples of these metrics follow from its report's *standing parts*: all but what changes by itself (lag,
   conditions), which is told elsewhere.
2. Text is kept by those parts: another part, another text. A part that is the same object is the same.
3. A group that is not shown any more is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from streaming.evaluation.report import GroupReport
from streaming.prometheus.counted_lines import Counted
from streaming.prometheus.exposition import Text
from streaming.prometheus.lines import Sample, Writer
from streaming.prometheus.series_limit import SeriesLimit
from streaming.signals import Granularity, Signal

Samples = Callable[[GroupReport], Iterable[Sample]]
"""A group's samples of one metric."""

GroupFamily = tuple[Signal, Samples]


def single(value: Callable[[GroupReport], float | None]) -> Samples:
    """The one sample of a metric; None is no sample."""

    def samples(report: GroupReport) -> Iterable[Sample]:
        measured = value(report)
        return () if measured is None else (Sample((report.group_id,), measured),)

    return samples


def _standing_parts(report: GroupReport) -> tuple[Any, ...]:
    return report.membership, report.assignment, report.fairness, report.rebalances, report.members


class _Kept(NamedTuple):
    """What a group's lines are made of, the lines by metric, and how many they are."""

    parts: tuple[Any, ...]
    texts: tuple[str, ...]
    series: int


@dataclass(frozen=True, slots=True)
class GroupLines:
    """The lines of some groups, by metrics of one granularity."""

    granularity: Granularity
    names: tuple[str, ...]
    groups: Mapping[str, _Kept]

    def series(self) -> int:
        """How many there are in all."""
        return sum(kept.series for kept in self.groups.values())

    def counted(self) -> Iterator[Counted]:
        """How many there are of each group."""
        series = np.array([kept.series for kept in self.groups.values()], dtype=np.int64)
        yield Counted(self.granularity, list(self.groups), series)

    def text(self, limit: SeriesLimit) -> Mapping[str, Text]:
        """The lines that are shown, by metric."""
        shown = [kept.texts for group_id, kept in self.groups.items() if limit.shows(group_id, self.granularity)]
        by_metric = zip(*shown, strict=True)
        return {name: "".join(texts).encode() for name, texts in zip(self.names, by_metric, strict=bool(shown))}


class GroupTexts:
    """The lines of all groups of a cluster, for metrics of one granularity. Several threads may ask."""

    def __init__(
        self,
        granularity: Granularity,
        families: Iterable[GroupFamily],
        constant: Callable[[Signal], Mapping[str, str]],
    ) -> None:
        self._granularity = granularity
        self._writers = {signal.name: (Writer(signal, constant(signal)).text, samples) for signal, samples in families}
        self._kept: Mapping[str, _Kept] = {}

    @property
    def is_empty(self) -> bool:
        """Whether there is no metric to write."""
        return not self._writers

    def lines(self, reports: Iterable[GroupReport]) -> GroupLines:
        """All lines of these groups."""
        known, kept = self._kept, {}
        for report in reports:
            found, parts = known.get(report.group_id), _standing_parts(report)
            is_known = found is not None and found.parts == parts
            # Equal parts may be other objects: the newest are kept, the ones that the next scrape will bring again.
            kept[report.group_id] = found._replace(parts=parts) if found and is_known else self._written(report, parts)
        self._kept = kept
        return GroupLines(self._granularity, tuple(self._writers), kept)

    def _written(self, report: GroupReport, parts: tuple[Any, ...]) -> _Kept:
        texts = tuple(text(samples(report)) for text, samples in self._writers.values())
        return _Kept(parts, texts, sum(text.count("\n") for text in texts))
