"""Tests of repeated fetches: compaction can delete a record that a fetch found (rule 2 of `next_offsets.py`)."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streaming.evaluation.lag.lag import LAG_SCHEMA, ClusterSample, lag_report
from streaming.evaluation.lag.next_offsets import (
    FETCHES_PER_SAMPLE,
    REPEAT_AFTER_MS,
    NextOffsets,
    rows_behind,
    rows_with_lag,
)
from streaming.protocol.record_batches import Tail
from tests.streaming.evaluation.lag.test_next_offsets import SECOND_MS, Log, Watch


def stopped_before_compaction(log: Log, *, restarts: bool = False) -> Watch:
    """A fetch finds record 5. Then compaction removes the records 5 to 49. The records 50 to 53 remain."""
    watch = Watch(log)
    log.write(records=54)
    watch.commit(5)
    watch.sample()
    assert (watch.sample()["lag"], watch.fetches) == (49, 1)
    log.records -= set(range(5, 50))
    if restarts:
        watch.restart()
        watch.sample()
    return watch


@pytest.mark.parametrize("restarts", [False, True])
def test_a_record_that_compaction_removed_later_does_not_count_forever(restarts: bool) -> None:
    """Rule 2. A fetch that found a record was never repeated, so the lag was 49 instead of 4, also after restarts."""
    watch = stopped_before_compaction(Log(is_compacted=True), restarts=restarts)
    watch.sample(REPEAT_AFTER_MS // SECOND_MS)
    row = watch.sample()
    assert (row["lag"], row["next_offset"]) == (4, 50)
    fetches = watch.fetches
    for _ in range(5):
        watch.sample()
    assert watch.fetches == fetches, "each fetch is repeated after ten minutes, not at each sample"


@pytest.mark.parametrize(
    ("log", "changes", "lag", "why"),
    [
        (Log(), {}, 49, "only compaction deletes records between others. So a repetition costs without a use"),
        (Log(is_compacted=True), {"start": 20}, 34, "the found record proves that retention deleted unread records"),
    ],
)
def test_a_fetch_that_found_a_record_is_not_repeated_without_need(
    log: Log, changes: dict[str, int], lag: int, why: str
) -> None:
    watch = stopped_before_compaction(log)
    for name, value in changes.items():
        setattr(log, name, value)
    watch.sample(REPEAT_AFTER_MS // SECOND_MS)
    assert (watch.sample()["lag"], watch.fetches) == (lag, 1), why


def test_a_repeated_fetch_that_fails_keeps_the_result_and_waits() -> None:
    watch = stopped_before_compaction(Log(is_compacted=True))
    watch.log.fails = True
    for _ in range(3):
        row = watch.sample(REPEAT_AFTER_MS // SECOND_MS)
    assert (row["lag"], watch.fetches) == (49, 4)
    watch.sample()
    assert watch.fetches == 4


def test_repeated_fetches_come_last_and_the_oldest_results_first() -> None:
    """Rule 5: 100,000 stopped partitions of compacted topics share the limit, and each gets its turn."""
    count = 3 * FETCHES_PER_SAMPLE
    columns = [["g"] * count, ["orders"] * count, list(range(count)), list(range(count)), [0] * count]
    commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    report = lag_report(commits, ClusterSample(9, {}, {("orders", number): count for number in range(count)}))
    unmoved, known = np.full(count, 5_000), NextOffsets()
    rows = rows_behind(report, rows_with_lag(report, unmoved, unmoved < 0), unmoved, {})
    rounds = []
    for at_ms in [1, 2, 3, *(3 + times * REPEAT_AFTER_MS for times in (1, 2, 3))]:
        fetches = known.due_fetches(report, rows, at_ms, ["orders"])
        rounds.append(fetches)
        known.add_results(
            {fetch: Tail(fetch.from_offset, is_record=True, read_to=fetch.from_offset) for fetch in fetches}, at_ms
        )
    assert [len(fetches) for fetches in rounds] == [FETCHES_PER_SAMPLE] * 6
    assert [set(fetches) for fetches in rounds[3:]] == [set(fetches) for fetches in rounds[:3]]
