"""Tests of the committed offsets, compared with a dictionary that applies one commit after the other."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE
from streaming.combine.own_partitions import OwnPartitions
from streaming.state.committed_offsets import CommittedOffsets
from tests.streaming.log_records import commit_key

Commit = tuple[bytes, int, int]
"""Key, log offset and committed offset. The timestamp equals the log offset."""
Name = tuple[str, str, int]


def table(commits: Iterable[Commit]) -> pa.Table:
    """Return commits as a table in the form of the partition state."""
    rows = [
        {
            "offsets_topic_partition": 0,
            "key": key,
            "offsets_topic_offset": at,
            "timestamp_ms": at,
            "committed_offset": committed,
        }
        for key, at, committed in commits
    ]
    return pa.Table.from_pylist(rows, schema=COMMIT_SCHEMA)


def commits_by_name(known: CommittedOffsets) -> dict[Name, tuple[int, int]]:
    """Return (committed offset, timestamp) by name. Fail if a name appears twice."""
    rows = known.view().commits.to_pylist()
    by_name = {
        (row["group_id"], row["topic"], row["partition"]): (row["committed_offset"], row["commit_timestamp_ms"])
        for row in rows
    }
    assert len(by_name) == len(rows), "two series with the same labels would break the scrape"
    return by_name


def _key(group: int) -> bytes:
    return commit_key(f"group-{group}")


BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 50)), max_size=8), max_size=8)


@given(BATCHES, st.data())
def test_the_view_has_the_last_commit_of_every_live_key(
    batches: list[list[tuple[int, int]]], data: st.DataObject
) -> None:
    known, expected, at = CommittedOffsets(), dict[Name, tuple[int, int]](), 0
    for batch in batches:
        reduced = {}
        for group, committed in batch:
            at += 1
            reduced[group] = (_key(group), at, committed)
            expected[f"group-{group}", "orders", 0] = (committed, at)
        known.apply(table(reduced.values()))
        if data.draw(st.booleans()):
            known.apply(table(reduced.values()))
    assert commits_by_name(known) == {name: commit for name, commit in expected.items() if commit[0] != TOMBSTONE}


def test_a_commit_that_is_older_than_the_known_one_changes_nothing() -> None:
    """Rule: nothing twice. A batch may run again after later batches were restored from state."""
    known = CommittedOffsets()
    known.apply(table([(_key(1), 10, 100)]))
    known.apply(table([(_key(1), 10, 100)]))
    known.apply(table([(_key(1), 9, 5), (_key(2), 11, 7)]))
    assert commits_by_name(known) == {("group-1", "orders", 0): (100, 10), ("group-2", "orders", 0): (7, 11)}


OLD_PARTITION, NEW_PARTITION = 12, 42
"""The `__consumer_offsets` partition of my-group with 50 partitions, and with 60."""


def at_partition(offsets_topic_partition: int, *commits: Commit) -> pa.Table:
    """Return commits that are in one partition of `__consumer_offsets`."""
    partition_column = pa.array([offsets_topic_partition] * len(commits), pa.int32())
    return table(commits).set_column(0, "offsets_topic_partition", partition_column)


def test_a_commit_in_the_new_partition_counts_although_its_offset_is_lower() -> None:
    """After the partition count changed, the group's commits are in a different, shorter partition.

    Later tombstones and records of the old partition no longer belong to the group.
    """
    mine = commit_key("my-group")
    earlier = at_partition(OLD_PARTITION, (mine, 900, 70), (mine, 1900, 71))
    home = at_partition(NEW_PARTITION, (mine, 5, 1))
    expired = at_partition(OLD_PARTITION, (mine, 2900, TOMBSTONE))
    for order in ([earlier, home, expired], [home, earlier, expired], [earlier, expired, home]):
        known = CommittedOffsets()
        known.use_partitions(OwnPartitions((50, 60)))
        for commits in order:
            known.apply(commits)
        assert commits_by_name(known) == {("my-group", "orders", 0): (1, 5)}
        assert known.commits_of_groups(["my-group"]).select(
            ["offsets_topic_offset", "offsets_topic_partition"]
        ).to_pylist() == [{"offsets_topic_offset": 5, "offsets_topic_partition": NEW_PARTITION}]
        view = known.view()
        windows = known.observe(view, np.array([1]), np.array([9]), np.array([True]))
        assert windows is not None
        assert windows.committed_offset[windows.is_entry].tolist() == [1], "its window starts again"


def test_a_key_stays_in_its_partition_until_a_commit_is_in_the_new_partition() -> None:
    """The partition count changes while the monitor runs. Brokers use the new count after their restart."""
    mine, known = commit_key("my-group"), CommittedOffsets()
    known.use_partitions(OwnPartitions((50,)))
    known.apply(at_partition(OLD_PARTITION, (mine, 900, 70)))
    known.apply(at_partition(NEW_PARTITION, (mine, 950, 1)))
    assert commits_by_name(known) == {("my-group", "orders", 0): (70, 900)}, (
        "with the known count, this is not the group's partition"
    )
    known.use_partitions(OwnPartitions((50, 60)))
    known.apply(at_partition(OLD_PARTITION, (mine, 901, 71)))
    assert commits_by_name(known) == {("my-group", "orders", 0): (71, 901)}
    known.apply(at_partition(NEW_PARTITION, (mine, 5, 1)))
    assert commits_by_name(known) == {("my-group", "orders", 0): (1, 5)}


def test_an_empty_batch_without_known_commits_is_valid() -> None:
    known = CommittedOffsets()
    known.apply(table([]))
    assert commits_by_name(known) == {}
    assert known.view().commits.num_rows == 0


def test_a_deleted_key_leaves_the_view_and_returns_with_its_next_commit() -> None:
    known = CommittedOffsets()
    known.apply(table([(_key(1), 1, 5)]))
    known.apply(table([(_key(1), 2, TOMBSTONE)]))
    assert commits_by_name(known) == {}
    known.apply(table([(_key(1), 3, 6)]))
    assert commits_by_name(known) == {("group-1", "orders", 0): (6, 3)}


def test_the_committed_offsets_grow_beyond_their_initial_size() -> None:
    known = CommittedOffsets()
    known.apply(table((_key(group), group, group) for group in range(5_000)))
    known.apply(table((_key(group), 5_000 + group, group + 1) for group in range(5_000)))
    assert commits_by_name(known) == {
        (f"group-{group}", "orders", 0): (group + 1, 5_000 + group) for group in range(5_000)
    }


def test_a_view_does_not_change_when_commits_arrive() -> None:
    """Lag was once computed from numbers that changed meanwhile, because Arrow shares NumPy's memory by default."""
    known = CommittedOffsets()
    known.apply(table([(_key(1), 1, 5)]))
    before = known.view().commits
    known.apply(table([(_key(1), 2, 999)]))
    assert before["committed_offset"].to_pylist() == [5]
    assert before["commit_timestamp_ms"].to_pylist() == [1]


