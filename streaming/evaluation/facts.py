"""The facts of one group, a part for each question. None is unknown, always.

What hides a fact (an open transaction, an old sample, a rebalance under way) was applied when the facts were put
together (`evaluate`): what is hidden is not here.
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
from streaming.group.members import GroupMember, members
from streaming.group.snapshot import UNKNOWN, GroupSnapshot


@dataclass(frozen=True, slots=True)
class Membership:
    """What the group is. `protocol` is its strategy's name, `record_timestamp_ms` when its last record was written.

    `protocol_source` is `records`, or `broker` if only the coordinator named the strategy; None where that is unknown.
    """

    group_type: str
    state: str = UNKNOWN
    generation_id: int | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    protocol_source: str | None = None
    members: int | None = None
    record_timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AssignmentReport:
    """The verdict of each strategy, the group's own first, and the number of partitions that break a common law.

    `assigned_by` is whose program assigned, `assigned_at_ms` the time of the record that the verdicts are on.
    """

    drifts: tuple[StrategyDrift, ...] = ()
    assigned_by: str | None = None
    assigned_at_ms: int | None = None
    owned_twice_partitions: int | None = None
    not_subscribed_partitions: int | None = None
    unowned_partitions: int | None = None

    @property
    def own(self) -> StrategyDrift | None:
        """The verdict on the group's own strategy; None where nothing was evaluated."""
        return self.drifts[0] if self.drifts and self.drifts[0].is_group_strategy else None

    @property
    def verdict(self) -> str | None:
        """That verdict in one word."""
        return self.own.verdict if self.own else None

    @property
    def drift_partitions(self) -> int | None:
        """How many partitions' owners break a rule of the own strategy."""
        return self.own.drift_partitions if self.own else None


@dataclass(frozen=True)
class FairnessReport:
    """How evenly work is shared: partitions as they were assigned, lag and throughput as last measured.

    `skewed_topics` counts the topics whose extra partition always goes to the same members. `skew_partitions` is the
    sum of these partitions. `remedy` is the strategy that removes the skew with the fewest moves. `what_if` is computed
    for the present assignment.
    """

    work: tuple[Imbalance, ...] = ()
    skewed_topics: int = 0
    skew_partitions: int | None = None
    remedy: str | None = None
    what_if: Alternatives | None = None

    @cached_property
    def partitions(self) -> Imbalance | None:
        """How partitions are shared among members."""
        return among_members(self.work, PARTITIONS)


@dataclass(frozen=True, slots=True)
class RebalanceReport:
    """Counts since the group was first seen. They are known even if an open transaction hides later records.

    `under_way_since_ms` is the first listing since the last record that showed the group in the middle of a rebalance.
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
        """The same by member id."""
        return {member.member_id: member for member in self.each}

    @cached_property
    def topic_shares(self) -> tuple[TopicShare, ...]:
        """What each has of each topic, and should have."""
        modern = self.snapshot.modern if self.snapshot else None
        unnamed = modern.unnamed_topic_ids() if modern else frozenset[str]()
        return tuple(topic_shares(self.each, self.own, unnamed))

    @cached_property
    def expected_partitions(self) -> Mapping[str, int] | None:
        """How many partitions each should have, by member id."""
        return expected_partitions(self.each, self.own)


class GroupLag(NamedTuple):
    """Lag of all committed partitions together, its fields in the order of GROUP_LAGS_SCHEMA.

    `unknown` holds the reasons if the lag of a partition is unknown. If `seconds_is_bound`, `seconds` is a lower bound.
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
    """All that is known of one group. `unowned_records` wait in partitions without an owner.

    `not_known` names what is missing, in the words of the tables.
    """

    group_id: str
    membership: Membership
    assignment: AssignmentReport = AssignmentReport()
    fairness: FairnessReport = FairnessReport()
    rebalances: RebalanceReport = RebalanceReport()
    members: Members = Members()
    not_known: tuple[str, ...] = ()
    lag: GroupLag = GroupLag()
    conditions: tuple[Condition, ...] = ()
    unowned_records: int | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether an open transaction hides what the group's coordinator wrote last."""
        return BLOCKED in self.not_known

    @property
    def is_evaluated(self) -> bool:
        """Whether its members divide partitions of topics among them by a strategy that can be held against it."""
        own = self.assignment.own
        return own is not None and own.verdict != NOT_EVALUATED
