"""Test the rules of the cache of jars with a set of one small real jar: a jar is complete or absent."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from streaming.errors import STAYS
from streaming.jars import JarsError, cache, resolve
from streaming.jars.cache import LOCK_PATH, cache_folder
from streaming.jars.lockfile import LockedJar, format_lock, parse_lock

asks_a_repository = pytest.mark.slow

SMALLEST = min(parse_lock(LOCK_PATH.read_text())["broker"], key=lambda jar: jar.size_bytes)


@pytest.fixture(autouse=True)
def _a_cache_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE_DIR", str(tmp_path / "cache"))
    _lock_just(SMALLEST, tmp_path, monkeypatch)


@asks_a_repository
def test_a_set_is_fetched_once_and_the_log_shows_its_progress(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    """The second time no download happens: Java is not even available. `run` without jars must not be silent."""
    caplog.set_level("INFO")
    (first,) = resolve("broker")
    assert caplog.messages == [f"downloading broker jars: 1/1 {SMALLEST.coordinate.file_name}"]
    assert _sha256(first) == SMALLEST.sha256
    assert _resolve_elsewhere(tmp_path, PATH=str(tmp_path), JAVA_HOME="").stdout.strip() == str(first)


@asks_a_repository
def test_a_damaged_maven_repository_of_the_user_does_not_matter(tmp_path: Path):
    """With a pom without its jar in ~/.m2, Spark's own resolution fails."""
    home = tmp_path / "home"
    wanted = SMALLEST.coordinate
    half = home.joinpath(".m2", "repository", *wanted.organisation.split("."), wanted.module, wanted.revision)
    half.mkdir(parents=True)
    (half / f"{wanted.module}-{wanted.revision}.pom").write_text("<project/>")
    (home / ".ivy2").write_text("not even a folder")
    assert _resolve_elsewhere(tmp_path, HOME=str(home)).stdout.strip().endswith(wanted.file_name)


@asks_a_repository
def test_a_damaged_jar_is_fetched_anew():
    (jar,) = resolve("broker")
    jar.write_bytes(jar.read_bytes()[:-1])
    assert _sha256(resolve("broker")[0]) == SMALLEST.sha256


@asks_a_repository
def test_a_jar_with_other_bytes_of_the_same_size_is_fetched_anew():
    (jar,) = resolve("broker")
    jar.write_bytes(bytes(SMALLEST.size_bytes))
    assert _sha256(resolve("broker")[0]) == SMALLEST.sha256


@asks_a_repository
def test_other_bytes_than_locked_are_refused_and_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    _lock_just(LockedJar(SMALLEST.coordinate, "0" * 64, SMALLEST.size_bytes), tmp_path, monkeypatch)
    with pytest.raises(JarsError, match=r"does not match its hash in jars.lock: run `rebalance-monitor jars` again"):
        resolve("broker")
    assert list(cache_folder().rglob("*.jar")) == []


@asks_a_repository
def test_a_killed_download_leaves_no_partial_jar_and_no_lock(tmp_path: Path):
    """The process is killed during the download of a jar. The next process downloads it again."""
    killed = _resolve_elsewhere(tmp_path, on_jar="lambda *_: os.kill(os.getpid(), 9)", check=False)
    assert killed.returncode == -9
    assert list(cache_folder().glob("jars/broker-*")) == []
    assert _sha256(resolve("broker")[0]) == SMALLEST.sha256


@asks_a_repository
def test_two_processes_at_once_fetch_once(tmp_path: Path):
    command = _command(tmp_path, on_jar="lambda *_: print('fetching')")
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    output = "".join(process.communicate()[0] for process in both)
    assert [process.returncode for process in both] == [0, 0]
    assert output.count("fetching") == 1
    assert output.count(SMALLEST.coordinate.file_name) == 2


@asks_a_repository
def test_no_network_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch):
    """The test uses an unreachable proxy, because disabling the network needs root."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=1")
    monkeypatch.setattr(cache, "_ATTEMPTS", 1)
    with pytest.raises(
        JarsError, match=r"could not be downloaded .*: check the network .*`rebalance-monitor jars` again"
    ) as error:
        resolve("broker")
    assert "\n" not in str(error.value)


def test_a_folder_that_cannot_be_written_is_one_line_with_the_remedy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE_DIR", "/proc/nowhere")
    with pytest.raises(
        JarsError, match=r"cannot be stored in /proc/nowhere.*or set REBALANCE_MONITOR_CACHE_DIR"
    ) as error:
        resolve("broker")
    assert error.value.exit_code == STAYS, "each restart fails until somebody changes the folder"


def test_a_full_disk_is_reported_before_the_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The lock file contains the sizes of the jars. This size is larger than any disk."""
    _lock_just(LockedJar(SMALLEST.coordinate, SMALLEST.sha256, 10**18), tmp_path, monkeypatch)
    with pytest.raises(
        JarsError, match=r"MB free, but the jars need .* MB: free space, or set REBALANCE_MONITOR_CACHE_DIR"
    ):
        resolve("broker")


def test_the_cache_is_where_the_user_keeps_caches(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("REBALANCE_MONITOR_CACHE_DIR", "~/jars")
    assert cache_folder() == Path.home() / "jars"
    monkeypatch.delenv("REBALANCE_MONITOR_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache_folder() == Path("/xdg/kafka-rebalance-monitor")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    assert cache_folder() == Path.home() / ".cache" / "kafka-rebalance-monitor"


def _lock_just(jar: LockedJar, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock = folder / "jars.lock"
    lock.write_text(format_lock({"broker": [jar]}))
    monkeypatch.setattr(cache, "LOCK_PATH", lock)


def _command(folder: Path, on_jar: str) -> list[str]:
    lines = [
        "import os, pathlib",
        "from streaming.jars import cache",
        f"cache.LOCK_PATH = pathlib.Path({str(folder / 'jars.lock')!r})",
        f"print(cache.resolve('broker', {on_jar})[0])",
    ]
    return [sys.executable, "-c", "\n".join(lines)]


def _resolve_elsewhere(
    folder: Path, on_jar: str = "lambda *_: None", *, check: bool = True, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Resolve in a separate process with additional environment variables."""
    return subprocess.run(
        _command(folder, on_jar), env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=check
    )


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
