"""The parts of a group's report. Each part is a class. In each field, None means unknown.

An open transaction, an old sample or a rebalance in progress makes some values unreliable. `evaluate` sets unreliable
values to None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import msgspec

from assignors import TopicPartition
from streaming.combine.gaps import GapTotals
from streaming.evaluation.alternatives import Alternatives
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.assignment.member_shares import TopicShare, expected_partitions, topic_shares
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.causes.member_work import GroupWork
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.fairness.fairness import among_members, uneven_work
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance
from streaming.evaluation.lag.lag import BLOCKED
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.evaluation.limits import DEFAULT_LIMITS, GroupLimits
from streaming.group.members import GroupMember, host_name, leader, members, partitions_with_hidden_owner
from streaming.group.snapshot import UNKNOWN, GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import ModernMember

UNKNOWN_TYPE: Final = "unknown"
"""The group type in a report of the past if no table row contains the type. Then no row contains the state either."""

NO_LEADER: Final = -1
"""Value of `Membership.coordinator` if the group's `__consumer_offsets` partition has no leader. Kafka also uses -1."""


@dataclass(frozen=True, slots=True)
class Membership:
    """Type, state and size of the group.

    `protocol` is the name of the group's strategy. `protocol_source` is `records` if a record contains the strategy,
    and `broker` if only the coordinator reported the strategy. `record_timestamp_ms` is the time of the group's last
    record. `coordinator` is a broker id, or NO_LEADER.
    """

    group_type: str
    state: str = UNKNOWN
    generation_id: int | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    protocol_source: str | None = None
    members: int | None = None
    record_timestamp_ms: int | None = None
    coordinator: int | None = None


@dataclass(frozen=True, slots=True)
class AssignmentReport:
    """The verdicts, and the number of partitions that break each common rule.

    In `drifts`, the verdict for the group's own strategy comes first. `assigned_by` is the client library that computed
    the assignment, or `broker`. `assigned_at_ms` is the time of the evaluated record.
    """

    drifts: tuple[StrategyDrift, ...] = ()
    assigned_by: str | None = None
    assigned_at_ms: int | None = None
    owned_twice_partitions: int | None = None
    not_subscribed_partitions: int | None = None
    unowned_partitions: int | None = None

    @property
    def own(self) -> StrategyDrift | None:
        """The verdict for the group's own strategy, or None if there is no such verdict."""
        return self.drifts[0] if self.drifts and self.drifts[0].is_group_strategy else None

    @property
    def verdict(self) -> str | None:
        """The verdict for the group's own strategy, as one word: `match`, `drift`, `unknown`, ..."""
        return self.own.verdict if self.own else None

    @property
    def drift_partitions(self) -> int | None:
        """The drift: the number of partitions whose owner breaks a rule of the group's own strategy."""
        return self.own.drift_partitions if self.own else None


@dataclass(frozen=True)
class FairnessReport:
    """How partitions, lag and throughput are distributed.

    `skewed_topics` is the number of topics in which the member with the most extra partitions has an extra partition,
    or 0 if there is no topic skew. `skew_partitions` is the surplus of the assignment (measure 5 of
    `assignors/fairness/evenness.py`). `remedy` is the strategy that removes the skew with the fewest moves.
    """

    work: tuple[Imbalance, ...] = ()
    skewed_topics: int = 0
    skew_partitions: int | None = None
    remedy: str | None = None
    what_if: Alternatives | None = None

    @cached_property
    def partitions(self) -> Imbalance | None:
        """The distribution of partitions among members."""
        return among_members(self.work, PARTITIONS)

    @cached_property
    def uneven_work(self) -> Imbalance | None:
        """The distribution of the produce rate if the work is *uneven* (`fairness.py`, rule 4), or else None."""
        return uneven_work(self.work)


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """Counts since the monitor first detected the group. They are known even if an open transaction blocks records.

    `under_way_since_ms` is the time of the first listing of groups that showed the rebalance in progress.
    """

    total: int | None = None
    failed: int | None = None
    empty_transitions: int | None = None
    by_cause: Mapping[str, int] | None = None
    moved_partitions: Mapping[str, int] | None = None
    commit_gaps: GapTotals | None = None
    under_way_since_ms: int | None = None


