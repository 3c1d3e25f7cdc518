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
    "one record that the monitor could not decode, either completely or for one member",
    pa.schema(
        [
            *RECORD,
            column("key", pa.binary(), "the record's key, unchanged"),
            column("value", pa.binary(), "the record's value, unchanged"),
            column(
                "reason",
                pa.string(),
                "reason of the decode failure, as in the label `reason` of rebalance_monitor_records_skipped_total",
            ),
            column(
                "field",
                pa.string(),
                "the field where decoding stopped; if it is value.members[...], only this member is unknown",
            ),
        ]
    ),
)
