"""What a group must look like, counted again from Kafka's own answers. Nothing here comes from the product.

A partition is a pair of topic and number. A member is known by its `group.instance.id`, or else by its member id: so
it is the same member before and after it was away.
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
"""Causes of a rebalance, by the names of the table `rebalances`."""


@dataclass(frozen=True)
class Share:
    """What one member subscribes to, has, and claimed to own when it joined."""

    topics: frozenset[str]
    held: Partitions
    claimed: Partitions = frozenset()


@dataclass(frozen=True)
class Generation:
    """A group's members, by instance id or member id, at one moment; and the name of its strategy."""

    strategy: str | None
    members: Mapping[str, Share]

    def owners(self) -> dict[Partition, frozenset[str]]:
        """Who has each partition that anybody has."""
        found: dict[Partition, set[str]] = defaultdict(set)
        for member, share in self.members.items():
            for at in share.held:
                found[at].add(member)
        return {at: frozenset(members) for at, members in found.items()}

    def held(self) -> Partitions:
        """Every partition that somebody has."""
        return frozenset(self.owners())

    def topics(self) -> frozenset[str]:
        """All that members subscribe to."""
        return frozenset(topic for share in self.members.values() for topic in share.topics)


@dataclass(frozen=True)
class BrokenRules:
    """Partitions that have no owner, two, or one that does not subscribe to their topic."""

    unassigned: Partitions
    assigned_twice: Partitions
    not_subscribed: Partitions

    def names(self) -> list[str]:
        """Names of the broken laws, sorted."""
        return sorted(each.name for each in fields(self) if getattr(self, each.name))

    def __str__(self) -> str:
        """Each broken law with its partitions."""
        return "; ".join(f"{name} {sorted(getattr(self, name))}" for name in self.names())


def broken_rules(generation: Generation, partitions: Mapping[str, int]) -> BrokenRules:
    """Which laws an assignment breaks, by the number of partitions that each topic has.

    >>> t, u = frozenset({"t"}), frozenset({"u"})
    >>> one, two = Share(t, frozenset({("t", 0)})), Share(u, frozenset({("t", 0), ("u", 0)}))
    >>> broken_rules(Generation("range", {"a": one, "b": two}), {"t": 2, "u": 1}).names()
    ['assigned_twice', 'not_subscribed', 'unassigned']
    """
    owners = generation.owners()
    existing = {(topic, number) for topic in generation.topics() for number in range(partitions[topic])}
    strangers = {at for share in generation.members.values() for at in share.held if at[0] not in share.topics}
    return BrokenRules(
        frozenset(existing - owners.keys()),
        frozenset(at for at, members in owners.items() if len(members) > 1),
        frozenset(strangers),
    )


def unequal_shares(generation: Generation) -> int:
    """Partitions that members have beyond an equal share: of each topic under `range`, of all under `roundrobin`.

    Neither gives one member two more than another, `roundrobin` where all subscribe to the same topics.

    >>> t = frozenset({"t"})
    >>> three, none = Share(t, frozenset({("t", 0), ("t", 1), ("t", 2)})), Share(t, frozenset())
    >>> unequal_shares(Generation("range", {"a": three, "b": none}))
    1
    """
    shares = generation.members.values()
    if generation.strategy == "roundrobin" and len({share.topics for share in shares}) == 1:
        return _beyond_equal([len(share.held) for share in shares])
    if generation.strategy != "range":
        return 0
    return sum(
        _beyond_equal([sum(at[0] == topic for at in share.held) for share in shares if topic in share.topics])
        for topic in generation.topics()
    )


def _beyond_equal(sizes: Sequence[int]) -> int:
    equal = -(-sum(sizes) // len(sizes))
    return sum(max(0, size - equal) for size in sizes)


def moved(before: Generation, after: Generation) -> int:
    """Partitions with one owner before and another one after.

    >>> def held_by(**held):
    ...     return Generation("range", {name: Share(frozenset("t"), frozenset(("t", at) for at in numbers))
    ...                                 for name, numbers in held.items()})
    >>> moved(held_by(a=[0, 1], b=[2]), held_by(a=[0], b=[1], c=[2, 3]))
    2
    """
    owners, owners_now = before.owners(), after.owners()
    both = [at for at in owners.keys() & owners_now.keys() if len(owners[at]) == len(owners_now[at]) == 1]
    return sum(owners[at] != owners_now[at] for at in both)


def without(generation: Generation, partitions: Collection[Partition]) -> Generation:
    """Return the group as if nobody had these partitions.

    >>> one = Share(frozenset("t"), frozenset({("t", 0), ("t", 1)}))
    >>> without(Generation("range", {"a": one}), [("t", 0)]).held()
    frozenset({('t', 1)})
    """
    members = {name: replace(share, held=share.held - {*partitions}) for name, share in generation.members.items()}
    return replace(generation, members=members)


def withheld(before: Generation, after: Generation) -> Partitions:
    """Partitions that a member has to give up first (KIP-429): somebody in the group had or claims each, nobody has it.

    >>> topics, at = frozenset("t"), frozenset({("t", 0)})
    >>> before = Generation("cooperative-sticky", {"a": Share(topics, at)})
    >>> after = Generation("cooperative-sticky", {"a": Share(topics, frozenset(), at), "b": Share(topics, frozenset())})
    >>> withheld(before, after)
    frozenset({('t', 0)})
    """
    if after.strategy != "cooperative-sticky":
        return frozenset()
    stayed = [share.held for member, share in before.members.items() if member in after.members]
    claimed = [share.claimed for share in after.members.values()]
    return frozenset(at for at in _union([*stayed, *claimed]) - after.held() if at[0] in after.topics())


def causes(before: Generation, after: Generation, withheld_before: Collection[Partition]) -> frozenset[str]:
    """What explains a rebalance. Whether a topic grew is known to whoever let it grow, and not said here.

    >>> group = Generation("range", {"a": Share(frozenset("t"), frozenset())})
    >>> sorted(causes(group, Generation("range", {"b": Share(frozenset("t"), frozenset())}), ()))
    ['member_gone', 'member_joined']
    >>> causes(group, group, ())
    frozenset()
    """
    stayed = before.members.keys() & after.members.keys()
    proven = {
        JOINED: after.members.keys() - before.members.keys(),
        GONE: before.members.keys() - after.members.keys(),
        RESUBSCRIBED: any(before.members[member].topics != after.members[member].topics for member in stayed),
        STRATEGY_CHANGED: bool(before.strategy and after.strategy) and before.strategy != after.strategy,
        FOLLOWUP: after.held().intersection(withheld_before),
    }
    return frozenset(cause for cause, is_proven in proven.items() if is_proven)


def learned_topics(before: Generation, after: Generation) -> frozenset[str]:
    """Topics that were subscribed to before and are now, of which nobody had a partition and somebody has one.

    >>> t = frozenset({"t"})
    >>> before, after = (Generation("range", {"a": Share(t, held)}) for held in (frozenset(), frozenset({("t", 0)})))
    >>> learned_topics(before, after)
    frozenset({'t'})
    """
    had, has = ({topic for topic, _ in each.held()} for each in (before, after))
    return before.topics() & after.topics() & (has - had)


def lags(commits: Mapping[Partition, int], ends: Mapping[Partition, int]) -> dict[Partition, int]:
    """Records between what is committed and the end of each partition.

    >>> lags({("t", 0): 3}, {("t", 0): 10, ("t", 1): 4})
    {('t', 0): 7}
    """
    return {at: ends[at] - offset for at, offset in commits.items()}


def _union(each: Iterable[Partitions]) -> Partitions:
    return frozenset().union(*each)
