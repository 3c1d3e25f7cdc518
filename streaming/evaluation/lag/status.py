"""Evaluate the status of each group and partition from the last commits: OK, WARN, STOP, STALL or REWIND.

The rules are Burrow's sliding-window rules. W is the window of commits. CL is the current lag. A is the allowed lag.
The first rule that applies determines the status. The output contains the number of this rule:

1. CL <= A: OK. Then the group has read everything, so no other rule is needed.
2. STOP, if two conditions are true. First, the time since the last commit is longer than the time from W's first commit
   to W's last commit, and longer than MIN_SILENCE_MS. If W has a single commit, the time since this commit must be
   longer than LONE_COMMIT_SILENCE_MS. Second, the next offset is below the *old end offset*: the end offset in the last
   sample that is at least RECENT_END_OFFSETS_MS older than `read_up_to_ms`. So the group had at least this time to read
   an unread record and to commit, and the monitor has read all commits of this time. If the next offset has reached the
   old end offset, all unread records can be new, so the status is not STOP. A client that has read everything does not
   have to commit (Burrow issue 303). If all samples are newer, the status is not STOP, because the age of the record is
   unknown. Rule 2 comes before rule 4, because rule 4 reports OK for an old lag of 0 in W (Burrow issue 290).
3. REWIND: a committed offset decreases, and all later commits stay below the offset before the decrease. Only the first
   decrease in W is checked. During rebalances, committed offsets often decrease for a short time and then increase
   again. Such a decrease is not REWIND. After a reset to the earliest offset, W still contains lags of 0 for some time.
   Rule 4 would report OK after such a reset, so rule 3 comes before rule 4 (Burrow issue 716).
4. OK: at least one lag in W is at most A. The group had read everything at least once within W.
5. STALL: W has two or more commits, and all commits have the same offset. The client is alive but makes no progress.
6. WARN: W has two or more known lags, and each known lag is equal to or greater than the previous known lag. The group
   is slower than the producers.
7. OK: no other rule applies.
8. Unknown: an open transaction begins at the next offset. Until the transaction ends, a read_committed consumer
   receives no record at or after the next offset. No record shows whether the consumer uses read_committed. Only rule 1
   comes before rule 8.
9. Unknown: all unread offsets may be transaction markers or records of aborted transactions (`next_offsets.py`). Rule 9
   replaces only rules 2, 5 and 6.

Intended differences from Burrow: Burrow's rule 2 has no MIN_SILENCE_MS and no LONE_COMMIT_SILENCE_MS. So if W has a
single commit, Burrow immediately shows STOP. If a client commits once per second, Burrow shows STOP after a pause of 10
seconds, for example after a rebalance. So the monitor reports Burrow's case 9 only after MIN_SILENCE_MS. If a clock was
set back within W, the last commit can be earlier than the first commit. Then only the positive times between
neighbouring commits count. STALL requires at least two commits. WARN requires at least two known lags. The time since
the last commit is `read_up_to_ms` minus the time of the last commit. So a delay of the monitor does not cause the
status STOP. The status is null if there are no commits, or if the lag or `read_up_to_ms` is unknown.

Known weakness: if the lag decreases once within W, the status is not WARN. So a slow group whose lag goes up and down
has the status OK. Burrow has the same weakness (issue 738).

Source: Burrow, `core/internal/evaluator/caching.go`. The tests contain the cases 0 to 15 of Burrow's `caching_test.go`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streaming.combine.big_endian import BoolArray, Int64Array
from streaming.evaluation.lag.stored.commit_windows import Windows


class Status(IntEnum):
    """The status numbers of Burrow. A greater number is worse. Burrow uses 3 for all statuses worse than WARN."""

    OK = 1
    WARN = 2
    STOP = 4
    STALL = 5
    REWIND = 6


STATUS_SCHEMA = pa.schema([("status", pa.int8()), ("status_rule", pa.int8()), ("completeness", pa.float64())])
"""The status, the number of its rule, and the filled share of the window (0-1).

