"""A way out for a damaged table on a local disk. Nothing is deleted: what is taken out of a table lies beside it.

1. Damaged entries at the log's end, and all after the first: taken out. The table is what it was before them.
2. A damaged checkpoint of the log: taken out, if the entries without it are complete.
3. A missing entry beside the last checkpoint, which holds all that was in it: one without content takes its place.
4. Damaged or missing files of rows: taken out, and out of the log (Delta's `FSCK REPAIR TABLE`).
5. A table that is damaged still: moved aside as a whole. The monitor begins a new one in its place.
"""

from __future__ import annotations

import re
from pathlib import Path

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from streaming.delta.table_files import LOG, TableDamagedError, damaged_rows, find_log_damage, find_table_damage
from streaming.spark.folder import LocalFolder

_NO_ACTION = '{"commitInfo":{"operation":"REPAIR"}}\n'
_VERSION = re.compile(r"([0-9]{20})\.json")


def repair_table(folder: LocalFolder, aside: Path) -> str:
    """Make the table whole. Returns one sentence: what was done, and what of it lies in `aside`."""
    try:
        done = [*_repaired_log(folder, aside), *_repaired_rows(folder, aside)]
        if find_table_damage(folder) is None:
            taken_out = f"; what was taken out is in {aside}" if aside.exists() else ""
            return f"{folder.root}: {'; '.join(done)}{taken_out}"
    except (DeltaError, OSError, TableDamagedError):
        pass  # rule 5
    _take_out(folder.root, aside, aside / folder.root.name)
    return f"{folder.root}: cannot be repaired; it is {aside / folder.root.name} now, and a new table begins"


def _repaired_log(folder: LocalFolder, aside: Path) -> list[str]:
    """Rules 1 to 3."""
    done: list[str] = []
    while damage := find_log_damage(folder):
        name = damage.name.rpartition("/")[2]
        found = _VERSION.fullmatch(name)
        if found and f"{found[1]}.checkpoint.parquet" in folder.names(LOG):
            (folder.root / damage.name).write_text(_NO_ACTION)
            done.append(f"{damage.name} replaced, its checkpoint has all that was in it")
            continue
        if found:
            versions = _entries_from(folder, int(found[1]))
            done.append(f"restored to version {int(found[1]) - 1}, without the damaged end of its log")
            if not versions or int(found[1]) == 0:
                break
        else:
            versions = [entry for entry in folder.names(LOG) if entry in {name, "_last_checkpoint"}]
            done.append(f"{damage.name} taken out")
            if not versions:
                break
        for entry in versions:
            _take_out(folder.root / LOG / entry, aside, aside / LOG / entry)
    return done


def _entries_from(folder: LocalFolder, version: int) -> list[str]:
    entries = ((name, _VERSION.fullmatch(name)) for name in folder.names(LOG))
    return [name for name, found in entries if found and int(found[1]) >= version]


def _repaired_rows(folder: LocalFolder, aside: Path) -> list[str]:
    """Rule 4."""
    damaged = list(damaged_rows(folder))
    for file in damaged:
        if (folder.root / file.name).exists():
            _take_out(folder.root / file.name, aside, aside / file.name)
    if damaged:
        DeltaTable(str(folder.root)).repair()
    return [f"{len(damaged)} damaged files of rows taken out"] if damaged else []


def _take_out(path: Path, aside: Path, target: Path) -> None:
    aside.mkdir(exist_ok=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
