"""Collects the undecodable records of one `__consumer_offsets` partition, up to a size limit.

`group/advance.py` (rule 12) decides how such a record changes the state of a group.

A batch can contain 2 million records, and each record can be some megabytes large. If a batch with undecodable records
were too large for the driver, every restart would fail at the same batch. These rules limit the size:

1. For each key and each value, the first `PREFIX_BYTES` bytes and the full size are kept.
2. The kept records of one partition in one batch have at most `KEPT_BYTES` bytes. `FIXED_BYTES` is the estimated size
   of a record without its key and value.
3. When `KEPT_BYTES` is reached, all later records are only counted, in one summary for each reason. A summary also
   contains the offset of its first record and the position of its last record.
"""

from __future__ import annotations

import msgspec

from streaming.combine.partition_state import DecodeFailure, FailureSummary
from streaming.events import Position
from streaming.protocol import UndecodableRecord

PREFIX_BYTES = 16 << 10
KEPT_BYTES = 1 << 20
FIXED_BYTES = 256


class DecodeFailures:
    """Collects decode failures. Call `add` in offset order."""

    def __init__(self) -> None:
        self._kept: list[DecodeFailure] = []
        self._kept_bytes = 0
        self._summaries: dict[str, FailureSummary] = {}

    def add(self, position: Position, key: bytes | None, value: bytes | None, undecodable: UndecodableRecord) -> None:
        """Add a record. If the limit is reached, only count the record."""
        prefixes = (key and key[:PREFIX_BYTES], value and value[:PREFIX_BYTES])
        self._kept_bytes += FIXED_BYTES + sum(len(prefix or b"") for prefix in prefixes)
        if self._kept_bytes > KEPT_BYTES:
            reason = undecodable.reason
            known = self._summaries.get(reason) or FailureSummary(reason, 0, position.offsets_topic_offset, position)
            self._summaries[reason] = msgspec.structs.replace(known, records=known.records + 1, last=position)
            return
        self._kept.append(
            DecodeFailure(
                position.offsets_topic_partition,
                position.offsets_topic_offset,
                position.timestamp_ms,
                *prefixes,
                undecodable.reason,
                undecodable.field,
                *(None if content is None else len(content) for content in (key, value)),
            )
        )

    def kept(self) -> tuple[DecodeFailure, ...]:
        """Return the records within the limit, in offset order."""
        return tuple(self._kept)

    def summaries(self) -> tuple[FailureSummary, ...]:
        """Return one summary for each reason."""
        return tuple(self._summaries.values())
