"""What an on-call person is called for: groups of real clients, each broken in its own way, all at once."""

from __future__ import annotations

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
from streaming.jars import resolve
from streaming.java import find_java
from streaming.spark.session import spark_session
from tests.end_to_end.broken_groups import PARTITIONS, TROUBLES, Scene, healthy
from tests.end_to_end.conftest import create_topics, produce
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Sign:
    """A series that shows a trouble, whatever its value but 0; and a word that `history` uses for it."""

    trouble: str
    metric: str
    labels: dict[str, str]
    why: str


def _condition(trouble: str, condition: str, why: str) -> Sign:
    return Sign(trouble, "rebalance_monitor_group_condition", {"condition": condition}, why)


SIGNS = (
    Sign("skew", "rebalance_monitor_excess_partitions", {}, "6 of 9 partitions, 5 would do"),
    Sign("skew", "rebalance_monitor_topic_skew", {}, "every topic by itself is dealt fairly"),
    Sign("greed", "rebalance_monitor_assignment_verdict", {"verdict": "drift"}, "range never gives all to one of two"),
    Sign("greed", "rebalance_monitor_drift_partitions", {"strategy": "range"}, "and this many are elsewhere"),
    _condition("forgotten", "unowned_partitions", "partition 0 is nobody's, longer than a round"),
    _condition("rolling", "rolling_restart", "each member went and another came for it"),
    _condition("storm", "rebalance_storm", "a generation a second, and nobody knows why"),
    _condition("endless", "endless_cooperative_rejoin", "cooperative rounds in which nothing changed"),
    _condition("flapping", "flapping_member", "it came and went four times"),
    _condition("mixed", "eager_and_cooperative_mixed", "the strategy went there and back"),
    _condition("claims", "duplicate_claims", "two members claimed one partition"),
    _condition("mismatch", "subscription_mismatch", "two subscriptions for longer than a round"),
    _condition("silent", "silent_group", "nobody commits and the topic grows"),
    _condition("static", "silent_static_member", "pod-0 owns and does not commit, pod-1 does"),
    Sign("loss", "rebalance_monitor_group_records_lost", {}, "the log starts behind the committed offset"),
)


@pytest.fixture(scope="module")
def broken(broker: EmbeddedBroker, shared_monitor: MonitorProcess) -> Iterator[tuple[Scene, MonitorProcess]]:
    """Break every group, side by side, while records keep coming."""
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
        _side_by_side([lambda break_it=break_it: break_it(scene) for break_it in TROUBLES.values()])
        yield scene, monitor


def _members(monitor: MonitorProcess, group_id: str) -> float | None:
    return monitor.value("rebalance_monitor_group_members", group=group_id)


def _produce_until(broker: EmbeddedBroker, topics: tuple[str, ...], stop: threading.Event) -> None:
    while not stop.wait(2):
        produce(broker, dict.fromkeys(topics, PARTITIONS), records=1)


def _side_by_side(acts: list[Callable[[], object]]) -> None:
    """Do all of it at once; raise what the first to fail raised."""
    failures: list[BaseException] = []

    def once(act: Callable[[], object]) -> None:
        try:
            act()
        except BaseException as failure:  # noqa: BLE001 - raised below, in the test's own thread
            failures.append(failure)

    threads = [threading.Thread(target=once, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: f"{sign.trouble}: {sign.why}")
def test_each_trouble_shows_in_the_metrics(broken: tuple[Scene, MonitorProcess], sign: Sign):
    """The promise to whoever is on call: what is wrong with a group is said, not only the lag that follows."""
    scene, monitor = broken
    group_id = scene.group_id(sign.trouble)
    until(f"{sign.metric} of {group_id}", lambda: monitor.value(sign.metric, group=group_id, **sign.labels))


def test_an_offset_set_back_has_its_row_though_the_group_is_silent_since(broken: tuple[Scene, MonitorProcess]):
    """REWIND lasts as long as somebody commits; then it is a STOP. What came first is in the table."""
    scene, monitor = broken
    group_id = scene.group_id("rewind")
    until("STOP", lambda: monitor.value("rebalance_monitor_group_status", group=group_id, status="STOP"))
    rows = sorted(monitor.rows_of("partition_status", group_id), key=lambda row: row["sampled_time"])
    assert [row["status"] for row in rows][-2:] == ["REWIND", "STOP"]


def test_a_healthy_group_is_not_accused(broken: tuple[Scene, MonitorProcess]):
    """Who is paged for nothing stops reading pages: each trouble shows none of the others' signs but its own."""
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
)
"""The title of each example query, and groups that must be in its answer."""


@pytest.fixture(scope="module")
def spark(broken: tuple[Scene, MonitorProcess]) -> Iterator[SparkSession]:
    """Spark as a user has it, on the monitor's tables. Two Sparks on two cores would take three times as long."""
    _, monitor = broken
    with monitor.paused(), spark_session(SparkSettings(), resolve("spark"), find_java().parent.parent) as session:
        for table in TABLES:
            path = str(monitor.folder / "tables" / table.name)
            session.read.format("delta").load(path).createOrReplaceTempView(table.name)
        yield session


def test_every_example_query_names_the_groups_it_asks_for(broken: tuple[Scene, MonitorProcess], spark: SparkSession):
    """A query in the documentation that nobody runs is wrong sooner or later."""
    scene, _ = broken
    queries = dict(re.findall(r"^## \d+\. (.+?)$.*?```sql\n(.*?)```", QUERIES.read_text(), re.DOTALL | re.MULTILINE))
    assert list(queries) == [title for title, _ in ANSWERS]
    for title, troubles in ANSWERS:
        found = {row["group_id"] for row in spark.sql(queries[title]).collect()}
        assert {scene.group_id(trouble) for trouble in troubles} <= found, title
