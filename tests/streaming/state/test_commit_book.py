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
from streaming.state.commit_book import CommitBook
from tests.streaming.log_records import commit_key

Commit = tuple[bytes, int, int]
"""Key, log offset, committed offset; the timestamp is the log offset."""
Name = tuple[str, str, int]


def table(commits: Iterable[Commit]) -> pa.Table:
    """Return commits as the lanes have them."""
    rows = [
        {"kafka_partition": 0, "key": key, "kafka_offset": at, "timestamp_ms": at, "committed_offset": committed}
        for key, at, committed in commits
    ]
    return pa.Table.from_pylist(rows, schema=COMMIT_SCHEMA)


def shown(book: CommitBook) -> dict[Name, tuple[int, int]]:
    """Return (committed offset, timestamp) by name, refusing a name shown twice."""
    rows = book.view().commits.to_pylist()
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
    book, expected, at = CommitBook(), dict[Name, tuple[int, int]](), 0
    for batch in batches:
        reduced = {}
        for group, committed in batch:
            at += 1
            reduced[group] = (_key(group), at, committed)
            expected[f"group-{group}", "orders", 0] = (committed, at)
        book.apply(table(reduced.values()))
        if data.draw(st.booleans()):
            book.apply(table(reduced.values()))
    assert shown(book) == {name: commit for name, commit in expected.items() if commit[0] != TOMBSTONE}


def test_what_is_older_than_known_changes_nothing() -> None:
    """Law: nothing twice. A batch may be replayed after later ones were restored from state."""
    book = CommitBook()
    book.apply(table([(_key(1), 10, 100)]))
    book.apply(table([(_key(1), 10, 100)]))
    book.apply(table([(_key(1), 9, 5), (_key(2), 11, 7)]))
    assert shown(book) == {("group-1", "orders", 0): (100, 10), ("group-2", "orders", 0): (7, 11)}


EARLIER, HOME = 12, 42
"""The partitions of my-group among 50 and among 60."""


def at_partition(kafka_partition: int, *commits: Commit) -> pa.Table:
    """Return commits that stand in one partition."""
    stands_in = pa.array([kafka_partition] * len(commits), pa.int32())
    return table(commits).set_column(0, "kafka_partition", stands_in)


def test_in_its_home_a_commit_counts_although_its_offset_is_lower() -> None:
    """After the partition count changed, the group's commits stand in a different, shorter partition.

    What expires in the earlier one afterwards, and what is read of it later, is not the group's any more.
    """
    mine = commit_key("my-group")
    earlier = at_partition(EARLIER, (mine, 900, 70), (mine, 1900, 71))
    home = at_partition(HOME, (mine, 5, 1))
    expired = at_partition(EARLIER, (mine, 2900, TOMBSTONE))
    for order in ([earlier, home, expired], [home, earlier, expired], [earlier, expired, home]):
        book = CommitBook()
        book.use_partitions(OwnPartitions((50, 60)))
        for commits in order:
            book.apply(commits)
        assert shown(book) == {("my-group", "orders", 0): (1, 5)}
        assert book.keyed(["my-group"]).select(["kafka_offset", "kafka_partition"]).to_pylist() == [
            {"kafka_offset": 5, "kafka_partition": HOME}
        ]
        view = book.view()
        windows = book.observe(view, np.array([1]), np.array([9]), np.array([True]))
        assert windows is not None
        assert windows.committed_offset[windows.is_entry].tolist() == [1], "its window begins anew"


def test_a_key_stays_where_it_is_until_a_commit_stands_in_its_home() -> None:
    """The partition count changes under a running monitor; brokers use it after their restart."""
    mine, book = commit_key("my-group"), CommitBook()
    book.use_partitions(OwnPartitions((50,)))
    book.apply(at_partition(EARLIER, (mine, 900, 70)))
    book.apply(at_partition(HOME, (mine, 950, 1)))
    assert shown(book) == {("my-group", "orders", 0): (70, 900)}, "no home by the count that is known"
    book.use_partitions(OwnPartitions((50, 60)))
    book.apply(at_partition(EARLIER, (mine, 901, 71)))
    assert shown(book) == {("my-group", "orders", 0): (71, 901)}
    book.apply(at_partition(HOME, (mine, 5, 1)))
    assert shown(book) == {("my-group", "orders", 0): (1, 5)}


