"""The status of a group partition, by its last commits: keeping up, slow, standing, silent, or thrown back.

Burrow's sliding-window rules. W is the window of commits, CL the present lag, A the allowed lag. The first rule that
applies is the answer, and is shown beside it:

0. W holds a smaller share of its entries than `minimum_complete`: OK. Too little to evaluate by, as `completeness`
   shows.
1. CL <= A: OK, whatever else. There is nothing to read.
2. STOP: the silence since the last commit is longer than the time from W's first commit to its last, and no end offset
   of the last minutes was at or before the last commit. Before rule 4: a lag of 0 in W may be a week old (Burrow 290).
   An end offset that the group had reached in recent minutes means that it kept up and records have only just come: a
   client with nothing to read need not commit (Burrow 303).
3. REWIND: a commit lies before its predecessor, and no later one reaches that predecessor again. Only the first such
   fall counts. Before rule 4: a group that had read everything and was reset to the earliest offset has lags of 0 in W
   until they age out; then it merely looks busy (Burrow 716). A fall that was made up for is common in rebalances.
4. A lag at or below A in W: OK. It has been at the end within W.
5. STALL: two commits or more, and all of one offset. The client lives and does not get on.
6. WARN: two lags or more, and none lower than the one before it: slower than its producers.
7. OK.
8. Unknown, before rule 2: an open transaction begins at the next offset. A consumer under read_committed receives
   nothing from there on, however long it lasts; whether this one reads so is in no record.
9. Unknown, in place of rules 2, 5 and 6: all that is left may be transaction markers (`next_offsets.py`).

Where this differs from Burrow, on purpose: a single commit has no span to compare a silence with; Burrow then calls any
age STOP, here it takes `lone_commit_silence_ms`. A single commit is no STALL, a single lag no WARN: there is nothing to
compare it with. Silence is counted to the time up to which the group's partition of `__consumer_offsets` was read, not
to the wall clock: a commit that nobody has read yet is no silence. Unknown (no lag, no such time, no commits) is null.

Known weakness, kept: one dip of the lag clears WARN, so a group that is slow and noisy is OK (Burrow 738).

Source: Burrow, `core/internal/evaluator/caching.go`; golden cases 0-15 of `caching_test.go` are rows of the test table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.wire import BoolArray, Int64Array
from streaming.evaluation.lag.commit_windows import Windows


class Status(IntEnum):
    """Burrow's numbers, by which dashboards know them: the greater, the worse. 3 is its name for worse than WARN."""

    OK = 1
    WARN = 2
    STOP = 4
    STALL = 5
    REWIND = 6


STATUS_SCHEMA = pa.schema([("status", pa.int8()), ("status_rule", pa.int8()), ("completeness", pa.float64())])
"""`status` and the number of the rule that gives it; the window's share that is filled, 0-1.

Both are null where unknown, but for rules 8 and 9: these give the reason, and the status is null.
"""

GROUP_STATUS_SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("status", pa.int8()),
        ("completeness", pa.float64()),
        ("partitions", pa.int64()),
        ("unknown_partitions", pa.int64()),
    ]
)
"""`completeness` is the share of the group's partitions whose status is known from a full window."""

RECENT_END_OFFSETS_MS = 100_000
"""How far back rule 2 looks for an end offset the group had reached: Burrow remembers 10, polled every 10 s."""


@dataclass(frozen=True, slots=True)
class StatusRules:
    """What may be set."""

    allowed_lag: int = 0
    minimum_complete: float = 0.0
    lone_commit_silence_ms: int = 300_000


DEFAULT_RULES = StatusRules()


@dataclass(frozen=True, slots=True)
class Tails:
    """What is known of the offsets that each row has left: columns of LAG_SCHEMA, as arrays."""

    is_blocked: BoolArray
    maybe_only_markers: BoolArray


_WARN_RULE = 6
_LATE_RULES = (2, 5, _WARN_RULE)
_BY_RULE = np.array(
    [Status.OK, Status.OK, Status.STOP, Status.REWIND, Status.OK, Status.STALL, Status.WARN, Status.OK], dtype=np.int8
)
BLOCKED_RULE, MARKERS_RULE = 8, 9


