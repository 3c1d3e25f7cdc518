"""Tests that windows of commits equal a simple list per group partition, updated commit by commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from streaming.combine.commits import COMMIT_SCHEMA, TOMBSTONE, last_per_slot
from streaming.evaluation.lag.stored.commit_windows import (
    STORED_VERSION,
    WINDOW_SCHEMA,
    CommitWindows,
    decode_windows,
    encode_windows,
)
from streaming.group.codec import StateVersionError
from tests.streaming.log_records import commit_key

LENGTH = 4
SLOT_MS = 1_000
KEY = commit_key("g")


@dataclass(frozen=True)
class Entry:
    """One commit in a window."""

    committed_offset: int
    timestamp_ms: int
    offsets_topic_offset: int
    lag: int | None = None

    def shares_slot(self, other: Entry) -> bool:
        """Return True if both commits are in the same slot of the clock."""
        return self.timestamp_ms // SLOT_MS == other.timestamp_ms // SLOT_MS


@dataclass
class PlainWindow:
    """The rules of commit_windows.py for one partition, as a slow reference."""

    length: int = LENGTH
    tombstoned_at: int = -1
    entries: list[Entry] = field(default_factory=list)

    def put(self, commit: Entry) -> None:
        """Apply rules 1 to 4."""
        before = [entry for entry in self.entries if entry.offsets_topic_offset < commit.offsets_topic_offset]
        after = self.entries[len(before) :]
        if commit.committed_offset == TOMBSTONE:
            self.tombstoned_at = max(self.tombstoned_at, commit.offsets_topic_offset)
            self.entries = [entry for entry in after if entry.offsets_topic_offset > commit.offsets_topic_offset]
        elif commit.offsets_topic_offset <= self.tombstoned_at or any(_is_covered(commit, entry) for entry in after):
            pass
        elif before and before[-1].shares_slot(commit):
            self.entries = [*before[:-1], replace(commit, lag=before[-1].lag), *after]
        elif before or len(after) < self.length:
            others = [entry for entry in before if not entry.shares_slot(commit)]
            self.entries = [*others, commit, *after][-self.length :]

    def observe(self, offsets_topic_offset: int, committed_offset: int, end_offset: int) -> None:
        """Apply rules 5 and 6 for a commit that was the newest when the end offset was requested."""
        beyond = [
            entry.offsets_topic_offset
            for entry in self.entries
            if entry.offsets_topic_offset < offsets_topic_offset and entry.committed_offset > end_offset
        ]
        gone_up_to = offsets_topic_offset if committed_offset > end_offset else max(beyond, default=-1)
        self.entries = [entry for entry in self.entries if entry.offsets_topic_offset > gone_up_to]
        for at, entry in enumerate(self.entries):
            if entry.offsets_topic_offset >= offsets_topic_offset:
                if entry.lag is None and committed_offset <= end_offset:
                    self.entries[at] = replace(entry, lag=end_offset - committed_offset)
                break


def _is_covered(commit: Entry, later: Entry) -> bool:
    return later.offsets_topic_offset == commit.offsets_topic_offset or later.shares_slot(commit)


def put(windows: CommitWindows, row: int, *commits: Entry) -> None:
    """Add commits of one row, in one call."""
    columns = [(entry.committed_offset, entry.timestamp_ms, entry.offsets_topic_offset) for entry in commits]
    arrays = np.array(columns, dtype=np.int64).reshape(-1, 3).T
    windows.put(np.full(len(commits), row), *arrays)


def entries(windows: CommitWindows, row: int = 0) -> list[Entry]:
    """Return the entries of a row's window."""
    table = windows.entries(np.array([row]))
    assert table.schema == WINDOW_SCHEMA
    return [Entry(*(line[name] for name in WINDOW_SCHEMA.names[1:])) for line in table.to_pylist()]


def offsets(commits: Iterable[Entry]) -> list[int]:
    return [entry.committed_offset for entry in commits]


