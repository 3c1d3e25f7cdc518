"""Computes the round values and the texts of the time axis and of the lag axis."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import Final

from streaming.page.timeline.window import HOUR_MS, Window

_DAY_MS: Final = 24 * HOUR_MS
_MINUTE_MS: Final = 60_000
_STEPS_MS: Final = (
    *(minutes * _MINUTE_MS for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY_MS for days in (1, 2, 4)),
)


def time_ticks(window: Window, most: int) -> Sequence[int]:
    """Return the sorted times of at most `most` ticks. The times are round in UTC, for example full hours.

    >>> [clock(at_ms) for at_ms in time_ticks(Window(1_795_300_000_000, 1_795_303_600_000), 4)]
    ['22:40', '23:00', '23:20']
    """
    step_ms = next((step_ms for step_ms in _STEPS_MS if window.span_ms / step_ms < most), _STEPS_MS[-1])
    first_ms = -(-window.from_ms // step_ms) * step_ms
    return range(first_ms, window.to_ms + 1, step_ms)


def tick_text(at_ms: int) -> str:
    """Return the text of a tick: the time of day, or the date at midnight.

    >>> tick_text(1_795_300_000_000), tick_text(1_795_305_600_000)
    ('22:26', '22 Nov')
    """
    return clock(at_ms) if at_ms % _DAY_MS else f"{_utc(at_ms):%-d %b}"


def clock(at_ms: int) -> str:
    """Return the time of day in UTC."""
    return f"{_utc(at_ms):%H:%M}"


def moment(at_ms: int, window: Window) -> str:
    """Return a time in UTC as text. If the window is one day or longer, the text contains the date but no seconds.

    >>> moment(1_795_300_000_000, Window(0, 1)), moment(1_795_300_000_000, Window(0, 86_400_001))
    ('22:26:40', '21 Nov 22:26')
    """
    return f"{_utc(at_ms):%-d %b %H:%M}" if window.span_ms >= _DAY_MS else f"{_utc(at_ms):%H:%M:%S}"


def nice_limit(highest: int) -> int:
    """Return the upper end of the lag axis: `highest`, rounded up to a round number.

    >>> [nice_limit(highest) for highest in (0, 1, 7, 11, 260, 99_000)]
    [1, 1, 10, 20, 500, 100000]
    """
    power: int = 10 ** max(0, len(str(highest)) - 1)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= max(1, highest))


def _utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)
