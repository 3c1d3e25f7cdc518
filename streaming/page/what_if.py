"""Computes the assignments of all strategies for the unchanged group, and for the group with one member more or fewer.

1. `evaluation/what_if/inputs.py` collects the inputs. `inputs.py` also decides for which groups the page shows no
   what-if.
2. If a group is too large (rule 2 of `inputs.py`), the page computes nothing for it, because the computation would
   delay the batches. For such a group, the page shows the results that the Spark job stored together with the verdict.
   The stored results cover only the unchanged group. They contain no `sizes` and no produce rates.
3. The page computes the built-in strategies as `BUILT_IN` does, for every client library. The page does not run users'
   own strategies, because their code must run in a separate process. The page shows the stored results of users'
   strategies below the built-in strategies.
4. The page shows a stored result only if the generation, the number of members and the number of partitions are
   unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignors import BUILT_IN, PartitionAssignor, TopicPartition
from assignors.what_if.comparison import format_sizes
from assignors.what_if.what_if import (
    USUAL_CHANGES,
    FailedOutcome,
    ImpossibleChangeError,
    Outcome,
    measure_today,
    what_if,
)
from streaming.evaluation import alternatives as with_verdict
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.report import GroupReport
from streaming.evaluation.what_if.inputs import WhatIfInputs, what_if_inputs, what_if_refusal

TODAY = "today"
TOO_LARGE = "the group is too large to simulate changes. Run `rebalance-monitor what-if`"


@dataclass(frozen=True, slots=True)
class Alternative:
    """The result of one strategy. None means unknown.

    `sizes` shows the number of members for each partition count. For example, `2x3` means two members with three
    partitions each. `score` is the fairness score from 0 to 100. `topic_spread` is the largest difference between two
    subscribers in the number of partitions of one topic. `busiest_records_per_second` is the measured produce rate of
    the busiest member's partitions. If a user's strategy failed, `failure` describes the failure, and all numbers are
    None.
    """

    strategy: str
    sizes: str | None = None
    score: float | None = None
    excess_partitions: int | None = None
    idle_members: int | None = None
    topic_spread: int | None = None
    moved_partitions: int | None = None
    rounds: int | None = None
    busiest_records_per_second: float | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeOutcomes:
    """The results of all strategies for one change of the group. `change` is a description of the change.

    For the unchanged group, the first entry of `alternatives` is the current assignment (`today`).
    """

    change: str
    members: int
    partitions: int
    alternatives: tuple[Alternative, ...]

    @property
    def has_rates(self) -> bool:
        """True if the produce rate of the busiest member is known for at least one strategy."""
        return any(one.busiest_records_per_second is not None for one in self.alternatives)


@dataclass(frozen=True, slots=True)
class WhatIfAnswers:
    """All what-if results of a group. `error` explains why results are missing."""

    changes: tuple[ChangeOutcomes, ...] = ()
    error: str | None = None


def compute_what_if(
    group: GroupReport,
    record: GroupState | None,
    strategies: Sequence[str],
    produce_rates: Mapping[TopicPartition, float],
) -> WhatIfAnswers:
    """Compute the assignments of the built-in strategies for the usual changes, and add stored results (rule 3).

    `produce_rates` contains the known produce rates of the group's partitions, in records per second.
    """
    snapshot, members = record.snapshot if record else None, group.members.each
    error = what_if_refusal(snapshot, is_blocked=group.is_blocked, is_evaluated=group.is_evaluated)
    if record is None or error is not None:
        return WhatIfAnswers(error=error)
    inputs = what_if_inputs(record.snapshot)
    stored = _stored_results(record, len(members), len(inputs.owners))
    if inputs.is_too_large:
        as_it_is = ChangeOutcomes(with_verdict.AS_IT_IS, len(members), len(inputs.owners), stored)
        return WhatIfAnswers((as_it_is,) if stored else (), TOO_LARGE)
    assignors = [BUILT_IN[name] for name in strategies if name in BUILT_IN]
    as_it_is, *changed = _compute_changes(inputs, assignors, produce_rates)
    own = tuple(one for one in stored if one.strategy not in BUILT_IN and one.strategy != TODAY)
    return WhatIfAnswers((replace(as_it_is, alternatives=(*as_it_is.alternatives, *own)), *changed))


def _stored_results(record: GroupState, members: int, partitions: int) -> tuple[Alternative, ...]:
    """Return the stored results, which were computed together with the current verdict (rule 4)."""
    stored, evaluation = record.alternatives, record.evaluation
    if stored is None or evaluation is None or stored.position != evaluation.position:
        return ()
    return tuple(
        Alternative(
            strategy=TODAY if one.strategy == with_verdict.TODAY else one.strategy,
            score=one.score,
            excess_partitions=one.excess_partitions,
            idle_members=one.idle_members,
            topic_spread=one.widest_topic_spread,
            moved_partitions=one.moved_partitions,
            rounds=one.rounds,
            failure=": ".join(one.failure) if one.failure else None,
        )
        for one in stored.as_it_is().outcomes
        if (one.members, one.partitions) == (members, partitions)
    )


def _compute_changes(
    inputs: WhatIfInputs, assignors: Sequence[PartitionAssignor], produce_rates: Mapping[TopicPartition, float]
) -> list[ChangeOutcomes]:
    outcomes: list[ChangeOutcomes] = []
    for change in USUAL_CHANGES:
        try:
            answer = what_if(*inputs, assignors, change, produce_rates)
        except ImpossibleChangeError:  # the group would have no members
            continue
        alternatives = [_alternative(one) for one in answer.outcomes if not isinstance(one, FailedOutcome)]
        current = [] if outcomes else [_alternative(measure_today(*inputs, produce_rates))]
        outcomes.append(ChangeOutcomes(str(change), answer.members, answer.partitions, (*current, *alternatives)))
    return outcomes


def _alternative(outcome: Outcome) -> Alternative:
    return Alternative(
        strategy=outcome.strategy or TODAY,
        sizes=format_sizes(outcome.sizes),
        score=outcome.score,
        excess_partitions=outcome.excess_partitions,
        idle_members=len(outcome.idle_members),
        topic_spread=max(outcome.topic_spread.values(), default=0),
        moved_partitions=outcome.moved_partitions,
        rounds=outcome.rounds,
        busiest_records_per_second=outcome.busiest_records_per_second,
    )