`status` and `status_rule` are null if inputs are missing. If rule 8 or 9 applies, only `status` is null.
"""

RECENT_END_OFFSETS_MS = 100_000
"""Minimum age of the old end offset of rule 2: 100 s. Burrow stores 10 end offsets and requests them every 10 s."""

MIN_SILENCE_MS = 60_000
"""A partition gets STOP (rule 2) only after one minute without a commit. Rebalances and pauses are usually shorter."""

LONE_COMMIT_SILENCE_MS = 300_000
"""A window with a single commit gets STOP (rule 2) only after 5 minutes without a commit."""


@dataclass(frozen=True, slots=True)
class Tails:
    """Two arrays that describe the unread offsets of each row."""

    is_blocked: BoolArray
    maybe_only_markers: BoolArray


_WARN_RULE = 6
_LATE_RULES = (2, 5, _WARN_RULE)
_BY_RULE = np.array(
    [Status.OK, Status.STOP, Status.REWIND, Status.OK, Status.STALL, Status.WARN, Status.OK], dtype=np.int8
)
"""The statuses of rules 1 to 7."""
BLOCKED_RULE, MARKERS_RULE = 8, 9


def statuses(  # noqa: PLR0913, PLR0917 - the inputs of one evaluation
    windows: Windows,
    lag: pa.Array,
    read_up_to_ms: pa.Array,
    reached_end: BoolArray,
    allowed_lag: int = 0,
    tails: Tails | None = None,
) -> pa.Table:
    """Evaluate all windows together. Returns one row per window (STATUS_SCHEMA). An unknown value is null.

    `lag` is CL, from end offsets that were requested after the commits were read. `reached_end` is True if the next
    offset has reached the old end offset.

    >>> one = np.array([[100, 200, 300]])
    >>> every = np.ones((1, 3), dtype=np.bool_)
    >>> stalled = Windows(np.full((1, 3), 50), one, lag=one, is_entry=every, has_lag=every)
    >>> answer = statuses(stalled, pa.array([300]), pa.array([400]), np.array([False]))
    >>> Status(answer["status"][0].as_py()).name, answer["status_rule"].to_pylist(), answer["completeness"].to_pylist()
    ('STALL', [5], [1.0])
    """
    current_lag, has_current_lag = _numbers(lag)
    now_ms, has_now = _numbers(read_up_to_ms)
    commits = windows.is_entry.sum(axis=1)
    completeness = commits / windows.is_entry.shape[1]
    applies = [
        current_lag <= allowed_lag,
        _is_silent(windows, now_ms) & ~reached_end,
        _is_rewound(windows),
        (windows.has_lag & (windows.lag <= allowed_lag)).any(axis=1),
        (commits >= 2) & ~_moves(windows),
        _never_catches_up(windows),
    ]
    rule = np.select(applies, range(1, 7), default=7).astype(np.int8)
    status = _BY_RULE[rule - 1]
    if tails is not None:
        rule[tails.is_blocked & (rule > 1)] = BLOCKED_RULE
        rule[tails.maybe_only_markers & np.isin(rule, _LATE_RULES)] = MARKERS_RULE
    is_unknown = ~has_current_lag | ~has_now | (commits == 0)
    without_status = is_unknown | (rule >= BLOCKED_RULE)
    arrays = [pa.array(status, mask=without_status), pa.array(rule, mask=is_unknown), pa.array(completeness)]
    return pa.table(arrays, schema=STATUS_SCHEMA)


def status_names(statuses: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the name of each status, or null if the status is unknown.

    >>> status_names(pa.chunked_array([pa.array([1, None, 5], pa.int8())])).to_pylist()
    ['OK', None, 'STALL']
    """
    known = pa.array([status.value for status in Status], pa.int8())
    names = pa.chunked_array([pa.array([status.name for status in Status])])
    return names.take(pc.index_in(statuses, value_set=known))


def is_suspect(evaluated: pa.Table) -> BoolArray:
    """Return True for each row that has rule 6 (WARN) or rule 9 as `status_rule`."""
    suspect: BoolArray = evaluated["status_rule"].fill_null(-1).to_numpy()
    return np.isin(suspect, (_WARN_RULE, MARKERS_RULE))


def _numbers(column: pa.Array) -> tuple[Int64Array, BoolArray]:
    return column.fill_null(0).to_numpy(zero_copy_only=False), column.is_valid().to_numpy(zero_copy_only=False)


def _newest(windows: Windows, matrix: Int64Array) -> Int64Array:
    entries = matrix.shape[1]
    at = entries - 1 - np.argmax(windows.is_entry[:, ::-1], axis=1)
    newest: Int64Array = np.take_along_axis(matrix, at[:, np.newaxis], axis=1)[:, 0]
    return newest


def _is_silent(windows: Windows, now_ms: Int64Array) -> BoolArray:
    """Evaluate the first condition of rule 2."""
    newest_ms, first_at = _newest(windows, windows.timestamp_ms), np.argmax(windows.is_entry, axis=1)
    span_ms = newest_ms - np.take_along_axis(windows.timestamp_ms, first_at[:, np.newaxis], axis=1)[:, 0]
    is_pair = windows.is_entry[:, :-1] & windows.is_entry[:, 1:]
    forward_ms = np.where(is_pair, np.maximum(np.diff(windows.timestamp_ms, axis=1), 0), 0).sum(axis=1)
    span_ms = np.where(span_ms < 0, forward_ms, span_ms)  # a clock was set back
    min_ms = np.where(windows.is_entry.sum(axis=1) == 1, LONE_COMMIT_SILENCE_MS, MIN_SILENCE_MS)
    is_silent: BoolArray = now_ms - newest_ms > np.maximum(span_ms, min_ms)
    return is_silent


def _is_rewound(windows: Windows) -> BoolArray:
    offsets, is_pair = windows.committed_offset, windows.is_entry[:, :-1] & windows.is_entry[:, 1:]
    decreases = is_pair & (offsets[:, 1:] < offsets[:, :-1])
    decrease_at = np.argmax(decreases, axis=1)[:, np.newaxis]
    before = np.take_along_axis(offsets, decrease_at, axis=1)
    is_later = windows.is_entry & (np.arange(offsets.shape[1]) > decrease_at)
    is_recovered = (is_later & (offsets >= before)).any(axis=1)
    is_rewound: BoolArray = decreases.any(axis=1) & ~is_recovered
    return is_rewound


def _moves(windows: Windows) -> BoolArray:
    is_pair = windows.is_entry[:, :-1] & windows.is_entry[:, 1:]
    moves: BoolArray = (is_pair & (windows.committed_offset[:, 1:] != windows.committed_offset[:, :-1])).any(axis=1)
    return moves


def _never_catches_up(windows: Windows) -> BoolArray:
    before = np.full(len(windows.lag), -1, dtype=np.int64)
    decreases = np.zeros(len(windows.lag), dtype=np.bool_)
    for lag, has_lag in zip(windows.lag.T, windows.has_lag.T, strict=True):
        decreases |= has_lag & (lag < before)
        before = np.where(has_lag, lag, before)
    never: BoolArray = (windows.has_lag.sum(axis=1) >= 2) & ~decreases
    return never
