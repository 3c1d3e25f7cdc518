"""Test that the compose file follows its specification and fits the image, the demo and the mounted files."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from compose_spec import PyCompose

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import load_settings
from streaming.demo.__main__ import main as demo
from streaming.doctor.alerting import TEST_ALERT
from streaming.embedded.ports import free_port
from streaming.embedded.properties import broker_properties
from streaming.jars import KAFKA_VERSION
from streaming.spark.query import BATCH_GRACE_SECONDS
from tests.deploy.test_alertmanager import amtool
from tests.end_to_end.monitor_process import until
from tests.end_to_end.prometheus_process import RealAlertmanager

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
_VARIABLE = re.compile(r"\$\{([A-Z_]+):([-?])([^}]*)\}")


def compose_with(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the compose file with these values of .env, as Compose does. `name` is the name of the project."""

    def value(variable: re.Match[str]) -> str:
        name, operator, text = variable.groups()
        if operator == "?" and not variables.get(name):
            raise ValueError(text)
        return variables.get(name) or str(text)

    text = _VARIABLE.sub(value, (FOLDER / "compose.yaml").read_text())
    assert "${" not in text, "a variable without a default or an error message"
    loaded: dict[str, Any] = yaml.safe_load(text.replace("$$", "$"))
    return loaded | {"name": variables.get("COMPOSE_PROJECT_NAME", loaded["name"])}


def variables_of(file: Path, *, with_comments: bool = False) -> dict[str, str]:
    """Return the variables of a file, as Compose reads them. With `with_comments`, also the commented ones."""
    pattern = r"^#?([A-Z][A-Z_0-9]*)=(.*)$" if with_comments else r"^([A-Z][A-Z_0-9]*)=(.*)$"
    return {name: value.strip("'") for name, value in re.findall(pattern, file.read_text(), re.MULTILINE)}


COMPOSE_MD = (ROOT / "deploy" / "COMPOSE.md").read_text()
DEMO, EXAMPLE = (variables_of(FOLDER / name) for name in (".env.demo", ".env.example"))
COMMANDS = re.findall(r"^    (\S.*)$", COMPOSE_MD, re.MULTILINE)
COMPOSE = compose_with(DEMO)
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("demo", "monitor")
RECEIVERS = ("receivers.log.yaml", "receivers.example.yaml")


def validate(compose: dict[str, Any]) -> None:
    """Raise ValueError for violations of the compose specification: unknown keys, wrong types, undeclared volumes."""
    PyCompose.from_json(json.dumps(compose)).validate()


