"""Test the page for a server: its commands and files are run and used in the order in which the page has them."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from streaming.config.load import Settings, load_settings
from streaming.doctor.alerting import TEST_ALERT
from tests.deploy.test_systemd import UNIT, service
from tests.monitoring_programs import monitoring_programs

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "deploy" / "SERVER.md").read_text()
STEPS, NOT_RUN = PAGE.split("## Not run here")
_FILE = re.compile(r"Write the file `([^`]+)`")
_SHOWN_OUTPUT = "ok  "


def parts() -> Iterator[tuple[str, str]]:
    """Yield each command of the page as ("", command), and each file as (path, content), in their order."""
    path, content = "", None
    for line in STEPS.splitlines():
        if line.startswith("```"):
            if content is not None:
                yield path, content
            content = "" if content is None else None
        elif content is not None:
            content += f"{line}\n"
        elif named := _FILE.search(line):
            path = named[1]
        elif line.startswith("    ") and not line.strip().startswith(_SHOWN_OUTPUT):
            yield "", line.strip()


def shown_output() -> list[str]:
    """Return the lines of output that the page shows."""
    lines = [line.strip() for line in STEPS.splitlines() if line.startswith("    ")]
    return [line for line in lines if line.startswith(_SHOWN_OUTPUT)]


def not_run() -> tuple[str, ...]:
    """Return the first words of the commands that the page lists as not run."""
    rows = [row.split("|")[1] for row in NOT_RUN.splitlines() if row.startswith("| `")]
    return tuple(command for row in rows for command in re.findall(r"`([^`]+)`", row))


FILES = {path: content for path, content in parts() if path}
COMMANDS = [command for path, command in parts() if not path]
PROGRAM = "/opt/rebalance-monitor/venv/bin/rebalance-monitor"


def settings(folder: Path) -> Settings:
    """Load the page's monitor.toml. Its certificate and its password are in this folder."""
    (folder / "kafka-ca.pem").write_text("-----BEGIN CERTIFICATE-----")
    (folder / "kafka-password").write_text("hunter2")
    (folder / "kafka-password").chmod(0o600)
    file = folder / "monitor.toml"
    file.write_text(FILES["/etc/rebalance-monitor/monitor.toml"].replace("/etc/rebalance-monitor/", f"{folder}/"))
    return load_settings(file)


def test_the_page_has_both_files_and_each_command_in_the_list_of_exceptions():
    """If a command leaves the page, its row must leave the list of commands that were not run."""
    assert set(FILES) == {"/etc/rebalance-monitor/monitor.toml", "/etc/prometheus/prometheus.yml"}
    assert [one for one in not_run() if one not in STEPS] == []
    assert len([one for one in COMMANDS if not one.startswith(not_run())]) >= 12


def test_the_unit_starts_the_program_of_the_page_as_its_user_and_may_write_its_folders(tmp_path: Path):
    """The page, the unit and the configuration must name the same program, user, files and folders."""
    directives, page = service(), settings(tmp_path)
    assert directives["ExecStart"] == [f"{PROGRAM} run --config /etc/rebalance-monitor/monitor.toml"]
    (command,) = [shlex.split(one) for one in COMMANDS if one.startswith("useradd ")]
    (user,), (folder,) = directives["User"], directives["StateDirectory"]
    assert (command[-1], command[command.index("--home-dir") + 1]) == (user, f"/var/lib/{folder}")
    assert {Path(page.paths.checkpoint).parent, Path(page.paths.tables).parent} == {Path("/var/lib", folder)}
    assert page.metrics.port == 9560, "the page names this port"
    assert f"install --mode 0644 {UNIT.relative_to(ROOT)} /etc/systemd/system/" in COMMANDS


def test_prometheus_and_alertmanager_listen_only_on_loopback(tmp_path: Path):
    """Without arguments, both listen on all addresses and need no password. So does the recommended node exporter."""
    (install,) = [one for one in COMMANDS if one.startswith("apt-get install") and "prometheus" in one]
    assert "--no-install-recommends" in install.split()
    arguments = {}
    for name in ("prometheus", "prometheus-alertmanager"):
        (command,) = [one for one in COMMANDS if one.startswith("sed -i ") and one.endswith(f" /etc/default/{name}")]
        file = tmp_path / name
        file.write_text('# a comment\nARGS=""\n')
        subprocess.run([*shlex.split(command)[:-1], file], check=True)
        arguments[name] = file.read_text().partition("ARGS=")[2].strip().strip('"').split()
    assert arguments == {
        "prometheus": ["--web.listen-address=127.0.0.1:9090"],
        "prometheus-alertmanager": ["--web.listen-address=127.0.0.1:9093", "--cluster.listen-address="],
    }
    last = COMMANDS.index(command)
    assert COMMANDS[last + 1] == "systemctl restart prometheus prometheus-alertmanager", "at once"


def test_the_page_sets_the_addresses_to_which_alerts_link(tmp_path: Path):
    """Without them, the links of alerts open localhost on the machine of the on-call engineer, or nothing."""
    links = settings(tmp_path).links
    assert (links.page_url, links.grafana_url) == ("https://monitor.example.com:9560", "https://grafana.example.com")


def test_the_page_installs_the_packages_like_the_image():
    """`build.sh`, which a slow test runs, verifies the same packages, and also those that build pyspark."""
    script = (ROOT / "deploy" / "image" / "build.sh").read_text()
    installs = [one for one in COMMANDS if "pip install" in one]
    assert [one.partition("pip ")[2].partition(" requirements")[0] for one in installs] == [
        "install --require-hashes --requirement",
        "install --no-deps dist/kafka_rebalance_monitor-0.1.0-py3-none-any.whl",
    ]
    assert "install --require-hashes --no-build-isolation -r requirements.lock" in script
    assert 'version = "0.1.0"' in (ROOT / "pyproject.toml").read_text()


