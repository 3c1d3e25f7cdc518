"""Measure how much each broker's clock differs from the monitor's clock.

No Kafka response contains the broker's time. But a coordinator writes the time of its clock into each record of
`__consumer_offsets`. The leader of a `__consumer_offsets` partition is the coordinator of the partition's groups. The
*clock offset* of a broker is the time of the broker's clock minus the time of the monitor's clock. Rules:

1. A record that was received at the monitor's time t was written before t. So the clock offset is at least the record's
   time minus t.
2. The monitor requests an end offset at the time t of its clock. A record at or above the end offset became visible
   after t. Because of replication, a record can become visible up to VISIBLE_AFTER_MS after it was written. So the
   record was written after t - VISIBLE_AFTER_MS, and the clock offset is at most the record's time minus (t -
   VISIBLE_AFTER_MS). Rules 1 and 2 together give one interval per record, with two exceptions. A record that was
   written before the oldest stored sample gives no interval, because rule 2 needs an earlier sample. A record also
   gives no interval if the leader of its partition has changed since the sample.
3. The clock offset lies where the largest number of intervals overlap (Marzullo's algorithm, which NTP uses). So a
   single wrong interval has no effect. For example, a record that was copied from a different cluster gives a wrong
   interval. Each batch gives only one interval per broker, so a batch with many records has no extra weight.
4. A clock offset is known if at least MIN_INTERVALS intervals overlap. The overlapping intervals must also be more than
   half of the last INTERVALS intervals. Intervals that are older than KNOWN_FOR_MS are ignored. So the clock offset of
   an idle broker becomes unknown. Large clock offsets are possible: without a battery, a clock starts at 1970. So the
   limit MAX_OFFSET_MS is a hundred years. A record is ignored if its time differs from the monitor's time by more than
   this limit. A record without a time (-1) is also ignored.
5. The *correction* is the number that the monitor adds to its own time, to get the broker's time. The correction is 0
   if the interval contains 0. If the interval does not contain 0, the correction is the lower end of the interval. The
   lower end never overestimates the broker's time or the duration of a silence. So a record that is written after a
   sample never has a time before the corrected time of this sample. A correction stays valid until an interval
   contradicts it, also for an idle broker. The maximum error is the width of the interval. The width of the interval
   is the sum of three durations: the time between two successive commits to the broker, the duration of a batch, and
   VISIBLE_AFTER_MS.
6. If the monitor's clock is set, each correction changes by the same amount in the opposite direction. So the corrected
   times have no step. But if the whole machine was paused, its time since boot is wrong and the clock is right, so the
   corrections from before the step are still correct. The next interval decides which case applies. If this interval is
   nearer to the correction from before the step than to the changed correction, all corrections get their earlier
   values again. It is sufficient to be nearer: a correction is the lower end of a wide interval, so the next interval
   need not contain the correction. After a step and after a start, a single interval is enough for a broker's
   correction.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from streaming.combine.big_endian import Int64Array

WARN_MS = 5_000
"""Difference above which two clocks are not synchronized. NTP keeps clocks within a few milliseconds of each other."""
VISIBLE_AFTER_MS = 1_000
INTERVALS = 60
MIN_INTERVALS = 3
KNOWN_FOR_MS = 600_000
MAX_OFFSET_MS = 100 * 365 * 24 * 3_600_000
"""A hundred years."""
_SAMPLES = 24
RECORDS_PER_BROKER = 1_000
"""Maximum number of records per broker and batch. Older records of the batch are ignored."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """The lower bound and the upper bound of a broker's clock offset, in milliseconds."""

    lowest_ms: int
    highest_ms: int

    def distance_ms(self, offset_ms: int) -> int:
        """Return the smallest possible difference between the clock offset and `offset_ms`."""
        return max(0, self.lowest_ms - offset_ms, offset_ms - self.highest_ms)

    @property
    def middle_ms(self) -> float:
        """The clock offset as one number."""
        return (self.lowest_ms + self.highest_ms) / 2

    @property
    def within_ms(self) -> float:
        """The maximum error of `middle_ms`."""
        return (self.highest_ms - self.lowest_ms) / 2

    @property
    def least_ms(self) -> int:
        """The smallest proven difference between the broker's clock and the monitor's clock, as a positive number."""
        return max(0, self.lowest_ms, -self.highest_ms)


