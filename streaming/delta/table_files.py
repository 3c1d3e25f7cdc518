"""Finds missing and damaged files of Delta tables on a local disk.

If a log entry is an empty file, delta-rs ignores this log entry without an error. So its rows are missing. For other
damage, delta-rs reports internal errors of Rust. So this module checks the files by four rules before delta-rs opens
them:

1. A table has a log. A folder is damaged if it has files but no log entry. A folder that does not exist is not damaged.
2. The log is read from its last checkpoint. Without a checkpoint, it is read from version 0. Each later log entry must
   exist and must be JSON. The log entry with the same version as the last checkpoint must also exist. delta-rs never
   reads this log entry, but cannot append rows without it.
3. A checkpoint must be a complete Parquet file. The checkpoint that `_last_checkpoint` names must exist. If
   `_last_checkpoint` is not JSON, this file is ignored.
4. Each data file of the last version must exist, must have the size from the log, and must have the end of a Parquet
   file.

After a process is killed, two kinds of files can remain: temporary files, and data files without a log entry. These
files are not damage.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.delta.tables import TABLES
from streaming.errors import STAYS, RemedyError, storage_remedy
from streaming.spark.folder import DamagedFile, Folder, LocalFolder, folder_refusal, local_folder

LOG = "_delta_log"
_ENTRY = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PARQUET = b"PAR1"


class TableDamagedError(RemedyError):
    """Error: a file of a table is missing or damaged, or this process cannot use the file."""

    exit_code = STAYS


def check_tables(root: str) -> None:
    """Check that the folder of tables can be used and that no table is damaged.

    Raises TableDamagedError with the remedy.
    """
    folder = local_folder(root)
    if folder is None:
        return
    if refusal := folder.refusal():
        raise TableDamagedError(_refusal_text(root, refusal))
    refuse_damaged_tables(root)


def table_refusal(uri: str) -> OSError | None:
    """Return the reason why the monitor cannot write to a table on a local disk now, or None if it can write."""
    folder = local_folder(uri)
    return None if folder is None else folder_refusal(folder.root)


def refuse_damaged_tables(root: str) -> None:
    """Check that no table is damaged. Raises TableDamagedError.

    A full disk is not an error here, because space can become free later.
    """
    folder = local_folder(root)
    if folder is None:
        return
    try:
        for name, damage in damaged_tables(folder):
            raise TableDamagedError(
                f"table {root}/{name} is damaged ({damage}): run `rebalance-monitor rebuild --repair-tables`,"
                " which keeps the files that it replaces, or set paths.tables to a different folder"
            )
    except OSError as error:
        raise TableDamagedError(_refusal_text(root, error)) from None


def _refusal_text(root: str, error: OSError) -> str:
    return (
        f"the tables in {root} cannot be used ({error.filename}: {error.strerror}): {storage_remedy(error)},"
        " or set paths.tables to a different folder"
    )


def damaged_tables(root: LocalFolder) -> Iterator[tuple[str, DamagedFile]]:
    """Return the name of each damaged table with its first damaged file. Raises OSError for an unreadable file."""
    for table in TABLES:
        folder = LocalFolder(root.root / table.name)
        if damage := find_table_damage(folder):
            yield table.name, damage


def find_table_damage(folder: LocalFolder) -> DamagedFile | None:
    """Return the first file that is missing or damaged (rules 1 to 4). None if the table is not damaged."""
    if not folder.root.exists():
        return None
    damage = find_log_damage(folder)
    if damage is not None and "missing" in damage.what:
        damage = find_log_damage(folder)  # a different process may have removed old entries during the first check
    return damage or next(damaged_rows(folder), None)


def find_log_damage(folder: Folder) -> DamagedFile | None:
    """Return the first damaged file of the log (rules 1 to 3). None if the log is not damaged."""
    names = folder.names(LOG)
    entries = {int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))}
    checkpoints = {int(match[1]) for name in names if (match := _CHECKPOINT.fullmatch(name))}
    if not entries and not checkpoints:
        return DamagedFile(LOG, "has no entry") if folder.names("") else None
    if fault := _hint_fault(folder.read(f"{LOG}/_last_checkpoint"), checkpoints):
        return DamagedFile(f"{LOG}/_last_checkpoint", fault)
    last = max(checkpoints, default=-1)
    if last >= 0 and (fault := _parquet_fault(folder.read(f"{LOG}/{last:020}.checkpoint.parquet"))):
        return DamagedFile(f"{LOG}/{last:020}.checkpoint.parquet", fault)
    if last > max(entries, default=-1):
        return DamagedFile(log_entry(last), "is missing, but its checkpoint exists")
    for version in range(last + 1, max(entries, default=-1) + 1):
        name = log_entry(version)
        if fault := _entry_fault(folder.read(name)):
            return DamagedFile(name, fault)
    return None


def log_entry(version: int) -> str:
    """Return the file name of a version's log entry."""
    return f"{LOG}/{version:020}.json"


def _hint_fault(stored: bytes | None, checkpoints: set[int]) -> str | None:
    try:
        hint = json.loads(stored or b"")
    except ValueError:
        return None
    named = hint.get("version") if isinstance(hint, dict) else None
    return "names a checkpoint that is missing" if isinstance(named, int) and named not in checkpoints else None


def _parquet_fault(stored: bytes | None) -> str | None:
    if not stored:
        return "is missing" if stored is None else "is empty"
    return None if len(stored) > 12 and stored[:4] == stored[-4:] == _PARQUET else "is not a Parquet file"


def _entry_fault(stored: bytes | None) -> str | None:
    if not stored:
        return "is missing" if stored is None else "is empty"
    try:
        actions = [json.loads(line) for line in stored.splitlines() if line.strip()]
    except ValueError:
        return "is not JSON"
    return None if actions and all(isinstance(action, dict) for action in actions) else "contains no actions"


def damaged_rows(folder: LocalFolder) -> Iterator[DamagedFile]:
    """Return the damaged data files of the last version (rule 4)."""
    for name, size_bytes in _files_of_rows(folder):
        path = folder.root / name
        try:
            with path.open("rb") as file:
                actual_bytes = path.stat().st_size
                if actual_bytes != size_bytes:
                    what = "is empty" if actual_bytes == 0 else f"has {actual_bytes} of {size_bytes} bytes"
                    yield DamagedFile(name, what)
                    continue
                file.seek(-4, 2)
                if file.read(4) != _PARQUET:
                    yield DamagedFile(name, "is not a Parquet file")
        except FileNotFoundError:
            yield DamagedFile(name, "is missing")


def _files_of_rows(folder: LocalFolder) -> Sequence[tuple[str, int]]:
    if not folder.names(LOG):
        return []
    try:
        actions: Mapping[str, pa.Array] = pa.table(DeltaTable(str(folder.root)).get_add_actions(flatten=True))
    except DeltaError as error:
        raise TableDamagedError(
            f"table {folder.root} cannot be opened ({str(error).partition(chr(10))[0]}):"
            " run `rebalance-monitor rebuild --repair-tables`, which keeps the files that it replaces"
        ) from None
    names = (unquote(name) for name in actions["path"].to_pylist())
    return sorted(zip(names, actions["size_bytes"].to_pylist(), strict=True))
