"""Tables of cases for commit gaps, conditions and times without measurements."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.combine.gaps import NO_COMMIT_AFTER, OFFSETS_MISSING
from streaming.evaluation.rebalances.rebalances import DELETED, REBALANCE, UPGRADED
from streaming.page.timeline.history import (
    Change,
    ConditionRow,
    Gap,
    Span,
    condition_bars,
    gaps_between,
    marks,
    silences,
)
from streaming.page.timeline.window import Window

WINDOW = Window(0, 3_600_000)
MINUTE = 60_000


@pytest.mark.parametrize(
    ("gaps", "spans", "longest_ms", "unknown"),
    [
        pytest.param([Gap(610_000, 600_000, 34_000, None)], [(600_000, 634_000, True, 1)], 34_000, 0, id="known"),
        pytest.param(
            [Gap(900_000, 600_000, None, NO_COMMIT_AFTER)],
            [(600_000, 900_000, False, 1)],
            300_000,
            0,
            id="nobody committed after the rebalance: the gap lasted at least until the rebalance",
        ),
        pytest.param(
            [Gap(900_000, None, None, OFFSETS_MISSING)], [], 0, 1, id="unknown: counted, but nothing is invented"
        ),
        pytest.param(
            [Gap(900_000, None, 5_000, None)], [], 0, 1, id="an earlier version of the monitor wrote no start"
        ),
        pytest.param(
            [Gap(600_000, 590_000, 20_000, None), Gap(605_000, 600_000, 40_000, None)],
            [(590_000, 640_000, True, 2)],
            40_000,
            0,
            id="two overlapping gaps are one span, but the longest gap is a single gap",
        ),
        pytest.param([Gap(-9_000, -20_000, 60_000, None)], [(0, 40_000, True, 1)], 60_000, 0, id="clipped"),
        pytest.param([Gap(-90_000, -90_000, 60_000, None)], [], 0, 0, id="ended before the window"),
        pytest.param([Gap(-90_000, None, None, OFFSETS_MISSING)], [], 0, 0, id="unknown, and not in the window"),
    ],
)
def test_commit_gaps_are_drawn_as_far_as_they_are_proven(
    gaps: Sequence[Gap], spans: Sequence[tuple[int, int, bool, int]], longest_ms: int, unknown: int
) -> None:
    """Tests rule 2."""
    found = gaps_between(gaps, WINDOW)
    assert [(one.from_ms, one.to_ms, one.is_end_known, one.count) for one in found.spans] == spans
    assert (found.longest_ms, found.unknown) == (longest_ms, unknown)


def row(active: bool, since_ms: int, sampled_ms: int, name: str = "rebalance_storm") -> ConditionRow:
    return ConditionRow(name, active, since_ms, sampled_ms, "details")


@pytest.mark.parametrize(
    ("rows", "active", "spans"),
    [
        pytest.param(
            [row(True, 600_000, 610_000), row(False, 600_000, 900_000)],
            [],
            [(600_000, 900_000, True)],
            id="started and ended",
        ),
        pytest.param(
            [row(False, -600_000, 900_000)], [], [(0, 900_000, True)], id="the row of the end also has the start"
        ),
        pytest.param(
            [row(True, 600_000, 610_000)],
            [("rebalance_storm", 600_000, "details")],
            [(600_000, 3_600_000, True)],
            id="active now",
        ),
        pytest.param(
            [],
            [("rebalance_storm", -99_000_000, "details")],
            [(0, 3_600_000, True)],
            id="active for more than a day: no row in the window",
        ),
        pytest.param(
            [row(True, 600_000, 610_000)],
            [],
            [(600_000, 3_000_000, False)],
            id="no end is stored and it is not in the report: drawn until the last sample",
        ),
        pytest.param([row(True, 600_000, 700_000), row(False, 600_000, 700_000)], [], [(600_000, 700_000, True)]),
        pytest.param(
            [row(True, 600_000, 600_000), row(False, 600_000, 660_000), row(True, 1_800_000, 1_800_000)],
            [("rebalance_storm", 1_800_000, "details")],
            [(600_000, 660_000, True), (1_800_000, 3_600_000, True)],
            id="came back",
        ),
        pytest.param(
            [row(True, 600_000, 610_000), row(False, 600_000, 1_500_000)],
            [],
            [(600_000, 1_200_000, False)],
            id="ended while the monitor was stopped: the end is unknown",
        ),
    ],
)
def test_conditions_last_as_long_as_the_rows_and_the_report_show(
    rows: Sequence[ConditionRow], active: Sequence[tuple[str, int, str]], spans: Sequence[tuple[int, int, bool]]
) -> None:
    """Tests rule 3. A storm that ended during a stop of the monitor was drawn until the end of the stop."""
    (bars,) = condition_bars(rows, active, 3_000_000, [Span(1_200_000, 1_500_000), Span(3_000_000, 3_600_000)], WINDOW)
    assert [(one.from_ms, one.to_ms, one.is_end_known) for one in bars.spans] == spans


def test_a_condition_that_ended_before_the_window_has_no_row() -> None:
    assert condition_bars([row(False, -900_000, -600_000)], [], 3_000_000, [], WINDOW) == ()


@pytest.mark.parametrize(
    ("measured", "spans"),
    [
        pytest.param(range(-60, 61), [], id="each minute"),
        pytest.param([*range(-60, 21), *range(30, 61)], [(20, 30)], id="the monitor was down for ten minutes"),
        pytest.param([*range(-60, 21), *range(22, 61)], [], id="two minutes are a restart, or a slow sample"),
        pytest.param(range(20, 61), [(0, 20)], id="the monitor was installed 40 minutes ago"),
        pytest.param(range(-60, 41), [(40, 60)], id="nothing is measured any more"),
        pytest.param([], [(0, 60)], id="nothing is proven"),
        pytest.param([-30], [(0, 60)], id="the last measurement is before the window"),
        pytest.param(range(-60, 61, 10), [], id="sampling.lag_table_seconds is ten minutes"),
        pytest.param([*range(-60, 1, 10), 50, 60], [(0, 50)], id="ten minutes are usual, fifty are not"),
    ],
)
def test_a_long_time_without_rows_of_any_group_is_a_time_without_measurements(
    measured: Sequence[int], spans: Sequence[tuple[int, int]]
) -> None:
    """Tests rule 4. The picture must not show a calm hour if the monitor was stopped."""
    found = silences([minute * MINUTE for minute in measured], WINDOW)
    assert [(one.from_ms // MINUTE, one.to_ms // MINUTE) for one in found] == spans


def test_a_mark_names_its_last_change_and_its_most_frequent_cause_first() -> None:
    """Tests rule 1."""
    changes = [
        Change(1_000, (0, 1), REBALANCE, "member_joined"),
        Change(3_000, (0, 3), REBALANCE, "member_gone"),
        Change(2_000, (0, 2), REBALANCE, "member_gone"),
        Change(3_000, (0, 4), REBALANCE, None),
    ]
    ((mark, last),) = marks(changes, WINDOW)
    assert list(mark.causes.items()) == [("member_gone", 2), ("member_joined", 1), ("cause unknown", 1)]
    assert (mark.first_ms, mark.last_ms, mark.rebalances, last.position) == (1_000, 3_000, 4, (0, 4))


def test_an_upgrade_to_kip_848_is_not_shown_as_a_deletion() -> None:
    """Tests rule 1: the coordinator writes a tombstone for the classic group when it upgrades the group (KIP-848)."""
    changes = [Change(1_000, (0, 1), DELETED, None), Change(1_000, (0, 2), UPGRADED, None)]
    ((mark, _),) = marks(changes, WINDOW)
    assert mark.others == {UPGRADED: 1}


def test_a_gap_that_ended_after_the_window_has_no_known_end() -> None:
    """A page of the past named the length of a gap that had not ended at this time."""
    found = gaps_between([Gap(3_300_000, 3_000_000, 1_200_000, None)], WINDOW)
    assert found.spans == (Span(3_000_000, 3_600_000, is_end_known=False),)
    assert (found.longest_ms, found.is_bound) == (600_000, True)


def test_merged_spans_keep_the_number_of_events_and_the_unknown_end() -> None:
    gaps = [Gap(10_000, 1_000, 5_000, None), Gap(30_000, 4_000, None, NO_COMMIT_AFTER)]
    assert gaps_between(gaps, WINDOW).spans == (Span(1_000, 30_000, "", is_end_known=False, count=2),)
