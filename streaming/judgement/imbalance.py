"""How evenly work is shared: partitions, lag and throughput, among members, client hosts and the members of a topic.

`imbalance` sums up the partitions a record assigned, from the record alone; counted over members that could be given
something: in total all members, per topic those subscribed to it. Worked example: 7 partitions over 5 members, held
3/1/1/1/1: mean 1.4, max/mean 2.14; held 2/2/1/1/1: 1.43, and no valid assignment does better.

`work_imbalance` is the whole of it, for any work. The measures are those of `assignors/evenness.py`. Rules:

1. Work that is not known of every partition is unknown as a whole: no numbers, `unknown_reason`, and of how many
   partitions it is missing. Another topic's measures do not suffer from it.
2. Hosts are judged only if every member's is known.
3. The score says how close this is to the fairest there can be. Partitions: exactly, over all valid assignments. Lag
   and throughput, which lie in partitions that cannot be divided: against dealing the heaviest partitions first. Hosts:
   as if a host were one member with the subscriptions of all its members. A topic: as if there were no other.
4. There is no score, but `score_reason`, if a topic's partition count is not known (`metadata_missing`), a partition is
   assigned twice, to a stranger, or does not exist (`law_broken`), or some are assigned to nobody, as between two
   cooperative rounds (`partitions_unassigned`). Within a topic the last counts only if they are of this topic. Nor is
   there one if so many subscriptions differ that the fairest is not known (`subscriptions_too_many`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import isfinite

import msgspec

from assignors import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.evenness import evenness, score
from assignors.fairest import TooManySubscriptionsError, even_sizes, fairest_sizes
from assignors.heaviest_first import heaviest_first_loads, heaviest_first_within
from assignors.invariants import Law, violations
from assignors.subscriptions import distinct_subscriptions
from streaming.group.members import GroupMember

PARTITIONS = "partitions"
LAG = "lag"
THROUGHPUT = "throughput"
"""What is shared, in: partitions; records behind; records per second, as end offsets grow."""

MEMBER = "member"
HOST = "host"
TOPIC = "topic"
"""Among whom: all members, all client hosts, the subscribers of one topic."""

Held = Mapping[str, Sequence[TopicPartition]]
"""Who holds what. Those who hold nothing may be left out."""


class PartitionShares(msgspec.Struct, frozen=True):
    """Partitions per member, summed up. `topic` None is the group's total; ratio None where nothing is assigned."""

    topic: str | None
    members: int
    assigned_partitions: int
    max_partitions: int
    min_partitions: int
    idle_members: int
    max_to_mean_ratio: float | None


def imbalance(members: Sequence[GroupMember]) -> tuple[PartitionShares, ...]:
    """The group's total first, then one entry a topic that somebody subscribes to, sorted by name.

    Counted is what each member shall have once the group is reconciled: the leader's or coordinator's decision.
    """
    if not members:
        return ()
    held = {member.member_id: Counter(topic for topic, _ in member.target or ()) for member in members}
    total = _shares(None, (counts.total() for counts in held.values()))
    by_topic = (
        _shares(topic, (held[member_id][topic] for member_id in member_ids))
        for topic, member_ids in sorted(_subscribers(members).items())
    )
    return (total, *by_topic)


def _subscribers(members: Iterable[GroupMember]) -> Mapping[str, list[str]]:
    subscribers: dict[str, list[str]] = {}
    for member in members:
        for topic in member.subscribed_topics or ():
            subscribers.setdefault(topic, []).append(member.member_id)
    return subscribers


def _shares(topic: str | None, partitions_per_member: Iterable[int]) -> PartitionShares:
    found = evenness(list(partitions_per_member))
    return PartitionShares(
        topic=topic,
        members=found.shares,
        assigned_partitions=int(found.total),
        max_partitions=int(found.largest),
        min_partitions=int(found.smallest),
        idle_members=found.idle,
        max_to_mean_ratio=found.max_to_mean_ratio,
    )


