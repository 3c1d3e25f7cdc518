"""Incidents from commits and samples to the monitor state, the report and the table. Only the brokers are simulated."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from assignors.coordinator import coordinator_partition
from streaming.delta.on_disk import DeltaTables
from streaming.delta.stored import stored_rows
from streaming.delta.tables import INCIDENTS, Table
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.limits import GroupLimits
from tests.streaming.run.samples.lag.test_lag_causes import Orders
from tests.streaming.run.samples.test_conditions import MINUTE_MS, START_MS, Monitor

SLOW, WELL = ((100, 100), (20, 100)), ((100, 100), (900, 100))
OF_BROKER_3 = [name for number in range(40) if coordinator_partition(name := f"app-{number}", 2) == 0][:6]
OF_BROKER_1 = [name for number in range(40) if coordinator_partition(name := f"app-{number}", 2) == 1][:3]


def rows_of(monitor: Monitor) -> list[dict[str, Any]]:
    """Return the rows of the table."""
    return list(stored_rows(str(monitor.root / "tables"), INCIDENTS))


def states_of(monitor: Monitor) -> list[tuple[str, bool, bool]]:
    """Return the rows of the table as (cause, is open, is quiet)."""
    return [(row["cause"], row["active"], row["quiet_since_time"] is not None) for row in rows_of(monitor)]


def incidents(monitor: Monitor) -> tuple[Incident, ...]:
    """Return the open incidents in the monitor state."""
    return monitor.monitor_state.view().incidents


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Return a healthy group with 100 records per second in each partition."""
    group = Orders(Monitor(tmp_path))
    group.run(120, (100, 100), (100, 100))
    return group


def test_a_slow_member_is_an_incident_from_its_first_late_sample_until_ten_minutes_after_it(orders: Orders) -> None:
    """The table has the start, the end of the evidence, and the end. The report shows the id while it is active."""
    assert not incidents(orders.monitor), "one rebalance is no incident"
    orders.run(180, *SLOW)
    (incident,) = incidents(orders.monitor)
    (row,) = rows_of(orders.monitor)
    cause = orders.cause()
    assert cause is not None
    assert row["incident_id"] == incident.incident_id
    assert incident.since_ms == cause.since_ms
    assert row["story"][0].startswith("Group g: Slow member: client-a@127.0.0.1 receives")
    state = orders.monitor.monitor_state
    assert state.reports(state.view(), is_fresh=True)["g"].incident_id == incident.incident_id
    orders.run(60, *WELL)
    assert incidents(orders.monitor)[0].quiet_since_ms is not None
    assert state.reports(state.view(), is_fresh=True)["g"].incident_id is None
    orders.run(600, (100, 100), (100, 100))
    assert not incidents(orders.monitor)
    states = [("slow_member", True, False), ("slow_member", True, True), ("slow_member", False, True)]
    assert states_of(orders.monitor) == states


@pytest.mark.parametrize("is_rebuild", [False, True])
def test_neither_a_restart_nor_a_rebuild_ends_or_repeats_an_incident(orders: Orders, *, is_rebuild: bool) -> None:
    """After a kill, the cause of lag is unknown for a minute. The incident continues with the same id.

    After a rebuild, only the table of incidents is left: the new checkpoint has no samples and no losses.
    """
    orders.run(180, *SLOW)
    before = incidents(orders.monitor)
    orders.monitor.restart(is_rebuild=is_rebuild)
    orders.run(5, *SLOW)
    assert orders.cause() is None
    assert incidents(orders.monitor) == before
    orders.run(120, *SLOW)
    assert incidents(orders.monitor) == before
    assert len(rows_of(orders.monitor)) == 1


