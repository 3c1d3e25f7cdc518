"""Check that the monitor's tables and metrics have each fact of the log exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from msgspec.structs import asdict

from streaming.combine.gaps import CommitGap
from streaming.combine.partition_state import STUCK_AFTER_SECONDS
from streaming.delta.cells import utc
from streaming.protocol import RecordType
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, Samples
from tests.streaming.combine.gap_model import compute_gaps
from tests.streaming.log_records import LogRecord

EPOCHS = {
    RecordType.GROUP_METADATA,
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.SHARE_GROUP_METADATA,
    RecordType.STREAMS_GROUP_METADATA,
}
COMMITS = {RecordType.OFFSET_COMMIT, RecordType.OFFSET_COMMIT_LEGACY}

DURABLE_FAMILIES = (
    "rebalance_monitor_group_members",
    "rebalance_monitor_group_generation",
    "rebalance_monitor_group_lag",
    "rebalance_monitor_rebalances_total",
    "rebalance_monitor_rebalances_failed_total",
    "rebalance_monitor_empty_transitions_total",
    "rebalance_monitor_commit_gap_seconds_count",
    "rebalance_monitor_commit_gap_seconds_sum",
    "rebalance_monitor_drift_partitions",
    "rebalance_monitor_member_partitions_max",
    "rebalance_monitor_idle_members",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_lag",
)

_GAP_COLUMNS = (
    *(name for name in CommitGap.__struct_fields__ if name not in {"position", "last_commit_ms"}),
    "last_commit_time",
)

Gaps = dict[tuple[int, int], dict[str, Any]]
"""The columns of commit gaps, by the position of the boundary."""


def durable_metrics(scraped: Samples) -> Samples:
    """Return the metrics that must be the same after a restart. Metrics of the monitor itself are not included."""
    return {family: scraped.get(family, {}) for family in DURABLE_FAMILIES}


def check_tables_against_log(monitor: MonitorProcess, kafka_reference: KafkaReference) -> None:
    """Check that each generation and epoch of the log has one row, and that no table has a duplicate row."""
    positions = Counter(
        (row["offsets_topic_partition"], row["offsets_topic_offset"])
        for row in monitor.rows("group_generations")
        if row["state"] != "Gone"  # at the position of the group's last record, which has a row
    )
    assert max(positions.values()) == 1
    assert kafka_reference.positions(EPOCHS) <= positions.keys()
    assert positions.keys() <= kafka_reference.positions(set(RecordType) - COMMITS)
    for table, further_columns in (
        ("assignment_drift", ("strategy",)),
        ("assignment_imbalance", ("sampled_time", "measure", "scope", "topic")),
        ("what_if", ("change", "strategy")),
    ):
        key_columns = ("offsets_topic_partition", "offsets_topic_offset", *further_columns)
        keys = Counter(tuple(row[name] for name in key_columns) for row in monitor.rows(table))
        assert keys
        assert max(keys.values()) == 1, table
    gaps = Counter((row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in monitor.rows("commit_gaps"))
    assert max(gaps.values()) == 1
    assert gaps.keys() <= {
        (row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in monitor.rows("rebalances")
    }
    samples = Counter(
        (row["group_id"], row["topic"], row["partition"], row["sampled_time"]) for row in monitor.rows("group_lag")
    )
    assert max(samples.values()) == 1


def gaps_of_log(kafka_reference: KafkaReference, group_ids: Collection[str]) -> Gaps:
    """Return the closed commit gaps of these groups after a plain reading of the log, independent of batches."""
    records = [
        LogRecord(record.key, record.value, record.partition, record.offset, record.timestamp_ms)
        for record in kafka_reference.records()
    ]
    gaps: Gaps = {}
    for closed in compute_gaps(records, STUCK_AFTER_SECONDS):
        if closed.group_id in group_ids:
            gap = asdict(closed)
            position, last_commit_ms = gap.pop("position"), gap.pop("last_commit_ms")
            gap["last_commit_time"] = None if last_commit_ms is None else utc(last_commit_ms)
            gaps[position.offsets_topic_partition, position.offsets_topic_offset] = gap
    return gaps


def gap_rows(monitor: MonitorProcess, group_ids: Collection[str]) -> Gaps:
    """Return the rows of these groups in the table `commit_gaps`. Fail if a gap has two rows.

    A column that the table does not have is None.
    """
    rows = [row for row in monitor.rows("commit_gaps") if row["group_id"] in group_ids]
    gaps: Gaps = {}
    for row in rows:
        position = row["offsets_topic_partition"], row["offsets_topic_offset"]
        assert position not in gaps, f"two rows of the gap at {position}"
        gaps[position] = {name: row.get(name) for name in _GAP_COLUMNS}
    return gaps
