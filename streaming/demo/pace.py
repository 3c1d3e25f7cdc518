"""Timeouts and intervals of the demo's clients. They are long, because the clients share two cores with Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

POLL_SECONDS = 1.0
"""Timeout of a poll. It is also the maximum delay until a member notices the end of its membership period."""

FETCH_WAIT_MS = 2_000
FETCH_BYTES = 65_536
"""A fetch waits for this time or this size. So a member fetches and commits every two seconds, not for each record."""

HEARTBEAT_MS = 2_000
"""The heartbeat response informs a member about a rebalance. So a rebalance takes about this long."""

SESSION_MS = 10_000


class MembershipPeriod:
    """The time between a member's join and its leave. It ends after `seconds` or when `stop` is set."""

    def __init__(self, stop: threading.Event, seconds: float | None) -> None:
        self._stop = stop
        self._ends_at = None if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether the member should leave now."""
        return self._stop.is_set() or (self._ends_at is not None and time.monotonic() >= self._ends_at)

    def simulate_work(self, seconds: float) -> None:
        """Wait this long, as if the records of a poll were processed. Return early if the demo stops."""
        if seconds > 0:
            self._stop.wait(seconds)
