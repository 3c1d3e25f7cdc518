"""Said once, and remembered: a log that is not the one that was read."""

from __future__ import annotations

import logging

import pytest

from streaming.events import OFFSETS_TOPIC
from streaming.run.continuity import LostRecords, tell_rewound
from streaming.sinks.registry import Registry


def test_a_rewound_partition_is_said_once_and_nothing_is_ready_until_a_new_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The new log grows past where the old one was read to, and looks right again: what it said meanwhile is lost."""
    registry = Registry()
    registry.put_health(ready=True, was_ready=True)
    for found in ({3, 1}, {1}, (), {1, 2}):
        tell_rewound("eu", registry, found)
    health = registry.present().health
    assert (health.ready, health.was_ready, health.rewound) == (False, True, {1, 2, 3})
    assert [line.split(": cut off")[0] for line in caplog.messages] == [
        f"eu: {OFFSETS_TOPIC} ends before where it was read to, in partition {partitions}"
        for partitions in ("1, 3", "2")
    ]
    assert all("`rebalance-monitor rebuild --cluster eu`" in line for line in caplog.messages), "as it is to be typed"


def test_as_long_as_the_log_is_the_same_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry()
    registry.put_health(ready=True)
    tell_rewound("eu", registry, ())
    LostRecords("eu").tell({}, {0: 5})
    assert registry.present().health.ready
    assert caplog.messages == []


def test_records_that_retention_was_quicker_to_take_are_counted_once(caplog: pytest.LogCaptureFixture) -> None:
    """Samples come more often than batches: the same loss is seen several times."""
    caplog.set_level(logging.WARNING)
    lost_records = LostRecords("eu")
    lost_records.tell({0: 20, 4: 5}, {0: 10, 4: 7})
    lost_records.tell({0: 25}, {0: 10})
    lost_records.tell({0: 3}, {0: 99})
    assert [line.split(" before")[0] for line in caplog.messages] == [
        "eu: __consumer_offsets lost up to 25 records in partition 0, 4",
        "eu: __consumer_offsets lost up to 3 records in partition 0",
    ]
