"""Repairs a damaged table on a local disk. No file is deleted: *aside* means moved to a separate folder.

1. The first damaged log entry and all later entries are moved aside. The table then has the last version before the
   first damaged log entry.
2. A damaged checkpoint of the log is moved aside. Then the log is read from the previous checkpoint, or from version 0.
   This repairs the table if all later log entries are complete.
3. If the log entry with the version of the last checkpoint is missing, the repair creates an entry without actions,
   because the checkpoint contains all actions.
4. All rows are read. Damaged data files are moved aside. Damaged and missing data files are removed from the log
   (Delta's `FSCK REPAIR TABLE`).
5. If the table is still damaged after the other repairs, the whole table is moved aside. The monitor then creates a new
   table.
6. The names of the clusters that may lose rows are reported before rules 1, 4 and 5 move a file. So the caller can
   store the loss, even if the process is killed later. For rule 1, these are all clusters of the table, because a
   damaged log entry does not show its clusters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.delta.table_files import LOG, damaged_rows, find_log_damage, find_table_damage
from streaming.delta.tables import PARTITIONED_BY
from streaming.spark.folder import LocalFolder

_NO_ACTION = '{"commitInfo":{"operation":"REPAIR"}}\n'
_VERSION = re.compile(r"([0-9]{20})\.json")
_FOLDER_OF_CLUSTER = f"{PARTITIONED_BY[0]}="

OnLoss = Callable[[Collection[str]], None]
"""A function that is called with the names of the clusters that may lose rows (rule 6)."""


def repair_table(folder: LocalFolder, aside: Path, on_loss: OnLoss) -> str:
    """Repair the table. Returns one sentence that describes the repair. Files are moved to the folder `aside`.

    Raises OSError for a file that cannot be read or moved. A file that cannot be read is possibly intact, so its table
    is not moved (rule 5).
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
    while damage := find_log_damage(folder):
        name = damage.name.rpartition("/")[2]
        match = _VERSION.fullmatch(name)
        if match and f"{match[1]}.checkpoint.parquet" in folder.names(LOG):
            (folder.root / damage.name).write_text(_NO_ACTION)
            done.append(
                f"{damage.name} replaced by an empty entry, because the checkpoint of this version contains all actions"
            )
            continue
        if match:
            entries = ((entry, _VERSION.fullmatch(entry)) for entry in folder.names(LOG))
            removed = [entry for entry, other in entries if other and int(other[1]) >= int(match[1])]
            done.append(f"restored to version {int(match[1]) - 1}, without the damaged end of its log")
            if not removed or int(match[1]) == 0:
                break
            on_loss(_clusters(folder.names("")))
        else:
            removed = [entry for entry in folder.names(LOG) if entry in {name, "_last_checkpoint"}]
            done.append(f"{damage.name} removed")
            if not removed:
                break
        for entry in removed:
            _move_aside(folder.root / LOG / entry, aside, aside / LOG / entry)
    return done


def _repair_rows(folder: LocalFolder, aside: Path, on_loss: OnLoss) -> list[str]:
    """Remove damaged data files (rule 4). Returns a description of the step."""
    damaged = list(damaged_rows(folder, reads_rows=True))
    on_loss(_clusters(file.name for file in damaged))
    for file in damaged:
        if (folder.root / file.name).exists():
            _move_aside(folder.root / file.name, aside, aside / file.name)
    if damaged:
        DeltaTable(str(folder.root)).repair()
    return [f"{len(damaged)} damaged data file{'' if len(damaged) == 1 else 's'} removed"] if damaged else []


def _clusters(names: Iterable[str]) -> Collection[str]:
    """Return the clusters of these partition folders, or of files in them. Other names are ignored."""
    folders = {name.partition("/")[0] for name in names}
    return {
        unquote(folder.removeprefix(_FOLDER_OF_CLUSTER)) for folder in folders if folder.startswith(_FOLDER_OF_CLUSTER)
    }


def _move_aside(path: Path, aside: Path, target: Path) -> None:
    aside.mkdir(exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
