"""Rule 3, nothing lost and nothing twice: killed at any moment, the monitor goes on as if nothing had been."""

from __future__ import annotations

import random
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable
from msgspec.structs import asdict

from streaming.combine.partition_state import STUCK_AFTER_SECONDS
from streaming.embedded import EmbeddedBroker
from streaming.errors import STAYS
from streaming.protocol import RecordType
from streaming.run.log_integrity import STORED_ID
from tests.end_to_end.conftest import Group, create_topics, produce
from tests.end_to_end.ghosts import Ghosts, Haunt, write_record
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.end_to_end.what_kafka_says import WhatKafkaSays
from tests.streaming.combine.gap_model import compute_gaps
from tests.streaming.log_records import LogRecord
from tests.streaming.spark.checkpoints import fill_with_garbage, truncate

EPOCHS = {
    RecordType.GROUP_METADATA,
    RecordType.CONSUMER_GROUP_METADATA,
    RecordType.SHARE_GROUP_METADATA,
    RecordType.STREAMS_GROUP_METADATA,
}
COMMITS = {RecordType.OFFSET_COMMIT, RecordType.OFFSET_COMMIT_LEGACY}

pytestmark = pytest.mark.slow

KEPT_FAMILIES = (
    "rebalance_monitor_group_members",
    "rebalance_monitor_group_generation",
    "rebalance_monitor_group_lag",
    "rebalance_monitor_rebalances_total",
    "rebalance_monitor_rebalances_failed_total",
    "rebalance_monitor_empty_transitions_total",
    "rebalance_monitor_commit_gap_seconds_count",
    "rebalance_monitor_commit_gap_seconds_sum",
    "rebalance_monitor_drift_partitions",
    "rebalance_monitor_imbalance_ratio",
    "rebalance_monitor_idle_members",
    "kafka_consumergroup_current_offset",
    "kafka_consumergroup_lag",
)
RECORD_TABLES = (
    "group_generations",
    "rebalances",
    "commit_gaps",
    "assignment_drift",
    "assignment_imbalance",
    "what_if",
    "quarantine",
)


@pytest.fixture
def haunt(broker: EmbeddedBroker) -> Iterator[Haunt]:
    """Write ghosts, and lay them at the end, whatever came of the test: others' monitors read the same topic."""
    keys: list[tuple[str, bytes]] = []

    def write(group_id: str, key: bytes, value: bytes) -> None:
        keys.append((group_id, key))
        write_record(broker, group_id, key, value)

    yield write
    for group_id, key in keys:
        write_record(broker, group_id, key, None)


@pytest.fixture
def temporary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of the test's monitors, in their own folder."""
    made = folder / "temporary"
    made.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(made))
    return made


def test_killed_five_times_and_rebuilt_it_loses_nothing_and_doubles_nothing_and_no_ghost_stays(
    broker: EmbeddedBroker,
    kafka_says: WhatKafkaSays,
    haunt: Haunt,
    temporary: Path,
    name: str,
):
    """Kills at a random moment, between the commits of two tables, and while clients idle; then a fresh checkpoint.

    The last two are what breaks monitors in production: nobody commits any more, so everything shown must come from
    durable state; and a new checkpoint counts its batches from 0, which Delta's own idempotence would skip silently.
    And one of the outages was longer than tombstones live: what coordinators know no more is closed, and stays closed.
    Each kill left up to 40 MB in the temporary folder. A damaged cache is dropped, and of other damage `rebuild` heals.
    """
    partitions = {f"{name}-a": 4, f"{name}-b": 2}
    create_topics(broker, partitions)
    group = Group(broker.bootstrap_servers, name)
    group.join([f"{name}-a", f"{name}-b"])
    monitor = MonitorProcess(broker.bootstrap_servers, temporary.parent)
    try:
        _kill_at_a_random_moment(monitor, group, lambda: produce(broker, partitions, records=2), list(partitions))
        _kill_between_two_tables(monitor, group, [f"{name}-a", f"{name}-b"])
    finally:
        group.leave_all()
    ghosts = Ghosts(name)
    ghosts.appear(broker, haunt)
    monitor.environment = {"SAMPLING__RECONCILE_SECONDS": "1"}
    monitor.start().wait_until_ready()
    ghosts.are_closed(monitor)
    until("the last generation", lambda: monitor.value("rebalance_monitor_group_members", group=name) == 0)
    _tables_hold_the_log(monitor, kafka_says)
    _totals_follow_the_log(monitor, kafka_says, name)
    _gaps_are_those_of_the_log(monitor, kafka_says, name)
    before = _kept(monitor)

    monitor.kill()
    fill_with_garbage(monitor.folder / "checkpoint" / STORED_ID)
    left = set(temporary.iterdir())
    assert len(left) == 1, "of all monitors killed before the last one, nothing is left"
    monitor.start().wait_until_ready()
    assert not left & set(temporary.iterdir())
    assert _kept(monitor) == before, "a restart while every client is idle, without a cache that was damaged"
    assert monitor.log.read_text().count(f"{STORED_ID} is damaged") == 1
    ghosts.stay_closed(monitor, kafka_says)
    _tables_hold_the_log(monitor, kafka_says)

    assert monitor.stop() == 0
    assert list(temporary.iterdir()) == []
    rows_before = _rows_of_records(monitor)
    _damage_is_refused_by_name(monitor)
    monitor.run_command("rebuild")
    monitor.start().wait_until_ready()
    ghosts.are_closed(monitor)
    assert _kept(monitor) == before, "a fresh checkpoint over the same tables"
    _tables_hold_the_log(monitor, kafka_says)
    assert _rows_of_records(monitor) == rows_before
    _gaps_are_those_of_the_log(monitor, kafka_says, name)
    assert monitor.stop() == 0


