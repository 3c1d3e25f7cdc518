"""Test the Helm chart with Helm and with the schemas of Kubernetes and of the operators: `make helm-check`.

Kubernetes' kinds are checked with its own OpenAPI schemas. A SparkApplication is checked with the models of the Spark
operator. The Prometheus operator's kinds are checked twice: its Go types find unknown fields, and the schemas of a
Node.js package find wrong values.
"""

from __future__ import annotations

import base64
import copy
import functools
import gzip
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

from streaming.config.load import load_settings
from tests.deploy.chart.paths import CHART, MANIFESTS, ROOT
from tests.deploy.chart.programs import field_checker, value_checker
from tests.deploy.chart.render import RELEASE, RENDERED, rendered_manifest, run_helm, template, values_file

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

pytestmark = [pytest.mark.slow, pytest.mark.helm]

CASES = sorted(file.name.removesuffix("-values.yaml") for file in (CHART / "ci").iterdir())
KUBERNETES_VERSIONS = ("1.29", "1.37")
OPERATOR = "monitoring.coreos.com"
MAX_SECRET_BYTES = 1_048_576
"""Kubernetes' limit for a Secret."""

Manifest = dict[str, Any]


@functools.cache
def text_of(case: str) -> str:
    done = template(CHART, "--values", values_file(case))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def manifests_of(case: str) -> list[Manifest]:
    return [one for one in yaml.safe_load_all(text_of(case)) if one]


def of_kind(case: str, kind: str) -> Manifest:
    (only,) = [one for one in manifests_of(case) if (one["kind"], one["metadata"]["name"]) == (kind, RELEASE)]
    return only


def settings_of(case: str) -> dict[str, Any]:
    return tomllib.loads(of_kind(case, "ConfigMap")["data"]["monitor.toml"])


def refused_by(program: list[str | Path], manifests: list[Manifest]) -> list[str]:
    """Return what a checker of the Prometheus operator's kinds prints."""
    done = subprocess.run(program, input=json.dumps(manifests), capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def refused_by_the_operator(manifests: list[Manifest]) -> list[str]:
    return [*refused_by([field_checker()], manifests), *refused_by(["node", value_checker()], manifests)]


PAGE = (ROOT / "deploy" / "KUBERNETES.md").read_text()
EXAMPLES = [text for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL) if "inhibit_rules" not in text]
"""The chart's values on the page for Kubernetes. The first example is complete. The others are added to it.

The inhibition rules on the page are values of kube-prometheus-stack.
"""


@pytest.mark.parametrize("added", range(len(EXAMPLES)))
def test_the_values_on_the_page_for_kubernetes_work(added: int, tmp_path: Path):
    files = [tmp_path / "first.yaml", tmp_path / "added.yaml"]
    for file, text in zip(files, (EXAMPLES[0], EXAMPLES[added]), strict=True):
        file.write_text(text)
    done = template(CHART, "--values", files[0], "--values", files[1])
    assert (done.returncode, done.stderr) == (0, "")
    manifests = [one for one in yaml.safe_load_all(done.stdout) if one]
    for manifest in manifests:
        if manifest["kind"] == "SparkApplication":
            assert SparkV1beta2SparkApplication.from_dict(manifest).to_dict() == manifest
        elif not manifest["apiVersion"].startswith(OPERATOR):
            kubernetes_validate.validate(manifest, KUBERNETES_VERSIONS[-1], strict=True)
    of_operator = [one for one in manifests if one["apiVersion"].startswith(OPERATOR)]
    assert {one["kind"] for one in of_operator} == {"ServiceMonitor", "PrometheusRule", "AlertmanagerConfig"}
    assert refused_by_the_operator(of_operator) == []


@pytest.mark.parametrize("case", CASES)
def test_helm_lint_finds_nothing(case: str):
    done = run_helm("lint", "--strict", CHART, "--values", values_file(case))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", RENDERED)
def test_the_plain_manifests_are_what_the_chart_renders(name: str):
    """Run `python -m tests.deploy.chart.render` after a change."""
    assert (MANIFESTS / name).read_text() == rendered_manifest(name)


