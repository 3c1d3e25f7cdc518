"""Test rule 3: after a kill at any moment the monitor continues, loses nothing and writes nothing twice."""

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

from streaming.embedded import EmbeddedBroker
from streaming.errors import STAYS
from streaming.run.log_integrity import STORED_ID
from tests.end_to_end.conftest import Group, create_topics, produce
from tests.end_to_end.exactly_once import check_tables_against_log, durable_metrics, gap_rows, gaps_of_log
from tests.end_to_end.ghosts import Ghosts, WriteGhost, write_record
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, until
from tests.streaming.spark.checkpoints import fill_with_garbage, truncate

pytestmark = pytest.mark.slow

VERDICT_TABLES = ("assignment_drift", "assignment_imbalance", "what_if")
RECORD_TABLES = ("group_generations", "rebalances", "commit_gaps", *VERDICT_TABLES, "quarantine")


@pytest.fixture
def write_ghost(broker: EmbeddedBroker) -> Iterator[WriteGhost]:
    """Return a function that writes ghosts. They are deleted at the end, because other monitors read the same topic."""
    keys: list[tuple[str, bytes]] = []

    def write(group_id: str, key: bytes, value: bytes) -> None:
        keys.append((group_id, key))
        write_record(broker, group_id, key, value)

    yield write
    for group_id, key in keys:
        write_record(broker, group_id, key, None)