@dataclass(frozen=True, slots=True)
class OffsetsTopicEnds:
    """End offsets and leaders of `__consumer_offsets` partitions, requested at the monitor's time `asked_ms`."""

    asked_ms: int
    end_offsets: Mapping[int, int]
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class ReceivedRecords:
    """Records that were received up to the monitor's time `received_ms`, as columns of equal length."""

    received_ms: int
    partitions: Int64Array
    offsets: Int64Array
    times_ms: Int64Array


class BrokerClocks:
    """The clock offsets of brokers, computed from samples and records. The class is not thread-safe."""

    def __init__(self, corrections_ms: Mapping[int, int] | None = None) -> None:
        self._ends: deque[OffsetsTopicEnds] = deque(maxlen=_SAMPLES)
        self._intervals: dict[int, deque[tuple[int, ClockOffset]]] = {}
        self._corrections_ms = dict(corrections_ms or {})
        self._measured: set[int] = set()
        """The brokers with an interval since the start or the last step (rule 6)."""
        self._step_ms = 0
        """The sum of the steps since the last decision (rule 6)."""

    def add_ends(self, ends: OffsetsTopicEnds) -> None:
        """Add the end offsets of one sample."""
        self._ends.append(ends)

    def add_records(self, records: ReceivedRecords) -> None:
        """Add the records of one batch (rules 1 to 3)."""
        if not self._ends:
            return
        for broker, intervals in _intervals(records, self._ends).items():
            agreed, _ = largest_overlap(intervals)
            known = self._intervals.setdefault(broker, deque(maxlen=INTERVALS))
            known.append((records.received_ms, agreed))

    def clock_was_set(self, step_ms: int) -> None:
        """Apply rule 6: the monitor's clock was set forward by `step_ms`. If it was set back, `step_ms` is negative."""
        self._corrections_ms = {broker: known_ms - step_ms for broker, known_ms in self._corrections_ms.items()}
        self._step_ms += step_ms
        self._ends.clear()
        self._intervals.clear()
        self._measured.clear()

    def offsets(self, now_ms: int, min_intervals: int = MIN_INTERVALS) -> Mapping[int, ClockOffset]:
        """Return the known clock offset of each broker at the monitor's time `now_ms` (rule 4)."""
        agreed_offsets = {}
        for broker, known in sorted(self._intervals.items()):
            fresh = [offset for received_ms, offset in known if 0 <= now_ms - received_ms <= KNOWN_FOR_MS]
            if len(fresh) >= min_intervals:
                agreed, count = largest_overlap(np.array([(offset.lowest_ms, offset.highest_ms) for offset in fresh]))
                if count >= min_intervals and 2 * count > len(fresh):
                    agreed_offsets[broker] = agreed
        return agreed_offsets

    def corrections_ms(self, now_ms: int) -> Mapping[int, int]:
        """Return the correction for each broker (rules 5 and 6)."""
        first = self.offsets(now_ms, min_intervals=1)
        new = {broker: offset for broker, offset in first.items() if broker not in self._measured}
        for broker, offset in {**new, **self.offsets(now_ms)}.items():
            if self._step_ms and broker in self._corrections_ms:
                self._decide_step(self._corrections_ms[broker], offset)
            if offset.distance_ms(self._corrections_ms.get(broker, 0)):
                self._corrections_ms[broker] = offset.lowest_ms if offset.least_ms else 0
            self._corrections_ms.setdefault(broker, 0)
            self._measured.add(broker)
        return dict(self._corrections_ms)

    def _decide_step(self, correction_ms: int, offset: ClockOffset) -> None:
        step_ms, self._step_ms = self._step_ms, 0
        if offset.distance_ms(correction_ms + step_ms) < offset.distance_ms(correction_ms):
            for broker in self._corrections_ms.keys() - self._measured:
                self._corrections_ms[broker] += step_ms


