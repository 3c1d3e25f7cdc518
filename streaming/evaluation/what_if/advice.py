"""Advise how a group can keep up with its producers. The advice comes from a what-if with the measured produce rates.

1. Only the causes `assignment` and `under_provisioned` have advice. For other causes, a different assignment or more
   members would not help.
2. The *capacity* is the lowest known capacity of a member (`causes/capacity.py`). The same capacity applies to every
   member, including new members. So in the advice, even a fast member never gets more records per second than the
   lowest capacity.
3. An assignment is *sufficient* if its busiest member receives at most (1 - HEADROOM) times the capacity. The rest of
   the capacity is a reserve for errors of the measured rates.
4. There is no advice if the capacity is unknown or 0, or if a produce rate is unknown. There is also no advice if the
   present assignment is sufficient. In this case, the group has recovered, or partitions are still moving to their new
   owners.
5. The monitor tries only the built-in strategies that the group can use (`assignment.library_strategies`). They depend
   on the client library of the group's leader. For a KIP-848 group, they are the coordinator's assignors. If the group
   can use none of the built-in strategies, only rule 8 gives advice.
6. If several assignments are sufficient, the advice is the assignment with the lowest rate of the busiest member. If
   these rates are equal, the assignment that moves the fewest partitions comes first. If these numbers are also equal,
   the group's own strategy comes first. Then the order of `LIBRARY_STRATEGIES` decides.
7. Rule 7 applies if the cause is `assignment`, and only the assignment of `heaviest_first` is sufficient. The advice is
   a custom strategy that uses the measured rates as weights (`assignors/CUSTOM.md`). A KIP-848 group gets no advice for
   a custom strategy, because its coordinator computes the assignment. A group with a librdkafka leader also gets none,
   because librdkafka has no custom strategies. There is also no advice for a custom strategy if the subscriptions of
   the members differ.
8. Rule 8 applies if the cause is `under_provisioned`, and one partition receives more records than one member can
   consume. The advice is that more members cannot help, because a partition has only one owner. Rule 8 comes before
   rule 6.
9. If the cause is `under_provisioned` and rule 6 finds nothing, the advice is the smallest sufficient number of
   members. The group's own strategy is tried first. If no number of members is sufficient with this strategy, the other
   strategies are tried. If several strategies are sufficient, rule 6 decides. New members follow rule 1 of
   `assignors/what_if/what_if.py`. There is no advice if the subscriptions differ, because the subscription of a new
   member is unknown. The monitor tries at most MAX_MEMBERS members.
10. To find the number of useful members, the monitor computes an assignment with as many members as partitions. The
    useful members are the members that have partitions in this computed assignment. Additional members would be idle.

The result does not depend on the order of members or partitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import floor, fsum
from typing import NamedTuple

from assignors import PartitionAssignor, TopicPartition
from assignors.fairness.heaviest_first import heaviest_first_loads
from assignors.subscriptions import subscribers_by_topic
from assignors.what_if.what_if import Change, Outcome, measure_today, what_if
from streaming.evaluation.assignment.leader import Leader
from streaming.evaluation.assignment.library_strategies import can_be_custom, usable_strategies
from streaming.evaluation.causes.cause import ASSIGNMENT, UNDER_PROVISIONED, Kind
from streaming.evaluation.lag.rates import MIN_GAIN
from streaming.evaluation.phrases import counted, rate_number
from streaming.evaluation.what_if.inputs import MAX_MEMBERS, WhatIfInputs, what_if_inputs
from streaming.group.snapshot import GroupSnapshot

HEADROOM = MIN_GAIN
ADVISED_KINDS: frozenset[Kind] = frozenset({ASSIGNMENT, UNDER_PROVISIONED})
"""The causes that have advice (rule 1)."""


@dataclass(frozen=True, slots=True)
class BetterAssignment:
    """A strategy that is sufficient for the present members (rule 6)."""

    strategy: str
    is_own: bool
    before_records_per_second: float
    after_records_per_second: float
    moved_partitions: int

    @property
    def text(self) -> str:
        """The advice as two sentences."""
        start = f"After a rebalance with {self.strategy}" if self.is_own else f"With {self.strategy}"
        before, after = rate_number(self.before_records_per_second), rate_number(self.after_records_per_second)
        moves = f"{counted(self.moved_partitions, 'partition')} would move."
        return f"{start}, the busiest member would receive {after} instead of {before} records/s. {moves}"


@dataclass(frozen=True, slots=True)
class WeightedStrategy:
    """A custom strategy with the measured rates as weights is sufficient for the present members (rule 7)."""

    busiest_records_per_second: float

    @property
    def text(self) -> str:
        """The advice as two sentences."""
        return (
            "No built-in strategy is sufficient. With a strategy that uses the measured rates as weights"
            " (assignors/CUSTOM.md), the busiest member would receive"
            f" {rate_number(self.busiest_records_per_second)} records/s."
        )


@dataclass(frozen=True, slots=True)
class TooHotPartition:
    """A partition that receives more records than a member can consume (rule 8)."""

    partition: TopicPartition
    produced_records_per_second: float
    capacity_records_per_second: float

    @property
    def text(self) -> str:
        """The advice as two sentences."""
        topic, number = self.partition
        return (
            "More members cannot help. Partition"
            f" {topic}-{number} alone receives {rate_number(self.produced_records_per_second)} records/s, but a member"
            f" can consume only {rate_number(self.capacity_records_per_second)} records/s."
        )


@dataclass(frozen=True, slots=True)
class MoreMembers:
    """The smallest sufficient number of members, and the largest useful number (rules 9 and 10)."""

    members: int
    useful_members: int
    capacity_records_per_second: float
    strategy: str
    is_own: bool

    @property
    def text(self) -> str:
        """The advice as two sentences."""
        start = "" if self.is_own else f"With {self.strategy}, "
        capacity = rate_number(self.capacity_records_per_second)
        return (
            f"{start}{counted(self.members, 'member')} {'is' if self.members == 1 else 'are'} enough if each"
            f" member consumes {capacity} records/s. With more than {self.useful_members} members, some would be idle."
        )


Advice = BetterAssignment | WeightedStrategy | TooHotPartition | MoreMembers


class LateGroupInputs(NamedTuple):
    """The inputs of the advice for a late group. The group can use the `strategies` (rule 5).

    `produce_rates` contains the known rates, in records per second. `can_be_custom` is True if the members can have a
    custom strategy (rule 7).
    """

    group: WhatIfInputs
    produce_rates: Mapping[TopicPartition, float]
    capacity_records_per_second: float
    strategies: tuple[PartitionAssignor, ...]
    own_strategy: str
    can_be_custom: bool = True

    @property
    def target_records_per_second(self) -> float:
        """The limit of rule 3, in records per second. In a sufficient assignment, no member exceeds this limit."""
        return (1 - HEADROOM) * self.capacity_records_per_second


def late_group_inputs(
    snapshot: GroupSnapshot,
    produce_rates: Mapping[TopicPartition, float],
    capacities: Iterable[float | None],
    own_strategy: str,
    leader: Leader,
) -> LateGroupInputs | None:
    """Return the inputs of the advice, or None if the group is too large, or if its capacity is unknown.

    `leader` computed the present assignment.
    """
    group, capacity = what_if_inputs(snapshot), lowest_capacity(capacities)
    if group.is_too_large or capacity is None:
        return None
    strategies = usable_strategies(leader, group.spec)
    return LateGroupInputs(group, produce_rates, capacity, strategies, own_strategy, can_be_custom(leader))


def lowest_capacity(capacities: Iterable[float | None]) -> float | None:
    """Return the capacity of rule 2, in records per second.

    Return None if no capacity is known, or if the lowest capacity is 0.

    >>> lowest_capacity([300.0, None, 250.0]), lowest_capacity([None]), lowest_capacity([0.0, 9.0])
    (250.0, None, None)
    """
    return min((capacity for capacity in capacities if capacity is not None), default=None) or None


def advise(kind: Kind, late: LateGroupInputs) -> Advice | None:
    """Return the advice for a cause of lag, or None if there is no advice."""
    if kind not in ADVISED_KINDS or _rates_are_unknown(late):
        return None
    rates, capacity, partitions = late.produce_rates, late.capacity_records_per_second, _subscribed_partitions(late)
    today = measure_today(*late.group, late.produce_rates).busiest_records_per_second
    if today is None or today <= late.target_records_per_second:
        return None
    hottest = min(partitions, key=lambda one: (-rates[one], one), default=None)
    if kind == UNDER_PROVISIONED and hottest and rates[hottest] > capacity:
        return TooHotPartition(hottest, rates[hottest], capacity)
    if hottest and rates[hottest] > late.target_records_per_second:
        return None  # no assignment and no number of members is sufficient, so a search would find nothing
    if (best := _best_sufficient(late, late.strategies, 0)) is not None:
        strategy, moved = best[1].strategy or "", best[1].moved_partitions
        return BetterAssignment(strategy, strategy == late.own_strategy, today, best[0], moved)
    has_equal_subscriptions = len({frozenset(member.topics) for member in late.group.spec.members}) == 1
    search = _weighted_strategy if kind == ASSIGNMENT else _more_members
    return search(late) if has_equal_subscriptions else None


def _rates_are_unknown(late: LateGroupInputs) -> bool:
    return not late.produce_rates.keys() >= set(_subscribed_partitions(late))


def _subscribed_partitions(late: LateGroupInputs) -> list[TopicPartition]:
    spec = late.group.spec
    topics = subscribers_by_topic(spec, spec.members)
    return [(topic, number) for topic in topics for number in range(spec.partition_count(topic))]


def _weighted_strategy(late: LateGroupInputs) -> WeightedStrategy | None:
    if not late.strategies or not late.can_be_custom:
        return None
    weights = {partition: late.produce_rates[partition] for partition in _subscribed_partitions(late)}
    busiest = max(heaviest_first_loads(late.group.spec, weights), default=0)
    return WeightedStrategy(busiest) if busiest <= late.target_records_per_second else None


def _more_members(late: LateGroupInputs) -> MoreMembers | None:
    own = tuple(one for one in late.strategies if one.name == late.own_strategy)
    others = tuple(one for one in late.strategies if one.name != late.own_strategy)
    return _fewest_members(late, own) or _fewest_members(late, others)


def _fewest_members(late: LateGroupInputs, strategies: tuple[PartitionAssignor, ...]) -> MoreMembers | None:
    if not strategies:  # even without strategies, a what-if computes the present assignment
        return None
    present, capacity = len(late.group.spec.members), late.capacity_records_per_second
    partitions = _subscribed_partitions(late)
    most = max(present, len(partitions))
    useful = {one.strategy: most - len(one.idle_members) for one in _outcomes(late, strategies, most - present)}
    total = fsum(late.produce_rates[partition] for partition in partitions)
    fewest = max(present, floor(total / capacity)) + 1
    for members in range(fewest, min(MAX_MEMBERS, max(useful.values(), default=0)) + 1):
        candidates = tuple(one for one in strategies if members <= useful[one.name])
        if (best := _best_sufficient(late, candidates, members - present)) is not None:
            strategy = best[1].strategy or ""
            return MoreMembers(members, useful[strategy], capacity, strategy, strategy == late.own_strategy)
    return None


def _best_sufficient(
    late: LateGroupInputs, strategies: tuple[PartitionAssignor, ...], new_members: int
) -> tuple[float, Outcome] | None:
    """Return the busiest member's produce rate and the assignment of rule 6, or None if no assignment is sufficient."""
    outcomes = _outcomes(late, strategies, new_members)
    rates = ((one.busiest_records_per_second, one) for one in outcomes)
    sufficient = [(rate, one) for rate, one in rates if rate is not None and rate <= late.target_records_per_second]
    return min(
        sufficient,
        key=lambda one: (one[0], one[1].moved_partitions, one[1].strategy != late.own_strategy),
        default=None,
    )


def _outcomes(late: LateGroupInputs, strategies: tuple[PartitionAssignor, ...], new_members: int) -> list[Outcome]:
    result = what_if(*late.group, strategies, Change(members=new_members), late.produce_rates)
    return [one for one in result.outcomes if isinstance(one, Outcome)]
