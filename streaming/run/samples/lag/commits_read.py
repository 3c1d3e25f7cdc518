"""Find the newest sample up to which the monitor has read the records of a group.

The commits of a group can be compared with the log start offsets of a sample only if the monitor has read all commits
that were written before it requested these log start offsets (`lost_records.py`). The time of the sample is also the
time up to which the monitor has read the group's partition of `__consumer_offsets`. Statuses, rates and conditions
use this time as the present time of the group. Rules:

1. A sample requests the log start offsets first, and the ends of `__consumer_offsets` later. So the monitor has read
   the commits up to the sample if the query has read the group's partition of `__consumer_offsets` up to its sampled
   end.
2. In the polling mode, the monitor has read the commits up to the sample if a complete poll began after the sample.
   `MonitorView.polled` contains the exact time of the poll.
3. If the clock was set back, or if the query started again at an earlier position, all earlier samples are forgotten.

The times are the times of the samples (`sampled_at_ms`), which are the cluster's time. The times of records come from
the clocks of leaders. A time of a leader's clock would become wrong when the leadership moves to a different broker.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.lag.lag_evaluation import read_up_to_of_groups
from streaming.events import POLLED_PARTITION
from streaming.integrity.read_up_to import ReadUpTo, add_sampled_end, advance_position


class CommitsRead:
    """The newest sample up to which the commits were read, by partition of `__consumer_offsets`."""

    def __init__(self) -> None:
        self._read: Mapping[int, ReadUpTo] = {}
        self._positions: Mapping[int, int] = {}
        self._sampled_at_ms = -1

    def add(self, sample: ClusterSample, positions: Mapping[int, int], polled_at_ms: int | None, taken_ms: int) -> None:
        """Add a sample. `taken_ms` is a time after all requests of the sample.

        The commits of the sample must include all commits before `positions`, and all commits of the poll that began at
        `polled_at_ms`.
        """
        ends = {number: end.high_watermark for number, end in sample.offsets_topic.items()}
        if polled_at_ms is not None:
            ends, positions = {**ends, POLLED_PARTITION: taken_ms + 1}, {**positions, POLLED_PARTITION: polled_at_ms}
        is_earlier = any(positions.get(number, 0) < known for number, known in self._positions.items())
        known = {} if is_earlier or sample.sampled_at_ms <= self._sampled_at_ms else self._read
        known = {number: advance_position(read, positions.get(number, 0)) for number, read in known.items()}
        read = {
            number: add_sampled_end(known.get(number, ReadUpTo()), positions.get(number, 0), end, sample.sampled_at_ms)
            for number, end in ends.items()
        }
        self._read, self._positions, self._sampled_at_ms = {**known, **read}, positions, sample.sampled_at_ms

    @property
    def by_partition(self) -> Mapping[int, int]:
        """The time of the newest sample up to which each partition of `__consumer_offsets` was read, if known."""
        times_ms = {number: read.read_up_to_ms for number, read in self._read.items()}
        return {number: read_ms for number, read_ms in times_ms.items() if read_ms is not None}

    def times_ms(self, group_ids: pa.ChunkedArray, sample: ClusterSample) -> pa.Array:
        """Return for each row the time of the newest sample up to which the group's commits were read, or null."""
        times_ms = self.by_partition
        return read_up_to_of_groups(group_ids, times_ms, sample, times_ms.get(POLLED_PARTITION))
