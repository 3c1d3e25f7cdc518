"""How evenly work is shared: partitions, lag and throughput, among members, client hosts and the members of a topic.

The measures are those of `assignors/fairness/evenness.py`. Worked example: 7 partitions over 5 members, held
3/1/1/1/1: mean 1.4, max/mean 2.14, one in excess; held 2/2/1/1/1: 1.43 and none, for no valid assignment does
better. Rules:

1. Work that is not known of every partition is unknown as a whole: no numbers, `unknown_reason`, and of how many
   partitions it is missing. Another topic's measures do not suffer from it.
2. Hosts are evaluated only if every member's is known.
3. The score says how close this is to the fairest there can be. Partitions: exactly, over all valid assignments. Lag
   and throughput, which lie in partitions that cannot be divided: against dealing the heaviest partitions first. Hosts:
   as if a host were one member with the subscriptions of all its members. A topic: as if there were no other.
4. There is no score, but `score_reason`, if a topic's partition count is not known (`metadata_missing`) or is not the
   one that was assigned by (`metadata_changed`), a partition is assigned twice, to a stranger, or does not exist
   (`law_broken`; `partitions_shared` if the strategy may give a partition to two members), or some are assigned to
   nobody, as between two cooperative rounds (`partitions_unassigned`). Within a topic the last counts only if they are
   of this topic. Nor is there one if so many subscriptions differ that the fairest is not known
   (`subscriptions_too_many`), a member's subscription could not be read (`member_subscription`), or whoever assigned
   divides something else than partitions (`kafka_streams`: tasks).
5. A member whose assignment could not be read makes everything unknown (`unknown_reason` `member_assignment`): its
   partitions may be of any topic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from math import inf

import msgspec

from assignors import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.fairness.evenness import evenness, score
from assignors.fairness.fairest import TooManySubscriptionsError, even_sizes, fairest_sizes
from assignors.fairness.heaviest_first import heaviest_first_loads, heaviest_first_within
from assignors.fairness.invariants import Rule, violations
from assignors.subscriptions import distinct_subscriptions, subscription_classes

PARTITIONS = "partitions"
LAG = "lag"
THROUGHPUT = "throughput"
"""What is shared, in: partitions; records behind; records per second, as end offsets grow."""

MEMBER = "member"
HOST = "host"
TOPIC = "topic"
"""Among whom: all members, all client hosts, the subscribers of one topic."""

Weights = Mapping[TopicPartition, float | None]


class Imbalance(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One kind of work among one kind of participants. Amounts are in the unit of `measure`, ratios have none.

    `busiest` is who has most, the first by name of several. `idle` are participants without a partition, of which
    `idle_in_any_assignment` cannot be helped: both None unless the measure is partitions. `excess` is what the busiest
    has beyond the busiest of the fairest. Ratios are None where there is nothing to share (`total` 0).
    """

    measure: str
    scope: str
    topic: str | None = None
    unknown_reason: str = ""
    unknown_partitions: int = 0
    participants: int | None = None
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

    @property
    def avoidable_idle(self) -> int | None:
        """How many participants another assignment could employ; None where that is not known."""
        if self.idle is None or self.idle_in_any_assignment is None:
            return None
        return max(0, self.idle - self.idle_in_any_assignment)


@dataclass(frozen=True, slots=True)
class SharedWork:
    """A group's assignment and what it is evaluated by. `hosts` maps member ids to client hosts, as far as known.

    `unknown_topics` are subscribed topics whose partition count is not known, `changed_topics` those whose count is not
    the one that was assigned by (see `assignment_inputs`). `not_scored` says why the whole is not to be scored, if it
    is not; `unknown_reason` why it is not known who has what. `has_one_owner`: no partition may be given to two
    members.
    """

    spec: GroupSpec
    assignment: GroupAssignment
    hosts: Mapping[str, str]
    unknown_topics: Collection[str] = ()
    changed_topics: Collection[str] = ()
    not_scored: str = ""
    unknown_reason: str = ""
    has_one_owner: bool = True


@dataclass(frozen=True, slots=True)
class _Among:
    """One kind of participants. `names` are those that have something, ascending; who has nothing may be left out.

    `places` are the partitions' in `Division.partitions`, `holders` who has each, as a position in `names`. `equals`
    says that so many participants can be given any of the partitions and the others none; where it is None, `spec` says
    who can be given what.
    """

    scope: str
    topic: str | None = None
    unknown_reason: str = ""
    score_reason: str = ""
    participants: int = 0
    names: tuple[str, ...] = ()
    places: Sequence[int] = ()
    holders: Sequence[int] = ()
    equals: int | None = None
    spec: GroupSpec | None = None


