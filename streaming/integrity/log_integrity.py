"""Whether `__consumer_offsets` still is the log that was read.

Offsets only grow, as long as nothing goes wrong: every record that was read is before the end, and what is read next is
not before the start. Three things break that:

1. A partition is *rewound* if it ends at or before the last record that was read (`find_truncated_partitions`), or if reading
   went back (`find_backward_positions`), as Spark's source does when it finds an end before its position. Then the partition was cut
   off by an unclean leader election, or the topic was deleted and created anew. Either way other records get offsets
   that were read already, and those are taken for read: what they say is not shown.
2. Records are *lost* if a partition starts behind what is to be read next (`count_lost_offsets`): retention, or a request
   to delete records, was quicker than we. Reading goes on behind them, so what is shown is as good as it can be.

3. The log is *another* if the topic has another id by now than when its positions were reached (KIP-516): somebody
   deleted it, and it was created anew. That is told by the id alone, so also of a log that has outgrown its old end
   before anybody looked. What is not known of either id tells nothing: brokers before 2.8 have none.

Who reads no log (`source.kind = "admin-api"`) numbers answers itself: of partition -1 nothing is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping

from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.lag.lag import LogEnds


def find_truncated_partitions(
    partition_states: Mapping[int, PartitionSnapshot], ends: Mapping[int, LogEnds]
) -> frozenset[int]:
    """Partitions that end before what was read of them; `partition_states` must be from before the ends were asked for.

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
    """Partitions the next record of which has a lower offset than it had before.

    >>> sorted(find_backward_positions({0: 7, 1: 7, 2: 7}, {0: 6, 1: 7, 3: 1}))
    [0]
    """
    return frozenset(number for number, position in now.items() if number >= 0 and position < before.get(number, 0))


def find_recreated_partitions(
    positions: Mapping[int, int], read_id: str | None, topic_id: str | None
) -> frozenset[int]:
    """Partitions of which something was read while the topic had another id than it has now.

    >>> sorted(find_recreated_partitions({0: 7, 1: 0, 2: 9}, "B3BDgJhtR2mEJtC2VAyvIQ", "Yzm9gVTsQ7GnpBNcXPE4Bw"))
    [0, 2]
    """
    if read_id is None or topic_id is None or read_id == topic_id:
        return frozenset()
    return frozenset(number for number, position in positions.items() if number >= 0 and position > 0)


def count_lost_offsets(positions: Mapping[int, int], ends: Mapping[int, LogEnds]) -> Mapping[int, int]:
    """By partition, how many offsets were deleted that were not read yet; of a partition never read, nothing is.

    >>> count_lost_offsets({0: 5, 1: 5}, {0: LogEnds(90, 90, 25), 1: LogEnds(90, 90, 5), 2: LogEnds(90, 90, 80)})
    {0: 20}
    """
    return {
        number: log_ends.log_start - positions[number]
        for number, log_ends in ends.items()
        if number in positions and log_ends.log_start is not None and log_ends.log_start > positions[number]
    }
