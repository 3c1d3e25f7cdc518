"""Measure how the members of each group share lag and throughput, each time the lag tables are written.

Only evaluated assignments are measured. For each assignment, the partitions are grouped by member only once. A group is
measured again only if the lag or the produce rate of its partitions changed. The first measurement of an assignment
writes a row for each share. Later, a row is written only for a share that changed enough (`has_changed`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from streaming.delta.cells import Row
from streaming.delta.fairness_rows import work_rows
from streaming.delta.rows import arrow_table
from streaming.delta.tables import ASSIGNMENT_IMBALANCE
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.fairness.fairness import shared_work
from streaming.evaluation.fairness.imbalance import LAG, THROUGHPUT, Division, Imbalance, Weights, divide_work
from streaming.evaluation.fairness.participants import TOPIC
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot
from streaming.state.monitor_view import MonitorView, WorkShares

SCORE_CHANGE = 10.0
"""Minimum change of a score since the last written row, in points. A smaller change does not cause a new row."""

_Key = tuple[str, str, str | None]
_NO_WEIGHTS: Weights = {}
_ROWS_AT_A_TIME = 2_000


@dataclass(slots=True)
class _MeasuredGroup:
    """An evaluated assignment, with its measured work, its shares, and the scores in its last written rows."""

    snapshot: GroupSnapshot
    position: Position
    division: Division
    amounts: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    shares: dict[str, tuple[Imbalance, ...]] = field(default_factory=dict)
    written: dict[_Key, tuple[float | None, str]] = field(default_factory=dict)


class WorkWatch:
    """The shares of work in all groups. Only the sampler's thread calls the methods."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._measured_groups: dict[str, _MeasuredGroup] = {}

    def measure(
        self, view: MonitorView, lag: LagEvaluation, rates: Weights
    ) -> tuple[Mapping[str, WorkShares], pa.Table]:
        """Return the shares of all groups, and the new rows for the table ASSIGNMENT_IMBALANCE.

        `rates` are the produce rates in records per second at the time of `lag`.
        """
        of_groups, is_blocked = lag.by_partition, view.blocked_groups()
        known, self._measured_groups = self._measured_groups, {}
        work: dict[str, WorkShares] = {}
        tables: list[pa.Table] = []
        rows: list[Row] = []
        for group_id, record in view.alive_groups().items():
            evaluation = current_evaluation(record)
            if evaluation is None or is_blocked(group_id):
                continue
            measured = _measured_group(known.get(group_id), record.snapshot, evaluation.position)
            self._measured_groups[group_id] = measured
            changed = [
                *_measure_changed(measured, LAG, of_groups.get(group_id, _NO_WEIGHTS)),
                *_measure_changed(measured, THROUGHPUT, rates),
            ]
            rows += work_rows(self._cluster, group_id, evaluation, lag.report.sampled_at_ms, changed)
            if len(rows) >= _ROWS_AT_A_TIME:  # Python rows need ten times the memory of Arrow tables
                tables.append(arrow_table(ASSIGNMENT_IMBALANCE, rows))
                rows = []
            shares = (one for measure in (LAG, THROUGHPUT) for one in measured.shares[measure])
            work[group_id] = WorkShares(evaluation.position, tuple(shares))
        return work, pa.concat_tables([*tables, arrow_table(ASSIGNMENT_IMBALANCE, rows)])

    def forget_written(self) -> None:
        """Call this if the new rows could not be appended. Then the next measurement returns rows for all shares."""
        self._measured_groups = {}


def current_evaluation(record: GroupState) -> Evaluation | None:
    """Return the evaluation of the current assignment. Return None if no evaluation with imbalances exists."""
    evaluation = record.evaluation
    if evaluation is None or not evaluation.imbalances or evaluation.generation_id != record.snapshot.generation_id:
        return None
    return evaluation


def _measured_group(known: _MeasuredGroup | None, snapshot: GroupSnapshot, position: Position) -> _MeasuredGroup:
    """Return `known` if it was computed from this snapshot. Otherwise, return a new entry.

    A new entry for the same evaluation keeps the `written` scores.
    """
    if known is not None and known.snapshot is snapshot:
        return known
    division = divide_work(shared_work(snapshot, assignment_inputs(snapshot)))
    written = known.written if known is not None and known.position == position else {}
    return _MeasuredGroup(snapshot, position, division, written=written)


def _measure_changed(measured: _MeasuredGroup, measure: str, weights: Weights) -> Iterator[Imbalance]:
    """Measure LAG or THROUGHPUT again if the work of a partition changed. Yield the shares that need a new row."""
    amounts = measured.division.amounts(weights)
    if measured.amounts.get(measure) == amounts:
        return
    imbalances = measured.division.imbalance(measure, amounts)
    measured.amounts[measure] = amounts
    measured.shares[measure] = tuple(one for one in imbalances if one.scope != TOPIC)
    for one in imbalances:
        key = (measure, one.scope, one.topic)
        if has_changed(measured.written.get(key), one):
            measured.written[key] = (one.score, one.unknown_reason or one.score_reason)
            yield one


def has_changed(written: tuple[float | None, str] | None, now: Imbalance) -> bool:
    """Return True if a share changed enough for a new row. `written` is the score and reason of the last row.

    >>> now = Imbalance(measure=LAG, scope="member", score=80)
    >>> has_changed(None, now), has_changed((75, ""), now), has_changed((70, ""), now), has_changed((None, "x"), now)
    (True, False, True, True)
    """
    if written is None:
        return True
    score, reason = written
    if score is None or now.score is None:
        return (score, reason) != (now.score, now.unknown_reason or now.score_reason)
    return abs(score - now.score) >= SCORE_CHANGE