@dataclass(frozen=True, slots=True)
class Division:
    """An assignment taken apart by who has what: done once, for every measure and as long as the assignment stands."""

    partitions: tuple[TopicPartition, ...] = ()
    among: tuple[_Among, ...] = ()

    def amounts(self, weights: Weights) -> tuple[float | None, ...]:
        """The work of each of `partitions`; None, or no entry, where it is not known."""
        return tuple(map(weights.get, self.partitions))

    def imbalance(
        self, measure: str = PARTITIONS, amounts: Sequence[float | None] | None = None
    ) -> tuple[Imbalance, ...]:
        """Measure one kind of work among members, hosts and each topic's subscribers: in this order, topics by name.

        `amounts` is the work of each of `partitions`, in the unit of `measure`, None where it is not known. Partitions
        have no amounts: each counts 1. A group without members has no imbalance. Raises ValueError for amounts that are
        negative or not finite.

        >>> spec = GroupSpec((MemberSubscription("A", ("t",)), MemberSubscription("B", ("t",))), {"t": 3})
        >>> held = GroupAssignment({"A": (("t", 0), ("t", 1)), "B": (("t", 2),)})
        >>> division = divided(SharedWork(spec, held, {"A": "/10.0.0.1", "B": "/10.0.0.1"}))
        >>> [(one.scope, one.largest, one.score, one.excess) for one in division.imbalance()]
        [('member', 2, 100.0, 0), ('host', 3, 100.0, 0), ('topic', 2, 100.0, 0)]
        >>> lag = division.amounts({("t", 0): 40, ("t", 1): 50, ("t", 2): 10})
        >>> [(one.scope, one.largest, one.score, one.excess) for one in division.imbalance(LAG, lag)]
        [('member', 90, 20.0, 40), ('host', 100, 100.0, 0), ('topic', 90, 20.0, 40)]
        """
        if amounts is not None and any(amount is not None and not 0 <= amount < inf for amount in amounts):
            raise ValueError(f"{measure} of a partition is negative or not finite")
        return tuple(_measured(measure, one, self.partitions, amounts) for one in self.among)


def divided(shared: SharedWork) -> Division:
    """Take an assignment apart; strangers to the group are left out, and make it unlawful."""
    if not shared.spec.members:
        return Division()
    if shared.unknown_reason:
        return _unknown(shared)
    members = sorted(shared.spec.members, key=lambda member: member.member_id)
    held = [shared.assignment.members.get(member.member_id, ()) for member in members]
    broken = _broken_rules(shared)
    partitions = tuple(chain.from_iterable(held))
    holders = [position for position, of_member in enumerate(held) for _ in of_member]
    return Division(
        partitions,
        (
            _among_members(shared, members, holders, broken),
            _among_hosts(shared, members, holders, broken),
            *_within_topics(shared, members, held, broken),
        ),
    )


def _unknown(shared: SharedWork) -> Division:
    """Rule 5."""
    topics = sorted({topic for member in shared.spec.members for topic in member.topics})
    whole = (_Among(scope, unknown_reason=shared.unknown_reason) for scope in (MEMBER, HOST))
    return Division((), (*whole, *(_Among(TOPIC, topic, unknown_reason=shared.unknown_reason) for topic in topics)))


def _among_members(
    shared: SharedWork, members: Sequence[MemberSubscription], holders: Sequence[int], broken: frozenset[Rule]
) -> _Among:
    equals = _equals(shared.spec)
    return _Among(
        MEMBER,
        score_reason=_why_no_score(shared, None, broken),
        participants=len(members),
        names=tuple(member.member_id for member in members),
        places=range(len(holders)),
        holders=holders,
        equals=equals,
        spec=shared.spec if equals is None else None,
    )


def _among_hosts(
    shared: SharedWork, members: Sequence[MemberSubscription], holders: Sequence[int], broken: frozenset[Rule]
) -> _Among:
    topics: dict[str, dict[str, None]] = {}
    for member in members:
        topics.setdefault(shared.hosts.get(member.member_id, ""), {}).update(dict.fromkeys(member.topics))
    if "" in topics:
        return _Among(HOST, unknown_reason="host_unknown")
    names = sorted(topics)
    numbers = {host: position for position, host in enumerate(names)}
    of_member = [numbers[shared.hosts[member.member_id]] for member in members]
    spec = GroupSpec(tuple(MemberSubscription(host, tuple(topics[host])) for host in names), shared.spec.partitions)
    equals = _equals(spec)
    return _Among(
        HOST,
        score_reason=_why_no_score(shared, None, broken),
        participants=len(names),
        names=tuple(names),
        places=range(len(holders)),
        holders=[of_member[holder] for holder in holders],
        equals=equals,
        spec=spec if equals is None else None,
    )


def _equals(spec: GroupSpec) -> int | None:
    classes = subscription_classes(spec).members
    return None if len(classes) > 1 else sum(map(len, classes))


@dataclass(slots=True)
class _OfTopic:
    """Who of a topic's subscribers has which of its partitions, as it is found."""

    names: list[str] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    holders: list[int] = field(default_factory=list)


