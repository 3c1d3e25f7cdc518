"""Tests of rule 9 of `streaming/combine/gaps.py`: records that were committed before a rebalance and again after it.

The property tests in `test_gap_splits.py` compare the same number with a model that reads the log record by record.
"""

from __future__ import annotations

import pytest

from tests.streaming.combine.test_gaps import Log, gap_after_first

AT_100 = [(7, "commit 0 100"), (7, "commit 1 100")]
"""Both partitions are committed at offset 100."""
LAST = 2**63 - 1
AT_LAST = [(7, f"commit {partition} {LAST}") for partition in range(3)]
"""No log has this offset, but brokers accept it."""
BOTH_AT_5 = [(100, "commit 0 5"), (100, "commit 1 5")]


CASES: list[tuple[Log, int | None, str]] = [
    (
        [*AT_100, (8, "generation 2"), (9, "commit 0 60"), (10, "commit 1 95")],
        45,
        "40 records of one partition and 5 of the other",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "commit 0 130"), (10, "commit 1 90")],
        10,
        "progress in one partition hides no record that was committed again in the other",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "commit 0 110"), (10, "commit 0 20"), (11, "commit 1 100")],
        0,
        "only the first commit counts: a later rewind is not a result of the rebalance",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "commit 0 60"), (20, "generation 3")],
        40,
        "a silent partition does not count",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "commit 2 0"), (10, "commit 0 100"), (11, "commit 1 100")],
        0,
        "a partition without a commit before the rebalance does not count",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "delete 0"), (9, "commit 0 0"), (10, "commit 1 100")],
        0,
        "the topic was deleted and created again: its old commit does not count",
    ),
    (
        [*AT_100, (8, "generation 2"), (20, "generation 3")],
        None,
        "no partition has both commits",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "hole"), (10, "commit 0 60"), (11, "commit 1 100")],
        None,
        "the missing record was possibly a different first commit",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "commit 0 60"), (10, "hole"), (20, "generation 3")],
        None,
        "the silent partition possibly had a first commit",
    ),
    (
        [*AT_100, (8, "generation 2"), (6, "commit 0 60"), (6, "commit 1 100")],
        40,
        "a clock that went back makes the time unknown, but not the number of records",
    ),
    (
        [*AT_100, (8, "generation 2"), (60, "emptied 3"), (90, "commit 0 0"), (90, "commit 1 0")],
        None,
        "kafka-consumer-groups.sh --reset-offsets, after the last member left, within 300 seconds",
    ),
    (
        [*AT_100, (8, "targets 2"), (60, "epoch 3"), (90, "commit 0 0"), (90, "commit 1 0")],
        None,
        "the same for a KIP-848 group: no target epoch follows, because no member sends a heartbeat",
    ),
    (
        [*AT_100, (8, "generation 2"), (9, "commit 0 60"), (60, "emptied 3"), (90, "commit 1 100")],
        40,
        "the member committed before it left, and the commit afterwards is not lower",
    ),
    (
        [*AT_100, (8, "emptied 2"), (90, "commit 0 0"), (90, "commit 1 0"), (99, "generation 3"), *BOTH_AT_5],
        0,
        "a reset before the members come back is the last commit before the rebalance",
    ),
    (
        [*AT_LAST[:2], (8, "generation 2"), (9, "commit 0 0"), (9, f"commit 1 {LAST}")],
        None,
        "no log has the offset 2^63 - 1, so no record was committed twice",
    ),
    (
        [*AT_LAST, (8, "generation 2"), *((9, f"commit {partition} 0") for partition in range(3))],
        None,
        "the sum of three partitions did not fit into the stored state: the query failed again and again",
    ),
]


@pytest.mark.parametrize(("log", "expected", "why"), CASES, ids=[why for _, _, why in CASES])
@pytest.mark.parametrize("one_batch", [True, False], ids=["one batch", "one batch per record"])
def test_only_records_that_the_log_proves_count(log: Log, expected: int | None, why: str, one_batch: bool) -> None:
    """Issue 15: no estimates. An offset reset by an operator is not the work of a member."""
    assert gap_after_first(log, one_batch=one_batch).recommitted_records == expected, why
