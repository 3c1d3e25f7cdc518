"""Test that the compose file follows its specification and fits the image, the demo and the mounted files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from compose_spec import PyCompose

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import load_settings
from streaming.demo.__main__ import main as demo
from streaming.embedded.properties import broker_properties
from streaming.jars import KAFKA_VERSION
from streaming.spark.query import BATCH_GRACE_SECONDS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("demo", "monitor")


def validate(compose: dict[str, Any]) -> None:
    """Raise ValueError for violations of the compose specification: unknown keys, wrong types, undeclared volumes."""
    PyCompose.from_json(json.dumps(compose)).validate()


def config(name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((FOLDER / name).read_text())
    return loaded


def test_the_file_follows_the_compose_specification():
    validate(COMPOSE)


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


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_write_only_to_their_volumes_and_tmp(name: str):
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert [mount.split(":")[0] for mount in service["tmpfs"]] == ["/tmp"]  # noqa: S108 - the container's own


def test_the_monitors_tmp_may_run_code():
    """Docker mounts a tmpfs noexec by default, and RocksDB loads its native code from there."""
    (mount,) = SERVICES["monitor"]["tmpfs"]
    assert "exec" in mount.split(":")[1].split(",")


def test_the_images_stages_and_files_exist():
    for name in OURS:
        build = SERVICES[name]["build"]
        context = (FOLDER / build["context"]).resolve()
        assert context == ROOT
        assert f"FROM runtime AS {build['target']}\n" in (context / build["dockerfile"]).read_text()


def test_files_mounted_from_this_folder_exist():
    mounted = [mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])]
    assert sum(mount.startswith("./") for mount in mounted) == 4
    assert [mount for mount in mounted if mount.startswith("./") and not (FOLDER / mount).exists()] == []


def test_the_monitors_variables_are_settings(monkeypatch: pytest.MonkeyPatch):
    """The monitor ends with code 78 if a variable is no setting."""
    for name, value in SERVICES["monitor"]["environment"].items():
        assert name.startswith(ENVIRONMENT_PREFIX)
        monkeypatch.setenv(name, value)
    assert load_settings(None).kafka.bootstrap_servers == SERVICES["demo"]["command"][1] == "kafka:19092"


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