def statuses(  # noqa: PLR0913, PLR0917 - all that a window is evaluated by, named
    windows: Windows,
    lag: pa.Array,
    read_up_to_ms: pa.Array,
    lowest_recent_end_offset: pa.Array,
    rules: StatusRules = DEFAULT_RULES,
    tails: Tails | None = None,
) -> pa.Table:
    """Judge every window at once (STATUS_SCHEMA), all columns row by row, null where unknown.

    `lag`: CL, from an end offset asked for after the commits were read. `read_up_to_ms`: the time up to which the
    group's partition was read. `lowest_recent_end_offset`: of the last RECENT_END_OFFSETS_MS; unknown excuses nothing.

    >>> one = np.array([[100, 200, 300]])
    >>> every = np.ones((1, 3), dtype=np.bool_)
    >>> standing = Windows(np.full((1, 3), 50), one, lag=one, is_entry=every, has_lag=every)
    >>> answer = statuses(standing, pa.array([300]), pa.array([400]), pa.array([350]))
    >>> Status(answer["status"][0].as_py()).name, answer["status_rule"].to_pylist(), answer["completeness"].to_pylist()
    ('STALL', [5], [1.0])
    """
    present_lag, has_present_lag = _numbers(lag)
    now_ms, has_now = _numbers(read_up_to_ms)
    commits = windows.is_entry.sum(axis=1)
    completeness = commits / windows.is_entry.shape[1]
    reached_end = _reached(windows, *_numbers(lowest_recent_end_offset))
    applies = [
        completeness < rules.minimum_complete,
        present_lag <= rules.allowed_lag,
        _is_silent(windows, now_ms, rules.lone_commit_silence_ms) & ~reached_end,
        _is_thrown_back(windows),
        (windows.has_lag & (windows.lag <= rules.allowed_lag)).any(axis=1),
        (commits >= 2) & ~_moves(windows),
        _never_catches_up(windows),
    ]
    rule = np.select(applies, range(len(applies)), default=len(applies)).astype(np.int8)
    status = _BY_RULE[rule]
    if tails is not None:
        rule[tails.is_blocked & (rule > 1)] = BLOCKED_RULE
        rule[tails.maybe_only_markers & np.isin(rule, _LATE_RULES)] = MARKERS_RULE
    is_unknown = ~has_present_lag | ~has_now | (commits == 0)
    without_status = is_unknown | (rule >= BLOCKED_RULE)
    arrays = [pa.array(status, mask=without_status), pa.array(rule, mask=is_unknown), pa.array(completeness)]
    return pa.table(arrays, schema=STATUS_SCHEMA)


def group_statuses(group_ids: pa.Array, partitions: pa.Table) -> pa.Table:
    """The worst status of each group's partitions (GROUP_STATUS_SCHEMA), from STATUS_SCHEMA row by row.

    Partitions of unknown status take no part in the worst, but in the completeness; null where all are unknown. Burrow
    shows everything above WARN as ERR; here the worst keeps its name.

    >>> evaluated = pa.table([[1, 4, None], [7, 2, None], [1.0, 0.5, 1.0]], schema=STATUS_SCHEMA)
    >>> group_statuses(pa.array(["g", "g", "g"]), evaluated).to_pylist()
    [{'group_id': 'g', 'status': 4, 'completeness': 0.3333333333333333, 'partitions': 3, 'unknown_partitions': 1}]
    """
    is_unknown = pc.is_null(partitions["status"])
    is_full = pc.and_(pc.invert(is_unknown), pc.greater_equal(partitions["completeness"], 1.0))
    columns = {"group_id": group_ids, "status": partitions["status"], "full": is_full, "unknown": is_unknown}
    worst = (
        pa.table({**columns, "full": is_full.cast(pa.float64()), "unknown": is_unknown.cast(pa.int64())})
        .group_by("group_id")
        .aggregate([("status", "max"), ("full", "mean"), ([], "count_all"), ("unknown", "sum")])
    )
    columns_in_order = ["group_id", "status_max", "full_mean", "count_all", "unknown_sum"]
    return worst.select(columns_in_order).rename_columns(GROUP_STATUS_SCHEMA.names).cast(GROUP_STATUS_SCHEMA)


