"""The combine step against one record after another: fewer statements, the same answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine import combiner as combiner_module
from streaming.combine.combiner import GROUP_KIND, Combiner
from streaming.combine.own_partitions import OwnPartitions
from streaming.combine.partition_state import (
    PartitionBatch,
    PartitionSnapshot,
    commits_table,
    decode_partition_event,
    merge_partition,
)
from streaming.events import GroupMetadataWritten, decode_event
from tests.streaming.combine.plain_model import batch_commits, combined_in_bulk, combined_plainly
from tests.streaming.combine.strategies import logs, pieces
from tests.streaming.log_records import (
    RECORDS_SCHEMA,
    LogRecord,
    commit_key,
    commit_value,
    group_key,
    group_value,
    member_fields,
    record_batch,
)

LARGE_SCHEMA = pa.schema(
    [field.with_type(pa.large_binary()) if field.type == pa.binary() else field for field in RECORDS_SCHEMA]
)


@st.composite
def arrow_batches(draw: Callable[..., Any]) -> tuple[list[LogRecord], list[pa.RecordBatch]]:
    """Draw records and the same records as Arrow batches: cut anywhere, sliced out of longer arrays, 64-bit offsets."""
    records = draw(logs())
    schema = draw(st.sampled_from([RECORDS_SCHEMA, LARGE_SCHEMA]))
    batches = []
    for piece in draw(pieces(records)):
        before, behind = draw(st.integers(0, 3)), draw(st.integers(0, 2))
        padding = LogRecord(b"\x00\x01padding", None, 9, 9)
        padded = record_batch([*[padding] * before, *piece, *[padding] * behind], schema)
        batches.append(padded.slice(before, len(piece)))
    return records, batches


@given(arrow_batches())
def test_the_bulk_way_and_the_plain_way_agree_on_every_log(
    drawn: tuple[list[LogRecord], list[pa.RecordBatch]],
) -> None:
    """Commits, counts by kind, quarantine with reasons, gaps and membership events, for any cut into batches."""
    records, batches = drawn
    assert combined_in_bulk(batches) == combined_plainly(records)


@given(st.data())
def test_reducing_early_changes_nothing(data: st.DataObject) -> None:
    """Memory is bounded by reducing what has gathered; when that happens must not show."""
    records = data.draw(logs())
    batches = [record_batch(piece) for piece in data.draw(pieces(records))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combiner_module, "PENDING_COMMIT_ROWS", 3)
        assert combined_in_bulk(batches) == combined_plainly(records)


def test_what_gathers_is_bounded_by_the_keys_not_by_the_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combiner_module, "PENDING_COMMIT_ROWS", 10)
    combiner = Combiner()
    for first in range(0, 1000, 5):
        combiner.add(record_batch([_commit(offset) for offset in range(first, first + 5)]))
        gathered = [*combiner._pending, combiner._reduced, combiner._runs]
        assert sum(table.num_rows for table in gathered) <= 10 + 1 + 5 + 1


def test_what_gathers_of_a_key_is_bounded_by_the_window_it_is_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every commit a slot of its own: nothing is left out but what no window can hold."""
    monkeypatch.setattr(combiner_module, "PENDING_COMMIT_ROWS", 10)
    combiner, reductions = Combiner(), 0
    for second in range(1000):
        before = len(combiner._pending)
        combiner.add(record_batch([replace(_commit(second), timestamp_ms=second * 1000)]))
        reductions += len(combiner._pending) <= before
        assert sum(table.num_rows for table in (*combiner._pending, combiner._reduced)) <= 2 * 10 + 1
    assert reductions <= 1000 / 10, "rows are not reduced again and again"
    (row,) = combiner.rows()
    commits = commits_table(decode_partition_event(row[2]).commits)
    assert commits["offsets_topic_offset"].to_pylist() == list(range(990, 1000))


def test_a_task_without_records_says_nothing() -> None:
    combiner = Combiner()
    combiner.add(record_batch([]))
    assert list(combiner.rows()) == []


def test_one_key_in_two_kafka_partitions_hides_nothing() -> None:
    """Tasks may read one partition or all: what a partition says must not depend on who reads beside it."""
    records = [_commit(7, offsets_topic_partition=0), _commit(3, offsets_topic_partition=1)]
    together = combined_in_bulk([record_batch(records)]).partition_states
    apart = {
        number: combined_in_bulk([record_batch([record])]).partition_states[number]
        for number, record in enumerate(records)
    }
    assert together == apart


@pytest.mark.parametrize(
    ("spelling", "why"),
    [
        (commit_key("g", legacy=True), "record type 0, as Kafka 0.8 wrote it"),
        (commit_key("g") + b"\x00", "Kafka's reader ignores bytes behind a key"),
        (commit_key("g", legacy=True) + b"tail", "both at once"),
    ],
)
@pytest.mark.parametrize("first", ["respelled", "usual"])
def test_a_tombstone_deletes_the_commit_however_either_key_is_spelled(spelling: bytes, why: str, first: str) -> None:
    keys = [spelling, commit_key("g")] if first == "respelled" else [commit_key("g"), spelling]
    records = [
        LogRecord(keys[0], commit_value(5, 0), offsets_topic_offset=0),
        LogRecord(keys[1], None, offsets_topic_offset=1),
    ]
    for batches in ([record_batch(records)], [record_batch([record]) for record in records]):
        commits = combined_in_bulk(batches).partition_states[0].commits
        assert {key: of_key[-1] for key, of_key in commits.items()} == {commit_key("g"): (1, 0, -1)}, why


