"""Tables of what every sample says of committed partitions."""

from __future__ import annotations

import pyarrow as pa

from streaming.delta.tables.columns import (
    SAMPLED_PARTITION,
    TIME,
    Table,
    column,
)

GROUP_LAG = Table(
    "group_lag",
    "one committed partition of one group at one sample; written when something changed since the last",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column("committed_offset", pa.int64(), "next offset the group will read"),
            column("commit_time", TIME, "the coordinator's time on that commit"),
            column("end_offset", pa.int64(), "end of the partition; null where it could not be sampled"),
            column("log_start_offset", pa.int64(), "start of the partition; null where it could not be sampled"),
            column(
                "lag",
                pa.int64(),
                "end_offset - committed_offset, without offsets before the next record; null where unknown",
            ),
            column(
                "unknown_reason",
                pa.string(),
                "why lag is unknown: held_back, topic_deleted, partition_deleted, no_end_offset, end_before_commit,"
                " maybe_only_markers",
            ),
            column("lag_seconds", pa.float64(), "how long ago the next record to be read was written, in seconds"),
            column("lag_seconds_kind", pa.string(), "exact, at_least (older than all samples kept) or unknown"),
            column("within_seconds", pa.float64(), "how far off lag_seconds can be, in seconds; null unless exact"),
        ]
    ),
)

PARTITION_STATUS = Table(
    "partition_status",
    "the status of one committed partition of one group as of one sample; written when it changed",
    pa.schema(
        [
            *SAMPLED_PARTITION,
            column("status", pa.string(), "OK, WARN, STOP, STALL or REWIND, by the last ten commits; null if unknown"),
            column(
                "status_rule",
                pa.int8(),
                "number of the rule that gives the status, or the reason why it is unknown: 8 blocked by an open"
                " transaction, 9 maybe only transaction markers left (evaluation/lag/status.py)",
            ),
            column("completeness", pa.float64(), "share of the ten commits that are known, 0 to 1"),
            column("committed_offset", pa.int64(), "next offset the group will read"),
            column("lag", pa.int64(), "records the group has yet to commit; null where unknown"),
            column("records_lost", pa.int64(), "offsets that retention took before the group committed them"),
            column("lost_since_time", TIME, "since when; null where nothing is lost"),
            column("lost_since_kind", pa.string(), "exact, or at_least: it was lost before the oldest sample kept"),
            column("seconds_until_lost", pa.float64(), "time until retention takes more, at its present rate"),
            column("seconds_until_lost_kind", pa.string(), "estimate or at_least"),
        ]
    ),
)
