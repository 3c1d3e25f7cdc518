"""The cause of lag from commits and samples to the report and the table. Only the brokers are simulated."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from streaming.delta.tables import LAG_CAUSES, Table
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.incidents.incident_cause import incident_cause
from streaming.evaluation.incidents.story import ADVICE
from streaming.evaluation.severity.trouble import troubles
from streaming.page.links.runbook import SECTIONS
from streaming.protocol.classic import ClassicMember
from tests.streaming.groups import member
from tests.streaming.run.samples.orders import STEP_SECONDS, Orders, holding
from tests.streaming.run.samples.test_conditions import SHARED, Monitor

NAMED_WITHIN_SECONDS = 120


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Return a healthy group with 100 records per second in each partition."""
    group = Orders(Monitor(tmp_path))
    group.run(400, (100, 100), (100, 100))
    return group


@pytest.mark.parametrize(
    ("produced", "consumed", "kind", "why"),
    [
        ((100, 100), (20, 100), "slow_member", "one member sleeps: similar input, lower consume rate, lag only there"),
        ((100, 100), (0, 100), "slow_member", "one member hangs, and the other commits"),
        ((100, 100), (0, 0), "stopped", "no commits although records wait"),
        ((100, 100), (40, 40), "under_provisioned", "the lag of every member grows"),
        ((900, 10), (300, 10), "hot_partition", "900 records/s for a member that can consume 300"),
    ],
)
def test_a_cause_is_named_correctly_within_two_minutes(
    orders: Orders, produced: tuple[float, ...], consumed: tuple[float, ...], kind: str, why: str
) -> None:
    """Acceptance of issue 15: the first named cause is the right one, also while rates still average the past."""
    assert orders.cause() is None
    found, seconds = orders.seconds_until_named(produced, consumed)
    assert found == kind, why
    assert seconds <= NAMED_WITHIN_SECONDS, why
    assert orders.changes() == [(kind, True)], "no row with an unknown or a wrong cause comes first"


def test_a_slow_host_is_named_within_two_minutes(tmp_path: Path) -> None:
    """Issue 15: two of four members run on one host, and only they lag. An end-to-end test has only one host."""
    hosts = {"a": "/10.0.0.9", "b": "/10.0.0.9", "c": "/10.0.0.1", "d": "/10.0.0.2"}
    members = [
        replace(member(name, {"orders": [at]}), client_host=host) for at, (name, host) in enumerate(hosts.items())
    ]
    orders = Orders(Monitor(tmp_path), members)
    orders.run(400, (100,) * 4, (100,) * 4)
    found, seconds = orders.seconds_until_named((100,) * 4, (20, 20, 100, 100))
    assert found == "slow_host"
    assert seconds <= NAMED_WITHIN_SECONDS
    cause = orders.cause()
    assert cause is not None
    assert (cause.client_host, cause.member) == ("/10.0.0.9", "")
    assert orders.changes() == [("slow_host", True)]


def short_rebalances(orders: Orders) -> None:
    """Rebalance every 20 seconds. No member commits for 15 of them."""
    orders.run(15, (100, 100), (0, 0))
    orders.run(5, (100, 100), (120, 120))
    orders.rebalance(seconds_without_commits=15)


def fruitless_rebalances(orders: Orders) -> None:
    """Rebalance every 20 seconds, always before a member commits: processing exceeds `max.poll.interval.ms`."""
    orders.run(20, (100, 100), (0, 0))
    orders.rebalance()


def endless_rebalance(orders: Orders) -> None:
    """Stay in one rebalance: a member does not rejoin, and its rebalance timeout is an hour."""
    orders.monitor.cluster.states = {"g": "PreparingRebalance"}
    orders.run(20, (100, 100), (0, 0))


