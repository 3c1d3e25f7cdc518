"""Defines the table of records that could not be decoded."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    RECORD,
    Table,
    column,
)

QUARANTINE = Table(
    "quarantine",
    "one record that the monitor could not decode. In some cases, the monitor could decode everything except the data"
    " of one member",
    pa.schema(
        [
            *RECORD,
            column("key", pa.binary(), "the original key of the record"),
            column("value", pa.binary(), "the original value of the record"),
            column(
                "reason",
                pa.string(),
                "reason of the decode failure. The label `reason` of rebalance_monitor_records_skipped_total has the"
                " same values",
            ),
            column(
                "field",
                pa.string(),
                "the field at which the decoding stopped. If the field is value.members[...], only the data of this"
                " member are unknown",
            ),
        ]
    ),
)
