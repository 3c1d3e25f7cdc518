"""Every group's report (`evaluation.evaluate`), from the present, kept as long as nothing it is made of changes.

1. There are reports once the log was read to its end for the first time: none is made from half a log.
2. Without a fresh sample nothing that rests on one is told: lag, status, conditions, listed states, measured work.
3. A group that was deleted has no report, unless somebody still commits offsets under its name.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from streaming.evaluation.evaluate import Recorded, Sampled, evaluate, with_sample
from streaming.evaluation.facts import GroupLag
from streaming.evaluation.lag.group_lags import GROUP_LAGS_SCHEMA
from streaming.evaluation.lag.lag_judgement import LagJudgement
from streaming.evaluation.rebalances.skips import proven_failures
from streaming.evaluation.report import GroupReport
from streaming.group.listing import shown_state
from streaming.group.snapshot import UNKNOWN, GroupSnapshot
from streaming.state.present import Present

Reports = Mapping[str, GroupReport]
"""By group id, sorted."""


class _Kept(NamedTuple):
    recorded: Recorded
    sampled: Sampled
    report: GroupReport


class ReportBook:
    """The reports of one cluster. Many who ask cost no more than one. Several threads may ask."""

    def __init__(self) -> None:
        self._making = threading.Lock()
        self._kept: Mapping[str, _Kept] = {}
        self._last: tuple[Present, bool, Reports] | None = None
        self._lags: tuple[LagJudgement | None, Mapping[str, GroupLag]] = (None, {})

    def reports(self, present: Present, *, is_fresh: bool) -> Reports:
        """All groups; none before the log was read to its end once."""
        with self._making:
            last = self._last
            if last is None or last[0] is not present or last[1] != is_fresh:
                made = self._made(present, is_fresh=is_fresh) if present.health.was_ready else {}
                last = self._last = (present, is_fresh, made)
            return last[2]

    def _made(self, present: Present, *, is_fresh: bool) -> Reports:
        known = self._kept
        self._kept = {
            recorded.group_id: _kept(known.get(recorded.group_id), recorded, sampled)
            for recorded, sampled in self._inputs(present, is_fresh=is_fresh)
        }
        return {group_id: kept.report for group_id, kept in self._kept.items()}

    def _inputs(self, present: Present, *, is_fresh: bool) -> Iterator[tuple[Recorded, Sampled]]:
        """What each group's report is made of, sorted by group id (rules 2 and 3)."""
        lag = present.lag if is_fresh else None
        listing, work = (present.listing, present.work) if is_fresh else (None, {})
        is_held_back, lags, nothing = present.held_back_groups(), self._lags_of(lag), GroupLag()
        committing = frozenset[str]() if lag is None else lag.group_ids
        for group_id in sorted(committing.union(present.groups)):
            record = present.groups.get(group_id)
            if record is not None and record.snapshot.is_over:
                record = None
            if record is None and group_id not in committing:
                continue
            shares, unowned = work.get(group_id), present.unowned.get(group_id) if is_fresh else None
            stands = record and shares and record.judgement and shares.position == record.judgement.position
            yield (
                Recorded(
                    group_id,
                    record,
                    is_held_back(group_id),
                    UNKNOWN if record is None else shown_state(record.snapshot, listing),
                    listing.groups.get(group_id) if record is None and listing else None,
                    present.rebalancing_since_ms.get(group_id) if listing else None,
                    shares.imbalances if shares and stands else (),
                    present.gap_totals.get(group_id),
                    _proven_failures(record.snapshot, present) if record else 0,
                ),
                Sampled(
                    lags.get(group_id, nothing),
                    present.conditions.get(group_id, ()) if is_fresh else (),
                    unowned.records() if unowned else None,
                ),
            )

    def _lags_of(self, lag: LagJudgement | None) -> Mapping[str, GroupLag]:
        """Every group's lag, taken out of the columns once a sample."""
        if lag is None:
            return {}
        if self._lags[0] is not lag:
            ids, *columns = (lag.groups[name].to_pylist() for name in GROUP_LAGS_SCHEMA.names)
            self._lags = lag, dict(zip(ids, map(GroupLag, *columns), strict=True))
        return self._lags[1]


def _kept(known: _Kept | None, recorded: Recorded, sampled: Sampled) -> _Kept:
    """What is known while its inputs are the same. An equal record that is another object takes the other's place."""
    if known is None or known.recorded.record is not recorded.record or known.recorded != recorded:
        return _Kept(recorded, sampled, evaluate(recorded, sampled))
    if known.sampled != sampled:
        return _Kept(recorded, sampled, with_sample(known.report, sampled))
    return known


def _proven_failures(snapshot: GroupSnapshot, present: Present) -> int:
    """Failed rebalances that the group's own state does not count yet."""
    if not snapshot.unsettled_skips or snapshot.position is None:
        return 0
    lane = present.lanes.get(snapshot.position.kafka_partition)
    return 0 if lane is None else proven_failures(snapshot.unsettled_skips, lane)
