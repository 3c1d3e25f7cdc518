"""The events of groups, and the cursor with which a client reads each event exactly once.

EVENT_TYPES contains the types of events and their tables. Each row of a table in EVENT_TYPES is one event, except
repeated rows (`is_repeated`). Rules:

1. The parameter `since` of a request is a cursor, a time, or empty. The *stored* events are the events that the tables
   contain at the first request. If `since` is a time, the first responses contain the stored events since this time. If
   `since` is empty, the first responses contain all stored events. Every response contains the cursor for the next
   request.
2. Within one type, the stored events come first, sorted by time. Events that the monitor writes later follow in the
   order of their commits (`delta.commit_order`). Events in the same commit are sorted by time. The monitor can write an
   event late, after events with a later time. A client that polls with the newest cursor also receives late events.
3. Rule 2 determines the next event of each type. The response continues with the earliest event among the next events
   of all types. So the limit of a response does not change the order of events.
4. A cursor contains one position for each table. If a later version of the monitor adds a table, older cursors contain
   no position for the new table. A client with an older cursor also receives the stored events of the new table.
5. A cursor becomes invalid if the client did not poll for hours, or if a table was deleted and created again. The
   response then has the status 410, and the client must start again with a time. The client can recognise known events,
   because the `id` of an event stays the same.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from hashlib import sha256
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from streaming.delta.tables import GROUP_CONDITIONS, INCIDENTS, LAG_CAUSES, REBALANCES, Table
from streaming.evaluation.rebalances.rebalance_words import describe_rebalance
from streaming.past.moments import parse_moment

Row = Mapping[str, Any]
_PREFIX = "v1."
LATEST_MS = 253_402_300_799_999
"""The last millisecond of the year 9999, which is the latest time of Python's `datetime`."""
Count = Annotated[int, msgspec.Meta(ge=0, le=LATEST_MS)]
KeyValue = str | bool | Annotated[int, msgspec.Meta(ge=-(1 << 62), le=1 << 62)]
Day = Annotated[str, msgspec.Meta(pattern="^([0-9]{4}-[0-9]{2}-[0-9]{2})?$")]


class BadSinceError(ValueError):
    """Error: `since` is neither a cursor nor a time."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """A position in one table. The client has read the first `rows` rows of a day, or of a commit.

    For the stored events, `version` is the table version that contains them, and `day` is the date whose rows the
    client reads. `after` is the key of the last read row of this day (`delta.commit_order`). `after` is empty if no row
    was read, if the key is too long (`event_reader.MAX_KEY_CHARS`), or if an earlier version of the monitor wrote the
    cursor. For later events, `version` is the version of the commit. `day` and `after` are empty.
    """

    table_id: str
    version: Count
    rows: Count
    day: Day = ""
    after: tuple[KeyValue, ...] = ()


class Cursor(msgspec.Struct, frozen=True, array_like=True):
    """The position for each event type. The client reads the stored events since `since_ms`."""

    since_ms: Count
    positions: dict[str, Position]


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event and its table. `text` describes a row in a sentence.

    Stored rows are sorted by the columns in `order`. The first of these columns is the time. Together, the values of
    these columns identify a row. `details` lists the columns in the field `details` of the response. The reader does
    not read the large columns in `unused`.
    """

    name: str
    table: Table
    order: tuple[str, ...]
    details: tuple[str, ...]
    text: Callable[[Row], str]
    unused: frozenset[str] = frozenset()

    @property
    def columns(self) -> Sequence[str]:
        """The names of the columns that the reader reads."""
        return [name for name in self.table.schema.names if name not in self.unused]

    def has_key(self, key: Sequence[KeyValue]) -> bool:
        """Return True if the values have the types of the columns in `order`. The time of a key is in microseconds."""
        columns = [self.table.schema.field(name).type for name in self.order]
        others = [str if pa.types.is_string(one) else bool if pa.types.is_boolean(one) else int for one in columns[1:]]
        return [type(value) for value in key] == [int, *others]


def _condition_text(row: Row) -> str:
    name = row["condition"].replace("_", " ")
    if not row["active"]:
        return f"{name} ended"
    return f"{name} started: {row['detail']}" if row["detail"] else f"{name} started"


def _cause_text(row: Row) -> str:
    if not row["active"]:
        return f"the cause of the lag ended: {row['cause'].replace('_', ' ')}"
    return f"cause of the lag: {row['text']}"


def _incident_text(row: Row) -> str:
    if row["merged_into"] is not None:
        return f"incident {row['incident_id']} is now a part of incident {row['merged_into']}"
    return row["story"][0] if row["active"] else f"incident {row['incident_id']} ended"


