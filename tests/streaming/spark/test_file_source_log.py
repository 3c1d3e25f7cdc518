"""Tests of the log of the file source on synthetic log files, without Spark. `test_session.py` has a real query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streaming.spark.file_source_log import needed_entries, shorten_file_source_log
from tests.streaming.spark.test_checkpoint import LocalFiles

POLLS_OF_30_DAYS = 30 * 86_400 // 5


def entry(number: int) -> bytes:
    """Return an entry as Spark writes it."""
    path = f"file:///var/lib/check%20point/feedback/polled-{number}-{number}.json"
    return b'{"path":"%s","timestamp":%d,"batchId":%d}' % (path.encode(), 1_795_346_997_263 + 5000 * number, number)


def log_of(*numbers: int) -> bytes:
    """Return a `.compact` file as Spark writes it, without a line feed at its end."""
    return b"\n".join([b"v1", *map(entry, numbers)])


def checkpoint(tmp_path: Path, newest: int, entries: bytes, last_offsets: tuple[int, int], *, sources: int = 1) -> Path:
    """Write a checkpoint whose last two batches end at these offsets of the file source. Return the newest log file."""
    files = LocalFiles(tmp_path)
    others = "{}\n" * (sources - 1)
    for batch, offset in zip((99, 100), last_offsets, strict=True):
        files.write(f"query/offsets/{batch}", f'v1\n{{}}\n{others}{{"logOffset":{offset}}}\n'.encode())
    name = f"query/sources/{sources - 1}/{newest}.compact"
    files.write(name, entries)
    return tmp_path / name


def test_after_30_days_only_the_entries_of_the_last_batch_and_of_existing_files_stay(tmp_path: Path) -> None:
    """The file had 67 MB after 30 days. Spark wrote it again each minute, and read it at each start."""
    last = POLLS_OF_30_DAYS - 1
    compact = checkpoint(tmp_path, last, log_of(*range(POLLS_OF_30_DAYS)), (last - 1, last))
    (tmp_path / "feedback").mkdir()
    (tmp_path / "feedback" / "polled-77-77.json").write_bytes(b"")
    shorten_file_source_log(LocalFiles(tmp_path))
    assert compact.read_bytes() == log_of(77, last)


def test_only_the_newest_log_file_of_the_file_source_is_shortened(tmp_path: Path) -> None:
    """The first source is the topic. Spark removes the older log files itself."""
    older = checkpoint(tmp_path, 9, log_of(*range(10)), (18, 19), sources=2)
    compact = checkpoint(tmp_path, 19, log_of(*range(20)), (18, 19), sources=2)
    (tmp_path / "query/sources/1/20").write_bytes(log_of(20))
    shorten_file_source_log(LocalFiles(tmp_path))
    assert compact.read_bytes() == log_of(19)
    assert older.read_bytes() == log_of(*range(10))
    assert (tmp_path / "query/sources/1/20").read_bytes() == log_of(20)


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (b"v2\n" + entry(0), "a later version"),
        (b"\n" + entry(0), "an empty first line"),
        (log_of(0)[:-1], "half of an entry"),
        (log_of(0) + b"\n", "an empty last line"),
        (b"v1\n[]", "not an object"),
        (b'v1\n{"path":"a","timestamp":1}', "no batch"),
        (b'v1\n{"path":"a","timestamp":1,"batchId":"0"}', "a batch that is text"),
        (b'v1\n{"path":1,"timestamp":1,"batchId":0}', "a path that is a number"),
        (b"v1\n\xff\xfe", "not UTF-8"),
        (b"", "an empty file"),
    ],
)
def test_a_log_with_an_unknown_format_is_not_changed(tmp_path: Path, entries: bytes, why: str) -> None:
    """Only Spark or the check of the checkpoint may judge a damaged file."""
    compact = checkpoint(tmp_path, 9, entries, (98, 99))
    shorten_file_source_log(LocalFiles(tmp_path))
    assert compact.read_bytes() == entries, why


@pytest.mark.parametrize("last_line", ["-", "{}", "[]", '{"logOffset":"x"}', "", "garbage"])
def test_without_the_offset_of_the_batch_before_nothing_is_changed(tmp_path: Path, last_line: str) -> None:
    compact = checkpoint(tmp_path, 9, log_of(*range(10)), (8, 9))
    (tmp_path / "query/offsets/99").write_text(f"v1\n{{}}\n{last_line}")
    shorten_file_source_log(LocalFiles(tmp_path))
    assert compact.read_bytes() == log_of(*range(10))


def test_a_checkpoint_without_a_log_or_with_one_batch_is_not_changed(tmp_path: Path) -> None:
    shorten_file_source_log(LocalFiles(tmp_path))
    compact = checkpoint(tmp_path, 9, log_of(*range(10)), (8, 9))
    (tmp_path / "query/offsets/99").unlink()
    shorten_file_source_log(LocalFiles(tmp_path))
    assert compact.read_bytes() == log_of(*range(10))
    compact.unlink()
    (tmp_path / "query/offsets/99").write_bytes(b"")
    shorten_file_source_log(LocalFiles(tmp_path))


def test_entries_stay_as_spark_wrote_them() -> None:
    line = b'{"path":"file:///f/a%2520b.json", "timestamp":1,  "batchId":0, "new":{"in":"Spark 9"}}'
    assert json.loads(line)
    assert needed_entries(b"v1\n" + line, 5, {"a%20b.json"}) == b"v1\n" + line
    assert needed_entries(b"v1\n" + line, 5, set()) == b"v1"
    assert needed_entries(b"v1\n" + line, -1, set()) == b"v1\n" + line