@pytest.mark.parametrize(
    ("kind", "file"), [("PrometheusRule", "prometheus-rule"), ("AlertmanagerConfig", "alertmanager-config")]
)
def test_the_chart_has_the_alerts_of_the_plain_manifests(kind: str, file: str):
    """`python -m dashboards` writes the plain manifest. The chart reads the rule files itself."""
    assert of_kind("monitoring", kind) == yaml.safe_load((MANIFESTS / "monitoring" / f"{file}.yaml").read_text())


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("case", CASES)
def test_kubernetes_accepts_every_field(case: str, version: str):
    for manifest in manifests_of(case):
        if not manifest["apiVersion"].startswith((OPERATOR, "sparkoperator.k8s.io")):
            kubernetes_validate.validate(manifest, version, strict=True)


@pytest.mark.parametrize("case", [case for case in CASES if case.startswith("spark-operator")])
def test_the_spark_operator_knows_every_field(case: str):
    """The operator's models drop unknown fields."""
    application = of_kind(case, "SparkApplication")
    assert SparkV1beta2SparkApplication.from_dict(application).to_dict() == application


@pytest.mark.parametrize("case", ["monitoring", "one-node-tls", "spark-operator-tls", "production"])
def test_the_prometheus_operator_accepts_every_field_and_value(case: str):
    ours = [one for one in manifests_of(case) if one["apiVersion"].startswith(OPERATOR)]
    assert ours
    assert refused_by_the_operator(ours) == []


@pytest.mark.parametrize(
    ("kind", "path", "value", "refused"),
    [
        ("ServiceMonitor", ("spec", "endpoints", 0, "honorLabel"), True, "unknown field"),
        ("ServiceMonitor", ("spec", "endpoints", 0, "interval"), "15 s", "must match pattern"),
        ("PrometheusRule", ("spec", "groups", 0, "rule"), [], "unknown field"),
        ("AlertmanagerConfig", ("spec", "route", "group_by"), ["cluster"], "unknown field"),
        ("AlertmanagerConfig", ("spec", "inhibitRules", 0, "sourceMatch", 0, "matchType"), "~", "allowed values"),
    ],
)
def test_the_check_of_the_operators_kinds_finds_errors(kind: str, path: tuple[Any, ...], value: object, refused: str):
    """A check that accepts everything would be useless."""
    wrong: Any = copy.deepcopy(of_kind("monitoring", kind))
    at = wrong
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    (line,) = refused_by_the_operator([wrong])
    assert refused in line


@pytest.mark.parametrize("case", CASES)
def test_the_configuration_contains_the_settings_of_the_values(case: str):
    """The chart writes TOML with its own template, because Helm's function writes each number with a decimal point."""
    defaults = yaml.safe_load((CHART / "values.yaml").read_text())["settings"]
    given = yaml.safe_load(values_file(case).read_text()).get("settings", {})
    expected = {name: {**defaults.get(name, {}), **section} for name, section in given.items() if name != "groups"}
    expected = defaults | expected | {name: given[name] for name in given if name == "groups"}
    if case == "production":
        expected["links"]["page_url"] = "https://monitor.example.com"
    assert settings_of(case) == expected


