"""Tests of the status rules: Burrow's test cases, the order of the rules, and a simple reference implementation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.status import (
    LONE_COMMIT_SILENCE_MS,
    MIN_SILENCE_MS,
    STATUS_SCHEMA,
    Status,
    statuses,
)
from streaming.evaluation.lag.stored.commit_windows import Windows

OK, WARN, STOP, STALL, REWIND = Status.OK, Status.WARN, Status.STOP, Status.STALL, Status.REWIND
Entry = tuple[int, int, "int | None"]
"""Committed offset, commit timestamp in ms, and lag at observation or None."""


@dataclass(frozen=True)
class Case:
    """All inputs for the status of one group partition."""

    entries: Sequence[Entry]
    lag: int | None
    read_up_to_ms: int | None
    recent_end_offsets: Sequence[int] = ()
    allowed_lag: int = 0
    length: int = 0

    @property
    def reached_end(self) -> bool:
        """Return True if the last commit has reached a recent end offset."""
        return bool(self.entries) and any(end <= self.entries[-1][0] for end in self.recent_end_offsets)


def windows_of(cases: Sequence[Case], length: int) -> Windows:
    """Return windows in the form of CommitWindows: aligned to the right."""
    shape = (len(cases), length)
    committed, timestamp, lag = (np.full(shape, -1, dtype=np.int64) for _ in range(3))
    for row, case in enumerate(cases):
        for column, entry in enumerate(case.entries, start=length - len(case.entries)):
            committed[row, column], timestamp[row, column] = entry[:2]
            lag[row, column] = -1 if entry[2] is None else entry[2]
    return Windows(committed, timestamp, lag, is_entry=committed >= 0, has_lag=lag >= 0)


def evaluated(cases: Sequence[Case], length: int | None = None) -> list[dict[str, Any]]:
    """Evaluate several cases with the same allowed lag in one call."""
    table = statuses(
        windows_of(cases, length or max(case.length or len(case.entries) for case in cases)),
        pa.array([case.lag for case in cases], pa.int64()),
        pa.array([case.read_up_to_ms for case in cases], pa.int64()),
        np.array([case.reached_end for case in cases], dtype=np.bool_),
        cases[0].allowed_lag,
    )
    assert table.schema == STATUS_SCHEMA
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def status_and_rule(case: Case) -> tuple[Status | None, int | None]:
    """Evaluate one case alone."""
    (row,) = evaluated([case])
    return None if row["status"] is None else Status(row["status"]), row["status_rule"]


def every_100_s(offsets: Sequence[int], lags: Sequence[int | None]) -> list[Entry]:
    """Return commits at 100 s, 200 s, 300 s and so on."""
    return [(offset, 100_000 * (at + 1), lag) for at, (offset, lag) in enumerate(zip(offsets, lags, strict=True))]


RISING = [1_000, 2_000, 3_000, 4_000, 5_000]
FALLEN_AND_BACK = every_100_s([1_000, 2_000, 3_000, 2_000, 4_000], [100, 150, 200, 1_250, 300])
FIRST_AT_END = every_100_s(RISING, [0, 50, 100, 150, 200])
ALWAYS_BEHIND = every_100_s(RISING, [50, 100, 150, 200, 250])
STANDING = every_100_s([1_000] * 5, [100, 150, 200, 250, 300])
BURST_TIMES = [
    1_512_224_618_356,
    1_512_224_619_362,
    1_512_224_620_366,
    1_512_224_621_367,
    1_512_224_622_370,
    1_512_224_623_373,
    1_512_224_624_378,
    1_512_224_625_379,
    1_512_224_626_383,
    1_512_224_627_383,
    1_512_224_628_383,
    1_512_224_629_388,
    1_512_224_630_391,
    1_512_224_631_394,
    1_512_224_632_397,
]
KEPT_UP = [(792_748_079 + at, time, 0) for at, time in enumerate(BURST_TIMES)]
TAKES_HALVES = [
    (500 * (2 + at), 50_000 * (2 + at), lag)
    for at, lag in enumerate([0, None, 50, None, 100, None, 150, None, 200, None])
]

GOLDEN = [
    (Case(FIRST_AT_END, 200, 600_000, [5_200]), OK, 4, "0: the lag was 0 in the window"),
    (
        Case(FIRST_AT_END, 200, 900_000, [5_200]),
        OK,
        4,
        "1: 400 s of silence equals the time span of 400 s, so it is not silent",
    ),
    (Case(FIRST_AT_END, 200, 1_000_000, [5_200]), STOP, 2, "2: 500 s of silence, although the lag was 0 once (290)"),
    (Case(ALWAYS_BEHIND, 250, 1_000_000, [5_250]), STOP, 2, "3: silent, and the lag was never 0"),
    (
        Case(every_100_s([1_000] * 5, [0, 50, 100, 150, 200]), 200, 600_000, [1_200]),
        OK,
        4,
        "4: the offset does not move, but the lag was 0",
    ),
    (Case(STANDING, 300, 600_000, [1_300]), STALL, 5, "5: the offset does not move, and the lag was never 0"),
    (
        Case(every_100_s([1_000] * 5, [100] * 5), 100, 600_000, [1_100]),
        STALL,
        5,
        "6: neither the offset nor the lag changes",
    ),
    (Case(FALLEN_AND_BACK, 300, 600_000, [4_300]), OK, 7, "7: the offset went back and recovered, and the lag fell"),
    (Case(ALWAYS_BEHIND, 0, 1_000_000, [5_250]), OK, 1, "8: no lag, with or without silence"),
    (
        Case(KEPT_UP, 931, 1_512_224_692_398, [792_749_024, 792_749_000, 792_748_800, 792_748_600, 792_748_500]),
        STOP,
        2,
        "9: all lags are 0, silent for more than a minute, and the end has been ahead for minutes (290)",
    ),
    (
        Case(KEPT_UP, 1, 1_512_224_650_000, [792_748_094, 792_748_093, 792_748_093, 792_748_093]),
        OK,
        4,
        "10: the end offset equalled the commit a moment ago: one record has just arrived (303)",
    ),
    (Case(TAKES_HALVES, 200, 600_000, [5_700]), OK, 4, "11: entries without a lag change nothing"),
    (
        Case([(1_000, 100_000, 2), (2_000, 200_000, 1), (2_000, 300_000, 1)], 1, 550_000, [2_001], 1),
        OK,
        1,
        "12: silent, but the lag is allowed",
    ),
    (
        Case(STANDING, 300, 600_000, [1_300], 99),
        STALL,
        5,
        "13: the lag is more than allowed, and the offset does not move",
    ),
    (Case(FALLEN_AND_BACK, 300, 600_000, [4_300], 99), OK, 7, "14: as case 7, with an allowed lag"),
    (
        Case(every_100_s([1_000, 2_000, 3_000, 2_000, 2_500], [100, 150, 200, 1_250, 300]), 300, 600_000, [4_300]),
        REWIND,
        3,
        "15: the offset went back and did not reach 3000 again",
    ),
]


@pytest.mark.parametrize(("case", "status", "rule", "why"), GOLDEN, ids=[why for *_, why in GOLDEN])
def test_the_cases_of_burrow(case: Case, status: Status, rule: int, why: str) -> None:
    """The cases are 0 to 15 of caching_test.go, by number. In Burrow's case 9, the silence is only 17 s (see below)."""
    assert status_and_rule(case) == (status, rule), why


