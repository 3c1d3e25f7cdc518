"""Writes the history of a Delta table straight into its folder: 30 days of a monitor, in seconds.

Each commit adds one small file, as an append does. Once per day there is a checkpoint and a compaction. So the table
has files and log entries of all ages. Each has the modification time that it would have in a real table.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The duration of a history, and its commits per day."""

    days: int
    commits_per_day: int


def write_history(folder: Path, application_id: str, history: TableHistory) -> int:
    """Add a history to a table whose last commit was one append. Returns the version of its last transaction."""
    handle = DeltaTable(str(folder))
    version, template = handle.version(), _last_add(folder, handle.version())
    sample = folder / template["path"]
    now_seconds = time.time()
    _age(folder, now_seconds - history.days * DAY_SECONDS)
    batch_id = version
    for day in range(history.days):
        since_seconds = now_seconds - (history.days - day) * DAY_SECONDS
        added = []
        for number in range(history.commits_per_day):
            version, batch_id = version + 1, batch_id + 1
            at_seconds = since_seconds + (number + 1) / (history.commits_per_day + 2) * DAY_SECONDS
            added.append(_add(folder, sample, template, version, at_seconds))
            transaction = {"txn": {"appId": application_id, "version": batch_id}}
            _write_entry(folder, version, at_seconds, {"add": added[-1]}, transaction)
        version += 1
        at_seconds = since_seconds + DAY_SECONDS * 0.99
        removed = [{"remove": _removal(add, at_seconds)} for add in added]
        merged = {**_add(folder, sample, template, version, at_seconds), "dataChange": False}
        _write_entry(folder, version, at_seconds, {"add": merged}, *removed)
        _make_checkpoint(folder, version, at_seconds)
    return batch_id


def _age(folder: Path, at_seconds: float) -> None:
    """Set the age of existing entries to that of the history, because the first new entry ends the cleaning."""
    for entry in (folder / "_delta_log").iterdir():
        os.utime(entry, (at_seconds, at_seconds))


def _last_add(folder: Path, version: int) -> Mapping[str, Any]:
    lines = _entry(folder, version).read_text().splitlines()
    found: Mapping[str, Any] = next(action["add"] for action in map(json.loads, lines) if "add" in action)
    return found


def _add(folder: Path, sample: Path, template: Mapping[str, Any], version: int, at_seconds: float) -> Mapping[str, Any]:
    path = f"{Path(template['path']).parent}/part-{version:020}.parquet"
    (folder / path).write_bytes(sample.read_bytes())
    os.utime(folder / path, (at_seconds, at_seconds))
    return {**template, "path": path, "modificationTime": int(at_seconds * 1000)}


def _removal(add: Mapping[str, Any], at_seconds: float) -> Mapping[str, Any]:
    return {
        **{name: add[name] for name in ("path", "partitionValues", "size")},
        "deletionTimestamp": int(at_seconds * 1000),
        "dataChange": False,
        "extendedFileMetadata": True,
    }


def _write_entry(folder: Path, version: int, at_seconds: float, *actions: Mapping[str, Any]) -> None:
    commit = {"commitInfo": {"timestamp": int(at_seconds * 1000), "operation": "WRITE"}}
    entry = _entry(folder, version)
    entry.write_text("".join(f"{json.dumps(action)}\n" for action in (commit, *actions)))
    os.utime(entry, (at_seconds, at_seconds))


def _make_checkpoint(folder: Path, version: int, at_seconds: float) -> None:
    DeltaTable(str(folder)).create_checkpoint()
    checkpoint = _entry(folder, version).with_suffix(".checkpoint.parquet")
    os.utime(checkpoint, (at_seconds, at_seconds))


def _entry(folder: Path, version: int) -> Path:
    return folder / "_delta_log" / f"{version:020}.json"
