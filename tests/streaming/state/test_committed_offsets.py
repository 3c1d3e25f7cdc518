"""The book of last commits against a dictionary, one commit after another."""

from __future__ import annotations

import threading
from collections.abc import Iterable

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
"""Key, log offset, committed offset; the timestamp is the log offset."""
Name = tuple[str, str, int]


def table(commits: Iterable[Commit]) -> pa.Table:
    """Return commits as the lanes have them."""
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


def shown(known: CommittedOffsets) -> dict[Name, tuple[int, int]]:
    """Return (committed offset, timestamp) by name, refusing a name shown twice."""
    rows = known.view().commits.to_pylist()
    by_name = {
        (row["group_id"], row["topic"], row["partition"]): (row["committed_offset"], row["commit_timestamp_ms"])
        for row in rows
    }
    assert len(by_name) == len(rows), "two series of the same labels would break the scrape"
    return by_name


def _key(group: int) -> bytes:
    return commit_key(f"group-{group}")


BATCHES = st.lists(st.lists(st.tuples(st.integers(0, 5), st.integers(-1, 50)), max_size=8), max_size=8)


@given(BATCHES, st.data())
def test_the_book_shows_the_last_commit_of_every_live_key(
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
    assert shown(known) == {name: commit for name, commit in expected.items() if commit[0] != TOMBSTONE}


def test_what_is_older_than_known_changes_nothing() -> None:
    """Rule: nothing twice. A batch may be replayed after later ones were restored from state."""
    known = CommittedOffsets()
    known.apply(table([(_key(1), 10, 100)]))
    known.apply(table([(_key(1), 10, 100)]))
    known.apply(table([(_key(1), 9, 5), (_key(2), 11, 7)]))
    assert shown(known) == {("group-1", "orders", 0): (100, 10), ("group-2", "orders", 0): (7, 11)}


EARLIER, HOME = 12, 42
"""The partitions of my-group among 50 and among 60."""


def at_partition(offsets_topic_partition: int, *commits: Commit) -> pa.Table:
    """Return commits that stand in one partition."""
    stands_in = pa.array([offsets_topic_partition] * len(commits), pa.int32())
    return table(commits).set_column(0, "offsets_topic_partition", stands_in)


def test_in_its_home_a_commit_counts_although_its_offset_is_lower() -> None:
    """After the partition count changed, the group's commits stand in a different, shorter partition.

    What expires in the earlier one afterwards, and what is read of it later, is not the group's any more.
    """
    mine = commit_key("my-group")
    earlier = at_partition(EARLIER, (mine, 900, 70), (mine, 1900, 71))
    home = at_partition(HOME, (mine, 5, 1))
    expired = at_partition(EARLIER, (mine, 2900, TOMBSTONE))
    for order in ([earlier, home, expired], [home, earlier, expired], [earlier, expired, home]):
        known = CommittedOffsets()
        known.use_partitions(OwnPartitions((50, 60)))
        for commits in order:
            known.apply(commits)
        assert shown(known) == {("my-group", "orders", 0): (1, 5)}
        assert known.commits_of_groups(["my-group"]).select(
            ["offsets_topic_offset", "offsets_topic_partition"]
        ).to_pylist() == [{"offsets_topic_offset": 5, "offsets_topic_partition": HOME}]
        view = known.view()
        windows = known.observe(view, np.array([1]), np.array([9]), np.array([True]))
        assert windows is not None
        assert windows.committed_offset[windows.is_entry].tolist() == [1], "its window begins anew"


def test_a_key_stays_where_it_is_until_a_commit_stands_in_its_home() -> None:
    """The partition count changes under a running monitor; brokers use it after their restart."""
    mine, known = commit_key("my-group"), CommittedOffsets()
    known.use_partitions(OwnPartitions((50,)))
    known.apply(at_partition(EARLIER, (mine, 900, 70)))
    known.apply(at_partition(HOME, (mine, 950, 1)))
    assert shown(known) == {("my-group", "orders", 0): (70, 900)}, "no home by the count that is known"
    known.use_partitions(OwnPartitions((50, 60)))
    known.apply(at_partition(EARLIER, (mine, 901, 71)))
    assert shown(known) == {("my-group", "orders", 0): (71, 901)}
    known.apply(at_partition(HOME, (mine, 5, 1)))
    assert shown(known) == {("my-group", "orders", 0): (1, 5)}


def test_an_empty_book_and_an_empty_batch_are_fine() -> None:
    known = CommittedOffsets()
    known.apply(table([]))
    assert shown(known) == {}
    assert known.view().commits.num_rows == 0


def test_a_deleted_key_leaves_the_view_and_comes_back_with_its_next_commit() -> None:
    known = CommittedOffsets()
    known.apply(table([(_key(1), 1, 5)]))
    known.apply(table([(_key(1), 2, TOMBSTONE)]))
    assert shown(known) == {}
    known.apply(table([(_key(1), 3, 6)]))
    assert shown(known) == {("group-1", "orders", 0): (6, 3)}


def test_the_book_grows_past_its_first_rows() -> None:
    known = CommittedOffsets()
    known.apply(table((_key(group), group, group) for group in range(5_000)))
    known.apply(table((_key(group), 5_000 + group, group + 1) for group in range(5_000)))
    assert shown(known) == {(f"group-{group}", "orders", 0): (group + 1, 5_000 + group) for group in range(5_000)}


def test_a_view_does_not_change_when_commits_come() -> None:
    """Lag was once computed from numbers that changed under it: Arrow shares NumPy's memory unless told otherwise."""
    known = CommittedOffsets()
    known.apply(table([(_key(1), 1, 5)]))
    before = known.view().commits
    known.apply(table([(_key(1), 2, 999)]))
    assert before["committed_offset"].to_pylist() == [5]
    assert before["commit_timestamp_ms"].to_pylist() == [1]


def test_keys_that_come_and_go_do_not_fill_the_memory() -> None:
    """Rule: bounded. `console-consumer-12345` lives for a minute, and there is another one every minute, for years."""
    known = CommittedOffsets()
    known.apply(table([(commit_key("steady"), 0, 1)]))
    at = 1
    for generation in range(60):
        keys = [commit_key(f"console-consumer-{generation}-{number}") for number in range(200)]
        known.apply(table((key, at + number, 5) for number, key in enumerate(keys)))
        known.apply(table((key, at + 200 + number, TOMBSTONE) for number, key in enumerate(keys)))
        at += 400
    assert shown(known) == {("steady", "orders", 0): (1, 0)}
    assert len(known._rows) == len(known._group_ids) <= 2_000
    assert known._numbers.shape[1] <= 4_096


def test_live_keys_keep_their_commits_when_deleted_ones_are_given_up() -> None:
    known = CommittedOffsets()
    known.apply(table((_key(group), group, group) for group in range(3_000)))
    known.apply(table((_key(group), 3_000 + group, TOMBSTONE) for group in range(3_000) if group % 5))
    known.apply(table((_key(group), 10_000 + group, 1) for group in range(3_000, 4_000)))
    expected = {(f"group-{group}", "orders", 0): (group, group) for group in range(0, 3_000, 5)}
    expected |= {(f"group-{group}", "orders", 0): (1, 10_000 + group) for group in range(3_000, 4_000)}
    assert shown(known) == expected
    known.apply(table([(_key(5), 20_000, 77)]))
    assert shown(known)["group-5", "orders", 0] == (77, 20_000)


def test_names_that_read_alike_are_one_name() -> None:
    """Bytes that are not UTF-8 read as U+FFFD, as in Java: to the coordinator these keys are one."""
    spellings = [b"\x00\x01\x00\x01" + raw + b"\x00\x01t\x00\x00\x00\x03" for raw in (b"\xff", b"\xfe", b"\x80")]
    known = CommittedOffsets()
    for at, key in enumerate(spellings):
        known.apply(table([(key, at, at)]))
    assert shown(known) == {("\ufffd", "t", 3): (2, 2)}
    known.apply(table([(spellings[0], 9, TOMBSTONE)]))
    assert shown(known) == {}


def test_views_taken_while_another_thread_writes_are_whole() -> None:
    """A commit's offset and its time must be of one commit, whenever the sampler looks."""
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
            assert all(committed == time for committed, time in shown(known).values())
    finally:
        stop.set()
        writer.join()


# Windows: the book numbers their rows, so they follow it wherever it goes.


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
    """Return commits of (group, log offset, committed offset), a second apart each."""
    rows = table((_key(group), at, committed) for group, at, committed in commits)
    return rows.set_column(3, "timestamp_ms", pc.multiply(rows["offsets_topic_offset"], 1_000))


def test_a_window_holds_every_commit_of_a_batch_and_the_book_the_last() -> None:
    known = CommittedOffsets()
    known.apply(seconds([(1, 1, 10), (2, 2, 5), (1, 3, 30)]))
    assert committed_offsets(known) == {"group-1": [10, 30], "group-2": [5]}
    assert shown(known)["group-1", "orders", 0] == (30, 3_000)


def test_a_deleted_or_vanished_commit_ends_its_window() -> None:
    known = CommittedOffsets()
    known.apply(seconds([(1, 1, 10), (2, 2, 5)]))
    known.forget([_key(2)], [2])
    known.apply(seconds([(1, 3, TOMBSTONE), (1, 4, 7), (2, 5, 6)]))
    assert committed_offsets(known) == {"group-1": [7], "group-2": [6]}


def test_windows_follow_their_rows_when_the_book_is_tidied_and_an_older_view_gives_none() -> None:
    """Groups come and go for ever; a window of another group's commits would be a verdict on the wrong group."""
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
    """The lanes' state holds the last commit only: without its own store a restart would be blind for ten commits."""
    known = CommittedOffsets()
    known.apply(seconds([(1, 1, 10), (2, 2, 5), (1, 3, 30)]))
    version, stored = known.stored_windows()
    restarted = CommittedOffsets()
    restarted.apply(seconds([(1, 4, 40)]))
    restarted.restore_windows(version, stored)
    assert committed_offsets(restarted) == {"group-1": [10, 30, 40]}
    restarted.restore_windows(*CommittedOffsets().stored_windows())
