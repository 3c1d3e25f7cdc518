"""Check the checkpoint files that the next start needs. The check does not use Spark.

Spark and this monitor write a file under a temporary name and then rename it. So temporary files, missing checksum
files and a batch without a commit are not damage. A file that only earlier batches needed can be missing.

1. If `query/offsets` contains a batch, `monitor.json` must exist, because it is written before the first batch.
2. `origin/` must be complete and unchanged. `monitor.json` contains a checksum of each file in `origin/`. Without the
   positions in `origin/`, rows would be written twice.
3. `query/offsets` must contain the last started batch and the batch before it. `query/commits` must contain the last
   committed batch. The last committed batch must be the last started batch or the batch before it.
4. `query/sources/N` must contain the log of the file source since the last compaction of the log.
5. For each state partition, `query/state` must contain the last snapshot and all later changes.
6. `query/metadata` must be readable. Spark's metadata of the state and the schema of the state must also be readable.

The monitor removes some damaged files and logs a warning, because a start does not need these files:

7. A checksum file without its data file. While the checksum file exists, Spark cannot write the data file again.
8. A file in `feedback/` that cannot be read. The driver notices the missing facts and sends the facts again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from zlib import crc32

from streaming.config.settings import OFFSETS_TOPIC_SOURCE
from streaming.spark.checksums import checksum_name, matches_checksums
from streaming.spark.folder import DamagedFile, Folder
from streaming.spark.state_files import check_changes, check_schema, check_snapshot, needed_files

QUERY = "query"
FEEDBACK_FOLDER = "feedback"
IDENTITY = "monitor.json"
_STATE_PROVIDER = "spark.sql.streaming.stateStore.providerClass"
_STATE_COMPRESSION = "spark.sql.streaming.stateStore.compression.codec"
_ROCKSDB = "RocksDBStateStoreProvider"
_FACT_KEYS = {"state_kind", "state_key", "payload"}
_FILE_SOURCE_KEYS = {"path", "timestamp", "batchId"}


class _DamagedError(Exception):
    def __init__(self, name: str, what: str) -> None:
        super().__init__(name, what)
        self.file = DamagedFile(name, what)


def find_damage(folder: Folder, origin: Mapping[str, int], source: str, shuffle_partitions: int) -> DamagedFile | None:
    """Find the first missing or damaged file that the next start needs. Raises OSError for an unreadable file."""
    try:
        _check_checksums(folder, IDENTITY, folder.read(IDENTITY) or b"")
        _check_origin(folder, origin)
        _check_query(folder, source, shuffle_partitions)
    except _DamagedError as damaged:
        return damaged.file
    return None


def find_query_without_identity(folder: Folder) -> DamagedFile | None:
    """Return the damage of a query with a batch but without `monitor.json` (rule 1)."""
    return DamagedFile(IDENTITY, "is missing") if _numbers(folder, f"{QUERY}/offsets") else None


def find_disposable(folder: Folder) -> Sequence[DamagedFile]:
    """Find damaged files that a start does not need (rules 7 and 8). Raises OSError for an unreadable file."""
    sources = [f"sources/{source}" for source in folder.names(f"{QUERY}/sources")]
    logs = ["offsets", "commits", "state/0/_metadata", *sources]
    orphans = [
        DamagedFile(f"{log}/{name}", "is the checksum file of a missing file")
        for log in (FEEDBACK_FOLDER, QUERY, *(f"{QUERY}/{log}" for log in logs))
        for name in _orphaned_checksums(folder.names(log))
    ]
    facts = [f"{FEEDBACK_FOLDER}/{name}" for name in folder.names(FEEDBACK_FOLDER) if name.endswith(".json")]
    return [*orphans, *(DamagedFile(name, wrong) for name in facts if (wrong := _find_damage_in_facts(folder, name)))]


def _orphaned_checksums(names: Sequence[str]) -> Sequence[str]:
    existing = set(names)
    return [name for name in names if name[:1] == "." and name.endswith(".crc") and name[1:-4] not in existing]


def _find_damage_in_facts(folder: Folder, name: str) -> str | None:
    try:
        for line in _read_needed(folder, name).decode(errors="replace").splitlines():
            if not _object(name, line).keys() >= _FACT_KEYS:
                return "has an incomplete entry"
    except _DamagedError as damaged:
        return damaged.file.what
    return None


def checksum(content: bytes) -> int:
    """Return the checksum that `monitor.json` stores for a file in `origin/`."""
    return crc32(content)


def _check_origin(folder: Folder, origin: Mapping[str, int]) -> None:
    for name, expected in sorted(origin.items()):
        content = folder.read(name)
        if content is None or checksum(content) != expected:
            raise _DamagedError(name, "is missing" if content is None else "has unexpected content")
        _check_checksums(folder, name, content)


def _check_query(folder: Folder, source: str, shuffle_partitions: int) -> None:
    offsets, commits = _numbers(folder, f"{QUERY}/offsets"), _numbers(folder, f"{QUERY}/commits")
    metadata = f"{QUERY}/metadata"
    if folder.read(metadata) is not None:
        query = _object(metadata, _read_needed(folder, metadata).decode(errors="replace"))
        if not isinstance(query.get("id"), str):
            raise _DamagedError(metadata, "has no id")
    if not offsets:
        if commits or folder.names(f"{QUERY}/state"):
            raise _DamagedError(f"{QUERY}/offsets", "has no batch")
        return
    last, last_done = max(offsets), max(commits, default=-1)
    if last_done > last:
        raise _DamagedError(f"{QUERY}/offsets/{last_done}", "is missing")
    if last - last_done > 1:
        raise _DamagedError(f"{QUERY}/commits/{last - 1}", "is missing")
    conf, last_source = _check_offsets(folder, last, source)
    if last > 0:
        _check_offsets(folder, last - 1, source)
    if last_done >= 0:
        name = f"{QUERY}/commits/{last_done}"
        _object_lines(name, _read_needed(folder, name))
    _check_file_source(folder, 1 if source == OFFSETS_TOPIC_SOURCE else 0, last_source)
    if last_done >= 0 and conf.get(_STATE_PROVIDER, _ROCKSDB).endswith(_ROCKSDB):
        is_lz4 = conf.get(_STATE_COMPRESSION, "lz4") == "lz4"
        _check_state(folder, shuffle_partitions, last_done + 1, is_lz4=is_lz4)


def _check_offsets(folder: Folder, number: int, source: str) -> tuple[Mapping[str, str], Mapping[str, Any] | None]:
    """Return the settings and the last source's offset (None if it has no offset yet) of a file of `query/offsets`."""
    name = f"{QUERY}/offsets/{number}"
    lines = _lines(name, _read_needed(folder, name))
    expected_lines = 3 if source == OFFSETS_TOPIC_SOURCE else 2
    if len(lines) != expected_lines:
        raise _DamagedError(name, f"has {len(lines)} of {expected_lines} lines")
    metadata, *sources = (None if line == "-" else _object(name, line) for line in lines)
    if metadata is None or not isinstance(metadata.get("conf"), dict):
        raise _DamagedError(name, "has no settings")
    return metadata["conf"], sources[-1]


