"""Test what needs no Helm: the manifests are as new as the chart, and the chart's schema knows every setting.

`make helm-check` renders the chart (`chart/test_with_helm.py`).
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from tests.deploy.chart.paths import CHART, ROOT
from tests.deploy.chart.render import CHECKSUMS, checksums
from tests.deploy.chart.schema import SCHEMA_FILE, values_schema


def test_the_manifests_are_rendered_from_this_chart():
    """Run `python -m tests.deploy.chart.render` after a change of the chart. It needs Go. Do not edit the manifests."""
    assert checksums().splitlines() == CHECKSUMS.read_text().splitlines()


def test_the_schema_of_the_values_contains_the_settings_of_the_monitor():
    """Run `python -m tests.deploy.chart.schema` after a change of a setting."""
    assert SCHEMA_FILE.read_text() == values_schema()


@pytest.mark.parametrize(
    ("section", "secret"),
    [
        ("SecuritySettings", "password"),
        ("SecuritySettings", "key_password"),
        ("SecuritySettings", "oauth_client_secret"),
    ],
)
def test_a_secret_is_given_as_a_file(section: str, secret: str):
    """The chart writes the settings into a ConfigMap, which is not secret."""
    definition = json.loads(SCHEMA_FILE.read_text())["$defs"][section]
    assert definition["additionalProperties"] is False
    assert secret not in definition["properties"]
    assert f"{secret}_file" in definition["properties"]


def test_every_value_with_a_default_is_in_the_schema():
    """Otherwise Helm would refuse the chart's own defaults, or a misspelled value would have no effect."""
    known = json.loads(SCHEMA_FILE.read_text())["properties"]
    assert set(yaml.safe_load((CHART / "values.yaml").read_text())) == set(known) - {"global"}


def test_the_chart_has_the_version_of_the_monitor():
    """The appVersion is the tag of the image."""
    (version,) = re.findall(r'^version = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["version"] == chart["appVersion"] == version


@pytest.mark.parametrize(("link", "folder"), [("rules", "dashboards/rules"), ("dashboards", "dashboards/grafana")])
def test_the_chart_uses_the_rules_and_dashboards_of_the_repository(link: str, folder: str):
    """A chart reads only files in its folder. Helm follows links, so there are no copies."""
    assert (CHART / link).is_symlink()
    assert (CHART / link).resolve() == ROOT / folder


def values_on_the_page() -> list[dict[str, Any]]:
    """Return the examples of values on the page for Kubernetes."""
    page = (ROOT / "deploy" / "KUBERNETES.md").read_text()
    return [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)]


def test_the_second_cluster_on_the_page_has_its_own_port_and_security():
    """A cluster without `security` uses that of the first cluster: here SASL_SSL on a port without TLS."""
    (added,) = [one for one in values_on_the_page() if "clusters" in one.get("settings", {})]
    first = values_on_the_page()[0]["settings"]["kafka"]
    second = added["settings"]["clusters"]["eu"]
    assert second["security"].keys() == first["security"].keys()
    assert second["bootstrap_servers"].rpartition(":")[2] == first["bootstrap_servers"].rpartition(":")[2] == "9093"
    files = {second["security"]["ca_file"], second["security"]["password_file"]}
    assert {file.split("/")[3] for file in files} == {"kafka-eu"}
    assert added["secrets"] == ["kafka", "kafka-eu"], "Helm replaces a list"


def test_the_alerts_of_the_page_link_to_an_address():
    """Without `page_url`, alerts link to the address of the pod."""
    links = values_on_the_page()[0]["settings"]["links"]
    assert (links["page_url"], links["grafana_url"]) == ("https://monitor.example.com", "https://grafana.example.com")
