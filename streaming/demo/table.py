"""Renders the table of groups. Each group has a row and a sentence."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from streaming.demo.figures import Figures, GroupFigures
from streaming.demo.groups import DEMO_GROUPS
from streaming.group.printable import printable

_MIN_WIDTH_FOR_SENTENCES = 140
_MIN_WIDTH_FOR_ALL_COLUMNS = 99
_OTHER_GROUP = "a group outside the demo"
_HIGHLIGHT = "bold red"
_SHOWN_BY = {group.group_id: group.shows for group in DEMO_GROUPS}

_Lines = list[list[Segment]]


@dataclass(frozen=True)
class GroupTable:
    """The table of groups: first all demo groups, then all other groups.

    The table includes demo groups that the monitor does not report yet. Each group has a sentence about the cause of
    its lag or about its typical behaviour. There are three layouts: a column with the sentences, a separate line for
    each sentence, and no sentences. The table has the first layout that fits into the terminal and into `max_lines`
    lines.
    """

    figures: Figures
    max_lines: int | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the first layout that fits. If no layout fits, render the last layout."""
        lines: _Lines = []
        for lines in self._forms(console, options):
            if self.max_lines is None or len(lines) <= self.max_lines:
                break
        for line in lines:
            yield from line
            yield Segment.line()

    def _forms(self, console: Console, options: ConsoleOptions) -> Iterator[_Lines]:
        groups = _groups(self.figures)
        sentences = [_sentence(group) for group in groups]
        columns = _COLUMNS if options.max_width >= _MIN_WIDTH_FOR_ALL_COLUMNS else _NARROW_COLUMNS
        if options.max_width >= _MIN_WIDTH_FOR_SENTENCES:
            yield console.render_lines(_table(groups, columns, sentences), options, pad=False)
        lines = console.render_lines(_table(groups, columns), options, pad=False)
        yield list(_with_sentences(lines, sentences, console, options))
        yield lines


def _groups(figures: Figures) -> list[GroupFigures]:
    known = {group.group_id: group for group in figures.groups}
    demo_groups = [group.group_id for group in DEMO_GROUPS]
    others = sorted(known.keys() - set(demo_groups))
    return [known.get(group_id, GroupFigures(group_id)) for group_id in (*demo_groups, *others)]


def _sentence(group: GroupFigures) -> Text:
    if group.cause is not None:
        return Text(f"cause of lag: {printable(group.cause.text)}", "red")
    return Text(_SHOWN_BY.get(group.group_id, _OTHER_GROUP), "dim")


def _with_sentences(
    lines: _Lines, sentences: list[Text], console: Console, options: ConsoleOptions
) -> Iterator[list[Segment]]:
    """Put each sentence below the line of its group. The lines of the groups are at the end of `lines`."""
    header_count = len(lines) - len(sentences)
    yield from lines[:header_count]
    for line, sentence in zip(lines[header_count:], sentences, strict=True):
        text = Text.assemble("  ", sentence)
        text.truncate(options.max_width, overflow="ellipsis")
        yield line
        yield from console.render_lines(text, options, pad=False)


@dataclass(frozen=True)
class _Column:
    title: str
    cell: Callable[[GroupFigures], Text]
    max_width: int | None = None


def _table(groups: list[GroupFigures], columns: Sequence[_Column], sentences: Sequence[Text] = ()) -> Table:
    headers = [
        Column(column.title, justify="left" if number < 2 else "right", no_wrap=True, max_width=column.max_width)
        for number, column in enumerate(columns)
    ]
    if sentences:
        headers.append(Column("\nwhat it shows"))
    table = Table(*headers, box=box.SIMPLE_HEAD, show_edge=False, padding=0, collapse_padding=True)
    for number, group in enumerate(groups):
        cells = [column.cell(group) for column in columns]
        table.add_row(*cells, *(Text.assemble(" ", sentence) for sentence in sentences[number : number + 1]))
    return table


def _number(number: int | None, style: str = "") -> Text:
    return Text("?" if number is None else str(number), style)


def _problem(number: int | None) -> Text:
    """Return a number that is highlighted if it is not 0."""
    return _number(number, _HIGHLIGHT if number else "")


def _text(text: str | None) -> Text:
    return Text(printable(text or "?"))


_GROUP = _Column("\ngroup", lambda group: Text(printable(group.group_id), "bold"), max_width=24)
"""The name of a group can have any length, but the other columns must still fit."""
_MEMBERS = _Column("\nmembers", lambda group: _number(group.member_count))
_FIGURES = (
    _Column("rebal-\nances", lambda group: _number(group.rebalances_total)),
    _Column("busiest\nmember", lambda group: _number(group.shares.max_partitions)),
    _Column("\nexcess", lambda group: _problem(group.shares.excess_partitions)),
    _Column("\ndrift", lambda group: _problem(group.drift_partitions)),
    _Column("\nlag", lambda group: _number(group.lag)),
)
_COLUMNS = (
    _GROUP,
    _Column("\nstrategy", lambda group: _text(group.protocol)),
    _Column("\nstate", lambda group: _text(group.state)),
    _MEMBERS,
    _Column("\nidle", lambda group: _problem(group.shares.idle_members)),
    _Column("gener-\nation", lambda group: _number(group.generation_id)),
    *_FIGURES,
)
_NARROW_COLUMNS = (
    _GROUP,
    _Column("\nstrategy", lambda group: _text(group.protocol), max_width=13),
    _MEMBERS,
    *_FIGURES,
)