def test_an_empty_book_and_an_empty_batch_are_fine() -> None:
    book = CommitBook()
    book.apply(table([]))
    assert shown(book) == {}
    assert book.view().commits.num_rows == 0


def test_a_deleted_key_leaves_the_view_and_comes_back_with_its_next_commit() -> None:
    book = CommitBook()
    book.apply(table([(_key(1), 1, 5)]))
    book.apply(table([(_key(1), 2, TOMBSTONE)]))
    assert shown(book) == {}
    book.apply(table([(_key(1), 3, 6)]))
    assert shown(book) == {("group-1", "orders", 0): (6, 3)}


def test_the_book_grows_past_its_first_rows() -> None:
    book = CommitBook()
    book.apply(table((_key(group), group, group) for group in range(5_000)))
    book.apply(table((_key(group), 5_000 + group, group + 1) for group in range(5_000)))
    assert shown(book) == {(f"group-{group}", "orders", 0): (group + 1, 5_000 + group) for group in range(5_000)}


def test_a_view_does_not_change_when_commits_come() -> None:
    """Lag was once computed from numbers that changed under it: Arrow shares NumPy's memory unless told otherwise."""
    book = CommitBook()
    book.apply(table([(_key(1), 1, 5)]))
    before = book.view().commits
    book.apply(table([(_key(1), 2, 999)]))
    assert before["committed_offset"].to_pylist() == [5]
    assert before["commit_timestamp_ms"].to_pylist() == [1]


def test_keys_that_come_and_go_do_not_fill_the_memory() -> None:
    """Law: bounded. `console-consumer-12345` lives for a minute, and there is another one every minute, for years."""
    book = CommitBook()
    book.apply(table([(commit_key("steady"), 0, 1)]))
    at = 1
    for generation in range(60):
        keys = [commit_key(f"console-consumer-{generation}-{number}") for number in range(200)]
        book.apply(table((key, at + number, 5) for number, key in enumerate(keys)))
        book.apply(table((key, at + 200 + number, TOMBSTONE) for number, key in enumerate(keys)))
        at += 400
    assert shown(book) == {("steady", "orders", 0): (1, 0)}
    assert len(book._rows) == len(book._group_ids) <= 2_000
    assert book._numbers.shape[1] <= 4_096


def test_live_keys_keep_their_commits_when_deleted_ones_are_given_up() -> None:
    book = CommitBook()
    book.apply(table((_key(group), group, group) for group in range(3_000)))
    book.apply(table((_key(group), 3_000 + group, TOMBSTONE) for group in range(3_000) if group % 5))
    book.apply(table((_key(group), 10_000 + group, 1) for group in range(3_000, 4_000)))
    expected = {(f"group-{group}", "orders", 0): (group, group) for group in range(0, 3_000, 5)}
    expected |= {(f"group-{group}", "orders", 0): (1, 10_000 + group) for group in range(3_000, 4_000)}
    assert shown(book) == expected
    book.apply(table([(_key(5), 20_000, 77)]))
    assert shown(book)["group-5", "orders", 0] == (77, 20_000)


def test_names_that_read_alike_are_one_name() -> None:
    """Bytes that are not UTF-8 read as U+FFFD, as in Java: to the coordinator these keys are one."""
    spellings = [b"\x00\x01\x00\x01" + raw + b"\x00\x01t\x00\x00\x00\x03" for raw in (b"\xff", b"\xfe", b"\x80")]
    book = CommitBook()
    for at, key in enumerate(spellings):
        book.apply(table([(key, at, at)]))
    assert shown(book) == {("\ufffd", "t", 3): (2, 2)}
    book.apply(table([(spellings[0], 9, TOMBSTONE)]))
    assert shown(book) == {}


