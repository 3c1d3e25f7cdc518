"""What is told of fairness: how evenly work is shared, what is wrong, and what another strategy would make of it.

Of partitions it is told from the records; of lag and throughput from the last sample that they were measured by.
Unknown is no series. What-if is shown of groups that are not as fair as can be: of the others there is nothing to gain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from streaming.evaluation.alternatives import TODAY, Alternative
from streaming.evaluation.assignment.drift import REBALANCING, UNKNOWN, StrategyDrift
from streaming.evaluation.fairness.fairness import among_members
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance
from streaming.evaluation.turn import GroupRecord
from streaming.group.snapshot import ASSIGNING, RECONCILING
from streaming.group.snapshot import REBALANCING as REBALANCING_STATES
from streaming.prometheus.group_facts import GroupFacts, GroupFamily, Samples, single
from streaming.prometheus.lines import Sample
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE
from streaming.signals import fairness

_IN_BETWEEN = frozenset({ASSIGNING, RECONCILING, *REBALANCING_STATES})


def _drift(facts: GroupFacts) -> Iterator[Sample]:
    for drift in () if facts.is_held_back else _drifts(facts.record):
        if drift.drift_partitions is not None:
            yield Sample((facts.group_id, drift.strategy), drift.drift_partitions)


def _verdict(facts: GroupFacts) -> Iterator[Sample]:
    """The verdict on the own strategy. That a rebalance is under way, a classic group's records never tell."""
    snapshot = facts.record.snapshot
    own = next((drift for drift in _drifts(facts.record) if drift.is_group_strategy), None)
    verdict = own.verdict if own else None
    if snapshot.protocol_type == CONSUMER_PROTOCOL_TYPE and snapshot.member_count():
        if facts.is_held_back:
            verdict = UNKNOWN
        elif facts.state in _IN_BETWEEN:
            verdict = REBALANCING
    if verdict is not None:
        strategy = own.strategy if own else snapshot.protocol or ""
        yield Sample((facts.group_id, strategy, verdict), 1)


def _drifts(record: GroupRecord) -> Iterable[StrategyDrift]:
    return record.judgement.drifts if record.judgement else ()


def _total(record: GroupRecord) -> Imbalance | None:
    return among_members(record.judgement.imbalances, PARTITIONS) if record.judgement else None


def _of_members(value: Callable[[Imbalance], float | None]) -> Samples:
    return single(lambda record: None if (total := _total(record)) is None else value(total))


def _avoidable(total: Imbalance) -> int | None:
    if total.idle is None or total.idle_in_any_assignment is None:
        return None
    return max(0, total.idle - total.idle_in_any_assignment)


def _scores(facts: GroupFacts) -> Iterator[Sample]:
    if not facts.is_held_back and facts.record.judgement is not None:
        for one in (*facts.record.judgement.imbalances, *facts.work):
            if one.topic is None and one.score is not None:
                yield Sample((facts.group_id, one.measure, one.scope), one.score)


def _work_ratios(facts: GroupFacts) -> Iterator[Sample]:
    for one in () if facts.is_held_back else facts.work:
        if one.max_to_mean_ratio is not None:
            yield Sample((facts.group_id, one.measure, one.scope), one.max_to_mean_ratio)


def _topic_skew(facts: GroupFacts) -> Iterator[Sample]:
    record = facts.record
    if not facts.is_held_back and record.judgement is not None and record.judgement.skew is not None:
        remedy = record.alternatives.remedy if record.alternatives else None
        yield Sample((facts.group_id, remedy or ""), record.judgement.skew.surplus_partitions)


def _what_if(value: Callable[[Alternative], float | None]) -> Samples:
    def samples(facts: GroupFacts) -> Iterator[Sample]:
        found, total = facts.record.alternatives, _total(facts.record)
        if facts.is_held_back or not found or total is None or total.score == 100:
            return
        for one in found.outcomes:
            if one.strategy != TODAY and (figure := value(one)) is not None:
                yield Sample((facts.group_id, one.strategy), figure)

    return samples


IMBALANCE_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (fairness.DRIFT_PARTITIONS, _drift),
    (fairness.ASSIGNMENT_VERDICT, _verdict),
    (fairness.EXCESS_PARTITIONS, _of_members(lambda one: one.excess)),
    (fairness.IMBALANCE_RATIO, _of_members(lambda one: one.max_to_mean_ratio)),
    (fairness.IDLE_MEMBERS, _of_members(lambda one: one.idle)),
    (fairness.AVOIDABLE_IDLE_MEMBERS, _of_members(_avoidable)),
    (fairness.MEMBER_PARTITIONS_MAX, _of_members(lambda one: one.largest)),
    (fairness.MEMBER_PARTITIONS_MIN, _of_members(lambda one: one.smallest)),
    (fairness.IMBALANCE_SCORE, _scores),
    (fairness.WORK_IMBALANCE_RATIO, _work_ratios),
    (fairness.TOPIC_SKEW, _topic_skew),
    (fairness.WHAT_IF_EXCESS_PARTITIONS, _what_if(lambda one: one.excess_partitions)),
    (fairness.WHAT_IF_MOVED_PARTITIONS, _what_if(lambda one: one.moved_partitions)),
)
