"""Tests that each active condition and cause of lag has a row on each date, so that retention hides nothing active."""

from __future__ import annotations

from pathlib import Path

from streaming.cli.text.stored import read_condition_changes
from streaming.past.reader import PastReader
from tests.streaming.groups import written
from tests.streaming.past.history import lag_row, write_lag, write_life
from tests.streaming.run.samples.orders import STEP_SECONDS, Orders
from tests.streaming.run.samples.test_conditions import MINUTE_MS, SHARED, Monitor, storm


def test_an_active_condition_has_a_row_on_each_date(tmp_path: Path) -> None:
    """A condition lasts for months. Without a row on each date, retention would delete its only row."""
    monitor = Monitor(tmp_path)
    monitor.sampler.take_sample()
    storm(monitor)
    monitor.pass_minutes(1)
    monitor.cluster.is_blocked = True  # unknown conditions have not ended
    for _ in range(3):
        monitor.cluster.now_ms += 12 * 60 * MINUTE_MS
        monitor.sampler.take_sample()
        monitor.restart()
        monitor.pass_minutes(1)
    rows = monitor.rows()
    assert [row["is_repeated"] for row in rows] == [False, True, True], "36 hours touch three dates"
    assert len({row["date"] for row in rows}) == 3
    assert len({(row["since_time"], row["detail"], row["active"]) for row in rows}) == 1
    assert [row["read_up_to_time"] is None for row in rows] == [False, True, True]
    monitor.tables.tidy(rows[-1]["date"])
    reader = PastReader(str(monitor.root / "tables"), "prod")
    write_life(monitor.root / "tables", [written(0, 1, SHARED)], "g", "prod")
    write_lag(monitor.root / "tables", lag_row(monitor.cluster.now_ms, 7))  # without a measurement, it is unknown
    past = reader.group("g", monitor.cluster.now_ms)
    assert past is not None
    assert [one.name for one in past.report.conditions] == ["rebalance_storm"]
    changes = read_condition_changes(str(monitor.root / "tables"), "prod", "g")
    assert changes == [], "repeated rows are neither starts nor ends"


def test_an_active_cause_has_a_row_on_each_date(tmp_path: Path) -> None:
    """A group lags for months. Without a row on each date, retention would delete the only row of the cause."""
    orders = Orders(Monitor(tmp_path))
    orders.run(120, (100, 100), (100, 100))
    orders.run(180, (100, 100), (20, 100))
    orders.monitor.cluster.is_blocked = True
    for _ in range(3):
        orders.monitor.cluster.now_ms += 12 * 3_600_000
        orders.monitor.sampler.take_sample()
        orders.monitor.restart()
        orders.run(STEP_SECONDS, (100, 100), (0, 0))
    rows = orders.rows()
    assert [(row["active"], row["is_repeated"]) for row in rows] == [(True, False), (True, True), (True, True)]
    assert len({row["date"] for row in rows}) == 3
    assert len({(row["since_time"], row["cause"], row["text"]) for row in rows}) == 1
    orders.monitor.cluster.is_blocked = False
    orders.run(60, (0, 0), (9_000_000, 9_000_000))
    assert [(row["active"], row["is_repeated"]) for row in orders.rows()[3:]] == [(False, False)]
