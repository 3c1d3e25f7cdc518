"""Finds missing and damaged files of Delta tables on a local disk.

delta-rs ignores an empty log entry without an error, and the rows of this commit are missing. For other damage,
delta-rs reports internal errors of Rust. So the monitor checks the files before delta-rs opens them:

1. A table has a log. A folder is damaged if it has data files but no log entry. A missing folder is not damaged. A
   folder with only temporary files in its log is not damaged, because the monitor was killed before the table existed.
2. The log is read from its last checkpoint. If the log has no checkpoint, it is read from version 0. Each later log
   entry must exist and must be complete (`log_entries`). The log entry with the version of the last checkpoint must
   also exist, because delta-rs cannot append rows without this entry.
3. The last checkpoint must be a Parquet file that can be read completely. A different program can write a checkpoint
   in several parts, or put a UUID into its name. If `_last_checkpoint` refers to a checkpoint, this checkpoint must
   exist. If `_last_checkpoint` is not JSON, it is ignored. delta-rs must be able to open the table.
4. Each data file of the last version must exist and have the size from the log. Its last four bytes must be `PAR1`, as
   in every Parquet file. When the monitor starts, it reads only the rows of the tables from which it restores its state
   (`_RESTORED`), because a read of all tables can take minutes. Only a repair and the check after a failed maintenance
   read the rows of every table. A file with a time that Python does not support is damaged. A file is also damaged if
   Arrow can read its rows but a query cannot.
5. A table is not damaged if it has a Delta feature that delta-rs does not support. A different program can add such a
   feature. This is a separate error without a repair, because a repair would remove undamaged files.
6. If a folder has the name of an expected file, it counts as an empty file.

A killed process can leave temporary files, and data files without a log entry. The rules ignore these files.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError

from streaming.delta.log_entries import entry_fault
from streaming.delta.stored_table import can_query_file, panic_as_error
from streaming.delta.tables import GROUP_CONDITIONS, INCIDENTS, LAG_CAUSES, TABLES
from streaming.delta.tables.columns import TIME
from streaming.errors import REPAIR_REMEDY, STAYS, RemedyError, storage_remedy
from streaming.spark.causes import plain_cause
from streaming.spark.folder import DamagedFile, Folder, LocalFolder, folder_refusal, local_folder

LOG = "_delta_log"
_ENTRY = re.compile(r"([0-9]{20})\.json")
_CHECKPOINT = re.compile(
    r"(?P<version>[0-9]{20})\.checkpoint\.([0-9]{10}\.(?P<parts>[0-9]{10})\.|[0-9a-f-]{36}\.)?(parquet|json)"
)
_UNSUPPORTED = ("Unsupported: ", "Unsupported table features")
"""Parts of the messages of delta-rs about Delta features that it cannot read or cannot write."""
_HINT = "_last_checkpoint"
_PARQUET = b"PAR1"
_RESTORED = (GROUP_CONDITIONS, LAG_CAUSES, INCIDENTS)
_FIRST_TIME = pa.scalar(datetime.min.replace(tzinfo=timezone.utc), TIME)
_LAST_TIME = pa.scalar(datetime.max.replace(tzinfo=timezone.utc), TIME)
_BAD_ROWS = "has rows that cannot be read"


class UnusableTableError(RemedyError):
    """Error: a file of a table is missing or damaged, or this process cannot use the file."""

    exit_code = STAYS


def check_tables(root: str) -> None:
    """Raise UnusableTableError with the remedy if the folder of tables cannot be used, or if a table is damaged."""
    check_folder(root)
    refuse_damaged_tables(root)


def check_folder(root: str) -> None:
    """Raise UnusableTableError with the remedy if the folder of tables cannot be used."""
    folder = local_folder(root)
    if folder is not None and (refusal := folder.refusal()):
        raise UnusableTableError(_refusal_text(root, refusal))


def table_refusal(uri: str) -> OSError | None:
    """Return the reason why the monitor cannot write to a local table now, or None."""
    folder = local_folder(uri)
    return None if folder is None else folder_refusal(folder.root)


def refuse_damaged_tables(root: str) -> None:
    """Raise UnusableTableError if a table is damaged. A full disk is not damage."""
    folder = local_folder(root)
    if folder is None:
        return
    with refusing_unusable_files(root):
        for name, damage in damaged_tables(folder):
            raise UnusableTableError(
                f"table {root}/{name} is damaged ({damage}): {REPAIR_REMEDY}, or set paths.tables to a different folder"
            )


@contextmanager
def refusing_unusable_files(root: str) -> Iterator[None]:
    """Convert an error of the disk into an UnusableTableError with the remedy."""
    try:
        yield
    except OSError as error:
        raise UnusableTableError(_refusal_text(root, error)) from None


def _refusal_text(root: str, error: OSError) -> str:
    cause = f"{error.filename}: {error.strerror}" if error.filename else plain_cause(error)
    return (
        f"the folder {root} of the tables cannot be used ({cause}): {storage_remedy(error)}, or set paths.tables to a"
        " different folder"
    )


def damaged_tables(root: LocalFolder, *, reads_rows: bool = False) -> Iterator[tuple[str, DamagedFile]]:
    """Return the name and the first damaged file of each damaged table. Raises OSError for an unreadable file."""
    for table in TABLES:
        folder = LocalFolder(root.root / table.name)
        if damage := find_table_damage(folder, reads_rows=reads_rows or table in _RESTORED):
            yield table.name, damage


def find_table_damage(folder: LocalFolder, *, reads_rows: bool = False) -> DamagedFile | None:
    """Return the first file that is missing or damaged (rules 1 to 6). Return None if the table is not damaged.

    Raises UnusableTableError for a Delta feature that delta-rs does not support (rule 5).
    """
    if not folder.root.exists():
        return None
    damage = find_log_damage(folder)
    if damage is not None and "missing" in damage.what:
        damage = find_log_damage(folder)  # a different process may have removed old entries during the first check
    try:
        return damage or next(damaged_rows(folder, reads_rows=reads_rows), None)
    except DeltaError as error:
        return DamagedFile(LOG, f"cannot be opened: {plain_cause(error)}")


def find_log_damage(folder: Folder) -> DamagedFile | None:
    """Return the first damaged file of the log (rules 1 to 3). Return None if the log is not damaged."""
    names = folder.names(LOG)
    entries = {int(match[1]) for name in names if (match := _ENTRY.fullmatch(name))}
    checkpoints = complete_checkpoints(names)
    if not entries and not checkpoints:
        has_files = _HINT in names or {*folder.names("")} - {LOG}
        return DamagedFile(LOG, "has no entry") if has_files else None
    if fault := _hint_fault(_read(folder, f"{LOG}/{_HINT}"), checkpoints):
        return DamagedFile(f"{LOG}/{_HINT}", fault)
    last = max(checkpoints, default=-1)
    for name in checkpoints.get(last, ()):
        if name.endswith(".parquet") and (fault := _parquet_fault(_read(folder, f"{LOG}/{name}"))):
            return DamagedFile(f"{LOG}/{name}", fault)
    if last > max(entries, default=-1):
        return DamagedFile(log_entry(last), "is missing, but the checkpoint of this version exists")
    for version in range(last + 1, max(entries, default=-1) + 1):
        name = log_entry(version)
        if fault := entry_fault(_read(folder, name), version):
            return DamagedFile(name, fault)
    return None


def complete_checkpoints(names: Iterable[str]) -> Mapping[int, Sequence[str]]:
    """Return the files of each complete checkpoint of the log by its version.

    >>> complete_checkpoints([f"{7:020}.checkpoint.{1:010}.{2:010}.parquet"])
    {}
    """
    files: dict[tuple[int, int], list[str]] = defaultdict(list)
    for name in names:
        if match := _CHECKPOINT.fullmatch(name):
            files[int(match["version"]), int(match["parts"] or 1)].append(name)
    complete: dict[int, list[str]] = {}
    for (version, parts), of_version in files.items():
        if len(of_version) >= parts:
            complete.setdefault(version, []).extend(of_version)
    return complete


def _read(folder: Folder, name: str) -> bytes | None:
    try:
        return folder.read(name)
    except IsADirectoryError:
        return b""  # rule 6


def log_entry(version: int) -> str:
    """Return the file name of a version's log entry."""
    return f"{LOG}/{version:020}.json"


