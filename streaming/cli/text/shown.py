"""How tables, and names that others chose, reach a terminal or a pipe."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

from streaming.group.printable import printable

_WIDTH_WITHOUT_TERMINAL = 140


def output_console() -> Console:
    """Standard output. A pipe has no width, and a log is wider than the 80 columns that would be assumed."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)


def shown(text: str) -> str:
    r"""Make a name safe to print: it may hold terminal controls, markup or no valid character.

    >>> shown("orders\x1b[2J"), shown("[red]")
    ('orders\\x1b[2J', '\\[red]')
    """
    return escape(printable(text))
