"""Which files of a Delta table must be whole, and what is wrong with them. For tables on a local disk.

delta-rs passes over an empty log entry without a word, and its rows are gone; of other damage it speaks in Rust. So
files are looked at before it opens them, by four rules:

1. A table has a log. A folder with rows and without a log entry is damaged; a folder that does not exist is no table.
2. The log is read from its last checkpoint on, or from version 0. Each entry after that is there, in JSON. The entry of
   the last version is there beside its checkpoint, too: nobody reads it, but delta-rs appends nothing without it.
3. A checkpoint is a whole Parquet file. `_last_checkpoint` names one that exists; if nobody can read it, nobody does.
4. Each file of rows that the last version names is there, has the size in the log, and ends as Parquet does.

What a kill may leave behind is legal: temporary files, and files of rows that no entry names.
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
    """A file of a table is missing or damaged, or cannot be used by this process."""

    exit_code = STAYS


def check_tables(root: str) -> None:
    """Refuse damaged tables, and a folder of tables that cannot be used. Raises TableDamagedError with the remedy."""
    folder = local_folder(root)
    if folder is None:
        return
    if refusal := folder.refusal():
        raise TableDamagedError(_refused(root, refusal))
    refuse_damaged_tables(root)


def table_refusal(uri: str) -> OSError | None:
    """Why nothing can be written into a table on a local disk now; None if it can."""
    folder = local_folder(uri)
    return None if folder is None else folder_refusal(folder.root)


def refuse_damaged_tables(root: str) -> None:
    """Refuse damaged tables alone: a disk that is full now may not be later. Raises TableDamagedError."""
    folder = local_folder(root)
    if folder is None:
        return
    try:
        for name, damage in damaged_tables(folder):
            raise TableDamagedError(
                f"table {root}/{name} is damaged ({damage}): run `rebalance-monitor rebuild --repair-tables`,"
                " which keeps what it replaces, or choose another paths.tables"
            )
    except OSError as error:
        raise TableDamagedError(_refused(root, error)) from None


def _refused(root: str, error: OSError) -> str:
    return (
        f"tables {root} cannot be used ({error.filename}: {error.strerror}): {storage_remedy(error)},"
        " or choose another paths.tables"
    )


def damaged_tables(root: LocalFolder) -> Iterator[tuple[str, DamagedFile]]:
    """Each damaged table's name, with the first file that is damaged. Raises OSError for an unreadable one."""
    for table in TABLES:
        folder = LocalFolder(root.root / table.name)
        if damage := find_table_damage(folder):
            yield table.name, damage


def find_table_damage(folder: LocalFolder) -> DamagedFile | None:
    """The first file that is missing or damaged, by rules 1 to 4."""
    if not folder.root.exists():
        return None
    damage = find_log_damage(folder)
    if damage is not None and "missing" in damage.what:
        damage = find_log_damage(folder)  # another process may have removed old entries while this one listed them
    return damage or next(damaged_rows(folder), None)


def find_log_damage(folder: Folder) -> DamagedFile | None:
    """Rules 1 to 3."""
    names = folder.names(LOG)
    entries = {int(found[1]) for name in names if (found := _ENTRY.fullmatch(name))}
    checkpoints = {int(found[1]) for name in names if (found := _CHECKPOINT.fullmatch(name))}
    if not entries and not checkpoints:
        return DamagedFile(LOG, "has no entry") if folder.names("") else None
    if wrong := _wrong_hint(folder.read(f"{LOG}/_last_checkpoint"), checkpoints):
        return DamagedFile(f"{LOG}/_last_checkpoint", wrong)
    last = max(checkpoints, default=-1)
    if last >= 0 and (wrong := _wrong_parquet(folder.read(f"{LOG}/{last:020}.checkpoint.parquet"))):
        return DamagedFile(f"{LOG}/{last:020}.checkpoint.parquet", wrong)
    if last > max(entries, default=-1):
        return DamagedFile(log_entry(last), "is missing beside its checkpoint")
    for version in range(last + 1, max(entries, default=-1) + 1):
        name = log_entry(version)
        if wrong := _wrong_entry(folder.read(name)):
            return DamagedFile(name, wrong)
    return None


def log_entry(version: int) -> str:
    """The name of a version's entry in the log."""
    return f"{LOG}/{version:020}.json"


def _wrong_hint(stored: bytes | None, checkpoints: set[int]) -> str | None:
    try:
        hint = json.loads(stored or b"")
    except ValueError:
        return None
    named = hint.get("version") if isinstance(hint, dict) else None
    return "names a checkpoint that is missing" if isinstance(named, int) and named not in checkpoints else None


def _wrong_parquet(stored: bytes | None) -> str | None:
    if not stored:
        return "is missing" if stored is None else "is empty"
    return None if len(stored) > 12 and stored[:4] == stored[-4:] == _PARQUET else "is no Parquet file"


def _wrong_entry(stored: bytes | None) -> str | None:
    if not stored:
        return "is missing" if stored is None else "is empty"
    try:
        actions = [json.loads(line) for line in stored.splitlines() if line.strip()]
    except ValueError:
        return "is not JSON"
    return None if actions and all(isinstance(action, dict) for action in actions) else "holds no actions"


def damaged_rows(folder: LocalFolder) -> Iterator[DamagedFile]:
    """Rule 4: the damaged files among those that the last version names."""
    for name, size_bytes in _files_of_rows(folder):
        path = folder.root / name
        try:
            with path.open("rb") as file:
                end = path.stat().st_size
                if end != size_bytes:
                    yield DamagedFile(name, "is empty" if end == 0 else f"has {end} of {size_bytes} bytes")
                    continue
                file.seek(-4, 2)
                if file.read(4) != _PARQUET:
                    yield DamagedFile(name, "is no Parquet file")
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
            " run `rebalance-monitor rebuild --repair-tables`, which keeps what it replaces"
        ) from None
    names = (unquote(name) for name in actions["path"].to_pylist())
    return sorted(zip(names, actions["size_bytes"].to_pylist(), strict=True))