def _hint_fault(stored: bytes | None, checkpoints: Mapping[int, object]) -> str | None:
    try:
        hint = json.loads(stored or b"")
    except (RecursionError, ValueError):
        return None
    named = hint.get("version") if isinstance(hint, dict) else None
    return "refers to a missing checkpoint" if isinstance(named, int) and named not in checkpoints else None


def _parquet_fault(stored: bytes | None) -> str | None:
    if not stored:
        return "is missing" if stored is None else "is empty"
    return None if _is_parquet(pa.BufferReader(stored)) else "is not a Parquet file"


def damaged_rows(folder: LocalFolder, *, reads_rows: bool) -> Iterator[DamagedFile]:
    """Return the damaged data files of the last version (rule 4). Raises DeltaError if the table cannot be opened."""
    for name, size_bytes, rows in _files_of_rows(folder):
        path = folder.root / name
        try:
            fault = _size_fault(path, size_bytes)
            if fault is None and reads_rows and not (_is_parquet(path, rows) and can_query_file(path)):
                fault = _BAD_ROWS
        except (FileNotFoundError, ValueError):  # ValueError: the name contains a null byte
            fault = "is missing"
        except IsADirectoryError:  # rule 6
            fault = "is empty"
        if fault:
            yield DamagedFile(name, fault)