def test_a_busy_group_does_not_get_stop_after_a_short_pause() -> None:
    """A group caught up and committed once per second. After a rebalance of 12 s, an incident reported a stopped group.

    Burrow shows STOP after such a pause: the window of commits is shorter than the pause. Burrow's case 9 is one
    example.
    """
    last_ms = BURST_TIMES[-1]
    for now_ms, expected in ((1_512_224_650_000, (OK, 4)), (last_ms + MIN_SILENCE_MS, (OK, 4))):
        assert status_and_rule(Case(KEPT_UP, 931, now_ms, [792_749_024])) == expected
    catching_up = [(100 * at, 1_000 * at, 5_000 - at) for at in range(10)]
    assert status_and_rule(Case(catching_up, 4_000, 9_000 + 12_000, [4_900])) == (OK, 7)
    assert status_and_rule(Case(catching_up, 4_000, 9_000 + 60_001, [4_900])) == (STOP, 2)


def test_a_window_with_a_single_commit_gets_stop_only_after_five_minutes() -> None:
    """Burrow shows STOP at once. With two commits or more, the time between the commits counts, but at least 60 s."""
    for commits in range(1, 10):
        entries = [(100 * at, 60_000 * at, 5_000 - at) for at in range(commits)]
        last_ms = entries[-1][1]
        limit_ms = last_ms or LONE_COMMIT_SILENCE_MS
        found = [
            status_and_rule(Case(entries, 4_000, last_ms + ms, [4_900], length=10)) for ms in (limit_ms, limit_ms + 1)
        ]
        assert found == [(OK, 7), (STOP, 2)]


