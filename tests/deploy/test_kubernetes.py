"""Test that the manifests follow the schemas of Kubernetes and of the operators, and fit the image and the program.

The manifests are rendered from the Helm chart, so these tests check the chart, too. `test_chart.py` checks that the
manifests are not older than the chart.

Built-in kinds are checked with Kubernetes' own OpenAPI schemas, which also find unknown fields. The SparkApplication is
checked with the Spark operator's schema. The three kinds of the Prometheus operator are checked with lists of fields.
"""

from __future__ import annotations

import copy
import importlib.metadata
import stat
import tempfile
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

from streaming.config.environment import ENVIRONMENT_PREFIX
from streaming.config.load import Settings, load_settings
from streaming.http.routes import PUBLIC_PATHS
from streaming.spark.query import BATCH_GRACE_SECONDS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "deploy" / "kubernetes"
KUBERNETES_VERSIONS = ("1.29", "1.37")
"""The oldest and the newest Kubernetes version of the schema checks."""

NAME = "rebalance-monitor"
"""Name of the release and of the namespace."""

OPERATORS_GROUPS = ("monitoring.coreos.com", "sparkoperator.k8s.io")
Manifest = dict[str, Any]


def manifests(file: str) -> list[Manifest]:
    """Return all manifests of a file."""
    return list(yaml.safe_load_all((FOLDER / f"{file}.yaml").read_text()))


def of_kind(file: str, kind: str) -> Manifest:
    """Return the manifest of a kind. If there are several, return the one that has the name of the release."""
    (only,) = [one for one in manifests(file) if (one["kind"], one["metadata"]["name"]) == (kind, NAME)]
    return only


def settings_of(file: str) -> Settings:
    """Load the monitor.toml of a manifest as the monitor does."""
    with tempfile.NamedTemporaryFile("w", suffix=".toml") as configuration:
        configuration.write(of_kind(file, "ConfigMap")["data"]["monitor.toml"])
        configuration.flush()
        return load_settings(Path(configuration.name))


FILES = ("one-node", "one-node-tls", "spark-operator", "spark-operator-tls")
MONITORING = ("alertmanager-config", "prometheus-rule", "service-monitor", "service-monitor-tls")
BUILT_IN = [
    (file, manifest)
    for file in FILES
    for manifest in manifests(file)
    if not manifest["apiVersion"].startswith(OPERATORS_GROUPS)
]
SPARK = of_kind("spark-operator", "SparkApplication")
DEPLOYMENT = of_kind("one-node", "Deployment")
POD = DEPLOYMENT["spec"]["template"]["spec"]
(CONTAINER,) = POD["containers"]
SERVICE_MONITOR = of_kind("monitoring/service-monitor", "ServiceMonitor")


def manifest_name(manifest: Manifest) -> str:
    return f"{manifest['kind']}/{manifest['metadata']['name']}"


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
@pytest.mark.parametrize("manifest", [it for _, it in BUILT_IN], ids=[f"{f}/{manifest_name(it)}" for f, it in BUILT_IN])
def test_built_in_kinds_follow_kubernetes_own_schema(manifest: Manifest, version: str):
    kubernetes_validate.validate(manifest, version, strict=True)


def test_the_check_of_the_schema_finds_a_misspelled_field():
    """`kubectl apply` drops an unknown field. The misspelled `readOnlyRootFileSystem` would have no effect."""
    wrong = copy.deepcopy(DEPLOYMENT)
    wrong["spec"]["template"]["spec"]["containers"][0]["securityContext"]["readOnlyRootFileSystem"] = True
    with pytest.raises(kubernetes_validate.ValidationError, match="readOnlyRootFileSystem"):
        kubernetes_validate.validate(wrong, KUBERNETES_VERSIONS[-1], strict=True)


def test_the_spark_application_follows_the_operators_schema():
    """The operator's models drop unknown fields, so a manifest with only known fields stays the same."""
    assert SparkV1beta2SparkApplication.from_dict(SPARK).to_dict() == SPARK
    wrong = copy.deepcopy(SPARK)
    wrong["spec"]["executor"]["instance"] = 2
    assert SparkV1beta2SparkApplication.from_dict(wrong).to_dict() != wrong


