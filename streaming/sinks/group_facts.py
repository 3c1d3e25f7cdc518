"""All that the series of one group are made of, and their text, kept for as long as those facts are the same.

Rules:

1. A group's samples of the metrics told of it follow from its `GroupFacts` alone. What changes by itself (an age, lag)
   is told elsewhere.
2. Text is kept by facts: another fact, another text. Facts are compared piece by piece, and a piece that is the same
   object is the same.
3. A group that is not shown any more is not kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from streaming.combine.gaps import GapTotals
from streaming.group.listing import shown_state
from streaming.group.snapshot import UNKNOWN
from streaming.judgement.imbalance import Imbalance
from streaming.judgement.turn import GroupRecord
from streaming.signals import Signal
from streaming.sinks.lines import Sample, Writer
from streaming.sinks.registry import Present


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


def facts_of(present: Present, is_shown: Callable[[str], bool], *, is_fresh: bool) -> Iterator[GroupFacts]:
    """The facts of all groups that are shown, in order; without a fresh sample, without what rests on it."""
    is_held_back = present.held_back_groups()
    listing, work = (present.listing, present.work) if is_fresh else (None, {})
    for group_id, record in present.alive_groups().items():
        if is_shown(group_id):
            held_back, shares = is_held_back(group_id), work.get(group_id)
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
    """Of each group its facts, and its lines of the metrics with these names."""

    names: tuple[str, ...]
    groups: Mapping[str, tuple[GroupFacts, tuple[str, ...]]]


class GroupTexts:
    """The lines of all groups of a cluster, for some metrics. Several threads may ask."""

    def __init__(self, families: Sequence[GroupFamily], constant: Callable[[Signal], Mapping[str, str]]) -> None:
        self._writers = {signal.name: (Writer(signal, constant(signal)).text, samples) for signal, samples in families}
        self._kept = _Kept((), {})

    def texts(self, groups: Iterable[GroupFacts], wanted: AbstractSet[str]) -> Mapping[str, bytes]:
        """All lines of these groups, by metric, of those that are wanted."""
        names = tuple(name for name in self._writers if name in wanted)
        writers = [self._writers[name] for name in names]
        known = self._kept.groups if self._kept.names == names else {}
        kept = {}
        for facts in groups:
            found = known.get(facts.group_id)
            if found is None or found[0] != facts:
                found = (facts, tuple(text(samples(facts)) for text, samples in writers))
            kept[facts.group_id] = found
        self._kept = _Kept(names, kept)
        by_metric = zip(*(texts for _, texts in kept.values()), strict=True)
        return {name: "".join(texts).encode() for name, texts in zip(names, by_metric, strict=bool(kept))}
