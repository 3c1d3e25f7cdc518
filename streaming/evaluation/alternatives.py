"""What every strategy would make of a group, computed when its generation is evaluated.

Rules:

1. It starts from what the evaluated generation assigned. Where a partition has no owner or several, or a topic's size
   is in doubt (`imbalance`, rule 4), nothing is computed; nor for classic Kafka Streams.
2. A group of up to `MOST_PARTITIONS_CHANGED` partitions is computed as it is, with a member more and with a member
   fewer; a larger one as it is only, and one of more than `MOST_PARTITIONS` not at all. DESIGN.md says what it costs.
3. `remedy` removes the generation's topic skew: of the strategies whose own outcome has the score 100 the one that
   moves fewest partitions (`assignors.what_if.topic_skew.choose_remedy`).
4. Of several generations evaluated in one turn the last is computed: what could be made of a past one helps nobody.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from assignors import GroupSpec, PartitionAssignor, TopicPartition
from assignors.what_if.topic_skew import choose_remedy
from assignors.what_if.what_if import USUAL_CHANGES, Change, FailedOutcome, Outcome, WhatIf, measure_today, what_if
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot

MOST_PARTITIONS_CHANGED = 500
MOST_PARTITIONS = 20_000

AS_IT_IS = str(Change())
TODAY = "(today)"
"""Instead of a strategy's name: what members have."""

_STARTS_FROM = frozenset({"", "subscriptions_too_many"})


class Alternative(msgspec.Struct, frozen=True, array_like=True):
    """One strategy's outcome for the group after `change`, or today's. Counts are of partitions unless they say else.

    `failure` is that of a user's strategy that gave no lawful answer, a word and what it did: then there are no
    numbers. `score` is None where too many subscriptions differ, and `excess_partitions` with it.
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
    """What was computed for the generation evaluated at `position`. `remedy` is that of its skew, if it has any."""

    position: Position
    generation_id: int | None
    group_strategy: str | None
    outcomes: tuple[Alternative, ...]
    is_skewed: bool = False
    remedy: str | None = None

    def as_it_is(self) -> Alternatives:
        """Without the outcomes of changes."""
        kept = tuple(one for one in self.outcomes if one.change == AS_IT_IS)
        return msgspec.structs.replace(self, outcomes=kept)


def alternatives(
    evaluation: Evaluation, snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]
) -> Alternatives | None:
    """Compute them for the snapshot that was evaluated; None where nothing is (rules 1 and 2)."""
    total = among_members(evaluation.imbalances, PARTITIONS)
    if total is None or total.score_reason not in _STARTS_FROM or not 0 < (total.total or 0) <= MOST_PARTITIONS:
        return None
    known = assignment_inputs(snapshot)
    owners = {at: member_ids[0] for at, member_ids in known.owners.items()}
    changes = USUAL_CHANGES if len(owners) <= MOST_PARTITIONS_CHANGED else USUAL_CHANGES[:1]
    possible = [change for change in changes if len(known.spec.members) + change.members > 0]
    answers = [what_if(known.spec, owners, strategies, change) for change in possible]
    return Alternatives(
        evaluation.position,
        evaluation.generation_id,
        next((drift.strategy for drift in evaluation.drifts if drift.is_group_strategy), None),
        (_today(known.spec, owners), *(one for answer in answers for one in _outcomes(answer))),
        is_skewed=evaluation.skew is not None,
        remedy=_remedy(answers[0]) if evaluation.skew else None,
    )


def _remedy(as_it_is: WhatIf) -> str | None:
    found = choose_remedy(as_it_is.outcomes)
    return found.strategy if found else None


def _today(spec: GroupSpec, owners: Mapping[TopicPartition, str]) -> Alternative:
    return _alternative(AS_IT_IS, len(spec.members), len(owners), 0, measure_today(spec, owners))


def _outcomes(answer: WhatIf) -> list[Alternative]:
    change = str(answer.change)
    return [
        Alternative(change, one.strategy, answer.members, answer.partitions, failure=(one.reason, one.detail))
        if isinstance(one, FailedOutcome)
        else _alternative(change, answer.members, answer.partitions, answer.unavoidable_moves, one)
        for one in answer.outcomes
    ]


def _alternative(change: str, members: int, partitions: int, unavoidable_moves: int, outcome: Outcome) -> Alternative:
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