@pytest.mark.parametrize("pass_20_seconds", [short_rebalances, fruitless_rebalances, endless_rebalance])
def test_rebalances_that_keep_a_group_from_reading_are_named_within_two_minutes(
    orders: Orders, pass_20_seconds: Callable[[Orders], None]
) -> None:
    """Issue 15: constant rebalancing. No other cause comes first, although nobody commits."""
    for _ in range(NAMED_WITHIN_SECONDS // 20):
        pass_20_seconds(orders)
    assert orders.kind() == "rebalancing"
    assert orders.changes() == [("rebalancing", True)]


def test_rebalances_that_cost_little_time_are_not_the_cause(orders: Orders) -> None:
    """A group that loses 2 of 20 seconds and consumes 40 % of its input needs capacity, not fewer rebalances."""
    for _ in range(NAMED_WITHIN_SECONDS // 20):
        orders.run(20, (100, 100), (40, 40))
        orders.rebalance(seconds_without_commits=2)
    assert orders.kind() == "under_provisioned"


@pytest.mark.parametrize(
    ("seconds_ago", "kind", "lost_seconds"), [(290, "under_provisioned", 0), (140, "rebalancing", 155)]
)
def test_only_the_part_of_a_commit_gap_in_the_last_five_minutes_counts(
    orders: Orders, seconds_ago: int, kind: str, lost_seconds: float
) -> None:
    """A gap closes when its last partition commits, or after `stuck_after_seconds`. The gap of 4 minutes had ended.

    The text was "the group did not commit for 4 minutes of the last 5 minutes", but the group had always committed.
    """
    orders.run(400, (100, 100), (40, 40))
    orders.close_gap(240, seconds_ago=seconds_ago)
    orders.run(5, (100, 100), (40, 40))
    cause = orders.cause()
    assert cause is not None
    assert (cause.kind, cause.lost_seconds or 0) == (kind, pytest.approx(lost_seconds, abs=10))


def test_a_group_that_commits_during_a_rebalance_does_not_lose_time(orders: Orders) -> None:
    """One member did not rejoin for minutes. Meanwhile, the other members read and committed, but too slowly.

    The text was "the group did not commit for 5 minutes". Kafka accepts commits until all members have joined again.
    """
    orders.monitor.cluster.states = {"g": "PreparingRebalance"}
    orders.run(400, (100, 100), (40, 40))
    assert orders.kind() == "under_provisioned"


def test_an_outage_of_the_application_is_not_a_long_rebalance(orders: Orders) -> None:
    """The application was down for two minutes, and then catches up for some minutes.

    The first commit of the new members closes a commit gap that contains the outage. The incident said "because of 1
    rebalance, the group did not commit for 101 seconds of the last 101 seconds", and named the runbook for storms.
    """
    orders.rebalance([])
    orders.run(120, (100, 100), (0, 0))
    assert (orders.cause() or Cause("unknown")).reason == "no_members"
    orders.rebalance(SHARED)
    orders.run(5, (100, 100), (0, 0))
    orders.close_gap(130)
    orders.run(100, (100, 100), (110, 110))
    assert [(row["cause"], row["reason"]) for row in orders.rows() if row["active"]] == [
        ("stopped", "no_members"),
        ("stopped", "no_commits"),
        ("unknown", "rates_unknown"),
    ], "the members are not too slow either: the rates of five minutes contain the outage"


class OnlyCommits(Orders):
    """A group whose client calls assign(): its partitions have commits, but no record contains members."""

    def rebalance(self, members: Sequence[ClassicMember] | None = None, seconds_without_commits: int = 0) -> None:
        """Write nothing."""


def test_the_incident_of_a_group_that_only_commits_has_the_same_runbook_section_as_its_trouble(tmp_path: Path) -> None:
    """The client stopped. The trouble was "no members", but the incident advised to read the logs of the members."""
    group = OnlyCommits(Monitor(tmp_path))
    group.monitor.cluster.states["g"] = "Empty"
    group.run(400, (100, 100), (100, 100))
    group.run(120, (100, 100), (0, 0))
    monitor_state = group.monitor.monitor_state
    report = monitor_state.reports(monitor_state.view(), is_fresh=True)["g"]
    assert (report.membership.members, report.cause and report.cause.reason) == (0, "no_members")
    (incident,) = monitor_state.view().incidents
    section = ADVICE[incident_cause(incident).kind].runbook_section
    assert section == SECTIONS[troubles(report)[0].word] == "KafkaGroupWithoutMembers"


def test_a_late_job_that_only_commits_is_not_stopped_between_two_commits(tmp_path: Path) -> None:
    """Flink commits every two minutes and never has members. It is too slow, but it runs."""
    group = OnlyCommits(Monitor(tmp_path))
    group.monitor.cluster.states["g"] = "Empty"
    group.run(240, (100, 100), (50, 50), every=120)
    kinds = set()
    for _ in range(30):
        group.run(20, (100, 100), (50, 50), every=120)
        kinds.add(group.kind())
    assert kinds == {"unknown"}


def hang(orders: Orders) -> None:
    """Both members hang, and stay in the group."""
    orders.run(140, (100, 100), (0, 0))


def hold_transaction(orders: Orders) -> None:
    """A transaction in partition 0 stays open. The member of the partition commits the same offset again and again."""
    orders.monitor.cluster.last_stable["orders", 0] = orders.monitor.cluster.end_offsets["orders", 0]
    orders.run(155, (100, 100), (1e-9, 100))
    orders.monitor.cluster.last_stable.clear()


@pytest.mark.parametrize(
    ("block", "cause"),
    [(hang, ("stopped", "no_commits")), (hold_transaction, ("unknown", "open_transaction"))],
)
def test_a_group_that_catches_up_after_a_hang_or_a_transaction_is_not_too_slow(
    orders: Orders, block: Callable[[Orders], None], cause: tuple[str, str]
) -> None:
    """The lag fell for two minutes. Meanwhile, the text was "Too much input ... The lag of every member grows"."""
    block(orders)
    orders.run(120, (100, 100), (160, 160))
    assert [(row["cause"], row["reason"]) for row in orders.rows() if row["active"]] == [
        cause,
        ("unknown", "catching_up"),
    ]


def test_a_short_pause_of_a_group_that_catches_up_is_not_a_stop(orders: Orders) -> None:
    """A rebalance or a garbage collection was longer than the time of the last ten commits.

    A partition with the status STOP is late at once. So the cause was `stopped`, and an incident opened, although the
    last commit was only some seconds old. If a group reads old records, Burrow shows STOP after such a pause.
    """
    hang(orders)
    orders.run(60, (100, 100), (110, 110))
    before = len(orders.rows())
    orders.run(60, (100, 100), (0, 0))
    assert "stopped" not in {row["cause"] for row in orders.rows()[before:] if row["active"]}
    orders.run(5, (100, 100), (0, 0))
    assert orders.kind() == "stopped", "a real stop is found after a minute"


def test_a_hot_partition_is_named_with_its_owner(orders: Orders) -> None:
    """A key becomes hot: 900 records/s for a member that can consume 300."""
    orders.run(300, (900, 10), (300, 10))
    cause = orders.cause()
    assert cause is not None
    assert cause.kind == "hot_partition"
    assert (cause.topic, cause.partition, cause.member) == ("orders", 0, "client-a@127.0.0.1")


def test_the_assignment_is_named_if_a_fairer_one_would_help(orders: Orders) -> None:
    """Member b is idle. The fairness of the produce rates comes from the measured shares of work."""
    orders.rebalance(holding((0, 1), ()))
    orders.run(300, (200, 200), (150, 150))
    assert orders.kind() == "under_provisioned", "without measured shares, only the idle member shows the cause"
    orders.put_fair_rate(largest=400, fair=200)
    orders.run(STEP_SECONDS, (200, 200), (150, 150))
    assert orders.kind() == "assignment"
    assert orders.changes()[-2:] == [("under_provisioned", False), ("assignment", True)]


def test_a_slower_member_is_not_an_unfair_assignment(tmp_path: Path) -> None:
    """It could consume 120 records/s. A fairer assignment gives it at most 80, but it consumes only 21 now."""
    orders = Orders(Monitor(tmp_path), holding((0, 1, 2), (3,), (4,)))
    orders.run(300, (40, 40, 40, 60, 60), (40, 40, 40, 60, 60))
    orders.put_fair_rate(largest=120, fair=80)
    orders.run(300, (40, 40, 40, 60, 60), (7, 7, 7, 60, 60))
    assert ("assignment", True) not in orders.changes()


def test_a_job_that_commits_every_five_minutes_has_no_cause(tmp_path: Path) -> None:
    """Its lag in seconds rises to 300 before each commit, but each commit contains everything."""
    group = Orders(Monitor(tmp_path))
    found = set()
    for _ in range(40):
        group.run(60, (100, 100), (100, 100), every=300)
        found.add(group.cause())
    assert found == {None}


def test_the_table_has_the_start_and_the_end_of_each_cause(orders: Orders) -> None:
    orders.run(180, (100, 100), (20, 100))
    cause, (row,) = orders.cause(), orders.rows()
    assert cause is not None
    assert cause.since_ms == row["since_time"].timestamp() * 1000
    assert (row["cause"], row["active"], row["member"]) == ("slow_member", True, cause.member)
    orders.run(60, (100, 100), (900, 100))
    changes = [("slow_member", True), ("slow_member", False), ("unknown", True), ("unknown", False)]
    assert orders.changes() == changes, "while the group catches up, its cause is unknown"
    assert orders.cause() is None


def test_a_restart_neither_ends_nor_repeats_a_cause(orders: Orders) -> None:
    """The window is not stored. Until a new window has passed, the cause is unknown, but it has not ended."""
    orders.run(180, (100, 100), (20, 100))
    before = orders.cause()
    assert before is not None
    orders.monitor.restart()
    orders.run(STEP_SECONDS, (100, 100), (20, 100))
    assert orders.cause() is None
    orders.run(120, (100, 100), (20, 100))
    now = orders.cause()
    assert now is not None
    assert (now.kind, now.since_ms) == ("slow_member", before.since_ms)
    assert orders.changes() == [("slow_member", True)]


def test_a_slow_group_that_loses_records_does_not_catch_up(orders: Orders) -> None:
    """Retention deleted unread records, so the committed offset jumped and the lag fell.

    The group seemed to consume faster than producers write: "the cause has ended". It is slow, and loses records.
    """
    cluster = orders.monitor.cluster
    orders.run(300, (100, 100), (10, 10))
    for _ in range(4):
        orders.run(95, (100, 100), (10, 10))
        start = cluster.end_offsets["orders", 0] - 15_000
        cluster.log_start_offsets = dict.fromkeys(cluster.end_offsets, start)
        orders.committed = [float(max(start, offset)) for offset in orders.committed]
        orders.run(5, (100, 100), (10, 10))
    assert orders.changes() == [("under_provisioned", True)]


def test_a_pause_of_the_monitor_does_not_end_the_cause_of_a_group_in_the_middle_of_the_pause(orders: Orders) -> None:
    """After the pause, the lag is only a lower bound. A bound of 30 s seemed to show that the group had caught up."""
    orders.run(600, (100, 100), (20, 20))
    cluster = orders.monitor.cluster
    cluster.now_ms += 600_000
    cluster.end_offsets = {at: end + 60_000 for at, end in cluster.end_offsets.items()}
    orders.committed = [offset + 60_000 for offset in orders.committed]
    orders.monitor.commit(p0=int(orders.committed[0]), p1=int(orders.committed[1]))
    orders.monitor.restart()
    orders.run(300, (100, 100), (20, 20), every=20)
    assert orders.changes() == [("under_provisioned", True)]


@pytest.mark.parametrize("pause_seconds", [600, 3 * 86_400])
def test_a_healthy_group_is_not_late_after_a_pause_of_the_monitor(orders: Orders, pause_seconds: int) -> None:
    """The first record after a quiet time seemed to be as old as the pause: STOP, a silent group, and an incident.

    The producers start again just before the monitor does. The group commits every 60 s.
    """
    monitor = orders.monitor
    monitor.cluster.states = {"g": "Stable"}
    orders.run(300, (0, 0), (1e-9, 1e-9))
    monitor.cluster.now_ms += 1000 * pause_seconds
    monitor.restart()
    orders.run(55, (100, 100), (0, 0))
    report = monitor.monitor_state.reports(monitor.monitor_state.view(), is_fresh=True)["g"]
    assert (report.lag.seconds, report.lag.seconds_is_bound) == (50, True), "as old as the first sample with a record"
    assert report.lag.status != "STOP"
    assert (report.cause, report.conditions, monitor.monitor_state.view().incidents) == (None, (), ())


def test_a_start_without_samples_does_not_make_new_records_of_a_quiet_topic_old(orders: Orders) -> None:
    """The first sample saw a record of one second ago. The record counted as older than 100 s: STOP and an incident."""
    monitor = orders.monitor
    orders.run(600, (0, 0), (0, 0))
    shutil.rmtree(monitor.root / "files")
    monitor.lag_watch.store = lambda: None  # type: ignore[method-assign]
    monitor.cluster.end_offsets = {at: end + 100 for at, end in monitor.cluster.end_offsets.items()}
    monitor.restart()
    for _ in range(11):
        orders.run(5, (100, 100), (0, 0))
        report = monitor.monitor_state.reports(monitor.monitor_state.view(), is_fresh=True)["g"]
        assert report.lag.status != "STOP"
        assert (report.cause, report.conditions, monitor.monitor_state.view().incidents) == (None, (), ())


@pytest.mark.parametrize("interval_seconds", [20, 60])
def test_a_long_interval_between_samples_does_not_make_new_records_old(orders: Orders, interval_seconds: int) -> None:
    """Each sample sees records of one second ago. The group commits them after the sample."""
    monitor, cluster = orders.monitor, orders.monitor.cluster
    for _ in range(6):
        cluster.now_ms += 1000 * (interval_seconds - 1)
        cluster.end_offsets = {at: end + 10 for at, end in cluster.end_offsets.items()}
        monitor.sampler.take_sample()
        report = monitor.monitor_state.reports(monitor.monitor_state.view(), is_fresh=True)["g"]
        assert report.lag.records == 20
        assert (report.cause, report.conditions, monitor.monitor_state.view().incidents) == (None, (), ())
        assert report.lag.status != "STOP"
        cluster.now_ms += 1000
        monitor.commit(p0=cluster.end_offsets["orders", 0], p1=cluster.end_offsets["orders", 1])


def test_a_cause_ends_although_the_members_commit_in_turns(orders: Orders) -> None:
    """Each member commits everything every 60 s, 30 s apart. So one partition always has a lag of 30 s or more."""
    orders.run(200, (100, 100), (20, 100))
    for _ in range(6):
        orders.run(30, (100, 100), (900, 0), every=30)
        orders.run(30, (100, 100), (0, 900), every=30)
    assert orders.changes() == [("slow_member", True), ("slow_member", False)]


def test_a_cause_ends_although_the_group_has_a_commit_for_a_deleted_partition(orders: Orders) -> None:
    """The lag of a deleted partition is always unknown, so the cause stayed active until the commit expired."""
    orders.monitor.commit(p7=5)
    orders.run(180, (100, 100), (20, 100))
    orders.run(60, (100, 100), (900, 100))
    monitor_state = orders.monitor.monitor_state
    assert monitor_state.reports(monitor_state.view(), is_fresh=True)["g"].lag.unknown == ["partition_deleted"]
    assert orders.changes()[-1] == ("unknown", False)


def test_a_restart_without_files_does_not_end_the_cause_of_a_group_that_stopped_without_lag(orders: Orders) -> None:
    """The group was not behind at its last commit. The status STOP and the lag in seconds need the lost samples."""
    orders.run(180, (100, 100), (0, 0))
    shutil.rmtree(orders.monitor.root / "files")
    orders.monitor.lag_watch.store = lambda: None  # type: ignore[method-assign]
    orders.monitor.restart()
    orders.run(60, (100, 100), (0, 0))
    assert orders.cause() is None
    assert orders.changes() == [("stopped", True)]


def test_a_failed_append_writes_the_row_once(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The append raised an error after it was committed. The next sample reads the table and writes nothing."""
    tables = orders.monitor.tables
    append = type(tables).append

    def fail_after_append(_: object, table: Table, rows: object) -> None:
        append(tables, table, rows)  # type: ignore[arg-type]
        if table is LAG_CAUSES:
            monkeypatch.undo()
            raise OSError("the response was lost")

    monkeypatch.setattr(type(tables), "append", fail_after_append)
    with pytest.raises(OSError, match="the response was lost"):
        orders.run(180, (100, 100), (20, 100))
    orders.run(60, (100, 100), (20, 100))
    assert orders.changes() == [("slow_member", True)]


def test_after_a_stall_with_commits_of_the_same_offset_the_group_catches_up(orders: Orders) -> None:
    """The members committed the same offset for 400 s, and then consumed faster than producers write.

    The first sample of the count was before the stall. So for minutes, the averages decided, and they contained the
    stall: "too much input: the lag of every member grows", while the lag decreased.
    """
    orders.run(120, (100, 100), (100, 100))
    orders.run(400, (100, 100), (1e-9, 1e-9))
    orders.run(20, (100, 100), (160, 160))
    reasons = set[str]()
    for _ in range(30):
        orders.run(5, (100, 100), (160, 160))
        reasons.add((orders.cause() or Cause("unknown")).reason)
    assert reasons == {"catching_up"}


def test_a_cause_ends_although_transactions_of_producers_are_always_open(orders: Orders) -> None:
    """At each sample, an open transaction blocked some partition for 30 s or more. So the group never caught up.

    The incident of the slow group stayed open for ever, and recommended to add members.
    """
    cluster, offsets = orders.monitor.cluster, dict[str, int]()
    for capacity, samples in ((40, 50), (100_000, 8), (2_000, 60)):
        for _ in range(samples):
            cluster.now_ms += 5000
            for number in (0, 1):
                end = cluster.end_offsets["orders", number]
                if (cluster.now_ms // 1000 + 40 * number) % 80 < 5:
                    cluster.last_stable["orders", number] = end
                cluster.end_offsets["orders", number] = end + 500
                readable = cluster.last_stable.get(("orders", number), end + 500)
                orders.committed[number] = min(readable, orders.committed[number] + 5 * capacity)
            now = {f"p{number}": int(orders.committed[number]) for number in (0, 1)}
            orders.monitor.commit(**{name: offset for name, offset in now.items() if offsets.get(name) != offset})
            offsets = now
            orders.monitor.sampler.take_sample()
    changes = orders.changes()
    assert ("under_provisioned", True) in changes
    assert not changes[-1][1], "the last row is the end of a cause"
