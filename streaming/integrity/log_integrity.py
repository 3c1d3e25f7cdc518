"""Checks that `__consumer_offsets` is still the log that was read.

The position of a partition is the offset of the next record to read. Normally, offsets only grow. So two conditions are
normally true. The end of a partition is after every record that was read. The start of a partition is at or before its
position. There are three exceptions:

1. A partition is *rewound* in two cases. In the first case, its end is at or before the last record that was read
   (`find_truncated_partitions`). In the second case, its position decreased (`find_backward_positions`), because
   Spark's source decreases the position if the end is before it. The cause is an unclean leader election, or the topic
   was deleted and created again. In both cases new records get offsets that were read before. The monitor treats these
   records as already read. So it does not show their content.
2. Records are *lost* if the start of a partition is after its position (`count_lost_offsets`). Retention or a
   DeleteRecords request removed records before they were read. The monitor continues at the start of the partition. No
   better result is possible.
3. The topic was *created again* if its id differs from the id for which the positions were stored (KIP-516,
   `find_recreated_partitions`). Only the ids are compared. So the monitor detects the new topic even if its log is
   already longer than the old log was. If one of the two ids is unknown, this check has no result. Brokers before 2.8
   have no topic ids.

In the polling mode (`source.kind = "admin-api"`) the monitor numbers the answers itself, in partitions below 0. These
rules ignore such partitions.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.lag.lag import LogEnds


def find_truncated_partitions(
    partition_states: Mapping[int, PartitionSnapshot], ends: Mapping[int, LogEnds]
) -> frozenset[int]:
    """Return the partitions that end at or before the last record that was read.

    `partition_states` must be older than the request for the ends.

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
    """Return the partitions whose position is lower than before.

    >>> sorted(find_backward_positions({0: 7, 1: 7, 2: 7}, {0: 6, 1: 7, 3: 1}))
    [0]
    """
    return frozenset(number for number, position in now.items() if number >= 0 and position < before.get(number, 0))


def find_recreated_partitions(
    positions: Mapping[int, int], read_id: str | None, topic_id: str | None
) -> frozenset[int]:
    """Return the partitions that were read while the topic had a different id.

    >>> sorted(find_recreated_partitions({0: 7, 1: 0, 2: 9}, "B3BDgJhtR2mEJtC2VAyvIQ", "Yzm9gVTsQ7GnpBNcXPE4Bw"))
    [0, 2]
    """
    if read_id is None or topic_id is None or read_id == topic_id:
        return frozenset()
    return frozenset(number for number, position in positions.items() if number >= 0 and position > 0)


def count_lost_offsets(positions: Mapping[int, int], ends: Mapping[int, LogEnds]) -> Mapping[int, int]:
    """Return for each partition the number of offsets that were deleted before they were read.

    For a partition that was never read, no offsets are lost.

    >>> count_lost_offsets({0: 5, 1: 5}, {0: LogEnds(90, 90, 25), 1: LogEnds(90, 90, 5), 2: LogEnds(90, 90, 80)})
    {0: 20}
    """
    return {
        number: log_ends.log_start - positions[number]
        for number, log_ends in ends.items()
        if number in positions and log_ends.log_start is not None and log_ends.log_start > positions[number]
    }