def test_every_manifest_is_in_a_file_that_the_tests_check_and_in_the_namespace():
    """`kubectl apply` without a namespace would use the namespace of the user."""
    named = {*FILES, *(f"monitoring/{name}" for name in MONITORING)}
    assert {str(file.relative_to(FOLDER).with_suffix("")) for file in FOLDER.rglob("*.yaml")} == named
    assert {one["metadata"]["namespace"] for file in named for one in manifests(file)} == {NAME}


def test_the_kinds_of_the_prometheus_operator_have_only_known_fields():
    """These fields exist in monitoring.coreos.com/v1 and v1alpha1. `make helm-check` asks the operator's types."""
    monitor, rule = SERVICE_MONITOR, of_kind("monitoring/prometheus-rule", "PrometheusRule")
    assert {monitor["apiVersion"], rule["apiVersion"]} == {"monitoring.coreos.com/v1"}
    assert set(monitor["spec"]) == {"selector", "endpoints"}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert set(endpoint) == {"port", "path", "interval", "scrapeTimeout", "honorLabels"}
    assert set(rule["spec"]) == {"groups"}
    for group in rule["spec"]["groups"]:
        assert set(group) <= {"name", "interval", "rules", "labels", "limit", "query_offset"}
        for one in group["rules"]:
            assert ("alert" in one) != ("record" in one)
            assert set(one) <= {"alert", "record", "expr", "for", "keep_firing_for", "labels", "annotations"}
    config = of_kind("monitoring/alertmanager-config", "AlertmanagerConfig")
    assert config["apiVersion"] == "monitoring.coreos.com/v1alpha1"
    assert set(config["spec"]) == {"route", "receivers", "inhibitRules"}
    route = config["spec"]["route"]
    timing = {"groupBy", "groupWait", "groupInterval", "repeatInterval"}
    assert set(route) == {"receiver", "routes", *timing}
    assert all(set(one) <= {"receiver", "matchers", *timing} for one in route["routes"])
    assert {one["receiver"] for one in (route, *route["routes"])} == {it["name"] for it in config["spec"]["receivers"]}
    for rule in config["spec"]["inhibitRules"]:
        assert set(rule) == {"sourceMatch", "targetMatch", "equal"}
        assert all(set(one) == {"name", "value", "matchType"} for one in (*rule["sourceMatch"], *rule["targetMatch"]))


def test_a_checkpoint_has_only_one_writer():
    """A rolling update would start the second pod while the first still writes."""
    assert (DEPLOYMENT["spec"]["replicas"], DEPLOYMENT["spec"]["strategy"]) == (1, {"type": "Recreate"})


@pytest.mark.parametrize(
    ("pod", "container"),
    [
        (POD["securityContext"], CONTAINER["securityContext"]),
        (SPARK["spec"]["driver"]["podSecurityContext"], SPARK["spec"]["driver"]["securityContext"]),
        (SPARK["spec"]["executor"]["podSecurityContext"], SPARK["spec"]["executor"]["securityContext"]),
    ],
    ids=["deployment", "driver", "executor"],
)
def test_pods_meet_the_restricted_standard(pod: Manifest, container: Manifest):
    """deploy/README.md lets the namespace enforce the Pod Security Standard `restricted`. Other pods do not start."""
    assert (pod["runAsNonRoot"], pod["runAsUser"], pod["seccompProfile"]) == (True, 10001, {"type": "RuntimeDefault"})
    assert container["allowPrivilegeEscalation"] is False
    assert container["capabilities"] == {"drop": ["ALL"]}
    assert container["readOnlyRootFilesystem"] is True