def cluster_correction_ms(corrections_ms: Iterable[int]) -> int:
    """Return the median correction of all brokers, or 0 if no correction is known.

    The times of samples use the median correction, because several brokers respond to a sample.

    >>> cluster_correction_ms([-60_000, 0, 0]), cluster_correction_ms([-60_000]), cluster_correction_ms([])
    (0, -60000, 0)
    """
    known = sorted(corrections_ms)
    return median_low(known) if known else 0


def largest_overlap(intervals: Int64Array) -> tuple[ClockOffset, int]:
    """Return the range where the largest number of intervals overlap, and this number.

    If several ranges have this number, the lowest range is returned. Each row of `intervals` contains the lowest value
    and the highest value of one interval.

    >>> largest_overlap(np.array([[0, 10], [5, 20], [8, 9], [500, 900]]))
    (ClockOffset(lowest_ms=8, highest_ms=9), 3)
    """
    lows, highs = np.sort(intervals[:, 0]), np.sort(intervals[:, 1])
    overlapping = np.arange(1, len(lows) + 1) - np.searchsorted(highs, lows, side="left")
    best = int(np.argmax(overlapping))
    lowest = int(lows[best])
    return ClockOffset(lowest, int(highs[np.searchsorted(highs, lowest, side="left")])), int(overlapping[best])


def _intervals(records: ReceivedRecords, samples: Iterable[OffsetsTopicEnds]) -> Mapping[int, Int64Array]:
    """Compute intervals from the last records (rules 1 and 2). Return the intervals of each broker."""
    newest_first = list(reversed(list(samples)))
    partitions, place = np.unique(records.partitions, return_inverse=True)
    leads_now = _look_up(newest_first[0].leaders, partitions)
    asked_ms = np.full(len(records.offsets), -1, dtype=np.int64)
    leaders = np.full(len(records.offsets), -1, dtype=np.int64)
    # One row per sample, one column per partition.
    ended = np.array([_look_up(ends.end_offsets, partitions) for ends in newest_first])
    ended[ended < 0] = np.iinfo(np.int64).max
    # Records from before the oldest stored sample have no interval. So while the monitor reads old records,
    # it computes no intervals.
    rows = np.flatnonzero(records.offsets >= ended.min(axis=0)[place])
    for ends, end_offsets in zip(newest_first, ended, strict=True):
        is_first = end_offsets[place[rows]] <= records.offsets[rows]
        led = _look_up(ends.leaders, partitions)
        asked_ms[rows[is_first]] = ends.asked_ms
        leaders[rows[is_first]] = np.where(led == leads_now, led, -1)[place[rows[is_first]]]
        rows = rows[~is_first]
        if not len(rows):
            break
    lows, highs = records.times_ms - records.received_ms, records.times_ms - asked_ms + VISIBLE_AFTER_MS
    is_time = (records.times_ms >= 0) & (np.abs(lows) <= MAX_OFFSET_MS)
    is_clock = (leaders >= 0) & is_time & (lows <= highs)
    intervals = {}
    for broker in np.unique(leaders[is_clock]).tolist():
        at = np.flatnonzero(is_clock & (leaders == broker))[-RECORDS_PER_BROKER:]
        intervals[broker] = np.stack([lows[at], highs[at]], axis=1)
    return intervals


def _look_up(by_partition: Mapping[int, int], partitions: Int64Array) -> Int64Array:
    """Return the value for each partition. The value is -1 if `by_partition` does not contain the partition."""
    return np.array([by_partition.get(number, -1) for number in partitions.tolist()], dtype=np.int64)
