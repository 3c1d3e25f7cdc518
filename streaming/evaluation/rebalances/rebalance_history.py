"""Store the rebalance history of a group: its totals, and summaries of its last rebalances.

The totals count all rebalances since the first record of the group. The totals are part of the group's state. So if a
batch is repeated, no rebalance is counted twice. With a new checkpoint, the monitor reads the log again from the start.
But the table already contains rows up to the offset `reported_up_to` of the partition `reported_in_partition`. If the
table has a row for a rebalance, the rebalance is not counted again. So the totals in new rows continue the totals in
the last stored row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from streaming.evaluation.rebalances.condition_detectors import Limits, conditions
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
"""Maximum number of summaries per group. The detectors evaluate these summaries."""

UNKNOWN_CAUSE = "unknown"
NECESSARY, NEEDLESS, UNKNOWN_NEED = "true", "false", "unknown"
"""Labels that show whether a move was necessary.

If `fewest_moves` is unknown, each move has the label `unknown`. If `fewest_moves` is only a lower bound, the moves
above the bound have the label `unknown`.
"""


class RebalanceTotals(msgspec.Struct, frozen=True):
    """Totals since the group's first record: rebalances for each primary cause, and moved partitions for each label.

    Generations without a record are not counted, because their causes and moves are unknown.
    """

    rebalances_by_cause: dict[str, int] = {}
    moved_partitions: dict[str, int] = {}


class RebalanceHistory(msgspec.Struct, frozen=True):
    """The stored rebalance history of a group."""

    baseline: RebalanceBaseline | None = None
    totals: RebalanceTotals = RebalanceTotals()
    recent: tuple[RebalanceSummary, ...] = ()
    reported_up_to: int = -1
    reported_in_partition: int | None = None
    """None if an earlier version of the monitor stored the history. Then only the offsets are compared."""

    def is_new(self, position: Position) -> bool:
        """Return True if the rebalance at a position is not counted yet."""
        is_same_partition = self.reported_in_partition in {None, position.offsets_topic_partition}
        return not is_same_partition or position.offsets_topic_offset > self.reported_up_to


class ReportedRebalance(msgspec.Struct, frozen=True):
    """A rebalance, and the totals and conditions that its row contains."""

    rebalance: Rebalance
    totals: RebalanceTotals
    conditions: tuple[str, ...] = ()


def extend_history(
    rebalance_history: RebalanceHistory,
    state_before: GroupSnapshot,
    history: Iterable[GroupSnapshot],
    state_after: GroupSnapshot,
    limits: Limits,
) -> tuple[RebalanceHistory, tuple[ReportedRebalance, ...]]:
    """Add the rebalances between successive snapshots to the history of a group.

    Return the new history and the new rows. `state_before` is the group's state before the snapshots, and
    `state_after` is the state after them. The result does not depend on how the records are divided into batches.

    >>> extend_history(RebalanceHistory(), GroupSnapshot("g"), [], GroupSnapshot("g"), Limits())[1]
    ()
    """
    reported: list[ReportedRebalance] = []
    totals, recent, baseline = rebalance_history.totals, rebalance_history.recent, rebalance_history.baseline
    if baseline is not None and baseline.snapshot is None:
        baseline = msgspec.structs.replace(baseline, snapshot=state_before)
    for snapshot in history:
        baseline = _rename_topics(baseline, snapshot)
        rebalance = rebalance_between(baseline, snapshot)
        baseline = baseline_after(baseline, snapshot, rebalance)
        if rebalance is None:
            continue
        recent = (*recent, summarize(rebalance))[-KEPT_REBALANCES:]
        if rebalance_history.is_new(rebalance.position):
            totals = _add_to_totals(totals, rebalance)
            active = conditions(recent, rebalance.position.timestamp_ms, limits)
            reported.append(ReportedRebalance(rebalance, totals, active))
    baseline = _shorten(baseline, state_after)
    extended = msgspec.structs.replace(rebalance_history, baseline=baseline, totals=totals, recent=recent)
    return extended, tuple(reported)


def _rename_topics(baseline: RebalanceBaseline | None, snapshot: GroupSnapshot) -> RebalanceBaseline | None:
    """Replace topic ids in the baseline by names, so that the next comparison does not find a new topic."""
    if baseline is None or snapshot.modern is None or baseline.snapshot is None:
        return baseline
    names = snapshot.modern.topic_names
    unowned = tuple((names.get(topic, topic), partition) for topic, partition in baseline.unowned)
    return msgspec.structs.replace(baseline, snapshot=with_names(baseline.snapshot, names), unowned=unowned)


def _shorten(baseline: RebalanceBaseline | None, present: GroupSnapshot) -> RebalanceBaseline | None:
    """Return the baseline for the stored state, with only what the next comparison needs: members and targets.

    If the snapshot of a classic group equals the present state, the snapshot is omitted.
    """
    known = baseline.snapshot if baseline else None
    if baseline is None or known is None:
        return baseline
    if known.classic is not None and known.classic == present.classic and known.position == present.position:
        return msgspec.structs.replace(baseline, snapshot=None)
    modern = known.modern and msgspec.structs.replace(known.modern, currents={})
    snapshot = msgspec.structs.replace(known, modern=modern, topics={}, unsettled_skips=(), resume=None)
    return msgspec.structs.replace(baseline, snapshot=snapshot)


def _add_to_totals(totals: RebalanceTotals, rebalance: Rebalance) -> RebalanceTotals:
    if rebalance.kind != REBALANCE:
        return totals
    by_cause = Counter(totals.rebalances_by_cause)
    by_cause[rebalance.primary_cause or UNKNOWN_CAUSE] += 1
    moved = Counter(totals.moved_partitions)
    moved.update(moves_by_need(rebalance))
    return RebalanceTotals(dict(by_cause), dict(moved))


def moves_by_need(rebalance: Rebalance) -> Mapping[str, int]:
    """Return the number of moved partitions for each label: necessary, needless or unknown."""
    movement = rebalance.movement
    if not movement.moved_partitions:
        return {}
    if movement.fewest_moves is None:
        return {UNKNOWN_NEED: movement.moved_partitions}
    beyond = movement.moved_partitions - movement.fewest_moves
    need = {NECESSARY: movement.fewest_moves, NEEDLESS if movement.is_exact else UNKNOWN_NEED: beyond}
    return {name: partitions for name, partitions in need.items() if partitions}
