"""Tests that no output of the port and no file next to the tables shows a secret of the settings."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import msgspec
import pytest
from deltalake.exceptions import DeltaError
from hypothesis import HealthCheck, Phase, example, given, settings
from prometheus_client import generate_latest

import streaming.delta.stored_table
from streaming.config.load import Settings, load_settings
from streaming.page.api.event_reader import EventReader
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.page.page_input import WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.prometheus.metric_selection import export_options
from streaming.prometheus.metrics import Exporter
from streaming.run.watch import _local_folders
from streaming.run.writers import WriterClaim
from tests.streaming.config.test_secrets_nowhere import MARKER, Document, documents, given_as
from tests.streaming.page.scene import NOW_MS, Scene, scene
from tests.streaming.page.test_application import STALE_AFTER_MS, ask

ADDRESSES = (
    "/",
    "/?at=2026-11-22T22:04",
    "/groups/billing",
    "/groups/billing?at=2026-11-22T22:04",
    "/groups/billing?from=1&to=2",
    "/incidents",
    "/topics/orders",
    "/-/ready",
    "/api/v1/groups",
    "/api/v1/groups?at=2026-11-22T22:04",
    "/api/v1/groups/billing",
    "/api/v1/events",
    "/api/v1/incidents",
)


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("tables"))


def pages_with(loaded: Settings, groups: Scene) -> Pages:
    """Return the pages of a monitor with these settings."""
    root, cluster = loaded.paths.tables, loaded.kafka.cluster
    groups.monitor_state.put_health(folders=_local_folders(loaded.paths))
    view = ClusterView(
        cluster,
        lambda: WatchedCluster(cluster, groups.monitor_state.view(), NOW_MS, STALE_AFTER_MS),
        RebalanceReader(root, cluster, time.monotonic),
    )
    return Pages([view], loaded.evaluation.strategies, loaded.links, EventReader(root))


@pytest.mark.parametrize("error", [OSError, DeltaError])
@example(document={"paths": {"tables": f"s3a://AKIA:x1{MARKER}\n:y@bucket/tables?sig={MARKER}\n@z"}})
@settings(
    max_examples=10,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(document=documents())
def test_no_page_no_document_no_metric_and_no_file_shows_a_secret(
    groups: Scene, monkeypatch: pytest.MonkeyPatch, error: type[Exception], document: Document
) -> None:
    """If a table could not be read, the page and the API showed its address, with the key of the storage."""

    def refuse(uri: str, *_: object) -> None:
        raise error(f"Generic S3 error: error sending request for url ({uri}/_delta_log?list-type=2): timeout\nmore")

    monkeypatch.setattr(streaming.delta.stored_table, "DeltaTable", refuse)
    with given_as(document, "json") as file:
        loaded = load_settings(file)
    pages = pages_with(loaded, groups)
    outputs = {address: ask(pages, address).text for address in ADDRESSES}
    assert sum("cannot be read" in text or "not a Delta table" in text for text in outputs.values()) >= 4
    for one in loaded.of_clusters():
        name, checkpoint = one.kafka.cluster, one.paths.checkpoint
        exporter = Exporter(
            [(name, groups.monitor_state)], lambda: NOW_MS, STALE_AFTER_MS, export_options(one.metrics, one.links)
        )
        outputs[f"metrics of {name}"] = b"".join(exporter.exposition(generate_latest)).decode()
        claim = WriterClaim(lambda: pytest.fail("opens no files"), name, checkpoint, lambda: 0, threading.Event())
        outputs[f"writer of {name}"] = msgspec.json.encode(claim._mine).decode() + claim._own_name
    for place, text in outputs.items():
        assert MARKER not in text, place


def test_the_folder_of_a_table_is_shown_without_credentials() -> None:
    path = f"s3a://AKIA:{MARKER}@bucket/tables/group_lag"
    message = str(streaming.delta.stored_table.read_error(path, OSError(f"no answer of {path.replace('s3a', 's3')}")))
    assert message.startswith(
        "s3a://*********(redacted)@bucket/tables/group_lag cannot be read (no answer of s3a://*********(redacted)@bucket"
    )
    local = str(Path("/var/lib/tables"))
    assert str(streaming.delta.stored_table.read_error(local, OSError("x"))).startswith(f"{local} cannot be read (x)")