def _size_fault(path: Path, size_bytes: int) -> str | None:
    with path.open("rb") as file:
        actual_bytes = path.stat().st_size
        if actual_bytes != size_bytes:
            return "is empty" if actual_bytes == 0 else f"has {actual_bytes} of {size_bytes} bytes"
        file.seek(-4, 2)
        return None if file.read(4) == _PARQUET else "is not a Parquet file"


def _is_parquet(source: Path | pa.BufferReader, rows: int | None = None) -> bool:
    """Return True if the file can be read completely and has the expected number of rows.

    One thread reads, and Arrow calls no Python code (see `stored_table`).
    """
    try:
        with pq.ParquetFile(source) as file:
            for batch in file.iter_batches(use_threads=False):
                batch.validate(full=True)
                if not all(map(_has_possible_times, batch.columns)):
                    return False
            return rows is None or bool(file.metadata.num_rows == rows)
    except (pa.ArrowException, ValueError):
        return False
    except OSError as error:
        if error.errno is not None:
            raise
        return False  # the error is from Arrow, not from the disk


def _has_possible_times(column: pa.Array) -> bool:
    """Return True if Python supports each time in a column. The column can contain lists and structures.

    >>> [_has_possible_times(pa.array([{"since": at}], pa.struct({"since": TIME}))) for at in (None, 1, 1 << 62)]
    [True, True, False]
    """
    if pa.types.is_list(column.type):
        return _has_possible_times(column.flatten())
    if pa.types.is_struct(column.type):
        return all(map(_has_possible_times, column.flatten()))
    if column.type != TIME:
        return True
    is_possible = pc.and_(pc.greater_equal(column, _FIRST_TIME), pc.less_equal(column, _LAST_TIME))
    return pc.all(is_possible, min_count=0).as_py() is True


def open_log(folder: LocalFolder, version: int | None = None) -> DeltaTable:
    """Open a version of a table (None: the newest version), and read the transaction identifiers of its log.

    Raises DeltaError if delta-rs cannot read the log. Raises UnusableTableError for an unsupported feature (rule 5).
    """
    with refusing_unsupported_features(str(folder.root)), panic_as_error():
        table = DeltaTable(str(folder.root), version)
        table.transaction_version("")
        require_write_support(table)
        if version is not None:
            table.load_as_version(version)  # the merge of no files loads the newest version
        return table


def require_write_support(table: DeltaTable) -> None:
    """Raise CommitFailedError if delta-rs cannot append rows, because the table has an unsupported feature.

    delta-rs checks the features before it merges files. No row has this date, so no file is merged.
    """
    try:
        table.optimize.compact(partition_filters=[("date", "=", "0001-01-01")])
    except CommitFailedError:
        raise
    except DeltaError:
        pass  # the merge loads the newest version, which can be damaged although an earlier version is open


@contextmanager
def refusing_unsupported_features(path: str) -> Iterator[None]:
    """Convert the error about an unsupported Delta feature into an UnusableTableError with the remedy (rule 5)."""
    try:
        yield
    except DeltaError as error:
        if not any(text in str(error) for text in _UNSUPPORTED):
            raise
        raise UnusableTableError(
            f"table {path} has a Delta feature that this monitor does not support ({plain_cause(error)}): remove the"
            " feature with the program that added it, or set paths.tables to a different folder"
        ) from error


def file_names(folder: LocalFolder, version: int | None = None) -> set[str]:
    """Return the names of the data files of a version (None: the newest version). Raises DeltaError like `open_log`."""
    return {name for name, _, _ in _files_of_rows(folder, version)}


def _files_of_rows(folder: LocalFolder, version: int | None = None) -> list[tuple[str, int, int | None]]:
    """Return the name, the bytes and the number of rows of each data file of a version (None: the newest version)."""
    if not any(_ENTRY.fullmatch(name) for name in folder.names(LOG)):
        return []
    actions: Mapping[str, pa.Array] = pa.table(open_log(folder, version).get_add_actions(flatten=True))
    names = [unquote(name) for name in actions["path"].to_pylist()]
    return sorted(zip(names, actions["size_bytes"].to_pylist(), actions["num_records"].to_pylist(), strict=True))