def at_second(second: float, committed_offset: int, offsets_topic_offset: int | None = None) -> Entry:
    """Return a commit. By default its position in the log equals its time."""
    return Entry(
        committed_offset,
        int(second * 1000),
        int(second * 1000) if offsets_topic_offset is None else offsets_topic_offset,
    )


@pytest.mark.parametrize(
    ("commits", "expected", "why"),
    [
        ([at_second(1, 10)], [10], "rule 4: a window starts with its first commit"),
        ([at_second(s, 10 * s) for s in (1, 2, 3, 4, 5)], [20, 30, 40, 50], "rule 4: the oldest commit is removed"),
        (
            [at_second(1, 10), at_second(3, 30), at_second(2, 20)],
            [10, 20, 30],
            "rule 2: a commit that is read late is inserted in its place",
        ),
        (
            [*(at_second(s, s) for s in (2, 3, 4, 5)), at_second(1, 1)],
            [2, 3, 4, 5],
            "rule 2: the commit is older than a full window",
        ),
        ([at_second(1, 10), at_second(1, 10)], [10], "rule 2: a replayed batch changes nothing"),
        ([at_second(1, 10, 7), at_second(2, 20, 7)], [10], "rule 2: one position in the log is one commit"),
        ([at_second(1.1, 10), at_second(1.9, 11), at_second(2.0, 12)], [11, 12], "rule 3: the slot's last commit"),
        ([at_second(1.9, 11), at_second(1.1, 10)], [11], "rule 3: independent of the order"),
        (
            [at_second(s, n, n) for n, s in enumerate((10, 11, 12, 10.5, 11.5))],
            [2, 3, 4],
            "rule 3: the clock went back to an earlier second, and a second has one entry",
        ),
        (
            [at_second(s, n, n) for n, s in enumerate((10, 11, 12, 10.5, 12.5))],
            [1, 3, 4],
            "rule 3: the clock went back, and then returned to the latest second, which is not the newest entry",
        ),
        (
            [at_second(11, 1, 1), at_second(12, 2, 2), at_second(11.5, 3, 3), at_second(11, 1, 1)],
            [2, 3],
            "rule 3: a replayed commit whose second already has a later commit",
        ),
        (
            [at_second(0.1 * tick, tick) for tick in range(100)],
            [69, 79, 89, 99],
            "rule 3: a group that commits every 100 ms is evaluated once per second",
        ),
        ([at_second(1, 10), at_second(2, TOMBSTONE)], [], "rule 1: the key was deleted"),
        (
            [at_second(1, 10), at_second(2, TOMBSTONE), at_second(2.5, 5)],
            [5],
            "rule 1: the key was deleted and committed again",
        ),
        ([at_second(2, TOMBSTONE), at_second(1, 10)], [], "rule 1: commits before the tombstone do not return"),
        (
            [at_second(1, 10), at_second(3, 30), at_second(2, TOMBSTONE)],
            [30],
            "rule 1: commits after the tombstone stay",
        ),
    ],
)
def test_commits_are_inserted_in_their_place(commits: list[Entry], expected: list[int], why: str) -> None:
    one_by_one, together = CommitWindows(LENGTH, SLOT_MS), CommitWindows(LENGTH, SLOT_MS)
    for commit in commits:
        put(one_by_one, 0, commit)
    assert offsets(entries(one_by_one)) == expected, why
    put(together, 0, *commits)
    assert offsets(entries(together)) == expected, f"{why}, in one call"


def observe(windows: CommitWindows, commit: Entry, end_offset: int) -> None:
    """Add an end offset to row 0. It was requested after this commit was read."""
    windows.observe(
        np.array([0]),
        np.array([commit.offsets_topic_offset]),
        np.array([commit.committed_offset]),
        np.array([end_offset]),
    )


