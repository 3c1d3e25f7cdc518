"""Test that a demo deletes the files of an earlier demo and no other files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streaming.demo.folder import MARKER, demo_folder
from streaming.demo.load import DemoError


def test_the_files_of_a_demo_stay_until_the_next_demo_deletes_them(tmp_path: Path):
    with demo_folder(tmp_path / ".demo") as first:
        (first / "tables").mkdir()
        (first / "tables" / "rows").write_text("1")
        (first / "monitor.toml").write_text("")
    assert (first / "tables" / "rows").exists()
    with demo_folder(tmp_path / ".demo") as second:
        assert second == first
        assert sorted(entry.name for entry in second.iterdir()) == sorted([MARKER, "logs"])


def test_a_folder_with_other_files_is_refused_and_not_changed(tmp_path: Path):
    """`--folder ~` must not delete a home folder."""
    (tmp_path / "thesis").write_text("all of it")
    with pytest.raises(DemoError, match="files that no demo created, so it was not cleared: set --folder"):
        demo_folder(tmp_path).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis"]


def test_the_target_of_a_link_in_the_folder_is_not_deleted(tmp_path: Path):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "thesis").write_text("all of it")
    with demo_folder(tmp_path / ".demo") as folder:
        (folder / "link").symlink_to(elsewhere)
    with demo_folder(folder):
        assert not (folder / "link").exists()
    assert (elsewhere / "thesis").exists()


def test_a_second_demo_at_the_same_time_is_refused_with_the_process_of_the_first(tmp_path: Path):
    """The second demo would delete the tables of the running monitor."""
    with demo_folder(tmp_path / ".demo") as folder:
        (folder / "tables").mkdir()
        with pytest.raises(
            DemoError, match=rf"another demo runs in .*\.demo \(process {os.getpid()}\): stop the other demo"
        ):
            demo_folder(folder).__enter__()
        assert (folder / "tables").exists()
    with demo_folder(folder):
        pass


def test_a_folder_that_cannot_be_created_is_an_error_in_one_line_with_the_remedy(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DemoError, match=r"cannot be used .*: set --folder to a different folder") as refused:
        demo_folder(tmp_path / "file").__enter__()
    assert "\n" not in str(refused.value)


def test_a_folder_to_which_delta_rs_cannot_write_is_refused_before_anything_starts(tmp_path: Path):
    """Without this check, the demo started the broker and its groups. The monitor then refused `paths.tables`."""
    with pytest.raises(DemoError, match=r"demo\^1 cannot be used .*delta-rs .*: set --folder to a different folder"):
        demo_folder(tmp_path / "demo^1").__enter__()
    assert not (tmp_path / "demo^1").exists()


def test_an_error_inside_the_demo_is_not_reported_as_an_error_of_the_folder(tmp_path: Path):
    with pytest.raises(ConnectionError, match="the broker's"), demo_folder(tmp_path / ".demo"):
        raise ConnectionError("the broker's")
