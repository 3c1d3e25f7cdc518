"""Shorten the log of the query's file source, `query/sources/N`.

Spark's file source writes one entry for each file that it reads. Every tenth batch that reads files writes the file
`<number>.compact`, with the entries of the previous `.compact` file and of all batches since then. Spark never removes
an entry. With one new file every five seconds, the `.compact` file would grow by 2 MB per day, and Spark would write
the whole file again every minute.

1. The log is shortened while a batch runs. At this time, Spark's thread waits and does not use the log. The next
   `.compact` file begins with the shortened entries. So the query continues, and no restart is necessary.
2. An entry is needed while its file exists. Without the entry, Spark would read the file again.
3. An entry is also needed if Spark can still request its batch. After a restart, Spark requests the last batch that was
   started. This batch begins after the offset of the batch before it. So all entries after this offset stay.
4. The `.compact` file is replaced in one step (`files.py`). If the monitor is killed, the file has either all its old
   entries or only the needed entries. The log is valid in both cases.
5. A log with an unknown format is not changed.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from urllib.parse import unquote

from streaming.spark.checkpoint_files import FEEDBACK_FOLDER, QUERY
from streaming.spark.files import Files

_COMPACT = ".compact"
_VERSION = b"v1"


def shorten_file_source_log(files: Files) -> None:
    """Shorten the newest `.compact` file. Call this function while a batch runs (rule 1). Raises OSError."""
    batches = sorted(int(name) for name in files.names(f"{QUERY}/offsets") if name.isdigit())
    if len(batches) < 2:
        return
    # The first line is the version. The second line is the metadata of the batch. Then one line for each source
    # follows. The last source is the file source.
    lines = (files.read(f"{QUERY}/offsets/{batches[-2]}") or b"").decode(errors="replace").splitlines()
    log = f"{QUERY}/sources/{len(lines) - 3}"
    compact = [name.removesuffix(_COMPACT) for name in files.names(log) if name.endswith(_COMPACT)]
    newest = max((int(number) for number in compact if number.isdigit()), default=None)
    offset = _log_offset(lines[-1]) if lines else None
    if newest is None or offset is None:
        return
    files.remove_partial_files(log)  # files of an earlier call during which the monitor was killed
    name = f"{log}/{newest}{_COMPACT}"
    # The entries are read before the folder is listed. So if the file of an entry is not listed, Spark has deleted it.
    entries = files.read(name) or b""
    needed = needed_entries(entries, offset, frozenset(files.names(FEEDBACK_FOLDER)))
    if needed is not None and len(needed) < len(entries):
        files.write(name, needed)


def needed_entries(entries: bytes, offset: int, existing: Collection[str]) -> bytes | None:
    """Return a `.compact` file with only the needed entries (rules 2 and 3). Return None if the format is unknown."""
    version, *lines = entries.split(b"\n")
    if version != _VERSION:
        return None
    needed = [version]
    for line in lines:
        try:
            entry = json.loads(line)
            is_needed = entry["batchId"] > offset or unquote(entry["path"].rpartition("/")[2]) in existing
        except (ValueError, KeyError, TypeError, AttributeError):
            return None
        if is_needed:
            needed.append(line)
    return b"\n".join(needed)


def _log_offset(line: str) -> int | None:
    try:
        return int(json.loads(line)["logOffset"])
    except (ValueError, KeyError, TypeError):
        return None
