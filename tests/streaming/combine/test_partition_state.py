"""Tests that the state of a `__consumer_offsets` partition does not depend on the split into batches."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.combiner import GROUP_KIND, Combiner
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.partition_state import (
    PARTITION_CODEC,
    DecodeFailure,
    PartitionBatch,
    PartitionSnapshot,
    advance_partition,
    commits_bytes,
    decode_partition_event,
    encode_partition_event,
    table_of,
)
from tests.streaming.combine.plain_model import combine_one_by_one, known_commits, merged_partitions
from tests.streaming.combine.strategies import logs, pieces
from tests.streaming.log_records import LogRecord, commit_key, commit_value, record_batch


def batches_of(records: list[LogRecord]) -> list[PartitionBatch]:
    """Return the batch of each partition for one micro-batch."""
    combiner = Combiner()
    combiner.add(record_batch(records))
    return [decode_partition_event(payload) for kind, _, payload in combiner.rows() if kind != GROUP_KIND]


def _commit(offsets_topic_offset: int, group: str = "g", committed: int | None = 1) -> LogRecord:
    value = None if committed is None else commit_value(committed)
    return LogRecord(commit_key(group), value, 0, offsets_topic_offset, offsets_topic_offset)


def _merged(snapshot: PartitionSnapshot, records: list[LogRecord]) -> PartitionSnapshot:
    (batch,) = batches_of(records)
    return advance_partition(snapshot, batch)[0]


@given(st.data())
def test_one_micro_batch_or_twenty_give_the_same_partition_states(data: st.DataObject) -> None:
    records = data.draw(logs())
    chunked = [[record_batch(piece)] for piece in data.draw(pieces(records, max_cuts=20))]
    assert merged_partitions(chunked) == merged_partitions([[record_batch(records)]])


@given(st.data())
def test_a_replayed_batch_changes_nothing(data: st.DataObject) -> None:
    """Spark runs a batch again after a crash. Counts and commits must not change."""
    records = data.draw(logs())
    batches = [[record_batch(piece)] for piece in data.draw(pieces(records)) if piece]
    again = data.draw(st.integers(0, max(0, len(batches) - 1)))
    replayed = [*batches[: again + 1], *batches[again : again + 1], *batches[again + 1 :]]
    assert merged_partitions(replayed) == merged_partitions(batches)


@given(logs())
def test_a_partition_state_has_the_live_commits_and_the_absolute_counts(records: list[LogRecord]) -> None:
    plain = combine_one_by_one(records).partition_states
    partition_states = merged_partitions([[record_batch(records)]])
    assert partition_states.keys() == plain.keys()
    for offsets_topic_partition, (partition_state, commits) in partition_states.items():
        expected = plain[offsets_topic_partition]
        last_commits = {key: of_key[-1] for key, of_key in expected.commits.items()}
        assert commits == {key: commit for key, commit in last_commits.items() if commit[2] >= 0}
        assert partition_state.records_read == dict(sorted(expected.records_read.items()))
        assert sum(partition_state.records_skipped.values()) == len(expected.decode_failures)


@pytest.mark.parametrize(
    ("offsets", "last_missing", "why"),
    [
        ([0, 1, 2], -1, "no offset is missing"),
        ([5, 6], 4, "the first records were compacted or deleted by retention"),
        ([0, 2, 3], 1, "one offset is missing inside a batch (aborted, compacted, or a transaction marker)"),
        ([0, 1, 9], 8, "the highest missing offset counts"),
    ],
)
@pytest.mark.parametrize("one_batch", [True, False])
def test_missing_offsets_are_seen_within_batches_and_between_them(
    offsets: list[int], last_missing: int, why: str, one_batch: bool
) -> None:
    partition_state = PartitionSnapshot(0)
    for piece in [offsets] if one_batch else [[offset] for offset in offsets]:
        partition_state = _merged(partition_state, [_commit(offset) for offset in piece])
    assert partition_state.last_missing_offset == last_missing, why


def test_a_quarantined_record_counts_as_a_missing_offset() -> None:
    """The generation of an undecodable record was synced. It must not be taken for a failed generation."""
    partition_state = _merged(PartitionSnapshot(0), [_commit(0), LogRecord(b"\x00", b"", 0, 1, 1), _commit(2)])
    assert partition_state.last_missing_offset == 1
    assert partition_state.records_skipped == {"truncated": 1}


def test_a_tombstone_in_a_later_batch_deletes_and_one_for_an_unknown_key_does_nothing() -> None:
    partition_state = _merged(PartitionSnapshot(0), [_commit(0, "a"), _commit(1, "b"), _commit(2, "never seen", None)])
    partition_state = _merged(partition_state, [_commit(3, "a", None)])
    assert known_commits(partition_state.commits).keys() == {commit_key("b")}
    partition_state = _merged(partition_state, [_commit(4, "b", None)])
    assert partition_state.commits == b""


def test_commits_survive_their_encoding_and_no_commits_take_no_bytes() -> None:
    (batch,) = batches_of([_commit(0), _commit(1, "h", None)])
    assert commits_bytes(table_of(batch.commits, COMMIT_SCHEMA)) == batch.commits
    assert table_of(b"", COMMIT_SCHEMA).schema == COMMIT_SCHEMA
    assert commits_bytes(COMMIT_SCHEMA.empty_table()) == b""


@given(logs())
def test_partition_states_and_batches_survive_their_encoding(records: list[LogRecord]) -> None:
    for batch in batches_of(records):
        assert decode_partition_event(encode_partition_event(batch)) == batch
        partition_state = advance_partition(PartitionSnapshot(batch.offsets_topic_partition), batch)[0]
        assert PARTITION_CODEC.decode(*PARTITION_CODEC.encode(partition_state)) == partition_state


def test_a_quarantined_record_keeps_every_byte() -> None:
    key, value = bytes(range(256)), bytes(300)
    (batch,) = batches_of([LogRecord(key, value, 0, 3, 9)])
    assert batch.decode_failures == (DecodeFailure(0, 3, 9, key, value, "truncated", "key.group", 256, 300),)