@pytest.fixture
def temporary(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Set TMPDIR of the test's monitors to a folder inside their own folder, and return it."""
    temporary_folder = folder / "temporary"
    temporary_folder.mkdir(parents=True)
    monkeypatch.setenv("TMPDIR", str(temporary_folder))
    return temporary_folder


def test_after_five_kills_and_a_rebuild_nothing_is_lost_or_written_twice_and_no_ghost_stays(
    broker: EmbeddedBroker,
    kafka_reference: KafkaReference,
    write_ghost: WriteGhost,
    temporary: Path,
    name: str,
):
    """Kill at a random moment, between the commits of two tables, and with idle clients. Then use a new checkpoint.

    1. If clients are idle, there are no new commits. Everything shown must come from durable state.
    2. A new checkpoint counts its batches from 0. Delta's own idempotence would silently skip these batches.
    3. One outage is longer than tombstones are kept. Groups and commits that no coordinator knows are closed.
    4. Each kill leaves up to 40 MB in the temporary folder. The next start deletes them.
    5. A damaged cache is dropped. Other damage is refused, and `rebuild` repairs it.
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
    ghosts.appear(broker, write_ghost)
    monitor.environment = {"SAMPLING__RECONCILE_SECONDS": "1"}
    monitor.start().wait_until_ready()
    ghosts.wait_until_closed(monitor)
    until("the last generation", lambda: monitor.value("rebalance_monitor_group_members", group=name) == 0)
    check_tables_against_log(monitor, kafka_reference)
    _check_totals_against_log(monitor, kafka_reference, name)
    _check_gaps_against_log(monitor, kafka_reference, name)
    before = durable_metrics(monitor.metrics())

    monitor.kill()
    fill_with_garbage(monitor.folder / "checkpoint" / STORED_ID)
    left = set(temporary.iterdir())
    assert len(left) == 1, "only the last killed monitor left files"
    monitor.start().wait_until_ready()
    assert not left & set(temporary.iterdir())
    assert durable_metrics(monitor.metrics()) == before, "after a restart with idle clients and a damaged cache"
    assert monitor.log.read_text().count(f"{STORED_ID} is damaged") == 1
    ghosts.check_still_closed(monitor, kafka_reference)
    check_tables_against_log(monitor, kafka_reference)

    assert monitor.stop() == 0
    assert list(temporary.iterdir()) == []
    rows_before = _rows_of_records(monitor)
    _damage_is_refused_by_name(monitor)
    monitor.run_command("rebuild")
    monitor.start().wait_until_ready()
    ghosts.wait_until_closed(monitor)
    assert durable_metrics(monitor.metrics()) == before, "after a new checkpoint with the same tables"
    check_tables_against_log(monitor, kafka_reference)
    rows = _rows_of_records(monitor)
    assert (rows - rows_before, rows_before - rows) == (Counter(), Counter()), "new rows, and lost rows"
    _check_gaps_against_log(monitor, kafka_reference, name)
    assert monitor.stop() == 0


def _damage_is_refused_by_name(monitor: MonitorProcess) -> None:
    """Check that damage is one line and exit code 78, which stops a supervisor from restarting the monitor forever.

    The checkpoint stays damaged afterwards.
    """
    tables = monitor.folder / "damaged-tables"
    shutil.copytree(monitor.folder / "tables", tables)
    _, _, rows = DeltaTable(str(tables / "rebalances")).file_uris()[0].partition("/rebalances/")
    truncate(tables / "rebalances" / rows)
    with_damaged_tables = MonitorProcess(monitor.bootstrap_servers, monitor.folder, {"PATHS__TABLES": str(tables)})
    for command, exit_code in (("run", STAYS), ("rebuild", None)):
        error = with_damaged_tables.refused_command(command, exit_code=exit_code)
        assert error.startswith(f"Error: table {tables}/rebalances is damaged ({rows} has ")
        assert "run `rebalance-monitor rebuild --repair-tables`" in error
        assert len(error.splitlines()) == 1
    commits = monitor.folder / "checkpoint" / "query" / "commits"
    last = max((path for path in commits.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))
    truncate(last)
    error = monitor.refused_command("run", exit_code=STAYS)
    assert f"query/commits/{last.name} does not match its checksums" in error
    assert "run `rebalance-monitor rebuild`" in error
    assert len(error.splitlines()) == 1


def _rows_of_records(monitor: MonitorProcess) -> Counter[tuple[str, str, int, int]]:
    """Count the rows of each record in each table.

    Rows from samples increase all the time, so they do not count. The verdict on the ghost does not count either: the
    ghost may end before or after its topic is sampled.
    """
    return Counter(
        (table, row.get("group_id") or "", row["offsets_topic_partition"], row["offsets_topic_offset"])
        for table in RECORD_TABLES
        for row in monitor.rows(table)
        if row.get("sampled_time") is None and not (table in VERDICT_TABLES and row["group_id"].endswith("-ghost"))
    )


def _kill_at_a_random_moment(
    monitor: MonitorProcess, group: Group, write: Callable[[], None], topics: list[str]
) -> None:
    moments = random.Random(20261121)
    monitor.start()
    group.join(topics)
    for _ in range(3):  # members commit only new offsets
        time.sleep(moments.uniform(3, 7))
        write()
    group.leave()
    monitor.kill()


def _kill_between_two_tables(monitor: MonitorProcess, group: Group, topics: list[str]) -> None:
    run = tuple(monitor.command[3:])
    normal_command = monitor.command
    for table in ("group_generations", "rebalances", "assignment_drift"):
        monitor.command = (sys.executable, "-m", "tests.end_to_end.dying_monitor", table, "2", *run)
        group.join(topics)
        monitor.start()
        deadline = time.monotonic() + 90
        while monitor.process is not None and monitor.process.poll() is None:
            assert time.monotonic() < deadline, "the monitor should have killed itself"
            group.leave()
            group.join(topics)
            time.sleep(2)
        assert monitor.process is not None
        assert monitor.process.returncode == -9
    monitor.command = normal_command


def _check_totals_against_log(monitor: MonitorProcess, kafka_reference: KafkaReference, group_id: str) -> None:
    generations = kafka_reference.generations(group_id)
    emptied = sum(not has_members for _, has_members in generations[1:])
    difference = generations[-1][0] - generations[0][0]
    assert monitor.value("rebalance_monitor_rebalances_total", group=group_id) == difference - emptied


def _check_gaps_against_log(monitor: MonitorProcess, kafka_reference: KafkaReference, group_id: str) -> None:
    """Check that the table has the commit gaps of a plain reading of the log, independent of the batches."""
    expected = gaps_of_log(kafka_reference, [group_id])
    until("the same gaps", lambda: gap_rows(monitor, [group_id]) == expected)
    assert any(gap["commit_gap_ms"] is not None for gap in expected.values())
