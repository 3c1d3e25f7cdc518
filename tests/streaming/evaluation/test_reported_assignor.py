"""Tests of the default assignor that a coordinator reports: the verdict uses it, and no row is written twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.assignment.drift import DRIFT, NOT_EVALUATED, UNKNOWN
from streaming.evaluation.group_update import GROUP_CODEC, apply_batch
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import AssignorReported, GroupEvent, TopicMetadata, TopicsSampled
from tests.streaming.evaluation.test_group_update import FRESH, NAMED, finals
from tests.streaming.groups import SECOND_MS, epoch, formed, joined, left, modern_member, target, target_epoch

SERVER_STRATEGIES = (assignor_named("uniform"), assignor_named("server-range"))
UNIFORM, RANGE, MINE = (AssignorReported(3, name) for name in ("uniform", "range", "mine"))
FOUR = TopicsSampled({"orders": TopicMetadata(4, 99 * SECOND_MS, topic_id="id")})
UNEVEN = [
    joined(0, "a"),
    joined(1, "b"),
    epoch(2),
    target(3, "a", (("id", (0, 1, 2)),)),
    target(4, "b", (("id", (3,)),)),
    target_epoch(5),
]
"""Targets that break the rules of uniform and of range. The broker may have a custom assignor."""


@pytest.mark.parametrize(
    ("batches", "rows", "shown", "why"),
    [
        ([UNEVEN, [FOUR, UNIFORM]], ("uniform", DRIFT), ("uniform", DRIFT), "the report comes with the metadata"),
        ([UNEVEN, [FOUR, RANGE]], ("server-range", DRIFT), ("server-range", DRIFT), "with the metadata"),
        ([UNEVEN, [RANGE], [FOUR]], ("server-range", DRIFT), ("server-range", DRIFT), "the report arrives first"),
        ([UNEVEN, [FOUR]], ("", UNKNOWN), ("", UNKNOWN), "no report"),
        ([UNEVEN, [FOUR], [MINE]], ("", UNKNOWN), ("mine", NOT_EVALUATED), "an assignor that only the broker has"),
        ([UNEVEN, [FOUR], [RANGE]], ("", UNKNOWN), ("server-range", DRIFT), "late: the row stays"),
        (
            [UNEVEN, [FOUR, RANGE], [UNIFORM]],
            ("server-range", DRIFT),
            ("uniform", DRIFT),
            "the coordinator reports a different assignor",
        ),
        (
            [UNEVEN, [FOUR, RANGE], [MINE], [RANGE]],
            ("server-range", DRIFT),
            ("server-range", DRIFT),
            "the coordinator reports the same assignor again",
        ),
        (
            [UNEVEN, [FOUR], [AssignorReported(4, "range")]],
            ("", UNKNOWN),
            ("", UNKNOWN),
            "the report is about a different epoch",
        ),
    ],
)
def test_a_reported_assignor_decides_the_verdict_and_each_row_is_written_once(
    batches: list[list[GroupEvent]], rows: tuple[str, str], shown: tuple[str, str], why: str
) -> None:
    """The report can come before or after the row. The group is shown with the verdict of its strategy."""

    def own(evaluation: Evaluation) -> tuple[str, str]:
        return next((one.strategy, one.verdict) for one in evaluation.drifts if one.is_group_strategy)

    record, group_updates = FRESH, []
    for batch in batches:
        group_updates.append(apply_batch(record, batch, SERVER_STRATEGIES))
        record = group_updates[-1].record
    assert [own(one) for one in finals(group_updates) if one.position.offsets_topic_offset == 5] == [rows], why
    assert record.evaluation is not None
    assert own(record.evaluation) == shown, why
    assert record.evaluation.position.offsets_topic_offset == 5, "the verdict of the same record"
    assert record.evaluation == record.evaluation.without_topics(), "the stored evaluation stays small"


REPORTS = st.builds(AssignorReported, st.integers(0, 5), st.sampled_from(["uniform", "range", "mine"]))


@st.composite
def kip_848_batches(draw: Callable[..., Any]) -> list[list[GroupEvent]]:
    """Draw the epochs of a KIP-848 group, one record per batch, with reports and samples between them."""
    samples = st.integers(1, 60_000).map(
        lambda at_ms: TopicsSampled({"orders": TopicMetadata(2, at_ms, topic_id="id")})
    )
    batches: list[list[GroupEvent]] = [[*formed(0, 1)], [NAMED]]
    for number in range(2, 2 + draw(st.integers(0, 4))):
        wish = draw(st.none() | st.just("range"))
        records = [*formed(10 * number, number), joined(10 * number + 5, "n", modern_member(server_assignor=wish))]
        records += left(10 * number + 6, "n") if draw(st.booleans()) else []
        batches += [[record, *draw(st.lists(REPORTS | samples, max_size=2))] for record in records]
    return batches


@given(kip_848_batches())
def test_reports_at_any_time_give_no_second_row(batches: list[list[GroupEvent]]) -> None:
    """Rows have record and strategy as key, for any order of reports and samples."""
    record, group_updates = FRESH, []
    for batch in batches:
        group_updates.append(apply_batch(record, batch, SERVER_STRATEGIES))
        record = group_updates[-1].record
    evaluations = finals(group_updates)
    rows = Counter((one.position, drift.strategy) for one in evaluations for drift in one.drifts)
    assert all(count == 1 for count in rows.values())
    assert GROUP_CODEC.decode(*GROUP_CODEC.encode(record)) == record