@pytest.mark.parametrize(
    ("before", "asked_for", "after", "end_offset", "expected", "why"),
    [
        ([at_second(1, 10)], 0, [], 15, [(10, 5)], "rule 5: the lag of the newest commit"),
        ([at_second(1, 10), at_second(2, 20)], 1, [], 25, [(10, None), (20, 5)], "rule 5: no other commit gets a lag"),
        (
            [at_second(1, 10)],
            0,
            [at_second(2, 99)],
            15,
            [(10, 5), (99, None)],
            "a commit read later may be after this end offset",
        ),
        (
            [at_second(1, 10)],
            0,
            [at_second(1.5, 99)],
            15,
            [(99, 5)],
            "the slot's entry was replaced meanwhile: the lag belongs to the observed slot",
        ),
        ([at_second(1, 10)], 0, [at_second(2, TOMBSTONE)], 15, [], "the key was deleted meanwhile"),
        ([at_second(1, 900), at_second(2, 3)], 1, [], 5, [(3, 2)], "rule 6: 900 is an offset of the deleted topic"),
        (
            [at_second(1, 2), at_second(2, 900), at_second(3, 3)],
            2,
            [],
            5,
            [(3, 2)],
            "rule 6: commit 2 before it is also removed",
        ),
        ([at_second(1, 2), at_second(2, 900)], 1, [], 5, [], "rule 6: the newest commit itself is removed"),
        (
            [at_second(1, 2), at_second(2, 900)],
            1,
            [at_second(3, 4)],
            5,
            [(4, None)],
            "rule 6: commits read since then stay",
        ),
        ([at_second(1, 5)], 0, [], 5, [(5, 0)], "a commit at the end has lag 0, which is known"),
    ],
)
def test_an_end_offset_gives_a_lag_to_the_commit_that_it_was_requested_for(  # noqa: PLR0913, PLR0917 - a row of the table
    before: list[Entry],
    asked_for: int,
    after: list[Entry],
    end_offset: int,
    expected: list[tuple[int, int | None]],
    why: str,
) -> None:
    """Rule 6: commits are read before end offsets, so the lag can only be overstated."""
    windows = CommitWindows(LENGTH, SLOT_MS)
    put(windows, 0, *before)
    put(windows, 0, *after)
    observe(windows, before[asked_for], end_offset)
    assert [(entry.committed_offset, entry.lag) for entry in entries(windows)] == expected, why


def test_a_lag_is_set_once() -> None:
    """The lag at observation is history. A later end offset measures the present lag."""
    windows = CommitWindows(LENGTH, SLOT_MS)
    put(windows, 0, at_second(1, 10))
    observe(windows, at_second(1, 10), 15)
    observe(windows, at_second(1, 10), 99)
    put(windows, 0, at_second(1.5, 12))
    observe(windows, at_second(1.5, 12), 99)
    assert entries(windows) == [Entry(12, 1_500, 1_500, 5)]


COMMITS = st.builds(
    Entry,
    st.sampled_from([TOMBSTONE, 0, 1, 2, 5, 9, 2**63 - 1]),
    st.sampled_from([0, 400, 999, 1_000, 2_500, 3_000, 9_000]),
    st.integers(0, 12),
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.lists(st.tuples(st.integers(0, 2), COMMITS), max_size=8)),
        st.tuples(st.just("observe"), st.tuples(st.integers(0, 2), COMMITS, st.integers(0, 9))),
    ),
    max_size=12,
)


@given(STEPS)
@example(
    [("put", [(1, Entry(0, 1_000, 0)), (1, Entry(0, 0, 1))]), ("put", [(1, Entry(0, 0, 2)), (1, Entry(0, 1_000, 3))])]
)
def test_windows_in_bulk_equal_windows_one_by_one(steps: list[tuple[str, object]]) -> None:
    """In the example, the clock goes back and returns. The window once had two entries of one slot (rule 3)."""
    windows, plain = CommitWindows(LENGTH, SLOT_MS), [PlainWindow() for _ in range(3)]
    for step, drawn in steps:
        if step == "put":
            commits = sorted(drawn, key=lambda pair: pair[1].offsets_topic_offset)  # type: ignore[call-overload]
            rows = np.array([row for row, _ in commits], dtype=np.int64)
            columns = [(one.committed_offset, one.timestamp_ms, one.offsets_topic_offset) for _, one in commits]
            windows.put(rows, *np.array(columns, dtype=np.int64).reshape(-1, 3).T)
            for row, commit in commits:
                plain[row].put(commit)
        else:
            row, commit, end = drawn  # type: ignore[misc]
            windows.keep(np.arange(3))  # adds rows without commits
            known = (commit.offsets_topic_offset, commit.committed_offset, end)
            windows.observe(np.array([row]), *(np.array([number]) for number in known))
            plain[row].observe(*known)
    windows.keep(np.arange(3))
    assert [entries(windows, row) for row in range(3)] == [window.entries for window in plain]


