"""The table of groups: a row each, and what the group shows in a person's words."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.style import Style
from rich.table import Column, Table
from rich.text import Text

from streaming.demo.figures import Figures, GroupFigures
from streaming.demo.groups import DEMO_GROUPS

_UNFAIR_RATIO = 1.3
_SENTENCE_COLUMN_FROM = 140
_EVERY_COLUMN_FROM = 99
_NOT_OURS = "a group of your own"
_NOTEWORTHY = "bold red"


@dataclass(frozen=True)
class GroupTable:
    """All demo groups, known to the monitor yet or not, then groups that somebody else made.

    What each shows is a column on a wide terminal and a line of its own on others; it is left out where the table would
    be higher than `room` lines.
    """

    figures: Figures
    room: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render for the width there is."""
        sentences = _sentences(self.figures)
        groups = [self.figures.groups.get(group_id, GroupFigures(group_id)) for group_id in sentences]
        columns = _COLUMNS if options.max_width >= _EVERY_COLUMN_FROM else _NARROW_COLUMNS
        wide = options.max_width >= _SENTENCE_COLUMN_FROM
        table = _table(groups, columns, sentences if wide else None)
        lines = console.render_lines(table, options, pad=False)
        if not wide and (self.room is None or self.room >= len(lines) + len(groups)):
            lines = list(_with_sentences(lines, list(sentences.values()), options.max_width))
        for line in lines:
            yield from line
            yield Segment.line()


def _sentences(figures: Figures) -> dict[str, str]:
    ours = {group.group_id: group.shows for group in DEMO_GROUPS}
    return {**ours, **{group_id: _NOT_OURS for group_id in sorted(figures.groups) if group_id not in ours}}


def _with_sentences(lines: list[list[Segment]], sentences: list[str], width: int) -> Iterator[list[Segment]]:
    """Put each sentence under its group's line; the table's last lines are its groups'."""
    head = len(lines) - len(sentences)
    yield from lines[:head]
    for line, sentence in zip(lines[head:], sentences, strict=True):
        text = Text("  " + sentence)
        text.truncate(width, overflow="ellipsis")
        yield line
        yield [Segment(text.plain, Style(dim=True))]


@dataclass(frozen=True)
class _Column:
    title: str
    cell: Callable[[GroupFigures], Text]
    max_width: int | None = None


def _table(groups: list[GroupFigures], columns: Sequence[_Column], sentences: dict[str, str] | None) -> Table:
    """One line a group, or more where its sentence is a column and long."""
    headers = [
        Column(column.title, justify="left" if number < 2 else "right", no_wrap=True, max_width=column.max_width)
        for number, column in enumerate(columns)
    ]
    if sentences is not None:
        headers.append(Column("\nwhat it shows", style="dim"))
    table = Table(*headers, box=box.SIMPLE_HEAD, show_edge=False, padding=0, collapse_padding=True)
    for group in groups:
        cells = [column.cell(group) for column in columns]
        table.add_row(*cells, *([] if sentences is None else [" " + sentences[group.group_id]]))
    return table


def _whole(number: float | None, *, noteworthy: bool = False) -> Text:
    return _known("?" if number is None else f"{number:.0f}", noteworthy=noteworthy)


def _known(shown: str | None, *, noteworthy: bool = False) -> Text:
    return Text(printable(shown or "?"), _NOTEWORTHY if noteworthy else "")


def printable(name: str) -> str:
    """A name that a client chose, fit for a terminal: no line feeds, no escape sequences."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


def _ratio(group: GroupFigures) -> Text:
    ratio = group.max_to_mean_ratio
    return _known(None if ratio is None else f"{ratio:.2f}", noteworthy=(ratio or 0) >= _UNFAIR_RATIO)


def _partitions(group: GroupFigures) -> Text:
    fewest, most = group.min_partitions, group.max_partitions
    if fewest is None or most is None:
        return _known(None)
    return _whole(most) if fewest == most else Text(f"{fewest:.0f}–{most:.0f}")  # noqa: RUF001 - a range's own dash


_GROUP = _Column("\ngroup", lambda group: Text(printable(group.group_id), "bold"))
_MEMBERS = _Column("\nmembers", lambda group: _whole(group.members))
_FIGURES = (
    _Column("rebal-\nances", lambda group: _whole(group.rebalances)),
    _Column("partitions\nper member", _partitions),
    _Column("max/\nmean", _ratio),
    _Column("\ndrift", lambda group: _whole(group.drift_partitions, noteworthy=bool(group.drift_partitions))),
    _Column("\nlag", lambda group: _whole(group.lag)),
)
_COLUMNS = (
    _GROUP,
    _Column("\nstrategy", lambda group: _known(group.strategy)),
    _Column("\nstate", lambda group: _known(group.state)),
    _MEMBERS,
    _Column("\nidle", lambda group: _whole(group.idle_members, noteworthy=bool(group.idle_members))),
    _Column("gener-\nation", lambda group: _whole(group.generation)),
    *_FIGURES,
)
_NARROW_COLUMNS = (
    _GROUP,
    _Column("\nstrategy", lambda group: _known(group.strategy), max_width=13),
    _MEMBERS,
    *_FIGURES,
)