@pytest.mark.parametrize(
    ("volumes", "mounts"),
    [
        (POD["volumes"], CONTAINER["volumeMounts"]),
        (SPARK["spec"]["volumes"], SPARK["spec"]["driver"]["volumeMounts"]),
        (SPARK["spec"]["volumes"], SPARK["spec"]["executor"]["volumeMounts"]),
    ],
    ids=["deployment", "driver", "executor"],
)
def test_writable_folders_are_on_a_volume(volumes: list[Manifest], mounts: list[Manifest]):
    """With a read-only root only two folders are writable: the state, and /tmp for Spark."""
    declared = {volume["name"] for volume in volumes}
    assert {mount["name"] for mount in mounts} <= declared
    writable = {mount["mountPath"] for mount in mounts if not mount.get("readOnly")}
    assert writable == {"/var/lib/kafka-rebalance-monitor", "/tmp"}  # noqa: S108 - the container's own


@pytest.mark.parametrize("file", FILES)
def test_the_configuration_is_valid_and_keeps_its_state_on_the_volume(file: str):
    settings = settings_of(file)
    assert Path(settings.paths.checkpoint).parent == Path("/var/lib/kafka-rebalance-monitor")
    assert Path(settings.paths.tables).parent == Path("/var/lib/kafka-rebalance-monitor")


def test_the_number_of_state_partitions_equals_the_number_of_executor_cores():
    """The number is fixed when the checkpoint is created. With fewer partitions, some cores would always be idle."""
    executor = SPARK["spec"]["executor"]
    spark = settings_of("spark-operator").spark
    assert spark.shuffle_partitions == spark.combine_tasks == executor["instances"] * executor["cores"]


@pytest.mark.parametrize(("words", "where"), [(CONTAINER["args"], POD["volumes"]), (SPARK["spec"]["arguments"], None)])
def test_the_program_reads_the_file_that_is_mounted(words: list[str], where: object):
    mounts = CONTAINER["volumeMounts"] if where else SPARK["spec"]["driver"]["volumeMounts"]
    folders = {mount["name"]: mount["mountPath"] for mount in mounts}
    assert words == ["run", "--config", f"{folders['configuration']}/monitor.toml"]


