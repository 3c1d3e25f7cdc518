"""Rows of how fairly work is shared, and of what each strategy would make of a group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assignors.what_if.topic_skew import TopicSkew
from streaming.delta.cells import Row, record_cells, utc
from streaming.evaluation.alternatives import AS_IT_IS, Alternative, Alternatives
from streaming.evaluation.fairness.imbalance import MEMBER, PARTITIONS, Imbalance
from streaming.evaluation.snapshot_evaluation import Evaluation


def partition_rows(key: Row, evaluation: Evaluation) -> Iterator[Row]:
    """How an evaluated generation shares its partitions; `key` has the cells of its record and group."""
    for imbalance in evaluation.imbalances:
        is_whole = (imbalance.measure, imbalance.scope) == (PARTITIONS, MEMBER)
        yield {
            **key,
            "generation_id": evaluation.generation_id,
            **_measured(imbalance),
            "topic_skew": _skew(evaluation.skew) if is_whole and evaluation.skew else None,
            "not_known": list(evaluation.not_known),
        }


def work_rows(
    cluster: str, group_id: str, evaluation: Evaluation, sampled_at_ms: int, imbalances: Iterable[Imbalance]
) -> Iterator[Row]:
    """How it shares lag or throughput as of a sample."""
    sampled_time = utc(sampled_at_ms)
    for imbalance in imbalances:
        yield {
            **record_cells(cluster, evaluation.position),
            "date": sampled_time.date(),
            "sampled_time": sampled_time,
            "group_id": group_id,
            "generation_id": evaluation.generation_id,
            **_measured(imbalance),
            "not_known": list(evaluation.not_known),
        }


def _measured(imbalance: Imbalance) -> Row:
    return {field: getattr(imbalance, field) for field in imbalance.__struct_fields__}


def _skew(skew: TopicSkew) -> Row:
    return {"members": list(skew.members), "topics": skew.topics, "surplus_partitions": skew.surplus_partitions}


def alternative_rows(cluster: str, group_id: str, found: Alternatives) -> Iterator[Row]:
    """What each strategy would make of a group."""
    key = {**record_cells(cluster, found.position), "group_id": group_id, "generation_id": found.generation_id}
    for outcome in found.outcomes:
        is_remedy = outcome.change == AS_IT_IS and outcome.strategy == found.remedy
        yield {
            **key,
            **_outcome(outcome),
            "is_group_strategy": outcome.strategy == found.group_strategy,
            "removes_topic_skew": is_remedy if found.is_skewed else None,
        }


def _outcome(outcome: Alternative) -> Row:
    cells = {field: getattr(outcome, field) for field in outcome.__struct_fields__}
    cells["failure"], cells["failure_detail"] = outcome.failure or ("", "")
    return cells
