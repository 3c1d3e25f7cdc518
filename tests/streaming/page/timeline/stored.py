"""Writes rows of a group's past to the tables, as the monitor writes them: lag, commit gaps, conditions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from streaming.combine.gaps import ALL_COMMITTED, NO_COMMIT_AFTER, ROUND_PASSED, CommitGap
from streaming.delta.cells import utc
from streaming.delta.rows import commit_gap_rows, condition_rows
from streaming.delta.tables import COMMIT_GAPS, GROUP_CONDITIONS, GROUP_LAG
from streaming.evaluation.conditions.condition_tracker import Condition, ConditionChange
from streaming.events import Position
from tests.streaming.page.scene import CLUSTER, NOW_MS, append

SAMPLE_SECONDS = 30
"""The interval at which the monitor writes the lag."""


def ago_ms(seconds: float) -> int:
    """Return the time that many seconds before the present of the scene."""
    return NOW_MS - int(1000 * seconds)


def write_lag(  # noqa: PLR0913, PLR0917 - the rows of one group
    tables: Path,
    group_id: str,
    from_ago: float,
    until_ago: float,
    lag: Callable[[float], int | None],
    partitions: Iterable[int] = (0,),
    topic: str = "orders",
) -> None:
    """Write the lag of partitions at each sample. `lag` gets the age of the sample in seconds."""
    ages = range(int(from_ago), int(until_ago) - 1, -SAMPLE_SECONDS)
    rows = [
        {
            "cluster": CLUSTER,
            "date": utc(ago_ms(age)).date(),
            "sampled_time": utc(ago_ms(age)),
            "group_id": group_id,
            "topic": topic,
            "partition": partition,
            "committed_offset": 0,
            "commit_time": utc(ago_ms(age)),
            "lag": lag(age),
        }
        for age in ages
        for partition in partitions
    ]
    append(tables, GROUP_LAG, rows)


def write_gap(
    tables: Path, group_id: str, rebalance_ago: float, from_ago: float | None, until_ago: float | None
) -> None:
    """Write a commit gap. `from_ago` is the last commit before it, `until_ago` the first commit after it."""
    gap_ms = None if from_ago is None or until_ago is None else int(1000 * (from_ago - until_ago))
    gap = CommitGap(
        group_id=group_id,
        position=Position(0, int(NOW_MS / 1000 - rebalance_ago), ago_ms(rebalance_ago)),
        generation_id=1,
        commit_gap_ms=gap_ms,
        unknown_reason=NO_COMMIT_AFTER if gap_ms is None else None,
        worst_topic=None,
        worst_partition=None,
        worst_gap_ms=None,
        silent_partitions=0,
        usual_interval_ms=5_000,
        recommitted_records=0,
        closed_by=ROUND_PASSED if gap_ms is None else ALL_COMMITTED,
        last_commit_ms=None if from_ago is None else ago_ms(from_ago),
    )
    append(tables, COMMIT_GAPS, commit_gap_rows(CLUSTER, [gap])[COMMIT_GAPS])


def write_condition(
    tables: Path, group_id: str, condition: str, from_ago: float, until_ago: float | None = None
) -> None:
    """Write the start of a condition, and its end if there is one."""
    started = Condition(condition, ago_ms(from_ago), f"details of {condition}")
    for age, is_active in ((from_ago, True), (until_ago, False)):
        if age is not None:
            change = ConditionChange(group_id, started, active=is_active, read_up_to_ms=ago_ms(age))
            append(tables, GROUP_CONDITIONS, condition_rows(CLUSTER, ago_ms(age), [change]))
