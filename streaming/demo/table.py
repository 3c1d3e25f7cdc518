"""Render the table of groups. Each group has a row, and a sentence about the behaviour that the group shows."""

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

_MIN_WIDTH_FOR_SENTENCES = 140
_MIN_WIDTH_FOR_ALL_COLUMNS = 99
_OTHER_GROUP = "a group outside the demo"
_HIGHLIGHT = "bold red"


@dataclass(frozen=True)
class GroupTable:
    """The table of groups: first all demo groups, then all other groups.

    The table includes demo groups that the monitor does not report yet. On a wide terminal, the sentences are a column.
    On a narrow terminal, each sentence is a separate line. If the table would have more than `max_lines` lines, it has
    no separate lines.
    """

    figures: Figures
    max_lines: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table in the available width."""
        sentences = _sentences(self.figures)
        groups = [self.figures.groups.get(group_id, GroupFigures(group_id)) for group_id in sentences]
        columns = _COLUMNS if options.max_width >= _MIN_WIDTH_FOR_ALL_COLUMNS else _NARROW_COLUMNS
        is_wide = options.max_width >= _MIN_WIDTH_FOR_SENTENCES
        table = _table(groups, columns, sentences if is_wide else None)
        lines = console.render_lines(table, options, pad=False)
        if not is_wide and (self.max_lines is None or self.max_lines >= len(lines) + len(groups)):
            lines = list(_with_sentences(lines, list(sentences.values()), options.max_width))
        for line in lines:
            yield from line
            yield Segment.line()


def _sentences(figures: Figures) -> dict[str, str]:
    demo_groups = {group.group_id: group.shows for group in DEMO_GROUPS}
    others = [group_id for group_id in sorted(figures.groups) if group_id not in demo_groups]
    return {**demo_groups, **dict.fromkeys(others, _OTHER_GROUP)}


def _with_sentences(lines: list[list[Segment]], sentences: list[str], width: int) -> Iterator[list[Segment]]:
    """Put each sentence below the line of its group. The lines of the groups are at the end of `lines`."""
    header_count = len(lines) - len(sentences)
    yield from lines[:header_count]
    for line, sentence in zip(lines[header_count:], sentences, strict=True):
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
    """Return the table. In a table with a column of sentences, a long sentence makes its row several lines high."""
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


def _number(number: float | None, *, is_highlighted: bool = False) -> Text:
    return _text("?" if number is None else f"{number:.0f}", is_highlighted=is_highlighted)


def _text(text: str | None, *, is_highlighted: bool = False) -> Text:
    return Text(printable(text or "?"), _HIGHLIGHT if is_highlighted else "")


def printable(name: str) -> str:
    """Replace the control characters in a name that a client chose, for example line feeds and escape sequences."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)


_GROUP = _Column("\ngroup", lambda group: Text(printable(group.group_id), "bold"))
_MEMBERS = _Column("\nmembers", lambda group: _number(group.members))
_FIGURES = (
    _Column("rebal-\nances", lambda group: _number(group.rebalances)),
    _Column("busiest\nmember", lambda group: _number(group.max_partitions)),
    _Column("\nexcess", lambda group: _number(group.excess_partitions, is_highlighted=bool(group.excess_partitions))),
    _Column("\ndrift", lambda group: _number(group.drift_partitions, is_highlighted=bool(group.drift_partitions))),
    _Column("\nlag", lambda group: _number(group.lag)),
)
_COLUMNS = (
    _GROUP,
    _Column("\nstrategy", lambda group: _text(group.strategy)),
    _Column("\nstate", lambda group: _text(group.state)),
    _MEMBERS,
    _Column("\nidle", lambda group: _number(group.idle_members, is_highlighted=bool(group.idle_members))),
    _Column("gener-\nation", lambda group: _number(group.generation)),
    *_FIGURES,
)
_NARROW_COLUMNS = (
    _GROUP,
    _Column("\nstrategy", lambda group: _text(group.strategy), max_width=13),
    _MEMBERS,
    *_FIGURES,
)
