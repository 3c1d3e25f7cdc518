"""Tests of the values of the soak (logs, folders and processes) without a broker."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.bench.growth import Reading
from tests.bench.run_soak import _summary_line, soak
from tests.bench.soak import AppendTimes, file_values, process_values


def test_append_times_are_read_from_the_end_of_the_previous_read(tmp_path: Path) -> None:
    log = tmp_path / "process.log"
    log.write_text("DEBUG 3 rows appended to file:///a b/rebalances/ in 4.0 ms\nother\n")
    appends = AppendTimes(log)
    assert appends.values() == {"append, ms": 4.0}
    assert appends.values() == {}, "no append since"
    with log.open("a") as more:
        more.write("DEBUG 1 rows appended to file:///t/ in 10.0 ms\nDEBUG 1 rows appended to file:///t/ in 99")
    assert appends.values() == {"append, ms": 10.0}, "an incomplete line is read later"


def test_files_are_counted_by_folder(tmp_path: Path) -> None:
    for name in (
        "monitor/tables/rebalances/_delta_log/0.json",
        "monitor/tables/rebalances/date=2024-10-04/part.parquet",
        "monitor/checkpoint/monitor.json",
        "monitor/checkpoint/query/metadata",
        "monitor/checkpoint/query/state/0/1/2.delta",
        "monitor/checkpoint/query/sources/0/7",
        "temporary/spark-1/rocksdb",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    values = {name: value for name, value in file_values(tmp_path).items() if name.startswith("files")}
    assert values == {
        "files: checkpoint/.": 1,
        "files: checkpoint/query": 1,
        "files: checkpoint/query/sources": 1,
        "files: checkpoint/query/state": 1,
        "files: log entries of the tables": 1,
        "files: tables": 1,
        "files: temporary": 1,
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports this value")
def test_allocated_memory_does_not_include_mapped_files() -> None:
    """A soak showed a growth of 12 MB per minute.

    Other Python processes ended, and their share of the mapped libraries was added to the driver's PSS.
    """
    before_mib = process_values(os.getpid())["allocated by the driver, MiB"]
    allocated = b"x" * (64 << 20)
    assert process_values(os.getpid())["allocated by the driver, MiB"] - before_mib > 60
    del allocated


def test_the_summary_line_has_the_most_important_values() -> None:
    values = {**process_values(os.getpid()), "files: temporary": 3}
    line = _summary_line(Reading(0.1, values))
    assert line.startswith("   6.0 min: driver / JVM / workers ")
    assert line.endswith("3 files on disk, append none")


def test_zero_hours_are_rejected() -> None:
    assert CliRunner().invoke(soak, ["--hours", "0"]).exit_code == 2
