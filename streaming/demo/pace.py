"""Timeouts and intervals of the demo's clients. They are long, because the clients share two cores with Spark."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

POLL_SECONDS = 1.0
"""Timeout of a poll. It is also the maximum time until a member detects that its membership period has ended."""

FETCH_WAIT_MS = 2_000
FETCH_BYTES = 65_536
"""A fetch waits until this time is over or until this size is available.

So a member fetches and commits every two seconds, and not after each record.
"""

HEARTBEAT_MS = 2_000
"""A member learns from the response to a heartbeat that a rebalance has started.

So a rebalance takes about this time.
"""

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
        """Wait for this time, to simulate the processing of the records of a poll. Return early if the demo stops."""
        if seconds > 0:
            self._stop.wait(seconds)