@pytest.mark.parametrize("committed_offset", [-1, -2, -(2**63)])
@pytest.mark.parametrize("version", range(5))
def test_a_negative_committed_offset_is_none_at_all(committed_offset: int, version: int) -> None:
    """No broker checks it; OffsetFetch's -1 means "nothing committed". It was read as a commit, and no lag follows."""
    partition_state = combined_in_bulk(
        [record_batch([LogRecord(commit_key("g"), commit_value(committed_offset, version))])]
    ).partition_states[0]
    assert partition_state.commits == {commit_key("g"): [(0, 0, -1)]}
    assert partition_state.records_read == {"offset_commit": 1}


def test_bytes_of_members_that_nobody_can_read_quarantine_their_record_once_and_cost_nothing_else() -> None:
    """Two broken subscriptions: one row of the whole record, which is read, counted and an event all the same."""
    broken = {**_member(), "subscription": b"\xff\xff"}
    records = [
        _commit(0),
        LogRecord(group_key("broken"), group_value(1, [broken, {**broken, "memberId": "n"}]), 0, 1, 5),
        LogRecord(group_key("fine"), group_value(1, [_member()]), 0, 2, 5),
        _commit(3),
    ]
    combined = combined_in_bulk([record_batch(records)])
    event = combined.events[0][1]
    assert isinstance(event, GroupMetadataWritten)
    assert [member.subscription for member in event.metadata.members] == [None, None]
    assert [group for group, _ in combined.events] == ["broken", "fine"]
    assert combined.partition_states[0].decode_failures == [
        (records[1], "unknown_embedded_version", "value.members[0].subscription.version")
    ]
    assert combined.partition_states[0].records_read == {"offset_commit": 2, "group_metadata": 2}
    assert combined.partition_states[0].last_missing_offset == -1, "its generation was read: it leaves no hole"


def _commit(offsets_topic_offset: int, offsets_topic_partition: int = 0) -> LogRecord:
    return LogRecord(
        commit_key("g"), commit_value(offsets_topic_offset), offsets_topic_partition, offsets_topic_offset, 5
    )


def _member() -> dict[str, Any]:
    return member_fields("m")


FIFTY = OwnPartitions((50,))
OWN, FOREIGN = 12, 13
"""The partition of my-group, and a different one."""


def commits_and_events(records: Sequence[LogRecord]) -> tuple[dict[int, PartitionBatch], list[tuple[str, int]]]:
    """Return what each partition tells, and the groups that got an event, with its offset."""
    combiner = Combiner(FIFTY)
    combiner.add(record_batch(records))
    partition_states, events = {}, []
    for partition_state, state_key, payload in combiner.rows():
        if partition_state == GROUP_KIND:
            events.append((state_key, decode_event(payload).position.offsets_topic_offset))  # type: ignore[union-attr]
        else:
            partition_states[int(state_key)] = decode_partition_event(payload)
    return partition_states, events  # type: ignore[return-value]


def test_records_in_a_partition_that_is_not_their_groups_are_counted_and_tell_nothing() -> None:
    """Anyone with the right to write can copy a real group's record there. Its offset then froze the group.

    Nine of the group's next ten records had offsets below it, were taken for read, and got no row.
    """
    key, value = group_key("my-group"), group_value(7, [member_fields("m", held={"orders": [0]})])
    own = [LogRecord(key, value, OWN, 5), LogRecord(commit_key("my-group"), commit_value(3), OWN, 6)]
    foreign = [
        LogRecord(key, value, FOREIGN, 900),
        LogRecord(key, None, FOREIGN, 901),
        LogRecord(commit_key("my-group"), commit_value(9), FOREIGN, 902),
        LogRecord(commit_key("my-group", legacy=True), None, FOREIGN, 903),
    ]
    partition_states, events = commits_and_events([*own, *foreign])
    assert events == [("my-group", 5)]
    assert {number: partition_state.foreign_records for number, partition_state in partition_states.items()} == {
        OWN: 0,
        FOREIGN: 4,
    }
    assert batch_commits(partition_states[OWN].commits) == {commit_key("my-group"): [(6, 0, 3)]}
    assert (
        partition_states[FOREIGN].commits,
        partition_states[FOREIGN].boundaries,
        partition_states[FOREIGN].runs,
    ) == (b"", (), b"")
    assert (partition_states[FOREIGN].last_offset, partition_states[FOREIGN].last_missing_offset) == (903, -1), (
        "they are read, not missing"
    )
    partition_state = merge_partition(PartitionSnapshot(FOREIGN), partition_states[FOREIGN])
    assert partition_state.records_skipped == {"foreign_partition": 4}


def test_a_record_beyond_reading_is_counted_once_and_takes_nothing_from_a_group_that_lives_elsewhere() -> None:
    """It goes to quarantine for what is wrong with it. The group stays what its own partition says."""
    broken = LogRecord(group_key("my-group"), b"\x00\x63", FOREIGN, 900)
    partition_states, events = commits_and_events([broken])
    assert events == []
    partition_state = merge_partition(PartitionSnapshot(FOREIGN), partition_states[FOREIGN])
    assert partition_state.records_skipped == {"unknown_value_version": 1}
