"""Tests of `long_commit_gap`: no commits around a rebalance while records wait."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.evaluation.conditions.commit_gaps import LONG_COMMIT_GAP, long_commit_gap
from streaming.evaluation.conditions.silence import GroupCommits
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary

HOUR = 3_600
NOW = 10 * HOUR
ACTIVE, NOT_ACTIVE, UNKNOWN = "active", "not active", "unknown"


def rebalance(second: int, members: int = 3, kind: str = "rebalance") -> RebalanceSummary:
    """Return a rebalance that ended at this second."""
    return RebalanceSummary(second * 1000, second, kind, ("unexplained",), "range", members)


@pytest.mark.parametrize(
    ("recent", "rebalancing_since", "last_commit", "waits", "expected", "why"),
    [
        ([NOW - 400], None, NOW - 412, (True, 405), ACTIVE, "the last commit came before the rebalance"),
        ([NOW - 400], None, NOW - 300, (True, 405), NOT_ACTIVE, "the group committed after the rebalance"),
        ([NOW - 250], None, NOW - 300, (True, 405), NOT_ACTIVE, "exactly the limit is allowed"),
        ([NOW - 250], None, NOW - 301, (True, 405), ACTIVE, "more than the limit"),
        ([NOW - 400], None, NOW - 412, (False, 0), NOT_ACTIVE, "a quiet topic: there is nothing to commit"),
        ([NOW - 400], None, NOW - 412, (False, 300), NOT_ACTIVE, "no record has waited for longer than the limit"),
        ([NOW - 400], None, NOW - 412, (None, 0), UNKNOWN, "the lag is unknown"),
        ([NOW - HOUR], None, NOW - 2 * HOUR, (True, 400), NOT_ACTIVE, "the records came long after the rebalance"),
        ([NOW - HOUR], None, NOW - 2 * HOUR, (True, 3_100), ACTIVE, "they came within the window after it"),
        ([], NOW - 350, NOW - 360, (True, 360), ACTIVE, "a rebalance in progress writes no record"),
        ([], NOW - 350, NOW - 320, (True, 360), ACTIVE, "a member committed when it gave up its partitions"),
        ([], None, NOW - 412, (True, 405), NOT_ACTIVE, "no rebalance: the condition silent_group shows this"),
        ([NOW - 400], None, None, (True, 405), NOT_ACTIVE, "the group never committed"),
    ],
)
def test_when_a_commit_gap_is_long(  # noqa: PLR0913, PLR0917 - a row of the table
    recent: Sequence[int],
    rebalancing_since: int | None,
    last_commit: int | None,
    waits: tuple[bool | None, float],
    expected: str,
    why: str,
) -> None:
    """Rule 18, with the default limit of 300 s."""
    commits = None if last_commit is None else GroupCommits(last_commit * 1000, 3, *waits)
    since_ms = None if rebalancing_since is None else rebalancing_since * 1000
    found = long_commit_gap([rebalance(at) for at in recent], since_ms, commits, NOW * 1000, Limits(), 300)
    shown = {(): NOT_ACTIVE, (None,): UNKNOWN}.get(tuple(found.values()), ACTIVE)
    assert shown == expected, why


@pytest.mark.parametrize(
    ("history", "expected", "why"),
    [
        ([(NOW - 20 * HOUR, 3), (NOW - 9 * HOUR, 0), (NOW - 200, 1)], NOT_ACTIVE, "it started 200 s ago"),
        ([(NOW - 20 * HOUR, 3), (NOW - 9 * HOUR, 0), (NOW - 400, 1)], ACTIVE, "it started 400 s ago and hangs"),
        ([(NOW - 20 * HOUR, 3), (NOW - 9 * HOUR, 0)], NOT_ACTIVE, "it has no members"),
    ],
)
def test_a_nightly_job_has_no_gap_of_a_day(history: list[tuple[int, int]], expected: str, why: str) -> None:
    """Rule 19: the last commit is from yesterday, and records have waited since."""
    commits = GroupCommits((NOW - 9 * HOUR) * 1000, 3, wait=True, wait_seconds=8.0 * HOUR)
    recent = [rebalance(at, members) for at, members in history]
    found = long_commit_gap(recent, None, commits, NOW * 1000, Limits(), 300)
    assert (ACTIVE if found else NOT_ACTIVE) == expected, why


def test_the_text_names_the_gap_the_rebalance_and_the_limit_of_the_group() -> None:
    commits = GroupCommits((NOW - 412) * 1000, 3, wait=True, wait_seconds=412)
    found = long_commit_gap([rebalance(NOW - 410)], None, commits, NOW * 1000, Limits(), 45.5)
    assert found == {LONG_COMMIT_GAP: "no commits for 412 s around the rebalance at 09:53:10 UTC; the limit is 45.5 s"}
