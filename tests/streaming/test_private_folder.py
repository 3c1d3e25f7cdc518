"""Folders of our own in the temporary folder: private, and gone with all that use them."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from streaming.private_folder import private_folder

PREFIX = "kafka-rebalance-monitor-test-"

_OWNER = f"""
import time
from streaming.private_folder import private_folder
with private_folder("{PREFIX}") as folder:
    (folder.path / "inner").mkdir()
    (folder.path / "inner" / "file").write_text("x")
    print(folder.path, flush=True)
    time.sleep(600)
"""

_OWNER_WITH_CHILD = f"""
import subprocess, time
from streaming.private_folder import private_folder
with private_folder("{PREFIX}") as folder:
    child = subprocess.Popen(["sleep", "600"], pass_fds=[folder.lock], stdout=subprocess.DEVNULL)
    print(folder.path, child.pid, flush=True)
    time.sleep(600)
"""

_START = f"""
from streaming.private_folder import private_folder
with private_folder("{PREFIX}"):
    print("started")
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_nobody_else_may_enter_it_and_it_is_gone_afterwards(tmp_path: Path) -> None:
    """Neither a secret nor a block of somebody's records is for other users of the machine."""
    with private_folder(PREFIX) as folder:
        assert list(folder.path.iterdir()) == []
        (folder.path / "file").write_text("x")
        assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [0o700]
    assert list(tmp_path.iterdir()) == []


def test_the_next_one_removes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    """A monitor that is killed every night for want of memory must not fill the disk."""
    with _running(_OWNER) as killed, _running(_OWNER) as living:
        left, in_use = (Path(_first_line(process)) for process in (killed, living))
        killed.kill()
        killed.wait()
        assert (left / "inner" / "file").exists()
        with private_folder(PREFIX) as mine:
            assert set(tmp_path.iterdir()) == {in_use.parent, mine.path.parent}
            assert (in_use / "inner" / "file").exists()
        living.kill()


def test_the_folder_of_a_killed_one_stays_as_long_as_its_child_uses_it(tmp_path: Path) -> None:
    """Spark's JVM outlives a killed monitor by some moments, and would make its folders again."""
    with _running(_OWNER_WITH_CHILD) as killed:
        path, child = _first_line(killed).split()
        killed.kill()
    with private_folder(PREFIX):
        assert Path(path).exists()
    os.kill(int(child), signal.SIGKILL)
    for _ in range(1000):  # the kernel lets go of the lock some moments after the kill
        with private_folder(PREFIX):
            if not Path(path).exists():
                break
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []


def test_one_that_was_killed_while_it_removed_its_folder_leaves_it_to_the_next(tmp_path: Path) -> None:
    """Whoever stops too slowly is killed. The lock must be the last to go."""
    half_removed = tmp_path / f"{PREFIX}old"
    half_removed.mkdir(mode=0o700)
    (half_removed / "lock").touch(mode=0o600)
    with private_folder(PREFIX):
        assert not half_removed.exists()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_fifo_of_the_locks_name_does_not_block_the_start(tmp_path: Path, mode: int) -> None:
    """Any local user can put one into the temporary folder: to open it waits for a writer for ever."""
    trap = tmp_path / f"{PREFIX}trap"
    trap.mkdir()
    os.mkfifo(trap / "lock")
    trap.chmod(mode)
    started = subprocess.run([sys.executable, "-c", _START], timeout=60, check=True, capture_output=True, text=True)
    assert started.stdout == "started\n"
    assert (trap / "lock").is_fifo(), "not ours to remove"


@pytest.mark.parametrize("kind", ["link to a folder", "link to a file", "folder that others may write", "file"])
def test_what_others_may_have_made_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A link would have us remove a folder of our own."""
    elsewhere, trap = tmp_path / "elsewhere", tmp_path / f"{PREFIX}trap"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "lock").write_text("not to be removed")
    if kind == "link to a folder":
        trap.symlink_to(elsewhere)
    elif kind == "file":
        trap.write_text("not a folder")
    else:
        trap.mkdir()
        trap.chmod(0o777 if kind == "folder that others may write" else 0o700)
        if kind == "link to a file":
            (trap / "lock").symlink_to(elsewhere / "lock")
        else:
            (trap / "lock").write_text("not ours")
    with private_folder(PREFIX):
        pass
    assert (elsewhere / "lock").read_text() == "not to be removed"
    assert trap.exists()


def test_those_that_start_at_the_same_time_leave_each_other_their_folders(tmp_path: Path) -> None:
    """A folder that was there and not yet locked was a killed monitor's to whoever came by at that moment."""
    all_made = threading.Barrier(8)

    def make() -> bool:
        for _ in range(20):
            all_made.wait(60)
            with private_folder(PREFIX) as folder:
                all_made.wait(60)
                if not folder.path.exists():
                    return False
                all_made.wait(60)
        return True

    with ThreadPoolExecutor(8) as clusters:
        assert all(made.result() for made in [clusters.submit(make) for _ in range(8)])
    assert list(tmp_path.iterdir()) == []


def _running(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
