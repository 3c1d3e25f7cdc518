"""Metric families of fairness: how evenly work is shared, what is wrong, and what another strategy would make of it.

Of partitions they are told from the records; of lag and throughput from the last sample that they were measured by.
Unknown is no series. What-if is shown of groups that are not as fair as can be: of the others there is nothing to gain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from prometheus_client.core import Metric

from streaming.group.listing import GroupListing, shown_state
from streaming.group.snapshot import ASSIGNING, RECONCILING
from streaming.group.snapshot import REBALANCING as REBALANCING_STATES
from streaming.judgement.alternatives import TODAY, Alternative
from streaming.judgement.drift import REBALANCING, UNKNOWN, StrategyDrift
from streaming.judgement.fairness import among_members
from streaming.judgement.imbalance import PARTITIONS, Imbalance
from streaming.judgement.turn import GroupRecord
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from streaming.signals import Signal, fairness
from streaming.sinks.families import add, gauge
from streaming.sinks.registry import WorkShares

Records = Collection[tuple[str, GroupRecord]]

_IN_BETWEEN = frozenset({ASSIGNING, RECONCILING, *REBALANCING_STATES})


def _avoidable(total: Imbalance) -> int | None:
    if total.idle is None or total.idle_in_any_assignment is None:
        return None
    return max(0, total.idle - total.idle_in_any_assignment)


_OF_MEMBERS: tuple[tuple[Signal, Callable[[Imbalance], float | None]], ...] = (
    (fairness.EXCESS_PARTITIONS, lambda one: one.excess),
    (fairness.IMBALANCE_RATIO, lambda one: one.max_to_mean_ratio),
    (fairness.IDLE_MEMBERS, lambda one: one.idle),
    (fairness.AVOIDABLE_IDLE_MEMBERS, _avoidable),
    (fairness.MEMBER_PARTITIONS_MAX, lambda one: one.largest),
    (fairness.MEMBER_PARTITIONS_MIN, lambda one: one.smallest),
)

_WHAT_IF: tuple[tuple[Signal, Callable[[Alternative], float | None]], ...] = (
    (fairness.WHAT_IF_EXCESS_PARTITIONS, lambda one: one.excess_partitions),
    (fairness.WHAT_IF_MOVED_PARTITIONS, lambda one: one.moved_partitions),
)


def imbalance_families(cluster: str, records: Records, work: Mapping[str, WorkShares]) -> Iterator[Metric]:
    """How evenly work is shared, and what could be made of it."""
    for signal, value in _OF_MEMBERS:
        family = gauge(signal)
        for group_id, record in records:
            total = _total(record)
            if total is not None and (figure := value(total)) is not None:
                add(family, (cluster, group_id), figure)
        yield family
    yield from _scores(cluster, records, work)
    yield _topic_skew(cluster, records)
    yield from _what_if(cluster, records)


def verdict_family(
    cluster: str, records: Records, listing: GroupListing | None, is_held_back: Callable[[str], bool]
) -> Metric:
    """The verdict on each group's own strategy. That a rebalance is under way, a classic group's records never tell."""
    family = gauge(fairness.ASSIGNMENT_VERDICT)
    for group_id, record in records:
        own = next((drift for drift in _drifts(record) if drift.is_group_strategy), None)
        verdict = own.verdict if own else None
        if record.snapshot.protocol_type == CONSUMER_PROTOCOL_TYPE and record.snapshot.member_count():
            if is_held_back(group_id):
                verdict = UNKNOWN
            elif shown_state(record.snapshot, listing) in _IN_BETWEEN:
                verdict = REBALANCING
        if verdict is not None:
            strategy = own.strategy if own else record.snapshot.protocol or ""
            add(family, (cluster, group_id, strategy, verdict), 1)
    return family


def _drifts(record: GroupRecord) -> Iterable[StrategyDrift]:
    return record.judgement.drifts if record.judgement else ()


def _total(record: GroupRecord) -> Imbalance | None:
    return among_members(record.judgement.imbalances, PARTITIONS) if record.judgement else None


def _scores(cluster: str, records: Records, work: Mapping[str, WorkShares]) -> Iterator[Metric]:
    """Of work measured at a sample only what was measured of the assignment that stands."""
    scores, ratios = gauge(fairness.IMBALANCE_SCORE), gauge(fairness.WORK_IMBALANCE_RATIO)
    for group_id, record in records:
        if record.judgement is None:
            continue
        shares = work.get(group_id)
        of_sample = shares.imbalances if shares and shares.position == record.judgement.position else ()
        for one in (*record.judgement.imbalances, *of_sample):
            if one.topic is None and one.score is not None:
                add(scores, (cluster, group_id, one.measure, one.scope), one.score)
        for one in of_sample:
            if one.max_to_mean_ratio is not None:
                add(ratios, (cluster, group_id, one.measure, one.scope), one.max_to_mean_ratio)
    yield scores
    yield ratios


def _topic_skew(cluster: str, records: Records) -> Metric:
    family = gauge(fairness.TOPIC_SKEW)
    for group_id, record in records:
        if record.judgement is not None and record.judgement.skew is not None:
            remedy = record.alternatives.remedy if record.alternatives else None
            add(family, (cluster, group_id, remedy or ""), record.judgement.skew.surplus_partitions)
    return family


def _what_if(cluster: str, records: Records) -> Iterator[Metric]:
    unfair = [
        (group_id, record.alternatives)
        for group_id, record in records
        if record.alternatives and (total := _total(record)) is not None and total.score != 100
    ]
    for signal, value in _WHAT_IF:
        family = gauge(signal)
        for group_id, found in unfair:
            for one in found.outcomes:
                if one.strategy != TODAY and (figure := value(one)) is not None:
                    add(family, (cluster, group_id, one.strategy), figure)
        yield family
