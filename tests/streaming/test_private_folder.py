"""Tests of private folders in the temporary folder. They are removed with the last process that uses them."""

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

from streaming.errors import STAYS
from streaming.private_folder import private_folder
from streaming.temporary_folder import TemporaryFolderError

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
def _use_separate_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_other_users_cannot_enter_the_folder_and_it_is_removed_afterwards(tmp_path: Path) -> None:
    """Other users of the machine must not read secrets or records."""
    with private_folder(PREFIX) as folder:
        assert list(folder.path.iterdir()) == []
        (folder.path / "file").write_text("x")
        assert [stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()] == [0o700]
    assert list(tmp_path.iterdir()) == []


def test_the_next_process_removes_the_folder_of_a_killed_one_and_none_of_a_living_one(tmp_path: Path) -> None:
    """A monitor that is killed every night because of memory must not fill the disk."""
    with _running(_OWNER) as killed, _running(_OWNER) as living:
        left, in_use = (Path(_first_line(process)) for process in (killed, living))
        killed.kill()
        killed.wait()
        assert (left / "inner" / "file").exists()
        with private_folder(PREFIX) as mine:
            assert set(tmp_path.iterdir()) == {in_use.parent, mine.path.parent}
            assert (in_use / "inner" / "file").exists()
        living.kill()


def test_the_folder_of_a_killed_process_stays_while_its_child_uses_it(tmp_path: Path) -> None:
    """Spark's JVM outlives a killed monitor for a moment, and would create its folders again."""
    with _running(_OWNER_WITH_CHILD) as killed:
        path, child = _first_line(killed).split()
        killed.kill()
    with private_folder(PREFIX):
        assert Path(path).exists()
    os.kill(int(child), signal.SIGKILL)
    for _ in range(1000):  # the kernel releases the lock shortly after the kill
        with private_folder(PREFIX):
            if not Path(path).exists():
                break
        time.sleep(0.01)
    assert list(tmp_path.iterdir()) == []


def test_a_process_killed_while_it_removes_its_folder_leaves_the_rest_to_the_next(tmp_path: Path) -> None:
    """A process that stops too slowly is killed. It must release the lock last."""
    half_removed = tmp_path / f"{PREFIX}old"
    half_removed.mkdir(mode=0o700)
    (half_removed / "lock").touch(mode=0o600)
    with private_folder(PREFIX):
        assert not half_removed.exists()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_fifo_with_the_name_of_the_lock_does_not_block_the_start(tmp_path: Path, mode: int) -> None:
    """Any local user can create one in the temporary folder. Opening it would wait for a writer without end."""
    trap = tmp_path / f"{PREFIX}trap"
    trap.mkdir()
    os.mkfifo(trap / "lock")
    trap.chmod(mode)
    started = subprocess.run([sys.executable, "-c", _START], timeout=60, check=True, capture_output=True, text=True)
    assert started.stdout == "started\n"
    assert (trap / "lock").is_fifo(), "the fifo belongs to a different user and stays"


@pytest.mark.parametrize("kind", ["link to a folder", "link to a file", "folder that others may write", "file"])
def test_files_that_other_users_may_have_made_are_not_removed(tmp_path: Path, kind: str) -> None:
    """A link could make the monitor remove one of its own folders."""
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
            (trap / "lock").write_text("the folder belongs to a different user")
    with private_folder(PREFIX):
        pass
    assert (elsewhere / "lock").read_text() == "not to be removed"
    assert trap.exists()


def test_processes_that_start_at_the_same_time_keep_each_others_folders(tmp_path: Path) -> None:
    """Before, a new folder without its lock looked like the folder of a killed monitor."""
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


@pytest.mark.parametrize(
    ("is_found", "error", "why"),
    [
        (False, "No usable temporary directory found in", "TMPDIR, /tmp, /var/tmp and the current folder are full"),
        (True, "No such file or directory", "the folder was removed after the start"),
    ],
)
def test_a_temporary_folder_that_cannot_be_used_is_one_line(
    is_found: bool, error: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With full disks, `run` and `rebuild` ended with a traceback and code 1, so systemd restarted the monitor."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing") if is_found else None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(tmp_path / "missing")])
    with pytest.raises(TemporaryFolderError) as refused, private_folder(PREFIX):
        pytest.fail(why)
    assert error in str(refused.value)
    assert str(refused.value).endswith("or set TMPDIR to a writable folder")
    assert refused.value.exit_code == STAYS


def test_an_error_of_the_user_of_a_private_folder_is_not_changed() -> None:
    with pytest.raises(OSError, match="of the caller"), private_folder(PREFIX):
        raise OSError("of the caller")


def _running(program: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)


def _first_line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()