@given(STEPS)
def test_a_restart_keeps_the_windows(steps: list[tuple[str, object]]) -> None:
    windows = CommitWindows(LENGTH, SLOT_MS)
    for step, drawn in steps:
        if step == "put":
            for row, commit in drawn:  # type: ignore[attr-defined]
                put(windows, row, commit)
    windows.keep(np.arange(3))
    for row in range(3):
        for entry in entries(windows, row)[-1:]:
            windows.observe(
                np.array([row]),
                *(np.array([number]) for number in (entry.offsets_topic_offset, entry.committed_offset, 9)),
            )
    known_keys = pa.array([b"a", b"", b"c"], pa.binary())
    keys, stored = decode_windows(*encode_windows(known_keys, windows.entries(np.arange(3))))
    assert keys.to_pylist() in (known_keys.to_pylist(), [])
    restarted = CommitWindows(LENGTH, SLOT_MS)
    restarted.restore(stored)
    restarted.keep(np.arange(3))
    assert restarted.entries(np.arange(3)) == windows.entries(np.arange(3))
    restarted.restore(windows.entries(np.arange(3)))
    assert restarted.entries(np.arange(3)) == windows.entries(np.arange(3)), "a second restart changes nothing"


def test_a_commit_that_replaces_the_oldest_does_not_take_its_lag() -> None:
    windows = CommitWindows(2, SLOT_MS)
    put(windows, 0, at_second(1, 10), at_second(4, 40))
    observe(windows, at_second(1, 10), 15)
    put(windows, 0, at_second(2, 20))
    assert [(entry.committed_offset, entry.lag) for entry in entries(windows)] == [(20, None), (40, None)]


def test_at_most_a_quarter_of_the_windows_is_unused() -> None:
    """The number of windows doubled. For 300,000 partitions, the unused half took 70 MB."""
    windows = CommitWindows()
    for row in range(0, 10_000, 100):
        now = np.array([row])
        windows.put(now, now, now, now)
        assert len(windows._tombstoned_at) <= max(1024, 1.25 * (row + 100))


def test_a_restore_does_not_overwrite_known_windows() -> None:
    windows, stored = CommitWindows(LENGTH, SLOT_MS), CommitWindows(LENGTH, SLOT_MS)
    for one, end_offset in ((windows, 15), (stored, 99)):
        put(one, 0, at_second(1, 10))
        observe(one, at_second(1, 10), end_offset)
    windows.restore(stored.entries(np.array([0])))
    assert [entry.lag for entry in entries(windows)] == [5]


def test_windows_of_a_different_version_are_refused_with_the_version() -> None:
    with pytest.raises(StateVersionError, match=f"version {STORED_VERSION + 1}"):
        decode_windows(STORED_VERSION + 1, b"")


def test_the_stored_form_of_windows_is_that_of_version_1() -> None:
    """Stored bytes outlive the program, so a change of the columns needs a new version."""
    windows = CommitWindows(LENGTH, SLOT_MS)
    put(windows, 0, at_second(1, 10), at_second(2, 20))
    version, encoded = encode_windows(pa.array([KEY]), windows.entries(np.array([0])))
    stored = pa.ipc.open_stream(encoded).read_all()
    assert version == 1
    assert [(field.name, field.type) for field in stored.schema] == [
        ("key", pa.dictionary(pa.int32(), pa.binary())),
        *((field.name, field.type) for field in list(WINDOW_SCHEMA)[1:]),
    ]
    assert [tuple(row.values()) for row in stored.to_pylist()] == [
        (KEY, 10, 1_000, 1_000, None),
        (KEY, 20, 2_000, 2_000, None),
    ]


