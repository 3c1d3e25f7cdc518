"""Tests of the lag of a group between two rows of `group_lag`."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.past.reader import PastReader
from tests.streaming.groups import member, written
from tests.streaming.past.history import CLUSTER, lag_row, write_lag, write_life, write_status


@pytest.mark.parametrize("seconds_after_the_row", [0, 24, 29])
def test_a_group_does_not_become_too_slow_between_two_rows(tmp_path: Path, seconds_after_the_row: int) -> None:
    """A group was 7 s behind in each row. Shortly before the next row, the past showed 36 s and "too slow" (WARN)."""
    write_life(tmp_path, [written(10, 1, [member("a", {"orders": [0, 1, 2, 3]})])])
    write_lag(tmp_path, lag_row(11_000, 7, seconds=7.455), lag_row(41_000, 9, seconds=5.041))
    write_status(tmp_path, 11_000, "WARN")
    reader, at_ms = PastReader(str(tmp_path), CLUSTER), 11_000 + 1000 * seconds_after_the_row
    past = reader.group("g", at_ms)
    assert past is not None
    for report in (past.report, *reader.groups(at_ms)):
        assert (report.lag.seconds, report.lag.seconds_is_bound, report.lag.status) == (7.455, False, "WARN")
        assert report.troubles == ()