@pytest.mark.parametrize("case", CASES)
def test_the_monitor_accepts_the_configuration(case: str, tmp_path: Path):
    """The files of the Secrets exist only in the pod, so this test writes such files."""
    secrets, configuration = tmp_path / "secrets", tmp_path / "monitor.toml"
    for name, kind in (("ca.crt", "CERTIFICATE"), ("user.crt", "CERTIFICATE"), ("user.key", "PRIVATE KEY")):
        file = secrets / "kafka-us" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(f"-----BEGIN {kind}-----\n")
    text = of_kind(case, "ConfigMap")["data"]["monitor.toml"]
    configuration.write_text(text.replace("/etc/rebalance-monitor-secrets", str(secrets)))
    load_settings(configuration)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        # a misspelled value or setting would have no effect
        ({"ingres": {"enabled": True}}, "'ingres'"),
        ({"settings": {"kafka": {"bootstrap_server": "kafka:9092"}}}, "'bootstrap_server'"),
        ({"settings": {"groups": [{"match": "a", "max_lag": 5}]}}, "'max_lag'"),
        # a ConfigMap is not secret
        ({"settings": {"kafka": {"security": {"password": "hunter2"}}}}, "'password'"),
        # a type that the monitor refuses at its start
        ({"settings": {"spark": {"shuffle_partitions": 0}}}, "shuffle_partitions"),
        ({"mode": "many-nodes"}, "mode"),
        # an empty list of peers would mean every address
        ({"networkPolicy": {"brokers": {"peers": []}}}, "peers"),
        ({"networkPolicy": {"prometheus": [{}]}}, "prometheus"),
        ({"networkPolicy": {"dnsServiceIP": "kube-dns.kube-system"}}, "dnsServiceIP"),
        # values that do not fit together
        ({"persistence": {"enabled": False}}, "would be lost with the pod"),
        ({"settings": {"paths": {"tables": "/data/tables"}}}, "is not on the volume"),
        ({"ingress": {"enabled": True}}, "ingress.enabled needs ingress.host"),
        ({"ingress": {"enabled": True, "host": "a.example.com"}}, "networkPolicy.people"),
        (
            {"port": {"usersSecret": "users"}, "monitoring": {"serviceMonitor": {"enabled": True}}},
            "serviceMonitor.scrapeSecret",
        ),
        ({"mode": "spark-operator"}, "the executors have 4 cores"),
    ],
)
def test_helm_refuses_values_that_cannot_work(values: dict[str, Any], message: str, tmp_path: Path):
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump(values))
    done = template(CHART, "--values", file)
    assert done.returncode != 0
    assert message in done.stderr


def test_without_any_peer_nobody_may_connect_to_the_port(tmp_path: Path):
    """In a NetworkPolicy, an empty list of peers admits everybody."""
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"networkPolicy": {"prometheus": []}}))
    documents = yaml.safe_load_all(template(CHART, "--values", file).stdout)
    (policy,) = [one for one in documents if one and one["kind"] == "NetworkPolicy"]
    assert not policy["spec"]["ingress"]


@pytest.mark.parametrize(("address", "cidr"), [("10.96.0.10", "10.96.0.10/32"), ("fd00:10:96::a", "fd00:10:96::a/128")])
def test_pods_reach_nodelocal_dnscache_at_the_address_of_the_service(address: str, cidr: str, tmp_path: Path):
    """With kube-proxy in the mode iptables, NodeLocal DNSCache answers there. It is in the host's network.

    A packet to this address does not go to a pod, so no peer with labels matches.
    """
    file = tmp_path / "values.yaml"
    file.write_text(yaml.safe_dump({"networkPolicy": {"dnsServiceIP": address}}))
    documents = yaml.safe_load_all(template(CHART, "--values", file).stdout)
    (policy,) = [one for one in documents if one and one["kind"] == "NetworkPolicy"]
    kubernetes_validate.validate(policy, KUBERNETES_VERSIONS[-1], strict=True)
    (dns,) = [rule for rule in policy["spec"]["egress"] if {"protocol": "UDP", "port": 53} in rule["ports"]]
    assert dns["to"][-1] == {"ipBlock": {"cidr": cidr}}
    assert len(dns["to"]) == 3, "the pods and the link-local address stay"


