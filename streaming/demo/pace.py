"""How gently the demo's clients go: they share two cores with Spark and a broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import threading

POLL_SECONDS = 1.0
"""How long a poll waits; also the longest that a member takes to notice the end of its stint."""

FETCH_WAIT_MS = 2_000
FETCH_BYTES = 65_536
"""A fetch waits that long for that much: a member then asks, and commits, every two seconds and not at each record."""

HEARTBEAT_MS = 2_000
"""A member learns of a rebalance from the answer to its heartbeat, so this is about what a rebalance takes."""

SESSION_MS = 10_000


class Stint:
    """The time from a member's joining to its leaving: `seconds`, or until `stop` is set."""

    def __init__(self, stop: threading.Event, seconds: float | None) -> None:
        self._stop = stop
        self._ends_at = None if seconds is None else time.monotonic() + seconds

    def is_over(self) -> bool:
        """Whether the member should leave now."""
        return self._stop.is_set() or (self._ends_at is not None and time.monotonic() >= self._ends_at)

    def work(self, seconds: float) -> None:
        """Take that long over the records of a poll, or less if the whole demo stops."""
        if seconds > 0:
            self._stop.wait(seconds)
