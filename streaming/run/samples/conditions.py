"""The sampler's part in groups' conditions: judge them once a sample, show them, write down what began or ended."""

from __future__ import annotations

from collections.abc import Mapping

from streaming.config.settings import JudgementSettings
from streaming.delta.cells import timestamp_ms
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, condition_rows
from streaming.delta.stored import standing_conditions
from streaming.delta.tables import GROUP_CONDITIONS
from streaming.evaluation.conditions.condition_watch import Condition, ConditionWatch, Facts
from streaming.evaluation.conditions.silence import Silence
from streaming.evaluation.conditions.unowned import UnownedNow, unowned_now
from streaming.evaluation.lag.lag import ClusterSample, held_back_partitions
from streaming.evaluation.lag.lag_judgement import LagJudgement
from streaming.evaluation.rebalances.detectors import Limits
from streaming.state.present import Present
from streaming.state.registry import Registry


def limits_of(judgement: JudgementSettings) -> Limits:
    """Return the limits by which conditions are judged, as they are set."""
    return Limits(
        window_seconds=judgement.storm_window_seconds,
        storm_rebalances=judgement.storm_rebalances,
        flaps=judgement.flaps,
        cooperative_rounds=judgement.cooperative_rounds,
        round_seconds=judgement.round_seconds,
        allowed_lag=judgement.allowed_lag,
    )


class GroupConditions:
    """One thread's: the sampler's.

    What holds is compared with the table's last rows: read from it at the first sample and whenever an append raised,
    which it may after it was committed. So a kill between judging and writing loses nothing (the next start finds the
    condition missing from the table and writes it, as of then) and one after writing repeats nothing.
    """

    def __init__(self, cluster: str, registry: Registry, tables: DeltaTables, limits: Limits) -> None:
        self._cluster = cluster
        self._registry = registry
        self._tables = tables
        self._watch = ConditionWatch(limits)
        self._is_in_doubt = True

    def after_sample(self, sample: ClusterSample, lag: LagJudgement, silence: Silence) -> None:
        """Judge by the sample, which the registry has taken in."""
        if self._is_in_doubt:
            self._restore()
        present = self._registry.present()
        unowned = unowned_now(present.alive_groups(), lag.partitions, sample)
        looked = self._watch.look(_facts(present, sample, silence, unowned))
        self._registry.put_conditions(looked.holding, unowned)
        if looked.changes:
            self._is_in_doubt = True
            rows = condition_rows(self._cluster, sample.sampled_at_ms, looked.changes)
            self._tables.append(GROUP_CONDITIONS, arrow_table(GROUP_CONDITIONS, rows))
        self._is_in_doubt = False
        self._watch.take(looked)

    def _restore(self) -> None:
        rows = standing_conditions(self._tables.root, self._cluster)
        self._watch.restore(
            {
                (row["group_id"], row["condition"]): Condition(
                    row["condition"], timestamp_ms(row["since_time"]), row["detail"]
                )
                for row in rows
            }
        )


def _facts(present: Present, sample: ClusterSample, silence: Silence, unowned: Mapping[str, UnownedNow]) -> Facts:
    held_back = held_back_partitions(sample)
    return Facts(
        groups=present.groups,
        now_ms={
            number: read.read_up_to_ms
            for number, read in present.read_up_to.items()
            if read.read_up_to_ms is not None and number not in held_back
        },
        silence=silence,
        listing=present.listing,
        rebalancing_since_ms=present.rebalancing_since_ms,
        unowned=unowned,
    )