def test_views_taken_while_another_thread_writes_are_whole() -> None:
    """A commit's offset and its time must be of one commit, whenever the sampler looks."""
    book, stop = CommitBook(), threading.Event()

    def write() -> None:
        at = 0
        while not stop.is_set():
            at += 1
            book.apply(table((_key(group), at, at) for group in range(20)))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert all(committed == time for committed, time in shown(book).values())
    finally:
        stop.set()
        writer.join()


# Windows: the book numbers their rows, so they follow it wherever it goes.


def committed_offsets(book: CommitBook, ends: int = 1_000) -> dict[str, list[int]]:
    """Return the committed offsets of each group's window, oldest first."""
    view = book.view()
    count = view.commits.num_rows
    committed = view.commits["committed_offset"].to_numpy()
    windows = book.observe(view, committed, np.full(count, ends), np.ones(count, dtype=np.bool_))
    assert windows is not None
    return {
        group_id: windows.committed_offset[row][windows.is_entry[row]].tolist()
        for row, group_id in enumerate(view.commits["group_id"].to_pylist())
    }


def seconds(commits: Iterable[tuple[int, int, int]]) -> pa.Table:
    """Return commits of (group, log offset, committed offset), a second apart each."""
    rows = table((_key(group), at, committed) for group, at, committed in commits)
    return rows.set_column(3, "timestamp_ms", pc.multiply(rows["kafka_offset"], 1_000))


def test_a_window_holds_every_commit_of_a_batch_and_the_book_the_last() -> None:
    book = CommitBook()
    book.apply(seconds([(1, 1, 10), (2, 2, 5), (1, 3, 30)]))
    assert committed_offsets(book) == {"group-1": [10, 30], "group-2": [5]}
    assert shown(book)["group-1", "orders", 0] == (30, 3_000)


def test_a_deleted_or_vanished_commit_ends_its_window() -> None:
    book = CommitBook()
    book.apply(seconds([(1, 1, 10), (2, 2, 5)]))
    book.forget([_key(2)], [2])
    book.apply(seconds([(1, 3, TOMBSTONE), (1, 4, 7), (2, 5, 6)]))
    assert committed_offsets(book) == {"group-1": [7], "group-2": [6]}


def test_windows_follow_their_rows_when_the_book_is_tidied_and_an_older_view_gives_none() -> None:
    """Groups come and go for ever; a window of another group's commits would be a verdict on the wrong group."""
    book = CommitBook()
    book.apply(seconds([(group, group, 10 + group) for group in range(1_000)]))
    book.apply(seconds([(group, 2_000 + group, TOMBSTONE) for group in range(999)]))
    book.apply(seconds([(group, 3_000 + group, 20) for group in range(1_000, 1_100)]))
    old = book.view()
    book.apply(seconds([(999, 9_000, 2_000)]))
    known = np.ones(old.commits.num_rows, dtype=np.bool_)
    committed = old.commits["committed_offset"].to_numpy()
    assert book.observe(old, committed, np.full(old.commits.num_rows, 9_999), known) is None
    windows = committed_offsets(book, 9_999)
    assert len(windows) == 101
    assert windows["group-999"] == [1_009, 2_000]
    assert windows["group-1050"] == [20]


def test_windows_survive_a_restart_for_keys_that_are_still_known() -> None:
    """The lanes' state holds the last commit only: without its own store a restart would be blind for ten commits."""
    book = CommitBook()
    book.apply(seconds([(1, 1, 10), (2, 2, 5), (1, 3, 30)]))
    version, stored = book.stored_windows()
    restarted = CommitBook()
    restarted.apply(seconds([(1, 4, 40)]))
    restarted.restore_windows(version, stored)
    assert committed_offsets(restarted) == {"group-1": [10, 30, 40]}
    restarted.restore_windows(*CommitBook().stored_windows())