def test_a_clock_that_was_set_back_does_not_shorten_the_time_between_commits() -> None:
    """A coordinator's clock was set back by an hour. A late group had STOP until ten new commits had arrived."""
    before = [(at, 10_000_000 + 100_000 * at, 1_000 + at) for at in range(9)]
    entries = [*before, (9, 6_500_000, 1_009)]
    assert status_and_rule(Case(entries, 1_009, 6_500_000 + 800_000, [2_000])) == (WARN, 6)
    assert status_and_rule(Case(entries, 1_009, 6_500_000 + 800_001, [2_000])) == (STOP, 2)


def test_one_commit_with_a_clock_that_is_ahead_does_not_delay_stop() -> None:
    """A broker whose clock is one hour ahead led the partition for one commit. Then the group stopped."""
    entries = [(at, 5_000 * at + (3_600_000 if at == 4 else 0), 1_000 + at) for at in range(10)]
    assert status_and_rule(Case(entries, 1_009, 45_000 + 60_001, [2_000])) == (STOP, 2)


RESET = every_100_s([4_000, 5_000, 0, 500, 1_000], [0, 0, 5_200, 4_900, 4_500])
ORDER = [
    (Case(ALWAYS_BEHIND, 0, 10_000_000, [5_250]), OK, 1, "1 before 2: silence without lag is not STOP"),
    (Case(RESET, 0, 600_000, [1_000]), OK, 1, "1 before 3: the offset went back, and so did the end offset"),
    (Case(every_100_s([1_000] * 3, [5, 5, 5]), 0, 310_000, [1_000]), OK, 1, "1 before 5"),
    (Case(FIRST_AT_END, 200, 1_000_000, [5_200]), STOP, 2, "2 before 4 (290): a lag of 0 can be a week old"),
    (Case(FIRST_AT_END, 200, 1_000_000, [5_200, 5_000]), OK, 4, "303: the end was at 5000 minutes ago"),
    (Case(ALWAYS_BEHIND, 200, 1_000_000, [5_200, 4_999]), WARN, 6, "303: an end before the last commit counts too"),
    (
        Case(RESET, 4_200, 2_000_000, [5_200]),
        STOP,
        2,
        "2 before 3: the offset went back, and then the group became silent",
    ),
    (
        Case(STANDING, 300, 2_000_000, [1_300]),
        STOP,
        2,
        "2 before 5: the offset did not move, and then the group became silent",
    ),
    (Case(RESET, 4_200, 600_000, [5_200]), REWIND, 3, "3 before 4 (716): reset to earliest after the lag was 0"),
    (
        Case(every_100_s([2_000, 1_000, 1_000], [10, 1_010, 1_010]), 1_010, 310_000, [2_010]),
        REWIND,
        3,
        "3 before 5 and 6",
    ),
    (Case(every_100_s([1_000] * 5, [9, 9, 0, 9, 9]), 9, 600_000, [1_009]), OK, 4, "4 before 5"),
    (Case(every_100_s(RISING, [9, 9, 0, 9, 9]), 9, 600_000, [5_009]), OK, 4, "4 before 6"),
    (Case(STANDING, 300, 600_000, [1_300]), STALL, 5, "5 before 6: the lag grows because the group reads nothing"),
]


