"""The time range of a timeline, divided into columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from typing import Final, TypeVar

Item = TypeVar("Item")

HOUR_MS: Final = 3_600_000
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
        """Return the time if it is in the window.

        If the time is before the window, return the start of the window. If the time is after it, return the end.
        """
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
        """Return the items of each column that has items. The columns and their items are sorted by time."""
        columns: dict[int, list[Item]] = {}
        for item in sorted((item for item in items if self.contains(at_ms(item))), key=at_ms):
            columns.setdefault(self.column(at_ms(item)), []).append(item)
        return list(columns.values())


def utc_date(at_ms: int) -> date:
    """Return the UTC date of a time."""
    return datetime.fromtimestamp(at_ms / 1000, timezone.utc).date()
