"""Test a monitor of several clusters: a failure of one cluster does not affect the others."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from streaming.embedded import EmbeddedBroker
from streaming.embedded.ports import free_port
from streaming.protocol import RecordType
from tests.end_to_end.conftest import QUICK_BROKER, Group, create_topics, produce
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import READY_SECONDS, MonitorProcess, until

pytestmark = pytest.mark.slow

GROUP, TOPIC = "shipping", "orders"
"""Both clusters use the same names, so that only the cluster label differs."""

LISTENER, PASSWORD = "LOCKED", "tall hedge"
LOCKED = {
    "sasl.enabled.mechanisms": "PLAIN",
    f"listener.name.{LISTENER.lower()}.plain.sasl.jaas.config": (
        f'org.apache.kafka.common.security.plain.PlainLoginModule required user_monitor="{PASSWORD}";'
    ),
}
"""Broker properties of a second listener, which requires a password."""

GENERATIONS, LAG = "rebalance_monitor_group_generation", "rebalance_monitor_group_lag"
COUNTED = ("rebalance_monitor_rebalances_total", "rebalance_monitor_empty_transitions_total", GENERATIONS)


@dataclass
class Cluster:
    """A broker with one group."""

    name: str
    broker: EmbeddedBroker
    partitions: int
    groups: list[Group] = field(default_factory=list)

    def fill(self) -> None:
        """Create the topic and let a first member read it."""
        create_topics(self.broker, {TOPIC: self.partitions})
        self.join()

    def join(self) -> None:
        """Let one more member join."""
        self.groups.append(Group(self.broker.bootstrap_servers, GROUP))
        self.groups[-1].join([TOPIC])

    def leave_all(self) -> None:
        """Let every member leave."""
        for group in self.groups:
            group.leave_all()
        self.groups.clear()

    def generations_in_log(self) -> set[tuple[int, int]]:
        """Return the positions of the group's records in the log."""
        with closing(KafkaReference(self.broker.bootstrap_servers)) as kafka_reference:
            return set(kafka_reference.positions({RecordType.GROUP_METADATA}))


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[tuple[Cluster, Cluster]]:
    with ExitStack() as stack:
        made = tuple(
            Cluster(name, _broker(tmp_path / name), partitions) for name, partitions in (("prod", 3), ("eu", 5))
        )
        for cluster in made:
            cluster.broker.launch()
        for cluster in made:
            stack.enter_context(cluster.broker)
            stack.callback(cluster.leave_all)
            cluster.fill()
        yield made  # type: ignore[misc]


def _broker(folder: Path) -> EmbeddedBroker:
    return EmbeddedBroker(folder, properties={**QUICK_BROKER, **LOCKED}, more_listeners={LISTENER: "SASL_PLAINTEXT"})


def monitor_of(folder: Path, first: Cluster, more: Sequence[tuple[str, str]], **settings: str) -> MonitorProcess:
    """Return a monitor of the first cluster and of further clusters, given by name and address."""
    sections = {f"CLUSTERS__{name.upper()}__BOOTSTRAP_SERVERS": address for name, address in more}
    return MonitorProcess(
        first.broker.bootstrap_servers, folder, {"KAFKA__CLUSTER": first.name, **sections, **settings}
    )


def with_password(cluster: str, password: str) -> dict[str, str]:
    """Return the settings of a further cluster that requires a password."""
    given = {"PROTOCOL": "SASL_PLAINTEXT", "MECHANISM": "PLAIN", "USERNAME": "monitor", "PASSWORD": password}
    return {f"CLUSTERS__{cluster.upper()}__SECURITY__{name}": value for name, value in given.items()}


def ready(monitor: MonitorProcess) -> dict[str, float]:
    """Return the value of the ready metric for each cluster."""
    assert monitor.alive()
    return monitor.by_label("rebalance_monitor_ready", "cluster")


def wait_until(monitor: MonitorProcess, **wanted: int) -> None:
    """Wait until each named cluster has this value of the ready metric."""
    try:
        until(f"{wanted}", lambda: wanted.items() <= ready(monitor).items(), READY_SECONDS)
    except AssertionError as timeout:
        raise AssertionError(f"{timeout}\n{monitor.log.read_text()[-3000:]}") from None


def counters(monitor: MonitorProcess, cluster: str) -> dict[str, float | None]:
    return {name: monitor.value(name, cluster=cluster, group=GROUP) for name in COUNTED}


def identity(checkpoint: Path) -> dict[str, str | int]:
    content: dict[str, str | int] = json.loads((checkpoint / "monitor.json").read_text())
    return content