@pytest.mark.parametrize(("case", "status", "rule", "why"), ORDER, ids=[why for *_, why in ORDER])
def test_the_order_of_the_rules(case: Case, status: Status, rule: int, why: str) -> None:
    """Each case matches at least two rules. The numbers are the Burrow issues behind the order."""
    assert status_and_rule(case) == (status, rule), why


EACH = [
    (Case(ALWAYS_BEHIND, 250, 600_000, [5_250]), WARN, 6, "slower than its producers"),
    (Case(every_100_s(RISING, [50, 50, 50, 50, 50]), 50, 600_000, [5_050]), WARN, 6, "an equal lag is not lower"),
    (
        Case(every_100_s(RISING, [50, 40, 90, 99, 100]), 100, 600_000, [5_100]),
        OK,
        7,
        "one lower lag is enough (738, kept)",
    ),
    (
        Case(every_100_s(RISING, [90, None, 50, None, 60]), 60, 600_000, [5_060]),
        OK,
        7,
        "the lag is lower than the previous known lag",
    ),
    (Case(every_100_s(RISING, [50, None, None, None, 50]), 50, 600_000, [5_050]), WARN, 6, "two known lags are enough"),
    (Case(every_100_s(RISING, [None, None, 50, None, None]), 50, 600_000, [5_050]), OK, 7, "one lag is no trend"),
    (Case(every_100_s(RISING, [None] * 5), 50, 600_000, [5_050]), OK, 7, "no lag is no trend, after a start"),
    (Case(every_100_s(RISING, [None] * 5), 50, 901_000, [5_050]), STOP, 2, "silence needs no lags"),
    (Case([(5, 1_000, 3)], 3, 301_000, [8], length=10), OK, 7, "a single commit of 5 min ago is not silent yet"),
    (Case([(5, 1_000, 3)], 3, 301_001, [8], length=10), STOP, 2, "a single commit of more than 5 min ago is silent"),
    (Case([(5, 1_000, 3)], 3, 1_000, [8], length=10), OK, 7, "a single commit is neither STALL nor WARN"),
    (Case([(5, 1_000, 3), (5, 2_000, 3)], 3, 2_500, [8]), STALL, 5, "two commits with the same offset are STALL"),
    (
        Case([(5, 9_000, 3), (6, 2_000, 3)], 3, 62_000, [9]),
        WARN,
        6,
        "clocks that went back give a time span of 0, but a minute of silence is not STOP yet",
    ),
    (
        Case([(5, 9_000, 3), (6, 2_000, 3)], 3, 62_001, [9]),
        STOP,
        2,
        "with a time span of 0, more than a minute of silence is STOP",
    ),
    (
        Case([(5, 1_000, 3), (6, 9_000, 3)], 3, 2_000, [9]),
        WARN,
        6,
        "the log was read up to a time before the last commit",
    ),
    (
        Case(every_100_s([1_000, 900, 1_000, 3_000, 500], [9, 9, 9, 9, 9]), 9, 600_000, [3_009]),
        WARN,
        6,
        "only the first fall counts, and the group recovered from it",
    ),
    (
        Case(every_100_s([3_000, 500, 3_000], [9, 9, 9]), 9, 310_000, [3_009]),
        WARN,
        6,
        "reaching the offset before the fall is enough",
    ),
    (
        Case(ALWAYS_BEHIND, None, 600_000, [5_250]),
        None,
        None,
        "no lag: the end offset was not sampled, or the topic was recreated",
    ),
    (Case(ALWAYS_BEHIND, 250, None, [5_250]), None, None, "the read time of the group's partition is unknown"),
    (Case([], 250, 600_000, [5_250], length=5), None, None, "no commits"),
    (Case(FIRST_AT_END, 200, 1_000_000, []), STOP, 2, "no recent end offset: STOP cannot be excluded"),
]


