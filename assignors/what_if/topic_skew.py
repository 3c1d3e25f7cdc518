"""Finds topic skew: each topic is shared evenly, but the same members get the extra partition of several topics.

If a topic cannot be divided equally, some members get one more partition: the *extra* partition. ``range`` causes topic
skew by design: it assigns each topic separately, and always starts with the first member. Example: three members
subscribe to ten topics with one partition each. The first member gets all ten partitions, and the other members are
idle. Source: the class comment of ``RangeAssignor``.

The first matching rule decides the result:

1. If the assignment is invalid, no skew is reported.
2. If the partition counts of two subscribers of a topic differ by more than 1, no skew is reported.
3. If no valid assignment is fairer, no skew is reported.
4. If each member has the extra partition of at most one topic, no skew is reported.
5. In all other cases, skew is reported. ``members`` contains the members with the most extra partitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from assignors.fairness.evenness import surplus
from assignors.fairness.fairest import fairest_sizes
from assignors.fairness.invariants import violations
from assignors.model import GroupAssignment, GroupSpec
from assignors.ordering import members_by_id
from assignors.subscriptions import subscribers_by_topic
from assignors.what_if.what_if import FailedOutcome, Outcome


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """Topic skew. ``members`` contains the members with the most extra partitions.

    Each of these members has the extra partition of ``topics`` topics. ``surplus_partitions`` is the surplus
    (`evenness`).
    """

    members: tuple[str, ...]
    topics: int
    surplus_partitions: int


def topic_skew(group: GroupSpec, assignment: GroupAssignment) -> TopicSkew | None:
    """Return the topic skew according to the rules of this module, or None if no skew is reported.

    Raises TooManySubscriptionsError if rule 3 cannot be checked (see ``fairest``).

    >>> from assignors import assignor_named
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec(tuple(Member(name, ("t", "u", "v")) for name in "ABC"), {"t": 2, "u": 2, "v": 2})
    >>> topic_skew(group, assignor_named("range").assign(group))
    TopicSkew(members=('A', 'B'), topics=3, surplus_partitions=2)
    >>> topic_skew(group, assignor_named("roundrobin").assign(group)) is None
    True
    """
    if violations(group, assignment, "range"):  # rule 1, and rule 2, which is the promise of range
        return None
    surplus_partitions = surplus(sorted(map(len, assignment.members.values())), fairest_sizes(group))
    extra_counts = Counter(_members_with_extra(group, assignment))
    topics = max(extra_counts.values(), default=0)
    if not surplus_partitions or topics < 2:
        return None
    members = (member.member_id for member in members_by_id(group))
    return TopicSkew(
        tuple(member_id for member_id in members if extra_counts[member_id] == topics), topics, int(surplus_partitions)
    )


def choose_remedy(outcomes: Iterable[Outcome | FailedOutcome]) -> Outcome | None:
    """Of all outcomes with the score 100, return the outcome with the fewest moves, or None if no such outcome exists.

    An assignment with the score 100 has no topic skew (rule 3). ``outcomes`` are the outcomes of ``what_if`` for the
    unchanged group.

    >>> from assignors import BUILT_IN
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> from assignors.what_if.what_if import what_if
    >>> group = GroupSpec(tuple(Member(name, ("t", "u", "v")) for name in "ABC"), {"t": 2, "u": 2, "v": 2})
    >>> owners = {(topic, number): "AB"[number] for topic in "tuv" for number in (0, 1)}
    >>> choose_remedy(what_if(group, owners, BUILT_IN.values()).outcomes).strategy
    'sticky'
    """
    fair = [outcome for outcome in outcomes if isinstance(outcome, Outcome) and outcome.score == 100]
    return min(fair, key=lambda outcome: outcome.moved_partitions, default=None)


def _members_with_extra(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    counts = {member_id: Counter(topic for topic, _ in held) for member_id, held in assignment.members.items()}
    for topic, subscribers in subscribers_by_topic(group, group.members).items():
        quota = group.partition_count(topic) // len(subscribers)
        for position in subscribers:
            member_id = group.members[position].member_id
            if counts[member_id][topic] > quota:
                yield member_id
