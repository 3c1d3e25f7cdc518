"""Detect that partitions of `__consumer_offsets` were truncated, deleted or created again while the monitor reads them.

The position of a partition is the offset of the next record to read. Normally, a partition ends after the last record
that was read, and starts at or before the position. There are three exceptions:

1. A partition is *rewound* if it ends at or before the last record that was read (`find_truncated_partitions`), or if
   its position decreased (`find_backward_positions`). Spark's source decreases the position if the end of the partition
   is before the position. The cause is an unclean leader election, or the topic was deleted and created again. New
   records have offsets that the monitor has already read. So the monitor ignores these records.
2. Records of a partition are *lost* if the start offset of the partition is higher than the position
   (`count_lost_offsets`). Retention or a DeleteRecords request removed records before the monitor read them. The
   monitor continues at the start of the partition.
3. The topic was *created again* if its topic id differs from the stored topic id (KIP-516,
   `find_recreated_partitions`). The new log can already be longer than the old log, so rule 1 is not sufficient. An
   unknown id is not compared. Brokers before Kafka 2.8 do not have topic ids.

In the polling mode (`source.kind = "admin-api"`), the monitor stores coordinators' responses in partitions with
negative numbers, and chooses the offsets itself. The rules do not apply to these partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.lag.lag import LogEnds


def find_truncated_partitions(
    partition_states: Mapping[int, PartitionSnapshot], ends: Mapping[int, LogEnds]
) -> frozenset[int]:
    """Return the partitions that end at or before the last record that was read.

    `partition_states` must be older than `ends`.

    >>> read = {number: PartitionSnapshot(number, last_offset=9) for number in (0, 1, 2)}
    >>> sorted(find_truncated_partitions(read, {0: LogEnds(9, 9), 1: LogEnds(10, 10)}))
    [0]
    """
    return frozenset(
        number
        for number, partition_state in partition_states.items()
        if number in ends and ends[number].high_watermark <= partition_state.last_offset
    )


def find_backward_positions(before: Mapping[int, int], now: Mapping[int, int]) -> frozenset[int]:
    """Return the partitions whose position decreased.

    >>> sorted(find_backward_positions({0: 7, 1: 7, 2: 7}, {0: 6, 1: 7, 3: 1}))
    [0]
    """
    return frozenset(number for number, position in now.items() if number >= 0 and position < before.get(number, 0))


def find_recreated_partitions(
    positions: Mapping[int, int], read_id: str | None, topic_id: str | None
) -> frozenset[int]:
    """Return the partitions that were read before the topic was created again. Empty if an id is unknown.

    >>> sorted(find_recreated_partitions({0: 7, 1: 0, 2: 9}, "B3BDgJhtR2mEJtC2VAyvIQ", "Yzm9gVTsQ7GnpBNcXPE4Bw"))
    [0, 2]
    """
    if read_id is None or topic_id is None or read_id == topic_id:
        return frozenset()
    return frozenset(number for number, position in positions.items() if number >= 0 and position > 0)


def count_lost_offsets(positions: Mapping[int, int], ends: Mapping[int, LogEnds]) -> Mapping[int, int]:
    """Return the number of offsets that were deleted before the monitor read them. Omit partitions without a loss.

    >>> count_lost_offsets({0: 5, 1: 5}, {0: LogEnds(90, 90, 25), 1: LogEnds(90, 90, 5), 2: LogEnds(90, 90, 80)})
    {0: 20}
    """
    return {
        number: log_ends.log_start - positions[number]
        for number, log_ends in ends.items()
        if number in positions and log_ends.log_start is not None and log_ends.log_start > positions[number]
    }
