"""The wall-clock time of this machine."""

from __future__ import annotations

import time


def now_ms() -> int:
    """Return the time in milliseconds since 1970 (UTC), as in Kafka."""
    return time.time_ns() // 1_000_000
