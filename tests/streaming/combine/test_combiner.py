"""Tests that the combine step returns the same result as reading one record after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine import combiner as combiner_module
from streaming.combine.batch import RecordsBatch
from streaming.combine.combiner import GROUP_KIND, Combiner
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.own_partitions import OwnPartitions
from streaming.combine.partition_state import (
    PartitionBatch,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
    table_of,
)
from streaming.events import GroupMetadataWritten, decode_event
from tests.streaming.combine.plain_model import batch_commits, combine_in_bulk, combine_one_by_one
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
    """Draw records, and the same records as Arrow batches. Batches can be slices and can use 64-bit offsets."""
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
def test_combining_in_bulk_and_one_by_one_give_the_same_result(
    drawn: tuple[list[LogRecord], list[pa.RecordBatch]],
) -> None:
    """Commits, counts, quarantine reasons, gaps and membership events are equal for every split into batches."""
    records, batches = drawn
    assert combine_in_bulk(batches) == combine_one_by_one(records)


@pytest.mark.parametrize("other_records", [0, 1])
def test_waiting_commits_do_not_keep_the_batch_of_spark_in_memory(other_records: int) -> None:
    """A million commits can wait for their reduction. Each value can have 4 kB of metadata, and must not wait."""
    commits = [LogRecord(commit_key("g", partition=at), commit_value(at), 0, at) for at in range(3)]
    batch = record_batch([*commits, *[LogRecord(group_key("g"), None, 0, 3)] * other_records])
    waiting = RecordsBatch(batch).commits()
    assert waiting.num_rows == len(commits)
    kept = {
        buffer.address for column in waiting.columns for chunk in column.chunks for buffer in chunk.buffers() if buffer
    }
    assert not kept & {buffer.address for column in batch.columns for buffer in column.buffers() if buffer}


@given(st.data())
def test_reducing_early_changes_nothing(data: st.DataObject) -> None:
    """The combiner reduces pending rows to limit memory. The time of the reduction must not change the result."""
    records = data.draw(logs())
    batches = [record_batch(piece) for piece in data.draw(pieces(records))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combiner_module, "PENDING_COMMIT_ROWS", 3)
        assert combine_in_bulk(batches) == combine_one_by_one(records)


def test_pending_rows_are_bounded_by_the_number_of_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combiner_module, "PENDING_COMMIT_ROWS", 10)
    combiner = Combiner()
    for first in range(0, 1000, 5):
        combiner.add(record_batch([_commit(offset) for offset in range(first, first + 5)]))
        gathered = [*combiner._pending, combiner._reduced, combiner._runs]
        assert sum(table.num_rows for table in gathered) <= 10 + 1 + 5 + 1


def test_pending_rows_of_a_key_are_bounded_by_the_window_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each commit is in its own slot. Only commits that no window can keep are dropped."""
    monkeypatch.setattr(combiner_module, "PENDING_COMMIT_ROWS", 10)
    combiner, reductions = Combiner(), 0
    for second in range(1000):
        before = len(combiner._pending)
        combiner.add(record_batch([replace(_commit(second), timestamp_ms=second * 1000)]))
        reductions += len(combiner._pending) <= before
        assert sum(table.num_rows for table in (*combiner._pending, combiner._reduced)) <= 2 * 10 + 1
    assert reductions <= 1000 / 10, "rows are not reduced repeatedly"
    (row,) = combiner.rows()
    commits = table_of(decode_partition_event(row[2]).commits, COMMIT_SCHEMA)
    assert commits["offsets_topic_offset"].to_pylist() == list(range(990, 1000))


def test_a_task_without_records_returns_no_rows() -> None:
    combiner = Combiner()
    combiner.add(record_batch([]))
    assert list(combiner.rows()) == []


def test_the_same_key_in_two_partitions_of_consumer_offsets_is_kept_for_both() -> None:
    """A task can read one partition or all.

    The result for a partition does not depend on other partitions in the task.
    """
    records = [_commit(7, offsets_topic_partition=0), _commit(3, offsets_topic_partition=1)]
    together = combine_in_bulk([record_batch(records)]).partition_states
    apart = {
        number: combine_in_bulk([record_batch([record])]).partition_states[number]
        for number, record in enumerate(records)
    }
    assert together == apart


