"""Repairs a damaged table on a local disk. No file is deleted: files are moved *aside*, to a separate folder.

1. The first damaged log entry and all later entries are moved aside. The table then has the last version before the
   first damaged log entry. If all entries look complete but delta-rs cannot open the table, the first damaged entry is
   the entry after the newest version that delta-rs can open.
2. A damaged checkpoint of the log is moved aside. Then the log is read from the previous checkpoint, or from version 0.
   This repairs the table if all later log entries are complete. A checkpoint is also damaged if delta-rs can open
   neither its version nor any later version.
3. If the log entry with the version of the last checkpoint is missing, the repair creates an entry without actions,
   because the checkpoint contains all actions.
4. All rows are read. Damaged data files are moved aside. Damaged and missing data files are removed from the log
   (Delta's `FSCK REPAIR TABLE`). If delta-rs cannot remove a missing file from the log, the log entry that added the
   file is damaged (rule 1). This happens if one changed character made the name of the file invalid.
5. If the table is still damaged after the other repairs, the whole table is moved aside. The monitor then creates a new
   table.
6. The names of the clusters that may lose rows are reported before rules 1, 4 and 5 move a file. So the caller can
   store the loss, even if the process is killed later. For rule 1, these are all clusters of the table, because a
   damaged log entry does not show its clusters.
7. A table with a Delta feature that delta-rs does not support is not moved, because it is not damaged.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from deltalake.exceptions import DeltaError

from streaming.delta.stored_table import panic_as_error
from streaming.delta.table_files import (
    LOG,
    complete_checkpoints,
    damaged_rows,
    file_names,
    find_log_damage,
    find_table_damage,
    log_entry,
    open_log,
)
from streaming.delta.tables import PARTITIONED_BY
from streaming.spark.folder import DamagedFile, LocalFolder

_NO_ACTION = '{"commitInfo":{"operation":"REPAIR"}}\n'
_VERSION = re.compile(r"([0-9]{20})\.json")
_FOLDER_OF_CLUSTER = f"{PARTITIONED_BY[0]}="

OnLoss = Callable[[Collection[str]], None]
"""A function that is called with the names of the clusters that may lose rows (rule 6)."""


def repair_table(folder: LocalFolder, aside: Path, on_loss: OnLoss) -> str:
    """Repair the table. Returns one sentence that describes the repair. Files are moved to the folder `aside`.

    Raises OSError for a file that cannot be read or moved. A file that cannot be read is possibly intact, so its table
    is not moved (rule 5). Raises UnusableTableError for an unsupported Delta feature (rule 7).
    """
    with suppress(DeltaError):  # rule 5
        done = [*_repair_log(folder, aside, on_loss), *_repair_rows(folder, aside, on_loss)]
        if find_table_damage(folder) is None:
            removed = f"; removed files are in {aside}" if aside.exists() else ""
            return f"{folder.root}: {'; '.join(done)}{removed}"
    on_loss(_clusters(folder.names("")))
    _move_aside(folder.root, aside, aside / folder.root.name)
    return (
        f"{folder.root}: cannot be repaired. The table was moved to {aside / folder.root.name}, and the monitor creates"
        " a new table"
    )


def _repair_log(folder: LocalFolder, aside: Path, on_loss: OnLoss) -> list[str]:
    """Repair the log by rules 1 to 3. Returns a description of each step."""
    done: list[str] = []
    while damage := find_log_damage(folder) or _find_unreadable_file(folder):
        name = damage.name.rpartition("/")[2]
        match = _VERSION.fullmatch(name)
        if match and int(match[1]) in complete_checkpoints(folder.names(LOG)):
            (folder.root / damage.name).write_text(_NO_ACTION)
            done.append(
                f"{damage.name} replaced by an empty entry, because the checkpoint of this version contains all actions"
            )
            continue
        if match:
            restored = _restore_before(folder, int(match[1]), aside, on_loss)
            if not restored:
                break
            done += restored
            continue
        removed = [entry for entry in folder.names(LOG) if entry in {name, "_last_checkpoint"}]
        done.append(f"{damage.name} removed")
        if not removed:
            break
        for entry in removed:
            _move_aside(folder.root / LOG / entry, aside, aside / LOG / entry)
    return done


def _restore_before(folder: LocalFolder, version: int, aside: Path, on_loss: OnLoss) -> list[str]:
    """Move aside the log entries of this version and all later versions (rule 1). Returns a description of the step.

    If the log has no earlier version, the result is empty and no entry is moved.
    """
    removed = [log_entry(entry) for entry in _versions(folder) if entry >= version]
    if not removed or version <= max(complete_checkpoints(folder.names(LOG)), default=0):
        return []
    on_loss(_clusters(folder.names("")))
    for name in removed:
        _move_aside(folder.root / name, aside, aside / name)
    return [f"restored to version {version - 1}, without the damaged end of its log"]


def _versions(folder: LocalFolder) -> list[int]:
    """Return the sorted versions of the log entries, from the last checkpoint on."""
    names = folder.names(LOG)
    first = max(complete_checkpoints(names), default=0)
    return sorted(int(match[1]) for name in names if (match := _VERSION.fullmatch(name)) and int(match[1]) >= first)


def _find_unreadable_file(folder: LocalFolder) -> DamagedFile | None:
    """Return the first log entry or the checkpoint that delta-rs cannot read (rules 1 and 2), or None."""
    versions = _versions(folder)
    for version in reversed(versions):
        with suppress(DeltaError):
            open_log(folder, version)
            return None if version == versions[-1] else DamagedFile(log_entry(version + 1), "cannot be read")
    checkpoints = complete_checkpoints(folder.names(LOG))
    files = checkpoints.get(max(checkpoints, default=0), ()) if versions else ()
    return DamagedFile(f"{LOG}/{files[0]}", "cannot be read") if files else None


def _repair_rows(folder: LocalFolder, aside: Path, on_loss: OnLoss) -> list[str]:
    """Remove damaged data files (rule 4). Returns a description of each step."""
    damaged = _remove_damaged_rows(folder, aside, on_loss)
    wrong = _find_wrong_version(folder, damaged)
    restored = [] if wrong is None else _restore_before(folder, wrong, aside, on_loss)
    if restored:
        damaged = _remove_damaged_rows(folder, aside, on_loss)
    removed = f"{len(damaged)} damaged data file{'' if len(damaged) == 1 else 's'} removed"
    return [*restored, removed] if damaged else restored


def _remove_damaged_rows(folder: LocalFolder, aside: Path, on_loss: OnLoss) -> set[str]:
    """Move damaged data files aside, and remove damaged and missing files from the log. Returns their names."""
    damaged = {file.name for file in damaged_rows(folder, reads_rows=True)}
    on_loss(_clusters(damaged))
    for name in damaged:
        if (folder.root / name).exists():
            _move_aside(folder.root / name, aside, aside / name)
    if damaged:
        with panic_as_error():
            open_log(folder).repair()
    return damaged


def _find_wrong_version(folder: LocalFolder, removed: set[str]) -> int | None:
    """Return the first version that contains a file that delta-rs could not remove from the log (rule 4), or None."""
    if not removed or not (left := file_names(folder) & removed):
        return None
    return next((version for version in _versions(folder) if left & file_names(folder, version)), None)


def _clusters(names: Iterable[str]) -> Collection[str]:
    """Return the clusters of these partition folders, or of files in them. Other names are ignored."""
    folders = {name.partition("/")[0] for name in names}
    return {
        unquote(folder.removeprefix(_FOLDER_OF_CLUSTER)) for folder in folders if folder.startswith(_FOLDER_OF_CLUSTER)
    }


def _move_aside(path: Path, aside: Path, target: Path) -> None:
    """Move a file or folder. The target can be on a different file system if the folder of a table is a link."""
    aside.mkdir(exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(path, target)
