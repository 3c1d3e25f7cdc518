"""Find the time at which the brokers may delete the committed offsets of a group without members.

The brokers keep a committed offset for `offsets.retention.minutes`, counted from its *start*. Rules:

1. While a group has members, the offsets of its subscribed topics do not expire. So the expiry time of these offsets is
   null.
2. For a classic group with a protocol type, the start is the time when the group became Empty
   (`currentStateTimestamp`). If the record has no `currentStateTimestamp` (before version 2), rule 3 applies.
3. In a KIP-848 group, a streams group, or a group that only commits, each committed offset has its own start, the time
   of its commit.
4. The expiry time is unknown if no broker returned `offsets.retention.minutes`, or if the state of the group is
   unknown. If a listing shows a state other than Empty, the expiry time is also unknown. In the polling mode, the
   expiry time is always unknown, because coordinators do not return the starts.
5. New commits for an Empty group do not change the start of rule 2. So a client that commits offsets for a group
   without members cannot delay the expiry.

The brokers delete expired offsets once per `offsets.retention.check.interval.ms` (default: 10 minutes). So an offset is
deleted up to one interval after its expiry time.

Limit: a commit record of version 1 contains an expiry time. The brokers then use this time instead of rules 2 and 3,
but rule 1 still applies. The monitor does not read the expiry time in such records, because no commit in the monitor's
state contains it. The brokers write records of version 1 only for OffsetCommit requests of version 2 to 4 that contain
a retention time.

Source: KIP-211, Kafka `OffsetMetadataManager.cleanupExpiredOffsets`, `OffsetExpirationConditionImpl`, and
`offsetExpirationCondition` of `ClassicGroup`, `ConsumerGroup` and `StreamsGroup`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streaming.group.listing import GroupListing
from streaming.group.snapshot import EMPTY, GroupSnapshot

EACH_COMMIT: Final = None
"""Each committed offset has its own start, the time of its commit (rule 3)."""

Starts = Mapping[str, int | None]
"""The start by group id: the time when the group became Empty, or EACH_COMMIT.

Groups of rules 1 and 4 are absent.
"""

EXPIRY_SCHEMA = pa.schema([("offsets_expire_ms", pa.int64()), ("seconds_until_expiry", pa.float64())])
"""The time when an offset expires (rules 2 and 3), and the seconds from the sample until this time, at least 0.

Both columns are null if rule 1 or rule 4 applies.
"""


def expiry_starts(
    group_ids: Iterable[str], snapshots: Mapping[str, GroupSnapshot], listing: GroupListing | None
) -> Starts:
    """Return the start of each group to which rule 2 or rule 3 applies. `listing` is None if unknown."""
    starts: dict[str, int | None] = {}
    for group_id in group_ids:
        snapshot, listed = snapshots.get(group_id), listing.groups.get(group_id) if listing else None
        if listed is not None and listed.state not in {EMPTY, None}:
            continue
        if snapshot is None or snapshot.is_over:
            if listed is not None and listed.state == EMPTY:
                starts[group_id] = EACH_COMMIT
        elif snapshot.state == EMPTY and not snapshot.is_polled:
            group = snapshot.classic
            starts[group_id] = group.current_state_timestamp_ms if group and group.protocol_type else EACH_COMMIT
    return starts


def expiry(partitions: pa.Table, starts: Starts, retention_ms: int | None, now_ms: int) -> pa.Table:
    """Return the expiry time of each committed offset (EXPIRY_SCHEMA). `partitions` has LAG_SCHEMA.

    >>> commits = pa.table({"group_id": ["empty", "simple", "busy"], "commit_timestamp_ms": [1_000, 2_000, 3_000]})
    >>> answer = expiry(commits, {"empty": 5_000, "simple": EACH_COMMIT}, 60_000, 15_000)
    >>> answer["offsets_expire_ms"].to_pylist(), answer["seconds_until_expiry"].to_pylist()
    ([65000, 62000, None], [50.0, 47.0, None])
    """
    rows = partitions.num_rows
    if retention_ms is None or not starts:
        return pa.table([pa.nulls(rows, field.type) for field in EXPIRY_SCHEMA], schema=EXPIRY_SCHEMA)
    groups = partitions["group_id"].combine_chunks().dictionary_encode()
    ids = groups.dictionary.to_pylist()
    is_known = pa.array([group_id in starts for group_id in ids], pa.bool_()).take(groups.indices)
    became_empty_ms = pa.array([starts.get(group_id) for group_id in ids], pa.int64()).take(groups.indices)
    start_ms = pc.coalesce(became_empty_ms, partitions["commit_timestamp_ms"].combine_chunks())
    expire_ms = pc.if_else(is_known, pc.add(start_ms, retention_ms), None)
    left = pc.divide(pc.subtract(expire_ms, now_ms).cast(pa.float64()), 1000.0)
    return pa.table([expire_ms, pc.max_element_wise(left, 0.0, skip_nulls=False)], schema=EXPIRY_SCHEMA)
