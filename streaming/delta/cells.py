"""What rows of all tables share: times, and the cells of the record a row stems from."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

from streaming.events import Position

Row = dict[str, Any]

LAST_MS = 253_402_300_799_000
"""The last second of the year 9999, beyond which neither Python nor SQL has a calendar."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


def utc(timestamp_ms: int) -> datetime:
    """Kafka's milliseconds as a time in UTC; times beyond the calendar (hostile records) at its nearest end."""
    return _EPOCH + timedelta(milliseconds=min(max(timestamp_ms, 0), LAST_MS))


def timestamp_ms(time: datetime) -> int:
    """A time in UTC as Kafka's milliseconds: the other way round."""
    return (time - _EPOCH) // timedelta(milliseconds=1)


def record_cells(cluster: str, position: Position) -> Row:
    """The key of a row that stems from a record."""
    record_time = utc(position.timestamp_ms)
    return {
        "cluster": cluster,
        "date": record_time.date(),
        "offsets_topic_partition": position.offsets_topic_partition,
        "offsets_topic_offset": position.offsets_topic_offset,
        "record_time": record_time,
    }
