"""Test that the monitor shows every problem of real groups. All groups have their problems at the same time."""

from __future__ import annotations

import json
import re
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from streaming.config.settings import SparkSettings
from streaming.delta.tables import TABLES
from streaming.embedded import EmbeddedBroker
from streaming.spark.session import spark_session
from tests.conftest import SPARK_CONF
from tests.end_to_end.broken_groups import PARTITIONS, TROUBLES, Scene, healthy
from tests.end_to_end.conftest import create_topics, produce
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Sign:
    """A series with a value other than 0 that shows a problem, and the reason why it must be there."""

    trouble: str
    metric: str
    labels: dict[str, str]
    why: str


def _condition(trouble: str, condition: str, why: str) -> Sign:
    return Sign(trouble, "rebalance_monitor_group_condition", {"condition": condition}, why)


SIGNS = (
    Sign("skew", "rebalance_monitor_excess_partitions", {}, "6 of 9 partitions instead of 5"),
    Sign("skew", "rebalance_monitor_topic_skew", {}, "each single topic is shared fairly"),
    Sign("greed", "rebalance_monitor_assignment_verdict", {"verdict": "drift"}, "range never gives all to one of two"),
    Sign("greed", "rebalance_monitor_drift_partitions", {"strategy": "range"}, "number of partitions with drift"),
    _condition("forgotten", "unowned_partitions", "partition 0 has no owner for longer than one round"),
    _condition("rolling", "rolling_restart", "each member was replaced by a new one"),
    _condition("storm", "rebalance_storm", "one generation per second without a known cause"),
    _condition("endless", "endless_cooperative_rejoin", "cooperative rounds in which nothing changed"),
    _condition("flapping", "flapping_member", "a member joined and left four times"),
    _condition("mixed", "eager_and_cooperative_mixed", "the strategy changed and changed back"),
    _condition("claims", "duplicate_claims", "two members claimed one partition"),
    _condition("mismatch", "subscription_mismatch", "two subscriptions for longer than one round"),
    _condition("silent", "silent_group", "no member commits while the topic grows"),
    _condition("static", "silent_static_member", "pod-0 owns partitions but only pod-1 commits"),
    Sign("loss", "rebalance_monitor_group_records_lost", {}, "the log starts after the committed offset"),
)


@pytest.fixture(scope="module")
def broken(broker: EmbeddedBroker, shared_monitor: MonitorProcess) -> Iterator[tuple[Scene, MonitorProcess]]:
    """Create every problem in parallel, while a producer writes records."""
    prefix = f"call{uuid.uuid4().hex[:8]}"
    topics = tuple(f"{prefix}.{letter}" for letter in "abc")
    create_topics(broker, dict.fromkeys(topics, PARTITIONS))
    monitor = shared_monitor
    with ExitStack() as closing:

        def wait_for_members(group_id: str, members: int) -> None:
            until(f"{members} members of {group_id}", lambda: _members(monitor, group_id) == members)

        scene = Scene(broker.bootstrap_servers, prefix, topics, closing, wait_for_members)
        stop = threading.Event()
        producing = threading.Thread(target=_produce_until, args=(broker, topics, stop))
        producing.start()
        closing.callback(producing.join)
        closing.callback(stop.set)
        healthy(scene)
        monitor.wait_until_ready()
        _run_in_parallel([lambda break_it=break_it: break_it(scene) for break_it in TROUBLES.values()])
        yield scene, monitor


def _members(monitor: MonitorProcess, group_id: str) -> float | None:
    return monitor.value("rebalance_monitor_group_members", group=group_id)


def _produce_until(broker: EmbeddedBroker, topics: tuple[str, ...], stop: threading.Event) -> None:
    while not stop.wait(2):
        produce(broker, dict.fromkeys(topics, PARTITIONS), records=1)


