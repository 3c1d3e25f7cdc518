"""The script that finds Prometheus and Alertmanager, or fetches Debian's, or says in one line why it cannot."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[2] / "deploy" / "prometheus.sh"
PROGRAMS = ("prometheus", "promtool", "prometheus-alertmanager", "amtool")
EMPTY_PROGRAM = "#!/bin/sh\nexit 0\n"

# apt-get as it behaves where there are no lists yet: it downloads nothing before `update` was run. dpkg-deb unpacks
# the named package's programs.
APT_GET = """#!/bin/sh
echo "$@" >>"$HOME/asked"
[ "$1" = update ] && touch "$HOME/lists" && exit
[ -e "$HOME/lists" ] || { echo "E: Unable to locate package" >&2; exit 100; }
touch prometheus_2_amd64.deb prometheus-alertmanager_0_amd64.deb
"""
DPKG_DEB = """#!/bin/sh
mkdir -p "$3/usr/bin"
case "$2" in
*alertmanager*) programs="prometheus-alertmanager amtool" ;;
*) programs="prometheus promtool" ;;
esac
for program in $programs; do
    printf '#!/bin/sh\\n' >"$3/usr/bin/$program" && chmod +x "$3/usr/bin/$program"
done
"""


def run(folder: Path, programs: dict[str, str], user_id: int = 1000) -> subprocess.CompletedProcess[str]:
    """Run it where these programs are to be had, and what the shell needs."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    for needed in ("bash", "sh", "mkdir", "mktemp", "mv", "rm", "touch", "chmod"):
        found = shutil.which(needed)
        assert found is not None
        if not (folder / needed).exists():
            (folder / needed).symlink_to(found)
    for program, text in {"id": f"#!/bin/sh\necho {user_id}\n", **programs}.items():
        (folder / program).write_text(text)
        (folder / program).chmod(0o755)
    environment = {"PATH": str(folder), "HOME": str(home)}
    bash = str(folder / "bash")
    return subprocess.run([bash, str(SCRIPT)], env=environment, capture_output=True, text=True, check=False)


def test_programs_that_are_there_are_taken(tmp_path: Path):
    ran = run(tmp_path, dict.fromkeys(PROGRAMS, EMPTY_PROGRAM))
    assert ran.stdout.splitlines() == [str(tmp_path / program) for program in PROGRAMS]


def test_the_authors_own_name_of_alertmanager_is_known_too(tmp_path: Path):
    """Debian calls it prometheus-alertmanager; the project's own archives do not."""
    ran = run(tmp_path, dict.fromkeys(("prometheus", "promtool", "alertmanager", "amtool"), EMPTY_PROGRAM))
    assert ran.stdout.splitlines()[2] == str(tmp_path / "alertmanager")


def test_without_apt_it_says_what_is_missing(tmp_path: Path):
    """A server without its promtool is not enough: another one's would check other rules than the server runs."""
    ran = run(tmp_path, {"prometheus": EMPTY_PROGRAM})
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.splitlines() == [
        "prometheus: no prometheus with alertmanager here, and no apt-get to fetch them: install both"
    ]


def test_debians_packages_are_unpacked_not_installed_and_only_once(tmp_path: Path):
    """Installed, they would be two servers that run on this machine from now on."""
    machine = {"apt-get": APT_GET, "dpkg-deb": DPKG_DEB}
    first = run(tmp_path, machine, user_id=0)
    unpacked = tmp_path / "home" / ".cache" / "kafka-rebalance-monitor" / "prometheus" / "usr" / "bin"
    assert (first.returncode, first.stdout.splitlines()) == (0, [str(unpacked / program) for program in PROGRAMS])
    again = run(tmp_path, machine, user_id=0)
    assert again.stdout == first.stdout
    wanted = "download -q prometheus prometheus-alertmanager"
    assert (tmp_path / "home" / "asked").read_text().splitlines() == [wanted, "update -q", wanted]
    assert [file.name for file in unpacked.parents[2].iterdir()] == ["prometheus"], "nothing half done is left"


def test_who_may_not_update_apts_lists_is_told_what_to_install(tmp_path: Path):
    ran = run(tmp_path, {"apt-get": APT_GET, "dpkg-deb": DPKG_DEB})
    assert (ran.returncode, ran.stdout) == (1, "")
    said = "apt could not download prometheus prometheus-alertmanager: see its words above; or apt install them"
    assert ran.stderr.splitlines()[-1] == f"prometheus: {said}"
