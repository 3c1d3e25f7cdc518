"""Creates the metrics of fairness: drift, verdict, imbalance, topic skew and what-if.

Partition counts come from the stored state of the group. Shares of lag and throughput come from the last measurement.
An unknown value has no series. Each group with drift from its own strategy has a series for this drift. A series for
drift from another strategy, or for a drift of 0, exists only for groups in full detail. If the fairness score of a
group is 100, no strategy can improve the assignment. So a group with the score 100 has no what-if metrics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from streaming.evaluation.alternatives import TODAY, Alternative
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance
from streaming.evaluation.report import GroupReport
from streaming.prometheus.group_texts import GroupFamily, Samples, single_sample
from streaming.prometheus.lines import Sample
from streaming.signals import PARTITION, fairness


def _own_drift(report: GroupReport) -> Iterator[Sample]:
    own = report.assignment.own
    if own is not None and own.drift_partitions:
        yield Sample((report.group_id, own.strategy), own.drift_partitions)


def _further_drifts(report: GroupReport) -> Iterator[Sample]:
    for drift in report.assignment.drifts:
        is_own_drift = drift.is_group_strategy and drift.drift_partitions
        if drift.drift_partitions is not None and not is_own_drift:
            yield Sample((report.group_id, drift.strategy), drift.drift_partitions)


def _verdict(report: GroupReport) -> Iterator[Sample]:
    own = report.assignment.own
    if own is not None:
        yield Sample((report.group_id, own.strategy, own.verdict), 1)


def _of_members(value: Callable[[Imbalance], float | None]) -> Samples:
    return single_sample(lambda report: None if (total := report.fairness.partitions) is None else value(total))


def _scores(report: GroupReport) -> Iterator[Sample]:
    for one in report.fairness.work:
        if one.score is not None:
            yield Sample((report.group_id, one.measure, one.scope), one.score)


def _work_ratios(report: GroupReport) -> Iterator[Sample]:
    for one in report.fairness.work:
        if one.measure != PARTITIONS and one.max_to_mean_ratio is not None:
            yield Sample((report.group_id, one.measure, one.scope), one.max_to_mean_ratio)


def _topic_skew(report: GroupReport) -> Iterator[Sample]:
    fairness_of_group = report.fairness
    if fairness_of_group.skew_partitions:
        yield Sample((report.group_id, fairness_of_group.remedy or ""), fairness_of_group.skew_partitions)


def _what_if(value: Callable[[Alternative], float | None]) -> Samples:
    def samples(report: GroupReport) -> Iterator[Sample]:
        what_if, total = report.fairness.what_if, report.fairness.partitions
        if not what_if or total is None or total.score == 100:
            return
        for one in what_if.outcomes:
            if one.strategy != TODAY and (number := value(one)) is not None:
                yield Sample((report.group_id, one.strategy), number)

    return samples


IMBALANCE_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    GroupFamily(fairness.DRIFT_PARTITIONS, _own_drift),
    GroupFamily(fairness.DRIFT_PARTITIONS, _further_drifts, PARTITION),
    GroupFamily(fairness.ASSIGNMENT_VERDICT, _verdict),
    GroupFamily(fairness.EXCESS_PARTITIONS, _of_members(lambda one: one.excess)),
    GroupFamily(fairness.IDLE_MEMBERS, _of_members(lambda one: one.idle)),
    GroupFamily(fairness.AVOIDABLE_IDLE_MEMBERS, _of_members(lambda one: one.avoidable_idle)),
    GroupFamily(fairness.MEMBER_PARTITIONS_MAX, _of_members(lambda one: one.largest)),
    GroupFamily(fairness.IMBALANCE_SCORE, _scores),
    GroupFamily(fairness.WORK_IMBALANCE_RATIO, _work_ratios),
    GroupFamily(fairness.TOPIC_SKEW, _topic_skew),
    GroupFamily(fairness.WHAT_IF_EXCESS_PARTITIONS, _what_if(lambda one: one.excess_partitions)),
    GroupFamily(fairness.WHAT_IF_MOVED_PARTITIONS, _what_if(lambda one: one.moved_partitions)),
)
