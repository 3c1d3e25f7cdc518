"""Test the script that finds or installs a browser, or prints in one line why it cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "deploy" / "chromium.sh"


def run(folder: Path, *programs: str) -> subprocess.CompletedProcess[str]:
    """Run the script with a PATH that has only these programs and the ones that the shell needs."""
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


def test_an_installed_browser_is_used(tmp_path: Path):
    ran = run(tmp_path, "google-chrome", "chromedriver")
    assert ran.stdout.splitlines() == [str(tmp_path / "google-chrome"), str(tmp_path / "chromedriver")]


def test_without_browser_and_without_apt_the_error_names_what_is_missing(tmp_path: Path):
    """A browser without its driver is not enough. The script downloads nothing without apt."""
    ran = run(tmp_path, "no-chromedriver-here")
    assert ran.returncode == 1
    assert ran.stderr == (
        "chromium: chromium with chromedriver not found, and there is no apt-get to install it: "
        "install chromium chromium-driver\n"
    )