def test_short_lived_keys_do_not_fill_the_memory() -> None:
    """Rule: bounded. A new `console-consumer-12345` may appear every minute, and exists for a minute, for years."""
    known = CommittedOffsets()
    known.apply(table([(commit_key("steady"), 0, 1)]))
    at = 1
    for generation in range(60):
        keys = [commit_key(f"console-consumer-{generation}-{number}") for number in range(200)]
        known.apply(table((key, at + number, 5) for number, key in enumerate(keys)))
        known.apply(table((key, at + 200 + number, TOMBSTONE) for number, key in enumerate(keys)))
        at += 400
    assert commits_by_name(known) == {("steady", "orders", 0): (1, 0)}
    assert len(known._rows) == len(known._group_ids) <= 2_000
    assert known._numbers.shape[1] <= 4_096


def test_live_keys_keep_their_commits_when_deleted_keys_are_removed() -> None:
    known = CommittedOffsets()
    known.apply(table((_key(group), group, group) for group in range(3_000)))
    known.apply(table((_key(group), 3_000 + group, TOMBSTONE) for group in range(3_000) if group % 5))
    known.apply(table((_key(group), 10_000 + group, 1) for group in range(3_000, 4_000)))
    expected = {(f"group-{group}", "orders", 0): (group, group) for group in range(0, 3_000, 5)}
    expected |= {(f"group-{group}", "orders", 0): (1, 10_000 + group) for group in range(3_000, 4_000)}
    assert commits_by_name(known) == expected
    known.apply(table([(_key(5), 20_000, 77)]))
    assert commits_by_name(known)["group-5", "orders", 0] == (77, 20_000)


def test_names_that_decode_to_the_same_text_are_one_name() -> None:
    """As in Java, bytes that are not UTF-8 decode to U+FFFD. So the coordinator has one key for all of them."""
    keys_of_name = [b"\x00\x01\x00\x01" + raw + b"\x00\x01t\x00\x00\x00\x03" for raw in (b"\xff", b"\xfe", b"\x80")]
    known = CommittedOffsets()
    for at, key in enumerate(keys_of_name):
        known.apply(table([(key, at, at)]))
    assert commits_by_name(known) == {("\ufffd", "t", 3): (2, 2)}
    known.apply(table([(keys_of_name[0], 9, TOMBSTONE)]))
    assert commits_by_name(known) == {}


class RowRenumberingLock:
    """A lock. Before the lock is acquired, another thread gives the rows new numbers."""

    def __init__(self) -> None:
        self.renumber: Callable[[], object] = int

    def __enter__(self) -> None:
        """Renumber the rows."""
        self.renumber()

    def __exit__(self, *_: object) -> None:
        """Release the lock."""


