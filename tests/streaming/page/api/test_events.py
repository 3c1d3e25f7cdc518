"""Tests of `/api/v1/events`: every row exactly once, in the order of rules 1 to 5 of events.py."""

from __future__ import annotations

import doctest
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import streaming.page.api.events
from streaming.delta.cells import utc
from streaming.delta.on_disk import DeltaTables
from streaming.delta.rows import arrow_table
from streaming.delta.tables import GROUP_CONDITIONS, INCIDENTS, LAG_CAUSES, REBALANCES, Table
from streaming.evaluation.rebalances.rebalances import REBALANCE
from streaming.page.api import event_reader
from streaming.page.api.event_reader import MAX_KEY_CHARS, EventReader
from streaming.page.application import Pages
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, NOW_MS
from tests.streaming.page.test_application import Answer, ask, cluster_view

DAY_MS = 86_400_000
OTHER = "other"
LONG_NAMES = ["グ" * MAX_KEY_CHARS + end for end in "ab"]
"""Kafka limits a group id only by the size of a request."""


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.api.events).failed == 0


def _row(table: Table, number: int, time_ms: int, cluster: str = CLUSTER) -> dict[str, Any]:
    """Return the row of an event. The id of its group or incident contains its number, so the test recognises it."""
    row: dict[str, Any] = dict.fromkeys(table.schema.names)
    row |= {"cluster": cluster, "date": utc(time_ms).date(), _id_column(table): f"g{number:03}"}
    if table is REBALANCES:
        row |= {"record_time": utc(time_ms), "offsets_topic_partition": 0, "offsets_topic_offset": number}
        return row | {"kind": REBALANCE, "causes": [], "changes": [], "members": 1}
    row |= {"sampled_time": utc(time_ms), "active": True, "since_time": utc(time_ms)}
    others: dict[str, dict[str, Any]] = {
        GROUP_CONDITIONS.name: {"condition": "rebalance_storm", "detail": "why"},
        LAG_CAUSES.name: {"cause": "stopped", "reason": "", "text": "why"},
        INCIDENTS.name: {"cause": "stopped", "story": ["why"], "links": [], "groups": ["g"], "evidence": []},
    }
    return row | others[table.name]


def _id_column(table: Table) -> str:
    return "incident_id" if table is INCIDENTS else "group_id"


def _id(event: dict[str, Any]) -> str:
    return str(event["group_id"] or event["details"]["incident_id"])


@dataclass
class History:
    """Tables to which a monitor writes. `committed` has the group ids of each table in the order of the commits."""

    root: Path
    committed: dict[str, list[str]] = field(default_factory=dict)
    _rows: int = 0

    def __post_init__(self) -> None:
        """Create the tables."""
        self.tables = DeltaTables(str(self.root), versions_kept_hours=2)
        self.tables.open_all()

    def write(self, table: Table, times_ms: Sequence[int], cluster: str = CLUSTER) -> None:
        """Append rows with these times in one commit."""
        rows = [_row(table, self._rows + at, time_ms, cluster) for at, time_ms in enumerate(times_ms)]
        self._rows += len(rows)
        self.tables.append(table, arrow_table(table, rows))
        if cluster == CLUSTER:
            self.committed.setdefault(table.name, []).extend(
                row[_id_column(table)]
                for row in sorted(rows, key=lambda row: row.get("record_time") or row["sampled_time"])
            )

    def tidy(self) -> None:
        """Compact small files, as the maintenance of the monitor does."""
        self.tables.tidy(date(2000, 1, 1))

    def pages(self) -> Pages:
        """Return the pages of the monitor that writes the tables."""
        return Pages([cluster_view(CLUSTER, MonitorState(), self.root)], (), None, EventReader(str(self.root)))

    def ask(self, since: str = "", limit: int | str = 100) -> Answer:
        """Request events."""
        return ask(self.pages(), f"/api/v1/events?since={since}&limit={limit}")


def _poll_all(history: History, since: str = "", limit: int = 100) -> tuple[list[dict[str, Any]], str]:
    """Poll until there are no more events. Return the events and the last cursor."""
    events: list[dict[str, Any]] = []
    while True:
        document = history.ask(since, limit).json()
        events, since = events + document["events"], document["next"]
        if not document["has_more"]:
            return events, since


