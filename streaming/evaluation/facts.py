"""The parts of a group's report, one class for each question. None always means unknown.

An open transaction, an old sample or a rebalance in progress can hide a value. In these classes, hidden values are
already removed (by `evaluate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import msgspec

from streaming.combine.gaps import GapTotals
from streaming.evaluation.alternatives import Alternatives
from streaming.evaluation.assignment.drift import NOT_EVALUATED, StrategyDrift
from streaming.evaluation.assignment.member_shares import TopicShare, expected_partitions, topic_shares
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance
from streaming.evaluation.lag.lag import BLOCKED
from streaming.evaluation.limits import DEFAULT_LIMITS, GroupLimits
from streaming.group.members import GroupMember, members
from streaming.group.snapshot import UNKNOWN, GroupSnapshot


@dataclass(frozen=True, slots=True)
class Membership:
    """Type, state and size of the group.

    `protocol` is the name of the group's strategy. `protocol_source` is the source of `protocol`: `records`, or
    `broker` if only the coordinator reported the strategy. It is None if the strategy is unknown. `record_timestamp_ms`
    is the time when the coordinator wrote the last record of the group. `coordinator` is the id of the broker that
    coordinates the group.
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
    """The verdicts, first that for the group's own strategy, and the number of partitions that break a common rule.

    `assigned_by` is the client library that computed the assignment, or `broker`. `assigned_at_ms` is the time of the
    record that was evaluated.
    """

    drifts: tuple[StrategyDrift, ...] = ()
    assigned_by: str | None = None
    assigned_at_ms: int | None = None
    owned_twice_partitions: int | None = None
    not_subscribed_partitions: int | None = None
    unowned_partitions: int | None = None

    @property
    def own(self) -> StrategyDrift | None:
        """The verdict for the group's own strategy, or None if nothing was evaluated."""
        return self.drifts[0] if self.drifts and self.drifts[0].is_group_strategy else None

    @property
    def verdict(self) -> str | None:
        """The verdict for the group's own strategy, as one word: `match`, `drift`, `unknown`, ..."""
        return self.own.verdict if self.own else None

    @property
    def drift_partitions(self) -> int | None:
        """The drift: number of partitions whose owner breaks a rule of the group's own strategy."""
        return self.own.drift_partitions if self.own else None


@dataclass(frozen=True)
class FairnessReport:
    """The distribution of work: the assigned partitions, and the last measured lag and throughput.

    `skewed_topics` is the number of topics whose extra partition goes to the same members. `skew_partitions` is the
    number of extra partitions of the busiest members, compared with the fairest assignment. `remedy` is the strategy
    that removes the skew with the fewest moves. `what_if` is computed for the present assignment.
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


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """Counts since the group was first seen. They are known even if an open transaction hides later records.

    `under_way_since_ms` is the start of the rebalance in progress. It is the time of the first listing that showed the
    rebalance, after the group's last record.
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
    """The members of the group. Each property is computed once, on first use."""

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


class GroupLag(NamedTuple):
    """The lag of a group, summed over its committed partitions.

    The fields are in the same order as in GROUP_LAGS_SCHEMA. `unknown` contains the reasons if the lag of a partition
    is unknown. If `seconds_is_bound` is True, `seconds` is a lower bound.
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


class GroupFacts(msgspec.Struct, frozen=True):
    """Everything that is known about one group.

    `limits` come from the settings. `unowned_records` is the number of unread records in partitions without an owner.
    `not_known` names the missing values. It uses the same words as the tables.
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

    @property
    def is_blocked(self) -> bool:
        """True if an open transaction hides the last records of the group."""
        return BLOCKED in self.not_known

    @property
    def is_evaluated(self) -> bool:
        """True if the group's own strategy has a verdict, and this verdict is not `not_evaluated`."""
        own = self.assignment.own
        return own is not None and own.verdict != NOT_EVALUATED