def _within_topics(
    shared: SharedWork,
    members: Sequence[MemberSubscription],
    held: Sequence[Sequence[TopicPartition]],
    broken: frozenset[Rule],
) -> Iterator[_Among]:
    subscriptions = distinct_subscriptions(members)
    subscribers = Counter(chain.from_iterable(subscriptions))
    found = {topic: _OfTopic() for topic in sorted(subscribers)}
    place = 0
    for member, topics, of_member in zip(members, subscriptions, held, strict=True):
        for topic, _ in of_member:
            if topic in topics:
                of_topic = found[topic]
                if not of_topic.names or of_topic.names[-1] != member.member_id:
                    of_topic.names.append(member.member_id)
                of_topic.places.append(place)
                of_topic.holders.append(len(of_topic.names) - 1)
            place += 1
    for topic, of_topic in found.items():
        is_whole = len(of_topic.places) == shared.spec.partition_count(topic)
        yield _Among(
            TOPIC,
            topic,
            score_reason=_why_no_score(shared, topic, broken - {Rule.UNASSIGNED} if is_whole else broken),
            participants=subscribers[topic],
            names=tuple(of_topic.names),
            places=of_topic.places,
            holders=of_topic.holders,
            equals=subscribers[topic],
        )


def _measured(
    measure: str, among: _Among, partitions: Sequence[TopicPartition], work: Sequence[float | None] | None
) -> Imbalance:
    if among.unknown_reason:
        return Imbalance(measure=measure, scope=among.scope, topic=among.topic, unknown_reason=among.unknown_reason)
    amounts = [1] * len(among.places) if work is None else [work[place] for place in among.places]
    known = [amount for amount in amounts if amount is not None]
    if len(known) < len(amounts):
        return Imbalance(
            measure=measure,
            scope=among.scope,
            topic=among.topic,
            unknown_reason=f"{measure}_unknown",
            unknown_partitions=len(amounts) - len(known),
        )
    loads: list[float] = [0] * among.participants
    for holder, amount in zip(among.holders, known, strict=True):
        loads[holder] += amount
    found, counts_partitions = evenness(loads), work is None
    reached, why = _fairest(among, partitions, known, counts_partitions=counts_partitions)
    return Imbalance(
        measure=measure,
        scope=among.scope,
        topic=among.topic,
        participants=found.shares,
        total=found.total,
        largest=found.largest,
        smallest=found.smallest,
        busiest=among.names[loads.index(found.largest)] if found.largest else None,
        idle=found.idle if counts_partitions else None,
        max_to_mean_ratio=found.max_to_mean_ratio,
        coefficient_of_variation=found.coefficient_of_variation,
        gini=found.gini,
        score_reason=why,
        score=None if reached is None else score(loads, reached),
        excess=None if reached is None else max(0, found.largest - max(reached)),
        idle_in_any_assignment=reached.count(0) if reached is not None and counts_partitions else None,
    )


def _fairest(
    among: _Among, partitions: Sequence[TopicPartition], work: Sequence[float], *, counts_partitions: bool
) -> tuple[tuple[float, ...] | None, str]:
    """The loads, ascending, of the fairest division of such work (rule 3), or why there is to be no score."""
    if among.score_reason:
        return None, among.score_reason
    if among.equals is not None:
        return _fairest_of_equals(among.participants, among.equals, work, counts_partitions=counts_partitions), ""
    spec = among.spec or GroupSpec((), {})
    if not counts_partitions:
        weights = {partitions[place]: amount for place, amount in zip(among.places, work, strict=True)}
        return heaviest_first_loads(spec, weights), ""
    try:
        return fairest_sizes(spec), ""
    except TooManySubscriptionsError:
        return None, "subscriptions_too_many"


def _fairest_of_equals(
    participants: int, equals: int, work: Sequence[float], *, counts_partitions: bool
) -> tuple[float, ...]:
    """The same where so many of the participants can be given all of it, and the others none."""
    if not equals:
        return (0,) * participants
    dealt = even_sizes(len(work), equals) if counts_partitions else heaviest_first_within(work, equals)
    return (*[0] * (participants - equals), *dealt)


def _why_no_score(shared: SharedWork, topic: str | None, broken: frozenset[Rule]) -> str:
    """Rule 4; for all topics, or for one."""

    def applies(topics: Collection[str]) -> bool:
        return bool(topics) if topic is None else topic in topics

    if shared.not_scored:
        return shared.not_scored
    if applies(shared.unknown_topics):
        return "metadata_missing"
    if applies(shared.changed_topics):
        return "metadata_changed"
    if not shared.has_one_owner and Rule.ASSIGNED_TWICE in broken:
        return "partitions_shared"
    if broken - {Rule.UNASSIGNED}:
        return "law_broken"
    return "partitions_unassigned" if broken else ""


def _broken_rules(shared: SharedWork) -> frozenset[Rule]:
    """The laws that every assignment must keep and this does not, among topics whose size is beyond doubt."""
    doubtful = {*shared.unknown_topics, *shared.changed_topics}
    everybody: dict[str, Sequence[TopicPartition]] = {member.member_id: () for member in shared.spec.members}
    everybody.update(shared.assignment.members)
    certain = {
        member_id: tuple(partition for partition in partitions if partition[0] not in doubtful)
        for member_id, partitions in everybody.items()
    }
    return frozenset(found.rule for found in violations(shared.spec, GroupAssignment(certain)))
