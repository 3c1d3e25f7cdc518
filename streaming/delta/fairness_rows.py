"""Makes the rows of the tables `assignment_imbalance` and `what_if`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from assignors.what_if.topic_skew import TopicSkew
from streaming.delta.cells import Row, record_cells, utc
from streaming.evaluation.alternatives import AS_IT_IS, Alternative, Alternatives
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance
from streaming.evaluation.fairness.participants import MEMBER
from streaming.evaluation.snapshot_evaluation import Evaluation


def partition_rows(key: Row, evaluation: Evaluation) -> Iterator[Row]:
    """Return the rows that show how the members of an evaluated generation share the partitions.

    `key` contains the group id and the cells that identify the record.
    """
    for imbalance in evaluation.imbalances:
        skew = evaluation.skew if (imbalance.measure, imbalance.scope) == (PARTITIONS, MEMBER) else None
        yield {
            **key,
            "generation_id": evaluation.generation_id,
            **_imbalance_cells(imbalance),
            "topic_skew": _skew_cell(skew) if skew else None,
            "not_known": list(evaluation.not_known),
        }


def work_rows(
    cluster: str, group_id: str, evaluation: Evaluation, sampled_at_ms: int, imbalances: Iterable[Imbalance]
) -> Iterator[Row]:
    """Return the rows that show how the members share lag or throughput at the time of a sample."""
    sampled_time = utc(sampled_at_ms)
    for imbalance in imbalances:
        yield {
            **record_cells(cluster, evaluation.position),
            "date": sampled_time.date(),
            "sampled_time": sampled_time,
            "group_id": group_id,
            "generation_id": evaluation.generation_id,
            **_imbalance_cells(imbalance),
            "not_known": list(evaluation.not_known),
        }


def _imbalance_cells(imbalance: Imbalance) -> Row:
    return {field: getattr(imbalance, field) for field in imbalance.__struct_fields__}


def _skew_cell(skew: TopicSkew) -> Row:
    return {"members": list(skew.members), "topics": skew.topics, "surplus_partitions": skew.surplus_partitions}


def alternative_rows(cluster: str, group_id: str, alternatives: Alternatives) -> Iterator[Row]:
    """Return the rows of `what_if`.

    The result contains one row for each combination of a strategy and a change of the group.
    """
    key = {
        **record_cells(cluster, alternatives.position),
        "group_id": group_id,
        "generation_id": alternatives.generation_id,
    }
    for outcome in alternatives.outcomes:
        is_remedy = outcome.change == AS_IT_IS and outcome.strategy == alternatives.remedy
        yield {
            **key,
            **_outcome_cells(outcome),
            "is_group_strategy": outcome.strategy == alternatives.group_strategy,
            "removes_topic_skew": is_remedy if alternatives.is_skewed else None,
        }


def _outcome_cells(outcome: Alternative) -> Row:
    cells = {field: getattr(outcome, field) for field in outcome.__struct_fields__}
    cells["failure"], cells["failure_detail"] = outcome.failure or ("", "")
    return cells
