"""Timeouts and intervals of the demo's clients. They are long, because the clients share two cores with Spark."""

from __future__ import annotations

import threading
import time

POLL_SECONDS = 1.0
"""Timeout of a poll. After the end of its membership period, a member leaves within this time."""

FETCH_WAIT_MS = 2_000
FETCH_BYTES = 65_536
"""The broker answers a fetch request after FETCH_WAIT_MS, or earlier if FETCH_BYTES are available.

So a member fetches and commits every two seconds, instead of after each record.
"""

HEARTBEAT_MS = 2_000
"""Interval of the heartbeats. A rebalance takes about this time, because heartbeat responses announce the rebalance."""

SESSION_MS = 10_000


class MembershipPeriod:
    """The time that a member stays in its group. The period ends after `seconds`, or earlier if `stop` is set."""

    def __init__(self, stop: threading.Event, seconds: float | None) -> None:
        self._stop = stop
        self._ends_at = None if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Return True if the member should leave now."""
        return self._stop.is_set() or (self._ends_at is not None and time.monotonic() >= self._ends_at)

    def simulate_work(self, seconds: float) -> None:
        """Wait for `seconds`, to simulate the processing of records. Return early if the demo stops."""
        if seconds > 0:
            self._stop.wait(seconds)