class Imbalance(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of work among one kind of sharers. Amounts are in the unit of `measure`, ratios have none.

    `busiest` is who has most, the first by name of several. `idle` are sharers without a partition, of which
    `idle_in_any_assignment` cannot be helped: both None unless the measure is partitions. `excess` is what the busiest
    has beyond the busiest of the fairest. Ratios are None where there is nothing to share (`total` 0).
    """

    measure: str
    scope: str
    topic: str | None = None
    unknown_reason: str = ""
    unknown_partitions: int = 0
    sharers: int | None = None
    total: float | None = None
    largest: float | None = None
    smallest: float | None = None
    busiest: str | None = None
    idle: int | None = None
    max_to_mean_ratio: float | None = None
    coefficient_of_variation: float | None = None
    gini: float | None = None
    score_reason: str = ""
    score: float | None = None
    excess: float | None = None
    idle_in_any_assignment: int | None = None


@dataclass(frozen=True, slots=True)
class SharedWork:
    """A group's assignment and what it is judged by. `hosts` maps member ids to client hosts, as far as known.

    `unknown_topics` are subscribed topics whose partition count is not known (see `group_spec.unknown_topics`).
    """

    spec: GroupSpec
    assignment: GroupAssignment
    hosts: Mapping[str, str]
    unknown_topics: Collection[str] = ()


def work_imbalance(
    shared: SharedWork, measure: str = PARTITIONS, weights: Mapping[TopicPartition, float | None] | None = None
) -> tuple[Imbalance, ...]:
    """Measure one kind of work among members, hosts and each topic's subscribers: in this order, topics by name.

    `weights` has the work of each partition, in the unit of `measure`; None, or no entry, where it is not known.
    Partitions have no weights: each counts 1. A group without members has no imbalance. Raises ValueError for weights
    that are negative or not finite.

    >>> spec = GroupSpec((MemberSubscription("A", ("t",)), MemberSubscription("B", ("t",))), {"t": 3})
    >>> held = GroupAssignment({"A": (("t", 0), ("t", 1)), "B": (("t", 2),)})
    >>> shared = SharedWork(spec, held, {"A": "/10.0.0.1", "B": "/10.0.0.1"})
    >>> [(one.scope, one.largest, one.score, one.excess) for one in work_imbalance(shared)]
    [('member', 2, 100.0, 0), ('host', 3, 100.0, 0), ('topic', 2, 100.0, 0)]
    >>> lag = {("t", 0): 40, ("t", 1): 50, ("t", 2): 10}
    >>> [(one.scope, one.largest, one.score, one.excess) for one in work_imbalance(shared, LAG, lag)]
    [('member', 90, 20.0, 40), ('host', 100, 100.0, 0), ('topic', 90, 20.0, 40)]
    """
    if not shared.spec.members:
        return ()
    held = {member.member_id: shared.assignment.members.get(member.member_id, ()) for member in shared.spec.members}
    work, broken = _Work.of(measure, held, weights), _broken_laws(shared, held)
    return (
        _among_members(shared, held, work, broken),
        _among_hosts(shared, held, work, broken),
        *_within_topics(shared, held, work, broken),
    )


@dataclass(frozen=True, slots=True)
class _Work:
    """The work of every assigned partition that is known, and how fairly such work can be shared."""

    measure: str
    weights: Mapping[TopicPartition, float]
    fairest: Callable[[GroupSpec], Sequence[float]]
    fairest_within: Callable[[Sequence[TopicPartition], int], Sequence[float]]

    @classmethod
    def of(cls, measure: str, held: Held, weights: Mapping[TopicPartition, float | None] | None) -> _Work:
        assigned = dict.fromkeys(partition for partitions in held.values() for partition in partitions)
        if weights is None:
            each = dict.fromkeys(assigned, 1)
            return cls(measure, each, fairest_sizes, lambda partitions, members: even_sizes(len(partitions), members))
        known = {partition: work for partition in assigned if (work := weights.get(partition)) is not None}
        if any(work < 0 or not isfinite(work) for work in known.values()):
            raise ValueError(f"{measure} of a partition is negative or not finite")
        return cls(
            measure,
            known,
            partial(heaviest_first_loads, weights=known),
            lambda partitions, members: heaviest_first_within([known[partition] for partition in partitions], members),
        )


def _among_members(shared: SharedWork, held: Held, work: _Work, broken: frozenset[Law]) -> Imbalance:
    asked = Imbalance(measure=work.measure, scope=MEMBER, score_reason=_why_no_score(shared.unknown_topics, broken))
    return _measured(asked, held, len(held), work, lambda: work.fairest(shared.spec))


def _among_hosts(shared: SharedWork, held: Held, work: _Work, broken: frozenset[Law]) -> Imbalance:
    asked = Imbalance(measure=work.measure, scope=HOST, score_reason=_why_no_score(shared.unknown_topics, broken))
    if not all(shared.hosts.get(member_id) for member_id in held):
        return msgspec.structs.replace(asked, unknown_reason="host_unknown", score_reason="")
    of_host: dict[str, list[TopicPartition]] = {}
    topics: dict[str, set[str]] = {}
    for member in shared.spec.members:
        host = shared.hosts[member.member_id]
        of_host.setdefault(host, []).extend(held[member.member_id])
        topics.setdefault(host, set()).update(member.topics)
    hosts = tuple(MemberSubscription(host, tuple(sorted(subscribed))) for host, subscribed in topics.items())
    return _measured(asked, of_host, len(hosts), work, lambda: work.fairest(GroupSpec(hosts, shared.spec.partitions)))


def _within_topics(shared: SharedWork, held: Held, work: _Work, broken: frozenset[Law]) -> Iterator[Imbalance]:
    subscriptions = distinct_subscriptions(shared.spec.members)
    subscribers = Counter(chain.from_iterable(subscriptions))
    of_topic: dict[str, dict[str, list[TopicPartition]]] = {topic: {} for topic in sorted(subscribers)}
    for member, topics in zip(shared.spec.members, subscriptions, strict=True):
        for partition in held[member.member_id]:
            if partition[0] in topics:
                of_topic[partition[0]].setdefault(member.member_id, []).append(partition)
    for topic, of_members in of_topic.items():
        partitions = list(chain.from_iterable(of_members.values()))
        is_whole = len(partitions) == shared.spec.partition_count(topic)
        broken_here = broken - {Law.UNASSIGNED} if is_whole else broken
        why = _why_no_score({topic}.intersection(shared.unknown_topics), broken_here)
        asked = Imbalance(measure=work.measure, scope=TOPIC, topic=topic, score_reason=why)
        fairest = partial(work.fairest_within, partitions, subscribers[topic])
        yield _measured(asked, of_members, subscribers[topic], work, fairest)


def _measured(
    asked: Imbalance, held: Held, sharers: int, work: _Work, fairest: Callable[[], Sequence[float]]
) -> Imbalance:
    """Fill in the numbers, as far as there are any. Who of the `sharers` is not in `held` has nothing."""
    unknown = sum(partition not in work.weights for partitions in held.values() for partition in partitions)
    if unknown:
        why = f"{work.measure}_unknown"
        return msgspec.structs.replace(asked, unknown_reason=why, unknown_partitions=unknown, score_reason="")
    of_holder = {name: sum(work.weights[partition] for partition in partitions) for name, partitions in held.items()}
    loads = [*of_holder.values(), *[0] * (sharers - len(of_holder))]
    counts_partitions, found = work.measure == PARTITIONS, evenness(loads)
    measured = msgspec.structs.replace(
        asked,
        sharers=found.shares,
        total=found.total,
        largest=found.largest,
        smallest=found.smallest,
        busiest=min((name for name, load in of_holder.items() if load == found.largest > 0), default=None),
        idle=found.idle if counts_partitions else None,
        max_to_mean_ratio=found.max_to_mean_ratio,
        coefficient_of_variation=found.coefficient_of_variation,
        gini=found.gini,
    )
    if asked.score_reason:
        return measured
    try:
        reached = fairest()
    except TooManySubscriptionsError:
        return msgspec.structs.replace(measured, score_reason="subscriptions_too_many")
    return msgspec.structs.replace(
        measured,
        score=score(loads, reached),
        excess=max(0, found.largest - max(reached)),
        idle_in_any_assignment=reached.count(0) if counts_partitions else None,
    )


def _why_no_score(unknown_topics: Collection[str], broken: frozenset[Law]) -> str:
    if unknown_topics:
        return "metadata_missing"
    if broken - {Law.UNASSIGNED}:
        return "law_broken"
    return "partitions_unassigned" if broken else ""


def _broken_laws(shared: SharedWork, held: Held) -> frozenset[Law]:
    """The laws that every assignment must keep and this does not, among topics that are known."""
    known = {
        member_id: tuple(partition for partition in partitions if partition[0] not in shared.unknown_topics)
        for member_id, partitions in {**shared.assignment.members, **held}.items()
    }
    return frozenset(found.law for found in violations(shared.spec, GroupAssignment(known)))
