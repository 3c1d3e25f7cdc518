"""All that the series of one group are made of, and their text, kept for as long as those facts are the same.

Rules:

1. A group's samples of the metrics told of it follow from its `GroupFacts` alone. What changes by itself (an age, lag)
   is told elsewhere.
2. Text is kept by facts: another fact, another text. Facts are compared piece by piece, and a piece that is the same
   object is the same.
3. A group that is not shown any more is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from streaming.combine.gaps import GapTotals
from streaming.config.names import NameFilter
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.evaluation.turn import GroupRecord
from streaming.group.listing import shown_state
from streaming.group.snapshot import UNKNOWN
from streaming.prometheus.counted_lines import Counted
from streaming.prometheus.exposition import Text
from streaming.prometheus.exposure import Cut
from streaming.prometheus.lines import Sample, Writer
from streaming.signals import Granularity, Signal
from streaming.state.registry import Present


class GroupFacts(NamedTuple):
    """What is known of a group. `work` is what was measured of the assignment that stands, at the last sample.

    `state` is as shown: a listing's where that is younger, Unknown where an open transaction hides what happened last.
    """

    group_id: str
    record: GroupRecord
    is_held_back: bool
    state: str
    work: tuple[Imbalance, ...] = ()
    gaps: GapTotals | None = None


Samples = Callable[[GroupFacts], Iterable[Sample]]
"""A group's samples of one metric."""

GroupFamily = tuple[Signal, Samples]


def single(value: Callable[[GroupRecord], float | None], *, is_told_held_back: bool = False) -> Samples:
    """The one sample of a metric that a group's record tells; None is no sample.

    Where an open transaction hides what happened last, only counts of what was read are told.
    """

    def samples(facts: GroupFacts) -> Iterable[Sample]:
        if facts.is_held_back and not is_told_held_back:
            return ()
        measured = value(facts.record)
        return () if measured is None else (Sample((facts.group_id,), measured),)

    return samples


def facts_of(present: Present, groups: NameFilter, *, is_fresh: bool) -> Iterator[GroupFacts]:
    """The facts of all groups that are asked for, in order; without a fresh sample, without what rests on it."""
    is_held_back, alive = present.held_back_groups(), present.alive_groups()
    listing, work = (present.listing, present.work) if is_fresh else (None, {})
    for group_id in groups.among(alive):
        record, held_back, shares = alive[group_id], is_held_back(group_id), work.get(group_id)
        stands = shares and record.judgement and shares.position == record.judgement.position
        yield GroupFacts(
            group_id,
            record,
            held_back,
            UNKNOWN if held_back else shown_state(record.snapshot, listing),
            shares.imbalances if shares and stands else (),
            present.gap_totals.get(group_id),
        )


class _Kept(NamedTuple):
    """A group's facts, its lines by metric, and how many they are."""

    facts: GroupFacts
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

    def text(self, cut: Cut) -> Mapping[str, Text]:
        """The lines that are shown, by metric."""
        shown = [kept.texts for group_id, kept in self.groups.items() if cut.shows(group_id, self.granularity)]
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

    def lines(self, groups: Iterable[GroupFacts]) -> GroupLines:
        """All lines of these groups."""
        known, kept = self._kept, {}
        for facts in groups:
            found = known.get(facts.group_id)
            is_known = found is not None and found.facts == facts
            # Equal facts may be other objects: the newest are kept, the ones that the next scrape will bring again.
            kept[facts.group_id] = found._replace(facts=facts) if found and is_known else self._written(facts)
        self._kept = kept
        return GroupLines(self._granularity, tuple(self._writers), kept)

    def _written(self, facts: GroupFacts) -> _Kept:
        texts = tuple(text(samples(facts)) for text, samples in self._writers.values())
        return _Kept(facts, texts, sum(text.count("\n") for text in texts))
