"""The time range of a timeline, its columns, and the round values and texts of its axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Final, TypeVar

Item = TypeVar("Item")

HOUR_MS: Final = 3_600_000
_DAY_MS: Final = 24 * HOUR_MS
_STEPS_MS: Final = (
    *(minutes * 60_000 for minutes in (5, 10, 15, 20, 30)),
    *(hours * HOUR_MS for hours in (1, 2, 3, 6, 12)),
    *(days * _DAY_MS for days in (1, 2, 4)),
)
SPANS: Final = {"1h": HOUR_MS, "6h": 6 * HOUR_MS, "24h": 24 * HOUR_MS, "7d": 168 * HOUR_MS}
"""The values of the parameter `span`, in milliseconds."""
DEFAULT_SPAN: Final = "1h"

COLUMNS: Final = 72
"""Number of columns. All changes in one column share one mark. So a rebalance storm needs at most 72 marks."""


def span_of(argument: str) -> str:
    """Return the argument if it is a valid span, or else the default span.

    >>> span_of("7d"), span_of("9y"), span_of("")
    ('7d', '1h', '1h')
    """
    return argument if argument in SPANS else DEFAULT_SPAN


@dataclass(frozen=True, slots=True)
class Window:
    """The time from `from_ms` to `to_ms`. If `ends_now` is False, `to_ms` is a moment in the past."""

    from_ms: int
    to_ms: int
    ends_now: bool = True

    @property
    def span_ms(self) -> int:
        """The duration of the window."""
        return self.to_ms - self.from_ms

    def column(self, at_ms: int) -> int:
        """Return the number of the column that contains a time of the window.

        >>> [Window(0, 72_000).column(at_ms) for at_ms in (0, 999, 1_000, 72_000)]
        [0, 0, 1, 71]
        """
        return min(COLUMNS * (at_ms - self.from_ms) // self.span_ms, COLUMNS - 1)

    def contains(self, at_ms: int) -> bool:
        """Return True if the time is in the window."""
        return self.from_ms <= at_ms <= self.to_ms

    def clip(self, at_ms: int) -> int:
        """Return the time, or the nearer end of the window if the time is outside the window."""
        return min(max(at_ms, self.from_ms), self.to_ms)

    def extend(self, earlier_ms: int) -> Window:
        """Return a window that starts `earlier_ms` before this window and ends at the same time."""
        return Window(self.from_ms - earlier_ms, self.to_ms, self.ends_now)

    def dates(self) -> Sequence[date]:
        """Return the UTC dates that the window touches.

        >>> len(Window(0, SPANS["7d"]).dates())
        8
        """
        first, last = utc_date(self.from_ms), utc_date(self.to_ms)
        return [first + timedelta(days) for days in range((last - first).days + 1)]

    def by_column(self, items: Sequence[Item], at_ms: Callable[[Item], int]) -> Sequence[Sequence[Item]]:
        """Return one sequence of items per column, without empty columns. Columns and items are sorted by time."""
        columns: dict[int, list[Item]] = {}
        for item in sorted((item for item in items if self.contains(at_ms(item))), key=at_ms):
            columns.setdefault(self.column(at_ms(item)), []).append(item)
        return list(columns.values())


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


def utc_date(at_ms: int) -> date:
    """Return the UTC date of a time."""
    return _utc(at_ms).date()


def _utc(at_ms: int) -> datetime:
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc)
