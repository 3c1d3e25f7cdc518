"""Test incidents that really happen: a broker is killed, a group has a storm, and a topic has a hot key.

One monitor watches all of it. `__consumer_offsets` has one replica, so the groups of the dead broker cannot commit.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from selenium.webdriver import Chrome

from assignors.coordinator import coordinator_partition
from streaming.demo.clients import produce, run_members
from streaming.demo.groups import DemoGroup, DemoMember
from streaming.demo.topics import DemoTopic
from streaming.embedded import EmbeddedBroker
from tests.end_to_end.broken_groups import Scene, storm
from tests.end_to_end.conftest import FEW_BATCHES, QUICK_BROKER, Group
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.streaming.page.browser import DESKTOP, Scheme, chromium, open_page, save_picture

pytestmark = pytest.mark.slow

FIRST, DYING = 1, 2
"""The ids of the two brokers. The first one has all topics of the tests, so only coordinators are lost."""

OFFSETS_PARTITIONS = 8
QUICK_DEATH = {
    **QUICK_BROKER,
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "broker.session.timeout.ms": "3000",
    "broker.heartbeat.interval.ms": "500",
}
ORDERS = DemoTopic("orders", partitions=3, records_per_second=6)
CLICKS = DemoTopic("clicks", partitions=3, records_per_second=16, keys=(*("shop-1",) * 8, "shop-2", "shop-3"))
SETTINGS = {
    "KAFKA__CLUSTER": "prod",
    **FEW_BATCHES,
    "GROUPS": json.dumps([{"match": "clickstream.*", "max_lag_seconds": 20}]),
}

STORM, HOT, HEALTHY = "checkout", "clickstream", "reporting"
ORPHANS = ("billing", "fraud", "invoices", "ledger", "shipping")
"""The groups whose coordinator is the dying broker."""

SIZES = {"desktop": DESKTOP, "phone": (390, 844), "narrow": (400, 844)}


@dataclass(frozen=True)
class Disaster:
    """The monitor after the broker was killed. `ids` maps these names to group ids."""

    monitor: MonitorProcess
    dying: EmbeddedBroker
    ids: Mapping[str, str]

    @property
    def orphans(self) -> Sequence[str]:
        """The ids of the groups without a coordinator, sorted."""
        return sorted(self.ids[name] for name in ORPHANS)

    def incident_of(self, name: str) -> str | None:
        """Return the id of the incident that the group shows."""
        group = self.monitor.group_document(self.ids[name])
        incident_id: str | None = group.get("incident_id")  # not there before the monitor knows the group
        return incident_id

    def incident(self, incident_id: str | None) -> dict[str, Any]:
        """Return the JSON of an incident."""
        status, text = self.monitor.ask(f"/api/v1/incidents/{incident_id}")
        assert status == 200
        found: dict[str, Any] = json.loads(text)
        return found

    def incidents(self) -> dict[str, str]:
        """Return the ids of the incidents of the storm, the hot key and the dead broker."""
        return {name: str(self.incident_of(name)) for name in (STORM, HOT, ORPHANS[0])}

    def cause_of(self, name: str) -> str | None:
        """Return the cause of the incident that the group shows."""
        incident_id = self.incident_of(name)
        return None if incident_id is None else str(self.incident(incident_id)["cause"])


@pytest.fixture(scope="module")
def disaster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Disaster]:
    """Run two brokers and the groups. When the storm and the hot key are incidents, kill the second broker."""
    folder = tmp_path_factory.mktemp("disaster")
    with ExitStack() as stack:
        first = stack.enter_context(EmbeddedBroker(folder / "first", properties=QUICK_DEATH))
        joining = EmbeddedBroker(folder / "dying", properties={**QUICK_DEATH, "node.id": str(DYING)}, joins=first)
        dying = stack.enter_context(joining)
        ids = _group_ids(first)
        address = first.bootstrap_servers
        monitor = MonitorProcess(address, folder / "monitor", SETTINGS).start()
        stack.callback(monitor.kill)
        _run_groups(address, ids, stack)
        monitor.wait_until_ready()
        found = Disaster(monitor, dying, ids)
        until("the storm", lambda: found.cause_of(STORM) == "rebalance_storm", 180)
        until("the hot key", lambda: found.cause_of(HOT) == "hot_partition", 240)
        until("all groups", lambda: all(_members(monitor, ids[name]) for name in ORPHANS), 120)
        dying.kill()
        until("an incident of each group", lambda: all(map(found.incident_of, ORPHANS)), 180)
        yield found


def _members(monitor: MonitorProcess, group_id: str) -> float | None:
    return monitor.value("rebalance_monitor_group_members", group=group_id)


def _group_ids(first: EmbeddedBroker) -> Mapping[str, str]:
    """Create the topics. Return a group id for each name, such that the group has the intended coordinator."""
    with closing(KafkaAdminClient(bootstrap_servers=first.bootstrap_servers)) as admin:
        for topic in (ORDERS, CLICKS):
            on_first = {partition: [FIRST] for partition in range(topic.partitions)}
            admin.create_topics([NewTopic(topic.name, replica_assignments=on_first)])
        first_group = Group(first.bootstrap_servers, "creates-the-offsets-topic")
        first_group.join([ORDERS.name])
        leaders = until("the leaders of __consumer_offsets", lambda: _leaders(admin))
        first_group.leave_all()

    def group_id(name: str, broker_id: int, ending: str = "") -> str:
        candidates = (f"{name}-v{number}{ending}" for number in range(1_000))
        return next(one for one in candidates if leaders[coordinator_partition(one, OFFSETS_PARTITIONS)] == broker_id)

    return {
        STORM: group_id(STORM, FIRST, ending="-storm"),
        **{name: group_id(name, FIRST) for name in (HOT, HEALTHY)},
        **{name: group_id(name, DYING) for name in ORPHANS},
    }


def _leaders(admin: KafkaAdminClient) -> Mapping[int, int] | None:
    """Return the leader of each partition of `__consumer_offsets`. None until all partitions have one."""
    (topic,) = admin.describe_topics(["__consumer_offsets"])
    leaders = {one["partition_index"]: one["leader_id"] for one in topic["partitions"]}
    return leaders if len(leaders) == OFFSETS_PARTITIONS and min(leaders.values()) >= FIRST else None


def _run_groups(address: str, ids: Mapping[str, str], stack: ExitStack) -> None:
    """Run all groups and a producer until the stack is closed."""
    stop = threading.Event()
    hot = DemoGroup(
        ids[HOT], "a hot key", "kafka-python", "range", "auto", (DemoMember((CLICKS,), seconds_per_record=0.5),) * 3
    )
    threads = [
        threading.Thread(target=run_members, args=(address, [hot], stop)),
        threading.Thread(target=produce, args=(address, {ORDERS, CLICKS}, stop)),
    ]
    for thread in threads:
        thread.start()
        stack.callback(thread.join)
    stack.callback(stop.set)
    for name in (HEALTHY, *ORPHANS):
        group = Group(address, ids[name])
        group.join([ORDERS.name])
        stack.callback(group.leave_all)
    prefix = ids[STORM].removesuffix("-storm")
    storm(Scene(address, prefix, (ORDERS.name,), stack.enter_context(ExitStack()), lambda *_: None))


def test_all_groups_of_the_dead_broker_are_one_incident_and_name_the_broker(disaster: Disaster) -> None:
    """Five groups have no coordinator. The storm and the hot key have other causes, so they are other incidents."""
    until("one incident", lambda: len({disaster.incident_of(name) for name in ORPHANS}) == 1, 60)
    incidents = disaster.incidents()
    assert len(set(incidents.values())) == 3
    lost = disaster.incident(incidents[ORPHANS[0]])
    assert (lost["cause"], lost["groups"]) == ("coordinator_gone", disaster.orphans)
    assert {"kind": "coordinator", "value": str(DYING)} in lost["links"]
    assert lost["story"]["how_bad"].startswith(f"{len(ORPHANS)} groups cannot commit.")
    _, page = disaster.monitor.ask(f"/groups/{disaster.ids[ORPHANS[0]]}")
    assert "Nothing is wrong" not in page
    assert lost["story"]["what_happened"] == (
        f"Broker {DYING} no longer coordinates groups, and {len(ORPHANS)} groups of this broker are affected."
    )
    assert disaster.incident(incidents[STORM])["groups"] == [disaster.ids[STORM]]
    assert disaster.incident(incidents[HOT])["groups"] == [disaster.ids[HOT]]
    assert disaster.incident(incidents[HOT])["cause"] == "hot_partition"
    for name in ORPHANS:
        assert disaster.monitor.group_document(disaster.ids[name])["troubles"][0]["word"] == "no coordinator"


def test_a_group_that_works_has_no_incident_although_the_log_cannot_be_read(disaster: Disaster) -> None:
    """Spark waits for the partitions without a leader. So the commits of all groups look old. This proves nothing."""
    time.sleep(20)
    assert disaster.incident_of(HEALTHY) is None
    shown = disaster.monitor.group_document(disaster.ids[HEALTHY])
    assert (shown["lag"], [one["word"] for one in shown["troubles"]]) == (None, ["lag unknown"])
    assert disaster.monitor.value("rebalance_monitor_ready") == 0
    leaderless = disaster.monitor.value("rebalance_monitor_offsets_topic_leaderless_partitions")
    assert leaderless, "the alert KafkaCoordinatorMissing uses this metric while the monitor is not ready"
    listed = json.loads(disaster.monitor.ask("/api/v1/incidents")[1])["incidents"]
    assert not [one for one in listed if disaster.ids[HEALTHY] in one["groups"]]


def test_page_api_and_table_show_the_same_incidents(disaster: Disaster) -> None:
    listed = {one["incident_id"]: one for one in json.loads(disaster.monitor.ask("/api/v1/incidents")[1])["incidents"]}
    _, list_page = disaster.monitor.ask("/incidents")
    rows = sorted(disaster.monitor.rows("incidents"), key=lambda row: row["sampled_time"])
    last = {row["incident_id"]: row for row in rows}
    for incident_id in disaster.incidents().values():
        one = disaster.incident(incident_id)
        assert {name: one[name] for name in listed[incident_id]} == listed[incident_id]
        assert f'href="/incidents/{incident_id}"' in list_page
        _, page = disaster.monitor.ask(f"/incidents/{incident_id}")
        row = last[incident_id]
        assert (row["cause"], row["groups"], row["active"]) == (one["cause"], one["groups"], True)
        assert row["story"] == [*one["story"].values()]
        for sentence in one["story"].values():
            assert _without_markup(sentence) in page


def _without_markup(sentence: str) -> str:
    return sentence.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chrome]:
    with chromium(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_pages_of_real_incidents_fit_each_window(
    disaster: Disaster, browser: Chrome, tmp_path: Path, size: str, scheme: Scheme
) -> None:
    """The answers are in the first window, without scrolling: what happened, since when, who, how bad, what now."""
    site = f"http://127.0.0.1:{disaster.monitor.port}"
    pages = {name: f"/incidents/{incident_id}" for name, incident_id in disaster.incidents().items()}
    groups = {f"group-{name}": f"/groups/{disaster.ids[name]}" for name in (STORM, HOT, ORPHANS[0])}
    for name, address in {"list": "/incidents", "all": "/", **pages, **groups}.items():
        open_page(browser, site + address, SIZES[size], scheme)
        wide, window = browser.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= window, name
        save_picture(browser, tmp_path / f"{name}.png")
        if name in pages:
            bottom = browser.execute_script(
                "return document.querySelector('.story .now').getBoundingClientRect().bottom"
            )
            assert bottom <= SIZES[size][1], name


def test_ids_survive_a_kill_of_the_monitor_and_the_incident_ends_with_its_cause(disaster: Disaster) -> None:
    """The monitor is killed and starts again. It finds the open incidents in the table. Then the broker returns."""
    before, monitor = disaster.incidents(), disaster.monitor
    monitor.kill()
    disaster.dying.start()
    monitor.start().wait_until_ready()
    assert monitor.value("rebalance_monitor_offsets_topic_leaderless_partitions") == 0
    until("the incidents", lambda: all(disaster.incident(one)["is_open"] for one in before.values()))
    lost = until("the end of the problem", lambda: _quiet(disaster.incident(before[ORPHANS[0]])), 120)
    assert lost["active_groups"] == []
    assert "No problem has been active since" in lost["story"]["since_when"]
    assert disaster.incident_of(STORM) == before[STORM]
    causes = {row["incident_id"] for row in monitor.rows("incidents") if row["cause"] == "coordinator_gone"}
    assert causes == {before[ORPHANS[0]]}, "neither the kill nor the restart opened a second incident"


def _quiet(incident: dict[str, Any]) -> dict[str, Any] | None:
    return incident if incident["quiet_since_ms"] is not None else None
