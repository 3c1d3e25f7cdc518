"""A demo clears what an earlier demo left, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from streaming.demo import DemoError
from streaming.demo.folder import MARKER, demo_folder


def test_what_a_demo_leaves_is_kept_until_the_next_one_clears_it(tmp_path: Path):
    with demo_folder(tmp_path / ".demo") as first:
        (first / "tables").mkdir()
        (first / "tables" / "rows").write_text("1")
        (first / "monitor.toml").write_text("")
    assert (first / "tables" / "rows").exists()
    with demo_folder(tmp_path / ".demo") as second:
        assert second == first
        assert sorted(entry.name for entry in second.iterdir()) == sorted([MARKER, "logs"])


def test_a_folder_that_is_not_a_demos_is_refused_and_nothing_in_it_is_touched(tmp_path: Path):
    """`--folder ~` must not empty a home."""
    (tmp_path / "thesis").write_text("all of it")
    with pytest.raises(DemoError, match="files that are not a demo's, so it was not cleared: set --folder"):
        demo_folder(tmp_path).__enter__()
    assert [entry.name for entry in tmp_path.iterdir()] == ["thesis"]


def test_what_a_link_in_the_folder_points_to_is_not_cleared(tmp_path: Path):
    (elsewhere := tmp_path / "elsewhere").mkdir()
    (elsewhere / "thesis").write_text("all of it")
    with demo_folder(tmp_path / ".demo") as folder:
        (folder / "link").symlink_to(elsewhere)
    with demo_folder(folder):
        assert not (folder / "link").exists()
    assert (elsewhere / "thesis").exists()


def test_a_second_demo_at_the_same_time_is_refused_by_the_first_ones_name(tmp_path: Path):
    """It would clear the first one's tables under its monitor."""
    with demo_folder(tmp_path / ".demo") as folder:
        (folder / "tables").mkdir()
        with pytest.raises(DemoError, match=rf"another demo runs in .*\.demo \(process {os.getpid()}\): stop it"):
            demo_folder(folder).__enter__()
        assert (folder / "tables").exists()
    with demo_folder(folder):
        pass


def test_a_folder_that_cannot_be_made_is_one_line_with_the_remedy(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DemoError, match=r"cannot be used .*: set --folder to a different folder") as refused:
        demo_folder(tmp_path / "file").__enter__()
    assert "\n" not in str(refused.value)


def test_an_error_of_the_demo_itself_is_not_blamed_on_the_folder(tmp_path: Path):
    with pytest.raises(ConnectionError, match="the broker's"), demo_folder(tmp_path / ".demo"):
        raise ConnectionError("the broker's")
