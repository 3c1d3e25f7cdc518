"""Computes the expected values of a group from Kafka's own responses, without any code of the product.

A partition is a pair of topic and number. A member is identified by its `group.instance.id`, or else by its member id.
So a static member stays the same member after a restart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

Partition = tuple[str, int]
Partitions = frozenset[Partition]

JOINED, GONE, RESUBSCRIBED, STRATEGY_CHANGED, GROWN, FOLLOWUP, UNEXPLAINED = CAUSES = (
    "member_joined",
    "member_gone",
    "subscription_changed",
    "strategy_changed",
    "metadata_changed",
    "cooperative_followup",
    "unexplained",
)
"""The causes of a rebalance, with their names in the table `rebalances`."""


@dataclass(frozen=True)
class Share:
    """The topics of one member, its partitions, and the partitions that it claimed to own when it joined."""

    topics: frozenset[str]
    held: Partitions
    claimed: Partitions = frozenset()


@dataclass(frozen=True)
class Generation:
    """The members of a group at one time, by instance id or member id, and the name of its strategy."""

    strategy: str | None
    members: Mapping[str, Share]

    def owners(self) -> dict[Partition, frozenset[str]]:
        """Return the owners of each partition that has an owner."""
        found: dict[Partition, set[str]] = defaultdict(set)
        for member, share in self.members.items():
            for at in share.held:
                found[at].add(member)
        return {at: frozenset(members) for at, members in found.items()}

    def held(self) -> Partitions:
        """Return all partitions that have an owner."""
        return frozenset(self.owners())

    def topics(self) -> frozenset[str]:
        """Return all topics to which a member subscribes."""
        return frozenset(topic for share in self.members.values() for topic in share.topics)


@dataclass(frozen=True)
class BrokenRules:
    """The partitions with no owner, with several owners, or with an owner that does not subscribe to their topic."""

    unassigned: Partitions
    assigned_twice: Partitions
    not_subscribed: Partitions

    def names(self) -> list[str]:
        """Return the names of the broken rules, sorted."""
        return sorted(each.name for each in fields(self) if getattr(self, each.name))

    def __str__(self) -> str:
        """Return each broken rule with its partitions."""
        return "; ".join(f"{name} {sorted(getattr(self, name))}" for name in self.names())


def broken_rules(generation: Generation, partitions: Mapping[str, int]) -> BrokenRules:
    """Return the rules that an assignment breaks. `partitions` are the partition counts of the topics.

    >>> t, u = frozenset({"t"}), frozenset({"u"})
    >>> one, two = Share(t, frozenset({("t", 0)})), Share(u, frozenset({("t", 0), ("u", 0)}))
    >>> broken_rules(Generation("range", {"a": one, "b": two}), {"t": 2, "u": 1}).names()
    ['assigned_twice', 'not_subscribed', 'unassigned']
    """
    owners = generation.owners()
    existing = {(topic, number) for topic in generation.topics() for number in range(partitions[topic])}
    not_subscribed = {at for share in generation.members.values() for at in share.held if at[0] not in share.topics}
    return BrokenRules(
        frozenset(existing - owners.keys()),
        frozenset(at for at, members in owners.items() if len(members) > 1),
        frozenset(not_subscribed),
    )


def unequal_shares(generation: Generation) -> int:
    """Return the number of partitions that must move to other members until all members have an equal share.

    `range` shares each topic equally. `roundrobin` shares all partitions equally, if all members subscribe to the same
    topics. In an equal share, members differ by at most one partition.

    >>> t = frozenset({"t"})
    >>> three, none = Share(t, frozenset({("t", 0), ("t", 1), ("t", 2)})), Share(t, frozenset())
    >>> unequal_shares(Generation("range", {"a": three, "b": none}))
    1
    >>> unequal_shares(Generation("range", {"a": three, "b": none, "c": none, "d": none}))
    2
    """
    shares = generation.members.values()
    if generation.strategy == "roundrobin" and len({share.topics for share in shares}) == 1:
        return _count_beyond_equal([len(share.held) for share in shares])
    if generation.strategy != "range":
        return 0
    return sum(
        _count_beyond_equal([sum(at[0] == topic for at in share.held) for share in shares if topic in share.topics])
        for topic in generation.topics()
    )


def _count_beyond_equal(sizes: Sequence[int]) -> int:
    """Return the sum of what members have beyond an equal share. Some shares are larger by one partition."""
    smallest, larger_shares = divmod(sum(sizes), len(sizes))
    equal = [smallest + (place < larger_shares) for place in range(len(sizes))]
    return sum(max(0, size - share) for size, share in zip(sorted(sizes, reverse=True), equal, strict=True))


def count_moves(before: Generation, after: Generation) -> int:
    """Return the number of partitions with one owner before, and a different one after.

    >>> def held_by(**held):
    ...     return Generation("range", {name: Share(frozenset("t"), frozenset(("t", at) for at in numbers))
    ...                                 for name, numbers in held.items()})
    >>> count_moves(held_by(a=[0, 1], b=[2]), held_by(a=[0], b=[1], c=[2, 3]))
    2
    """
    owners, owners_now = before.owners(), after.owners()
    both = [at for at in owners.keys() & owners_now.keys() if len(owners[at]) == len(owners_now[at]) == 1]
    return sum(owners[at] != owners_now[at] for at in both)


def remove_partitions(generation: Generation, partitions: Collection[Partition]) -> Generation:
    """Return the group as if no member had these partitions.

    >>> one = Share(frozenset("t"), frozenset({("t", 0), ("t", 1)}))
    >>> remove_partitions(Generation("range", {"a": one}), [("t", 0)]).held()
    frozenset({('t', 1)})
    """
    members = {name: replace(share, held=share.held - {*partitions}) for name, share in generation.members.items()}
    return replace(generation, members=members)


def withheld_partitions(before: Generation, after: Generation) -> Partitions:
    """Return the partitions that a member must revoke first (KIP-429).

    A member of the group had or claims each of them, and no member has it now.

    >>> topics, at = frozenset("t"), frozenset({("t", 0)})
    >>> before = Generation("cooperative-sticky", {"a": Share(topics, at)})
    >>> after = Generation("cooperative-sticky", {"a": Share(topics, frozenset(), at), "b": Share(topics, frozenset())})
    >>> withheld_partitions(before, after)
    frozenset({('t', 0)})
    """
    if after.strategy != "cooperative-sticky":
        return frozenset()
    stayed = [share.held for member, share in before.members.items() if member in after.members]
    claimed = [share.claimed for share in after.members.values()]
    return frozenset(at for at in _union([*stayed, *claimed]) - after.held() if at[0] in after.topics())


def handed_over(withheld: Collection[Partition], before: Generation, after: Generation) -> Partitions:
    """Return the withheld partitions that now have a different owner than before the round that withheld them.

    >>> topics, at = frozenset("t"), frozenset({("t", 0)})
    >>> owned_by_a, owned_by_b = (Generation("cooperative-sticky", {name: Share(topics, at)}) for name in "ab")
    >>> handed_over(at, owned_by_a, owned_by_b), handed_over(at, owned_by_a, owned_by_a)
    (frozenset({('t', 0)}), frozenset())
    """
    owners, owners_now = before.owners(), after.owners()
    return frozenset(at for at in withheld if owners_now.get(at, frozenset()) - owners.get(at, frozenset()))


def proven_causes(before: Generation, after: Generation, handed: Collection[Partition]) -> frozenset[str]:
    """Return the causes of a rebalance that follow from two generations. They do not show if a topic grew.

    `handed` are the partitions that the previous cooperative round withheld for their present owner.

    >>> group = Generation("range", {"a": Share(frozenset("t"), frozenset())})
    >>> sorted(proven_causes(group, Generation("range", {"b": Share(frozenset("t"), frozenset())}), ()))
    ['member_gone', 'member_joined']
    >>> proven_causes(group, group, ())
    frozenset()
    """
    stayed = before.members.keys() & after.members.keys()
    proven = {
        JOINED: after.members.keys() - before.members.keys(),
        GONE: before.members.keys() - after.members.keys(),
        RESUBSCRIBED: any(before.members[member].topics != after.members[member].topics for member in stayed),
        STRATEGY_CHANGED: bool(before.strategy and after.strategy) and before.strategy != after.strategy,
        FOLLOWUP: handed,
    }
    return frozenset(cause for cause, is_proven in proven.items() if is_proven)


def newly_assigned_topics(before: Generation, after: Generation) -> frozenset[str]:
    """Return topics that were subscribed to before and after, but have an assigned partition only after.

    >>> t = frozenset({"t"})
    >>> before, after = (Generation("range", {"a": Share(t, held)}) for held in (frozenset(), frozenset({("t", 0)})))
    >>> newly_assigned_topics(before, after)
    frozenset({'t'})
    """
    had, has = ({topic for topic, _ in each.held()} for each in (before, after))
    return before.topics() & after.topics() & (has - had)


def lags(commits: Mapping[Partition, int], ends: Mapping[Partition, int]) -> dict[Partition, int]:
    """Return the lag of each partition in records.

    >>> lags({("t", 0): 3}, {("t", 0): 10, ("t", 1): 4})
    {('t', 0): 7}
    """
    return {at: ends[at] - offset for at, offset in commits.items()}


def _union(each: Iterable[Partitions]) -> Partitions:
    return frozenset().union(*each)
