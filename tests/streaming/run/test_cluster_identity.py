"""Tests that a monitor does not mix two Kafka clusters under one name."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from streaming.config.settings import KafkaSettings
from streaming.doctor.ask_brokers import cluster_findings
from streaming.doctor.finding import FAILED
from streaming.run.cluster_identity import keep_cluster_id
from streaming.sampling.connection import Connection, DifferentClusterError
from streaming.spark.checkpoint import CLUSTER_ID, read_cluster_id
from tests.streaming.run.test_poller import Folder

EU, US = "5L6g3nShT-eMCtK--X86sw", "MkU3OEVBNTcwNTJENDM2Qg"


class Metadata:
    """The part of kafka-python's connection manager that refreshes metadata. `cluster_id` is the next answer."""

    def __init__(self, cluster_id: str | None) -> None:
        self.next_id = cluster_id
        self.cluster = SimpleNamespace(cluster_id=cluster_id, brokers=list, refresh_metadata=None)

    def run(self, _: object) -> None:
        """Refresh the metadata."""
        self.cluster.cluster_id = self.next_id


def connect(cluster_id: str | None) -> Connection:
    """Return a connection whose brokers belong to the cluster `cluster_id`."""
    connection = object.__new__(Connection)
    connection._kafka = KafkaSettings(cluster="prod", bootstrap_servers="kafka:9092")
    connection._manager = Metadata(cluster_id)
    return connection


def test_an_address_that_leads_to_a_different_cluster_is_refused_at_the_start(tmp_path: Path) -> None:
    """An operator corrected the DNS entry of the brokers, and it led to a different cluster.

    With `source.kind = "admin-api"`, the tables had rows of both clusters under one name, and no line reported it. With
    the default source, the log reported a recreated topic. The remedy `rebuild` would have mixed the clusters too.
    """
    keep_cluster_id(connect(EU), Folder(tmp_path), "prod")
    keep_cluster_id(connect(EU), Folder(tmp_path), "prod")
    with pytest.raises(DifferentClusterError) as refused:
        keep_cluster_id(connect(US), Folder(tmp_path), "prod")
    assert str(refused.value) == (
        "the brokers at kafka:9092 belong to a different Kafka cluster than the checkpoint of 'prod'. Kafka's cluster"
        f" id is {US} and was {EU}: correct kafka.bootstrap_servers. If the old cluster was replaced, set kafka.cluster"
        " to a new name and run `rebalance-monitor rebuild`"
    )
    assert read_cluster_id(Folder(tmp_path)) == EU


@pytest.mark.parametrize(
    ("ids", "stored", "why"),
    [
        ([EU, None, EU], EU, "an unknown id proves nothing"),
        ([None, None], None, "some brokers return no id"),
        ([None, EU], EU, "the checkpoint is from a monitor that stored no id"),
    ],
)
def test_an_unknown_cluster_id_is_not_compared(
    ids: list[str | None], stored: str | None, why: str, tmp_path: Path
) -> None:
    """Rule 3."""
    for cluster_id in ids:
        keep_cluster_id(connect(cluster_id), Folder(tmp_path), "prod")
    assert read_cluster_id(Folder(tmp_path)) == stored, why


@pytest.mark.parametrize(
    "content",
    [b"", EU[:11].encode(), EU[:21].encode(), b"\0" * 23, b"two words\n"],
    ids=["empty", "11", "21", "zeros", "text"],
)
def test_a_damaged_file_with_the_cluster_id_is_replaced_with_one_warning(
    content: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Rule 4. A truncated id was reported as a different Kafka cluster, and the advice was to rename the cluster.

    The file is a cache. If its disk fails, a start must not need a rebuild.
    """
    Folder(tmp_path).write(CLUSTER_ID, content)
    keep_cluster_id(connect(EU), Folder(tmp_path), "prod")
    keep_cluster_id(connect(EU), Folder(tmp_path), "prod")
    assert read_cluster_id(Folder(tmp_path)) == EU
    assert len(caplog.messages) == 1
    assert "prod: the file cluster_id of the checkpoint is damaged" in caplog.text


def test_a_file_of_an_earlier_version_is_not_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The file had no line break."""
    Folder(tmp_path).write(CLUSTER_ID, EU.encode())
    keep_cluster_id(connect(EU), Folder(tmp_path), "prod")
    with pytest.raises(DifferentClusterError):
        keep_cluster_id(connect(US), Folder(tmp_path), "prod")
    assert not caplog.messages


def test_each_sample_and_each_poll_refuse_a_different_cluster(tmp_path: Path) -> None:
    """The broker was replaced while the monitor was running. Both loops first request the ids of the brokers."""
    connection = connect(EU)
    keep_cluster_id(connection, Folder(tmp_path), "prod")
    assert connection.broker_ids() == []
    connection._manager.next_id = US
    with pytest.raises(DifferentClusterError):
        connection.broker_ids()
    assert connection.is_different_cluster
    connection._manager.next_id = EU
    assert connection.broker_ids() == [], "the address was corrected"


@pytest.mark.parametrize(("cluster_id", "is_refused"), [(EU, False), (US, True), (None, False)])
def test_doctor_compares_the_cluster_with_the_checkpoint(
    cluster_id: str | None, is_refused: bool, tmp_path: Path
) -> None:
    """`doctor` reported that the checkpoint belongs to the cluster, because it compared only the names."""
    keep_cluster_id(connect(EU), Folder(tmp_path), "prod")
    findings = list(cluster_findings(connect(cluster_id), str(tmp_path)))
    assert [finding.status for finding in findings] == [FAILED] * is_refused
    assert all(finding.remedy and finding.remedy.startswith("correct kafka.bootstrap") for finding in findings)
    assert not list(cluster_findings(connect(US), str(tmp_path / "new"))), "there is no checkpoint yet"