def test_invalid_names_are_omitted_although_rows_get_new_numbers_at_the_same_moment() -> None:
    """The row numbers of invalid names were read before the lock. So a request contained an invalid name."""
    lock = RowRenumberingLock()
    known = CommittedOffsets(_lock=lock)  # type: ignore[arg-type]
    deleted, invalid = [_key(group) for group in range(3)], b"\x00\x01\x00\x01g\x00\x01\xff\x00\x00\x00\x03"
    known.apply(table([*((key, 0, 1) for key in deleted), (invalid, 1, 1), (commit_key("g"), 2, 1)]))
    known.apply(table((key, 3, TOMBSTONE) for key in deleted))
    lock.renumber = known._drop_deleted_rows
    assert known.commits_of_groups(["g"])["topic"].to_pylist() == ["orders"]


def test_views_are_consistent_while_another_thread_writes() -> None:
    """The offset and the time in a row must belong to the same commit, whenever the sampler reads them."""
    known, stop = CommittedOffsets(), threading.Event()

    def write() -> None:
        at = 0
        while not stop.is_set():
            at += 1
            known.apply(table((_key(group), at, at) for group in range(20)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert all(committed == time for committed, time in commits_by_name(known).values())
    finally:
        stop.set()
        writer.join()


# Commit windows. CommittedOffsets numbers their rows, so the windows must move with the rows.


def committed_offsets(known: CommittedOffsets, ends: int = 1_000) -> dict[str, list[int]]:
    """Return the committed offsets of each group's window, oldest first."""
    view = known.view()
    count = view.commits.num_rows
    committed = view.commits["committed_offset"].to_numpy()
    windows = known.observe(view, committed, np.full(count, ends), np.ones(count, dtype=np.bool_))
    assert windows is not None
    return {
        group_id: windows.committed_offset[row][windows.is_entry[row]].tolist()
        for row, group_id in enumerate(view.commits["group_id"].to_pylist())
    }


def seconds(commits: Iterable[tuple[int, int, int]]) -> pa.Table:
    """Return commits of (group, log offset, committed offset), with one second between log offsets."""
    rows = table((_key(group), at, committed) for group, at, committed in commits)
    return rows.set_column(3, "timestamp_ms", pc.multiply(rows["offsets_topic_offset"], 1_000))


def test_a_window_has_every_commit_of_a_batch_and_the_view_only_the_last() -> None:
    known = CommittedOffsets()
    known.apply(seconds([(1, 1, 10), (2, 2, 5), (1, 3, 30)]))
    assert committed_offsets(known) == {"group-1": [10, 30], "group-2": [5]}
    assert commits_by_name(known)["group-1", "orders", 0] == (30, 3_000)


def test_a_deleted_or_forgotten_commit_ends_its_window() -> None:
    known = CommittedOffsets()
    known.apply(seconds([(1, 1, 10), (2, 2, 5)]))
    known.forget([_key(2)], [2])
    known.apply(seconds([(1, 3, TOMBSTONE), (1, 4, 7), (2, 5, 6)]))
    assert committed_offsets(known) == {"group-1": [7], "group-2": [6]}


def test_windows_follow_their_rows_after_a_cleanup_and_an_older_view_has_no_windows() -> None:
    """With a window of a different group's commits, the verdict would be about the wrong group."""
    known = CommittedOffsets()
    known.apply(seconds([(group, group, 10 + group) for group in range(1_000)]))
    known.apply(seconds([(group, 2_000 + group, TOMBSTONE) for group in range(999)]))
    known.apply(seconds([(group, 3_000 + group, 20) for group in range(1_000, 1_100)]))
    old = known.view()
    known.apply(seconds([(999, 9_000, 2_000)]))
    is_known = np.ones(old.commits.num_rows, dtype=np.bool_)
    committed = old.commits["committed_offset"].to_numpy()
    assert known.observe(old, committed, np.full(old.commits.num_rows, 9_999), is_known) is None
    windows = committed_offsets(known, 9_999)
    assert len(windows) == 101
    assert windows["group-999"] == [1_009, 2_000]
    assert windows["group-1050"] == [20]


def test_windows_survive_a_restart_for_keys_that_are_still_known() -> None:
    """The partition state has only the last commit. Without stored windows, a restart would need ten commits."""
    known = CommittedOffsets()
    known.apply(seconds([(1, 1, 10), (2, 2, 5), (1, 3, 30)]))
    version, stored = known.stored_windows()
    restarted = CommittedOffsets()
    restarted.apply(seconds([(1, 4, 40)]))
    restarted.restore_windows(version, stored)
    assert committed_offsets(restarted) == {"group-1": [10, 30, 40]}
    restarted.restore_windows(*CommittedOffsets().stored_windows())


def test_the_name_of_a_group_or_topic_exists_once_in_memory() -> None:
    """Each key had its own copies. For 500,000 partitions of groups, the copies took 55 MB."""
    known = CommittedOffsets()
    known.apply(table([(commit_key("group", "topic", partition), partition, 0) for partition in range(3)]))
    for names in (known._group_ids, known._topics):
        assert len(names) == 3
        assert len({id(name) for name in names}) == 1