SANDBOX = ("unshare", "--mount", "--net", "--pid", "--fork", "--kill-child")
ENTER = """
mount -t tmpfs sandbox {folder}
mkdir {folder}/changes {folder}/work {folder}/root
mount -t overlay overlay -o lowerdir=/,upperdir={folder}/changes,workdir={folder}/work {folder}/root
mount -t proc proc {folder}/root/proc
mount --rbind /dev {folder}/root/dev
ip link set lo up
exec chroot {folder}/root bash -eu -c "$1"
"""
"""Start a shell in a copy of the file system that keeps no change, without network and with its own processes."""

BEFORE = f"""
cd {ROOT}
chmod 755 /root  # the interpreter of the tests can be there, and the user of the service runs it
echo -----BEGIN CERTIFICATE----- > kafka-ca.pem
echo hunter2 > kafka-password
"""
AFTER = {
    "python3 -m venv /opt/rebalance-monitor/venv": f"""
printf '#!/bin/sh\ncd {ROOT} && exec {sys.executable} -m streaming.cli "$@"\n' > {PROGRAM}
chmod 755 {PROGRAM}
""",
    "install --mode 0644 deploy/compose/receivers.example.yaml /etc/prometheus/receivers.yaml": """
cp deploy/compose/receivers.log.yaml /etc/prometheus/receivers.yaml
echo 127.0.0.1 localhost receiver > /etc/hosts
""",
    "amtool check-config /etc/prometheus/alertmanager.yml": """
sed -i 's/group_wait: 30s/group_wait: 1s/' /etc/prometheus/alertmanager.yml
python3 -I -u deploy/compose/receiver.py > /tmp/receiver.log &
start() { su --shell /bin/sh --command "exec $* > /tmp/${1##*/}.log 2>&1" prometheus & }
. /etc/default/prometheus
start $PROMETHEUS --config.file=/etc/prometheus/prometheus.yml --storage.tsdb.path=/tmp/tsdb $ARGS
. /etc/default/prometheus-alertmanager
start $ALERTMANAGER --config.file=/etc/prometheus/alertmanager.yml --storage.path=/tmp/am $ARGS
for port in 9090 9093
do curl --silent --retry 60 --retry-delay 1 --retry-all-errors localhost:$port/-/ready > /dev/null
done  # with --output, curl would fail at the second answer, because it cannot truncate /dev/null
for path in targets rules  # the page waits for a scrape and an evaluation of the rules
do for _ in $(seq 120)
   do curl --silent localhost:9090/api/v1/$path | grep --quiet '"health":"unknown"' || break
      sleep 1
   done
done
""",
}
"""What an engineer, pip or systemd does after a command of the page. The started programs are real."""

AT_THE_END = """
ss --listening --tcp --udp --numeric --no-header | sed 's/  */ /g; s/^/listens: /'
for _ in $(seq 60)
do grep --quiet critical /tmp/receiver.log && break || sleep 1
done
cat /tmp/receiver.log
"""


def script() -> str:
    """Return a shell script that follows the page."""
    programs = monitoring_programs()
    lines = [f"PROMETHEUS={programs.prometheus} ALERTMANAGER={programs.alertmanager}", BEFORE]
    for path, content in parts():
        if path:
            lines.append(f"cat > {path} <<'END_OF_FILE'\n{content}END_OF_FILE")
            continue
        if not content.startswith(not_run()):
            lines += [f"echo {shlex.quote('+ ' + content)}", f"{content} || echo exit code $?"]
        lines.append(AFTER.get(content, ""))
    return "\n".join([*lines, AT_THE_END])


def has_sandbox() -> bool:
    """Return whether this user may mount a copy of the file system. In many containers, root may not."""
    with tempfile.TemporaryDirectory() as folder:
        command = [*SANDBOX, "bash", "-eu", "-c", ENTER.format(folder=folder), "bash", "true"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not has_sandbox(), reason="no copy of the file system")
def test_an_engineer_who_follows_the_page_gets_a_test_alert(tmp_path: Path):
    """No broker answers, and nothing listens on the monitor's port. Everything else is real."""
    assert set(AFTER) <= set(COMMANDS)
    command = [*SANDBOX, "bash", "-eu", "-c", ENTER.format(folder=tmp_path), "bash", script()]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    first, second = ran.stdout.split("+ su --shell /bin/sh ")[1:]
    assert ran.stdout.count("exit code") == 2, f"of both checks, because no broker answers\n{ran.stdout}"
    listening = {line.split()[5] for line in ran.stdout.splitlines() if line.startswith("listens: ")}
    assert listening == {"127.0.0.1:9090", "127.0.0.1:9093", "0.0.0.0:9094"}, (
        "the last one is the receiver of this test"
    )
    for line in (
        "ok           checkpoint: /var/lib/kafka-rebalance-monitor/checkpoint does not exist yet",
        "failed       brokers: no broker at kafka-1:9093,kafka-2:9093 answered",
        "failed       Prometheus: http://localhost:9090 does not answer",
    ):
        assert line in first, ran.stdout
    for line in (
        *shown_output(),
        "failed       Prometheus scrapes the monitor of 'prod': the target http://localhost:9560/metrics is down",
        "rules in 7 groups, all healthy",
        "ok           Prometheus sends alerts: to http://localhost:9093",
        f'on-call: firing {{"alertname": "{TEST_ALERT}", "cluster": "prod", "group": "',
    ):
        assert line in second, ran.stdout
