"""What every strategy would make of a group as it is, with a member more and with a member fewer.

1. Nothing is computed without members, or where the number of partitions of a subscribed topic is not known.
2. Nor for a group of more than `MOST_PARTITIONS` partitions or `MOST_MEMBERS` members: a page must not take a second
   from the batches. `rebalance-monitor what-if` answers for those.
3. A user's own strategy is not computed here: it runs guarded, in a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from assignors import BUILT_IN, GroupSpec, MemberSubscription
from assignors.comparison import sizes_in_short
from assignors.what_if import USUAL_CHANGES, FailedOutcome, ImpossibleChangeError, Outcome, today, what_if
from streaming.group.members import GroupMember, members
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.group_spec import sampled_partitions, sampled_racks, unknown_topics

MOST_PARTITIONS = 500
MOST_MEMBERS = 100
TODAY = "today"


@dataclass(frozen=True, slots=True)
class Alternative:
    """One strategy's outcome. Counts are of partitions unless they say else; None is unknown.

    `sizes` are members x partitions (`2x3`: two members with three each), `score` 0 to 100, `topic_spread` the widest
    difference between two subscribers of one topic.
    """

    strategy: str
    sizes: str
    score: float | None
    excess_partitions: int | None
    idle_members: int
    topic_spread: int
    moved_partitions: int
    rounds: int


@dataclass(frozen=True, slots=True)
class Changed:
    """All strategies for one change of the group, in words; the first of the group as it is is what it has today."""

    change: str
    members: int
    partitions: int
    alternatives: tuple[Alternative, ...]


@dataclass(frozen=True, slots=True)
class Answers:
    """The answers, or why there are none."""

    changes: tuple[Changed, ...] = ()
    why_not: str | None = None


def answers(snapshot: GroupSnapshot, strategies: Sequence[str]) -> Answers:
    """Compute all strategies that are built in for the usual changes."""
    of_group, missing = members(snapshot), unknown_topics(snapshot)
    partitions = {at: member.member_id for member in of_group for at in member.target or ()}
    if not of_group or not any(member.subscribed_topics for member in of_group):
        return Answers(why_not="nobody shares out partitions here")
    if missing:
        return Answers(why_not=f"the number of partitions is not known of: {', '.join(missing[:3])}")
    if len(partitions) > MOST_PARTITIONS or len(of_group) > MOST_MEMBERS:
        return Answers(why_not="too large to be computed beside the batches: ask `rebalance-monitor what-if`")
    spec = _spec(snapshot, of_group)
    assignors = [BUILT_IN[name] for name in strategies if name in BUILT_IN]
    found: list[Changed] = []
    for change in USUAL_CHANGES:
        try:
            answer = what_if(spec, partitions, assignors, change)
        except ImpossibleChangeError:  # nobody would be left
            continue
        lines = [_alternative(one) for one in answer.outcomes if not isinstance(one, FailedOutcome)]
        now = [] if found else [_alternative(today(spec, partitions))]
        found.append(Changed(str(change), answer.members, answer.partitions, (*now, *lines)))
    return Answers(tuple(found))


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
        sizes=sizes_in_short(outcome.sizes),
        score=outcome.score,
        excess_partitions=outcome.excess_partitions,
        idle_members=len(outcome.idle_members),
        topic_spread=max(outcome.topic_spread.values(), default=0),
        moved_partitions=outcome.moved_partitions,
        rounds=outcome.rounds,
    )