def test_probes_use_the_right_paths_of_the_metrics_port():
    """A pod that catches up is alive but not ready. If Kubernetes killed it for that, it would never catch up."""
    (port,) = CONTAINER["ports"]
    assert port["containerPort"] == load_settings(None).metrics.port
    asked = {probe: CONTAINER[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert {probe: get["path"] for probe, get in asked.items()} == {
        "startupProbe": "/-/healthy",
        "livenessProbe": "/-/healthy",
        "readinessProbe": "/-/ready",
    }
    assert {get["port"] for get in asked.values()} == {port["name"]}


def test_pods_get_the_time_they_need_to_stop():
    for grace in (POD["terminationGracePeriodSeconds"], SPARK["spec"]["driver"]["terminationGracePeriodSeconds"]):
        assert grace >= 2 * BATCH_GRACE_SECONDS + 30


@pytest.mark.parametrize("file", FILES)
def test_a_monitor_that_is_not_ready_is_scraped_too(file: str):
    """Without `publishNotReadyAddresses` Prometheus would lose the ready metric of a monitor that is not ready."""
    service = of_kind(file, "Service")
    assert service["spec"]["publishNotReadyAddresses"] is True
    selected = SERVICE_MONITOR["spec"]
    assert selected["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert [port["name"] for port in service["spec"]["ports"]] == [selected["endpoints"][0]["port"]]


def test_services_and_policies_find_our_pods():
    """The selectors must match the labels of the pods. The Spark operator adds `spark-role` itself."""
    pod = DEPLOYMENT["spec"]["template"]["metadata"]["labels"]
    driver = {**SPARK["spec"]["driver"]["labels"], "spark-role": "driver"}
    executor = {**SPARK["spec"]["executor"]["labels"], "spark-role": "executor"}
    selector = of_kind("spark-operator", "Service")["spec"]["selector"]
    assert DEPLOYMENT["spec"]["selector"]["matchLabels"].items() <= pod.items()
    assert of_kind("one-node", "Service")["spec"]["selector"].items() <= pod.items()
    assert selector.items() <= driver.items()
    assert not selector.items() <= executor.items(), "only the driver has the port"
    for labels, file in ((pod, "one-node"), (driver, "spark-operator"), (executor, "spark-operator")):
        assert of_kind(file, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"].items() <= labels.items()


@pytest.mark.parametrize("file", FILES)
def test_network_policies_name_both_directions_so_that_other_traffic_is_refused(file: str):
    """An empty list of peers would admit everybody."""
    policy = of_kind(file, "NetworkPolicy")["spec"]
    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert all(rule["from"] for rule in policy["ingress"])
    assert [rule["ports"] for rule in policy["ingress"] if "ports" in rule] == [[{"protocol": "TCP", "port": 9560}]]
    ours = {"podSelector": {"matchLabels": policy["podSelector"]["matchLabels"]}}
    without_ports = [rule for rule in (*policy["ingress"], *policy["egress"]) if "ports" not in rule]
    assert all(rule.get("from", rule.get("to")) == [ours] for rule in without_ports), "only our own pods use any port"
    assert all(rule["to"] for rule in policy["egress"])


@pytest.mark.parametrize("file", FILES)
def test_pods_reach_the_dns_of_the_cluster_and_nodelocal_dnscache(file: str):
    """NodeLocal DNSCache listens on a link-local address of the node, which no selector of pods matches."""
    (dns,) = [rule for rule in of_kind(file, "NetworkPolicy")["spec"]["egress"] if 53 in ports_of(rule)]
    assert {port["protocol"] for port in dns["ports"]} == {"UDP", "TCP"}
    assert {"ipBlock": {"cidr": "169.254.20.10/32"}} in dns["to"]
    (pods,) = [peer["podSelector"]["matchExpressions"] for peer in dns["to"] if "podSelector" in peer]
    assert pods == [{"key": "k8s-app", "operator": "In", "values": ["kube-dns", "node-local-dns"]}]


def ports_of(rule: Manifest) -> set[int]:
    return {port["port"] for port in rule.get("ports", [])}


def test_the_monitor_on_one_node_has_no_kubernetes_token():
    """It never uses the Kubernetes API."""
    assert POD["automountServiceAccountToken"] is False
    assert of_kind("one-node", "ServiceAccount")["automountServiceAccountToken"] is False


def test_the_manifest_names_the_spark_version_of_the_image():
    """A driver and executors of different versions do not work together."""
    assert SPARK["spec"]["sparkVersion"] == importlib.metadata.version("pyspark")


def test_the_files_the_spark_application_names_are_in_the_image():
    """These are the file for spark-submit, the jars and Spark's logging configuration."""
    dockerfile = (ROOT / "deploy" / "image" / "Dockerfile").read_text()
    assert SPARK["spec"]["mainApplicationFile"] == "local:///opt/rebalance-monitor/submitted.py"
    assert "COPY deploy/image/submitted.py deploy/image/spark.sh /opt/rebalance-monitor/" in dockerfile
    conf = SPARK["spec"]["sparkConf"]
    build = (ROOT / "deploy" / "image" / "build.sh").read_text()
    assert '"$prefix/jars"' in build
    assert (
        conf["spark.driver.extraClassPath"] == conf["spark.executor.extraClassPath"] == "/opt/rebalance-monitor/jars/*"
    )
    (logging,) = [word for word in SPARK["spec"]["driver"]["javaOptions"].split() if "configurationFile" in word]
    assert (ROOT / logging.partition("/site-packages/")[2]).is_file()


def test_the_manifest_has_the_rules_of_the_dashboards_folder_and_the_label_of_its_namespace():
    """By default, an AlertmanagerConfig applies only to alerts with the label `namespace` of its own namespace."""
    files = sorted((ROOT / "dashboards" / "rules").glob("*.yaml"))
    groups = [group for file in files for group in yaml.safe_load(file.read_text())["groups"]]
    for rule in (rule for group in groups for rule in group["rules"] if "alert" in rule):
        rule["labels"]["namespace"] = NAME
    assert of_kind("monitoring/prometheus-rule", "PrometheusRule")["spec"]["groups"] == groups


def test_the_operator_suppresses_the_same_alerts_as_the_configuration_of_compose():
    """Users of kube-prometheus-stack have no file alertmanager.yaml."""
    config = of_kind("monitoring/alertmanager-config", "AlertmanagerConfig")["spec"]
    compose = yaml.safe_load((ROOT / "deploy" / "compose" / "alertmanager.yaml").read_text())
    assert [
        {
            "source_matchers": [as_text(matcher) for matcher in rule["sourceMatch"]],
            "target_matchers": [as_text(matcher) for matcher in rule["targetMatch"]],
            "equal": rule["equal"],
        }
        for rule in config["inhibitRules"]
    ] == compose["inhibit_rules"]


def as_text(matcher: dict[str, str]) -> str:
    return f'{matcher["name"]}{matcher["matchType"]}"{matcher["value"]}"'


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_with_tls_the_probes_use_tls(version: str):
    """A probe with plain HTTP would fail on a TLS port, and Kubernetes would restart the pod again and again."""
    deployment = of_kind("one-node-tls", "Deployment")
    kubernetes_validate.validate(deployment, version, strict=True)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["scheme"] == "HTTPS"
        assert container[probe]["httpGet"]["path"] in PUBLIC_PATHS, "a probe has no password"


def test_with_tls_the_spark_application_follows_the_operators_schema():
    application = of_kind("spark-operator-tls", "SparkApplication")
    assert SparkV1beta2SparkApplication.from_dict(application).to_dict() == application
    assert application["spec"]["executor"] == SPARK["spec"]["executor"], "only the driver has the port and the key"


@pytest.mark.parametrize("file", ["one-node-tls", "spark-operator-tls"])
def test_with_tls_the_files_of_the_settings_are_mounted(file: str):
    """Each file in the settings is on a volume with a mode that the monitor accepts for keys."""
    container, volumes = _container_with_port(file)
    folders = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    secrets = {volume["name"]: volume["secret"] for volume in volumes if "secret" in volume}
    given = set()
    for variable in container["env"]:
        section, _, setting = variable["name"].removeprefix(ENVIRONMENT_PREFIX).lower().partition("__")
        assert setting in type(getattr(load_settings(None), section)).model_fields
        secret = secrets[folders[str(Path(variable["value"]).parent)]]
        assert secret["defaultMode"] & (stat.S_IRWXO | stat.S_IWGRP) == 0
        given.add(setting)
    assert given == {"tls_certificate_file", "tls_key_file", "basic_auth_users_file"}


def _container_with_port(file: str) -> tuple[Manifest, list[Manifest]]:
    """Return the container that has the metrics port, or the driver of a SparkApplication, and the volumes."""
    if file.startswith("spark-operator"):
        spec = of_kind(file, "SparkApplication")["spec"]
        return spec["driver"], spec["volumes"]
    pod = of_kind(file, "Deployment")["spec"]["template"]["spec"]
    return pod["containers"][0], pod["volumes"]


def test_with_tls_prometheus_verifies_the_certificate_and_sends_a_password():
    """The fields are those of monitoring.coreos.com/v1. The certificate is for the name of the service."""
    (endpoint,) = of_kind("monitoring/service-monitor-tls", "ServiceMonitor")["spec"]["endpoints"]
    assert endpoint["scheme"] == "https"
    service = of_kind("one-node-tls", "Service")["metadata"]
    assert set(endpoint["tlsConfig"]) == {"ca", "serverName"}, "not insecureSkipVerify"
    assert endpoint["tlsConfig"]["serverName"] == f"{service['name']}.{service['namespace']}.svc"
    assert {key: set(value) for key, value in endpoint["basicAuth"].items()} == {
        "username": {"name", "key"},
        "password": {"name", "key"},
    }