def _damage_is_refused_by_name(monitor: MonitorProcess) -> None:
    """One line and exit code 78, which keeps a supervisor from starting it for ever. The checkpoint stays damaged."""
    tables = monitor.folder / "damaged-tables"
    shutil.copytree(monitor.folder / "tables", tables)
    _, _, rows = DeltaTable(str(tables / "rebalances")).file_uris()[0].partition("/rebalances/")
    truncate(tables / "rebalances" / rows)
    over_them = MonitorProcess(monitor.bootstrap_servers, monitor.folder, {"PATHS__TABLES": str(tables)})
    for command, exit_code in (("run", STAYS), ("rebuild", None)):
        said = over_them.refused_command(command, exit_code=exit_code)
        assert said.startswith(f"Error: table {tables}/rebalances is damaged ({rows} has ")
        assert "run `rebalance-monitor rebuild --repair-tables`" in said
        assert len(said.splitlines()) == 1
    commits = monitor.folder / "checkpoint" / "query" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    truncate(last)
    said = monitor.refused_command("run", exit_code=STAYS)
    assert f"query/commits/{last.name} does not match its checksums" in said
    assert "run `rebalance-monitor rebuild`" in said
    assert len(said.splitlines()) == 1


def _rows_of_records(monitor: MonitorProcess) -> dict[str, int]:
    """How many rows each table has that stem from records alone; what samples make comes on and on."""
    return {table: sum(row.get("sampled_time") is None for row in monitor.rows(table)) for table in RECORD_TABLES}


def _kill_at_a_random_moment(
    monitor: MonitorProcess, group: Group, write: Callable[[], None], topics: list[str]
) -> None:
    moments = random.Random(20261121)
    monitor.start()
    group.join(topics)
    for _ in range(3):  # members commit only what is new
        time.sleep(moments.uniform(3, 7))
        write()
    group.leave()
    monitor.kill()


def _kill_between_two_tables(monitor: MonitorProcess, group: Group, topics: list[str]) -> None:
    run = tuple(monitor.command[3:])
    sane_command = monitor.command
    for table in ("group_generations", "rebalances", "assignment_drift"):
        monitor.command = (sys.executable, "-m", "tests.end_to_end.dying_monitor", table, "2", *run)
        group.join(topics)
        monitor.start()
        deadline = time.monotonic() + 90
        while monitor.process is not None and monitor.process.poll() is None:
            assert time.monotonic() < deadline, "it should have died by its own hand"
            group.leave()
            group.join(topics)
            time.sleep(2)
        assert monitor.process is not None
        assert monitor.process.returncode == -9
    monitor.command = sane_command


def _kept(monitor: MonitorProcess) -> dict[str, object]:
    """What must be the same after a restart. Offsets of the monitor's own making have no part in it."""
    scraped = monitor.metrics()
    return {family: scraped.get(family, {}) for family in KEPT_FAMILIES}


def _tables_hold_the_log(monitor: MonitorProcess, kafka_says: WhatKafkaSays) -> None:
    """Each generation and epoch of the log is one row, and no row is of a record twice; each verdict too."""
    reported = Counter(
        (row["offsets_topic_partition"], row["offsets_topic_offset"])
        for row in monitor.rows("group_generations")
        if row["state"] != "Gone"  # at the position of the group's last record, which has a row
    )
    assert max(reported.values()) == 1
    assert kafka_says.positions(EPOCHS) <= reported.keys()
    assert reported.keys() <= kafka_says.positions(set(RecordType) - COMMITS)
    for table, of_row in (
        ("assignment_drift", ("strategy",)),
        ("assignment_imbalance", ("sampled_time", "measure", "scope", "topic")),
        ("what_if", ("change", "strategy")),
    ):
        named = ("offsets_topic_partition", "offsets_topic_offset", *of_row)
        keys = Counter(tuple(row[name] for name in named) for row in monitor.rows(table))
        assert keys
        assert max(keys.values()) == 1, table
    gaps = Counter((row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in monitor.rows("commit_gaps"))
    assert max(gaps.values()) == 1
    assert gaps.keys() <= {
        (row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in monitor.rows("rebalances")
    }
    samples = Counter(
        (row["group_id"], row["topic"], row["partition"], row["sampled_time"]) for row in monitor.rows("group_lag")
    )
    assert max(samples.values()) == 1


def _totals_follow_the_log(monitor: MonitorProcess, kafka_says: WhatKafkaSays, group_id: str) -> None:
    generations = kafka_says.generations(group_id)
    emptied = sum(not has_members for _, has_members in generations[1:])
    difference = generations[-1][0] - generations[0][0]
    assert monitor.value("rebalance_monitor_rebalances_total", group=group_id) == difference - emptied


def _gaps_are_those_of_the_log(monitor: MonitorProcess, kafka_says: WhatKafkaSays, group_id: str) -> None:
    """Read record by record the log holds the same commit gaps, wherever the kills cut it into batches."""
    records = [
        LogRecord(record.key, record.value, record.partition, record.offset, record.timestamp_ms)
        for record in kafka_says.records()
    ]
    gaps = [asdict(gap) for gap in compute_gaps(records, STUCK_AFTER_SECONDS) if gap.group_id == group_id]
    expected = sorted((gap.pop("position").offsets_topic_offset, gap) for gap in gaps)

    def reported() -> list[tuple[int, dict[str, object]]]:
        rows = monitor.rows_of("commit_gaps", group_id)
        return sorted((row["offsets_topic_offset"], {name: row[name] for name in gaps[0]}) for row in rows)

    until("the same gaps", lambda: reported() == expected)
    assert any(gap["commit_gap_ms"] is not None for _, gap in expected)
