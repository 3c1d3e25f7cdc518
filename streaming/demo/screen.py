"""Shows the state of the demo: live on a terminal, or as a table every 15 seconds."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from types import TracebackType

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text
from typing_extensions import Self

from streaming.demo.figures import Figures
from streaming.demo.groups import DEMO_GROUPS
from streaming.demo.table import GroupTable

_REFRESH_PER_SECOND = 4
_TABLE_INTERVAL_SECONDS = 15.0
_LOG_COLUMNS = 160
_LEGEND = (
    "busiest member: its partition count. excess: this count, minus the largest count in the fairest assignment. "
    "drift: partitions whose owner breaks a rule of the group's strategy. ?: unknown."
)
_LINES_AROUND_TABLE = 6
_LINES_OF_SHORTEST_TABLE = len(DEMO_GROUPS) + 3


def demo_console() -> Console:
    """Return a console for standard output. If standard output is not a terminal, the console has 160 columns."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=_LOG_COLUMNS)


class Screen:
    """Shows the current step while the demo starts. After the start, shows the table of groups.

    `started` is the value of time.monotonic() at the start. `notes` maps the titles to the texts below the table.
    """

    def __init__(self, console: Console, started: float, notes: Mapping[str, str]) -> None:
        self._console = console
        self._notes = notes
        self._started = started
        self._waiting_for: str | None = "the start"
        self._figures: Figures | None = None
        self._printed = float("-inf")
        self._live = Live(
            get_renderable=self._frame, console=console, screen=True, refresh_per_second=_REFRESH_PER_SECOND
        )

    def wait_for(self, what: str) -> None:
        """Show that the demo waits for `what`."""
        self._waiting_for = what
        if not self._console.is_terminal:
            self._console.print(waiting_line(self._elapsed_seconds(), what))

    def show(self, figures: Figures | None) -> None:
        """Show the values. `figures` is None if the monitor did not answer."""
        self._waiting_for, self._figures = None, figures
        if not self._console.is_terminal and time.monotonic() - self._printed >= _TABLE_INTERVAL_SECONDS:
            self._print(self._notes if math.isinf(self._printed) else {})

    def __enter__(self) -> Self:
        """Start the live display on a terminal."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the live display and print the last table."""
        self._live.stop()
        if self._waiting_for is None:
            self._print({})

    def _print(self, notes: Mapping[str, str]) -> None:
        self._printed = time.monotonic()
        self._console.print(status_view(self._elapsed_seconds(), self._figures, notes), end="\n\n")

    def _frame(self) -> RenderableType:
        if self._waiting_for is not None:
            return Spinner("line", waiting_line(self._elapsed_seconds(), self._waiting_for))
        return status_view(self._elapsed_seconds(), self._figures, self._notes, self._console.height)

    def _elapsed_seconds(self) -> float:
        return time.monotonic() - self._started


def waiting_line(elapsed_seconds: float, what: str) -> Text:
    """Return the line that describes the current step of the start."""
    return Text(f"{elapsed_seconds:4.0f} s  waiting for {what}")


def status_view(
    elapsed_seconds: float, figures: Figures | None, notes: Mapping[str, str], height: int | None = None
) -> RenderableType:
    """Return the headline, the table, the notes and the legend.

    If `height` is set, the result has at most `height` lines. If `height` is small, the result has no blank lines and
    no legend.
    """
    max_lines = None if height is None else height - len(notes) - _LINES_AROUND_TABLE
    headline, table = _headline(elapsed_seconds, figures), GroupTable(figures or Figures(), max_lines)
    each_note = [Text.assemble((f"{title:<14}", "bold"), note, overflow="fold") for title, note in notes.items()]
    if max_lines is not None and max_lines < _LINES_OF_SHORTEST_TABLE:
        return Group(headline, table, *each_note)
    return Group(headline, Text(), table, Text(), *each_note, Text(_LEGEND, "dim"))


def _headline(elapsed_seconds: float, figures: Figures | None) -> Text:
    headline = Text.assemble(("kafka-rebalance-monitor demo", "bold"), f"  {elapsed_seconds:.0f} s  ")
    if figures is None:
        return headline.append("the monitor does not answer", "bold red")
    return headline.append("ready" if figures.ready else "not ready", "bold" if figures.ready else "bold red")
