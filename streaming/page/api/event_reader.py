"""Reads the events for one response from the tables (`events`).

A request reads at most `MAX_COMMITS` commits and `MAX_ROWS` rows of each table. Rows of clusters that the request does
not select also count. If more rows exist, `has_more` is true. The client requests the remaining rows with the next
cursor.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from streaming.delta.cells import utc
from streaming.delta.commit_order import CommittedTable, GoneError, Key, row_key
from streaming.delta.stored_table import NoTableError
from streaming.delta.tables import REBALANCES
from streaming.evaluation.rebalances.rebalance_words import upgrade_tombstones
from streaming.page.api.events import (
    EVENT_TYPES,
    BadSinceError,
    Cursor,
    EventType,
    Position,
    Step,
    Stream,
    cursor_of,
    encode_cursor,
    event_json,
    take,
)

MAX_COMMITS = 500
MAX_ROWS = 5_000
_FIRST_ROWS = 1_000
"""Number of rows in the first query of a request.

Most requests need only the first query, and not the second query with the other rows.
"""
MAX_KEY_CHARS = 1_000
"""If a key is longer, the cursor contains only a row number, because the port limits the size of a request."""


class EventReader:
    """Reads events from the tables in the folder `root`."""

    def __init__(self, root: str) -> None:
        self._root = root

    def read(self, since: str, limit: int, clusters: Collection[str]) -> dict[str, Any]:
        """Return the document of a response with the events of these clusters.

        Raises BadSinceError, GoneError, NoTableError and TableReadError.
        """
        cursor = cursor_of(since)
        tables = [(kind, table) for kind in EVENT_TYPES if (table := self._open(kind)) is not None]
        if not tables:
            raise NoTableError("the tables do not exist yet")
        streams = [_stream(kind, table, cursor) for kind, table in tables]
        poll = take(streams, limit, lambda row: row["cluster"] in clusters and not row.get("is_repeated"))
        return {
            "events": [event_json(kind, row) for kind, row in poll.rows],
            "next": encode_cursor(Cursor(cursor.since_ms, {**cursor.positions, **poll.positions})),
            "has_more": poll.has_more,
        }

    def _open(self, kind: EventType) -> CommittedTable | None:
        """Return the table, or None if it does not exist, for example because an earlier version did not write it."""
        try:
            return CommittedTable(self._root, kind.table, kind.columns)
        except NoTableError:
            return None


def _stream(kind: EventType, table: CommittedTable, cursor: Cursor) -> Stream:
    first_day = utc(cursor.since_ms).date().isoformat()
    start = cursor.positions.get(kind.name) or Position(table.table_id, table.version, 0, first_day)
    if start.table_id != table.table_id or start.version > table.version + 1:
        raise GoneError("the table was created again")
    if start.after and not kind.has_key(start.after):
        raise BadSinceError("since is not a cursor of this API")
    end = Position(table.table_id, table.version + 1, 0)
    return Stream(kind, _bounded(_steps(kind, table, start, cursor.since_ms)), start, end)


def _bounded(steps: Iterator[Step]) -> Iterator[Step]:
    """Yield at most `MAX_ROWS` steps. At this limit, yield one more step, without a row, to end the response."""
    for number, step in enumerate(steps, start=1):
        yield step
        if number == MAX_ROWS:
            yield Step(step.position, None)
            return


def _steps(kind: EventType, table: CommittedTable, start: Position, since_ms: int) -> Iterator[Step]:
    first, skipped = start.version, start.rows
    if start.day:
        yield from _snapshot_steps(kind, table, start, since_ms)
        first, skipped = start.version + 1, 0
    for version in range(first, table.version + 1):
        if version - first >= MAX_COMMITS:
            yield Step(Position(table.table_id, version, 0), None)
            return
        rows = table.committed_rows(version, kind.order)
        hidden = _hidden(kind, rows)
        for index in range(skipped, len(rows)):
            if index not in hidden:
                yield Step(Position(table.table_id, version, index + 1), rows[index])
        skipped = 0


def _hidden(kind: EventType, rows: Sequence[Mapping[str, Any]]) -> Collection[int]:
    """Return the indexes of rows that are no events: an upgrade writes a tombstone, but the group was not deleted.

    The upgrade writes both records together, so both rows are usually in the same commit. If the second row comes with
    a later commit, the tombstone is an event.
    """
    return upgrade_tombstones(rows) if kind.table is REBALANCES else ()


def _snapshot_steps(kind: EventType, table: CommittedTable, start: Position, since_ms: int) -> Iterator[Step]:
    for day in table.days(start.version, start.day):
        number = start.rows if day == start.day else 0
        place: Key | int = (start.after if day == start.day else ()) or number
        limit = _FIRST_ROWS
        while rows := table.snapshot_rows(start.version, day, since_ms, kind.order, place, limit + 1):
            hidden = _hidden(kind, rows)  # the additional row shows whether the last row belongs to an upgrade
            for index, row in enumerate(rows[:limit]):
                number += 1
                place = row_key(row, kind.order)
                if index in hidden:
                    continue
                after = place if len(str(place)) <= MAX_KEY_CHARS else ()
                yield Step(Position(table.table_id, start.version, number, day, after), row)
            if len(rows) <= limit:
                break
            limit = max(1, MAX_ROWS - _FIRST_ROWS)
