"""What every strategy would make of a group, as it is or changed: one member more or fewer, a topic that grows.

Rules of a change, so that two monitors answer alike:

1. Who *joins* subscribes to what most members do (of equally common subscriptions: what gives most partitions, then the
   first by name), is dynamic and names no rack. Its id is not known before it joins, though ``range`` and
   ``roundrobin`` deal by ids: ``~new-member-1`` comes after all others, as ``~`` sorts after letters and digits.
2. Who *leaves* is the member with most partitions today, of several the last by id: the worst that can happen, none
   leaving moves more. Then the next such member, if two leave.
3. A topic only *grows*, as in Kafka, and somebody must subscribe to it. Nothing is known of the new partitions' racks.
4. Moves are counted from today's owners: a partition moves if another member gets it. What a member had that left, or
   that cannot keep it, moves under every strategy (``unavoidable_moves``) and is included.
5. A cooperative strategy is followed to its last round, as in ``comparison``.

All built-in strategies for one change of 1,000 members and 10,000 partitions take 0.13 s, or 0.5 s if all subscriptions
differ (DESIGN.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING

from assignors.fairness.evenness import Evenness, evenness, score
from assignors.fairness.fairest import TooManySubscriptionsError, fairest_sizes
from assignors.fairness.measures import effective_owners, measure
from assignors.model import AssignorFailedError, GroupAssignment, MemberSubscription
from assignors.ordering import members_by_id, sorted_names
from assignors.sticky.cooperative import rejoined
from assignors.subscriptions import subscribers_by_topic
from assignors.what_if.comparison import compare, owned_now

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from assignors.fairness.measures import Measures
    from assignors.model import GroupSpec, PartitionAssignor, TopicPartition


class ImpossibleChangeError(ValueError):
    """The group cannot change so; the message says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is asked: ``members`` that join (or leave, if negative), and ``partitions`` topics grow to.

    >>> str(Change()), str(Change(members=-1)), str(Change(members=2, partitions={"orders": 12}))
    ('as it is', '1 member fewer', '2 members more, orders grows to 12 partitions')
    """

    members: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Say it in words."""
        said = [f"{topic} grows to {count} partitions" for topic, count in sorted(self.partitions.items())]
        if self.members:
            noun = "member" if abs(self.members) == 1 else "members"
            said.insert(0, f"{abs(self.members)} {noun} {'more' if self.members > 0 else 'fewer'}")
        return ", ".join(said) or "as it is"


USUAL_CHANGES = (Change(), Change(members=1), Change(members=-1))
"""What an on-call person asks first."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """One strategy's final assignment in numbers. Counts are of partitions unless the name says otherwise.

    ``strategy`` is None for today's owners. ``score`` (0 to 100, see ``evenness``) is None while partitions are
    unassigned: of what is left nothing fair can be said. ``excess_partitions`` is what the busiest member has beyond
    the smallest maximum. Both are None where too many subscriptions differ for the fairest to be known.
    ``topic_spread`` is, for each topic, the subscriber with most less the one with least. ``rounds`` are the rebalances
    until it is reached.
    """

    strategy: str | None
    sizes: tuple[int, ...]
    evenness: Evenness
    score: float | None
    excess_partitions: int | None
    topic_spread: Mapping[str, int]
    idle_members: tuple[str, ...]
    moved_partitions: int
    unassigned_partitions: int
    rounds: int


@dataclass(frozen=True, slots=True)
class FailedOutcome:
    """A user's strategy that gave no lawful answer: the short reason, and what it did."""

    strategy: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """All strategies' outcomes for one changed group, and what no strategy can change.

    ``joined`` and ``left`` are member ids, ``members`` and ``partitions`` counts after the change.
    ``smallest_maximum`` (partitions of the busiest member) and ``idle_in_any_assignment`` (members) are those of the
    fairest valid assignment: idle members beyond that number could be employed. Both are None where that is not known.
    """

    change: Change
    joined: tuple[str, ...]
    left: tuple[str, ...]
    members: int
    partitions: int
    smallest_maximum: int | None
    idle_in_any_assignment: int | None
    unavoidable_moves: int
    outcomes: tuple[Outcome | FailedOutcome, ...]


