"""Computes the result of every strategy for the unchanged group, or for the group after a change.

These rules define a change exactly, so that two monitors return the same result:

1. A member that *joins* is dynamic and has no rack. The new member has the most common subscription. In a tie,
   the subscription with the most partitions is used. In a further tie, the first subscription in alphabetical order is
   used. The id of the new member is ``~new-member-1``. ``~`` sorts after letters and digits, so the new member is the
   last member for ``range`` and ``roundrobin``.
2. The member that *leaves* is the member with the most partitions today. This is the worst case, because then the most
   partitions move. In a tie, the member that is last in the order of ids leaves. If two members leave, the same rule
   chooses the second of them.
3. A topic can only *grow*, because Kafka cannot reduce the number of partitions. At least one member must subscribe to
   the topic. The racks of the new partitions are unknown. A change is impossible if the group would have more than
   1,000,000 partitions (the limit of a scenario) or more than 100,000 members.
4. A partition moves if its new owner is different from today's owner. A move is *unavoidable* if today's owner leaves
   or cannot keep the partition. ``moved_partitions`` counts all moves, ``unavoidable_moves`` counts only unavoidable
   moves.
5. For a cooperative strategy, all rounds are computed, as in ``comparison``.
6. The produce rate of the busiest member (``busiest_rate``) is unknown if a topic grows.

The computation of all built-in strategies takes 0.13 s for a group with 1,000 members and 10,000 partitions. If all
subscriptions differ, the computation takes 0.5 s (DESIGN.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType

from assignors.fairness.evenness import Evenness, evenness, score
from assignors.fairness.fairest import TooManySubscriptionsError, fairest_sizes
from assignors.fairness.measures import Measures, busiest_rate, effective_owners, measure
from assignors.model import (
    AssignorFailedError,
    GroupAssignment,
    GroupSpec,
    MemberSubscription,
    PartitionAssignor,
    TopicPartition,
)
from assignors.ordering import members_by_id, sorted_names
from assignors.sticky.cooperative import group_after_rejoin
from assignors.subscriptions import subscribers_by_topic
from assignors.what_if.comparison import compare, current_assignment
from assignors.what_if.scenario import MAX_PARTITIONS

MAX_MEMBERS = 100_000
"""Maximum number of members after a change. A larger group would use too much memory and time."""

_NO_RATES: Mapping[TopicPartition, float] = MappingProxyType({})


class ImpossibleChangeError(ValueError):
    """Error: the requested change of the group is impossible. The message contains the reason."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a group.

    ``members`` is the number of members that join, or a negative number if members leave. ``partitions`` contains the
    new partition counts of topics.

    >>> str(Change()), str(Change(members=-1)), str(Change(members=2, partitions={"orders": 12}))
    ('as it is', '1 member fewer', '2 members more, orders grows to 12 partitions')
    """

    members: int = 0
    partitions: Mapping[str, int] = field(default_factory=dict)

    def __str__(self) -> str:
        """Describe the change in words."""
        parts = [f"{topic} grows to {count} partitions" for topic, count in sorted(self.partitions.items())]
        if self.members:
            noun = "member" if abs(self.members) == 1 else "members"
            parts.insert(0, f"{abs(self.members)} {noun} {'more' if self.members > 0 else 'fewer'}")
        return ", ".join(parts) or "as it is"


USUAL_CHANGES = (Change(), Change(members=1), Change(members=-1))
"""The changes whose outcomes on-call engineers need most often."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measures of one strategy's final assignment. ``sizes`` and ``topic_spread`` count partitions.

    ``strategy`` is None if the outcome describes today's owners. ``score`` (0 to 100, see ``evenness``) is None if
    partitions are unassigned. ``excess_partitions`` is the largest size minus the largest size in the fairest valid
    assignment. ``score`` and ``excess_partitions`` are None if the fairest assignment is too expensive to compute.
    ``topic_spread`` maps each topic to the difference between the largest and the smallest partition count of its
    subscribers. ``rounds`` is the number of rebalances until the group reaches the assignment.
    ``busiest_records_per_second`` is the produce rate of the busiest member, or None if this rate is unknown (rule 6).
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
    busiest_records_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class FailedOutcome:
    """The failure of a custom strategy: a short reason and the details."""

    strategy: str
    reason: str
    detail: str


