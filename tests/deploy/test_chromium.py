"""The script that finds a browser, or gets one, or says in one line why it cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "deploy" / "chromium.sh"


def run(folder: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    """Run it where these programs are to be had, and what the shell needs."""
    for needed in ("bash", "id", "env"):
        found = shutil.which(needed)
        assert found is not None
        (folder / needed).symlink_to(found)
    for program in programs:
        (folder / program).write_text("#!/bin/sh\nexit 0\n")
        (folder / program).chmod(0o755)
    environment = {"PATH": str(folder), "CHROMEWEBDRIVER": str(folder / "nowhere")}
    bash = str(folder / "bash")
    return subprocess.run([bash, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


def test_a_browser_that_is_there_is_taken(tmp_path: Path):
    ran = run(tmp_path, "google-chrome", "chromedriver")
    assert ran.stdout.splitlines() == [str(tmp_path / "google-chrome"), str(tmp_path / "chromedriver")]


def test_without_browser_and_without_apt_it_says_what_is_missing(tmp_path: Path):
    """A browser without its driver is of no use either. Nothing is downloaded behind anybody's back."""
    ran = run(tmp_path, "no-chromedriver-here")
    assert ran.returncode == 1
    assert ran.stderr == (
        "chromium: chromium with chromedriver not found, and there is no apt-get to install it: "
        "install chromium chromium-driver\n"
    )