@pytest.mark.parametrize(("case", "status", "rule", "why"), EACH, ids=[why for *_, why in EACH])
def test_each_status_rule(case: Case, status: Status | None, rule: int | None, why: str) -> None:
    assert status_and_rule(case) == (status, rule), why


@pytest.mark.parametrize(("entries", "length", "completeness"), [(5, 10, 0.5), (10, 10, 1.0), (1, 10, 0.1)])
def test_completeness_is_the_filled_share_of_the_window(entries: int, length: int, completeness: float) -> None:
    """A verdict reports the completeness of its inputs."""
    case = Case(every_100_s(range(1, entries + 1), [5] * entries), 5, 100_000 * entries, [99], length=length)
    assert evaluated([case])[0]["completeness"] == completeness


def status_by_the_rules(case: Case) -> tuple[Status | None, int | None]:  # noqa: PLR0911 - a rule a line
    """Return the status by the rules of status.py, for one partition."""
    offsets = [offset for offset, _, _ in case.entries]
    if case.lag is None or case.read_up_to_ms is None or not case.entries:
        return None, None
    lags = [lag for _, _, lag in case.entries if lag is not None]
    times_ms = [time_ms for _, time_ms, _ in case.entries]
    last_ms, span_ms = times_ms[-1], times_ms[-1] - times_ms[0]
    if span_ms < 0:
        span_ms = sum(max(0, after - before) for before, after in pairwise(times_ms))
    span_ms = max(span_ms, LONE_COMMIT_SILENCE_MS if len(offsets) == 1 else MIN_SILENCE_MS)
    if case.lag <= case.allowed_lag:
        return OK, 1
    if case.read_up_to_ms - last_ms > span_ms and not any(end <= offsets[-1] for end in case.recent_end_offsets):
        return STOP, 2
    falls = [at for at in range(1, len(offsets)) if offsets[at] < offsets[at - 1]]
    if falls and max(offsets[falls[0] :]) < offsets[falls[0] - 1]:
        return REWIND, 3
    if any(lag <= case.allowed_lag for lag in lags):
        return OK, 4
    if len(offsets) > 1 and len(set(offsets)) == 1:
        return STALL, 5
    if len(lags) > 1 and lags == sorted(lags):
        return WARN, 6
    return OK, 7


@st.composite
def cases(draw: Callable[..., Any], allowed_lag: int, length: int) -> Case:
    """Draw commits that are close enough together to reach every rule."""
    entry = st.tuples(st.integers(0, 4), st.sampled_from([0, 3, 9, 40_000, 90_000]), st.none() | st.integers(0, 4))
    drawn = draw(st.lists(entry, max_size=length))
    silence_ms = st.sampled_from([0, MIN_SILENCE_MS, 90_000, LONE_COMMIT_SILENCE_MS])
    last_ms = drawn[-1][1] if drawn else 0
    return Case(
        drawn,
        draw(st.none() | st.integers(0, 4)),
        draw(st.none() | st.tuples(silence_ms, st.integers(-5, 5)).map(lambda ms: last_ms + sum(ms))),
        draw(st.lists(st.integers(0, 6), max_size=3)),
        allowed_lag,
    )


@given(st.data(), st.integers(2, 6))
def test_evaluating_in_bulk_equals_evaluating_each_partition_alone(data: st.DataObject, length: int) -> None:
    """The bulk evaluation works on columns of 100,000 partitions. The reference has one statement per rule."""
    allowed_lag = data.draw(st.integers(0, 2))
    drawn = data.draw(st.lists(cases(allowed_lag, length), min_size=1, max_size=12))
    found = [(row["status"], row["status_rule"]) for row in evaluated(drawn, length)]
    assert found == [status_by_the_rules(case) for case in drawn]


def test_a_case_gets_the_same_status_among_other_cases() -> None:
    """Rows are independent, and shorter windows are not complete."""
    plain = [case for case, *_ in GOLDEN if not case.allowed_lag]
    found = [(row["status"], row["status_rule"]) for row in evaluated(plain)]
    assert found == [(status, rule) for case, status, rule, _ in GOLDEN if not case.allowed_lag]