@dataclass(frozen=True, slots=True)
class WhatIf:
    """The outcomes of all strategies for one changed group, and the values that are the same for every strategy.

    ``joined`` and ``left`` are the ids of the members that join and leave. ``members`` and ``partitions`` are counts
    after the change. ``smallest_maximum`` is the number of partitions that the busiest member has in the fairest valid
    assignment. ``idle_in_any_assignment`` is the number of idle members in the fairest valid assignment. No valid
    assignment has fewer idle members. ``smallest_maximum`` and ``idle_in_any_assignment`` are None if the fairest
    assignment is unknown.
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
    produce_rates: Mapping[TopicPartition, float] = _NO_RATES,
) -> WhatIf:
    """Compute the outcome of every strategy for ``group`` after ``change``.

    ``owners`` (partition -> member id) replaces the claims of the members in ``group``. ``produce_rates`` contains the
    known produce rates, in records per second. Without ``change``, the group stays as it is. Raises
    ImpossibleChangeError if the change is impossible, or if the group has no members.

    In this example, three topics have two partitions each. Range assigns all partitions to the same two members. With
    sticky, two of the six partitions move to the third member:

    >>> from assignors import BUILT_IN
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec(tuple(Member(name, ("t", "u", "v")) for name in "ABC"), {"t": 2, "u": 2, "v": 2})
    >>> owners = {(topic, number): "AB"[number] for topic in "tuv" for number in (0, 1)}
    >>> found = what_if(group, owners, [BUILT_IN["range"], BUILT_IN["sticky"]])
    >>> [(one.strategy, one.sizes, one.excess_partitions, one.moved_partitions) for one in found.outcomes]
    [('range', (0, 3, 3), 1, 0), ('sticky', (2, 2, 2), 0, 2)]
    """
    before = _group_owning(group, owners)
    after = apply_change(before, change or Change())
    baseline = _compute_baseline(after, owners)
    outcomes = (_compute_outcome(after, assignor, baseline, produce_rates) for assignor in strategies)
    earlier, later = ({member.member_id for member in found.members} for found in (before, after))
    return WhatIf(
        change=change or Change(),
        joined=tuple(sorted_names(later - earlier)),
        left=tuple(sorted_names(earlier - later)),
        members=len(after.members),
        partitions=sum(map(after.partition_count, subscribers_by_topic(after, after.members))),
        smallest_maximum=baseline.fairest[-1] if baseline.fairest else None,
        idle_in_any_assignment=baseline.fairest.count(0) if baseline.fairest else None,
        unavoidable_moves=baseline.unavoidable_moves,
        outcomes=tuple(outcomes),
    )


def measure_today(
    group: GroupSpec, owners: Mapping[TopicPartition, str], produce_rates: Mapping[TopicPartition, float] = _NO_RATES
) -> Outcome:
    """Compute the measures of today's assignment. The group must have at least one member.

    ``owners`` and ``produce_rates`` are the same as in ``what_if``.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)), Member("B", ("t",))), {"t": 2})
    >>> found = measure_today(group, {("t", 0): "A", ("t", 1): "A"})
    >>> found.sizes, found.excess_partitions, found.score, found.idle_members
    ((0, 2), 1, 0.0, ('B',))
    """
    owning = _group_owning(group, owners)
    today, baseline = current_assignment(owning), _Baseline(_fairest_if_known(owning), {}, 0)
    return _describe_outcome(None, measure(owning, today), baseline, 0, busiest_rate(today, produce_rates))


def apply_change(group: GroupSpec, change: Change) -> GroupSpec:
    """Return the group after ``change``, according to rules 1 to 3 of this module.

    Raises ImpossibleChangeError if the change is impossible.

    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",), owned=(("t", 0),)), Member("B", ("t",))), {"t": 1})
    >>> [member.member_id for member in apply_change(group, Change(members=-1)).members]
    ['B']
    >>> apply_change(group, Change(partitions={"t": 3})).partitions
    {'t': 3}
    """
    if not group.members:
        raise ImpossibleChangeError("the group has no members, so the subscription of a new member is unknown")
    if -change.members >= len(group.members):
        raise ImpossibleChangeError(f"{-change.members} of {len(group.members)} members leave: no member is left")
    subscribed = {topic for member in group.members for topic in member.topics}
    for topic, count in change.partitions.items():
        if topic not in subscribed:
            raise ImpossibleChangeError(f"no member subscribes to {topic}")
        if count < group.partition_count(topic):
            raise ImpossibleChangeError(f"{topic} has {group.partition_count(topic)} partitions; topics do not shrink")
    grown = replace(group, partitions={**group.partitions, **change.partitions})
    if change.partitions and sum(grown.partitions.values()) > MAX_PARTITIONS:
        raise ImpossibleChangeError(f"the group would have more than {MAX_PARTITIONS} partitions")
    if change.members > 0 and len(group.members) + change.members > MAX_MEMBERS:
        raise ImpossibleChangeError(f"the group would have more than {MAX_MEMBERS} members")
    return _add_members(grown, change.members) if change.members > 0 else _remove_members(grown, -change.members)


def what_if_as_json(found: WhatIf) -> dict[str, object]:
    """Return all fields of a result, and the change in words, as values that ``json`` can write.

    >>> from assignors import BUILT_IN
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec((Member("A", ("t",)),), {"t": 2})
    >>> answer = what_if_as_json(what_if(group, {}, BUILT_IN.values(), Change(members=1)))
    >>> answer["change_in_words"], answer["joined"], answer["outcomes"][0]["strategy"], answer["outcomes"][0]["sizes"]
    ('1 member more', ('~new-member-1',), 'range', (1, 1))
    """
    return {"change_in_words": str(found.change), **asdict(found)}


@dataclass(frozen=True, slots=True)
class _Baseline:
    """The values with which each outcome is compared. ``fairest`` is None if its computation would take too long.

    ``owners`` contains only owners that can keep their partition after the change. ``unavoidable_moves`` counts the
    partitions that today's owner cannot keep.
    """

    fairest: tuple[int, ...] | None
    owners: Mapping[TopicPartition, str]
    unavoidable_moves: int


def _compute_baseline(group: GroupSpec, owners: Mapping[TopicPartition, str]) -> _Baseline:
    topics, kept = subscribers_by_topic(group, group.members), effective_owners(group)
    assigned = sum(partition[0] in topics and group.exists(partition) for partition in owners)
    return _Baseline(_fairest_if_known(group), kept, assigned - len(kept))


def _fairest_if_known(group: GroupSpec) -> tuple[int, ...] | None:
    try:
        return fairest_sizes(group)
    except TooManySubscriptionsError:
        return None


def _group_owning(group: GroupSpec, owners: Mapping[TopicPartition, str]) -> GroupSpec:
    """Return ``group`` with new claims of one generation: each member claims its partitions in ``owners``."""
    held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in group.members}
    for partition in sorted(owners):
        if owners[partition] in held:
            held[owners[partition]].append(partition)
    return group_after_rejoin(
        group, GroupAssignment({member_id: tuple(of_member) for member_id, of_member in held.items()})
    )


def _compute_outcome(
    group: GroupSpec, assignor: PartitionAssignor, baseline: _Baseline, produce_rates: Mapping[TopicPartition, float]
) -> Outcome | FailedOutcome:
    try:
        compared = compare(group, assignor, baseline.owners)
    except AssignorFailedError as failure:
        return FailedOutcome(assignor.name, failure.reason, str(failure))
    busiest = busiest_rate(compared.assignment, produce_rates)
    return _describe_outcome(assignor.name, compared.measures, baseline, compared.rounds, busiest)


def _describe_outcome(
    strategy: str | None, measures: Measures, baseline: _Baseline, rounds: int, busiest: float | None
) -> Outcome:
    fairest = baseline.fairest
    return Outcome(
        strategy=strategy,
        sizes=measures.sizes,
        evenness=evenness(measures.sizes),
        score=score(measures.sizes, fairest) if fairest and not measures.unassigned else None,
        excess_partitions=max(0, measures.sizes[-1] - fairest[-1]) if fairest else None,
        topic_spread=measures.topic_spread,
        idle_members=measures.idle_members,
        moved_partitions=measures.moves + baseline.unavoidable_moves,
        unassigned_partitions=measures.unassigned,
        rounds=rounds,
        busiest_records_per_second=busiest,
    )


def _add_members(group: GroupSpec, members: int) -> GroupSpec:
    counted = Counter(tuple(sorted_names(set(member.topics))) for member in group.members)
    topics = min(counted, key=lambda topics: (-counted[topics], -sum(map(group.partition_count, topics)), topics))
    taken = {member.member_id for member in group.members}
    new_ids = (f"~new-member-{number}" for number in range(1, len(taken) + members + 1))
    free = (member_id for member_id in new_ids if member_id not in taken)
    joined = (MemberSubscription(member_id, topics) for member_id, _ in zip(free, range(members), strict=False))
    return replace(group, members=(*group.members, *joined))


def _remove_members(group: GroupSpec, members: int) -> GroupSpec:
    sizes = Counter(effective_owners(group).values())
    by_size: Sequence[MemberSubscription] = sorted(members_by_id(group), key=lambda member: sizes[member.member_id])
    left = {member.member_id for member in by_size[len(by_size) - members :]}
    return replace(group, members=tuple(member for member in group.members if member.member_id not in left))
