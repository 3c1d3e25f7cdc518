"""Test the Job that runs `rebuild` in Kubernetes, as `deploy/KUBERNETES.md` creates it from the Deployment."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from tests.deploy.test_kubernetes import of_kind

ROOT = Path(__file__).parents[2]
KUBERNETES_VERSION = "1.29"

pytestmark = pytest.mark.skipif(shutil.which("jq") is None, reason="jq is not installed")


def job(change: str = "") -> Any:  # noqa: ANN401 - JSON
    """Return the Job. `change` replaces the change of the arguments in jq's program."""
    (program,) = re.findall(r"jq '(\{\n.*?\})'", (ROOT / "deploy" / "KUBERNETES.md").read_text(), re.DOTALL)
    if change:
        assert '.args[0] = "rebuild"' in program
        program = program.replace('.args[0] = "rebuild"', change)
    deployment = of_kind("one-node", "Deployment")
    done = subprocess.run(["jq", program], input=json.dumps(deployment), capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


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
    (change,) = re.findall(r"by `(\.args = .*?)`", (ROOT / "deploy" / "KUBERNETES.md").read_text())
    (container,) = job(change)["spec"]["template"]["spec"]["containers"]
    assert container["args"] == ["rebuild", "--cluster", "prod", "--config", "/etc/rebalance-monitor/monitor.toml"]
