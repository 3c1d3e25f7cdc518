"""Tests that a truncated or recreated `__consumer_offsets` is logged once and remembered."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from streaming.combine.partition_state import PartitionBatch
from streaming.events import OFFSETS_TOPIC
from streaming.run.log_integrity import STORED_ID, ForeignRecords, LogWatch, report_rewound
from streaming.state.monitor_state import MonitorState
from tests.streaming.run.test_poller import Folder


def test_a_rewound_partition_is_logged_once_and_the_cluster_is_not_ready_until_a_restart(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The new log grows past the position in the old log and then looks correct. But the records before it are lost."""
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True, was_ready=True)
    for rewound in ({3, 1}, {1}, (), {1, 2}):
        report_rewound("eu", monitor_state, rewound)
    health = monitor_state.view().health
    assert (health.ready, health.was_ready, health.rewound) == (False, True, {1, 2, 3})
    assert [line.split(". The partition was")[0] for line in caplog.messages] == [
        f"eu: partition {partitions} of {OFFSETS_TOPIC} ends before the offset that the monitor has already read"
        for partitions in ("1, 3", "2")
    ]
    assert all("`rebalance-monitor rebuild --cluster eu`" in line for line in caplog.messages), "the complete command"


def test_an_unchanged_log_causes_no_log_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True)
    report_rewound("eu", monitor_state, ())
    LogWatch("eu", monitor_state, Folder(tmp_path)).report_lost({}, {0: 5})
    assert monitor_state.view().health.ready
    assert caplog.messages == []


def test_records_that_retention_deleted_before_they_were_read_are_counted_once(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Samples are more frequent than batches. So several samples see the same loss."""
    caplog.set_level(logging.WARNING)
    watch = LogWatch("eu", MonitorState(), Folder(tmp_path))
    watch.report_lost({0: 20, 4: 5}, {0: 10, 4: 7})
    watch.report_lost({0: 25}, {0: 10})
    watch.report_lost({0: 3}, {0: 99})
    assert [line.split(" were deleted")[0] for line in caplog.messages] == [
        "eu: up to 25 records in partition 0, 4 of __consumer_offsets",
        "eu: up to 3 records in partition 0 of __consumer_offsets",
    ]


def test_records_in_foreign_partitions_are_reported_once_for_each_partition(caplog: pytest.LogCaptureFixture) -> None:
    """The monitor applied foreign records to the groups that they name, and the groups no longer changed.

    No log line reported it.
    """
    caplog.set_level(logging.WARNING)
    foreign_records = ForeignRecords("eu")
    for foreign in ({3: 2, 4: 0}, {3: 7}, {1: 5, 3: 9, 4: 1}):
        foreign_records.report(
            PartitionBatch(number, 0, 9, -1, {}, (), b"", foreign_records=records)
            for number, records in foreign.items()
        )
    assert [line.split(" of groups")[0] for line in caplog.messages] == [
        "eu: partition 3 of __consumer_offsets contains 2 records",
        "eu: partition 1, 4 of __consumer_offsets contains 6 records",
    ]


OLD, NEW = "B3BDgJhtR2mEJtC2VAyvIQ", "Yzm9gVTsQ7GnpBNcXPE4Bw"


def test_a_topic_recreated_while_the_monitor_was_stopped_is_logged_at_each_start_until_a_rebuild(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 3. The offsets alone look correct, because the new topic is longer than the old one was.

    A start without `rebuild` finds the same checkpoint, so it logs the same line.
    """
    LogWatch("eu", MonitorState(), Folder(tmp_path)).report_topic_id(OLD, {0: 70})
    for _ in range(2):
        monitor_state, caplog_before = MonitorState(), len(caplog.messages)
        started = LogWatch("eu", monitor_state, Folder(tmp_path))
        for positions in ({0: 70, 1: 3}, {0: 900, 1: 900}):
            started.report_topic_id(NEW, positions)
        assert monitor_state.view().health.rewound == {0, 1}
        (line,) = caplog.messages[caplog_before:]
        assert line.startswith(f"eu: {OFFSETS_TOPIC} was deleted and recreated: its topic id is {NEW}, and was {OLD}")
        assert "`rebalance-monitor rebuild --cluster eu`" in line


@pytest.mark.parametrize(
    ("ids", "positions", "why"),
    [
        ([OLD, OLD], {0: 70}, "the topic is the same"),
        ([OLD, None, OLD], {0: 70}, "the topic was deleted, and a broker with old metadata answers once more"),
        ([None, None], {0: 70}, "brokers before 2.8 have no topic ids"),
        ([None, OLD, OLD], {0: 70}, "the brokers were upgraded, which gives every topic an id"),
        ([OLD, NEW, NEW], {}, "no record of the first topic was read"),
    ],
)
def test_ids_that_prove_no_recreation_change_nothing(
    ids: list[str | None], positions: dict[int, int], why: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 2: a fact that is unknown about the log does not stop the monitor."""
    monitor_state = MonitorState()
    for topic_id in ids:  # each after a start
        LogWatch("eu", monitor_state, Folder(tmp_path)).report_topic_id(topic_id, positions)
    assert (monitor_state.view().health.rewound, caplog.messages) == (frozenset(), []), why
    assert Folder(tmp_path).read(STORED_ID) == (ids[-1].encode() if ids[-1] else None)


def test_a_log_that_is_reported_as_truncated_is_not_reported_as_recreated(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A batch may detect the incident first, because its offsets went back. One incident is one log line."""
    monitor_state = MonitorState()
    watch = LogWatch("eu", monitor_state, Folder(tmp_path))
    watch.report_topic_id(OLD, {0: 70, 1: 70})
    report_rewound("eu", monitor_state, {0})
    watch.report_topic_id(NEW, {0: 10, 1: 70})
    report_rewound("eu", monitor_state, {0, 1})
    assert (len(caplog.messages), monitor_state.view().health.rewound) == (1, {0, 1})
