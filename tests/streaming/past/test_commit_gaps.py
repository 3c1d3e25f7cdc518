"""Tests of the commit gaps of the rebalances in the past."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec import structs

from streaming.combine.gaps import CommitGap
from streaming.delta.rows import commit_gap_rows
from streaming.events import Position
from streaming.page.rebalance_rows import rebalances_of
from streaming.past.moments import Generation
from streaming.past.reader import PastReader
from tests.streaming.groups import member, written
from tests.streaming.past.history import CLUSTER, rows_of_life, write_rows

LIFE = [written(second, second // 10, [member("a", {"orders": [0, 1, 2, 3]})]) for second in (10, 20, 40)]
KNOWN = CommitGap("g", Position(0, 0, 0), 2, 2_000, None, "orders", 3, 3_000, 0, 700, 40, "all_committed")
UNKNOWN = structs.replace(KNOWN, commit_gap_ms=None, unknown_reason="no_commit_after", worst_gap_ms=None)


@pytest.mark.parametrize(
    ("gap", "at_seconds", "is_shown", "why"),
    [
        (KNOWN, 22.999, False, "the gap of one partition is 3 s"),
        (KNOWN, 23, True, "the gap had ended"),
        (KNOWN, 40, True, "the rebalance is not the newest"),
        (structs.replace(UNKNOWN, closed_by="next_rebalance"), 39, False, "the next rebalance was in the future"),
        (structs.replace(UNKNOWN, closed_by="next_rebalance"), 40, True, "the next rebalance ended the gap"),
        (structs.replace(UNKNOWN, closed_by="group_deleted"), 39, False, "the deletion was in the future"),
        (structs.replace(UNKNOWN, closed_by="round_passed"), 39, True, "the group did not commit"),
    ],
)
def test_a_rebalance_in_the_past_shows_its_commit_gap(
    tmp_path: Path, gap: CommitGap, at_seconds: float, *, is_shown: bool, why: str
) -> None:
    """`history` printed "no member committed for 2.0 s", but `?at=` and `history --at` did not."""
    write_life_with(tmp_path, gap)
    past = PastReader(str(tmp_path), CLUSTER).group("g", int(at_seconds * 1000))
    assert past is not None
    rebalance = next(one for one in rebalances_of(past.rebalances) if one.generation_id == 2)
    assert ("no member committed" in rebalance.text) == is_shown, why
    assert rebalance.recommitted_records == (40 if is_shown else None)


def test_a_comparison_shows_the_commit_gaps_of_its_rebalances(tmp_path: Path) -> None:
    write_life_with(tmp_path, KNOWN)
    comparison = PastReader(str(tmp_path), CLUSTER).compare("g", Generation(1), Generation(4))
    assert comparison is not None
    texts = {one.generation_id: one.text for one in rebalances_of(comparison.rebalances)}
    assert {number: "no member committed for 2.0 s" in text for number, text in texts.items()} == {2: True, 4: False}


def write_life_with(folder: Path, gap: CommitGap) -> None:
    """Write the life of the group, and the commit gap of its second generation."""
    position = LIFE[1].position
    write_rows(folder, rows_of_life(LIFE, "g"))
    write_rows(folder, commit_gap_rows(CLUSTER, [structs.replace(gap, position=position)]))