@dataclass(frozen=True)
class Members:
    """The members of the group. Their values are computed and cached when an output first needs them."""

    snapshot: GroupSnapshot | None = None
    own: StrategyDrift | None = None

    @cached_property
    def each(self) -> tuple[GroupMember, ...]:
        """All members, sorted by id."""
        return members(self.snapshot) if self.snapshot else ()

    @cached_property
    def by_id(self) -> Mapping[str, GroupMember]:
        """All members by member id."""
        return {member.member_id: member for member in self.each}

    @property
    def leader(self) -> GroupMember | None:
        """The leader of a classic group, or None if the leader is unknown or does not exist."""
        return leader(self.snapshot) if self.snapshot else None

    @property
    def session_timeouts_ms(self) -> tuple[int, ...]:
        """The distinct known session timeouts of the members, in ascending order. Empty if unknown."""
        sources = (member.classic if isinstance(member, ModernMember) else member for member in self._stored)
        return _distinct(source.session_timeout_ms for source in sources if source)

    @property
    def rebalance_timeouts_ms(self) -> tuple[int, ...]:
        """The distinct known rebalance timeouts of the members, in ascending order. Empty if unknown."""
        return _distinct(member.rebalance_timeout_ms for member in self._stored)

    @property
    def topics(self) -> frozenset[str]:
        """The topics that members subscribe to, and the topics of their partitions."""
        if self.snapshot is None:
            return frozenset()
        modern, classic = self.snapshot.modern, self.snapshot.classic
        if modern is not None:
            held = {
                topic_id
                for one in modern.currents.values()
                for topic_id, _ in (*one.assigned, *(one.pending_revocation or ()))
            }
            known = {modern.topic_names[topic_id] for topic_id in held if topic_id in modern.topic_names}
            return frozenset(known.union(modern.subscribed_topics()))
        of_members = classic.members if classic else ()
        subscribed = {topic for member in of_members if member.subscription for topic in member.subscription.topics}
        assigned = {topic for member in of_members if member.assignment for topic, _ in member.assignment.partitions}
        return frozenset(subscribed | assigned)

    @property
    def hosts(self) -> frozenset[str]:
        """The names of the client hosts of all members."""
        return frozenset(host_name(member.client_host) for member in self._stored)

    @property
    def _stored(self) -> Collection[ClassicMember | ModernMember]:
        """The members in the group state. Unlike `each`, they need no conversion, which is slow for many groups."""
        return self.snapshot.stored_members() if self.snapshot else ()

    @cached_property
    def owners(self) -> Mapping[TopicPartition, GroupMember]:
        """The member that owns each partition. If a partition has several owners, the last of them in `each`.

        A member owns a partition until it has revoked the partition.
        """
        return {partition: member for member in self.each for partition in member.held or ()}

    @cached_property
    def are_owners_known(self) -> bool:
        """True if the partitions of every member are known, also those that the member must still revoke."""
        is_assignment_known = all(member.assigned is not None for member in self.each)
        return is_assignment_known and not partitions_with_hidden_owner(self.each)

    @cached_property
    def topic_shares(self) -> tuple[TopicShare, ...]:
        """The actual and the expected partition count of each member in each topic."""
        modern = self.snapshot.modern if self.snapshot else None
        unnamed = modern.unnamed_topic_ids() if modern else frozenset[str]()
        return tuple(topic_shares(self.each, self.own, unnamed))

    @cached_property
    def expected_partitions(self) -> Mapping[str, int] | None:
        """The expected partition count of each member, by member id."""
        return expected_partitions(self.each, self.own)


def _distinct(timeouts_ms: Iterable[int | None]) -> tuple[int, ...]:
    return tuple(sorted({timeout_ms for timeout_ms in timeouts_ms if timeout_ms is not None}))


class GroupLag(NamedTuple):
    """The lag of a group, summed over its committed partitions.

    The fields have the order and the meaning of the columns of GROUP_LAGS_SCHEMA. Without a fresh sample, `unknown`
    contains only NO_FRESH_SAMPLE. While the cluster is not ready, `unknown` contains only LOG_NOT_READ.
    `offsets_expire_ms` is None if the group has members.
    """

    records: int | None = None
    max_partition_records: int | None = None
    unknown: Sequence[str] = ()
    seconds: float | None = None
    seconds_is_bound: bool | None = None
    status: str | None = None
    completeness: float | None = None
    blocked_partitions: int | None = None
    records_lost: int | None = None
    seconds_until_lost: float | None = None
    last_commit_ms: int | None = None
    consumed_records_per_second: float | None = None
    produced_records_per_second: float | None = None
    catch_up_seconds: float | None = None
    worst_topic: str | None = None
    worst_partition: int | None = None
    offsets_expire_ms: int | None = None
    seconds_until_expiry: float | None = None

    @property
    def worst(self) -> TopicPartition | None:
        """The partition with the largest lag in seconds. None if no partition has a lag."""
        if self.worst_topic is None or self.worst_partition is None:
            return None
        return self.worst_topic, self.worst_partition


class GroupFacts(msgspec.Struct, frozen=True):
    """Everything that is known about one group.

    `unowned_records` is the number of unread records in unowned partitions. `not_known` contains the names of the
    unknown facts (`group.not_known`). `work` and `cause` (of the lag) are None if no partition of the group is late.
    `committed_topics` are the topics for which the group had committed offsets at the last sample, even if the sample
    is old. `topic_loads` contains the known loads of these topics. `incident_id` is the id of the oldest open incident
    with active evidence of the group.
    """

    group_id: str
    membership: Membership
    assignment: AssignmentReport = AssignmentReport()
    fairness: FairnessReport = FairnessReport()
    rebalances: RebalanceReport = RebalanceReport()
    members: Members = Members()
    not_known: tuple[str, ...] = ()
    limits: GroupLimits = DEFAULT_LIMITS
    lag: GroupLag = GroupLag()
    conditions: tuple[Condition, ...] = ()
    unowned_records: int | None = None
    work: GroupWork | None = None
    cause: Cause | None = None
    topic_loads: tuple[TopicLoad, ...] = ()
    incident_id: str | None = None
    committed_topics: tuple[str, ...] = ()

    @property
    def topics(self) -> frozenset[str]:
        """The subscribed topics, the topics of assigned partitions, and the topics with committed offsets."""
        return self.members.topics.union(self.committed_topics)

    @property
    def is_blocked(self) -> bool:
        """True if an open transaction blocks the last records of the group."""
        return BLOCKED in self.not_known

    @property
    def is_above_limit(self) -> bool:
        """True if the lag in seconds is known, and above the group's limit `max_lag_seconds`."""
        return self.lag.seconds is not None and self.lag.seconds > self.limits.max_lag_seconds

    @property
    def are_owners_known(self) -> bool:
        """True if the owners of all partitions are known. False for a group that only commits offsets."""
        has_members = self.members.snapshot is not None and self.membership.state != UNKNOWN
        return has_members and self.members.are_owners_known

    @property
    def is_evaluated(self) -> bool:
        """True if the group's own strategy has a verdict other than `not_evaluated`."""
        own = self.assignment.own
        return own is not None and own.is_evaluated
