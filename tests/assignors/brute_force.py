"""Enumerates all valid assignments of a small group, to check the results of the algorithms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, product, zip_longest

from hypothesis import strategies as st

from assignors.model import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition

MOST_PARTITIONS = 6
"""Maximum number of partitions of a small group. With four members, it has at most 4,096 assignments."""


@st.composite
def small_groups(draw: st.DrawFn) -> GroupSpec:
    """Draw a group of up to four members and six partitions. Its subscriptions almost always differ."""
    counts, left = {}, MOST_PARTITIONS
    for topic in ("t", "u", "v"):
        counts[topic] = draw(st.integers(0, left))
        left -= counts[topic]
    subscription = st.lists(st.sampled_from(["t", "u", "v", "gone"]), unique=True).map(tuple)
    subscriptions = draw(st.lists(subscription, max_size=4))
    members = (MemberSubscription(f"c{position}", topics) for position, topics in enumerate(subscriptions))
    return GroupSpec(tuple(members), counts)


def valid_assignments(group: GroupSpec) -> Iterator[GroupAssignment]:
    """Yield all assignments of the subscribed topics to their subscribers."""
    partitions = [
        (topic, number)
        for topic, count in group.partitions.items()
        for number in range(count)
        if _subscribers(group, topic)
    ]
    for owners in product(*(_subscribers(group, topic) for topic, _ in partitions)):
        held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in group.members}
        for partition, member_id in zip(partitions, owners, strict=True):
            held[member_id].append(partition)
        yield GroupAssignment({member_id: tuple(found) for member_id, found in held.items()})


def _subscribers(group: GroupSpec, topic: str) -> list[str]:
    return [member.member_id for member in group.members if topic in member.topics]


def sizes(assignment: GroupAssignment) -> tuple[int, ...]:
    """Return the number of partitions of each member, ascending."""
    return tuple(sorted(map(len, assignment.members.values())))


def is_no_less_fair(loads: Sequence[int], than: Sequence[int]) -> bool:
    """Return whether, for every k, the k largest ``loads`` are in total no larger than those of ``than``."""
    return all(ours <= theirs for ours, theirs in zip_longest(_sums_of_largest(loads), _sums_of_largest(than)))


def _sums_of_largest(loads: Iterable[int]) -> list[int]:
    return list(accumulate(sorted(loads, reverse=True)))