def what_if(
    group: GroupSpec,
    owners: Mapping[TopicPartition, str],
    strategies: Iterable[PartitionAssignor],
    change: Change | None = None,
) -> WhatIf:
    """Compute every strategy for ``group`` after ``change`` (none: as it is), from today's ``owners``.

    What members of ``group`` claim to own is left aside: ``owners`` (partition to member id) is what they have today.
    Raises ImpossibleChangeError, also for a group without members: it has nothing to assign.

    Three topics of two partitions; range gives the same two members one of each, and sticky would move two of the six:

    >>> from assignors import BUILT_IN
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec(tuple(Member(name, ("t", "u", "v")) for name in "ABC"), {"t": 2, "u": 2, "v": 2})
    >>> owners = {(topic, number): "AB"[number] for topic in "tuv" for number in (0, 1)}
    >>> found = what_if(group, owners, [BUILT_IN["range"], BUILT_IN["sticky"]])
    >>> [(one.strategy, one.sizes, one.excess_partitions, one.moved_partitions) for one in found.outcomes]
    [('range', (0, 3, 3), 1, 0), ('sticky', (2, 2, 2), 0, 2)]
    """
    before = _owning(group, owners)
    after = changed(before, change or Change())
    yardstick = _yardstick(after, owners)
    earlier, later = ({member.member_id for member in found.members} for found in (before, after))
    return WhatIf(
        change=change or Change(),
        joined=tuple(sorted_names(later - earlier)),
        left=tuple(sorted_names(earlier - later)),
        members=len(after.members),
        partitions=sum(map(after.partition_count, subscribers_by_topic(after, after.members))),
        smallest_maximum=yardstick.fairest[-1] if yardstick.fairest else None,
        idle_in_any_assignment=yardstick.fairest.count(0) if yardstick.fairest else None,
        unavoidable_moves=yardstick.unavoidable_moves,
        outcomes=tuple(_computed(after, assignor, yardstick) for assignor in strategies),
    )


def today(group: GroupSpec, owners: Mapping[TopicPartition, str]) -> Outcome:
    """Put what ``owners`` have today in the same numbers, to be shown first. The group has a member at least.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> found = today(GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 2}), {("t", 0): "A", ("t", 1): "A"})
    >>> found.sizes, found.excess_partitions, found.score, found.idle_members
    ((0, 2), 1, 0.0, ('B',))
    """
    owning = _owning(group, owners)
    return _outcome(None, measure(owning, owned_now(owning)), _Yardstick(_fairest_if_known(owning), {}, 0), rounds=0)


def changed(group: GroupSpec, change: Change) -> GroupSpec:
    """Make the group after ``change``, by rules 1 to 3 above. Raises ImpossibleChangeError.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",), owned=(("t", 0),)), Member("B", ("t",))), {"t": 1})
    >>> [member.member_id for member in changed(group, Change(members=-1)).members]
    ['B']
    >>> changed(group, Change(partitions={"t": 3})).partitions
    {'t': 3}
    """
    if not group.members:
        raise ImpossibleChangeError("the group has no members: nobody to ask what another would subscribe to")
    if -change.members >= len(group.members):
        raise ImpossibleChangeError(f"{-change.members} of {len(group.members)} members leave: nobody is left")
    subscribed = {topic for member in group.members for topic in member.topics}
    for topic, count in change.partitions.items():
        if topic not in subscribed:
            raise ImpossibleChangeError(f"nobody subscribes to {topic}")
        if count < group.partition_count(topic):
            raise ImpossibleChangeError(f"{topic} has {group.partition_count(topic)} partitions; topics do not shrink")
    grown = replace(group, partitions={**group.partitions, **change.partitions})
    return _with_more(grown, change.members) if change.members > 0 else _with_fewer(grown, -change.members)


