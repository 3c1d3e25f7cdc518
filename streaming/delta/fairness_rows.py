"""Makes the rows of the tables `assignment_imbalance` and `what_if`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from streaming.delta.cells import Row, record_cells, utc
from streaming.evaluation.alternatives import AS_IT_IS, Alternatives
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance
from streaming.evaluation.fairness.participants import MEMBER
from streaming.evaluation.snapshot_evaluation import Evaluation


def partition_rows(key: Row, evaluation: Evaluation) -> Iterator[Row]:
    """Return the rows that show how the members of an evaluated generation share the partitions."""
    skew = evaluation.skew and {
        "members": list(evaluation.skew.members),
        "topics": evaluation.skew.topics,
        "surplus_partitions": evaluation.skew.surplus_partitions,
    }
    for imbalance in evaluation.imbalances:
        yield {
            **key,
            "generation_id": evaluation.generation_id,
            **msgspec.structs.asdict(imbalance),
            "topic_skew": skew if (imbalance.measure, imbalance.scope) == (PARTITIONS, MEMBER) else None,
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
            **msgspec.structs.asdict(imbalance),
            "not_known": list(evaluation.not_known),
        }


def alternative_rows(cluster: str, group_id: str, alternatives: Alternatives) -> Iterator[Row]:
    """Return the rows of `what_if`: one row for each combination of a strategy and a change of the group."""
    key = {
        **record_cells(cluster, alternatives.position),
        "group_id": group_id,
        "generation_id": alternatives.generation_id,
    }
    for outcome in alternatives.outcomes:
        is_remedy = outcome.change == AS_IT_IS and outcome.strategy == alternatives.remedy
        failure, failure_detail = outcome.failure or ("", "")
        yield {
            **key,
            **msgspec.structs.asdict(outcome),
            "failure": failure,
            "failure_detail": failure_detail,
            "is_group_strategy": outcome.strategy == alternatives.group_strategy,
            "removes_topic_skew": is_remedy if alternatives.is_skewed else None,
        }
