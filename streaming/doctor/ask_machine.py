"""Read facts about this machine. The functions create, change and download nothing.

`port_finding` opens the HTTP port, and closes it at once. `strategy_findings` starts processes that run users' code.
All other functions only read.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import psutil

from assignors import BUILT_IN, AssignorFailedError
from streaming.config.load import Settings
from streaming.config.settings import MetricsSettings
from streaming.custom.guarded_assignor import GuardedAssignor
from streaming.delta.table_files import refuse_damaged_tables
from streaming.doctor import machine
from streaming.doctor.finding import Finding, failed, from_error, note, ok
from streaming.errors import RemedyError
from streaming.http.access import read_access
from streaming.http.listener import PortInUseError, open_listener
from streaming.jars import cache_folder, missing_jars
from streaming.java import check_account, find_java, java_version
from streaming.spark.checkpoint import (
    CheckpointDamagedError,
    check_identity,
    find_damaged_file,
    read_cluster_id,
    read_identity,
)
from streaming.spark.folder import LocalFolder, folder_refusal, local_folder, nearest_existing
from streaming.temporary_folder import TemporaryFolderError, raising_temporary_folder_error

CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class _CgroupFiles:
    """The files of one version of cgroups.

    `cache` is the key in `statistics` for the memory that the kernel can free.
    """

    limit: str
    used: str
    statistics: str
    cache: str


_CGROUP_FILES = (
    _CgroupFiles("memory.max", "memory.current", "memory.stat", "inactive_file"),
    _CgroupFiles(
        "memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"
    ),
)


def java_finding() -> Finding:
    """Return the finding about Java."""
    try:
        check_account()
        java = find_java()
        source = "JAVA_HOME" if os.environ.get("JAVA_HOME") else "PATH"
        return ok(machine.JAVA, f"version {java_version(java)} at {java} (from {source})")
    except RemedyError as error:
        return from_error(machine.JAVA, error)


def memory_of_machine_finding(settings: Settings) -> Finding:
    """Return the finding about the memory of this machine or container."""
    memory = psutil.virtual_memory()
    limit, free = _container_bytes() or (memory.total, memory.available)
    limit, free = min(memory.total, limit), min(memory.available, free)
    return machine.memory_finding(limit, free, settings.spark.driver_memory, len(settings.of_clusters()))


def jars_folder_finding() -> Finding:
    """Return the finding about the folder of the jars."""
    try:
        return machine.jars_finding(missing_jars("spark"), str(cache_folder() / "jars"))
    except RemedyError as error:
        return from_error(machine.JARS, error)


def temporary_folder_finding() -> Finding:
    """Return the finding about the folder for temporary files."""
    try:
        with raising_temporary_folder_error():
            folder = Path(tempfile.gettempdir())
            can_execute = not os.statvfs(folder).f_flag & os.ST_NOEXEC
            return machine.temporary_finding(_folder_state(folder, folder_refusal(folder)), can_execute=can_execute)
    except TemporaryFolderError as error:
        return from_error(machine.TEMPORARY, error)


def port_finding(metrics: MetricsSettings) -> Finding:
    """Return the finding about the HTTP port: its certificate, its key, its users file, and its address."""
    try:
        read_access(metrics)
        open_listener(metrics.host, metrics.port).close()
    except PortInUseError as error:
        in_use = from_error(machine.PORT, error)
        remedy = f"if the monitor already runs on this machine, ignore this note. Otherwise, {in_use.remedy}"
        return note(machine.PORT, in_use.text, remedy)
    except RemedyError as error:
        return from_error(machine.PORT, error)
    return ok(machine.PORT, f"{metrics.host}:{metrics.port} can be used")


def strategy_findings(references: Iterable[str]) -> Iterator[Finding]:
    """Load each strategy of the user in a guarded process, as the monitor does, and yield a finding about it.

    The guarded process has its own time limit, so these checks do not need `run_checks`.
    """
    for reference in references:
        try:
            with closing(GuardedAssignor(reference)) as guarded:
                name = guarded.name
        except AssignorFailedError as failure:
            remedy = "correct the strategy, or remove it from evaluation.assignors"
            yield failed(machine.STRATEGIES, str(failure), remedy)
            continue
        if name in BUILT_IN:
            text = f"the monitor does not use {reference}, because its name {name!r} is the name of a built-in strategy"
            yield note(machine.STRATEGIES, text, "give the strategy a different name")
        else:
            yield ok(machine.STRATEGIES, f"{reference} can be loaded; its name is {name!r}")


def checkpoint_finding(settings: Settings) -> Finding:
    """Return the finding about the checkpoint of one cluster."""
    folder = local_folder(settings.paths.checkpoint)
    state = None if folder is None else _folder_state(folder.root, folder.refusal())
    if folder is not None and isinstance(state, machine.FolderState):
        try:
            state = replace(state, content=_content(folder, settings))
        except RemedyError as error:
            return from_error(machine.CHECKPOINT, error)
        except OSError as error:
            state = machine.RefusedFolder(state.path, error)
    return machine.folder_finding(machine.CHECKPOINT, "paths.checkpoint", state)


def tables_finding(settings: Settings) -> Finding:
    """Return the finding about the folder of the tables, which all clusters share."""
    folder = local_folder(settings.paths.tables)
    state = None if folder is None else _folder_state(folder.root, folder.refusal())
    if isinstance(state, machine.FolderState):
        try:
            refuse_damaged_tables(settings.paths.tables)
        except RemedyError as error:
            return from_error(machine.TABLES, error)
    return machine.folder_finding(machine.TABLES, "paths.tables", state)


def _content(folder: LocalFolder, settings: Settings) -> str:
    """Return a text that contains the cluster of the checkpoint, or an empty text if there is no checkpoint.

    Raises RemedyError or OSError if the checkpoint is not usable.
    """
    uri, cluster = settings.paths.checkpoint, settings.kafka.cluster
    identity = read_identity(folder)
    if damage := find_damaged_file(folder):
        raise CheckpointDamagedError(uri, damage)
    if identity is None:
        return ""
    check_identity(identity, cluster, settings.spark.shuffle_partitions, uri, settings.source.kind)
    cluster_id = read_cluster_id(folder)
    return f"belongs to the cluster {cluster!r}" + (f" (Kafka's cluster id {cluster_id})" if cluster_id else "")


def _folder_state(path: Path, refusal: OSError | None) -> machine.FolderState | machine.RefusedFolder:
    if refusal is not None:
        return machine.RefusedFolder(str(path), refusal)
    disk = shutil.disk_usage(nearest_existing(path))
    return machine.FolderState(str(path), path.exists(), disk.free, disk.total)


def _container_bytes() -> tuple[int, int] | None:
    """Return the memory limit and the free memory of the container in bytes, or None if there is no limit."""
    for files in _CGROUP_FILES:
        with suppress(OSError, ValueError):  # cgroup v2 writes "max" if there is no limit
            limit = int((CGROUPS / files.limit).read_text())
            statistics = dict(line.split() for line in (CGROUPS / files.statistics).read_text().splitlines())
            used = int((CGROUPS / files.used).read_text()) - int(statistics.get(files.cache, 0))
            return limit, max(limit - used, 0)
    return None
