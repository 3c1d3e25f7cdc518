"""Each group on one line: what its records tell, and what the last sample tells of its lag.

1. A group that an open transaction holds back is Unknown: no lag, no shares and no conditions are shown.
2. Without a fresh sample there is no lag, no status, no condition.
3. Partitions without an owner, or with two, are those of the common laws (`common_laws`), without those withheld for
   the next cooperative round. The records that wait in them are known with a fresh sample only. While the assignment of
   a member is unknown, those found among the other members are a lower bound, and none is unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.evaluation.assignment.common_laws import CommonLaws
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.conditions.condition_watch import Condition
from streaming.evaluation.conditions.unowned import UnownedNow
from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import PARTITIONS
from streaming.evaluation.lag.lag import HELD_BACK
from streaming.evaluation.lag.lag_judgement import LagJudgement
from streaming.evaluation.lag.status import Status
from streaming.evaluation.turn import GroupRecord
from streaming.group.listing import GroupListing, shown_state
from streaming.group.members import TopicPartitions
from streaming.group.not_known import not_known
from streaming.group.snapshot import UNKNOWN, GroupSnapshot

_STATUS_NAMES = {status.value: status.name for status in Status}


@dataclass(frozen=True, slots=True)
class Shares:
    """How a group's partitions are shared among its members; None where it is not known.

    `excess_partitions` is what the busiest member has beyond the busiest of the fairest valid assignment,
    `idle_in_any_assignment` how many members must be idle in that one. `score` is 100 for the fairest. The same
    members have the one more of `skewed_topics`, and `remedy` is the strategy that would end that with fewest moves.
    """

    assigned_partitions: int | None = None
    max_partitions: int | None = None
    min_partitions: int | None = None
    idle_members: int | None = None
    idle_in_any_assignment: int | None = None
    excess_partitions: int | None = None
    max_to_mean_ratio: float | None = None
    score: float | None = None
    skewed_topics: int = 0
    remedy: str | None = None


@dataclass(frozen=True, slots=True)
class HeldCondition:
    """A condition that holds now: since when, and in words."""

    condition: str
    since_ms: int
    detail: str


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One group. None is unknown, always.

    `protocol` is the strategy's name; `verdict`, `drift_partitions` and broken `laws` are on the group's own strategy.
    `lag` is the sum over its committed partitions; `lag_unknown` says why that is unknown of some of them.
    `lag_seconds_is_bound` says that `lag_seconds` is a lower bound. `not_known` names what is missing, in the words of
    the tables.
    """

    group_id: str
    group_type: str
    state: str
    generation_id: int | None = None
    protocol_type: str | None = None
    protocol: str | None = None
    members: int | None = None
    verdict: str | None = None
    verdict_reason: str | None = None
    drift_partitions: int | None = None
    shares: Shares = Shares()
    laws: tuple[str, ...] = ()
    owned_twice_partitions: int | None = None
    not_subscribed_partitions: int | None = None
    unowned_partitions: int | None = None
    unowned_records: int | None = None
    conditions: tuple[HeldCondition, ...] = ()
    lag: int | None = None
    lag_unknown: tuple[str, ...] = ()
    lag_seconds: float | None = None
    lag_seconds_is_bound: bool | None = None
    status: str | None = None
    records_lost: int | None = None
    seconds_until_lost: float | None = None
    rebalances_total: int = 0
    not_known: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampled:
    """What the last sample tells; empty where it is not fresh (rule 2).

    All by group: `lags` as `lags_by_group` makes them, `conditions` that hold, partitions without an owner (`unowned`).
    """

    listing: GroupListing | None = None
    lags: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    conditions: Mapping[str, tuple[Condition, ...]] = field(default_factory=dict)
    unowned: Mapping[str, UnownedNow] = field(default_factory=dict)


