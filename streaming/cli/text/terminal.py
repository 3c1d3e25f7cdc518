"""Print tables and names to a terminal or a pipe. Names come from clients, so they can contain any character."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from streaming.group.printable import printable

_WIDTH_WITHOUT_TERMINAL = 140
_MIN_TABLE_WIDTH = 80


def output_console() -> Console:
    """Return a console for standard output. If standard output is not a terminal, lines have at most 140 columns."""
    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL)


def print_tables(*tables: Table) -> None:
    """Print tables. A long word continues on the next line of its cell.

    Each table has at least 80 columns, because rich can leave the cells of narrower tables empty. A narrower terminal
    wraps the lines.
    """
    console = output_console()
    console.width = max(console.width, _MIN_TABLE_WIDTH)
    for table in tables:
        for column in table.columns:
            column.overflow = "fold"
        console.print(table)


def escape_text(text: str) -> str:
    r"""Escape terminal control characters, rich markup and invalid characters in a text.

    >>> escape_text("orders\x1b[2J"), escape_text("[red]")
    ('orders\\x1b[2J', '\\[red]')
    """
    return escape(printable(text))
