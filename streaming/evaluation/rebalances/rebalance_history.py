"""The story of a group: its rebalances one after the other, counted, and the last of them in brief.

What is counted are totals since the group was first seen, kept with the group, so that a batch that is run again counts
nothing twice. `reported_up_to` (in `reported_in_partition`) makes that so for a log that is read again from its start
as well: the rebalances up to there are rows of an earlier checkpoint's table, and the totals its last row's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from streaming.evaluation.rebalances.detectors import Limits, conditions
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary, summarize
from streaming.evaluation.rebalances.rebalances import (
    REBALANCE,
    Rebalance,
    RebalanceBaseline,
    baseline_after,
    rebalance_between,
)
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import with_names

KEPT_REBALANCES = 64
"""Rebalances of a group that are remembered in brief: what the detectors look back on."""

UNKNOWN_CAUSE = "unknown"
NECESSARY, NEEDLESS, UNKNOWN_NEED = "true", "false", "unknown"
"""Moves that had to be; that did not; of which it is not known, as the fewest are not."""


class RebalanceTotals(msgspec.Struct, frozen=True):
    """Absolute counts since the group was first seen: rebalances by primary cause, moved partitions by need.

    Only rebalances that were read are counted here: of a skipped generation nobody knows cause or moves.
    """

    rebalances_by_cause: dict[str, int] = {}
    moved_partitions: dict[str, int] = {}


class RebalanceHistory(msgspec.Struct, frozen=True):
    """What is kept of a group's rebalances."""

    baseline: RebalanceBaseline | None = None
    totals: RebalanceTotals = RebalanceTotals()
    recent: tuple[RebalanceSummary, ...] = ()
    reported_up_to: int = -1
    reported_in_partition: int | None = None

    def is_new(self, position: Position) -> bool:
        """Whether the rebalance at a position is not counted yet. Offsets of two partitions have no order.

        None is the partition of whatever is read: an earlier version of the monitor did not store it.
        """
        is_same_partition = self.reported_in_partition in {None, position.offsets_topic_partition}
        return not is_same_partition or position.offsets_topic_offset > self.reported_up_to


class ReportedRebalance(msgspec.Struct, frozen=True):
    """A rebalance, with the totals and conditions as of it, as its row has them."""

    rebalance: Rebalance
    totals: RebalanceTotals
    conditions: tuple[str, ...] = ()


def extend_history(
    rebalance_history: RebalanceHistory,
    present: GroupSnapshot,
    history: Iterable[GroupSnapshot],
    present_after: GroupSnapshot,
    limits: Limits,
) -> tuple[RebalanceHistory, tuple[ReportedRebalance, ...]]:
    """Go on with the story through what is told of the group now; `present` is the group before, and after.

    The same records make the same rebalances in however many turns they come.

    >>> extend_history(RebalanceHistory(), GroupSnapshot("g"), [], GroupSnapshot("g"), Limits())[1]
    ()
    """
    reported: list[ReportedRebalance] = []
    baseline = _whole(rebalance_history.baseline, present)
    for snapshot in history:
        baseline = _in_names_of(baseline, snapshot)
        before = baseline.snapshot if baseline else None
        rebalance = rebalance_between(baseline, before, snapshot)
        baseline = baseline_after(baseline, before, snapshot, rebalance)
        if rebalance is None:
            continue
        rebalance_history = msgspec.structs.replace(
            rebalance_history, recent=(*rebalance_history.recent, summarize(rebalance))[-KEPT_REBALANCES:]
        )
        if rebalance_history.is_new(rebalance.position):
            rebalance_history = msgspec.structs.replace(
                rebalance_history, totals=_counted(rebalance_history.totals, rebalance)
            )
            holding = conditions(rebalance_history.recent, rebalance.position.timestamp_ms, limits)
            reported.append(ReportedRebalance(rebalance, rebalance_history.totals, holding))
    return msgspec.structs.replace(rebalance_history, baseline=_kept(baseline, present_after)), tuple(reported)


def _in_names_of(baseline: RebalanceBaseline | None, snapshot: GroupSnapshot) -> RebalanceBaseline | None:
    """The standing with topics named as in the snapshot: an id of then may have a name now, and is no new topic."""
    if baseline is None or snapshot.modern is None or baseline.snapshot is None:
        return baseline
    names = snapshot.modern.topic_names
    unowned = tuple((names.get(topic, topic), partition) for topic, partition in baseline.unowned)
    return msgspec.structs.replace(baseline, snapshot=with_names(baseline.snapshot, names), unowned=unowned)


def _kept(baseline: RebalanceBaseline | None, present: GroupSnapshot) -> RebalanceBaseline | None:
    """The standing as it is stored: of a classic group, its present is that, and need not be kept twice."""
    known = baseline.snapshot if baseline else None
    if baseline is None or known is None:
        return baseline
    if known.classic is not None and known.classic == present.classic and known.position == present.position:
        return msgspec.structs.replace(baseline, snapshot=None)
    return msgspec.structs.replace(baseline, snapshot=_without_detail(known))


def _without_detail(snapshot: GroupSnapshot) -> GroupSnapshot:
    """What a later comparison needs: members and what they shall have."""
    modern = snapshot.modern and msgspec.structs.replace(snapshot.modern, currents={})
    return msgspec.structs.replace(snapshot, modern=modern, topics={}, unsettled_skips=(), resume=None)


def _whole(baseline: RebalanceBaseline | None, present: GroupSnapshot) -> RebalanceBaseline | None:
    if baseline is None or baseline.snapshot is not None:
        return baseline
    return msgspec.structs.replace(baseline, snapshot=present)


def _counted(totals: RebalanceTotals, rebalance: Rebalance) -> RebalanceTotals:
    if rebalance.kind != REBALANCE:
        return totals
    by_cause = Counter(totals.rebalances_by_cause)
    by_cause[rebalance.primary_cause or UNKNOWN_CAUSE] += 1
    moved = Counter(totals.moved_partitions)
    moved.update(moves_by_need(rebalance))
    return RebalanceTotals(dict(by_cause), dict(moved))


def moves_by_need(rebalance: Rebalance) -> Mapping[str, int]:
    """Moved partitions: how many had to, how many did not, or that this is not known."""
    movement = rebalance.movement
    if not movement.moved_partitions:
        return {}
    if movement.fewest_moves is None:
        return {UNKNOWN_NEED: movement.moved_partitions}
    beyond = movement.moved_partitions - movement.fewest_moves
    need = {NECESSARY: movement.fewest_moves, NEEDLESS if movement.is_exact else UNKNOWN_NEED: beyond}
    return {which: partitions for which, partitions in need.items() if partitions}