def what_if_as_json(found: WhatIf) -> dict[str, object]:
    """Give an answer its JSON form: the fields by their names, and the change in words.

    >>> from assignors import BUILT_IN
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)),), {"t": 2})
    >>> answer = what_if_as_json(what_if(group, {}, BUILT_IN.values(), Change(members=1)))
    >>> answer["change_in_words"], answer["joined"], answer["outcomes"][0]["strategy"], answer["outcomes"][0]["sizes"]
    ('1 member more', ('~new-member-1',), 'range', (1, 1))
    """
    return {"change_in_words": str(found.change), **asdict(found)}


@dataclass(frozen=True, slots=True)
class _Yardstick:
    """What holds for a group whatever its strategy. ``fairest`` is None where it would take too long to find.

    ``owners`` are who has today what it can keep, ``unavoidable_moves`` what nobody has or can keep.
    """

    fairest: tuple[int, ...] | None
    owners: Mapping[TopicPartition, str]
    unavoidable_moves: int


def _yardstick(group: GroupSpec, owners: Mapping[TopicPartition, str]) -> _Yardstick:
    """Hold the group after the change against ``owners``, who had what before; who left keeps nothing."""
    topics, kept = subscribers_by_topic(group, group.members), effective_owners(group)
    assigned = sum(partition[0] in topics and group.exists(partition) for partition in owners)
    return _Yardstick(_fairest_if_known(group), kept, assigned - len(kept))


def _fairest_if_known(group: GroupSpec) -> tuple[int, ...] | None:
    try:
        return fairest_sizes(group)
    except TooManySubscriptionsError:
        return None


def _owning(group: GroupSpec, owners: Mapping[TopicPartition, str]) -> GroupSpec:
    """Make the group whose members own what ``owners`` says, all of one generation: no claim is older than another."""
    held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in group.members}
    for partition in sorted(owners):
        if owners[partition] in held:
            held[owners[partition]].append(partition)
    return rejoined(group, GroupAssignment({member_id: tuple(of_member) for member_id, of_member in held.items()}))


def _computed(group: GroupSpec, assignor: PartitionAssignor, yardstick: _Yardstick) -> Outcome | FailedOutcome:
    try:
        compared = compare(group, assignor, yardstick.owners)
    except AssignorFailedError as failure:
        return FailedOutcome(assignor.name, failure.reason, str(failure))
    return _outcome(assignor.name, compared.measures, yardstick, compared.rounds)


def _outcome(strategy: str | None, measures: Measures, yardstick: _Yardstick, rounds: int) -> Outcome:
    fairest = yardstick.fairest
    return Outcome(
        strategy=strategy,
        sizes=measures.sizes,
        evenness=evenness(measures.sizes),
        score=score(measures.sizes, fairest) if fairest and not measures.unassigned else None,
        excess_partitions=max(0, measures.sizes[-1] - fairest[-1]) if fairest else None,
        topic_spread=measures.topic_spread,
        idle_members=measures.idle_members,
        moved_partitions=measures.moves + yardstick.unavoidable_moves,
        unassigned_partitions=measures.unassigned,
        rounds=rounds,
    )


def _with_more(group: GroupSpec, members: int) -> GroupSpec:
    topics = _commonest_subscription(group)
    taken = {member.member_id for member in group.members}
    free = (member_id for number in range(1, len(taken) + members + 1) if (member_id := _new_id(number)) not in taken)
    joined = (MemberSubscription(member_id, topics) for member_id, _ in zip(free, range(members), strict=False))
    return replace(group, members=(*group.members, *joined))


def _new_id(number: int) -> str:
    return f"~new-member-{number}"


def _commonest_subscription(group: GroupSpec) -> tuple[str, ...]:
    counted = Counter(tuple(sorted_names(set(member.topics))) for member in group.members)
    return min(counted, key=lambda topics: (-counted[topics], -sum(map(group.partition_count, topics)), topics))


def _with_fewer(group: GroupSpec, members: int) -> GroupSpec:
    sizes = Counter(effective_owners(group).values())
    by_size: Sequence[MemberSubscription] = sorted(members_by_id(group), key=lambda member: sizes[member.member_id])
    left = {member.member_id for member in by_size[len(by_size) - members :]}
    return replace(group, members=tuple(member for member in group.members if member.member_id not in left))