_TABLES = {"rebalance": REBALANCES, "condition": GROUP_CONDITIONS, "lag_cause": LAG_CAUSES, "incident": INCIDENTS}
_ACTIONS = st.one_of(
    st.tuples(
        st.sampled_from([*_TABLES]),
        st.lists(st.integers(-2 * DAY_MS, DAY_MS).map(lambda late: NOW_MS + late), min_size=1, max_size=4),
        st.sampled_from([CLUSTER, CLUSTER, OTHER]),
    ),
    st.integers(1, 7),
    st.just("tidy"),
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(_ACTIONS, max_size=14), st.integers(1, 5))
def test_a_client_that_polls_with_the_last_cursor_gets_each_row_once_in_the_order_of_the_commits(
    tmp_path_factory: pytest.TempPathFactory, actions: list[Any], last_limit: int
) -> None:
    """Rules 1 and 2: rows arrive late, with older times, between polls of any size; files are compacted meanwhile."""
    history = History(tmp_path_factory.mktemp("tables"))
    since, events = history.ask().json()["next"], list[dict[str, Any]]()
    for action in actions:
        if isinstance(action, int):
            document = history.ask(since, action).json()
            assert len(document["events"]) <= action
            events, since = events + document["events"], document["next"]
        elif action == "tidy":
            history.tidy()
        else:
            history.write(_TABLES[action[0]], action[1], action[2])
    events += _poll_all(history, since, last_limit)[0]
    for kind, table in _TABLES.items():
        assert [_id(event) for event in events if event["type"] == kind] == history.committed.get(table.name, [])
    assert len({event["id"] for event in events}) == len(events)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.sampled_from(sorted(_TABLES)), st.integers(0, 3 * DAY_MS)), max_size=12), st.integers(1, 4)
)
def test_stored_events_come_sorted_by_time_and_their_order_does_not_depend_on_the_limit(
    tmp_path_factory: pytest.TempPathFactory, written: list[tuple[str, int]], limit: int
) -> None:
    """Rules 2 and 3: a client that starts later reads the stored events of all types, the oldest first."""
    history = History(tmp_path_factory.mktemp("tables"))
    for kind, late_ms in written:
        history.write(_TABLES[kind], [NOW_MS + late_ms])
    at_once, _ = _poll_all(history, limit=1_000)
    assert [event["timestamp_ms"] for event in at_once] == sorted(NOW_MS + late_ms for _, late_ms in written)
    assert _poll_all(history, limit=limit)[0] == at_once
    since = NOW_MS + DAY_MS
    later = [event for event in at_once if event["timestamp_ms"] >= since]
    assert _poll_all(history, str(since), limit)[0] == later


def test_rows_that_come_while_a_client_reads_the_stored_events_come_after_them(tmp_path: Path) -> None:
    """The snapshot of the first request stays the same, although the files of the tables change."""
    history = History(tmp_path)
    history.write(REBALANCES, [NOW_MS + number for number in range(5)])
    first = history.ask(limit=2).json()
    history.write(REBALANCES, [NOW_MS - DAY_MS])
    history.tidy()
    rest, _ = _poll_all(history, first["next"], 2)
    assert [event["group_id"] for event in first["events"] + rest] == ["g000", "g001", "g002", "g003", "g004", "g005"]


def test_many_waiting_commits_are_read_in_several_requests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request must not occupy a worker of the port for minutes, even if all events belong to other clusters."""
    monkeypatch.setattr(event_reader, "MAX_COMMITS", 2)
    history = History(tmp_path)
    since = history.ask().json()["next"]
    for number in range(5):
        history.write(REBALANCES, [NOW_MS + number], OTHER)
    history.write(REBALANCES, [NOW_MS])
    document = history.ask(since).json()
    assert (document["events"], document["has_more"]) == ([], True)
    assert [event["group_id"] for event in _poll_all(history, document["next"])[0]] == ["g005"]


def test_a_request_passes_over_a_limited_number_of_rows_of_other_clusters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A busy cluster has 120,000 rows. A request for the quiet cluster read all of them, for eight seconds."""
    monkeypatch.setattr(event_reader, "MAX_ROWS", 5)
    monkeypatch.setattr(event_reader, "_FIRST_ROWS", 2)
    history = History(tmp_path)
    history.write(GROUP_CONDITIONS, [NOW_MS + number for number in range(12)], OTHER)
    history.write(GROUP_CONDITIONS, [NOW_MS + 100])
    reader, cursor, read = EventReader(str(tmp_path)), "", []
    for stored in (True, False):
        more = []
        while True:
            response = reader.read(cursor, 10, {CLUSTER})
            cursor = response["next"]
            more.append((len(response["events"]), response["has_more"]))
            if not response["has_more"]:
                break
        read.append(more)
        if stored:
            history.write(GROUP_CONDITIONS, [NOW_MS + 200 + number for number in range(7)], OTHER)
            history.write(GROUP_CONDITIONS, [NOW_MS + 300])
    assert read == [[(0, True), (0, True), (1, False)], [(0, True), (1, False)]]


def _log_entries(table: Path) -> list[Path]:
    return sorted((table / "_delta_log").glob("*.json"))


