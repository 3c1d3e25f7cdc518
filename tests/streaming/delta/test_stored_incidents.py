"""Tests of reading incidents: only the needed dates and columns are read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path

import pytest
from deltalake import DeltaTable

from streaming.delta.cells import utc
from streaming.delta.incident_rows import incident_row
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table
from streaming.delta.stored import OPEN_DATES, find_incident_row, incident_summaries, open_incidents
from streaming.delta.stored_table import StoredTable
from streaming.delta.tables import INCIDENTS
from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.incidents.incident import Incident, make_incident_id
from streaming.evaluation.incidents.story import story
from streaming.page.rendering import utc_text
from tests.streaming.delta.test_delta import open_tables

CLUSTER, DAY_MS, LAST_MS = "prod", 86_400_000, 1_795_300_000_000
DATES = OPEN_DATES + 3


def day_of(days_ago: int) -> date:
    return utc(LAST_MS).date() - timedelta(days=days_ago)


def incident_of(group_id: str, days_ago: int, *, is_open: bool = False) -> Incident:
    since_ms = LAST_MS - days_ago * DAY_MS
    fact = Evidence("condition", "rebalance_storm", group_id, "storm", since_ms, None if is_open else since_ms + 1)
    end_ms = None if is_open else since_ms + 1
    return Incident(make_incident_id(CLUSTER, fact), CLUSTER, since_ms, (fact,), (group_id,), (), end_ms, end_ms)


def append(tables: DeltaTables, one: Incident, days_ago: int) -> None:
    row = incident_row(LAST_MS - days_ago * DAY_MS, one, story(one, utc_text))
    tables.append(INCIDENTS, arrow_table(INCIDENTS, [row]))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder of tables: one ended incident on each date, and one incident that is open since the first."""
    tables = open_tables(tmp_path)
    for days_ago in reversed(range(DATES)):
        append(tables, incident_of("open", DATES - 1, is_open=True), days_ago)
        append(tables, incident_of(f"ended-{days_ago}", days_ago), days_ago)
    return tmp_path


def delete_files(root: Path, dates: Sequence[date]) -> None:
    """Delete the files of these dates. A query that reads one of them raises an error."""
    path = root / INCIDENTS.name
    files = DeltaTable(str(path)).file_uris()
    of_dates = [Path(one) for one in files if any(f"date={day}" in one for day in dates)]
    assert len(of_dates) == 2 * len(dates)
    for file in of_dates:
        file.unlink()


def test_a_start_reads_open_incidents_only_from_the_last_dates(root: Path) -> None:
    """A start read all rows of 30 days, although an open incident has a row on each date."""
    delete_files(root, [day_of(days_ago) for days_ago in range(OPEN_DATES, DATES)])
    (row,) = open_incidents(str(root), CLUSTER)
    assert (row["groups"], row["sampled_time"], len(row["evidence"])) == (["open"], utc(LAST_MS), 1)
    assert open_incidents(str(root), "other") == []


def test_an_incident_of_the_last_dates_is_found_without_reading_older_dates(root: Path) -> None:
    """An address with twelve hexadecimal digits read all rows of 30 days."""
    recent = [day_of(days_ago) for days_ago in range(3)]
    old, new = incident_of("ended-9", 9), incident_of("ended-1", 1)
    found = find_incident_row(str(root), CLUSTER, old.incident_id, recent)
    assert found is not None
    assert found["groups"] == ["ended-9"], "an old incident is still found"
    assert find_incident_row(str(root), CLUSTER, "0" * 12, recent) is None
    delete_files(root, [day_of(days_ago) for days_ago in range(3, DATES)])
    found = find_incident_row(str(root), CLUSTER, new.incident_id, recent)
    assert found is not None
    assert len(found["evidence"]) == 1


def test_a_list_of_incidents_reads_no_evidence(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The list shows one line per incident, but its query built up to 500 facts for each."""
    columns, query = list[str](), StoredTable.query

    def recording(stored: StoredTable, sql: str) -> object:
        result = query(stored, sql)
        columns.extend(result.column_names)
        return result

    monkeypatch.setattr(StoredTable, "query", recording)
    rows = incident_summaries(str(root), CLUSTER, [day_of(0), day_of(1)])
    assert sorted(row["groups"][0] for row in rows) == ["ended-0", "ended-1", "open"]
    assert "story" in columns
    assert "evidence" not in columns