def test_a_failed_append_writes_the_row_once(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """The append raised an error after it was committed. The next sample reads the table and writes nothing."""
    tables = orders.monitor.tables
    append = type(tables).append

    def fail_after_append(_: object, table: Table, rows: object) -> None:
        append(tables, table, rows)  # type: ignore[arg-type]
        if table is INCIDENTS:
            monkeypatch.undo()
            raise OSError("the response was lost")

    monkeypatch.setattr(type(tables), "append", fail_after_append)
    with pytest.raises(OSError, match="the response was lost"):
        orders.run(180, *SLOW)
    orders.run(60, *SLOW)
    assert len(rows_of(orders.monitor)) == 1


def _refuse_incidents(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each append to the table of incidents fail."""
    append = DeltaTables.append

    def append_to_other_tables(tables: DeltaTables, table: Table, rows: pa.Table) -> None:
        if table is INCIDENTS:
            raise OSError("no space left on device")
        append(tables, table, rows)

    monkeypatch.setattr(DeltaTables, "append", append_to_other_tables)


def test_while_the_table_cannot_be_written_an_incident_keeps_its_id_and_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full. Each sample opened a new incident with a new start, and the link of an alert led to a 404."""
    monitor = Monitor(tmp_path)
    monitor.monitor_state._report_cache._limits_of = lambda ids: dict.fromkeys(ids, GroupLimits(max_lag_seconds=60))
    group = Orders(monitor)
    group.run(120, (100, 100), (100, 100))
    shown = []
    _refuse_incidents(monkeypatch)
    for _ in range(60):
        with suppress(OSError):
            group.run(5, *SLOW)
        shown += [(one.incident_id, one.since_ms) for one in incidents(monitor)]
    assert len(shown) > 20
    assert len(set(shown)) == 1
    assert {one.name for one in incidents(monitor)[0].evidence} == {"slow_member", "lag_above_limit"}
    assert not rows_of(monitor)
    monkeypatch.undo()
    group.run(60, *SLOW)
    [row] = rows_of(monitor)
    assert (row["incident_id"], len(row["evidence"])) == (shown[0][0], 2)


def test_while_the_table_cannot_be_written_an_ended_incident_waits_for_its_row(
    orders: Orders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its last row is of the open incident, so a restart would open it again."""
    orders.run(180, *SLOW)
    _refuse_incidents(monkeypatch)
    for _ in range(140):
        with suppress(OSError):
            orders.run(5, *WELL)
    assert not incidents(orders.monitor)
    assert states_of(orders.monitor) == [("slow_member", True, False)]
    monkeypatch.undo()
    orders.run(10, *WELL)
    assert states_of(orders.monitor) == [("slow_member", True, False), ("slow_member", False, True)]


def test_a_group_with_ignore_alerts_has_no_incident(tmp_path: Path) -> None:
    """A nightly job is late each day."""
    limits = GroupLimits(ignore_alerts=True)
    monitor = Monitor(tmp_path)
    monitor.limits_of = lambda ids: dict.fromkeys(ids, limits)
    monitor.restart()
    monitor.monitor_state._report_cache._limits_of = monitor.limits_of
    group = Orders(monitor)
    group.run(120, (100, 100), (100, 100))
    group.run(180, *SLOW)
    assert group.kind() == "slow_member"
    assert not incidents(monitor)


def test_the_topics_of_losses_are_read_once_per_sample(orders: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker dies, and 1,200 groups have evidence. The rows of one group cost 2 ms in the thread of the sampler."""
    read = LagEvaluation.rows_of
    groups: list[str] = []
    monkeypatch.setattr(LagEvaluation, "rows_of", lambda lag, group_id: groups.append(group_id) or read(lag, group_id))
    orders.run(180, *SLOW)
    assert incidents(orders.monitor)
    assert not groups


def test_an_open_incident_has_a_row_on_each_date(tmp_path: Path) -> None:
    """An open transaction hides a group for days. Retention deletes old rows, and a restart finds the incident."""
    monitor = Monitor(tmp_path)
    _storm(monitor, "g")
    monitor.cluster.now_ms += 5_000
    monitor.sampler.take_sample()
    monitor.cluster.is_blocked = True
    (before,) = incidents(monitor)
    for _ in range(3):
        monitor.cluster.now_ms += 12 * 60 * MINUTE_MS
        monitor.sampler.take_sample()
        monitor.restart()
        monitor.cluster.now_ms += 5_000
        monitor.sampler.take_sample()
    rows = rows_of(monitor)
    assert [row["is_repeated"] for row in rows] == [False, True, True], "36 hours touch three dates"
    assert len({row["date"] for row in rows}) == 3
    monitor.tables.tidy(rows[-1]["date"])
    monitor.restart()
    monitor.sampler.take_sample()
    assert [one.incident_id for one in incidents(monitor)] == [before.incident_id]


@pytest.mark.parametrize(
    ("is_deleted", "ended"),
    [
        pytest.param(
            False, set(), id="the late partition has no leader: its lag is unknown, so nothing is known to end"
        ),
        pytest.param(True, {"records_lost", "lag_above_limit"}, id="the late partition was deleted: it has no lag"),
    ],
)
def test_evidence_ends_only_if_the_lag_of_every_existing_partition_is_known(
    tmp_path: Path, *, is_deleted: bool, ended: set[str]
) -> None:
    """Partition 1 is late and lost records. The lag of partition 0 is known and 0 at each sample."""
    monitor = Monitor(tmp_path)
    limits = GroupLimits(max_lag_seconds=60)
    monitor.monitor_state._report_cache._limits_of = lambda ids: dict.fromkeys(ids, limits)
    group = Orders(monitor)
    group.run(120, (100, 100), (100, 100))
    monitor.cluster.log_start_offsets = dict.fromkeys(monitor.cluster.end_offsets, 0)
    group.run(180, (100, 100), (100, 20))
    monitor.cluster.log_start_offsets["orders", 1] = int(group.committed[1]) + 100
    group.run(5, (100, 100), (100, 0))
    (incident,) = incidents(monitor)
    assert {one.name for one in incident.evidence if one.until_ms is None} >= {"records_lost", "lag_above_limit"}
    assert [one.topics for one in incident.evidence if one.name == "records_lost"] == [("orders",)]
    _without_partition_1(monitor, is_deleted=is_deleted)
    group.run(60, (100, 100), (100, 0))
    (incident,) = incidents(monitor)
    found = {one.name for one in incident.evidence if one.until_ms is not None and one.source in {"loss", "lag"}}
    assert found == ended


def test_a_lag_that_varies_around_its_limit_is_one_fact_and_writes_no_row(tmp_path: Path) -> None:
    """Each crossing of the limit wrote a row of the whole incident, with up to 500 facts, at each sample."""
    monitor = Monitor(tmp_path)
    max_lag_seconds = 60
    monitor.monitor_state._report_cache._limits_of = lambda ids: dict.fromkeys(
        ids, GroupLimits(max_lag_seconds=max_lag_seconds)
    )
    group = Orders(monitor)
    group.run(120, (100, 100), (100, 100))
    group.run(180, *SLOW)
    before = incidents(monitor), rows_of(monitor)
    assert {one.name for one in before[0][0].evidence} == {"slow_member", "lag_above_limit"}
    for number in range(10):
        max_lag_seconds = 60 if number % 2 else 180
        group.run(5, *SLOW)
        state = monitor.monitor_state
        lag = state.reports(state.view(), is_fresh=True)["g"].lag
        assert lag.seconds is not None
        assert (lag.seconds > max_lag_seconds) == (number % 2 == 1)
    assert (incidents(monitor), rows_of(monitor)) == before
    max_lag_seconds = 600
    group.run(5, *SLOW)
    ended = {one.name for one in incidents(monitor)[0].evidence if one.until_ms is not None}
    assert ended == {"lag_above_limit"}, "the lag is at most half of the limit"


def _with_limit(monitor: Monitor, max_lag_seconds: int) -> Orders:
    """Return a healthy group with this limit, and with 100 records per second in each partition."""
    limits = GroupLimits(max_lag_seconds=max_lag_seconds)
    monitor.monitor_state._report_cache._limits_of = lambda ids: dict.fromkeys(ids, limits)
    group = Orders(monitor)
    group.run(120, (100, 100), (100, 100))
    return group


def test_an_open_transaction_in_a_topic_is_the_cause_of_the_incident(tmp_path: Path) -> None:
    """A transaction of a producer was open for some minutes. The group reads with read_committed.

    The incident said that the cause is unknown, and recommended to compare the members. The overview showed a healthy
    group. When the transaction has ended, the group catches up.
    """
    monitor = Monitor(tmp_path)
    group = _with_limit(monitor, 60)
    monitor.cluster.last_stable["orders", 0] = int(group.committed[0])
    group.run(270, (100, 100), (0, 100))
    (incident,) = incidents(monitor)
    assert {one.name for one in incident.evidence} == {"open_transaction", "lag_above_limit"}
    assert {one.topics for one in incident.evidence} == {("orders",), ()}
    assert rows_of(monitor)[-1]["story"][0] == (
        "Group g: Open transaction: an open transaction of a producer blocks every late partition."
    )
    state = monitor.monitor_state
    assert [one.word for one in state.reports(state.view(), is_fresh=True)["g"].troubles] == ["open transaction"]
    del monitor.cluster.last_stable["orders", 0]
    group.run(180, (100, 100), (900, 100))
    assert all(one.until_ms is not None for one in incidents(monitor)[0].evidence)


def test_a_reset_of_the_offsets_is_the_cause_of_the_incident(tmp_path: Path) -> None:
    """An operator reset the offsets of a group to the earliest offset. The incident said that the cause is unknown."""
    monitor = Monitor(tmp_path)
    group = _with_limit(monitor, 60)
    group.committed = [0.0, 0.0]
    group.run(20, (100, 100), (150, 150))
    (incident,) = incidents(monitor)
    assert {"rewound", "lag_above_limit"} <= {one.name for one in incident.evidence}
    assert rows_of(monitor)[-1]["runbook_section"] == "KafkaGroupRewound"
    group.run(120, (100, 100), (150, 150))
    assert rows_of(monitor)[-1]["cause"] == "rewound"


def _without_partition_1(monitor: Monitor, *, is_deleted: bool) -> None:
    """Delete partition 1, or take away its leader."""
    sample, monitor.cluster.partitions = type(monitor.cluster).sample, 1 if is_deleted else 2

    def of_partition_0(topics: Any) -> ClusterSample:  # noqa: ANN401 - the argument of the brokers
        one = sample(monitor.cluster, topics)
        return replace(one, end_offsets={("orders", 0): one.end_offsets["orders", 0]})

    monitor.cluster.sample = of_partition_0  # type: ignore[method-assign]


def _with_brokers(monitor: Monitor, leaders: Mapping[int, int]) -> None:
    """Give `__consumer_offsets` two partitions with these leaders."""
    sample = type(monitor.cluster).sample

    def of_two_brokers(topics: Any) -> ClusterSample:  # noqa: ANN401 - the argument of the brokers
        one = sample(monitor.cluster, topics)
        ends = {**one.offsets_topic, 1: LogEnds(0, 0)}
        return replace(one, offsets_topic=ends, offsets_topic_partitions=2, offsets_topic_leaders=leaders)

    monitor.cluster.sample = of_two_brokers  # type: ignore[method-assign]


def _storm(monitor: Monitor, group: str) -> None:
    monitor.write(*(monitor.generation(number, 1 - number / 10) for number in range(2, 9)), group=group)


def test_all_groups_of_a_broker_that_died_are_one_incident_that_names_the_broker(tmp_path: Path) -> None:
    """Broker 3 dies, and broker 1 coordinates its groups. The groups rebalance again and again, one after the other."""
    monitor = Monitor(tmp_path)
    _with_brokers(monitor, {0: 3, 1: 1})
    for group in (*OF_BROKER_3, *OF_BROKER_1):
        monitor.write(monitor.generation(1, 60), group=group)
    monitor.sampler.take_sample()
    assert not incidents(monitor)
    _with_brokers(monitor, {0: 1, 1: 1})
    for group in OF_BROKER_3:
        monitor.cluster.now_ms += MINUTE_MS // 2
        _storm(monitor, group)
        monitor.sampler.take_sample()
    (incident,) = incidents(monitor)
    assert incident.groups == tuple(sorted(OF_BROKER_3))
    last = {row["incident_id"]: row for row in rows_of(monitor)}
    assert last[incident.incident_id]["cause"] == "coordinator_gone"
    assert last[incident.incident_id]["story"][0] == (
        "Broker 3 no longer coordinates groups, and 6 groups of this broker are affected."
    )
    assert len(last) == 4, "the first four groups had incidents of their own until the fifth made the link clear"
    assert {row["merged_into"] for row in last.values()} == {None, incident.incident_id}
    assert incident.since_ms == START_MS + MINUTE_MS // 2


def test_the_same_storms_without_a_dead_broker_are_incidents_of_their_own(tmp_path: Path) -> None:
    """The only broker coordinates all groups, so it explains nothing."""
    monitor = Monitor(tmp_path)
    for group in OF_BROKER_3:
        _storm(monitor, group)
    monitor.cluster.now_ms += 5_000
    monitor.sampler.take_sample()
    assert len(incidents(monitor)) == len(OF_BROKER_3)


def test_groups_without_a_coordinator_are_one_incident_although_the_log_cannot_be_read(tmp_path: Path) -> None:
    """The partition of broker 3 has no replica. Spark waits for it, so the commits of all groups are old.

    Only the missing coordinators are known, so neither lag nor the end of other evidence follows from the old commits.
    """
    monitor = Monitor(tmp_path)
    _with_brokers(monitor, {0: 3, 1: 1})
    for group in (*OF_BROKER_3, *OF_BROKER_1):
        monitor.write(monitor.generation(1, 60), group=group)
    _storm(monitor, OF_BROKER_1[0])
    monitor.sampler.take_sample()
    (before,) = incidents(monitor)
    _with_brokers(monitor, {1: 1})
    for _ in range(4):
        monitor.cluster.now_ms += 15_000
        monitor.sampler.take_sample()
    assert not monitor.monitor_state.view().health.ready
    after = {one.incident_id: one for one in incidents(monitor)}
    assert after.pop(before.incident_id) == before, "the storm neither ends nor changes"
    (incident,) = after.values()
    assert incident.groups == tuple(sorted(OF_BROKER_3))
    assert {one.name for one in incident.evidence} == {"no_coordinator"}
    last = {row["incident_id"]: row for row in rows_of(monitor)}
    assert last[incident.incident_id]["cause"] == "coordinator_gone"
    monitor.restart()
    monitor.cluster.now_ms += 5_000
    monitor.sampler.take_sample()
    assert incident in incidents(monitor), "the first sample does not show for how long the coordinator is missing"
    _with_brokers(monitor, {0: 3, 1: 1})
    monitor.cluster.now_ms += 5_000
    monitor.sampler.take_sample()
    assert {one.quiet_since_ms is None for one in incidents(monitor) if one.incident_id == incident.incident_id} == {
        False
    }