def test_people_reach_the_page_through_the_ingress():
    """Four things must fit together: the Ingress, the service, the network policy and the links in alerts."""
    ingress, service = of_kind("production", "Ingress")["spec"], of_kind("production", "Service")
    (backend,) = [path["backend"]["service"] for rule in ingress["rules"] for path in rule["http"]["paths"]]
    assert backend["name"] == service["metadata"]["name"]
    assert backend["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    (port,) = of_kind("production", "NetworkPolicy")["spec"]["ingress"]
    assert {"kubernetes.io/metadata.name": "ingress-nginx"} in [
        peer["namespaceSelector"]["matchLabels"] for peer in port["from"]
    ]
    assert settings_of("production")["links"]["page_url"] == f"https://{ingress['rules'][0]['host']}"


def test_the_users_receivers_replace_the_empty_ones_and_the_teams_routes_come_first():
    """A route for a severity would otherwise take the alerts of the team."""
    config = of_kind("production", "AlertmanagerConfig")["spec"]
    receivers = {one["name"]: set(one) - {"name"} for one in config["receivers"]}
    assert receivers == {
        "on-call": {"pagerdutyConfigs"},
        "tickets": {"slackConfigs"},
        "payments": {"webhookConfigs"},
        "nobody": set(),
    }
    assert [route["receiver"] for route in config["route"]["routes"]] == ["payments", "nobody", "on-call"]
    assert config["inhibitRules"] == of_kind("monitoring", "AlertmanagerConfig")["spec"]["inhibitRules"]


def test_a_changed_setting_starts_a_new_pod():
    """The monitor reads its configuration only at its start."""

    def annotations(case: str) -> dict[str, str]:
        return of_kind(case, "Deployment")["spec"]["template"]["metadata"]["annotations"]  # type: ignore[no-any-return]

    assert annotations("one-node") == annotations("one-node-tls")
    assert annotations("one-node") != annotations("object-storage")


def test_executors_have_the_credentials_of_object_storage_but_not_the_key_of_the_port():
    application = of_kind("spark-operator-object-storage", "SparkApplication")["spec"]
    assert application["executor"]["envFrom"] == application["driver"]["envFrom"]
    with_tls = of_kind("spark-operator-tls", "SparkApplication")["spec"]["executor"]
    assert {mount["name"] for mount in with_tls["volumeMounts"]} == {"state", "tmp"}


def test_two_releases_in_one_namespace_share_nothing():
    """For example two monitors for availability. Each has its own volume, and selects only its own pods."""

    def of_release(name: str) -> list[Manifest]:
        arguments = ("--namespace", "monitoring", "--values", values_file("production"))
        return [one for one in yaml.safe_load_all(run_helm("template", name, CHART, *arguments).stdout) if one]

    first, second = of_release("first"), of_release("second")
    names = {(one["kind"], one["metadata"]["name"]) for one in first}
    assert names.isdisjoint({(one["kind"], one["metadata"]["name"]) for one in second})
    (service,) = [one for one in first if one["kind"] == "Service"]
    (deployment,) = [one for one in second if one["kind"] == "Deployment"]
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert not service["spec"]["selector"].items() <= labels.items()


@pytest.mark.parametrize(
    ("case", "lines"),
    [
        ("production", ["https://monitor.example.com"]),
        ("one-node", ["http://localhost:9560", "The port has no password."]),
        ("one-node-tls", ["https://localhost:9560"]),
        ("monitoring", ["No notification is sent: set monitoring.alertmanagerConfig.receivers."]),
    ],
)
def test_after_the_installation_helm_shows_the_address_of_the_page_and_what_is_missing(
    case: str, lines: list[str], tmp_path: Path
):
    """Without a Kubernetes cluster, Helm does not print NOTES.txt. So this test makes a manifest from the file."""
    templates = shutil.copytree(CHART, tmp_path / "chart") / "templates"
    text = (templates / "NOTES.txt").read_text()
    (templates / "_notes.tpl").write_text(f'{{{{- define "notes" }}}}{text}{{{{ end }}}}')
    (templates / "notes.yaml").write_text('notes: {{ include "notes" . | toJson }}\n')
    show = ("--show-only", "templates/notes.yaml")
    done = template(tmp_path / "chart", "--values", values_file(case), *show)
    assert done.returncode == 0, done.stderr
    notes = yaml.safe_load(done.stdout)["notes"]
    assert [line for line in lines if line not in notes] == []
    assert "kubectl --namespace" in notes


def test_the_package_contains_the_rules_and_dashboards(tmp_path: Path):
    """Helm follows the links to the folder dashboards. So a package does not need the repository."""
    packaged = run_helm("package", CHART, "--destination", tmp_path)
    assert packaged.returncode == 0, packaged.stderr
    (package,) = tmp_path.glob("*.tgz")
    assert template(package, "--values", values_file("production")).stdout == text_of("production")


def test_a_release_fits_into_a_secret(tmp_path: Path):
    """Helm stores the chart and the rendered manifests of each release in one Secret."""
    run_helm("package", CHART, "--destination", tmp_path)
    (package,) = tmp_path.glob("*.tgz")
    stored = len(base64.b64encode(gzip.compress(text_of("production").encode()))) + package.stat().st_size * 4 / 3
    assert stored < MAX_SECRET_BYTES / 2
