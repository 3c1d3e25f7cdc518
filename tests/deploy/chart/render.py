"""Render the plain manifests in deploy/kubernetes from the Helm chart: `python -m tests.deploy.chart.render`.

`make test` has no Helm. So this command also writes the checksums of the chart and of the manifests, and a quick test
compares the files with their checksums. `python -m dashboards` writes the alerts for both, the chart and the manifests.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.deploy.chart.paths import CHART, MANIFESTS, ROOT
from tests.deploy.chart.programs import helm

RELEASE: Final = "rebalance-monitor"
CHECKSUMS: Final = MANIFESTS / "checksums.sha256"

RENDERED: Final = {
    "one-node.yaml": "one-node",
    "one-node-tls.yaml": "one-node-tls",
    "spark-operator.yaml": "spark-operator",
    "spark-operator-tls.yaml": "spark-operator-tls",
    "monitoring/service-monitor.yaml": "monitoring",
    "monitoring/service-monitor-tls.yaml": "one-node-tls",
}
"""The values for each manifest. Without the operator, `kubectl` refuses a ServiceMonitor, so it has its own file."""

_HEADER: Final = "# Rendered from deploy/helm by `python -m tests.deploy.chart.render`. Do not edit.\n"


def run_helm(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm and return what it printed, without its notes on the links to the folder dashboards."""
    done = subprocess.run([helm(), *arguments], capture_output=True, text=True, check=False)
    done.stderr = "".join(line for line in done.stderr.splitlines(keepends=True) if "found symbolic link" not in line)
    return done


def template(chart: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `helm template` with the namespace of the plain manifests."""
    return run_helm("template", RELEASE, chart, "--namespace", RELEASE, *arguments)


def values_file(name: str) -> Path:
    """Return the file with the values of one case."""
    return CHART / "ci" / f"{name}-values.yaml"


def rendered_manifest(name: str) -> str:
    """Return the content of one plain manifest."""
    done = template(CHART, "--values", values_file(RENDERED[name]))
    assert done.returncode == 0, done.stderr
    wants_service_monitor = name.startswith("monitoring/")
    documents = done.stdout.removeprefix("---\n").split("\n---\n")
    wanted = [one.strip("\n") for one in documents if ("\nkind: ServiceMonitor\n" in one) == wants_service_monitor]
    return _HEADER + "\n---\n".join(wanted) + "\n"


def checksums() -> str:
    """Return the checksum of each file that the rendering reads or writes, in the format of sha256sum."""
    return "".join(f"{_checksum(file)}  {file.relative_to(ROOT)}\n" for file in _files())


def _files() -> Iterator[Path]:
    yield from (CHART / "Chart.yaml", CHART / "values.yaml")
    yield from sorted((CHART / "templates").iterdir())
    yield from sorted({values_file(values) for values in RENDERED.values()})
    yield from (MANIFESTS / name for name in RENDERED)


def _checksum(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


if __name__ == "__main__":
    for name in RENDERED:
        (MANIFESTS / name).write_text(rendered_manifest(name))
    CHECKSUMS.write_text(checksums())
