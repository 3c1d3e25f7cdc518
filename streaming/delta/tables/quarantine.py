"""The table of what nobody could read."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    RECORD,
    Table,
    column,
)

QUARANTINE = Table(
    "quarantine",
    "one record of which something could not be decoded: all of it, or the bytes of one member",
    pa.schema(
        [
            *RECORD,
            column("key", pa.binary(), "the record's key, as it is"),
            column("value", pa.binary(), "the record's value, as it is"),
            column("reason", pa.string(), "what was wrong, the same word as in the metric's label"),
            column(
                "field",
                pa.string(),
                "the field at which reading ended; value.members[...]: only that member is unknown",
            ),
        ]
    ),
)