def config(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return loaded


@pytest.mark.parametrize("variables", [DEMO, EXAMPLE], ids=[".env.demo", ".env.example"])
def test_the_file_follows_the_compose_specification(variables: dict[str, str]):
    validate(compose_with(variables))


def test_only_the_demo_starts_a_broker_and_groups():
    """Before, users had to remove these services from the file to monitor their own cluster."""
    assert {name for name, service in SERVICES.items() if service.get("profiles") == ["demo"]} == {"kafka", "demo"}
    assert [name for name, service in SERVICES.items() if service.get("profiles") not in (None, ["demo"])] == []
    for name, service in SERVICES.items():
        needed = service.get("depends_on", {})
        if name != "demo" and "kafka" in needed:
            assert needed["kafka"]["required"] is False, f"{name} would not start without the profile demo"


def volumes_of_the_project(variables: Mapping[str, str]) -> set[str]:
    """Return the volumes as Docker names them."""
    compose = compose_with(variables)
    return {f"{compose['name']}_{volume}" for volume in compose["volumes"]}


def test_the_demo_and_the_monitor_of_the_own_cluster_share_no_volume():
    """With the checkpoint of the demo, the monitor of a different cluster ends with code 78 again and again."""
    assert volumes_of_the_project(DEMO).isdisjoint(volumes_of_the_project(EXAMPLE))
    assert (DEMO["COMPOSE_PROFILES"], EXAMPLE.get("COMPOSE_PROFILES")) == ("demo", None)
    assert "docker compose --env-file .env.demo down --volumes" in COMMANDS


def test_an_upgrade_recreates_all_containers():
    """Compose does not recreate a container if only a mounted file changes. So the rules of the old version stayed."""
    upgrading = (ROOT / "docs" / "UPGRADING.md").read_text()
    assert [one for one in re.findall(r"docker compose up[^\n`]*", upgrading) if "--force-recreate" not in one] == []
    assert "--volume kafka-rebalance-monitor_state:" in upgrading
    assert "kafka-rebalance-monitor_state" in volumes_of_the_project(EXAMPLE)


def test_without_the_file_env_compose_names_the_two_files_to_copy():
    """Before, Compose started a monitor for a demo broker that did not run."""
    with pytest.raises(ValueError, match=r"copy \.env\.demo or \.env\.example to \.env"):
        compose_with({})
    assert SERVICES["monitor"]["env_file"] == ".env"


def test_the_example_of_env_changes_the_cluster_the_ports_the_memory_and_the_receivers():
    """A variable with a misspelled name would have no effect. The monitor refuses its own misspelled variables."""
    used = {name for name, *_ in _VARIABLE.findall((FOLDER / "compose.yaml").read_text())}
    assert set(EXAMPLE) == used
    assert set(DEMO) - used == {"COMPOSE_PROFILES", "COMPOSE_PROJECT_NAME"}, "Compose reads these variables itself"


def test_the_monitor_accepts_all_lines_of_the_example_of_env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """The commented lines, too. The files of the secrets exist only in the container."""
    for certificate, password in (("ca.pem", "password"), ("eu-ca.pem", "eu-password")):
        (tmp_path / certificate).write_text("-----BEGIN CERTIFICATE-----")
        (tmp_path / password).touch(mode=0o600)
        (tmp_path / password).write_text("hunter2")
    for name, value in variables_of(FOLDER / ".env.example", with_comments=True).items():
        monkeypatch.setenv(name, value.replace("/etc/rebalance-monitor-secrets", str(tmp_path)))
    settings = load_settings(None)
    assert [one.kafka.cluster for one in settings.of_clusters()] == ["prod", "prod-eu"]
    own, eu = (one.kafka for one in settings.of_clusters())
    assert own.security.password_file == tmp_path / "password"
    assert eu.security.password_file == tmp_path / "eu-password", "the second cluster has its own password"
    assert eu.bootstrap_servers == "kafka-eu-1.example.com:9093", "9092 is usually a port without TLS"
    assert [one.team for one in settings.groups] == ["payments"]
    mounts = [mount for mount in SERVICES["monitor"]["volumes"] if "/etc/rebalance-monitor-secrets" in mount]
    assert mounts == ["./secrets/monitor:/etc/rebalance-monitor-secrets:ro"]


@pytest.mark.parametrize("receivers", RECEIVERS)
def test_alertmanager_gets_the_routes_of_the_project_and_the_receivers_of_the_user(receivers: str, tmp_path: Path):
    """The test runs the commands of the container with the files of this folder."""
    (script,) = SERVICES["alertmanager"]["command"]
    for path in ("/etc/alertmanager/alertmanager.yaml", "/etc/alertmanager/receivers.yaml"):
        assert path in script
        assert any(path in mount for mount in SERVICES["alertmanager"]["volumes"])
    here = script.replace("/tmp/", f"{tmp_path}/").replace("exec alertmanager", "true")  # noqa: S108 - the container's own
    here = here.replace("/etc/alertmanager/receivers.yaml", str(FOLDER / receivers))
    here = here.replace("/etc/alertmanager/alertmanager.yaml", str(FOLDER / "alertmanager.yaml"))
    shell, option = SERVICES["alertmanager"]["entrypoint"]
    subprocess.run([shell, option, here], check=True)
    merged, routes = yaml.safe_load((tmp_path / "alertmanager.yaml").read_text()), config("alertmanager.yaml")
    assert (merged["route"], merged["inhibit_rules"]) == (routes["route"], routes["inhibit_rules"])
    assert merged["receivers"] == config(receivers)["receivers"]
    checked = amtool("check-config", str(tmp_path / "alertmanager.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("receivers", RECEIVERS)
def test_only_the_receiver_nobody_is_empty(receivers: str):
    """An empty receiver drops its notifications without an error."""
    assert [one["name"] for one in config(receivers)["receivers"] if len(one) == 1] == ["nobody"]


def test_the_example_of_a_receiver_writes_one_line_for_each_alert(tmp_path: Path):
    """A real Alertmanager sends the alert. The name of the group is hostile text, so its line break is escaped."""
    receiver = (FOLDER / "receiver.py").read_text()
    ports = {
        one["url"] for each in config("receivers.log.yaml")["receivers"] for one in each.get("webhook_configs", [])
    }
    assert ports == {"http://receiver:9094/"}
    assert "PORT = 9094\n" in receiver
    port = free_port()
    (tmp_path / "receiver.py").write_text(receiver.replace("PORT = 9094", f"PORT = {port}"))
    configuration = config("alertmanager.yaml") | config("receivers.log.yaml")
    configuration["route"]["group_wait"] = "0s"
    text = json.dumps(configuration).replace("receiver:9094", f"127.0.0.1:{port}")
    log = tmp_path / "log"
    with log.open("w") as output, RealAlertmanager(tmp_path / "alertmanager", json.loads(text)) as alertmanager:
        process = subprocess.Popen([sys.executable, "-I", "-u", str(tmp_path / "receiver.py")], stdout=output)
        try:
            labels = {"alertname": "Test", "severity": "critical", "cluster": "demo", "group": "a\nb"}
            alertmanager.send([{"labels": labels, "annotations": {"summary": "a test"}}])
            until("the notification", lambda: log.read_text().endswith("\n"))
            sent = doctor_of_the_page(alertmanager.address)
            until("the test alerts of the page", lambda: log.read_text().count(TEST_ALERT) == 2)
        finally:
            process.terminate()
            process.wait()
    first, *tests = log.read_text().splitlines()
    assert first == f'on-call: firing {json.dumps(labels, sort_keys=True)} "a test"'
    notified = [line.partition(": firing ") for line in tests]
    sent_to = {(name, json.loads(f"{rest.partition('}')[0]}}}")["severity"]) for name, _, rest in notified}
    assert sent_to == {("on-call", "critical"), ("tickets", "warning")}
    (shown,) = re.findall(r"^`(ok  .*)`\.$", COMPOSE_MD, re.MULTILINE)
    assert shown in sent.splitlines()


def doctor_of_the_page(alertmanager: str) -> str:
    """Run the command that sends the test alerts, with the variables of the service, but without containers."""
    (arguments,) = re.findall(r"exec monitor rebalance-monitor (.*)$", COMPOSE_MD, re.MULTILINE)
    variables = {
        **SERVICES["monitor"]["environment"],
        f"{ENVIRONMENT_PREFIX}KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
        f"{ENVIRONMENT_PREFIX}KAFKA__CONNECT_TIMEOUT_SECONDS": "0.1",
        f"{ENVIRONMENT_PREFIX}LINKS__PROMETHEUS_URL": "",
        f"{ENVIRONMENT_PREFIX}LINKS__ALERTMANAGER_URL": alertmanager,
    }
    command = [sys.executable, "-m", "streaming.cli", *arguments.split()]
    ran = subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)
    assert ran.stderr == ""
    return ran.stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to a different user")
@pytest.mark.parametrize("first", [".env.demo", ".env.example"])
def test_the_commands_of_the_page_select_the_receivers_and_give_the_secrets_to_the_users(first: str, tmp_path: Path):
    """After the demo, `sed` had no file .env. A file of a different user ends the monitor with exit code 78."""
    folder = tmp_path / "compose"
    shutil.copytree(FOLDER, folder)
    for name in ("kafka-ca.pem", "kafka-password", "pagerduty-key", "slack-url"):
        (folder / name).touch(mode=0o600)
    for command in COMMANDS:
        words = shlex.split(command.removeprefix("sudo "))
        is_other_start = words[0] == "cp" and words[-1] == ".env" and words[1] != first
        if words[0] not in {"cd", "curl", "docker"} and not is_other_start:
            subprocess.run(words, cwd=folder, check=True)
    chosen = variables_of(folder / ".env")
    assert chosen == variables_of(FOLDER / first) | {"ALERTMANAGER_RECEIVERS": "./receivers.yaml"}
    assert (
        "./receivers.yaml:/etc/alertmanager/receivers.yaml:ro"
        in (compose_with(chosen)["services"]["alertmanager"]["volumes"])
    )
    assert (folder / "receivers.yaml").read_text() == (FOLDER / "receivers.example.yaml").read_text()
    secrets = {str(one.relative_to(folder)): one.stat() for one in folder.glob("secrets/*/[a-z]*")}
    assert {name: (stat.st_uid, oct(stat.st_mode)[-4:]) for name, stat in secrets.items()} == {
        "secrets/monitor/ca.pem": (10001, "0400"),
        "secrets/monitor/password": (10001, "0400"),
        "secrets/alertmanager/pagerduty-key": (65534, "0400"),
        "secrets/alertmanager/slack-url": (65534, "0400"),
    }


@pytest.mark.parametrize(
    ("key", "wrong", "message"),
    [
        ("healtcheck", {"test": "true"}, "healtcheck"),
        ("read_only", "sometimes", "expected a boolean"),
        ("depends_on", {"kafka": {"condition": "service_happy"}}, "service_happy"),
    ],
)
def test_the_check_of_the_specification_finds_errors(key: str, wrong: object, message: str):
    """A check that accepts everything would be useless."""
    broken = json.loads(json.dumps(COMPOSE))
    broken["services"]["monitor"][key] = wrong
    with pytest.raises(ValueError, match=message):
        validate(broken)


def test_every_named_volume_is_declared():
    mounted = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert {name for name in mounted if not name.startswith(".")} == set(COMPOSE["volumes"])


def test_every_image_has_a_fixed_version_and_the_broker_the_version_of_the_tests():
    """The tag `latest` would change the program without notice."""
    images = {name: service["image"] for name, service in SERVICES.items()}
    assert all(image.rpartition(":")[2][:1].isdigit() or ":v" in image for image in images.values()), images
    assert images["kafka"] == f"apache/kafka:{KAFKA_VERSION}"


def test_every_port_is_open_on_loopback_only():
    """The services require no password."""
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert len(ports) == 5
    assert [port for port in ports if not port.startswith("127.0.0.1:")] == []


@pytest.mark.parametrize("name", [*OURS, "receiver"])
def test_our_containers_can_write_only_to_their_volumes_and_tmp(name: str):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in service.get("tmpfs", ["/tmp"])] == ["/tmp"]  # noqa: S108 - the container's own


def test_the_monitors_scratch_space_is_not_memory_and_may_run_code():
    """A tmpfs counts as memory of the container, and Docker mounts it noexec. RocksDB loads its native code from there.

    The limit of the memory is 4 GiB. A tmpfs of 1 GiB and the measured peak of 3.2 GiB did not fit into it.
    """
    assert "tmpfs" not in SERVICES["monitor"]
    assert "scratch:/tmp" in SERVICES["monitor"]["volumes"]


def test_the_images_stages_and_files_exist():
    for name in OURS:
        build = SERVICES[name]["build"]
        context = (FOLDER / build["context"]).resolve()
        assert context == ROOT
        assert f"FROM runtime AS {build['target']}\n" in (context / build["dockerfile"]).read_text()


def test_files_mounted_from_this_folder_exist():
    mounted = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert sum(mount.startswith("./") for mount in mounted) == 8
    assert [mount for mount in mounted if mount.startswith("./") and not (FOLDER / mount).exists()] == []


def test_the_monitors_variables_are_settings(monkeypatch: pytest.MonkeyPatch):
    """The monitor ends with code 78 if a variable is no setting."""
    for name, value in SERVICES["monitor"]["environment"].items():
        assert name.startswith(ENVIRONMENT_PREFIX)
        monkeypatch.setenv(name, value)
    settings = load_settings(None)
    assert settings.kafka.bootstrap_servers == SERVICES["demo"]["command"][1] == "kafka:19092"
    assert settings.links.prometheus_url == "http://prometheus:9090", "the address for the command doctor"


def test_the_demo_accepts_the_options_of_its_command():
    """The error for an unknown group shows that the options were accepted."""
    option, _ = SERVICES["demo"]["command"]
    ended = CliRunner().invoke(demo, [option, "127.0.0.1:1", "--group", "no-such-group"])
    assert (ended.exit_code, ended.output.count("\n")) == (1, 1)
    assert "unknown demo group no-such-group" in ended.output


def test_the_broker_gets_the_settings_of_a_single_node():
    """With one variable set, Kafka's image uses only variables. A missing one means the default of 3 replicas."""
    ours = broker_properties("/var/lib/kafka/data", 9092, 9093)
    wanted = {name for name, value in ours.items() if value == "1" or "min.isr" in name} | {"process.roles", "log.dirs"}
    variables = SERVICES["kafka"]["environment"].items()
    given = {name.removeprefix("KAFKA_").replace("_", ".").lower(): value for name, value in variables}
    for name in wanted:
        assert given.get(name) == ours[name], name


def test_containers_get_the_time_they_need_to_stop():
    assert int(SERVICES["monitor"]["stop_grace_period"].removesuffix("s")) >= 2 * BATCH_GRACE_SECONDS + 30


def test_prometheus_finds_the_monitor_and_alertmanager_by_the_names_of_their_services():
    """The names and ports in three files must match the ports that the programs listen on."""
    prometheus = config("prometheus.yaml")
    port = load_settings(None).metrics.port
    targets = {job["job_name"]: job["static_configs"][0]["targets"] for job in prometheus["scrape_configs"]}
    assert targets["rebalance-monitor"] == [f"monitor:{port}"]
    assert prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"] == ["alertmanager:9093"]
    (rules,) = prometheus["rule_files"]
    assert f"../../dashboards/rules:{Path(rules).parent}:ro" in SERVICES["prometheus"]["volumes"]
    receivers = [receiver["name"] for receiver in config("alertmanager.yaml")["receivers"]]
    assert config("alertmanager.yaml")["route"]["receiver"] in receivers


def test_grafana_finds_its_dashboards_and_its_sources():
    (provider,) = config("grafana/dashboards/rebalance-monitor.yaml")["providers"]
    assert f"../../dashboards/grafana:{provider['options']['path']}:ro" in SERVICES["grafana"]["volumes"]
    urls = {source["type"]: source["url"] for source in config("grafana/datasources/prometheus.yaml")["datasources"]}
    assert urls == {"prometheus": "http://prometheus:9090", "alertmanager": "http://alertmanager:9093"}
