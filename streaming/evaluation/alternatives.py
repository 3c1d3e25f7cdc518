"""The what-if results of a group: the assignment that each strategy would compute for the group.

The monitor computes the what-if results when it evaluates a generation. Rules:

1. Each strategy starts from the assignment of the evaluated generation. A group has what-if results only if it has a
   score, or if its `score_reason` is `subscriptions_too_many` (`imbalance`, rule 4).
2. The monitor computes what-if results for the present number of members. For a group with up to
   `MOST_PARTITIONS_CHANGED` partitions, it also computes results for one member more and one member fewer. A group with
   more than `MOST_PARTITIONS` partitions has no what-if results.
3. If the generation has a topic skew, `remedy` is a strategy whose assignment has the score 100. Such an assignment has
   no topic skew. If several strategies have the score 100, `remedy` is the strategy that moves the fewest partitions
   (`assignors.what_if.topic_skew.choose_remedy`). `remedy` is always a strategy that the group can use
   (`assignment.library_strategies`), so it is never a custom strategy.
4. If the group can use a strategy, the strategy is computed as the group's leader computes it. All other built-in
   strategies are computed as Java or the coordinator computes them.
5. If one batch evaluates several generations, the monitor computes the what-if results only for the last generation.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from assignors import PartitionAssignor
from assignors.what_if.topic_skew import choose_remedy
from assignors.what_if.what_if import USUAL_CHANGES, Change, FailedOutcome, Outcome, WhatIf, measure_today, what_if
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.assignment.leader import UNRECOGNISED
from streaming.evaluation.assignment.library_strategies import usable_strategies
from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot

MOST_PARTITIONS_CHANGED = 500
MOST_PARTITIONS = 20_000
AS_IT_IS = str(Change())
"""Value of `Alternative.change` for the present number of members."""
TODAY = "(today)"
"""Value of `Alternative.strategy` for the present assignment."""
_ACCEPTED_SCORE_REASONS = frozenset({"", "subscriptions_too_many"})


class Alternative(msgspec.Struct, frozen=True, array_like=True):
    """The what-if result of one strategy, for one `change` of the number of members.

    If a user's strategy fails or returns an invalid assignment, `failure` contains a reason and a description, and all
    later fields are None. If the members have too many different subscriptions, `score` and `excess_partitions` are
    None.
    """

    change: str
    strategy: str
    members: int
    partitions: int
    failure: tuple[str, str] | None = None
    score: float | None = None
    excess_partitions: int | None = None
    idle_members: int | None = None
    moved_partitions: int | None = None
    unavoidable_moves: int | None = None
    unassigned_partitions: int | None = None
    widest_topic_spread: int | None = None
    widest_spread_topic: str | None = None
    rounds: int | None = None


class Alternatives(msgspec.Struct, frozen=True):
    """The what-if results for one generation. `position` is the position of the generation's record.

    `remedy` is None if there is no topic skew, or if no strategy that the group can use removes the skew (rule 3).
    """

    position: Position
    generation_id: int | None
    group_strategy: str | None
    outcomes: tuple[Alternative, ...]
    is_skewed: bool = False
    remedy: str | None = None

    def as_it_is(self) -> Alternatives:
        """Return a copy with only the results for the present number of members."""
        unchanged = tuple(outcome for outcome in self.outcomes if outcome.change == AS_IT_IS)
        return msgspec.structs.replace(self, outcomes=unchanged)


def compute_alternatives(
    evaluation: Evaluation, snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]
) -> Alternatives | None:
    """Return the what-if results of a snapshot, or None if rule 1 or 2 excludes the group."""
    total = among_members(evaluation.imbalances, PARTITIONS)
    if total is None or total.score_reason not in _ACCEPTED_SCORE_REASONS:
        return None
    if not 0 < (total.total or 0) <= MOST_PARTITIONS:
        return None
    inputs = assignment_inputs(snapshot)
    owners = inputs.first_owners
    changes = USUAL_CHANGES if len(owners) <= MOST_PARTITIONS_CHANGED else USUAL_CHANGES[:1]
    possible = [change for change in changes if len(inputs.spec.members) + change.members > 0]
    usable = {one.name: one for one in usable_strategies(evaluation.assigned_by or UNRECOGNISED, inputs.spec)}
    computed = [usable.get(one.name, one) for one in strategies]
    results = [what_if(inputs.spec, owners, computed, change) for change in possible]
    today = _from_outcome(AS_IT_IS, len(inputs.spec.members), len(owners), 0, measure_today(inputs.spec, owners))
    usable_outcomes = [one for one in results[0].outcomes if one.strategy in usable]
    remedy = choose_remedy(usable_outcomes) if evaluation.skew else None
    return Alternatives(
        evaluation.position,
        evaluation.generation_id,
        evaluation.own.strategy if evaluation.own else None,
        (today, *(_to_alternative(result, one) for result in results for one in result.outcomes)),
        is_skewed=evaluation.skew is not None,
        remedy=remedy.strategy if remedy else None,
    )


def _to_alternative(result: WhatIf, one: Outcome | FailedOutcome) -> Alternative:
    change, members, partitions = str(result.change), result.members, result.partitions
    if isinstance(one, FailedOutcome):
        return Alternative(change, one.strategy, members, partitions, failure=(one.reason, one.detail))
    return _from_outcome(change, members, partitions, result.unavoidable_moves, one)


def _from_outcome(change: str, members: int, partitions: int, unavoidable_moves: int, outcome: Outcome) -> Alternative:
    topic, spread = max(outcome.topic_spread.items(), key=lambda item: item[1], default=(None, 0))
    return Alternative(
        change=change,
        strategy=outcome.strategy or TODAY,
        members=members,
        partitions=partitions,
        score=outcome.score,
        excess_partitions=outcome.excess_partitions,
        idle_members=len(outcome.idle_members),
        moved_partitions=outcome.moved_partitions,
        unavoidable_moves=unavoidable_moves,
        unassigned_partitions=outcome.unassigned_partitions,
        widest_topic_spread=spread,
        widest_spread_topic=topic if spread else None,
        rounds=outcome.rounds,
    )
