"""Test that the monitor names the cause of lag of real groups within two minutes. All groups lag at the same time.

Meanwhile, one more group commits steadily, for the test of rates.

No group shows `slow_host`, because all clients run on one host. The samples in `test_lag_causes.py` cover this cause.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone

import pytest

from assignors.key_partitioner import partition_for_key
from streaming.demo.clients import produce, run_members
from streaming.demo.groups import DemoGroup, DemoMember
from streaming.demo.topics import DemoTopic, create_demo_topics
from streaming.embedded import EmbeddedBroker
from tests.end_to_end.conftest import commit, create_topics
from tests.end_to_end.conftest import produce as produce_into
from tests.end_to_end.monitor_process import MonitorProcess, Row, until

pytestmark = pytest.mark.slow

NAMED_WITHIN_SECONDS = 120.0
LEAVES_AFTER_SECONDS = 20.0
FOR_EVER_SECONDS = 3_600.0
HOT_KEY = "shop-1"
KEYED = DemoTopic("keyed", partitions=3, records_per_second=16, keys=(*(HOT_KEY,) * 8, "shop-2", "shop-3"))
STEADY, STEADY_RECORDS_PER_SECOND = "steady", 50
UNEVEN = tuple(DemoTopic(f"uneven-{letter}", partitions=1, records_per_second=2) for letter in "abcdefg")


def pair(name: str) -> tuple[DemoTopic]:
    """Return a topic with five records per second in each of its two partitions."""
    return (DemoTopic(name, partitions=2, records_per_second=10),)


@dataclass(frozen=True)
class Case:
    """A group, the cause of its lag, and the seconds from the group's start to the start of its problem."""

    cause: str
    why: str
    members: tuple[DemoMember, ...]
    begins_after_seconds: float = 0.0


HEALTHY = Case("none", "both members read everything", (DemoMember(pair("calm")),) * 2)
CASES = (
    Case(
        "hot_partition",
        "eight of ten records have one key: 13 records/s for a member that can consume 2",
        (DemoMember((KEYED,), seconds_per_record=0.5),) * 3,
    ),
    Case(
        "slow_member",
        "one of two members sleeps for two seconds per record",
        (DemoMember(pair("sleepy")), DemoMember(pair("sleepy"), seconds_per_record=2.0)),
    ),
    Case(
        "stopped",
        "the only member leaves",
        (DemoMember(pair("left"), stay_seconds=LEAVES_AFTER_SECONDS, absence_seconds=FOR_EVER_SECONDS),),
        LEAVES_AFTER_SECONDS,
    ),
    Case(
        "assignment",
        "range assigns each topic separately, so one member gets all seven partitions: 14 records/s, and it consumes 7",
        (DemoMember(UNEVEN, seconds_per_record=0.15), *(DemoMember((topic,)) for topic in UNEVEN[1:])),
    ),
    Case(
        "under_provisioned",
        "each of two members can consume 0.5 of 5 records/s",
        (DemoMember(pair("flood"), seconds_per_record=2.0),) * 2,
    ),
    Case(
        "rebalancing",
        "a member joins and leaves every few seconds, and no member consumes during a rebalance",
        (
            DemoMember(pair("restless"), seconds_per_record=0.12),
            DemoMember(pair("restless"), seconds_per_record=0.12, stay_seconds=3.0, absence_seconds=3.0),
        ),
    ),
)


@dataclass
class LateGroups:
    """The groups of all cases, and the time of their start. The id of a group is `<prefix>-<cause>`."""

    monitor: MonitorProcess
    prefix: str
    started: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def rows(self, case: Case) -> list[Row]:
        """Return the rows of LAG_CAUSES for the group of this case, in order."""
        rows = self.monitor.rows_of("lag_causes", f"{self.prefix}-{case.cause}")
        return sorted(rows, key=lambda row: (row["sampled_time"], row["active"]))

    def named(self, case: Case) -> Row | None:
        """Return the first row that names the right cause."""
        return next((row for row in self.rows(case) if row["cause"] == case.cause), None)


@pytest.fixture(scope="module")
def late_groups(broker: EmbeddedBroker, shared_monitor: MonitorProcess) -> Iterator[LateGroups]:
    """Run all groups at once until the cause of each one is named, or until it is too late.

    The healthy group starts first. Without a commit, the broker has no topic `__consumer_offsets`, so the monitor would
    not become ready.
    """
    prefix = f"late{uuid.uuid4().hex[:8]}"
    with ExitStack() as closing:
        closing.enter_context(_running(broker, [_group(prefix, HEALTHY)]))
        shared_monitor.wait_until_ready()
        closing.enter_context(_running(broker, [_group(prefix, case) for case in CASES]))
        closing.enter_context(_committing(broker, f"{prefix}-{STEADY}"))
        late = LateGroups(shared_monitor, prefix)
        ends = time.monotonic() + max(case.begins_after_seconds for case in CASES) + NAMED_WITHIN_SECONDS
        while time.monotonic() < ends and not all(late.named(case) for case in CASES):
            time.sleep(1)
        yield late


