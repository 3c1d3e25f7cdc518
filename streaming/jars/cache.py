"""Jars on this machine: fetched once a user, verified against jars.lock, never half there.

    <cache>/jars/spark-3f2a…/    the jars of one set, named by what they hold
    <cache>/jars/spark.lock      held by the process that fetches
    <cache>/jars/spark.partial/  what has come so far; renamed to its name when whole and verified

<cache> is $REBALANCE_MONITOR_CACHE_DIR, else kafka-rebalance-monitor under $XDG_CACHE_HOME or ~/.cache.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import tenacity

from streaming.jars.coordinates import JarSetName
from streaming.jars.ivy import JarsError, fetch
from streaming.jars.lockfile import LockedJar, lock_version, parse_lock

LOCK_PATH = Path(__file__).with_name("jars.lock")

OnJar = Callable[[JarSetName, int, int, str], None]
"""Told of progress: the set, how many of its jars have come, how many there are, and which one is coming."""

_ATTEMPTS = 3
_SPARE_BYTES = 50_000_000


def resolve(set_name: JarSetName, on_jar: OnJar | None = None, *, verify: bool = False) -> list[Path]:
    """Return the jars of a set, sorted, fetching them first if this user has never done so.

    What is there is trusted by name and size, which takes a millisecond; `verify` reads and hashes every byte. A
    damaged set is fetched anew. Raises JarsError or JavaError, each one line with its remedy.
    Example: `",".join(map(str, resolve("spark")))` is a value for `spark.jars`.
    """
    locked = parse_lock(LOCK_PATH.read_text())[set_name]
    folder = cache_folder() / "jars" / f"{set_name}-{lock_version(locked)}"
    if not _is_whole(folder, locked, verify=verify):
        with _one_line_for_the_operator(folder), _only_one_process(folder.parent / f"{set_name}.lock"):
            if not _is_whole(folder, locked, verify=verify):  # another process may have brought it meanwhile
                _bring(set_name, locked, folder, on_jar or (lambda *_: None))
    return sorted(folder / jar.coordinate.file_name for jar in locked)


def cache_folder() -> Path:
    """Return the folder that all caches of the project live in; it may not exist yet."""
    if chosen := os.environ.get("REBALANCE_MONITOR_CACHE_DIR"):
        return Path(chosen).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "kafka-rebalance-monitor")


def _bring(set_name: JarSetName, locked: tuple[LockedJar, ...], folder: Path, on_jar: OnJar) -> None:
    partial_folder = folder.with_name(f"{set_name}.partial")
    _check_room(folder.parent, 2 * sum(jar.size_bytes for jar in locked) + _SPARE_BYTES)
    shutil.rmtree(partial_folder / "jars", ignore_errors=True)
    _fetch_patiently(set_name, locked, partial_folder, on_jar)
    for jar in locked:
        _verify(partial_folder / "jars" / jar.coordinate.file_name, jar, partial_folder)
    shutil.rmtree(folder, ignore_errors=True)
    (partial_folder / "jars").rename(folder)
    shutil.rmtree(partial_folder, ignore_errors=True)


def _fetch_patiently(set_name: JarSetName, locked: tuple[LockedJar, ...], folder: Path, on_jar: OnJar) -> None:
    started: list[str] = []

    def reported(address: str) -> None:
        started.append(address)
        on_jar(set_name, len(set(started)), len(locked), address.rsplit("/", 1)[-1])

    retrying = tenacity.Retrying(
        retry=tenacity.retry_if_exception_type(JarsError),
        stop=tenacity.stop_after_attempt(_ATTEMPTS),
        wait=tenacity.wait_exponential(multiplier=1),
        reraise=True,
    )
    coordinates = [jar.coordinate for jar in locked]
    retrying(partial(fetch, coordinates, folder / "jars", folder / "ivy", on_jar=reported))


def _verify(path: Path, jar: LockedJar, partial_folder: Path) -> None:
    if path.is_file() and _sha256(path) == jar.sha256:
        return
    shutil.rmtree(partial_folder, ignore_errors=True)  # else the next try would find the same bytes in Ivy's cache
    raise JarsError(
        f"{jar.coordinate} did not arrive as jars.lock says: run `rebalance-monitor jars` again; if it stays so, the "
        "repository or a proxy serves other bytes than were locked"
    )


def _is_whole(folder: Path, locked: tuple[LockedJar, ...], *, verify: bool) -> bool:
    return all(_is_there(folder / jar.coordinate.file_name, jar, verify=verify) for jar in locked)


def _is_there(path: Path, jar: LockedJar, *, verify: bool) -> bool:
    try:
        return path.stat().st_size == jar.size_bytes and (not verify or _sha256(path) == jar.sha256)
    except OSError:
        return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _check_room(folder: Path, wanted_bytes: int) -> None:
    free_bytes = shutil.disk_usage(folder).free
    if free_bytes < wanted_bytes:
        raise JarsError(
            f"{folder} has {free_bytes // 1_000_000} MB free and the jars need {wanted_bytes // 1_000_000} MB: "
            "free some, or set REBALANCE_MONITOR_CACHE_DIR to another disk"
        )


@contextmanager
def _only_one_process(lock_path: Path) -> Iterator[None]:
    lock_path.parent.mkdir(parents=True, exist_ok=True)
    with lock_path.open("w") as lock:  # the kernel gives the lock back when its holder dies
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _one_line_for_the_operator(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = "free some disk" if full else "make it writable"
        raise JarsError(
            f"jars can't be kept under {folder.parent} ({error.strerror}): {remedy}, or set "
            "REBALANCE_MONITOR_CACHE_DIR to another folder"
        ) from error
