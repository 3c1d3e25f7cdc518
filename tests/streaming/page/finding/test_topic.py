"""The values on the page of a topic."""

from __future__ import annotations

from streaming.page.finding.topic import _partitions


def test_a_blocked_group_does_not_hide_the_produce_rate_that_another_group_shows() -> None:
    """Two groups have committed the partition. An open transaction blocks the group with the last row."""
    rows = [
        {"group_id": "a", "partition": 0, "produced_records_per_second": 12.5},
        {"group_id": "b", "partition": 0, "produced_records_per_second": None},
    ]
    (known,) = _partitions("orders", range(1), {("orders", 0): 9}, {}, rows)
    assert known.produced_records_per_second == 12.5
    (unknown,) = _partitions("orders", range(1), {("orders", 0): 9}, {}, rows[1:])
    assert unknown.produced_records_per_second is None