def status_names(statuses: pa.ChunkedArray) -> pa.ChunkedArray:
    """Name each status; null where there is none.

    >>> status_names(pa.chunked_array([pa.array([1, None, 5], pa.int8())])).to_pylist()
    ['OK', None, 'STALL']
    """
    known = pa.array([status.value for status in Status], pa.int8())
    names = pa.chunked_array([pa.array([status.name for status in Status])])
    return names.take(pc.index_in(statuses, value_set=known))


def is_suspect(evaluated: pa.Table) -> BoolArray:
    """The rows (STATUS_SCHEMA) that are WARN, or would be if all that is left were records."""
    suspect: BoolArray = evaluated["status_rule"].fill_null(-1).to_numpy()
    return np.isin(suspect, (_WARN_RULE, MARKERS_RULE))


def _numbers(column: pa.Array) -> tuple[Int64Array, BoolArray]:
    """Values, and which of them are known."""
    return column.fill_null(0).to_numpy(zero_copy_only=False), column.is_valid().to_numpy(zero_copy_only=False)


def _newest(windows: Windows, matrix: Int64Array) -> Int64Array:
    entries = matrix.shape[1]
    at = entries - 1 - np.argmax(windows.is_entry[:, ::-1], axis=1)
    newest: Int64Array = np.take_along_axis(matrix, at[:, np.newaxis], axis=1)[:, 0]
    return newest


def _oldest(windows: Windows, matrix: Int64Array) -> Int64Array:
    at = np.argmax(windows.is_entry, axis=1)
    oldest: Int64Array = np.take_along_axis(matrix, at[:, np.newaxis], axis=1)[:, 0]
    return oldest


def _reached(windows: Windows, end_offset: Int64Array, is_known: BoolArray) -> BoolArray:
    reached: BoolArray = is_known & (end_offset <= _newest(windows, windows.committed_offset))
    return reached


def _is_silent(windows: Windows, now_ms: Int64Array, lone_commit_silence_ms: int) -> BoolArray:
    """Rule 2's first half. Timestamps that run backwards span no time, not less than none."""
    last_ms = _newest(windows, windows.timestamp_ms)
    span_ms = np.maximum(last_ms - _oldest(windows, windows.timestamp_ms), 0)
    span_ms = np.where(windows.is_entry.sum(axis=1) == 1, lone_commit_silence_ms, span_ms)
    is_silent: BoolArray = now_ms - last_ms > span_ms
    return is_silent


def _is_thrown_back(windows: Windows) -> BoolArray:
    """Rule 3. `before` is the commit that the first fall fell from."""
    offsets, is_pair = windows.committed_offset, windows.is_entry[:, :-1] & windows.is_entry[:, 1:]
    falls = is_pair & (offsets[:, 1:] < offsets[:, :-1])
    fall_at = np.argmax(falls, axis=1)[:, np.newaxis]
    before = np.take_along_axis(offsets, fall_at, axis=1)
    is_later = windows.is_entry & (np.arange(offsets.shape[1]) > fall_at)
    is_recovered = (is_later & (offsets >= before)).any(axis=1)
    is_thrown_back: BoolArray = falls.any(axis=1) & ~is_recovered
    return is_thrown_back


def _moves(windows: Windows) -> BoolArray:
    is_pair = windows.is_entry[:, :-1] & windows.is_entry[:, 1:]
    moves: BoolArray = (is_pair & (windows.committed_offset[:, 1:] != windows.committed_offset[:, :-1])).any(axis=1)
    return moves


def _never_catches_up(windows: Windows) -> BoolArray:
    """Rule 6: no lag is lower than the one seen before it, over entries without one. Equal is not lower."""
    before = np.full(len(windows.lag), -1, dtype=np.int64)
    falls = np.zeros(len(windows.lag), dtype=np.bool_)
    for lag, has_lag in zip(windows.lag.T, windows.has_lag.T, strict=True):
        falls |= has_lag & (lag < before)
        before = np.where(has_lag, lag, before)
    never: BoolArray = (windows.has_lag.sum(axis=1) >= 2) & ~falls
    return never
