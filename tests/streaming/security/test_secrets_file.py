"""The file with what nobody else may know: private, complete, and gone with its owner."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.security.secrets_file import java_properties, secrets_file

_OWNER = """
import sys, time
from streaming.security.secrets_file import secrets_file
with secrets_file({"sasl.jaas.config": "x"}) as file:
    print(file, flush=True)
    time.sleep(600)
"""

_START = """
from streaming.security.secrets_file import secrets_file
with secrets_file({"sasl.jaas.config": "x"}) as file:
    print("started")
"""


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_only_its_owner_can_read_it_and_it_is_gone_afterwards(tmp_path: Path) -> None:
    with secrets_file({"sasl.jaas.config": "hunter2"}) as file:
        assert file is not None
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert "hunter2" not in file.read_text()
    assert list(tmp_path.iterdir()) == []


def test_without_secrets_there_is_no_file(tmp_path: Path) -> None:
    with secrets_file({}) as file:
        assert file is None
        assert list(tmp_path.iterdir()) == []


def test_the_next_monitor_removes_what_a_killed_one_left_and_nothing_of_a_living_one(tmp_path: Path) -> None:
    """Whoever is killed for want of memory every night must not fill a folder with copies of a password."""
    with _owner() as killed, _owner() as living:
        left, in_use = (Path(process.stdout.readline().strip()) for process in (killed, living) if process.stdout)
        killed.kill()
        killed.wait()
        assert left.exists()
        with secrets_file({"a": "b"}) as mine:
            assert {path.parent for path in tmp_path.glob("*/client.properties")} == {
                in_use.parent,
                mine and mine.parent,
            }
        living.kill()


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o777])
def test_a_fifo_of_our_files_name_does_not_block_the_start(tmp_path: Path, mode: int) -> None:
    """Any local user can put one into the temporary folder: to open it waits for a writer for ever."""
    trap = tmp_path / "kafka-rebalance-monitor-secrets-trap"
    trap.mkdir()
    os.mkfifo(trap / "client.properties")
    trap.chmod(mode)
    started = subprocess.run([sys.executable, "-c", _START], timeout=60, check=True, capture_output=True, text=True)
    assert started.stdout == "started\n"
    assert (trap / "client.properties").is_fifo(), "not ours to remove"


@pytest.mark.parametrize("kind", ["link to a folder", "link to a file", "folder that others may write", "file"])
def test_what_others_may_have_made_is_left_alone(tmp_path: Path, kind: str) -> None:
    """A link would have us remove a folder of our own."""
    elsewhere, trap = tmp_path / "elsewhere", tmp_path / "kafka-rebalance-monitor-secrets-trap"
    elsewhere.mkdir(mode=0o700)
    (elsewhere / "client.properties").write_text("not to be removed")
    if kind == "link to a folder":
        trap.symlink_to(elsewhere)
    elif kind == "file":
        trap.write_text("not a folder")
    else:
        trap.mkdir()
        trap.chmod(0o777 if kind == "folder that others may write" else 0o700)
        if kind == "link to a file":
            (trap / "client.properties").symlink_to(elsewhere / "client.properties")
        else:
            (trap / "client.properties").write_text("not ours")
    with secrets_file({"a": "b"}) as file:
        assert file is not None
    assert (elsewhere / "client.properties").read_text() == "not to be removed"
    assert trap.exists()


def _owner() -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True)


def test_clusters_that_start_at_the_same_time_leave_each_other_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that was there and not yet locked was a killed monitor's to whoever came by at that moment."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    all_made = threading.Barrier(8)

    def make() -> bool:
        for _ in range(20):
            all_made.wait(60)
            with secrets_file({"name": "value"}) as file:
                all_made.wait(60)
                if file is None or not file.exists():
                    return False
                all_made.wait(60)
        return True

    with ThreadPoolExecutor(8) as clusters:
        assert all(made.result() for made in [clusters.submit(make) for _ in range(8)])
    assert list(tmp_path.iterdir()) == []


@given(st.text())
def test_every_letter_comes_back_as_java_reads_it(value: str) -> None:
    r"""`Properties.load`: \uXXXX is one UTF-16 unit, and nothing else in the line can mean anything."""
    name, _, written = java_properties({"a.b": value}).removesuffix("\n").partition("=")
    assert name == "a.b"
    assert bytes.fromhex(written.replace("\\u", "")).decode("utf-16-be") == value
