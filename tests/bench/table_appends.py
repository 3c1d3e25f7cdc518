"""The part `tables`: measures an append to a new table, and to a table with 30 days of history.

The old table is opened and maintained as the monitor does it. Before the maintenance, its log has an entry for each
commit of 30 days.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

from streaming.combine.partition_state import DecodeFailure
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, quarantine_rows
from streaming.delta.tables import QUARANTINE
from tests.bench.figures import Figure, Target, median
from tests.bench.table_history import TableHistory, write_history

HISTORY = TableHistory(days=30, commits_per_day=700)
OLD_TO_NEW_TARGET = Target(1.5, "at most")

_APPENDS = 100
_RETENTION_DAYS = 90


def table_append_figures(folder: Path) -> list[Figure]:
    """Return the figures in processor time. The baseline is the new table."""
    new, old = _open_tables(folder / "new"), _open_tables(folder / "old")
    for tables in (new, old):
        tables.append_batch(QUARANTINE, _row(), 0)
    batch_id = write_history(folder / "old" / QUARANTINE.name, f"{QUARANTINE.name}/bench", HISTORY)
    entries = _entries(folder / "old")
    old = _open_tables(folder / "old")
    before_ms = _append_milliseconds(old, batch_id + 1)
    with _measure_cpu() as maintenance:
        old.tidy((datetime.now(timezone.utc) - timedelta(days=_RETENTION_DAYS)).date())
    # In turn, so that other processes slow both equally.
    new_ms, old_ms = list[float](), list[float]()
    for update in range(4):
        new_ms.append(_append_milliseconds(new, 1 + update * _APPENDS))
        old_ms.append(_append_milliseconds(old, batch_id + 1 + (update + 1) * _APPENDS))
    return [
        Figure(
            f"append, {HISTORY.days} days old, after maintenance (baseline: new table)",
            "ms",
            median(old_ms),
            median(new_ms),
        ),
        Figure("ratio of old to new", "", median(old_ms) / median(new_ms), target=OLD_TO_NEW_TARGET),
        Figure(f"append before the first maintenance ({entries:,} log entries)", "ms", before_ms, median(new_ms)),
        Figure("first maintenance of all tables", "s", maintenance[0]),
        Figure(
            "log entries after maintenance and appends", "files", _entries(folder / "old"), _entries(folder / "new")
        ),
    ]


def _open_tables(folder: Path) -> DeltaTables:
    tables = DeltaTables(str(folder))
    tables.open_all()
    return tables


def _row() -> pa.Table:
    """Return one row of today for the table quarantine, which is the smallest possible append."""
    record = DecodeFailure(0, 1, int(time.time() * 1000), b"key", None, "truncated", None)
    return arrow_table(QUARANTINE, quarantine_rows("bench", [record])[QUARANTINE])


def _append_milliseconds(tables: DeltaTables, first_batch_id: int) -> float:
    """Return the mean processor time of an append in milliseconds, with checkpoints."""
    rows = _row()
    with _measure_cpu() as spent:
        for batch_id in range(first_batch_id, first_batch_id + _APPENDS):
            tables.append_batch(QUARANTINE, rows, batch_id)
    return spent[0] * 1000 / _APPENDS


@contextmanager
def _measure_cpu() -> Iterator[list[float]]:
    spent: list[float] = []
    started = time.process_time()
    yield spent
    spent.append(time.process_time() - started)


def _entries(folder: Path) -> int:
    return sum(1 for _ in (folder / QUARANTINE.name / "_delta_log").glob("*.json"))