@contextmanager
def _running(broker: EmbeddedBroker, groups: list[DemoGroup]) -> Iterator[None]:
    """Run the members of these groups and a producer for their topics inside the block."""
    topics = {topic for group in groups for topic in group.topics}
    create_demo_topics(broker.bootstrap_servers, topics)
    stop = threading.Event()
    threads = [
        threading.Thread(target=run_members, args=(broker.bootstrap_servers, groups, stop)),
        threading.Thread(target=produce, args=(broker.bootstrap_servers, topics, stop)),
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@contextmanager
def _committing(broker: EmbeddedBroker, name: str) -> Iterator[None]:
    """Commit `STEADY_RECORDS_PER_SECOND` inside the block. The topic has 10,000 records at first and gets more."""
    create_topics(broker, {name: 1})
    produce_into(broker, {name: 1}, records=10_000)
    stop, began = threading.Event(), time.monotonic()

    def commit_every_two_seconds() -> None:
        while not stop.is_set():
            elapsed = time.monotonic() - began
            commit(broker, name, name, round(STEADY_RECORDS_PER_SECOND * elapsed))
            produce_into(broker, {name: 1}, records=40)
            stop.wait(max(0.0, 2 - (time.monotonic() - began - elapsed)))

    thread = threading.Thread(target=commit_every_two_seconds)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _group(prefix: str, case: Case) -> DemoGroup:
    members = tuple(replace(member, topics=_of_test(prefix, member.topics)) for member in case.members)
    return DemoGroup(f"{prefix}-{case.cause}", case.why, "kafka-python", "range", "auto", members)


def _of_test(prefix: str, topics: tuple[DemoTopic, ...]) -> tuple[DemoTopic, ...]:
    return tuple(replace(topic, name=f"{prefix}-{topic.name}") for topic in topics)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.cause}: {case.why}")
def test_the_cause_is_named_within_two_minutes_and_no_other_cause_before(late_groups: LateGroups, case: Case):
    """Issue 15: a wrong name in the first minutes sends the engineer to the wrong place."""
    named = late_groups.named(case)
    assert named is not None, [(row["sampled_time"], row["cause"], row["reason"]) for row in late_groups.rows(case)]
    seconds = (named["since_time"] - late_groups.started).total_seconds() - case.begins_after_seconds
    assert seconds <= NAMED_WITHIN_SECONDS
    assert {row["cause"] for row in late_groups.rows(case)} <= {case.cause, "unknown"}


EVIDENCE: Mapping[str, Mapping[str, object]] = {
    "hot_partition": {"partition": partition_for_key(HOT_KEY.encode(), KEYED.partitions)},
    "slow_member": {"client_id": "slow_member-1"},
    "stopped": {"reason": "no_members"},
    "assignment": {"client_id": "assignment-0"},
}
"""The evidence that a row has. Client ids are without the prefix of the test."""


@pytest.mark.parametrize("cause", EVIDENCE)
def test_the_evidence_names_the_partition_and_the_member(late_groups: LateGroups, cause: str):
    """Kafka's default partitioner determines the partition of the hot key."""
    (case,) = (case for case in CASES if case.cause == cause)
    named = late_groups.named(case)
    assert named is not None
    shown = {**named, "client_id": (named["client_id"] or "").removeprefix(f"{late_groups.prefix}-")}
    assert {name: shown[name] for name in EVIDENCE[cause]} == EVIDENCE[cause]


def test_a_healthy_group_has_no_cause_the_whole_time(late_groups: LateGroups):
    """The table has a row for each cause since the start. The group reads a topic of the same broker."""
    assert late_groups.rows(HEALTHY) == []
    group_id = f"{late_groups.prefix}-{HEALTHY.cause}"
    until("lag", lambda: late_groups.monitor.value("rebalance_monitor_group_lag", group=group_id) is not None)


RATES = ("consumed_records_per_second", "produced_records_per_second", "last_commit_timestamp_seconds")


def test_the_rates_of_a_group_are_those_of_its_commits_and_its_topic(late_groups: LateGroups):
    """Rates are averages over minutes. So this group commits while the other groups fall behind."""
    monitor, name = late_groups.monitor, f"{late_groups.prefix}-{STEADY}"
    document = monitor.group_document(name)
    assert document["consumed_records_per_second"] == pytest.approx(STEADY_RECORDS_PER_SECOND, rel=0.1)
    assert document["produced_records_per_second"] is not None
    assert document["now_ms"] - document["last_commit_ms"] < 15_000
    shown = {metric: monitor.value(f"rebalance_monitor_group_{metric}", group=name) for metric in ("lag", *RATES)}
    assert None not in shown.values(), "the rates are in /metrics, too"
    assert document["worst_partition"]["topic"] == name
