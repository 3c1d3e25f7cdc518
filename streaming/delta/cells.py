"""Makes table cells for times and for the position of a record."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from streaming.events import Position

Row = dict[str, Any]

LAST_MS = 253_402_300_799_000
"""The last second of the year 9999, in milliseconds since 1970. Python and SQL do not support later times."""

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def utc(timestamp_ms: int) -> datetime:
    """Convert Kafka's milliseconds since 1970 to a time in UTC, limited to the years 1970 to 9999.

    Hostile clients can write other times.
    """
    return EPOCH + timedelta(milliseconds=min(max(timestamp_ms, 0), LAST_MS))


def timestamp_ms(time: datetime) -> int:
    """Convert a time in UTC to Kafka's milliseconds since 1970."""
    return (time - EPOCH) // timedelta(milliseconds=1)


def record_cells(cluster: str, position: Position) -> Row:
    """Return the cells that identify the record of a table row."""
    record_time = utc(position.timestamp_ms)
    return {
        "cluster": cluster,
        "date": record_time.date(),
        "offsets_topic_partition": position.offsets_topic_partition,
        "offsets_topic_offset": position.offsets_topic_offset,
        "record_time": record_time,
    }
