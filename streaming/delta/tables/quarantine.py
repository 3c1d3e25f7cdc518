"""Defines the table of records that could not be decoded."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import RECORD, Table, column, int64, text

QUARANTINE = Table(
    "quarantine",
    "one record that the monitor could not decode. If a batch has many undecodable records, one row can describe"
    " several records (see `records`)",
    pa.schema(
        [
            *RECORD,
            column("key", pa.binary(), "key of the record, at most its first 16 KiB"),
            column("value", pa.binary(), "value of the record, at most its first 16 KiB"),
            text(
                "reason",
                "reason why the record could not be decoded. The values are the same as in the label `reason` of"
                " `rebalance_monitor_records_skipped_total`",
            ),
            text(
                "field",
                "field that could not be decoded. The value `value.members[...]` means that the data of one member"
                " could not be decoded. The monitor decoded the rest of the record",
            ),
            int64("key_bytes", "size of the complete key of the record, in bytes"),
            int64("value_bytes", "size of the complete value of the record, in bytes"),
            int64(
                "records",
                "number of records that the row describes, normally 1. In each batch, at most 1 MiB of the undecodable"
                " records of each `__consumer_offsets` partition have their own rows. All later records with the same"
                " reason share one row. The shared row contains no key, no value and no field. In a shared row,"
                " `offsets_topic_offset` is the offset of the last record",
            ),
            int64("first_offset", "offset of the first record that the row describes"),
        ]
    ),
)