def _run_in_parallel(functions: list[Callable[[], object]]) -> None:
    """Run all functions in parallel and raise the first failure."""
    failures: list[BaseException] = []

    def run(function: Callable[[], object]) -> None:
        try:
            function()
        except BaseException as failure:  # noqa: BLE001 - raised below in the test's thread
            failures.append(failure)

    threads = [threading.Thread(target=run, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: f"{sign.trouble}: {sign.why}")
def test_each_problem_shows_in_the_metrics(broken: tuple[Scene, MonitorProcess], sign: Sign):
    """The monitor shows the cause in a group, not only the lag that follows."""
    scene, monitor = broken
    group_id = scene.group_id(sign.trouble)
    until(f"{sign.metric} of {group_id}", lambda: monitor.value(sign.metric, group=group_id, **sign.labels))


def test_each_problem_is_an_incident_of_its_own(broken: tuple[Scene, MonitorProcess]):
    """The groups share a broker and a host. The guards of the rules keep their incidents apart.

    On a busy machine, two groups can have the same problem with the same topic. Only then do they share an incident.
    """
    scene, monitor = broken
    troubles = ("forgotten", "storm", "endless", "flapping", "mixed", "claims", "silent", "static", "loss")
    until("an incident of each group", lambda: all(_incident(monitor, scene.group_id(one)) for one in troubles))
    ids = {trouble: _incident(monitor, scene.group_id(trouble)) for trouble in troubles}
    listed = json.loads(monitor.ask("/api/v1/incidents")[1])["incidents"]
    links = {one["incident_id"]: {link["kind"] for link in one["links"]} for one in listed}
    assert all(links[one] <= {"topic"} for one in ids.values()), "neither the broker nor the host links groups"
    shared = {one for one in ids.values() if [*ids.values()].count(one) > 1}
    assert all(links[one] for one in shared), "groups without a link have incidents of their own"
    assert _incident(monitor, scene.group_id("healthy")) is None
    status, page = monitor.ask(f"/incidents?group={scene.group_id('flapping')}")
    assert status == 200, "the link of an alert leads to the page of the incident"
    assert all(word in page for word in ("Since when", "Who", "How bad", "What to do now", "still active"))


def _incident(monitor: MonitorProcess, group_id: str) -> str | None:
    incident_id: str | None = monitor.group_document(group_id)["incident_id"]
    return incident_id


def test_a_healthy_group_shows_no_problem(broken: tuple[Scene, MonitorProcess]):
    """Engineers ignore alerts if too many are false. Groups without conditions show none."""
    scene, monitor = broken
    shown = monitor.metrics()["rebalance_monitor_group_condition"]
    conditions = {(dict(sample)["group"], dict(sample)["condition"]) for sample in shown}
    calm = {scene.group_id(trouble) for trouble in ("healthy", "skew", "greed", "rewind", "loss")}
    assert not [condition for condition in conditions if condition[0] in calm]
    healthy_group = scene.group_id("healthy")
    assert monitor.value("rebalance_monitor_excess_partitions", group=healthy_group) == 0
    assert monitor.value("rebalance_monitor_drift_partitions", group=healthy_group, strategy="range") == 0
    for bad in ("STOP", "STALL", "REWIND"):
        assert not monitor.value("rebalance_monitor_group_status", group=healthy_group, status=bad)
    until("OK", lambda: monitor.value("rebalance_monitor_group_status", group=healthy_group, status="OK") == 1)


def test_an_offset_set_back_has_a_row_even_if_the_group_is_silent_afterwards(broken: tuple[Scene, MonitorProcess]):
    """REWIND lasts while the group commits, then the status is STOP. The table has a row for each.

    STOP needs a sample of the topic that is 100 s old. So this is the last test before the monitor is paused.
    """
    scene, monitor = broken
    group_id = scene.group_id("rewind")

    def last_statuses() -> list[str]:
        rows = sorted(monitor.rows_of("partition_status", group_id), key=lambda row: row["sampled_time"])
        return [row["status"] for row in rows][-2:]

    until("REWIND and then STOP", lambda: last_statuses() == ["REWIND", "STOP"], 180)


QUERIES = Path(__file__).parents[2] / "dashboards" / "QUERIES.md"

ANSWERS = (
    ("Which groups have excess partitions?", {"skew"}),
    ("Which assignments break a rule of their strategy?", {"greed", "forgotten"}),
    ("What happened to a group?", {"storm", "rolling"}),
    ("Why do groups rebalance?", {"flapping"}),
    ("What did each rebalance cost?", {"rolling"}),
    ("Which moves were not necessary?", {"rolling"}),
    ("Which strategy would share a group's partitions better?", {"skew"}),
    ("Which partitions lag, and for how long?", {"silent"}),
    ("Which partitions make no progress or lost records?", {"loss", "rewind"}),
    ("Which conditions are active?", {"claims", "static"}),
    ("Which incidents are open, and which groups belong to them?", {"claims", "static"}),
)
"""Title of each example query, and the groups that must be in its result."""


@pytest.fixture(scope="module")
def spark(broken: tuple[Scene, MonitorProcess]) -> Iterator[SparkSession]:
    """Open Spark on the monitor's tables, as a user does. The monitor is paused, because two Sparks are slow.

    Then the groups end. The monitor does not see it, so the tables still show all problems.
    """
    scene, monitor = broken
    with monitor.paused():
        scene.closing.close()
        with spark_session(SparkSettings.model_validate({"conf": SPARK_CONF})) as session:
            for table in TABLES:
                path = str(monitor.folder / "tables" / table.name)
                session.read.format("delta").load(path).createOrReplaceTempView(table.name)
            yield session


def test_every_example_query_names_the_groups_it_asks_for(broken: tuple[Scene, MonitorProcess], spark: SparkSession):
    """A documented query that no test runs becomes wrong."""
    scene, _ = broken
    queries = dict(re.findall(r"^## \d+\. (.+?)$.*?```sql\n(.*?)```", QUERIES.read_text(), re.DOTALL | re.MULTILINE))
    assert list(queries) == [title for title, _ in ANSWERS]
    for title, troubles in ANSWERS:
        named = {row["group_id"] for row in spark.sql(queries[title]).collect()}
        assert {scene.group_id(trouble) for trouble in troubles} <= named, title
