"""Build the report of one group from its records and the last sample.

1. If an open transaction blocks the group, its state is Unknown and its verdict is `unknown`. The report of a blocked
   group contains rebalance counts, the committed topics, and the reason for the unknown lag, but no other values from
   the last sample.
2. While a classic group rebalances, its verdict is `rebalancing`. The coordinator writes no record during a rebalance,
   so only a listing of groups shows that the group rebalances. While a KIP-848 group reconciles, its verdict stays the
   same, because the verdict depends only on the targets.
3. If a group has no membership records, it only commits offsets (`assign()` in the Java client). For a group that only
   commits offsets, state and type come from the listing of groups. If the listed state is Empty, the number of members
   is 0. The report of a group that only commits offsets contains no assignment and no rebalances.
4. For each of the three common rules, the report contains the number of partitions that break the rule. Withheld
   partitions count only after `stuck_after_seconds` (rule 3 of `unowned.py`). If the assignment of a member is unknown,
   the number of unowned partitions is unknown, and the numbers for the other two rules are lower bounds. The report
   shows a lower bound of 0 as unknown. While the verdict is `rebalancing` (rule 2), all three numbers are unknown. If
   the number of unowned partitions is unknown, the number of unread records in these partitions is unknown, too.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import NamedTuple

import msgspec

from streaming.combine.gaps import GapTotals
from streaming.evaluation.assignment.common_rules import RuleViolations, Unowned
from streaming.evaluation.assignment.drift import REBALANCING, UNKNOWN, StrategyDrift
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.causes.member_work import GroupWork
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import AssignmentReport, FairnessReport, GroupLag, Members, Membership, RebalanceReport
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.evaluation.fairness.participants import TOPIC
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import BLOCKED
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.evaluation.limits import DEFAULT_LIMITS, GroupLimits
from streaming.evaluation.rebalances.failed_rebalances import SkipDecisions, failed_rebalances
from streaming.evaluation.report import GroupReport
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import CLASSIC
from streaming.group.listing import ListedGroup
from streaming.group.members import TopicPartitions
from streaming.group.not_known import not_known
from streaming.group.snapshot import ASSIGNING, GroupSnapshot
from streaming.group.snapshot import REBALANCING as REBALANCING_STATES
from streaming.group.snapshot import UNKNOWN as UNKNOWN_STATE
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

_WITHOUT_ASSIGNMENT = frozenset({ASSIGNING, *REBALANCING_STATES})


class RecordedGroup(NamedTuple):
    """Everything that is known about a group, except the values in `SampleValues`.

    `record` is None if the group only commits offsets. `state` comes from the listing of groups if the listing is newer
    than the last record. `listed` is set only if `record` is None. `measured` shows how evenly the present assignment
    shares lag and throughput. `lasting` contains the partitions that were without an owner for too long at the last
    sample (rule 3 of `unowned.py`).
    """

    group_id: str
    record: GroupState | None
    is_blocked: bool = False
    state: str = UNKNOWN_STATE
    listed: ListedGroup | None = None
    rebalancing_since_ms: int | None = None
    measured: tuple[Imbalance, ...] = ()
    commit_gaps: GapTotals | None = None
    decided_skips: SkipDecisions = MappingProxyType({})
    limits: GroupLimits = DEFAULT_LIMITS
    coordinator: int | None = None
    lasting: tuple[Unowned, ...] = ()


class SampleValues(NamedTuple):
    """The values from the last sample. The fields have the same meaning as in `GroupFacts`."""

    lag: GroupLag = GroupLag()
    conditions: tuple[Condition, ...] = ()
    unowned_records: int | None = None
    work: GroupWork | None = None
    cause: Cause | None = None
    topic_loads: tuple[TopicLoad, ...] = ()
    incident_id: str | None = None
    committed_topics: tuple[str, ...] = ()


def evaluate(recorded: RecordedGroup) -> GroupReport:
    """Build the report of an existing group, without the values of a sample."""
    group_state = recorded.record
    if group_state is None:
        return _report_without_record(recorded)
    snapshot, evaluation = group_state.snapshot, group_state.evaluation
    if recorded.is_blocked:
        verdict = StrategyDrift(_own_strategy(group_state), True, UNKNOWN, BLOCKED)
        return GroupReport(
            group_id=recorded.group_id,
            membership=Membership(snapshot.group_type, coordinator=recorded.coordinator),
            assignment=AssignmentReport((verdict,) if _has_consumers(snapshot) else ()),
            rebalances=_rebalances(recorded, group_state),
            not_known=(BLOCKED,),
            limits=recorded.limits,
        )
    assignment = _assignment(recorded, group_state)
    shows_members = snapshot.classic is not None if snapshot.modern is None else snapshot.modern.shows_state
    return GroupReport(
        group_id=recorded.group_id,
        membership=Membership(
            group_type=snapshot.group_type,
            state=recorded.state,
            generation_id=snapshot.generation_id,
            protocol_type=snapshot.protocol_type,
            protocol=snapshot.protocol,
            protocol_source=snapshot.protocol_source,
            members=snapshot.member_count() if shows_members else None,
            record_timestamp_ms=snapshot.position.timestamp_ms if snapshot.position else None,
            coordinator=recorded.coordinator,
        ),
        assignment=assignment,
        fairness=_fairness(group_state, evaluation, recorded.measured) if evaluation else FairnessReport(),
        rebalances=_rebalances(recorded, group_state),
        members=Members(snapshot, assignment.own),
        not_known=not_known(snapshot),
        limits=recorded.limits,
    )


def with_sample(report: GroupReport, sampled: SampleValues) -> GroupReport:
    """Return a copy of the report with the values of a sample. For a blocked group, rule 1 limits the values."""
    if report.is_blocked:
        unknown = sampled.lag.unknown or ((BLOCKED,) if sampled.committed_topics else ())
        sampled = SampleValues(GroupLag(unknown=unknown), committed_topics=sampled.committed_topics)
    elif report.assignment.unowned_partitions is None:
        sampled = sampled._replace(unowned_records=None)
    return msgspec.structs.replace(report, **sampled._asdict())


def _report_without_record(recorded: RecordedGroup) -> GroupReport:
    listed = recorded.listed
    if recorded.is_blocked or listed is None:
        unknown = Membership(CLASSIC, coordinator=recorded.coordinator)
        not_known_facts = (BLOCKED,) if recorded.is_blocked else ()
        return GroupReport(recorded.group_id, unknown, not_known=not_known_facts, limits=recorded.limits)
    membership = Membership(
        listed.group_type or CLASSIC,
        listed.state or UNKNOWN_STATE,
        protocol_type=listed.protocol_type or None,
        members=listed.member_count,
        coordinator=recorded.coordinator,
    )
    return GroupReport(recorded.group_id, membership, limits=recorded.limits)


def _own_strategy(group_state: GroupState) -> str:
    own = group_state.evaluation.own if group_state.evaluation else None
    return own.strategy if own else group_state.snapshot.protocol or ""


def _has_consumers(snapshot: GroupSnapshot) -> bool:
    return snapshot.protocol_type == CONSUMER_PROTOCOL_TYPE and bool(snapshot.member_count())


def _assignment(recorded: RecordedGroup, group_state: GroupState) -> AssignmentReport:
    snapshot, evaluation, violations = group_state.snapshot, group_state.evaluation, group_state.violations
    unowned = group_state.unowned_partitions(recorded.lasting)
    drifts = tuple(sorted(evaluation.drifts if evaluation else (), key=lambda drift: not drift.is_group_strategy))
    if recorded.state in _WITHOUT_ASSIGNMENT and _has_consumers(snapshot):
        others = (drift for drift in drifts if not drift.is_group_strategy)
        drifts = (StrategyDrift(_own_strategy(group_state), True, REBALANCING), *others)
        violations = unowned = None
    return AssignmentReport(
        drifts=drifts,
        assigned_by=evaluation.assigned_by.implementation if evaluation and evaluation.assigned_by else None,
        assigned_at_ms=evaluation.position.timestamp_ms if evaluation else None,
        owned_twice_partitions=_count_violations(violations, violations.owned_twice) if violations else None,
        not_subscribed_partitions=_count_violations(violations, violations.not_subscribed) if violations else None,
        unowned_partitions=unowned,
    )


def _count_violations(violations: RuleViolations, broken: TopicPartitions) -> int | None:
    """Return the number of partitions that break one common rule, or None if unknown (rule 4)."""
    return len(broken) if violations.is_known or broken else None


def _fairness(group_state: GroupState, evaluation: Evaluation, measured: tuple[Imbalance, ...]) -> FairnessReport:
    skew, what_if = evaluation.skew, group_state.alternatives
    return FairnessReport(
        work=tuple(one for one in (*evaluation.imbalances, *measured) if one.scope != TOPIC),
        skewed_topics=skew.topics if skew else 0,
        skew_partitions=skew.surplus_partitions if skew else None,
        remedy=what_if.remedy if what_if else None,
        what_if=what_if,
    )


def _rebalances(recorded: RecordedGroup, group_state: GroupState) -> RebalanceReport:
    totals, rebalance_history = group_state.snapshot.totals, group_state.rebalance_history.totals
    return RebalanceReport(
        total=totals.rebalances,
        failed=failed_rebalances(group_state.snapshot, recorded.decided_skips),
        empty_transitions=totals.empty_transitions,
        by_cause=rebalance_history.rebalances_by_cause,
        moved_partitions=rebalance_history.moved_partitions,
        commit_gaps=recorded.commit_gaps,
        under_way_since_ms=recorded.rebalancing_since_ms,
    )
