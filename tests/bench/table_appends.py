"""Part of the benchmark: an append to a young table and to one with 30 days of history, side by side.

The old table is opened and tidied as a monitor does it. Before that, its log has an entry for each commit of 30 days.
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
from tests.bench.figures import Bar, Figure, median
from tests.bench.table_history import Past, write_past

PAST = Past(days=30, commits_per_day=700)
OLD_OVER_YOUNG = Bar(1.5, "at most")

_APPENDS = 100
_RETENTION_DAYS = 90


def table_append_figures(folder: Path) -> list[Figure]:
    """Processor time, which hardly depends on what else the machine does. "plain" is the young table."""
    young, old = _opened(folder / "young"), _opened(folder / "old")
    for tables in (young, old):
        tables.append_batch(QUARANTINE, _row(), 0)
    batch_id = write_past(folder / "old" / QUARANTINE.name, f"{QUARANTINE.name}/bench", PAST)
    entries = _entries(folder / "old")
    old = _opened(folder / "old")
    untidied = _append_milliseconds(old, batch_id + 1)
    with _timed() as tidying:
        old.tidy((datetime.now(timezone.utc) - timedelta(days=_RETENTION_DAYS)).date())
    # By turns, so that both have the same machine.
    of_young, of_old = list[float](), list[float]()
    for update in range(4):
        of_young.append(_append_milliseconds(young, 1 + update * _APPENDS))
        of_old.append(_append_milliseconds(old, batch_id + 1 + (update + 1) * _APPENDS))
    return [
        Figure(f"append, {PAST.days} days old, tidied (beside: young table)", "ms", median(of_old), median(of_young)),
        Figure("ratio of these", "", median(of_old) / median(of_young), bar=OLD_OVER_YOUNG),
        Figure(f"append before the first upkeep ({entries:,} log entries)", "ms", untidied, median(of_young)),
        Figure("first upkeep, all tables", "s", tidying[0]),
        Figure(
            "log entries after upkeep and the appends", "files", _entries(folder / "old"), _entries(folder / "young")
        ),
    ]


def _opened(folder: Path) -> DeltaTables:
    tables = DeltaTables(str(folder), "bench")
    tables.open_all()
    return tables


def _row() -> pa.Table:
    """A row of today, as quarantine has them: the smallest append there is."""
    record = DecodeFailure(0, 1, int(time.time() * 1000), b"key", None, "truncated", None)
    return arrow_table(QUARANTINE, quarantine_rows("bench", [record])[QUARANTINE])


def _append_milliseconds(tables: DeltaTables, first_batch_id: int) -> float:
    """The mean, checkpoints included."""
    rows = _row()
    with _timed() as spent:
        for batch_id in range(first_batch_id, first_batch_id + _APPENDS):
            tables.append_batch(QUARANTINE, rows, batch_id)
    return spent[0] * 1000 / _APPENDS


@contextmanager
def _timed() -> Iterator[list[float]]:
    spent: list[float] = []
    started = time.process_time()
    yield spent
    spent.append(time.process_time() - started)


def _entries(folder: Path) -> int:
    return sum(1 for _ in (folder / QUARANTINE.name / "_delta_log").glob("*.json"))