EVENT_TYPES = (
    EventType(
        "rebalance",
        REBALANCES,
        ("record_time", "cluster", "offsets_topic_partition", "offsets_topic_offset", "group_id", "kind"),
        (
            "generation_id",
            "kind",
            "primary_cause",
            "causes",
            "members",
            "protocol",
            "moved_partitions",
            "fewest_moves",
            "offsets_topic_partition",
            "offsets_topic_offset",
        ),
        lambda row: describe_rebalance({**row, "commit_gap": None}),
        frozenset(
            {
                "claimed_twice",
                "eager_claimers",
                "subscriptions",
                "rebalances_by_cause_total",
                "moved_partitions_total",
            }
        ),
    ),
    EventType(
        "condition",
        GROUP_CONDITIONS,
        ("sampled_time", "cluster", "group_id", "condition", "active"),
        ("condition", "active", "since_time", "detail"),
        _condition_text,
    ),
    EventType(
        "lag_cause",
        LAG_CAUSES,
        ("sampled_time", "cluster", "group_id", "active", "cause"),
        ("cause", "active", "since_time", "reason", "topic", "partition", "member", "client_id", "client_host"),
        _cause_text,
    ),
    EventType(
        "incident",
        INCIDENTS,
        ("sampled_time", "cluster", "incident_id", "active"),
        (
            "incident_id",
            "active",
            "since_time",
            "end_time",
            "merged_into",
            "cause",
            "runbook_section",
            "groups",
            "group_count",
        ),
        _incident_text,
        frozenset({"links", "evidence"}),
    ),
)
"""All types of events. If you add a type, also add it to API.md."""


@dataclass(frozen=True, slots=True)
class Step:
    """One row of a table, and the position after this row. If `row` is None, the response must end at this position."""

    position: Position
    row: Row | None


@dataclass(frozen=True, slots=True)
class Stream:
    """The next rows of one table, from the position `start`. `end` is the position after the last row."""

    event_type: EventType
    steps: Iterator[Step]
    start: Position
    end: Position


@dataclass(frozen=True, slots=True)
class Poll:
    """Rows in the order of rules 2 and 3, and the positions after them. `has_more` is True if more rows exist now."""

    rows: Sequence[tuple[EventType, Row]]
    positions: Mapping[str, Position]
    has_more: bool


def take(streams: Sequence[Stream], limit: int, is_wanted: Callable[[Row], bool]) -> Poll:
    """Return at most `limit` rows in the order of rule 3. Skip rows for which `is_wanted` returns False."""
    positions = {stream.event_type.name: stream.start for stream in streams}
    heads = {stream.event_type.name: next(stream.steps, None) for stream in streams}
    rows: list[tuple[EventType, Row]] = []
    while waiting := [stream for stream in streams if heads[stream.event_type.name] is not None]:
        steps = [(stream, step) for stream in waiting if (step := heads[stream.event_type.name])]
        if len(rows) == limit or any(step.row is None for _, step in steps):
            break
        stream, step = min(steps, key=lambda one: _time_of(*one))
        name = stream.event_type.name
        if step.row is not None and is_wanted(step.row):
            rows.append((stream.event_type, step.row))
        positions[name], heads[name] = step.position, next(stream.steps, None)
    for stream in streams:
        name, head = stream.event_type.name, heads[stream.event_type.name]
        if head is None:
            positions[name] = stream.end
        elif head.row is None:
            positions[name] = head.position
    return Poll(rows, positions, has_more=any(head is not None for head in heads.values()))


def _time_of(stream: Stream, step: Step) -> datetime:
    time: datetime = (step.row or {})[stream.event_type.order[0]]
    return time


def event_json(event_type: EventType, row: Row) -> dict[str, Any]:
    """Return the JSON object of an event. A column `x_time` becomes the field `x_ms`."""
    key = [event_type.name, *(_plain(row[column]) for column in event_type.order)]
    return {
        "id": sha256(json.dumps(key).encode()).hexdigest()[:16],
        "type": event_type.name,
        "cluster": row["cluster"],
        "group_id": row.get("group_id"),
        "timestamp_ms": _plain(row[event_type.order[0]]),
        "text": event_type.text(row),
        "details": {_field(column): _plain(row[column]) for column in event_type.details},
    }


def _field(column: str) -> str:
    return re.sub("_time$", "_ms", column)


def _plain(value: Any) -> Any:  # noqa: ANN401 - any column
    return round(value.timestamp() * 1000) if isinstance(value, datetime) else value


def encode_cursor(cursor: Cursor) -> str:
    """Return the cursor as text for the parameter `since`."""
    return _PREFIX + urlsafe_b64encode(msgspec.json.encode(cursor)).decode().rstrip("=")


def cursor_of(since: str) -> Cursor:
    """Return the cursor of a request (rule 1). Raises BadSinceError.

    >>> cursor_of("1795300000000").since_ms == cursor_of("2026-11-21T22:26:40Z").since_ms, cursor_of("").since_ms
    (True, 0)
    """
    if not since.startswith(_PREFIX):
        return Cursor(_time_ms(since), {})
    encoded = since.removeprefix(_PREFIX)
    try:
        decoded = b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True)
        return msgspec.json.decode(decoded, type=Cursor)
    except (binascii.Error, ValueError, msgspec.MsgspecError) as error:
        raise BadSinceError("since is not a cursor of this API") from error


def _time_ms(text: str) -> int:
    if not text:
        return 0
    if text.isascii() and text.isdecimal():
        at_ms = parse_moment(text)  # None for a date such as 20261126, which as milliseconds would be a time in 1970
        if at_ms is None:
            raise BadSinceError(f"since is a number, but not a time in milliseconds since 1970: {text}")
        return at_ms
    try:
        time = datetime.fromisoformat(text.removesuffix("Z"))
        milliseconds = round((time if time.tzinfo else time.replace(tzinfo=timezone.utc)).timestamp() * 1000)
        return min(max(0, milliseconds), LATEST_MS)
    except (ValueError, OverflowError) as error:
        raise BadSinceError("since is neither a cursor nor a time in milliseconds or ISO 8601") from error