def test_a_view_ends_at_the_newest_commit_and_does_not_change() -> None:
    """A view ends at the newest commit with a known lag. Later commits appear in the view of the next sample."""
    windows = CommitWindows(LENGTH, SLOT_MS)
    put(windows, 0, at_second(1, 10), at_second(2, 20), at_second(3, 30))
    view = windows.as_of(np.array([0]), np.array([2_000]))
    put(windows, 0, at_second(4, 40), at_second(5, 50), at_second(6, 60))
    assert view.committed_offset[view.is_entry].tolist() == [10, 20]
    assert view.timestamp_ms[view.is_entry].tolist() == [1_000, 2_000]
    assert not view.has_lag.any()


def test_removed_rows_leave_no_entries() -> None:
    windows = CommitWindows(LENGTH, SLOT_MS)
    for row in range(3_000):
        put(windows, row, at_second(1, row))
    windows.keep(np.array([2_999, 7]))
    assert [offsets(entries(windows, row)) for row in range(2)] == [[2_999], [7]]
    put(windows, 2, at_second(1, 5))
    assert offsets(entries(windows, 2)) == [5], "a new row has no entries"


def test_absurd_timestamps_are_clipped() -> None:
    """No broker checks a client's clock. Differences must still fit into 64 bits."""
    windows = CommitWindows(LENGTH, SLOT_MS)
    put(windows, 0, Entry(1, -(2**63), 1), Entry(2, 2**63 - 1, 2))
    assert [entry.timestamp_ms for entry in entries(windows)] == [0, 253_402_300_799_000]


@st.composite
def logs_in_pieces(draw: Callable[..., Any]) -> list[list[Entry]]:
    """Draw commits in log order, and the batches in which they are read.

    Time can go backwards, if a coordinator with a slower clock takes over. A time can also be absurd.
    """
    passed = draw(st.lists(st.sampled_from([-2_500, -1_500, -400, 0, 1, 400, 999, 1_000, 5_000]), max_size=40))
    offsets = st.sampled_from([TOMBSTONE, 0, 3, 5, 9])
    times = (draw(st.sampled_from([at, at, at, -at, at << 60])) for at in accumulate(passed))
    log = [Entry(draw(offsets), max(-(2**63), min(at, 2**63 - 1)), place) for place, at in enumerate(times)]
    cuts = sorted(draw(st.lists(st.integers(0, len(log)), max_size=6)))
    return [log[start:end] for start, end in pairwise([0, *cuts, len(log)])]


@given(logs_in_pieces())
def test_windows_do_not_depend_on_the_split_into_batches(pieces: list[list[Entry]]) -> None:
    """A catch-up in one batch and a hundred live batches must give the same status."""
    every_commit, reduced = CommitWindows(), CommitWindows()
    for piece in pieces:
        put(every_commit, 0, *piece)
        rows = [
            {"offsets_topic_partition": 0, "key": KEY, "offsets_topic_offset": one.offsets_topic_offset}
            | {"timestamp_ms": one.timestamp_ms, "committed_offset": one.committed_offset}
            for one in piece
        ]
        kept = last_per_slot(pa.Table.from_pylist(rows, schema=COMMIT_SCHEMA))
        numbers = [kept[name].to_numpy() for name in ("committed_offset", "timestamp_ms", "offsets_topic_offset")]
        reduced.put(np.zeros(kept.num_rows, dtype=np.int64), *numbers)
    every_commit.keep(np.arange(1))
    reduced.keep(np.arange(1))
    assert entries(reduced) == entries(every_commit)


def test_an_empty_batch_changes_nothing() -> None:
    windows = CommitWindows(LENGTH, SLOT_MS)
    put(windows, 0)
    windows.observe(*(np.empty(0, dtype=np.int64) for _ in range(4)))
    assert entries(windows) == []


def test_a_window_of_one_commit_is_refused() -> None:
    with pytest.raises(ValueError, match="at least two commits"):
        CommitWindows(length=1)
