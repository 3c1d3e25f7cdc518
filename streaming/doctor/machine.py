"""Findings about this machine: Java, memory, jars, the folder for temporary files, the checkpoint and the tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from streaming.config.types.spark import heap_bytes
from streaming.doctor.finding import Finding, failed, not_checked, note, ok
from streaming.errors import storage_remedy

JAVA, MEMORY, JARS, TEMPORARY = "java", "memory", "jars", "temporary files"
CHECKPOINT, TABLES, PORT, STRATEGIES = "checkpoint", "tables", "HTTP port", "strategies"
_GIB: Final = 1 << 30
BESIDE_HEAP_BYTES: Final = _GIB
"""The memory that is not JVM heap, for few groups. The driver's Python, the Python workers and the JVM use it."""
BESIDE_HEAP_MANY_GROUPS_BYTES: Final = 22 * _GIB // 10
"""Memory outside the heap, for 10,000 groups, 100,000 partitions and a heap of 1 GiB (docs/SCALING.md)."""
ANOTHER_CLUSTER_BYTES: Final = 34 * _GIB // 100
"""Additional memory for each further Kafka cluster (docs/SCALING.md)."""
LEAST_FREE_BYTES: Final = 256 << 20
LEAST_FREE_RATIO: Final = 0.1
"""If the free share of the disk is smaller than this ratio, the alert RebalanceMonitorTablesFailing fires."""


def memory_finding(limit_bytes: int, available_bytes: int, driver_memory: str, clusters: int) -> Finding:
    """Compare the memory of this machine or container with the memory that the monitor needs for `clusters` clusters.

    `available_bytes` is the memory that is free now. Memory that a running monitor uses is not free.
    """
    of_clusters = heap_bytes(driver_memory) + (clusters - 1) * ANOTHER_CLUSTER_BYTES
    needed, with_many_groups = of_clusters + BESIDE_HEAP_BYTES, of_clusters + BESIDE_HEAP_MANY_GROUPS_BYTES
    text = (
        f"{_gib(limit_bytes)} in total, {_gib(available_bytes)} free; the monitor needs {_gib(needed)}, "
        f"and {_gib(with_many_groups)} with 10,000 groups"
    )
    if limit_bytes < needed:
        remedy = "use a machine with more memory, raise the memory limit of the container, or lower spark.driver_memory"
        return failed(MEMORY, text, remedy)
    if limit_bytes < with_many_groups:
        remedy = "use a machine with more memory, or raise the memory limit of the container"
        return note(MEMORY, text, f"if the cluster has many groups, {remedy}")
    if available_bytes < needed:
        remedy = "if the monitor already runs on this machine, ignore this note. Otherwise, stop other processes"
        return note(MEMORY, text, remedy)
    return ok(MEMORY, text)


def jars_finding(missing: Sequence[str], folder: str) -> Finding:
    """Return the finding about Spark's jars. Missing jars are only a note, because the first start downloads them."""
    if missing:
        remedy = "run `rebalance-monitor jars`. Otherwise, the first start downloads the jars"
        return note(JARS, f"{len(missing)} jars are missing or damaged in {folder}", remedy)
    return ok(JARS, f"complete in {folder}")


@dataclass(frozen=True, slots=True)
class FolderState:
    """A folder that the monitor can list, enter and write. The folder is on a disk of this machine."""

    path: str
    exists: bool
    free_bytes: int
    total_bytes: int
    content: str = ""


@dataclass(frozen=True, slots=True)
class RefusedFolder:
    """A folder that the monitor cannot list, enter or write."""

    path: str
    error: OSError


def folder_finding(point: str, setting: str, folder: FolderState | RefusedFolder | None) -> Finding:
    """Return the finding about a folder. `folder` is None if the folder is not on a disk of this machine."""
    if folder is None:
        return not_checked(point, f"{setting} is not on a disk of this machine")
    if isinstance(folder, RefusedFolder):
        text = f"{folder.path} cannot be used ({folder.error.filename}: {folder.error.strerror})"
        return failed(point, text, f"{storage_remedy(folder.error)}, or choose a different {setting}")
    share = 100 * folder.free_bytes / max(folder.total_bytes, 1)
    state = folder.content or ("exists" if folder.exists else "does not exist yet; the first start creates it")
    text = f"{folder.path} {state}; {_gib(folder.free_bytes)} ({share:.0f} %) free"
    remedy = f"make space on its disk, or choose a different {setting}"
    if folder.free_bytes < LEAST_FREE_BYTES:
        return failed(point, text, remedy)
    if folder.free_bytes < LEAST_FREE_RATIO * folder.total_bytes:
        return note(point, text, remedy)
    return ok(point, text)


def temporary_finding(folder: FolderState | RefusedFolder, *, can_execute: bool) -> Finding:
    """Return the finding about the folder for temporary files. Spark loads native libraries from this folder."""
    if not can_execute:
        text = (
            f"{folder.path} is on a file system that is mounted with noexec, so RocksDB cannot load its native library"
        )
        remedy = "mount the file system with exec, or set TMPDIR to a folder on a different file system"
        return failed(TEMPORARY, text, remedy)
    return folder_finding(TEMPORARY, "TMPDIR", folder)


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / _GIB:.1f} GiB"
