"""Find the partitions that an assignment gives to each participant: a member, a client host or a subscriber.

Rule numbers in this module are those of `imbalance`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from assignors import GroupAssignment, GroupSpec, MemberSubscription, TopicPartition
from assignors.fairness.invariants import Rule, violations
from assignors.subscriptions import distinct_subscriptions, subscription_classes

MEMBER = "member"
HOST = "host"
TOPIC = "topic"
"""Kinds of participants: all members, all client hosts, the subscribers of one topic."""


@dataclass(frozen=True, slots=True)
class SharedWork:
    """A group's assignment, and the other inputs of `imbalance`.

    `hosts` maps member ids to the known client hosts. `unknown_topics` and `changed_topics` have the same meaning as in
    `AssignmentInputs`. `not_scored` is the reason why the group cannot have a score. `unknown_reason` is the reason why
    the owners are unknown. If `has_one_owner` is True, the strategy never assigns a partition to two members.
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
class Participants:
    """The participants of one kind (`scope`), and their partitions.

    `names` contains the sorted names of the participants, but may omit participants without partitions.
    `partition_indexes` are the positions of the partitions in the result of `divide`. `owner_indexes` contains, for
    each partition, the position of its owner in `names`. If all participants with a subscription have the same
    subscription, `equal_participants` is their number. If the subscriptions differ, `equal_participants` is None, and
    `spec` contains the subscriptions.
    """

    scope: str
    topic: str | None = None
    unknown_reason: str = ""
    score_reason: str = ""
    count: int = 0
    names: tuple[str, ...] = ()
    partition_indexes: Sequence[int] = ()
    owner_indexes: Sequence[int] = ()
    equal_participants: int | None = None
    spec: GroupSpec | None = None


def divide(shared: SharedWork) -> tuple[tuple[TopicPartition, ...], tuple[Participants, ...]]:
    """Return the assigned partitions and the participants: members, hosts, and the subscribers of each topic.

    `divide` ignores owners that are not members of the group.
    """
    if not shared.spec.members:
        return (), ()
    if shared.unknown_reason:
        topics = sorted({topic for member in shared.spec.members for topic in member.topics})
        scopes = ((MEMBER, None), (HOST, None), *((TOPIC, topic) for topic in topics))
        return (), tuple(Participants(scope, topic, unknown_reason=shared.unknown_reason) for scope, topic in scopes)
    members = sorted(shared.spec.members, key=lambda member: member.member_id)
    held = [shared.assignment.members.get(member.member_id, ()) for member in members]
    broken = _broken_rules(shared)
    owner_indexes = [position for position, of_member in enumerate(held) for _ in of_member]
    member_ids, score_reason = [member.member_id for member in members], _why_no_score(shared, None, broken)
    return tuple(chain.from_iterable(held)), (
        _of_group(MEMBER, member_ids, shared.spec, owner_indexes, score_reason),
        _host_participants(shared, members, owner_indexes, score_reason),
        *_topic_participants(shared, members, held, broken),
    )


def _host_participants(
    shared: SharedWork, members: Sequence[MemberSubscription], owner_indexes: Sequence[int], score_reason: str
) -> Participants:
    topics: dict[str, dict[str, None]] = {}
    for member in members:
        topics.setdefault(shared.hosts.get(member.member_id, ""), {}).update(dict.fromkeys(member.topics))
    if "" in topics:
        return Participants(HOST, unknown_reason="host_unknown")
    names = sorted(topics)
    indexes = {host: position for position, host in enumerate(names)}
    host_indexes = [indexes[shared.hosts[member.member_id]] for member in members]
    spec = GroupSpec(tuple(MemberSubscription(host, tuple(topics[host])) for host in names), shared.spec.partitions)
    return _of_group(HOST, names, spec, [host_indexes[owner] for owner in owner_indexes], score_reason)


def _of_group(
    scope: str, names: Sequence[str], spec: GroupSpec, owner_indexes: Sequence[int], score_reason: str
) -> Participants:
    classes = subscription_classes(spec).members
    has_different = len(classes) > 1
    return Participants(
        scope,
        score_reason=score_reason,
        count=len(names),
        names=tuple(names),
        partition_indexes=range(len(owner_indexes)),
        owner_indexes=owner_indexes,
        equal_participants=None if has_different else sum(map(len, classes)),
        spec=spec if has_different else None,
    )


@dataclass(slots=True)
class _TopicOwners:
    names: list[str] = field(default_factory=list)
    partition_indexes: list[int] = field(default_factory=list)
    owner_indexes: list[int] = field(default_factory=list)


def _topic_participants(
    shared: SharedWork,
    members: Sequence[MemberSubscription],
    held: Sequence[Sequence[TopicPartition]],
    broken: frozenset[Rule],
) -> Iterator[Participants]:
    subscriptions = distinct_subscriptions(members)
    subscribers = Counter(chain.from_iterable(subscriptions))
    owners_by_topic = {topic: _TopicOwners() for topic in sorted(subscribers)}
    index = 0
    for member, topics, of_member in zip(members, subscriptions, held, strict=True):
        for topic, _ in of_member:
            if topic in topics:
                owners = owners_by_topic[topic]
                if not owners.names or owners.names[-1] != member.member_id:
                    owners.names.append(member.member_id)
                owners.partition_indexes.append(index)
                owners.owner_indexes.append(len(owners.names) - 1)
            index += 1
    for topic, owners in owners_by_topic.items():
        is_whole = len(owners.partition_indexes) == shared.spec.partition_count(topic)
        yield Participants(
            TOPIC,
            topic,
            score_reason=_why_no_score(shared, topic, broken - {Rule.UNASSIGNED} if is_whole else broken),
            count=subscribers[topic],
            names=tuple(owners.names),
            partition_indexes=owners.partition_indexes,
            owner_indexes=owners.owner_indexes,
            equal_participants=subscribers[topic],
        )


def _why_no_score(shared: SharedWork, topic: str | None, broken: frozenset[Rule]) -> str:
    """Return the reason why there is no score (rule 4), or an empty string. `topic` is None for the whole group."""

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
    """Return the rules that the assignment breaks. Topics with an uncertain partition count are ignored."""
    doubtful = {*shared.unknown_topics, *shared.changed_topics}
    assignments: dict[str, Sequence[TopicPartition]] = {member.member_id: () for member in shared.spec.members}
    assignments.update(shared.assignment.members)
    certain = {
        member_id: tuple(partition for partition in partitions if partition[0] not in doubtful)
        for member_id, partitions in assignments.items()
    }
    return frozenset(violation.rule for violation in violations(shared.spec, GroupAssignment(certain)))
