"""Every group's report (`evaluation.evaluate`), from the present.

1. Before the monitor has read the log to its end for the first time, there are no reports.
2. Without a fresh sample, all values from samples are unknown: lag, status, conditions, listed states, measured work.
   Groups that only commit offsets keep a report, because their commits are in the log.
3. A deleted group has no report, unless a client still commits offsets under its name.
4. The part of a report that comes from records is kept until its inputs change. The part that comes from a sample is
   added when a caller asks for the group. Most scrapes ask only for groups with a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.conditions.unowned import UnownedNow
from streaming.evaluation.evaluate import RecordedGroup, SampleValues, evaluate, with_sample
from streaming.evaluation.facts import GroupLag
from streaming.evaluation.lag.group_lags import GROUP_LAGS_SCHEMA
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.rebalances.skips import decide_skips
from streaming.evaluation.report import GroupReport
from streaming.group.listing import GroupListing, shown_state
from streaming.state.monitor_view import MonitorView, WorkShares


class _OfSample(NamedTuple):
    """What of the present rests on the last sample."""

    lag: LagEvaluation | None = None
    listing: GroupListing | None = None
    rebalancing_since_ms: Mapping[str, int] = MappingProxyType({})
    work: Mapping[str, WorkShares] = MappingProxyType({})
    conditions: Mapping[str, tuple[Condition, ...]] = MappingProxyType({})
    unowned: Mapping[str, UnownedNow] = MappingProxyType({})


_NOTHING_SAMPLED, _NO_LAG, _NOTHING_DECIDED = _OfSample(), GroupLag(), dict[tuple[str, int], bool]()


def _of_sample(view: MonitorView) -> _OfSample:
    since_ms = view.rebalancing_since_ms
    return _OfSample(view.lag, view.listing, since_ms, view.work, view.conditions, view.unowned)


class Reports(Mapping[str, GroupReport]):
    """By group id, sorted. `recorded` are the same without what a sample adds."""

    def __init__(self, recorded: Mapping[str, GroupReport], of_sample: _OfSample) -> None:
        self.recorded = recorded
        self._of_sample = of_sample
        self._whole: dict[str, GroupReport] = {}

    @cached_property
    def with_findings(self) -> Sequence[str]:
        """Groups with a condition or an unowned partition in the last sample."""
        seen = self._of_sample
        return sorted((seen.conditions.keys() | seen.unowned.keys()) & self.recorded.keys())

    @cached_property
    def _lags(self) -> Mapping[str, GroupLag]:
        """Every group's lag, taken out of the columns at once."""
        lag = self._of_sample.lag
        if lag is None:
            return {}
        ids, *columns = (lag.groups[name].to_pylist() for name in GROUP_LAGS_SCHEMA.names)
        return dict(zip(ids, map(GroupLag, *columns), strict=True))

    def __getitem__(self, group_id: str) -> GroupReport:
        """The group with what the sample adds. Raises KeyError."""
        whole = self._whole.get(group_id)
        if whole is None:
            seen, unowned = self._of_sample, self._of_sample.unowned.get(group_id)
            sampled = SampleValues(
                self._lags.get(group_id, _NO_LAG),
                seen.conditions.get(group_id, ()),
                unowned.records() if unowned else None,
            )
            whole = self._whole[group_id] = with_sample(self.recorded[group_id], sampled)
        return whole

    def __iter__(self) -> Iterator[str]:
        """Group ids, sorted."""
        return iter(self.recorded)

    def __len__(self) -> int:
        """How many groups there are."""
        return len(self.recorded)


class ReportBook:
    """The reports of one cluster, kept from one present to the next. One thread at a time may ask."""

    def __init__(self) -> None:
        self._kept: Mapping[str, tuple[RecordedGroup, GroupReport]] = {}
        self._last: tuple[MonitorView, bool, Reports] | None = None

    def reports(self, view: MonitorView, *, is_fresh: bool) -> Reports:
        """All groups; none before the log was read to its end once."""
        last = self._last
        if last is not None and last[0] is view and last[1] == is_fresh:
            return last[2]
        seen = _of_sample(view) if is_fresh else _NOTHING_SAMPLED
        known, self._kept = self._kept, {}
        if view.health.was_ready:
            self._kept = {one.group_id: _kept(known.get(one.group_id), one) for one in _recorded(view, seen)}
        made = Reports({group_id: report for group_id, (_, report) in self._kept.items()}, seen)
        self._last = (view, is_fresh, made)
        return made


def _kept(
    known: tuple[RecordedGroup, GroupReport] | None, recorded: RecordedGroup
) -> tuple[RecordedGroup, GroupReport]:
    """What is known while its inputs are the same. An equal record that is another object takes the other's place."""
    if known is None or known[0].record is not recorded.record or known[0] != recorded:
        return recorded, evaluate(recorded)
    return known


def _recorded(view: MonitorView, seen: _OfSample) -> Iterator[RecordedGroup]:
    """What each group's report is made of, sorted by group id (rules 2 and 3)."""
    is_blocked, gap_totals = view.blocked_groups(), view.gap_totals
    listing, work, since_ms = seen.listing, seen.work, seen.rebalancing_since_ms
    committing = frozenset[str]() if view.lag is None else view.lag.group_ids
    for group_id in sorted(committing.union(view.groups)):
        record = view.groups.get(group_id)
        if record is None or record.snapshot.is_over:
            if group_id in committing:
                listed = listing.groups.get(group_id) if listing else None
                yield RecordedGroup(group_id, None, is_blocked(group_id), listed=listed)
            continue
        snapshot, evaluation, shares = record.snapshot, record.evaluation, work.get(group_id)
        stands = shares and evaluation and shares.position == evaluation.position
        yield RecordedGroup(
            group_id,
            record,
            is_blocked(group_id),
            shown_state(snapshot, listing),
            None,
            since_ms.get(group_id),
            shares.imbalances if shares and stands else (),
            gap_totals.get(group_id),
            decide_skips(view.decided_skips, [snapshot], {}) if snapshot.unsettled_skips else _NOTHING_DECIDED,
        )