def lags_by_group(judged: LagJudgement | None) -> Mapping[str, Mapping[str, Any]]:
    """By group: the columns of `LagJudgement.by_group`, the sum as `lag`, and `lag_unknown`, why that is unknown."""
    if judged is None:
        return {}
    sums, why = judged.report.by_group(), defaultdict[str, list[str]](list)
    for group_id, reason in sorted(judged.report.unknown_partitions()):
        why[group_id].append(reason)
    return {
        row["group_id"]: {**row, "lag": sums[row["group_id"]], "lag_unknown": tuple(why[row["group_id"]])}
        for row in judged.by_group().to_pylist()
    }


def summarized(record: GroupRecord, sampled: Sampled, *, is_held_back: bool) -> GroupSummary:
    """One group that exists."""
    snapshot = record.snapshot
    known = GroupSummary(
        group_id=snapshot.group_id,
        group_type=snapshot.group_type,
        state=UNKNOWN,
        rebalances_total=snapshot.totals.rebalances,
        not_known=(HELD_BACK,),
    )
    if is_held_back:
        return known
    own, lag = own_drift(record), sampled.lags.get(known.group_id, {})
    laws, unowned = record.laws, sampled.unowned.get(known.group_id)
    seconds = lag.get("lag_seconds")
    return GroupSummary(
        group_id=known.group_id,
        group_type=known.group_type,
        state=shown_state(snapshot, sampled.listing),
        generation_id=snapshot.generation_id,
        protocol_type=snapshot.protocol_type,
        protocol=snapshot.protocol,
        members=members_known(snapshot),
        verdict=own.verdict if own else None,
        verdict_reason=(own.reason or None) if own else None,
        drift_partitions=own.drift_partitions if own else None,
        shares=_shares(record),
        laws=own.laws if own else (),
        owned_twice_partitions=_at_least(laws, laws.owned_twice) if laws else None,
        not_subscribed_partitions=_at_least(laws, laws.not_subscribed) if laws else None,
        unowned_partitions=record.unowned_partitions(),
        unowned_records=unowned.records() if unowned else None,
        conditions=_held_conditions(sampled.conditions.get(known.group_id, ())),
        lag=lag.get("lag"),
        lag_unknown=lag.get("lag_unknown", ()),
        lag_seconds=seconds,
        lag_seconds_is_bound=None if seconds is None else bool(lag["is_at_least"]),
        status=_STATUS_NAMES.get(lag.get("status", 0)),
        records_lost=lag.get("records_lost"),
        seconds_until_lost=lag.get("seconds_until_lost"),
        rebalances_total=known.rebalances_total,
        not_known=not_known(snapshot),
    )


def _at_least(laws: CommonLaws, broken: TopicPartitions) -> int | None:
    """How many partitions break a law (rule 3)."""
    return len(broken) if laws.is_known or broken else None


def own_drift(record: GroupRecord) -> StrategyDrift | None:
    """The verdict on the group's own strategy; None where nothing was judged."""
    drifts = record.judgement.drifts if record.judgement else ()
    return next((drift for drift in drifts if drift.is_group_strategy), None)


def members_known(snapshot: GroupSnapshot) -> int | None:
    """Number of members; None where some of their records are missing."""
    is_told = snapshot.classic is not None if snapshot.modern is None else snapshot.modern.tells_state
    return snapshot.member_count() if is_told else None


def _held_conditions(held: tuple[Condition, ...]) -> tuple[HeldCondition, ...]:
    return tuple(HeldCondition(one.name, one.since_ms, one.detail) for one in held)


def _shares(record: GroupRecord) -> Shares:
    total = among_members(record.judgement.imbalances, PARTITIONS) if record.judgement else None
    if total is None or record.judgement is None:
        return Shares()
    skew = record.judgement.skew
    return Shares(
        assigned_partitions=_whole(total.total),
        max_partitions=_whole(total.largest),
        min_partitions=_whole(total.smallest),
        idle_members=total.idle,
        idle_in_any_assignment=total.idle_in_any_assignment,
        excess_partitions=_whole(total.excess),
        max_to_mean_ratio=total.max_to_mean_ratio,
        score=total.score,
        skewed_topics=skew.topics if skew else 0,
        remedy=record.alternatives.remedy if record.alternatives else None,
    )


def _whole(amount: float | None) -> int | None:
    return None if amount is None else int(amount)