def _check_file_source(folder: Folder, source: int, offset: Mapping[str, Any] | None) -> None:
    """Check the log of the file source (rule 4). `offset` is the offset of this source in the last started batch."""
    path = f"{QUERY}/sources/{source}"
    names = folder.names(path)
    compact = [int(name.removesuffix(".compact")) for name in names if _is_number(name.removesuffix(".compact"))]
    last_started = -1 if offset is None else int(offset.get("logOffset", -1))
    last = max([last_started, *compact])
    compacted = {number for number in compact if f"{number}.compact" in names}
    first = max(compacted, default=0)
    for number in range(first, last + 1):
        name = f"{path}/{number}.compact" if number in compacted else f"{path}/{number}"
        for entry in _object_lines(name, _read_needed(folder, name)):
            if not entry.keys() >= _FILE_SOURCE_KEYS:
                raise _DamagedError(name, "has an incomplete entry")


def _check_state(folder: Folder, shuffle_partitions: int, version: int, *, is_lz4: bool) -> None:
    """Check the state after `version` batches (rule 5)."""
    metadata = f"{QUERY}/state/0/_metadata/metadata"
    if folder.read(metadata) is not None:
        _object_lines(metadata, _read_needed(folder, metadata))
    schema = f"{QUERY}/state/0/0/_metadata/schema"
    if wrong := check_schema(_read_needed(folder, schema)):
        raise _DamagedError(schema, wrong)
    for partition in range(shuffle_partitions):
        path = f"{QUERY}/state/0/{partition}"
        snapshot, changes = needed_files(folder.names(path), version)
        if snapshot is not None:
            _check_snapshot(folder, path, snapshot)
        for change in changes:
            stored = _read_needed(folder, f"{path}/{change}")
            if is_lz4 and (wrong := check_changes(stored)):
                raise _DamagedError(f"{path}/{change}", wrong)


def _check_snapshot(folder: Folder, path: str, snapshot: str) -> None:
    try:
        listed = check_snapshot(_read_needed(folder, f"{path}/{snapshot}"))
    except ValueError as wrong:
        raise _DamagedError(f"{path}/{snapshot}", str(wrong)) from None
    for name, size_bytes in listed:
        if size_bytes and len(stored := _read_needed(folder, f"{path}/{name}")) != size_bytes:
            raise _DamagedError(f"{path}/{name}", f"has {len(stored)} of {size_bytes} bytes")


def _read_needed(folder: Folder, name: str) -> bytes:
    content = folder.read(name)
    if content is None:
        raise _DamagedError(name, "is missing")
    if not content:
        raise _DamagedError(name, "is empty")
    _check_checksums(folder, name, content)
    return content


def _check_checksums(folder: Folder, name: str, content: bytes) -> None:
    """Compare the content with its checksum file. Hadoop's client cannot read a file if the checksums do not match."""
    if not matches_checksums(content, folder.read(checksum_name(name))):
        raise _DamagedError(name, f"does not match its checksums in {checksum_name(name).rpartition('/')[2]}")


def _lines(name: str, stored: bytes) -> list[str]:
    """Return the lines after the version line. The first file of a Kafka source starts with a zero byte."""
    version, *lines = stored.removeprefix(b"\0").decode(errors="replace").splitlines() or [""]
    if version != "v1":
        raise _DamagedError(name, "does not begin with its version")
    return [line for line in lines if line]


def _object_lines(name: str, stored: bytes) -> list[Mapping[str, Any]]:
    return [_object(name, line) for line in _lines(name, stored)]


def _object(name: str, line: str) -> Mapping[str, Any]:
    try:
        content = json.loads(line)
    except ValueError:
        content = None
    if not isinstance(content, dict):
        raise _DamagedError(name, "is not JSON")
    return content


def _numbers(folder: Folder, name: str) -> list[int]:
    return [int(entry) for entry in folder.names(name) if _is_number(entry)]


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()
