"""Computes the assignments of all strategies for a group without a change, with one more member, and with one fewer.

1. Nothing is computed if the group is not evaluated. The monitor does not evaluate Kafka Streams groups, Connect
   groups, share groups, groups without members, and groups that only commit offsets. Nothing is computed if an open
   transaction blocks the group. Nothing is computed if the partition count of a subscribed topic is unknown. Nothing is
   computed if the subscription or the assignment of a member is unknown.
2. Nothing is computed for a group with more than `MAX_PARTITIONS` partitions or more than `MAX_MEMBERS` members. For
   such a group, the computation would take too long and would delay the batches. Instead, the page shows the stored
   result. The stored result was computed together with the verdict. It covers only the group without a change, and it
   does not contain `sizes`. To compute the results for a change, the user can run `rebalance-monitor what-if`.
3. The page does not run users' own strategies, because such strategies run in a separate, guarded process. The page
   shows the stored results or failures of these strategies below the built-in strategies.
4. A stored result is shown only if the generation, the number of members and the number of partitions have not changed
   since the computation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from assignors import BUILT_IN, GroupSpec, MemberSubscription, PartitionAssignor, TopicPartition
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
from streaming.evaluation.assignment.group_spec import sampled_partitions, sampled_racks
from streaming.evaluation.assignment.sampled_topics import unknown_topics
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember
from streaming.group.not_known import unknown_inputs
from streaming.group.snapshot import GroupSnapshot

MAX_PARTITIONS = 500
MAX_MEMBERS = 100
TODAY = "today"
TOO_LARGE = "the group is too large to compute changes on this page: run `rebalance-monitor what-if`"


@dataclass(frozen=True, slots=True)
class Alternative:
    """The result of one strategy. None means unknown.

    `sizes` shows the number of members for each partition count. For example, `2x3` means two members with three
    partitions each. `sizes` is None if the sizes are not stored. `score` is 0 to 100. `topic_spread` is the largest
    difference between the partition counts of two subscribers of the same topic. If a user's strategy failed, `failure`
    describes the failure, and all numbers are None.
    """

    strategy: str
    sizes: str | None = None
    score: float | None = None
    excess_partitions: int | None = None
    idle_members: int | None = None
    topic_spread: int | None = None
    moved_partitions: int | None = None
    rounds: int | None = None
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class ChangeOutcomes:
    """The results of all strategies for one change of the group. `change` is a description of the change.

    For the group without a change, the first entry of `alternatives` is the current assignment (`today`).
    """

    change: str
    members: int
    partitions: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class WhatIfAnswers:
    """All what-if results of a group.

    `error` is the reason if all results are missing, or if only the results for changes are missing.
    """

    changes: tuple[ChangeOutcomes, ...] = ()
    error: str | None = None


def compute_what_if(group: GroupReport, record: GroupState | None, strategies: Sequence[str]) -> WhatIfAnswers:
    """Compute the assignments of the built-in strategies for the usual changes.

    Add the stored results of users' own strategies (rule 3).
    """
    error = _refusal(group, record)
    if record is None or error is not None:
        return WhatIfAnswers(error=error)
    snapshot, members = record.snapshot, group.members.each
    owners = {partition: member.member_id for member in members for partition in member.target or ()}
    stored = _stored_results(record, len(members), len(owners))
    if len(owners) > MAX_PARTITIONS or len(members) > MAX_MEMBERS:
        as_it_is = ChangeOutcomes(with_verdict.AS_IT_IS, len(members), len(owners), stored)
        return WhatIfAnswers((as_it_is,) if stored else (), TOO_LARGE)
    assignors = [BUILT_IN[name] for name in strategies if name in BUILT_IN]
    as_it_is, *changed = _compute_changes(_spec(snapshot, members), owners, assignors)
    own = tuple(one for one in stored if one.strategy not in BUILT_IN and one.strategy != TODAY)
    return WhatIfAnswers((replace(as_it_is, alternatives=(*as_it_is.alternatives, *own)), *changed))


def _refusal(group: GroupReport, record: GroupState | None) -> str | None:
    """Return the reason why nothing is computed (rule 1). Return None if the strategies can be computed."""
    if group.is_blocked:
        return "an open transaction blocks the current state of the group"
    if record is None or not group.is_evaluated:
        return "the group has no assignment that can be evaluated"
    if missing := unknown_topics(record.snapshot):
        return f"the partition count is unknown for: {', '.join(missing[:3])}"
    if unknown_inputs(record.snapshot):
        return "the subscription or assignment of a member is unknown"
    return None


def _stored_results(record: GroupState, members: int, partitions: int) -> tuple[Alternative, ...]:
    """Return the stored results, which were computed together with the current verdict (rule 4)."""
    stored, evaluation = record.alternatives, record.evaluation
    if stored is None or evaluation is None or stored.position != evaluation.position:
        return ()
    outcomes = stored.as_it_is().outcomes
    return tuple(_from_stored(one) for one in outcomes if (one.members, one.partitions) == (members, partitions))


def _from_stored(one: with_verdict.Alternative) -> Alternative:
    return Alternative(
        strategy=TODAY if one.strategy == with_verdict.TODAY else one.strategy,
        score=one.score,
        excess_partitions=one.excess_partitions,
        idle_members=one.idle_members,
        topic_spread=one.widest_topic_spread,
        moved_partitions=one.moved_partitions,
        rounds=one.rounds,
        failure=": ".join(one.failure) if one.failure else None,
    )


def _compute_changes(
    spec: GroupSpec, owners: Mapping[TopicPartition, str], assignors: Sequence[PartitionAssignor]
) -> list[ChangeOutcomes]:
    """Compute the assignments of all strategies for each usual change.

    The first entry is the group without a change.
    """
    outcomes: list[ChangeOutcomes] = []
    for change in USUAL_CHANGES:
        try:
            answer = what_if(spec, owners, assignors, change)
        except ImpossibleChangeError:  # the group would have no members
            continue
        alternatives = [_alternative(one) for one in answer.outcomes if not isinstance(one, FailedOutcome)]
        current = [] if outcomes else [_alternative(measure_today(spec, owners))]
        outcomes.append(ChangeOutcomes(str(change), answer.members, answer.partitions, (*current, *alternatives)))
    return outcomes


def _spec(snapshot: GroupSnapshot, members: Sequence[GroupMember]) -> GroupSpec:
    subscriptions = tuple(
        MemberSubscription(
            member.member_id,
            member.subscribed_topics or (),
            instance_id=member.group_instance_id,
            rack=member.rack_id,
        )
        for member in members
    )
    return GroupSpec(subscriptions, sampled_partitions(snapshot), sampled_racks(snapshot))


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
    )
