"""The sampler's part in groups' conditions: evaluate them once a sample, show them, write down what began or ended."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.config.settings import EvaluationSettings
from streaming.delta.cells import timestamp_ms
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, condition_rows
from streaming.delta.stored import active_conditions
from streaming.delta.tables import GROUP_CONDITIONS
from streaming.evaluation.conditions.condition_tracker import Condition, ConditionInputs, ConditionTracker
from streaming.evaluation.conditions.silence import Silence
from streaming.evaluation.conditions.unowned import UnownedNow, unowned_now
from streaming.evaluation.lag.lag import ClusterSample, blocked_partitions
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.rebalances.detectors import Limits
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView


def limits_of(evaluation: EvaluationSettings) -> Limits:
    """Return the limits by which conditions are evaluated, as they are set."""
    return Limits(
        window_seconds=evaluation.storm_window_seconds,
        storm_rebalances=evaluation.storm_rebalances,
        flap_threshold=evaluation.flap_threshold,
        stuck_after_seconds=evaluation.stuck_after_seconds,
        allowed_lag=evaluation.allowed_lag,
    )


class GroupConditions:
    """One thread's: the sampler's.

    What holds is compared with the table's last rows: read from it at the first sample and whenever an append raised,
    which it may after it was committed. So a kill between evaluating and writing loses nothing (the next start finds
    the condition missing from the table and writes it, as of then) and one after writing repeats nothing.
    """

    def __init__(self, cluster: str, monitor_state: MonitorState, tables: DeltaTables, limits: Limits) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._tables = tables
        self._watch = ConditionTracker(limits)
        self._is_in_doubt = True

    def after_sample(self, sample: ClusterSample, lag: LagEvaluation, silence: Silence) -> None:
        """Judge by the sample, which the registry has taken in."""
        if self._is_in_doubt:
            self._restore()
        view = self._monitor_state.view()
        unowned = unowned_now(view.alive_groups(), lag.partitions, sample)
        evaluation = self._watch.evaluate(_facts(view, sample, silence, unowned))
        self._monitor_state.put_conditions(evaluation.active, unowned)
        if evaluation.changes:
            self._is_in_doubt = True
            rows = condition_rows(self._cluster, sample.sampled_at_ms, evaluation.changes)
            self._tables.append(GROUP_CONDITIONS, arrow_table(GROUP_CONDITIONS, rows))
        self._is_in_doubt = False
        self._watch.commit(evaluation)

    def _restore(self) -> None:
        rows = active_conditions(self._tables.root, self._cluster)
        self._watch.restore(
            {
                (row["group_id"], row["condition"]): Condition(
                    row["condition"], timestamp_ms(row["since_time"]), row["detail"]
                )
                for row in rows
            }
        )


def _facts(
    view: MonitorView, sample: ClusterSample, silence: Silence, unowned: Mapping[str, UnownedNow]
) -> ConditionInputs:
    blocked = blocked_partitions(sample)
    return ConditionInputs(
        groups=view.groups,
        now_ms={
            number: read.read_up_to_ms
            for number, read in view.read_up_to.items()
            if read.read_up_to_ms is not None and number not in blocked
        },
        silence=silence,
        listing=view.listing,
        rebalancing_since_ms=view.rebalancing_since_ms,
        unowned=unowned,
    )
