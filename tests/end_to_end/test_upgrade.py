"""Test that the monitor continues with the checkpoint and the tables of an older monitor (docs/UPGRADING.md)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

import pytest
from deltalake import DeltaTable

from streaming.delta.tables import TABLES
from streaming.embedded import EmbeddedBroker
from tests.end_to_end.conftest import Group, commit
from tests.end_to_end.exactly_once import (
    Gaps,
    check_tables_against_log,
    durable_metrics,
    gap_rows,
    gaps_of_log,
)
from tests.end_to_end.kafka_reference import KafkaReference
from tests.end_to_end.monitor_process import MonitorProcess, Row, Samples, samples, until
from tests.end_to_end.upgrade.fixture import ARCHIVES, BROKER, LATE_GROUPS, METRICS, OFFLINE_GROUPS, SUFFIX, unpack

pytestmark = pytest.mark.slow

CLASSIC_GROUPS = ("range", "roundrobin", "cooperative", "late-range")
GROUPS = (*CLASSIC_GROUPS, "consumer", "share", "streams", "late-consumer", *OFFLINE_GROUPS)
NEW_GROUP = "after-the-upgrade"

NEVER = "36500"
"""Days. The rows of the fixture get older from year to year, and the monitor must not delete them."""


@dataclass(frozen=True)
class Upgraded:
    """A monitor of this version that continues the work of an older monitor.

    `old_metrics` is the last scrape of the older monitor, and `first_metrics` is the first scrape of this monitor when
    it was ready. Only after that did the test write more records. `old_rows` and `old_gaps` are the rows of the older
    monitor.
    """

    monitor: MonitorProcess
    kafka_reference: KafkaReference
    old_rows: Mapping[str, list[Row]]
    old_gaps: Gaps
    old_metrics: Samples
    first_metrics: Samples


@pytest.fixture(scope="module", params=ARCHIVES, ids=lambda archive: archive.name.removesuffix(SUFFIX))
def upgraded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    """Start this monitor with the checkpoint and the tables of an older one. Then write records to each partition."""
    folder = unpack(request.param, tmp_path_factory.mktemp("upgrade"))
    with (
        EmbeddedBroker(folder / "broker", properties=BROKER) as broker,
        closing(KafkaReference(broker.bootstrap_servers)) as reference,
    ):
        monitor = MonitorProcess(broker.bootstrap_servers, folder / "monitor", {"TABLES__RETENTION_DAYS": NEVER})
        old_rows = {table.name: monitor.rows(table.name) for table in TABLES if _exists(monitor, table.name)}
        old_gaps = gap_rows(monitor, GROUPS)
        monitor.start().wait_until_ready()
        first_metrics = monitor.metrics()
        for group_id in OFFLINE_GROUPS:
            commit(broker, group_id, "orders", 7)
        group = Group(broker.bootstrap_servers, NEW_GROUP)
        group.join(["orders"])
        try:
            until("the new group", lambda: monitor.value("rebalance_monitor_group_lag", group=NEW_GROUP) == 0)
        finally:
            group.leave_all()
        until("the end of the log", lambda: monitor.value("rebalance_monitor_group_members", group=NEW_GROUP) == 0)
        old_metrics = samples((folder / METRICS).read_text())
        yield Upgraded(monitor, reference, old_rows, old_gaps, old_metrics, first_metrics)
        assert monitor.stop() == 0


def _exists(monitor: MonitorProcess, table: str) -> bool:
    return (monitor.folder / "tables" / table).is_dir()


def test_every_row_of_the_older_monitor_is_still_there_once(upgraded: Upgraded) -> None:
    """Law 3: nothing is lost, and nothing is written twice. New columns are null in old rows."""
    for table, old_rows in upgraded.old_rows.items():
        rows = upgraded.monitor.rows(table)
        columns = old_rows[0].keys() if old_rows else ()
        kept = Counter(repr({name: row[name] for name in columns}) for row in rows)
        assert {repr(row): kept[repr(row)] for row in old_rows} == {repr(row): 1 for row in old_rows}, table
        known = {repr(row) for row in old_rows}
        for row in rows:
            if repr({name: row[name] for name in columns}) in known:
                assert not any(row[name] for name in row.keys() - columns), table


def test_the_new_tables_and_columns_exist(upgraded: Upgraded) -> None:
    for table in TABLES:
        path = upgraded.monitor.folder / "tables" / table.name
        assert {field.name for field in DeltaTable(path).schema().fields} == set(table.schema.names), table.name


def test_every_record_before_and_after_the_upgrade_is_in_the_tables_once(upgraded: Upgraded) -> None:
    """Law 3. The older monitor stopped before the end of the log, and clients wrote records after the upgrade."""
    check_tables_against_log(upgraded.monitor, upgraded.kafka_reference)
    read = upgraded.monitor.metrics()["rebalance_monitor_records_read_total"].values()
    skipped = upgraded.monitor.metrics()["rebalance_monitor_records_skipped_total"].values()
    assert sum(read) + sum(skipped) == len(upgraded.kafka_reference.records())
    assert len(upgraded.monitor.rows("quarantine")) == 1


def test_the_state_of_groups_that_wrote_nothing_is_unchanged(upgraded: Upgraded) -> None:
    """Their members, generations, verdicts, counters and committed offsets come only from the older checkpoint."""
    old, new = (_of_unchanged_groups(durable_metrics(one)) for one in (upgraded.old_metrics, upgraded.first_metrics))
    assert new == old
    assert all(old.values()), "the fixture has a value for each family"


def test_counters_and_offsets_of_all_groups_are_those_of_the_log(upgraded: Upgraded) -> None:
    """The counters continue with the values of the older monitor. The expected values come from the broker."""
    for group_id in CLASSIC_GROUPS:
        generations = upgraded.kafka_reference.generations(group_id)
        emptied = sum(not has_members for _, has_members in generations[1:])
        total = upgraded.monitor.value("rebalance_monitor_rebalances_total", group=group_id)
        assert total == generations[-1][0] - generations[0][0] - emptied, group_id
    shown = upgraded.monitor.metrics()["kafka_consumergroup_current_offset"]
    for group_id in (*GROUPS, NEW_GROUP):
        committed = {} if group_id == "share" else upgraded.kafka_reference.committed(group_id)
        offsets = {
            (labels["topic"], int(labels["partition"])): offset
            for labels, offset in ((dict(labels), offset) for labels, offset in shown.items())
            if labels["consumergroup"] == group_id
        }
        assert offsets == committed, group_id


def test_a_commit_gap_that_was_open_during_the_upgrade_has_one_row(upgraded: Upgraded) -> None:
    """If the state of a gap lacks what a new column needs, the column is unknown. All other columns are right."""
    old_rows, expected = upgraded.old_rows["commit_gaps"], gaps_of_log(upgraded.kafka_reference, GROUPS)
    until("the same gaps", lambda: gap_rows(upgraded.monitor, GROUPS).keys() == expected.keys())
    read_before = _positions(upgraded.old_rows["group_generations"])
    were_open = 0
    for position, row in gap_rows(upgraded.monitor, GROUPS).items():
        was_read = position in read_before
        unknown = {name: value for name, value in row.items() if was_read and value is None and name not in old_rows[0]}
        assert row == {**expected[position], **unknown}, position
        were_open += was_read and position not in upgraded.old_gaps
    assert were_open, "the fixture has open gaps"


def _positions(rows: Iterable[Row]) -> set[tuple[int, int]]:
    return {(row["offsets_topic_partition"], row["offsets_topic_offset"]) for row in rows}


def _of_unchanged_groups(families: Samples) -> Samples:
    return {
        family: {
            labels: value for labels, value in of_family.items() if not {*LATE_GROUPS} & set(dict(labels).values())
        }
        for family, of_family in families.items()
    }
