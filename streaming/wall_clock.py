"""The clocks of this machine."""

from __future__ import annotations

import time

_MAX_READ_NS = 100_000_000
"""Maximum time between the reads of two clocks. Otherwise, a pause of the thread would look like a step of a clock."""


def now_ms() -> int:
    """Return the time in milliseconds since 1970 (UTC), as in Kafka."""
    return time.time_ns() // 1_000_000


def since_boot_seconds() -> float:
    """Return a time that never goes back. On Linux, it also increases while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


def boot_time_ms() -> int:
    """Return the time at which the machine booted, according to its present wall clock.

    The boot time changes if the wall clock is set. It does not change while the machine is suspended, because
    CLOCK_BOOTTIME also counts this time. Only Linux has this clock. On other systems, the result is always 0, so a
    change of the wall clock is not visible.
    """
    if not hasattr(time, "CLOCK_BOOTTIME"):
        return 0
    while True:
        since_boot_ns, now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()
        if time.clock_gettime_ns(time.CLOCK_BOOTTIME) - since_boot_ns < _MAX_READ_NS:
            return (now_ns - since_boot_ns) // 1_000_000
