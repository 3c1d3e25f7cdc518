"""What every strategy would make of one group, side by side."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assignors.fairness.measures import Measures, effective_owners, measure
from assignors.model import GroupAssignment
from assignors.sticky.cooperative import CooperativeStickyAssignor, rebalance_needed, rejoined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from assignors.model import GroupSpec, PartitionAssignor, TopicPartition

MOST_ROUNDS = 8
MOST_SIZES = 6


@dataclass(frozen=True, slots=True)
class Compared:
    """One strategy's answer in numbers, and in how many rebalances the group gets there."""

    strategy: str
    measures: Measures
    rounds: int


def compare(
    group: GroupSpec, assignor: PartitionAssignor, owners: Mapping[TopicPartition, str] | None = None
) -> Compared:
    """Measure a strategy's final answer; moves are counted from what ``group`` owns now.

    ``owners`` is that, where it is known already (``effective_owners``).

    A cooperative rebalance is followed until nobody has to revoke anything: its first round withholds what moves.
    """
    current, assignment, rounds = group, assignor.assign(group), 1
    cooperative = assignor.name == CooperativeStickyAssignor.name
    while cooperative and rounds < MOST_ROUNDS and rebalance_needed(current, assignment):
        current = rejoined(current, assignment)
        assignment, rounds = assignor.assign(current), rounds + 1
    return Compared(assignor.name, measure(group, assignment, owners), rounds)


def owned_now(group: GroupSpec) -> GroupAssignment:
    """Make an assignment of what members own as far as their claims can be believed."""
    owned: dict[str, list[TopicPartition]] = {member.member_id: [] for member in group.members}
    for partition, member_id in effective_owners(group).items():
        owned[member_id].append(partition)
    return GroupAssignment({member_id: tuple(sorted(partitions)) for member_id, partitions in owned.items()})


def sizes_in_short(sizes: Sequence[int]) -> str:
    """Write sizes as members x partitions, or as a range where there are many different ones.

    >>> sizes_in_short((0, 2, 2, 3))
    '1x0 2x2 1x3'
    >>> sizes_in_short(tuple(range(50)))
    '0..49'
    """
    counted = sorted(Counter(sizes).items())
    if len(counted) > MOST_SIZES:
        return f"{counted[0][0]}..{counted[-1][0]}"
    return " ".join(f"{members}x{size}" for size, members in counted)
