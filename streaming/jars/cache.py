"""Store jars on this machine. Each set is downloaded or copied once for each user account.

- `<cache>/jars/spark-3f2a…/` contains the jars of one set. The folder name contains a hash of the jars.
- `<cache>/jars/spark.lock` is locked by the process that fills the folder.
- `<cache>/jars/spark.partial/` is an incomplete set, which is renamed after its verification.

Before each use of a set, its jars are compared with the hashes in jars.lock. `<cache>` is the folder in the environment
variable REBALANCE_MONITOR_CACHE_DIR. By default, `<cache>` is kafka-rebalance-monitor in $XDG_CACHE_HOME or in
~/.cache.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import tenacity

from streaming.errors import STAYS, storage_remedy
from streaming.jars.coordinates import JarSetName
from streaming.jars.ivy import JarsError, fetch
from streaming.jars.lockfile import LockedJar, lock_version, parse_lock

_log = logging.getLogger(__name__)

LOCK_PATH = Path(__file__).with_name("jars.lock")

OnJar = Callable[[JarSetName, int, int, str], None]
"""Callback for progress: set name, position of the current jar (1, 2, ...), total number of jars, file name."""

_ATTEMPTS = 3
_SPARE_BYTES = 50_000_000
_COPY_REMEDY = (
    "on a machine with internet access, run `rebalance-monitor jars --to FOLDER` with the same version of the monitor, "
    "and copy the folder again"
)


class JarsFolderError(JarsError):
    """Error: the folder of the jars cannot be used."""

    exit_code = STAYS


def log_jar(set_name: JarSetName, number: int, total: int, jar: str) -> None:
    """Log the download progress of a set, because a download can be slow. `resolve` calls this function by default."""
    _log.info("downloading %s jars: %d/%d %s", set_name, number, total, jar)


def resolve(set_name: JarSetName, on_jar: OnJar = log_jar, *, source: Path | None = None) -> list[Path]:
    """Return the sorted paths of the jars of a set. If jars are missing or damaged, first download or copy them.

    The jars are copied from the folder `source`, or downloaded if `source` is not set. The check of all hashes takes
    0.02 s for the set `spark` (25 MB). Raises JarsError or JavaError.
    """
    locked, folder = _jar_set(set_name)
    if damaged := missing_jars(set_name):
        with _convert_os_errors(folder), _process_lock(folder.parent / f"{set_name}.lock"):
            if folder.exists():
                names = ", ".join(damaged[:3])
                _log.warning("%d jars in %s are damaged and are replaced: %s", len(damaged), folder, names)
            if missing_jars(set_name):  # a different process may have stored the set while this process waited
                _store_set(set_name, locked, folder, on_jar, source)
    return sorted(folder / jar.coordinate.file_name for jar in locked)


def copy_set(set_name: JarSetName, folder: Path) -> frozenset[str]:
    """Copy the jars of a set into a folder, and return their names. Missing jars are downloaded first.

    Raises JarsError or JavaError.
    """
    resolve(set_name)
    locked, source = _jar_set(set_name)
    try:
        _copy_jars(source, locked, folder)
    except OSError as error:
        raise JarsError(
            f"jars cannot be written to {folder} ({error.strerror}): {storage_remedy(error)}, or choose a different "
            "folder"
        ) from error
    return frozenset(jar.coordinate.file_name for jar in locked)


def missing_jars(set_name: JarSetName) -> list[str]:
    """Return the names of the missing and damaged jars of a set. Nothing is downloaded."""
    locked, folder = _jar_set(set_name)
    return sorted(name for jar in locked if not _is_present(folder / (name := jar.coordinate.file_name), jar))


def cache_folder() -> Path:
    """Return the folder of all caches of the project. This function does not create the folder.

    Raises JarsFolderError if the system does not know the home folder.
    """
    try:
        if configured := os.environ.get("REBALANCE_MONITOR_CACHE_DIR"):
            return Path(configured).expanduser().absolute()
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:
        reason = "the system does not know the home folder (~)"
        raise JarsFolderError(f"{reason}: set REBALANCE_MONITOR_CACHE_DIR to an absolute path") from None
    return Path(base, "kafka-rebalance-monitor")


def _jar_set(set_name: JarSetName) -> tuple[tuple[LockedJar, ...], Path]:
    locked = parse_lock(LOCK_PATH.read_text())[set_name]
    return locked, cache_folder() / "jars" / f"{set_name}-{lock_version(locked)}"


def _store_set(
    set_name: JarSetName, locked: tuple[LockedJar, ...], folder: Path, on_jar: OnJar, source: Path | None
) -> None:
    partial_folder = folder.with_name(f"{set_name}.partial")
    free_bytes = shutil.disk_usage(folder.parent).free
    needed_bytes = 2 * sum(jar.size_bytes for jar in locked) + _SPARE_BYTES
    if free_bytes < needed_bytes:
        raise JarsFolderError(
            f"{folder.parent} has {free_bytes // 1_000_000} MB free, but the jars need {needed_bytes // 1_000_000} MB:"
            " free space, or set REBALANCE_MONITOR_CACHE_DIR to a folder on a different disk"
        )
    shutil.rmtree(partial_folder / "jars", ignore_errors=True)
    if source is None:
        _fetch_with_retries(set_name, locked, partial_folder, on_jar)
        for jar in locked:
            if not _is_present(partial_folder / "jars" / jar.coordinate.file_name, jar):
                # Without this line, a retry would get the same bytes from Ivy's cache.
                shutil.rmtree(partial_folder, ignore_errors=True)
                raise JarsError(
                    f"{jar.coordinate} does not match its hash in jars.lock: run `rebalance-monitor jars` again. If "
                    "this error repeats, the repository or a proxy delivers a different file"
                )
    else:
        _copy_jars(source, locked, partial_folder / "jars")
    shutil.rmtree(folder, ignore_errors=True)
    (partial_folder / "jars").rename(folder)
    shutil.rmtree(partial_folder, ignore_errors=True)


def _fetch_with_retries(set_name: JarSetName, locked: tuple[LockedJar, ...], folder: Path, on_jar: OnJar) -> None:
    started: list[str] = []

    def report_download(address: str) -> None:
        started.append(address)
        on_jar(set_name, len(set(started)), len(locked), address.rsplit("/", 1)[-1])

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(JarsError),
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=1),
        reraise=True,
    )
    coordinates = [jar.coordinate for jar in locked]
    retrying(partial(fetch, coordinates, folder / "jars", folder / "ivy", on_jar=report_download))


def _is_present(path: Path, jar: LockedJar) -> bool:
    try:
        return path.stat().st_size == jar.size_bytes and _sha256(path.read_bytes()) == jar.sha256
    except OSError:
        return False


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _copy_jars(source: Path, jars: tuple[LockedJar, ...], into: Path) -> None:
    """Copy jars from one folder into another folder. Existing files are replaced atomically.

    Raises JarsError if a jar in `source` is missing, damaged or not readable. Raises OSError if `into` is not writable.
    """
    names = sorted(jar.coordinate.file_name for jar in jars if not _exists(source, jar))
    if names:
        raise JarsError(f"{len(names)} of {len(jars)} jars are not in {source}, for example {names[0]}: {_COPY_REMEDY}")
    into.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        content, path = _read_verified(source, jar), into / jar.coordinate.file_name
        partial_file = path.with_name(f".{path.name}.partial")
        try:
            partial_file.write_bytes(content)
            partial_file.replace(path)
        finally:
            partial_file.unlink(missing_ok=True)


def _exists(source: Path, jar: LockedJar) -> bool:
    try:
        return (source / jar.coordinate.file_name).is_file()
    except OSError:  # the folder is not accessible; `_read_verified` reports this error
        return True


def _read_verified(source: Path, jar: LockedJar) -> bytes:
    path = source / jar.coordinate.file_name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise JarsError(f"{path} cannot be read ({error.strerror}): make it readable for this user") from error
    if _sha256(content) != jar.sha256:
        raise JarsError(f"{path} does not match its hash in jars.lock: {_COPY_REMEDY}")
    return content


@contextmanager
def _process_lock(lock_path: Path) -> Iterator[None]:
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("w") as lock:  # the kernel releases the lock when its process ends
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _convert_os_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JarsFolderError(
            f"jars cannot be stored in {folder.parent} ({error.filename or folder}: {error.strerror}):"
            f" {storage_remedy(error)}, or set REBALANCE_MONITOR_CACHE_DIR to a different folder"
        ) from error