@pytest.mark.parametrize(
    ("spelling", "why"),
    [
        (commit_key("g", legacy=True), "record type 0, as Kafka 0.8 wrote it"),
        (commit_key("g") + b"\x00", "Kafka's reader ignores bytes after a key"),
        (commit_key("g", legacy=True) + b"tail", "a legacy key with extra bytes"),
    ],
)
@pytest.mark.parametrize("first", ["respelled", "usual"])
def test_a_tombstone_deletes_the_commit_for_each_encoding_of_the_keys(spelling: bytes, why: str, first: str) -> None:
    keys = [spelling, commit_key("g")] if first == "respelled" else [commit_key("g"), spelling]
    records = [
        LogRecord(keys[0], commit_value(5, 0), offsets_topic_offset=0),
        LogRecord(keys[1], None, offsets_topic_offset=1),
    ]
    for batches in ([record_batch(records)], [record_batch([record]) for record in records]):
        commits = combine_in_bulk(batches).partition_states[0].commits
        assert {key: of_key[-1] for key, of_key in commits.items()} == {commit_key("g"): (1, 0, -1)}, why


@pytest.mark.parametrize("committed_offset", [-1, -2, -(2**63)])
@pytest.mark.parametrize("version", range(5))
def test_a_negative_committed_offset_means_no_commit(committed_offset: int, version: int) -> None:
    """No broker checks it, and -1 in OffsetFetch means "nothing committed".

    Before, it was read as a commit without lag.
    """
    partition_state = combine_in_bulk(
        [record_batch([LogRecord(commit_key("g"), commit_value(committed_offset, version))])]
    ).partition_states[0]
    assert partition_state.commits == {commit_key("g"): [(0, 0, -1)]}
    assert partition_state.records_read == {"offset_commit": 1}


def test_undecodable_member_bytes_quarantine_the_record_once_and_lose_nothing_else() -> None:
    """A record with two broken subscriptions gives one quarantine row. The record still counts, and it has an event."""
    broken = {**_member(), "subscription": b"\xff\xff"}
    records = [
        _commit(0),
        LogRecord(group_key("broken"), group_value(1, [broken, {**broken, "memberId": "n"}]), 0, 1, 5),
        LogRecord(group_key("fine"), group_value(1, [_member()]), 0, 2, 5),
        _commit(3),
    ]
    combined = combine_in_bulk([record_batch(records)])
    event = combined.events[0][1]
    assert isinstance(event, GroupMetadataWritten)
    assert [member.subscription for member in event.metadata.members] == [None, None]
    assert [group for group, _ in combined.events] == ["broken", "fine"]
    assert combined.partition_states[0].decode_failures == [
        (records[1], "unknown_embedded_version", "value.members[0].subscription.version")
    ]
    assert combined.partition_states[0].records_read == {"offset_commit": 2, "group_metadata": 2}
    assert combined.partition_states[0].last_missing_offset == -1, (
        "the generation was read, so its offset does not count as missing"
    )


def _commit(offsets_topic_offset: int, offsets_topic_partition: int = 0) -> LogRecord:
    return LogRecord(
        commit_key("g"), commit_value(offsets_topic_offset), offsets_topic_partition, offsets_topic_offset, 5
    )


def _member() -> dict[str, Any]:
    return member_fields("m")


FIFTY = OwnPartitions((50,))
OWN, FOREIGN = 12, 13
"""The partition of `my-group`, and a partition of other groups."""


def commits_and_events(records: Sequence[LogRecord]) -> tuple[dict[int, PartitionBatch], list[tuple[str, int]]]:
    """Return the batch of each partition, and the groups that got an event with its offset."""
    combiner = Combiner(FIFTY)
    combiner.add(record_batch(records))
    partition_batches, events = {}, []
    for kind, state_key, payload in combiner.rows():
        if kind == GROUP_KIND:
            events.append((state_key, decode_event(payload).position.offsets_topic_offset))  # type: ignore[union-attr]
        else:
            partition_batches[int(state_key)] = decode_partition_event(payload)
    return partition_batches, events  # type: ignore[return-value]


def test_records_outside_the_partition_of_their_group_are_counted_and_ignored() -> None:
    """Anyone with write permission can copy a real group's record to a different partition.

    Before, its offset became the group's position. The group's next nine records had lower offsets and got no row.
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
        "the records are read, so they do not count as missing"
    )
    partition_state = advance_partition(PartitionSnapshot(FOREIGN), partition_states[FOREIGN])[0]
    assert partition_state.records_skipped == {"foreign_partition": 4}


def test_an_undecodable_record_in_a_foreign_partition_is_counted_once_and_does_not_affect_its_group() -> None:
    """The record is quarantined with its decode failure. The group keeps the state from its own partition."""
    broken = LogRecord(group_key("my-group"), b"\x00\x63", FOREIGN, 900)
    partition_states, events = commits_and_events([broken])
    assert events == []
    partition_state = advance_partition(PartitionSnapshot(FOREIGN), partition_states[FOREIGN])[0]
    assert partition_state.records_skipped == {"unknown_value_version": 1}
