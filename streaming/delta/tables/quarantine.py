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
    " of one member. If a batch has many such records, a row can describe several records (column records)",
    pa.schema(
        [
            *RECORD,
            column("key", pa.binary(), "the original key of the record, at most the first 16 KiB"),
            column("value", pa.binary(), "the original value of the record, at most the first 16 KiB"),
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
            column("key_bytes", pa.int64(), "size of the original key in bytes. If it is larger than key, key is cut"),
            column(
                "value_bytes",
                pa.int64(),
                "size of the original value in bytes. If it is larger than value, value is cut",
            ),
            column(
                "records",
                pa.int64(),
                "number of records that the row describes, normally 1. If a batch has more than 1 MiB of such records"
                " in one partition, one row without key and value describes all further records with the same reason."
                " Its offsets_topic_offset is the offset of the last of these records",
            ),
            column("first_offset", pa.int64(), "offset of the first record that the row describes"),
        ]
    ),
)
