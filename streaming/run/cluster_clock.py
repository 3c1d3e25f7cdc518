"""Compute the time of a cluster: the time of the monitor's clock plus a correction.

The correction is computed from record times, which come from the brokers' clocks. Samples, listings and scrapes use the
time of the cluster, which is comparable with record times. Several threads use the clock.

If the monitor's clock is set, the boot time of the machine changes by the same amount (`wall_clock.boot_time_ms`). So
the monitor detects this step and changes the correction at once. Therefore, the times of samples have no step. Pages
and scrapes use the correction of the last sample (`MonitorView.cluster_ms`). So after a step, they can show the cluster
as stale until the next sample. If no correction is known, the time of the cluster follows the monitor's clock.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from streaming.evaluation.lag.broker_clocks import (
    WARN_MS,
    BrokerClocks,
    ClockOffset,
    OffsetsTopicEnds,
    ReceivedRecords,
    cluster_correction_ms,
)
from streaming.evaluation.lag.lag import ClusterSample

STEP_MS = 1_000
"""Smallest change of the monitor's clock that changes the correction. A correction is not more exact than this."""

_log = logging.getLogger(__name__)


class ClusterClock:
    """The clock of one cluster. `boot_time_ms` returns the machine's boot time according to the monitor's clock."""

    def __init__(self, cluster: str, monitor_ms: Callable[[], int], boot_time_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self.monitor_ms = monitor_ms
        """Returns the time of the monitor's clock, without correction."""
        self._boot_time_ms = boot_time_ms
        self._last_boot_time_ms = boot_time_ms()
        self._stepped_boot_time_ms = self._last_boot_time_ms
        """The boot time at the start, plus all later steps of the monitor's clock."""
        self._clocks = BrokerClocks()
        self._correction_ms, self._is_known = 0, False
        self._newest_record_ms: int | None = None
        self._reported: frozenset[int] = frozenset()
        self._lock = threading.Lock()

    def now_ms(self) -> int:
        """Return the cluster's time."""
        with self._lock:
            self._follow_monitor_clock()
            return self.monitor_ms() + self._correction_ms

    def restore(self, corrections_ms: Mapping[int, int]) -> None:
        """Restore the corrections of an earlier run. The keys are broker ids."""
        with self._lock:
            self._clocks = BrokerClocks(corrections_ms)
            self._correction_ms = cluster_correction_ms(corrections_ms.values())
            self._is_known = bool(corrections_ms)

    def corrections_ms(self) -> Mapping[int, int]:
        """Return the correction for each broker id. A correction is added to the time of the monitor's clock."""
        with self._lock:
            self._follow_monitor_clock()
            return self._clocks.corrections_ms(self.monitor_ms())

    def take_records(self, records: ReceivedRecords) -> None:
        """Update the corrections and the time of the newest record with the records of one batch."""
        newest_ms = int(records.times_ms.max(initial=-1))  # a record without a time has -1
        with self._lock:
            self._follow_monitor_clock()
            self._clocks.add_records(records)
            if newest_ms >= 0:
                self._newest_record_ms = max(newest_ms, self._newest_record_ms or 0)

    def take_sample(self, sample: ClusterSample) -> ClusterSample:
        """Update the corrections with a sample. Return the sample with corrected times.

        For each `__consumer_offsets` partition, the sample time is corrected to the clock of the leader. All other
        times of the sample stay the same, because a new correction applies only to later samples.
        """
        ends = {number: of_partition.high_watermark for number, of_partition in sample.offsets_topic.items()}
        with self._lock:
            self._follow_monitor_clock()
            correction_ms, is_known = self._correction_ms, self._is_known
            asked_ms, base_ms = sample.sampled_at_ms - correction_ms, self._stepped_boot_time_ms + correction_ms
            self._clocks.add_ends(OffsetsTopicEnds(asked_ms, ends, sample.offsets_topic_leaders))
            now_ms = self.monitor_ms()
            corrections_ms, offsets = self._clocks.corrections_ms(now_ms), self._clocks.offsets(now_ms)
            self._correction_ms = cluster_correction_ms(corrections_ms.values())
            self._is_known = bool(corrections_ms)
        self._report(offsets)
        in_time = {
            number: replace(
                of_partition,
                sampled_at_ms=asked_ms
                + corrections_ms.get(sample.offsets_topic_leaders.get(number, -1), self._correction_ms),
            )
            for number, of_partition in sample.offsets_topic.items()
        }
        return replace(
            sample,
            offsets_topic=in_time,
            clock_correction_ms=correction_ms,
            is_clock_known=is_known,
            clock_base_ms=base_ms,
            clock_offsets=offsets,
            newest_record_ms=self._newest_record_ms,
        )

    def _follow_monitor_clock(self) -> None:
        """If the monitor's clock was set forward by n ms, make each correction n ms smaller (larger if set back)."""
        before_ms, self._last_boot_time_ms = self._last_boot_time_ms, self._boot_time_ms()
        step_ms = self._last_boot_time_ms - before_ms
        if abs(step_ms) < STEP_MS:
            return
        self._stepped_boot_time_ms += step_ms
        self._clocks.clock_was_set(step_ms)
        if self._is_known:
            self._correction_ms -= step_ms
        _log.warning("%s: the monitor's clock was set by %+.1f s", self._cluster, step_ms / 1000)

    def _report(self, offsets: Mapping[int, ClockOffset]) -> None:
        """Log one line when a broker's clock becomes wrong, and one line when the clock is correct again."""
        off = {broker: offset for broker, offset in offsets.items() if offset.least_ms > WARN_MS}
        for broker in sorted(off.keys() - self._reported):
            offset = off[broker]
            ahead = "ahead of" if offset.middle_ms > 0 else "behind"
            _log.warning(
                "%s: the clock of broker %d is %.1f s (+/- %.1f s) %s the monitor's clock. The monitor corrects its"
                " times for this. Synchronize the clocks with NTP",
                self._cluster,
                broker,
                abs(offset.middle_ms) / 1000,
                offset.within_ms / 1000,
                ahead,
            )
        for broker in sorted((self._reported & offsets.keys()) - off.keys()):
            _log.info("%s: the clock of broker %d agrees with the monitor's clock again", self._cluster, broker)
        self._reported = frozenset(off) | (self._reported - offsets.keys())
