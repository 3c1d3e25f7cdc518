"""Test every example of a scrape job in the repository: it keeps the label `cluster` of the monitor.

Many Prometheus servers give each target a label `cluster`, for example the name of a Kubernetes cluster. Without
`honor_labels`, this label replaces the monitor's label, and all Kafka clusters get one name.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^( *)```ya?ml\n(.*?)^ *```", re.DOTALL | re.MULTILINE)
_SCRAPES = re.compile(r"^(scrape_configs:|kind: (ServiceMonitor|PodMonitor|ScrapeConfig)$|- job_name:)", re.MULTILINE)


def examples() -> dict[str, Any]:
    """Return each scrape job of the monitor, by its file and its number in the file."""
    found = {}
    for file in _files():
        text = file.read_text()
        blocks = [text] if file.suffix in {".yaml", ".yml"} else [block for _, block in _BLOCK.findall(text)]
        documents = [one for block in blocks if _SCRAPES.search(block) for one in yaml.safe_load_all(block)]
        jobs = [job for document in documents for job in _jobs(document)]
        found |= {f"{file.relative_to(ROOT)} {number}": job for number, job in enumerate(jobs, 1)}
    return found


def _files() -> list[Path]:
    """Return the files with examples. Templates of the Helm chart are not YAML. deploy/kubernetes has their result."""
    folders = ("assignors", "dashboards", "deploy", "docs", "streaming")
    files = [*ROOT.glob("*.md"), *(file for folder in folders for file in (ROOT / folder).rglob("*"))]
    return sorted(file for file in files if file.suffix in {".md", ".yaml", ".yml"} and file.parent.name != "templates")


def _jobs(document: Any) -> list[Any]:  # noqa: ANN401 - any YAML
    """Return the scrape jobs of a document, without Prometheus' own job."""
    if isinstance(document, list):
        return document
    if document.get("kind") in {"ServiceMonitor", "PodMonitor"}:
        spec = document["spec"]
        return list(spec.get("endpoints", spec.get("podMetricsEndpoints")))
    if document.get("kind") == "ScrapeConfig":
        return [document["spec"]]
    return [job for job in document["scrape_configs"] if job["job_name"] != "prometheus"]


def test_the_examples_are_found() -> None:
    """The test below must find every file that mentions a scrape job."""
    mentioning = {str(file.relative_to(ROOT)) for file in _files() if _SCRAPES.search(file.read_text())}
    assert mentioning >= {"deploy/compose/prometheus.yaml", "deploy/README.md"}
    assert {name.rpartition(" ")[0] for name in examples()} == mentioning


@pytest.mark.parametrize("name", examples())
def test_an_example_keeps_the_label_cluster_of_the_monitor(name: str) -> None:
    job = examples()[name]
    assert job.get("honor_labels", job.get("honorLabels")) is True
