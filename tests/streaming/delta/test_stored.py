"""Tables read back without Spark: the rows asked for, whatever a group is called, and an end without a crash."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import pytest

from streaming.combine.partition_state import DecodeFailure
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table, quarantine_rows
from streaming.delta.stored import NoTableError, stored_rows
from streaming.delta.tables import QUARANTINE

DAY_MS = 86_400_000


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A table with two records a day, on three days, of two clusters with unusual names."""
    tables = DeltaTables(str(tmp_path), "one")
    tables.open_all()
    for cluster in ("it's", "a\\' OR true --"):
        for day in (20_000, 20_001, 20_002):
            records = [
                DecodeFailure(0, at, day * DAY_MS, b"k", None, "truncated", None) for at in (2 * day, 2 * day + 1)
            ]
            tables.append(QUARANTINE, arrow_table(QUARANTINE, quarantine_rows(cluster, records)[QUARANTINE]))
    return tmp_path


@pytest.mark.parametrize(
    ("cluster", "dates", "offsets"),
    [
        ("it's", None, [40_000, 40_001, 40_002, 40_003, 40_004, 40_005]),  # a quote within a name
        ("a\\' OR true --", [date(2024, 10, 5)], [40_002, 40_003]),  # a name that tries to be SQL
        ("it's", [date(2024, 10, 6), date(2024, 10, 4)], [40_000, 40_001, 40_004, 40_005]),  # in the order of the log
        ("it's", [], []),  # no day, no row
        ("", None, []),  # a cluster that has none
    ],
)
def test_rows_are_those_asked_for(
    root: Path, cluster: str, dates: Sequence[date] | None, offsets: Sequence[int]
) -> None:
    found = stored_rows(str(root), QUARANTINE, dates, cluster=cluster)
    assert [row["offsets_topic_offset"] for row in found] == offsets
    assert {row["cluster"] for row in found} <= {cluster}


def test_a_damaged_file_is_one_line(root: Path) -> None:
    damaged = next((root / QUARANTINE.name).rglob("*.parquet"))
    damaged.write_bytes(damaged.read_bytes()[:50])
    with pytest.raises(NoTableError, match=r"quarantine cannot be read .*: check that the storage is reachable"):
        stored_rows(str(root), QUARANTINE)


def test_reading_starts_no_thread_that_can_abort_the_exit(root: Path) -> None:
    """`history` ended by SIGABRT one time in six: https://github.com/apache/arrow/issues/34314.

    What started the threads, the datasets of Arrow, must not even be imported.
    """
    program = (
        "import sys\n"
        "from streaming.delta.stored import stored_rows\n"
        "from streaming.delta.tables import QUARANTINE\n"
        f"print(len(stored_rows({str(root)!r}, QUARANTINE)), 'pyarrow.dataset' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["12", "False"], ran.stderr
