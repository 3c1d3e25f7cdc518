"""Store jars on this machine. Each set of jars is downloaded or copied once per user.

- `<cache>/jars/spark-3f2a…/` contains the jars of one set. The folder name contains a hash of the jars.
- `<cache>/jars/spark.lock` is locked by the process that fills the folder.
- `<cache>/jars/spark.partial/` is an incomplete set, which is renamed after its verification.

Each use of a set compares its jars with the hashes in jars.lock. `<cache>` is the folder in the environment variable
REBALANCE_MONITOR_CACHE_DIR. By default, `<cache>` is kafka-rebalance-monitor in $XDG_CACHE_HOME or in ~/.cache.
"""

from __future__ import annotations

import errno
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
from streaming.jars.offline import copy_jars

_log = logging.getLogger(__name__)

LOCK_PATH = Path(__file__).with_name("jars.lock")

OnJar = Callable[[JarSetName, int, int, str], None]
"""Callback for progress.

Arguments: set name, position of the current jar (1, 2, ...), total number of jars, file name.
"""

_ATTEMPTS = 3
_SPARE_BYTES = 50_000_000


class JarsFolderError(JarsError):
    """Error: the folder of the jars cannot be used."""

    exit_code = STAYS


def log_jar(set_name: JarSetName, number: int, total: int, jar: str) -> None:
    """Log the download progress of a set, because a download can be slow. `resolve` calls this function by default."""
    _log.info("downloading %s jars: %d/%d %s", set_name, number, total, jar)


def resolve(set_name: JarSetName, on_jar: OnJar = log_jar, *, source: Path | None = None) -> list[Path]:
    """Return the sorted paths of the jars of a set. If jars are missing or damaged, first download or copy them.

    The jars are copied from the folder `source`, or downloaded if `source` is not set. The function checks the hashes
    of all jars. The check of the set `spark` (25 MB) takes 0.02 s. Raises JarsError or JavaError. The error message is
    one line and contains the remedy. Example: `",".join(map(str, resolve("spark")))` is a value for `spark.jars`.
    """
    locked = _locked_jars(set_name)
    folder = _set_folder(set_name, locked)
    if damaged := missing_jars(set_name):
        with _convert_os_errors(folder), _process_lock(folder.parent / f"{set_name}.lock"):
            if folder.exists():
                names = ", ".join(damaged[:3])
                _log.warning("%d jars in %s are damaged and are replaced: %s", len(damaged), folder, names)
            if missing_jars(set_name):  # a different process may have stored the set while this process waited
                _store_set(set_name, locked, folder, on_jar, source)
    return sorted(folder / jar.coordinate.file_name for jar in locked)


def copy_set(set_name: JarSetName, folder: Path) -> frozenset[str]:
    """Copy the jars of a set into a folder, for a machine without internet access. Return the names of the copied jars.

    If this machine does not have the set, the set is downloaded first. Raises JarsError or JavaError.
    """
    resolve(set_name)
    locked = _locked_jars(set_name)
    try:
        copy_jars(_set_folder(set_name, locked), locked, folder)
    except OSError as error:
        raise JarsError(
            f"jars cannot be written to {folder} ({error.strerror}): {storage_remedy(error)}, or choose a different "
            "folder"
        ) from error
    return frozenset(jar.coordinate.file_name for jar in locked)


def missing_jars(set_name: JarSetName) -> list[str]:
    """Return the names of the missing and damaged jars of a set. Nothing is downloaded."""
    locked = _locked_jars(set_name)
    folder = _set_folder(set_name, locked)
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


def _locked_jars(set_name: JarSetName) -> tuple[LockedJar, ...]:
    return parse_lock(LOCK_PATH.read_text())[set_name]


def _set_folder(set_name: JarSetName, locked: tuple[LockedJar, ...]) -> Path:
    return cache_folder() / "jars" / f"{set_name}-{lock_version(locked)}"


def _store_set(
    set_name: JarSetName, locked: tuple[LockedJar, ...], folder: Path, on_jar: OnJar, source: Path | None
) -> None:
    partial_folder = folder.with_name(f"{set_name}.partial")
    _check_free_space(folder.parent, 2 * sum(jar.size_bytes for jar in locked) + _SPARE_BYTES)
    shutil.rmtree(partial_folder / "jars", ignore_errors=True)
    if source is None:
        _fetch_with_retries(set_name, locked, partial_folder, on_jar)
        for jar in locked:
            _verify(partial_folder / "jars" / jar.coordinate.file_name, jar, partial_folder)
    else:
        copy_jars(source, locked, partial_folder / "jars")
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


def _verify(path: Path, jar: LockedJar, partial_folder: Path) -> None:
    if _is_present(path, jar):
        return
    shutil.rmtree(partial_folder, ignore_errors=True)  # otherwise a retry gets the same bytes from Ivy's cache
    raise JarsError(
        f"{jar.coordinate} does not match its hash in jars.lock: run `rebalance-monitor jars` again. If this error "
        "repeats, the repository or a proxy delivers a different file"
    )


def _is_present(path: Path, jar: LockedJar) -> bool:
    try:
        return path.stat().st_size == jar.size_bytes and _sha256(path) == jar.sha256
    except OSError:
        return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_free_space(folder: Path, needed_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < needed_bytes:
        raise JarsFolderError(
            f"{folder} has {free_bytes // 1_000_000} MB free, but the jars need {needed_bytes // 1_000_000} MB: free "
            "space, or set REBALANCE_MONITOR_CACHE_DIR to a folder on a different disk"
        )


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
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "make space on its disk" if is_full else "make it writable"
        raise JarsFolderError(
            f"jars cannot be stored in {folder.parent} ({error.strerror}): {remedy}, or set "
            "REBALANCE_MONITOR_CACHE_DIR to a different folder"
        ) from error
