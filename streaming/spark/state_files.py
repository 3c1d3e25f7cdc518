"""Check the snapshots and the changes of one state partition in Spark's RocksDB state store.

`V.zip` is a snapshot of the state after V batches: a list of RocksDB files in the same folder. `V.changelog` contains
the changes of batch V, in the LZ4 block format of lz4-java. Each block starts with magic bytes, a token, two lengths
and a checksum. The last block of the file is empty.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterable, Sequence

_SNAPSHOT = re.compile(r"([0-9]+)\.zip")
_BLOCK_MAGIC = b"LZ4Block"
_BLOCK_HEADER_BYTES = 21


def needed_files(names: Iterable[str], version: int) -> tuple[str | None, Sequence[str]]:
    """Return the files of the state after `version` batches: the last snapshot (or None), and all later changes.

    The result also contains needed files that are not in `names`.

    >>> needed_files(["2.zip", "3.changelog", "9.zip"], 4)
    ('2.zip', ['3.changelog', '4.changelog'])
    """
    snapshots = [int(match[1]) for name in names if (match := _SNAPSHOT.fullmatch(name))]
    first = max((number for number in snapshots if number <= version), default=0)
    return f"{first}.zip" if first else None, [f"{number}.changelog" for number in range(first + 1, version + 1)]


def check_snapshot(stored: bytes) -> Sequence[tuple[str, int]]:
    """Return the RocksDB files of a snapshot, and their sizes in bytes. Raises ValueError for a damaged snapshot."""
    try:
        with zipfile.ZipFile(io.BytesIO(stored)) as archive:
            damaged = archive.testzip()
            metadata = json.loads(archive.read("metadata").decode().partition("\n")[2])
        files = [
            *((f"SSTs/{file['dfsSstFileName']}", int(file["sizeBytes"])) for file in metadata.get("sstFiles", [])),
            *((f"logs/{file['dfsLogFileName']}", int(file["sizeBytes"])) for file in metadata.get("logFiles") or []),
        ]
    except Exception as wrong:  # `zipfile` raises eight types, for example zlib.error for a block of zeros
        raise ValueError("is not a snapshot of the state") from wrong
    if damaged is not None:
        raise ValueError(f"has a damaged entry {damaged}")
    return files


def check_changes(stored: bytes) -> str | None:
    """Return the damage in the LZ4 blocks of one batch's changes. Return None if there is no damage."""
    at = 0
    while stored.startswith(_BLOCK_MAGIC, at):
        header = stored[at : at + _BLOCK_HEADER_BYTES]
        if len(header) < _BLOCK_HEADER_BYTES:
            return "is truncated"
        packed, unpacked = int.from_bytes(header[9:13], "little"), int.from_bytes(header[13:17], "little")
        at += _BLOCK_HEADER_BYTES + packed
        if unpacked == 0:
            return None
    return "is truncated" if at >= len(stored) else "has unexpected content"


def check_schema(stored: bytes) -> str | None:
    """Return the damage in the schema file of the state. Return None if there is no damage.

    The file starts with the version. The schema of the keys and the schema of the values follow. Each schema starts
    with the number of its texts, and the texts follow. All texts have the format of Java's `writeUTF`. If the version
    is unknown, only the version is checked.
    """
    if not re.match(rb"\0[\x02-\x09]v[0-9]+", stored):
        return "does not begin with its version"
    if not stored.startswith(b"\0\2v2"):
        return None
    at = 4
    while at < len(stored):
        pieces, at = int.from_bytes(stored[at : at + 4], "big"), at + 4
        while pieces and at < len(stored):
            pieces, at = pieces - 1, at + 2 + int.from_bytes(stored[at : at + 2], "big")
        if pieces:
            return "is truncated"
    return None if at == len(stored) > 4 else "is truncated"
