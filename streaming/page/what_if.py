"""What every strategy would make of a group as it is, with a member more and with a member fewer.

1. Nothing is computed for a group that is not evaluated (of Kafka Streams, Connect or share consumers, without members,
   with commits only), for one that an open transaction hides, or where the number of partitions of a subscribed topic,
   or a member's subscription or assignment, is not known.
2. Nor for a group of more than `MOST_PARTITIONS` partitions or `MOST_MEMBERS` members: a page must not take a second
   from the batches. What was computed with its verdict is shown instead, of the group as it is and without sizes;
   `rebalance-monitor what-if` answers for changes.
3. A user's own strategy is not computed here: it runs guarded, in a process of its own. What was computed of it with
   the verdict stands below the others, or what it did instead of answering.
4. What was computed with the verdict is shown of the generation that stands, and while the group is as large as then.
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

MOST_PARTITIONS = 500
MOST_MEMBERS = 100
TODAY = "today"
TOO_LARGE = "too large for a member more or fewer to be computed beside the batches"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One strategy's outcome. Counts are of partitions unless they say else; None is unknown.

    `sizes` are members x partitions (`2x3`: two members with three each; None: not kept), `score` 0 to 100,
    `topic_spread` the widest difference between two subscribers of one topic. `failure` is what a user's strategy did
    instead of answering: then there are no numbers.
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
class Changed:
    """All strategies for one change of the group, in words; the first of the group as it is is what it has today."""

    change: str
    members: int
    partitions: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers, and why there are none, or no more of them."""

    changes: tuple[Changed, ...] = ()
    why_not: str | None = None


def answers(group: GroupReport, record: GroupState | None, strategies: Sequence[str]) -> Answers:
    """Compute all strategies that are built in for the usual changes, and add what was computed with the verdict."""
    why_not = _why_not(group, record)
    if record is None or why_not is not None:
        return Answers(why_not=why_not)
    snapshot, of_group = record.snapshot, group.members.each
    partitions = {at: member.member_id for member in of_group for at in member.target or ()}
    known = _known(record, len(of_group), len(partitions))
    if len(partitions) > MOST_PARTITIONS or len(of_group) > MOST_MEMBERS:
        as_it_is = Changed(with_verdict.AS_IT_IS, len(of_group), len(partitions), known)
        return Answers((as_it_is,) if known else (), f"{TOO_LARGE}: ask `rebalance-monitor what-if`")
    assignors = [BUILT_IN[name] for name in strategies if name in BUILT_IN]
    computed, *changed = _computed(_spec(snapshot, of_group), partitions, assignors)
    own = tuple(one for one in known if one.strategy not in BUILT_IN and one.strategy != TODAY)
    return Answers((replace(computed, alternatives=(*computed.alternatives, *own)), *changed))


def _why_not(group: GroupReport, record: GroupState | None) -> str | None:
    """Rule 1."""
    if group.is_blocked:
        return "an open transaction hides what the group does now"
    if record is None or not group.is_evaluated:
        return "the group has no assignment that can be evaluated"
    if missing := unknown_topics(record.snapshot):
        return f"the number of partitions is not known of: {', '.join(missing[:3])}"
    if unknown_inputs(record.snapshot):
        return "what a member subscribes to or holds is unknown"
    return None


def _known(record: GroupState, members: int, partitions: int) -> tuple[Alternative, ...]:
    """What was computed with the verdict that stands (rule 4)."""
    known, evaluation = record.alternatives, record.evaluation
    if known is None or evaluation is None or known.position != evaluation.position:
        return ()
    outcomes = known.as_it_is().outcomes
    return tuple(_kept(one) for one in outcomes if (one.members, one.partitions) == (members, partitions))


def _kept(one: with_verdict.Alternative) -> Alternative:
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


def _computed(
    spec: GroupSpec, owners: Mapping[TopicPartition, str], assignors: Sequence[PartitionAssignor]
) -> list[Changed]:
    found: list[Changed] = []
    for change in USUAL_CHANGES:
        try:
            answer = what_if(spec, owners, assignors, change)
        except ImpossibleChangeError:  # nobody would be left
            continue
        lines = [_alternative(one) for one in answer.outcomes if not isinstance(one, FailedOutcome)]
        now = [] if found else [_alternative(measure_today(spec, owners))]
        found.append(Changed(str(change), answer.members, answer.partitions, (*now, *lines)))
    return found


def _spec(snapshot: GroupSnapshot, of_group: Sequence[GroupMember]) -> GroupSpec:
    subscriptions = tuple(
        MemberSubscription(
            member.member_id,
            member.subscribed_topics or (),
            instance_id=member.group_instance_id,
            rack=member.rack_id,
        )
        for member in of_group
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
