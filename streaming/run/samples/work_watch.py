"""How groups share lag and throughput, measured at the slower beat of the lag tables.

Only the assignments that were evaluated are measured, each taken apart once; a group whose work is what it was the last
time is not measured again. What is written of it: the first measure of an assignment, and after that what became
another (`is_another`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from streaming.delta.cells import Row
from streaming.delta.fairness_rows import work_rows
from streaming.delta.rows import arrow_table
from streaming.delta.tables import ASSIGNMENT_IMBALANCE
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.fairness.fairness import shared_work
from streaming.evaluation.fairness.imbalance import LAG, THROUGHPUT, TOPIC, Division, Imbalance, Weights, divide_work
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot
from streaming.state.monitor_view import MonitorView, WorkShares

ANOTHER_SCORE = 10.0
"""Points by which a score must differ from the one written last, to be written again."""

_Key = tuple[str, str, str | None]
_NOTHING: Weights = {}
_ROWS_AT_A_TIME = 2_000


@dataclass(slots=True)
class _Watched:
    """An evaluated assignment, its last measured work by measure, and the last written row of each share."""

    snapshot: GroupSnapshot
    position: Position
    division: Division
    amounts: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    shown: dict[str, tuple[Imbalance, ...]] = field(default_factory=dict)
    written: dict[_Key, tuple[float | None, str]] = field(default_factory=dict)


class WorkWatch:
    """One thread's: the sampler's."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._watched: dict[str, _Watched] = {}

    def measure(
        self, view: MonitorView, lag: LagEvaluation, rates: Weights
    ) -> tuple[Mapping[str, WorkShares], pa.Table]:
        """All groups' shares, and the rows of ASSIGNMENT_IMBALANCE; `rates` are of the sample of `lag`."""
        of_groups, is_blocked = lag.by_partition, view.blocked_groups()
        known, self._watched = self._watched, {}
        work: dict[str, WorkShares] = {}
        rows = _Rows()
        for group_id, record in view.alive_groups().items():
            evaluation = measurable(record)
            if evaluation is None or is_blocked(group_id):
                continue
            watched = _watched(known.get(group_id), record.snapshot, evaluation.position)
            self._watched[group_id] = watched
            changed = [
                *_measured(watched, LAG, of_groups.get(group_id, _NOTHING)),
                *_measured(watched, THROUGHPUT, rates),
            ]
            rows.add(work_rows(self._cluster, group_id, evaluation, lag.report.sampled_at_ms, changed))
            shares = (one for measure in (LAG, THROUGHPUT) for one in watched.shown[measure])
            work[group_id] = WorkShares(evaluation.position, tuple(shares))
        return work, rows.table()

    def forget_written(self) -> None:
        """The last rows did not reach the table: all that is known is written at the next beat."""
        self._watched = {}


class _Rows:
    """Rows on their way into a table; as values they take ten times the memory, so few are kept as such."""

    def __init__(self) -> None:
        self._tables: list[pa.Table] = []
        self._rows: list[Row] = []

    def add(self, rows: Iterable[Row]) -> None:
        self._rows += rows
        if len(self._rows) >= _ROWS_AT_A_TIME:
            self._close()

    def table(self) -> pa.Table:
        self._close()
        return pa.concat_tables(self._tables)

    def _close(self) -> None:
        self._tables.append(arrow_table(ASSIGNMENT_IMBALANCE, self._rows))
        self._rows = []


def measurable(record: GroupState) -> Evaluation | None:
    """The evaluation on the assignment that stands, if there is one."""
    evaluation = record.evaluation
    if evaluation is None or not evaluation.imbalances or evaluation.generation_id != record.snapshot.generation_id:
        return None
    return evaluation


def _watched(known: _Watched | None, snapshot: GroupSnapshot, position: Position) -> _Watched:
    """What is known of it while its snapshot is the same; of another under the same verdict what was written."""
    if known is not None and known.snapshot is snapshot:
        return known
    division = divide_work(shared_work(snapshot, assignment_inputs(snapshot)))
    written = known.written if known is not None and known.position == position else {}
    return _Watched(snapshot, position, division, written=written)


def _measured(watched: _Watched, measure: str, weights: Weights) -> Iterator[Imbalance]:
    """Measure one kind of work if it is another than the last time; give what is to be written of it."""
    amounts = watched.division.amounts(weights)
    if watched.amounts.get(measure) == amounts:
        return
    found = watched.division.imbalance(measure, amounts)
    watched.amounts[measure] = amounts
    watched.shown[measure] = tuple(one for one in found if one.scope != TOPIC)
    for one in found:
        key = (measure, one.scope, one.topic)
        if is_another(watched.written.get(key), one):
            watched.written[key] = (one.score, one.unknown_reason or one.score_reason)
            yield one


def is_another(written: tuple[float | None, str] | None, now: Imbalance) -> bool:
    """Whether a share is worth another row after the one written last, of which the score and the reason are given.

    >>> now = Imbalance(measure=LAG, scope="member", score=80)
    >>> is_another(None, now), is_another((75, ""), now), is_another((70, ""), now), is_another((None, "x"), now)
    (True, False, True, True)
    """
    if written is None:
        return True
    score, reason = written
    if score is None or now.score is None:
        return (score, reason) != (now.score, now.unknown_reason or now.score_reason)
    return abs(score - now.score) >= ANOTHER_SCORE