def test_a_cursor_that_is_older_than_the_log_of_the_table_is_gone(tmp_path: Path) -> None:
    """Rule 5: the client starts again with a time, and recognises the events that it has by their ids."""
    history = History(tmp_path)
    _, since = _poll_all(history)
    for number in range(3):
        history.write(REBALANCES, [NOW_MS + number])
    DeltaTable(str(tmp_path / "rebalances")).create_checkpoint()
    _log_entries(tmp_path / "rebalances")[1].unlink()  # the monitor deletes entries that a checkpoint replaces
    answer = history.ask(since)
    assert answer.status == "410 Gone"
    assert "use a time as `since`" in answer.json()["error"]


@pytest.mark.parametrize(("is_deleted", "status"), [(True, "410 Gone"), (False, "503 Service Unavailable")])
def test_a_file_that_cannot_be_read_now_does_not_make_the_cursor_too_old(
    tmp_path: Path, status: str, *, is_deleted: bool
) -> None:
    """After an error of the storage, a client started again with a time, although its cursor was valid."""
    history = History(tmp_path)
    history.write(REBALANCES, [NOW_MS])
    (file,) = (tmp_path / "rebalances").rglob("*.parquet")
    if is_deleted:
        file.unlink()
    else:
        file.write_bytes(b"damaged" * 20)
    assert history.ask("").status == status


def _changed(since: str, change: Callable[[list[Any]], None]) -> str:
    """Return the cursor with a change of its position in the table of conditions."""
    decoded = json.loads(urlsafe_b64decode(since.removeprefix("v1.") + "=="))
    change(decoded[1]["condition"])
    return "v1." + urlsafe_b64encode(json.dumps(decoded).encode()).decode().rstrip("=")


def test_stored_events_continue_after_any_group_id_and_after_a_cursor_of_an_earlier_version(tmp_path: Path) -> None:
    """The cursor contains the key of the last row. Cursors of earlier versions contain only the number of rows."""
    history, names = History(tmp_path), sorted(["it's", "' OR '1'='1", "g\\", "グ", "a;b", "", *LONG_NAMES])
    rows = [_row(GROUP_CONDITIONS, 0, NOW_MS) | {"group_id": name} for name in names]
    history.tables.append(GROUP_CONDITIONS, arrow_table(GROUP_CONDITIONS, rows))
    for forget in (False, True):
        since, found = "", []
        for _ in names:
            document = history.ask(since, 1).json()
            found += [event["group_id"] for event in document["events"]]
            since = document["next"]
            assert len(since) < 2 * MAX_KEY_CHARS, "the next request fits into the limit of the port"
            since = _changed(since, lambda one: one.pop()) if forget else since
        assert found == sorted(names, key=str.encode)
        assert history.ask(since).json()["events"] == []


@pytest.mark.parametrize(
    "key", [["x"], [1, 2, 3, 4, 5], ["1", "c", "g", "n", True], [1, "c", "g", "n", 1], [2**63] * 5]
)
def test_a_cursor_with_an_invalid_key_is_a_bad_request(tmp_path: Path, key: list[Any]) -> None:
    """The key becomes a part of a query, so its values must have the types of the columns."""
    history = History(tmp_path)
    history.write(GROUP_CONDITIONS, [NOW_MS, NOW_MS])
    since = _changed(history.ask("", 1).json()["next"], lambda one: one.__setitem__(-1, key))
    assert history.ask(since).status == "400 Bad Request"


def test_a_table_that_was_created_again_makes_its_cursors_invalid(tmp_path: Path) -> None:
    """Versions of the new table count from 0 again. The old cursor would leave out its first events."""
    history = History(tmp_path / "old")
    _, since = _poll_all(history)
    assert History(tmp_path / "new").ask(since).status == "410 Gone"


@pytest.mark.parametrize(
    "since",
    [
        "x",
        "v1.",
        "v1.!!!",
        "v1.bnVsbA",
        "v1.WzEse31d%00",
        "2026-13-01",
        "20261126",
        "999999999999999",
        "0",
        "-1",
        "1e9",
        "%ed%a0%80",
        "v1.WzAseyJyIjpbIiIsLTEsMF19XQ",
    ],
)
def test_an_invalid_cursor_is_a_bad_request(tmp_path: Path, since: str) -> None:
    answer = History(tmp_path).ask(since)
    assert (answer.status, list(answer.json())) == ("400 Bad Request", ["error"])


