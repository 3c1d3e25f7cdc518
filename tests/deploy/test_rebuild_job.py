"""Test what runs `rebuild` in Kubernetes, as `deploy/KUBERNETES.md` creates it from the monitor's own manifest."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from kubeflow_spark_api.models import SparkV1beta2SparkApplication

from tests.deploy.test_kubernetes import of_kind

ROOT = Path(__file__).parents[2]
KUBERNETES_VERSION = "1.29"

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


PROGRAMS = re.findall(r"jq '(\{\n.*?\})'", (ROOT / "deploy" / "KUBERNETES.md").read_text(), re.DOTALL)
"""The programs that create the Job, the SparkApplication for `rebuild`, and the SparkApplication of the monitor."""


def run_jq(program: str, manifest: Any) -> Any:  # noqa: ANN401 - JSON
    done = subprocess.run(["jq", program], input=json.dumps(manifest), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def job(change: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return the Job. `change` replaces the change of the arguments in jq's program."""
    program, _, _ = PROGRAMS
    if change:
        assert '.args[0] = "rebuild"' in program
        program = program.replace('.args[0] = "rebuild"', change)
    return run_jq(program, of_kind("one-node", "Deployment"))


def test_the_job_is_valid_and_runs_rebuild_once_with_the_volumes_of_the_monitor() -> None:
    """A Deployment would repeat `rebuild` for ever, and a probe would kill it."""
    kubernetes_validate.validate(job(), KUBERNETES_VERSION, strict=True)
    pod = job()["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["args"] == ["rebuild", "--config", "/etc/rebalance-monitor/monitor.toml"]
    assert not [name for name in container if name.endswith("Probe")]
    assert (pod["restartPolicy"], job()["spec"]["backoffLimit"]) == ("Never", 0)
    of_monitor = of_kind("one-node", "Deployment")["spec"]["template"]["spec"]
    assert pod["volumes"] == of_monitor["volumes"]
    assert container["volumeMounts"] == of_monitor["containers"][0]["volumeMounts"]


def test_the_job_can_name_one_of_several_clusters() -> None:
    (change,) = re.findall(r"^(\.args = .*)$", (ROOT / "deploy" / "KUBERNETES.md").read_text(), re.MULTILINE)
    (container,) = job(change)["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["rebuild", "--cluster", "prod", "--config", "/etc/rebalance-monitor/monitor.toml"]


def stored(manifest: Any) -> Any:  # noqa: ANN401 - JSON
    """Return a manifest as `kubectl get` returns it: with fields that Kubernetes and Helm add."""
    annotations = {"meta.helm.sh/release-name": "rebalance-monitor"}
    added = {"uid": "4711", "resourceVersion": "1", "annotations": annotations}
    return {**manifest, "metadata": manifest["metadata"] | added, "status": {"applicationState": {"state": "RUNNING"}}}


def test_with_the_spark_operator_rebuild_runs_once_with_the_driver_of_the_monitor() -> None:
    """The page had a Job only for a Deployment. With restartPolicy Always, the operator would repeat `rebuild`."""
    monitor = of_kind("spark-operator", "SparkApplication")
    application = run_jq(PROGRAMS[1], stored(monitor))
    assert SparkV1beta2SparkApplication.from_dict(application).to_dict() == application
    assert application["metadata"] == {"name": "rebuild", "namespace": "rebalance-monitor"}
    assert application["spec"]["arguments"] == ["rebuild", "--config", "/etc/rebalance-monitor/monitor.toml"]
    assert application["spec"]["restartPolicy"] == {"type": "Never"}
    changed = {**monitor["spec"], "arguments": application["spec"]["arguments"], "restartPolicy": {"type": "Never"}}
    assert application["spec"] == changed


def test_after_rebuild_the_spark_application_is_the_old_one_and_still_belongs_to_helm() -> None:
    """Kubernetes refuses to create an object with a `resourceVersion`."""
    monitor = of_kind("spark-operator", "SparkApplication")
    application = run_jq(PROGRAMS[2], stored(monitor))
    assert set(application["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert (application["spec"], "status" in application) == (monitor["spec"], False)
