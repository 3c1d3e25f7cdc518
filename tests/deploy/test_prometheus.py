"""Test the script that finds or installs Prometheus and Alertmanager, or prints in one line why it cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "deploy" / "prometheus.sh"
PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager", "amtool")
EMPTY_PROGRAM = "#!/bin/sh\nexit 0\n"

# A machine on which the user may use sudo. Prometheus is installed, Alertmanager is not. apt-get installs the missing
# programs. The file `asked` records every command that is run as root.
SUDO = """#!/bin/sh
shift
[ "$1" = true ] && exit
echo "$@" >>"$HOME/asked"
case "$*" in *install*) ;; *) exit ;; esac
for program in promtool prometheus-alertmanager amtool; do
    printf '#!/bin/sh\\n' >"$HOME/../$program" && chmod +x "$HOME/../$program"
done
"""
DPKG_QUERY = """#!/bin/sh
[ "$4" = prometheus ] && echo "install ok installed" || exit 1
"""


def run(folder: Path, programs: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run the script as a normal user, with a PATH that has only these programs and the ones that the shell needs."""
    home = folder / "home"
    home.mkdir()
    for needed in ("bash", "sh", "grep", "chmod", "flock"):
        found = shutil.which(needed)
        assert found is not None
        (folder / needed).symlink_to(found)
    for program, text in {"id": "#!/bin/sh\necho 1000\n", **programs}.items():
        (folder / program).write_text(text)
        (folder / program).chmod(0o755)
    environment = {"PATH": str(folder), "HOME": str(home)}
    bash = str(folder / "bash")
    return subprocess.run([bash, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


def test_installed_programs_are_used(tmp_path: Path):
    ran = run(tmp_path, dict.fromkeys(PROGRAMS, EMPTY_PROGRAM))
    assert ran.stdout.splitlines() == [str(tmp_path / program) for program in PROGRAMS]


def test_alertmanager_is_found_under_its_original_name(tmp_path: Path):
    """Debian names it prometheus-alertmanager, the archives of the Prometheus project alertmanager."""
    ran = run(tmp_path, dict.fromkeys(("prometheus", "promtool", "alertmanager", "amtool"), EMPTY_PROGRAM))
    assert ran.stdout.splitlines()[2] == str(tmp_path / "alertmanager")


def test_without_apt_the_error_names_what_is_missing(tmp_path: Path):
    """A server without promtool is not enough, because the tests need promtool."""
    ran = run(tmp_path, {"prometheus": EMPTY_PROGRAM})
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (
        "prometheus: prometheus with alertmanager not found, and there is no apt-get to install it: "
        "install prometheus prometheus-alertmanager\n"
    )


def test_without_the_right_to_install_the_error_names_the_packages(tmp_path: Path):
    ran = run(tmp_path, {"apt-get": EMPTY_PROGRAM})
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.splitlines() == [
        "prometheus: prometheus with alertmanager not found: apt install prometheus prometheus-alertmanager"
    ]


def test_a_newly_installed_server_is_stopped_and_an_older_one_is_not_changed(tmp_path: Path):
    """Debian starts a server when it installs it. Without this step the tests would open ports permanently."""
    machine = {"apt-get": EMPTY_PROGRAM, "sudo": SUDO, "dpkg-query": DPKG_QUERY, "prometheus": EMPTY_PROGRAM}
    ran = run(tmp_path, machine)
    assert (ran.returncode, ran.stdout.splitlines()) == (0, [str(tmp_path / program) for program in PROGRAMS])
    apt = "DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends"
    assert (tmp_path / "home" / "asked").read_text().splitlines() == [
        "apt-get update -q",
        f"env {apt} prometheus-alertmanager",
        "invoke-rc.d --quiet prometheus-alertmanager stop",
        "update-rc.d prometheus-alertmanager disable",
    ]