@pytest.mark.parametrize(
    ("since", "events"),
    [
        (str(NOW_MS), 1),
        (str(NOW_MS + 1), 0),
        ("99999999999999999999", None),
        ("100000000000", 1),
        (datetime.fromtimestamp(NOW_MS / 1000, timezone.utc).isoformat().replace("+00:00", "Z"), 1),
        ((datetime.fromtimestamp(NOW_MS / 1000, timezone.utc) + timedelta(seconds=1)).date().isoformat(), 1),
        ("9999-12-31", 0),
        ("9999-12-31T23:59:59-23:59", 0),  # in UTC, this is a time of the year 10000
        ("0001-01-01", 1),
    ],
)
def test_since_can_be_a_time(tmp_path: Path, since: str, events: int | None) -> None:
    """A number that is too large or too small is an error. The date 20261126 was read as a time in 1970."""
    history = History(tmp_path)
    history.write(LAG_CAUSES, [NOW_MS])
    answer = history.ask(since)
    assert len(answer.json()["events"]) == events if events is not None else answer.status == "400 Bad Request"


def test_an_event_describes_the_row_in_a_sentence(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.write(GROUP_CONDITIONS, [NOW_MS])
    (event,) = history.ask().json()["events"]
    assert {name: event[name] for name in ("type", "cluster", "group_id", "timestamp_ms", "text", "details")} == {
        "type": "condition",
        "cluster": CLUSTER,
        "group_id": "g000",
        "timestamp_ms": NOW_MS,
        "text": "rebalance storm started: why",
        "details": {"condition": "rebalance_storm", "active": True, "since_ms": NOW_MS, "detail": "why"},
    }


def test_the_evidence_of_incidents_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request built up to 5,000 rows with 500 facts each. Both stored and new events must leave them out."""
    history, rows = History(tmp_path), list[Any]()
    as_event = event_reader.event_json
    monkeypatch.setattr(event_reader, "event_json", lambda kind, row: rows.append(row) or as_event(kind, row))
    history.write(INCIDENTS, [NOW_MS])
    cursor = history.ask().json()["next"]
    history.write(INCIDENTS, [NOW_MS + 1])
    assert len(history.ask(cursor).json()["events"]) == 1
    assert len(rows) == 2
    assert not any({"evidence", "links"} & row.keys() for row in rows)


def test_an_incident_event_has_no_group_but_all_its_groups(tmp_path: Path) -> None:
    """One incident can affect forty groups."""
    history = History(tmp_path)
    history.write(INCIDENTS, [NOW_MS])
    (event,) = history.ask().json()["events"]
    assert (event["type"], event["group_id"], event["text"]) == ("incident", None, "why")
    assert (event["details"]["incident_id"], event["details"]["groups"]) == ("g000", ["g"])


@pytest.mark.parametrize("table", [INCIDENTS, GROUP_CONDITIONS, LAG_CAUSES], ids=lambda table: table.name)
def test_a_repeated_row_is_no_event(tmp_path: Path, table: Table) -> None:
    """An incident is open for days. Nothing changes, but each date has a row."""
    history = History(tmp_path)
    rows = [_row(table, 0, time_ms) | {"is_repeated": time_ms > NOW_MS} for time_ms in (NOW_MS, NOW_MS + DAY_MS)]
    history.tables.append(table, arrow_table(table, rows))
    (event,) = history.ask().json()["events"]
    assert event["timestamp_ms"] == NOW_MS


def test_without_tables_the_monitor_cannot_answer(tmp_path: Path) -> None:
    pages = Pages([cluster_view(CLUSTER, MonitorState(), tmp_path)], (), None, EventReader(str(tmp_path)))
    assert ask(pages, "/api/v1/events").status == "503 Service Unavailable"
    assert ask(pages, "/api/v1/events?cluster=no-such").status == "404 Not Found"


@pytest.mark.parametrize("first_rows", [1, 2, 1_000], ids=["a query ends at the tombstone", "later", "one query"])
def test_the_tombstone_of_an_upgrade_is_no_event(
    tmp_path: Path, first_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An online upgrade to KIP-848 writes a tombstone and the new group. The event of the tombstone said "deleted"."""
    monkeypatch.setattr(event_reader, "_FIRST_ROWS", first_rows)
    history = History(tmp_path)
    rows = [{**_row(REBALANCES, at, NOW_MS), "group_id": name} for at, name in enumerate(["up", "up", "gone"])]
    changed = [{**row, "kind": kind} for row, kind in zip(rows, ["deleted", "upgraded", "deleted"], strict=True)]
    history.tables.append(REBALANCES, arrow_table(REBALANCES, changed))
    stored, cursor = _poll_all(history)
    history.tables.append(REBALANCES, arrow_table(REBALANCES, changed))
    committed, _ = _poll_all(history, cursor)
    for events in (stored, committed):
        assert [(one["group_id"], one["details"]["kind"]) for one in events] == [
            ("up", "upgraded"),
            ("gone", "deleted"),
        ]