def test_a_cluster_that_is_added_or_lost_leaves_the_others_untouched(
    clusters: tuple[Cluster, Cluster], tmp_path: Path
) -> None:
    """One process monitors more clusters at each start. One broker dies, one does not exist, one refuses the login."""
    prod, eu = clusters
    eu_address = eu.broker.bootstrap_servers
    alone = monitor_of(tmp_path / "monitor", prod, []).start().wait_until_ready()
    of_prod, counted = identity(alone.folder / "checkpoint"), counters(alone, "prod")
    assert alone.stop(signal.SIGINT) == 0, "PySpark replaced the handler of Ctrl-C, and the monitor continued"

    both = monitor_of(alone.folder, prod, [("eu", eu_address)]).start()
    wait_until(both, prod=1, eu=1)
    assert identity(both.folder / "checkpoint") == of_prod, "the first cluster keeps its checkpoint"
    assert counters(both, "prod") == counted
    of_eu = identity(both.folder / "checkpoint-clusters" / "eu")
    _each_is_shown_as_its_own(both, prod, eu)
    _a_lost_broker_affects_only_its_cluster(both, prod, eu)
    _each_has_every_generation_once(both, clusters)
    counted = {name: counters(both, name) for name in ("prod", "eu")}
    assert both.stop(signal.SIGINT) == 0

    more = [("eu", eu_address), ("absent", f"127.0.0.1:{free_port()}"), ("locked", prod.broker.address(LISTENER))]
    four = monitor_of(both.folder, prod, more, **with_password("locked", "mistyped")).start()
    wait_until(four, prod=1, eu=1, absent=0, locked=0)
    _a_refused_login_is_retried(four)
    assert {name: counters(four, name) for name in ("prod", "eu")} == counted
    assert identity(four.folder / "checkpoint") == of_prod
    assert identity(four.folder / "checkpoint-clusters" / "eu") == of_eu
    until("the log line", lambda: "absent cannot be watched; trying again: no broker at" in four.log.read_text())
    eu.join()
    until("the next member", lambda: _members(four, "eu") == 2)
    _each_has_every_generation_once(four, clusters)
    assert [_restarts(four, name) for name in ("prod", "eu")] == [0, 0]
    assert four.stop() == 0
    for name in ("absent", "locked"):
        assert four.log.read_text().count(f"{name} cannot be watched") == 1, "one line for all retries"


def _a_refused_login_is_retried(monitor: MonitorProcess) -> None:
    """Check that the monitor retries. With only one cluster a refused login ends the start, because a user waits."""
    line = "locked cannot be watched; trying again: no access to"
    until("the log line", lambda: line in monitor.log.read_text())
    assert "the broker rejects user 'monitor' with PLAIN" in monitor.log.read_text()
    until("further tries", lambda: _restarts(monitor, "locked") >= 3)
    assert ready(monitor) == {"prod": 1, "eu": 1, "absent": 0, "locked": 0}


def _each_is_shown_as_its_own(monitor: MonitorProcess, prod: Cluster, eu: Cluster) -> None:
    """Check that metrics, pages and commands show each of the two groups with the same name under its cluster."""
    for cluster in (prod, eu):
        until(
            "all read",
            lambda cluster=cluster: monitor.value(LAG, cluster=cluster.name, group=GROUP) == 0,  # type: ignore[misc]
        )
        at = monitor.metrics()["kafka_consumergroup_current_offset"]
        of_group = [value for labels, value in at.items() if ("cluster", cluster.name) in labels]
        assert of_group == [10] * cluster.partitions
        status, document = monitor.ask(f"/api/v1/groups/{GROUP}?cluster={cluster.name}")
        assert (status, len(json.loads(document)["partitions"])) == (200, cluster.partitions)
    listed = json.loads(monitor.ask("/api/v1/groups")[1])["groups"]
    assert sorted((one["cluster"], one["group_id"]) for one in listed) == [("eu", GROUP), ("prod", GROUP)]
    assert monitor.ask(f"/api/v1/groups/{GROUP}")[0] == 300
    assert json.loads(monitor.run_command("groups", "--cluster", "eu", "--json"))["group_id"] == GROUP
    assert "prod  generation 1: " in monitor.run_command("history", GROUP)


def _a_lost_broker_affects_only_its_cluster(monitor: MonitorProcess, prod: Cluster, eu: Cluster) -> None:
    eu.leave_all()  # its clients would fill the test's log
    until("no member", lambda: _members(monitor, "eu") == 0)
    before = counters(monitor, "eu")
    eu.broker.kill()
    wait_until(monitor, prod=1, eu=0)
    assert (monitor.ask("/-/ready")[0], monitor.ask("/-/ready?cluster=eu")[0]) == (200, 503)
    prod.join()
    until("the second member", lambda: _members(monitor, "prod") == 2)
    produce(prod.broker, {TOPIC: prod.partitions}, records=5)
    until("new commits", lambda: _committed(monitor, "prod") == 15 * prod.partitions)
    assert ready(monitor) == {"prod": 1, "eu": 0}
    assert set(counters(monitor, "eu").values()) == {None}, "a cluster that is not ready has no series of groups"
    assert monitor.log.read_text().count("WARNING eu: brokers do not answer") == 1, "one line for the whole outage"

    eu.broker.start()
    wait_until(monitor, prod=1, eu=1)
    assert counters(monitor, "eu") == before
    eu.join()
    until("its first member", lambda: _members(monitor, "eu") == 1)


def _restarts(monitor: MonitorProcess, cluster: str) -> float:
    return monitor.value("rebalance_monitor_query_restarts_total", cluster=cluster) or 0


def _members(monitor: MonitorProcess, cluster: str) -> float | None:
    return monitor.value("rebalance_monitor_group_members", cluster=cluster, group=GROUP)


def _committed(monitor: MonitorProcess, cluster: str) -> float:
    at = monitor.metrics().get("kafka_consumergroup_current_offset", {})
    return sum(value for labels, value in at.items() if ("cluster", cluster) in labels)


def _each_has_every_generation_once(monitor: MonitorProcess, clusters: Sequence[Cluster]) -> None:
    for cluster in clusters:
        in_log = cluster.generations_in_log()

        def written_positions(cluster: Cluster = cluster) -> Counter[tuple[object, object]]:
            rows = [row for row in monitor.rows("group_generations") if row["cluster"] == cluster.name]
            return Counter((row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in rows)

        until(
            f"{cluster.name}'s rows",
            lambda positions=written_positions, in_log=in_log: in_log <= positions().keys(),  # type: ignore[misc]
        )
        assert max(written_positions().values()) == 1
