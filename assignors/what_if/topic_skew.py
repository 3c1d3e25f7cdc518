"""Multi-topic skew: each topic is shared as evenly as can be, and yet the same members get the one more every time.

That is what ``range`` does by design: it deals each topic by itself, always from the first member on. Ten topics of one
partition over three members: the first has ten, the others are idle. Nothing is wrong in any topic, so only a name
tells a person where to look. Source: ``RangeAssignor``'s class comment.

Rules, first that applies:

1. The assignment breaks a law: no skew is named; something else is to be mended first.
2. Some topic is not shared evenly by its subscribers (they differ by more than one): another cause.
3. The sizes are as fair as any valid assignment's: no skew, whoever has the one more.
4. Nobody has the one more of two topics or more: it is unequal subscriptions that make the sizes differ.
5. Skew. ``members`` are those with the one more of most topics.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from assignors.fairness.evenness import surplus
from assignors.fairness.fairest import fairest_sizes
from assignors.fairness.invariants import violations
from assignors.ordering import members_by_id
from assignors.subscriptions import subscribers_by_topic
from assignors.what_if.what_if import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from assignors.model import GroupAssignment, GroupSpec
    from assignors.what_if.what_if import FailedOutcome


@dataclass(frozen=True, slots=True)
class TopicSkew:
    """Who has the one more of most topics, and of how many; partitions the busiest have beyond the fairest."""

    members: tuple[str, ...]
    topics: int
    surplus_partitions: int


def topic_skew(group: GroupSpec, assignment: GroupAssignment) -> TopicSkew | None:
    """Name the skew by the rules above; None where there is none.

    Raises TooManySubscriptionsError where rule 3 cannot be decided (see ``fairest``).

    >>> from assignors import assignor_named
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> group = GroupSpec(tuple(Member(name, ("t", "u", "v")) for name in "ABC"), {"t": 2, "u": 2, "v": 2})
    >>> topic_skew(group, assignor_named("range").assign(group))
    TopicSkew(members=('A', 'B'), topics=3, surplus_partitions=2)
    >>> topic_skew(group, assignor_named("roundrobin").assign(group)) is None
    True
    """
    if violations(group, assignment, "range"):  # the laws of all strategies, and rule 2, which is what range promises
        return None
    too_many = surplus(sorted(map(len, assignment.members.values())), fairest_sizes(group))
    one_more = Counter(_those_with_one_more(group, assignment))
    topics = max(one_more.values(), default=0)
    if not too_many or topics < 2:
        return None
    members = (member.member_id for member in members_by_id(group))
    return TopicSkew(tuple(member_id for member_id in members if one_more[member_id] == topics), topics, int(too_many))


def remedy(outcomes: Iterable[Outcome | FailedOutcome]) -> Outcome | None:
    """Choose the strategy that removes the unfairness: its computed score is 100. None if no strategy's is.

    Of several the one that moves fewest partitions, then the first. ``outcomes`` are those of ``what_if`` for the group
    as it is: what is not computed is not advised.

    >>> from assignors import BUILT_IN
    >>> from assignors.model import GroupSpec, MemberSubscription as Member
    >>> from assignors.what_if.what_if import what_if
    >>> group = GroupSpec(tuple(Member(name, ("t", "u", "v")) for name in "ABC"), {"t": 2, "u": 2, "v": 2})
    >>> owners = {(topic, number): "AB"[number] for topic in "tuv" for number in (0, 1)}
    >>> remedy(what_if(group, owners, BUILT_IN.values()).outcomes).strategy
    'sticky'
    """
    fair = [outcome for outcome in outcomes if isinstance(outcome, Outcome) and outcome.score == 100]
    return min(fair, key=lambda outcome: outcome.moved_partitions, default=None)


def _those_with_one_more(group: GroupSpec, assignment: GroupAssignment) -> Iterator[str]:
    """Name, for each topic whose subscribers cannot all have the same, those that have one more."""
    counts = {member_id: Counter(topic for topic, _ in held) for member_id, held in assignment.members.items()}
    for topic, subscribers in subscribers_by_topic(group, group.members).items():
        quota = group.partition_count(topic) // len(subscribers)
        for position in subscribers:
            member_id = group.members[position].member_id
            if counts[member_id][topic] > quota:
                yield member_id
