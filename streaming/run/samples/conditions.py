"""Evaluate the conditions of all groups once per sample.

The start and the end of each condition are written to the table GROUP_CONDITIONS. The row of an active condition is
written again on each UTC date. So the deletion of old dates never deletes the last row of an active condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from streaming.config.settings import EvaluationSettings
from streaming.delta.cells import Row, timestamp_ms, utc
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, condition_rows
from streaming.delta.stored import active_conditions
from streaming.delta.tables import GROUP_CONDITIONS
from streaming.evaluation.conditions.condition_tracker import (
    Condition,
    ConditionChange,
    ConditionEvaluation,
    ConditionInputs,
    ConditionTracker,
    Key,
)
from streaming.evaluation.conditions.missing_topics import missing_topics_now
from streaming.evaluation.conditions.unowned import unowned_now
from streaming.evaluation.lag.lag import ClusterSample, blocked_partitions
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.limits import LimitsOf, default_limits
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.run.samples.lag.lag_watch import LagWatch
from streaming.state.monitor_state import MonitorState


def limits_of(evaluation: EvaluationSettings) -> Limits:
    """Return the limits that the settings define for the conditions."""
    return Limits(
        window_seconds=evaluation.storm_window_seconds,
        storm_rebalances=evaluation.storm_rebalances,
        flap_threshold=evaluation.flap_threshold,
        stuck_after_seconds=evaluation.stuck_after_seconds,
        allowed_lag=evaluation.allowed_lag,
    )


class GroupConditions:
    """The conditions of all groups. Only the sampler's thread calls the methods.

    At the first sample, the active conditions are compared with the last rows in the table. So after a kill, missing
    rows are written, and no row is written twice. If an append raises an error, it is unknown whether the rows were
    written. So the next sample reads the table again.
    """

    def __init__(
        self,
        cluster: str,
        monitor_state: MonitorState,
        tables: DeltaTables,
        limits: Limits,
        limits_of: LimitsOf = default_limits,
    ) -> None:
        """`limits` are the same for all groups. `limits_of` returns the limits of a single group."""
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._tables = tables
        self._limits = limits
        self._tracker = ConditionTracker(limits, limits_of)
        self._row_dates: dict[Key, date] = {}
        self._must_restore = True

    @property
    def hidden(self) -> Iterator[Key]:
        """The active conditions that the last sample could not evaluate. They may have ended."""
        shown = self._monitor_state.view().conditions
        return (
            (group_id, name)
            for group_id, name in self._tracker.not_ended
            if all(one.name != name for one in shown.get(group_id, ()))
        )

    def after_sample(self, sample: ClusterSample, lag: LagEvaluation, lag_watch: LagWatch) -> None:
        """Evaluate the conditions. The sample must already be in the monitor state.

        The monitor state can already contain later records than `lag`. So "now" comes from `lag_watch`, which has
        evaluated the commits of this sample.
        """
        if self._must_restore:
            self._restore()
        view = self._monitor_state.view()
        blocked, ahead_ms = blocked_partitions(sample), lag_watch.leaders_ahead_ms
        now_ms = {
            number: read_up_to_ms + ahead_ms.get(number, 0)
            for number, read_up_to_ms in lag_watch.read_up_to_ms.items()
            if number not in blocked
        }
        unowned = unowned_now(view.alive_groups(), lag.partitions, sample, now_ms, self._limits)
        inputs = ConditionInputs(
            groups=view.groups,
            now_ms=now_ms,
            ahead_ms=ahead_ms,
            refused_groups=sample.refused_groups,
            silence=lag_watch.silence(lag),
            listing=view.listing,
            rebalancing_since_ms=view.rebalancing_since_ms,
            unowned=unowned,
            missing_topics=missing_topics_now(view.groups, sample),
        )
        evaluation = self._tracker.evaluate(inputs)
        self._monitor_state.put_conditions(evaluation.active, unowned)
        rows = self._rows(evaluation, sample.sampled_at_ms)
        if rows:
            self._must_restore = True
            self._tables.append(GROUP_CONDITIONS, arrow_table(GROUP_CONDITIONS, rows))
        self._must_restore = False
        self._tracker.commit(evaluation)
        self._row_dates |= {_key(row): row["date"] for row in rows}
        self._row_dates = {key: self._row_dates[key] for key in evaluation.known}

    def _rows(self, evaluation: ConditionEvaluation, sampled_at_ms: int) -> Sequence[Row]:
        today = utc(sampled_at_ms).date()
        repeated = [
            ConditionChange(group_id, condition, active=True, read_up_to_ms=None)
            for (group_id, name), condition in evaluation.known.items()
            if self._row_dates.get((group_id, name), today) < today
        ]
        return [
            *condition_rows(self._cluster, sampled_at_ms, evaluation.changes),
            *condition_rows(self._cluster, sampled_at_ms, repeated, is_repeated=True),
        ]

    def _restore(self) -> None:
        rows = active_conditions(self._tables.root, self._cluster)
        self._row_dates = {_key(row): row["date"] for row in rows}
        self._tracker.restore(
            {_key(row): Condition(row["condition"], timestamp_ms(row["since_time"]), row["detail"]) for row in rows}
        )


def _key(row: Row) -> Key:
    return row["group_id"], row["condition"]
