"""Divides a long list into pages of a fixed size, with links between the pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from streaming.page.addresses import Address

ROWS_PER_PAGE = 50
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Page(Generic[Row]):
    """The rows of one page. `first` is the number of the first row, counted from 1, or 0 without rows.

    `before` and `after` are the addresses of the previous page and the next page, if they exist.
    """

    rows: Sequence[Row]
    first: int
    total: int
    before: str | None
    after: str | None

    @property
    def last(self) -> int:
        """The number of the last row, counted from 1."""
        return self.first + len(self.rows) - 1 if self.rows else 0


def page_of(rows: Sequence[Row], address: Address, parameter: str, anchor: str) -> Page[Row]:
    """Return the page that a request selects from `rows`, or the last page if the request asks for a later page.

    `parameter` is the name of the query parameter with the number of rows before this page.

    >>> page = page_of(range(120), Address("/t", "from=100"), "from", "rows")
    >>> page.first, page.last, page.before, page.after
    (101, 120, '/t?from=50#rows', None)
    """
    last_start = max(0, (len(rows) - 1) // ROWS_PER_PAGE * ROWS_PER_PAGE)
    start = address.whole_number(parameter, 0, last_start)
    start -= start % ROWS_PER_PAGE

    def link(at: int) -> str:
        return f"{address.change(**{parameter: at or None})}#{anchor}"

    return Page(
        rows[start : start + ROWS_PER_PAGE],
        start + 1 if rows else 0,
        len(rows),
        link(start - ROWS_PER_PAGE) if start else None,
        link(start + ROWS_PER_PAGE) if start + ROWS_PER_PAGE < len(rows) else None,
    )
