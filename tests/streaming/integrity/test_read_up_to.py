"""Tests of the read time of a partition. It uses sampled end offsets and is never later than the records read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from streaming.integrity.read_up_to import ReadUpTo, add_sampled_end, advance_position


def test_the_read_time_of_an_idle_partition_advances_with_each_sample() -> None:
    """No record is written, but the time advances."""
    known = add_sampled_end(ReadUpTo(), position=9, end=9, sampled_at_ms=1_000)
    assert add_sampled_end(known, position=9, end=9, sampled_at_ms=2_000).read_up_to_ms == 2_000


def test_the_read_time_stays_during_a_backlog() -> None:
    known = add_sampled_end(ReadUpTo(500), position=5, end=9, sampled_at_ms=1_000)
    assert advance_position(known, 8).read_up_to_ms == 500
    assert advance_position(known, 9).read_up_to_ms == 1_000


def test_on_a_busy_partition_the_read_time_advances_although_the_end_is_never_reached() -> None:
    known, end = ReadUpTo(), 10
    for second in range(20):
        known = add_sampled_end(known, position=end - 10, end=end, sampled_at_ms=1_000 * second)
        end += 7
    assert known.read_up_to_ms is not None
    assert known.read_up_to_ms >= 15_000


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans())))
def test_all_records_up_to_the_read_time_were_read(steps: list[tuple[int, int, bool]]) -> None:
    """A group in an unread part of the log is not silent."""
    known, end, position = ReadUpTo(), 0, 0
    ends = {0: 0}
    for now_ms, (written, read, is_sampled) in enumerate(steps, start=1):
        end += written
        position = min(end, position + read)
        ends[now_ms] = end
        known = advance_position(known, position)
        if is_sampled:
            known = add_sampled_end(known, position, end, now_ms)
        before = known.read_up_to_ms
        assert before is None or ends[before] <= position
