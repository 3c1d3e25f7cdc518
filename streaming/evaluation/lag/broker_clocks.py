"""How far each broker's clock is from the monitor's, told from records that the brokers wrote.

Kafka answers no request with its time. But a coordinator writes its own time into each record of `__consumer_offsets`,
and the leader of a partition is the coordinator of the partition's groups. The *offset* is the leader's clock minus the
monitor's. Rules:

1. A record that was received at the monitor's time t was written before t: its time minus t is at most the offset.
2. A record that lies at or after an end that was asked for at the monitor's time t was written after t: its time minus
   t is at least the offset. It may have waited for its replicas: VISIBLE_AFTER_MS are allowed for that.
   Each record that was first seen so gives an interval in which the offset lies. A record from before the first sample
   gives none: it may have lain there for long. The leader must be the same at that sample and now.
3. The offset lies where most intervals overlap (Marzullo's algorithm, which NTP uses): a record whose time is not the
   coordinator's, or that was copied, is outvoted. Of a batch one interval counts, so that no busy moment decides alone.
4. An offset is known if MIN_INTERVALS agree and are more than half of the last INTERVALS. It is forgotten when the last
   interval is older than KNOWN_FOR_MS: the broker is idle. Intervals of another day are no clocks (MOST_MS).
5. The *correction* that the monitor applies to its own clock is 0 if both clocks may agree. Else it is the lower end of
   the interval: the broker's time is never overstated, so neither a silence is, nor is a sample taken for later than a
   record. A correction stands while it fits, also of an idle broker: clocks are not set by being idle.

The error is at most the width of the interval: the time between the commits on the broker, a batch, VISIBLE_AFTER_MS.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median_low

import numpy as np

from streaming.combine.wire import Int64Array

VISIBLE_AFTER_MS = 1_000
INTERVALS = 60
MIN_INTERVALS = 3
KNOWN_FOR_MS = 600_000
MOST_MS = 24 * 3_600_000
_SAMPLES = 24
_RECORDS = 1_000


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Bounds of a broker's clock minus the monitor's."""

    lowest_ms: int
    highest_ms: int

    @property
    def middle_ms(self) -> float:
        """The middle of the bounds."""
        return (self.lowest_ms + self.highest_ms) / 2

    @property
    def within_ms(self) -> float:
        """How far the offset may be from the middle."""
        return (self.highest_ms - self.lowest_ms) / 2

    @property
    def least_ms(self) -> int:
        """The smallest difference that is proven."""
        return max(0, self.lowest_ms, -self.highest_ms)


@dataclass(frozen=True, slots=True)
class Ends:
    """Where partitions of `__consumer_offsets` ended, and who led them, asked for at the monitor's time `asked_ms`."""

    asked_ms: int
    end_offsets: Mapping[int, int]
    leaders: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Records:
    """Records that were received up to the monitor's time `received_ms`: columns of equal length."""

    received_ms: int
    partitions: Int64Array
    offsets: Int64Array
    times_ms: Int64Array


