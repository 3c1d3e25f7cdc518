"""Compares the results of strategies for one group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from assignors.fairness.measures import Measures, effective_owners, measure
from assignors.model import GroupAssignment, GroupSpec, PartitionAssignor, TopicPartition
from assignors.sticky.cooperative import CooperativeStickyAssignor, group_after_rejoin, rebalance_needed

MAX_ROUNDS = 8
MAX_SIZES = 6


@dataclass(frozen=True, slots=True)
class StrategyResult:
    """The final assignment of one strategy, the measures of this assignment, and the number of rebalances."""

    strategy: str
    assignment: GroupAssignment
    measures: Measures
    rounds: int


def compare(
    group: GroupSpec, assignor: PartitionAssignor, owners: Mapping[TopicPartition, str] | None = None
) -> StrategyResult:
    """Compute the measures of a strategy's final assignment.

    A partition moves if its final owner is different from its current owner. ``owners`` contains the current owners
    (default: the result of ``effective_owners``).

    In its first round, a cooperative strategy withholds the partitions that move. So this function computes up to
    ``MAX_ROUNDS`` rounds. It stops when no member must revoke a partition.
    """
    current, assignment, rounds = group, assignor.assign(group), 1
    cooperative = assignor.name == CooperativeStickyAssignor.name
    while cooperative and rounds < MAX_ROUNDS and rebalance_needed(current, assignment):
        current = group_after_rejoin(current, assignment)
        assignment, rounds = assignor.assign(current), rounds + 1
    return StrategyResult(assignor.name, assignment, measure(group, assignment, owners), rounds)


def current_assignment(group: GroupSpec) -> GroupAssignment:
    """Return the current assignment of ``group``, computed from the claims of its members (``effective_owners``)."""
    owned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in group.members}
    for partition, member_id in effective_owners(group).items():
        owned[member_id].append(partition)
    return GroupAssignment({member_id: tuple(sorted(partitions)) for member_id, partitions in owned.items()})


def format_sizes(sizes: Sequence[int]) -> str:
    """Count the members of each size: ``2x3`` means two members with three partitions each.

    If there are more than ``MAX_SIZES`` different sizes, return minimum..maximum.

    >>> format_sizes((0, 2, 2, 3))
    '1x0 2x2 1x3'
    >>> format_sizes(tuple(range(50)))
    '0..49'
    """
    counted = sorted(Counter(sizes).items())
    if len(counted) > MAX_SIZES:
        return f"{counted[0][0]}..{counted[-1][0]}"
    return " ".join(f"{members}x{size}" for size, members in counted)