class BrokerClocks:
    """What samples and records have shown of the brokers' clocks; one thread at a time."""

    def __init__(self, corrections_ms: Mapping[int, int] | None = None) -> None:
        self._ends: deque[Ends] = deque(maxlen=_SAMPLES)
        self._intervals: dict[int, deque[tuple[int, ClockOffset]]] = {}
        self._corrections_ms = dict(corrections_ms or {})

    def take_ends(self, ends: Ends) -> None:
        """Take one sample in."""
        self._ends.append(ends)

    def take_records(self, records: Records) -> None:
        """Take the records of one batch in (rules 1 to 3)."""
        if not self._ends:
            return
        for broker, intervals in _intervals(records, self._ends).items():
            agreed, _ = most_agreed(intervals)
            known = self._intervals.setdefault(broker, deque(maxlen=INTERVALS))
            known.append((records.received_ms, agreed))

    def offsets(self, now_ms: int) -> Mapping[int, ClockOffset]:
        """The offset of each broker's clock where it is known, at the monitor's time `now_ms` (rule 4)."""
        found = {}
        for broker, known in sorted(self._intervals.items()):
            fresh = [offset for received_ms, offset in known if 0 <= now_ms - received_ms <= KNOWN_FOR_MS]
            if len(fresh) >= MIN_INTERVALS:
                agreed, count = most_agreed(np.array([(one.lowest_ms, one.highest_ms) for one in fresh]))
                if count >= MIN_INTERVALS and 2 * count > len(fresh):
                    found[broker] = agreed
        return found

    def corrections_ms(self, now_ms: int) -> Mapping[int, int]:
        """By broker, what to add to the monitor's clock to have the broker's (rule 5)."""
        for broker, offset in self.offsets(now_ms).items():
            if not offset.lowest_ms <= self._corrections_ms.get(broker, 0) <= offset.highest_ms:
                self._corrections_ms[broker] = offset.lowest_ms if offset.least_ms else 0
            self._corrections_ms.setdefault(broker, 0)
        return dict(self._corrections_ms)


def of_the_cluster(corrections_ms: Iterable[int]) -> int:
    """The correction for what no single broker says: that of the middle broker, 0 where none is known.

    >>> of_the_cluster([-60_000, 0, 0]), of_the_cluster([-60_000]), of_the_cluster([])
    (0, -60000, 0)
    """
    known = sorted(corrections_ms)
    return median_low(known) if known else 0


def most_agreed(intervals: Int64Array) -> tuple[ClockOffset, int]:
    """Where most of some intervals (rows of lowest and highest) overlap, and how many do; of equals the lowest.

    >>> most_agreed(np.array([[0, 10], [5, 20], [8, 9], [500, 900]]))
    (ClockOffset(lowest_ms=8, highest_ms=9), 3)
    """
    lows, highs = np.sort(intervals[:, 0]), np.sort(intervals[:, 1])
    begun = np.arange(1, len(lows) + 1) - np.searchsorted(highs, lows, side="left")
    best = int(np.argmax(begun))
    lowest = int(lows[best])
    return ClockOffset(lowest, int(highs[np.searchsorted(highs, lowest, side="left")])), int(begun[best])


def _intervals(records: Records, samples: Iterable[Ends]) -> Mapping[int, Int64Array]:
    """By broker the intervals that the last of the records give (rules 1 and 2)."""
    newest_first = list(reversed(list(samples)))
    asked_ms = np.full(len(records.offsets), -1, dtype=np.int64)
    leaders = np.full(len(records.offsets), -1, dtype=np.int64)
    for ends in newest_first:
        ended = _looked_up(ends.end_offsets, records.partitions)
        led = _looked_up(ends.leaders, records.partitions)
        leads_now = _looked_up(newest_first[0].leaders, records.partitions)
        is_first = (asked_ms < 0) & (ended >= 0) & (ended <= records.offsets)
        asked_ms[is_first] = ends.asked_ms
        leaders[is_first & (led == leads_now)] = led[is_first & (led == leads_now)]
    lows, highs = records.times_ms - records.received_ms, records.times_ms - asked_ms + VISIBLE_AFTER_MS
    is_clock = (leaders >= 0) & (np.abs(lows) <= MOST_MS) & (lows <= highs)
    found = {}
    for broker in np.unique(leaders[is_clock]).tolist():
        of_broker = np.flatnonzero(is_clock & (leaders == broker))[-_RECORDS:]
        found[broker] = np.stack([lows[of_broker], highs[of_broker]], axis=1)
    return found


def _looked_up(by_partition: Mapping[int, int], partitions: Int64Array) -> Int64Array:
    """The value of each partition, -1 where there is none."""
    distinct, places = np.unique(partitions, return_inverse=True)
    values = np.array([by_partition.get(number, -1) for number in distinct.tolist()], dtype=np.int64)
    looked_up: Int64Array = values[places] if len(values) else np.empty(0, dtype=np.int64)
    return looked_up
