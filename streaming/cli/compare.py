"""`rebalance-monitor compare`: all strategies for one group, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import click
from rich.table import Column, Table

from assignors import AssignorFailedError
from assignors.fairness.measures import measure
from assignors.what_if.comparison import compare as compare_strategy
from assignors.what_if.comparison import current_assignment, format_sizes
from assignors.what_if.scenario import ScenarioError, decode_line, parse_group, scenario_id
from streaming.cli.assign import assignor_option
from streaming.cli.text.shown import output_console, shown
from streaming.custom.catalogue import Catalogue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from assignors.fairness.measures import Measures
    from assignors.model import GroupSpec

COLUMNS = ("sizes", "imbalance", "score", "topic spread", "moves", "kept", "idle", "rounds")
MOST_IDLE_NAMED = 3


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--id", "wanted", help="Id of the scenario, if FILE has several.")
@assignor_option
def compare(file: BinaryIO, wanted: str | None, references: tuple[str, ...]) -> None:
    """Compare all strategies for the scenario in FILE ("-" is standard input).

    The format of FILE is the input format of `assign`. Columns of the output:

    \b
    sizes          members x partitions: 2x3 is two members with three partitions each
    imbalance      partitions of the largest member minus partitions of the smallest
    score          sum of the differences between all pairs of members
    topic spread   largest difference between two subscribers of one topic
    moves, kept    partitions that change or keep their present owner
    idle           members without a partition
    rounds         rebalances until the assignment is reached
    """  # noqa: D301 - click keeps the lines after a real backspace character
    try:
        group = parse_group(_scenario(file.read(), wanted))
        with Catalogue(references) as catalogue:
            rows = list(_rows(group, catalogue))
    except (ScenarioError, AssignorFailedError) as error:
        raise click.ClickException(str(error)) from error
    table = Table(Column("strategy", no_wrap=True), *COLUMNS)
    for row in rows:
        table.add_row(*row)
    output_console().print(table)


def _rows(group: GroupSpec, catalogue: Catalogue) -> Iterator[tuple[str, ...]]:
    if any(member.owned for member in group.members):
        yield ("(owned now)", *_cells(measure(group, current_assignment(group))), "")
    yield from (_row(name, group, catalogue) for name in catalogue.names())


def _row(name: str, group: GroupSpec, catalogue: Catalogue) -> tuple[str, ...]:
    try:
        compared = compare_strategy(group, catalogue.assignor(name))
    except AssignorFailedError as error:
        return shown(name), shown(str(error).splitlines()[0])
    return (shown(name), *_cells(compared.measures), str(compared.rounds))


def _cells(measures: Measures) -> tuple[str, ...]:
    spread = max(measures.topic_spread.items(), key=lambda item: item[1], default=("", 0))
    return (
        format_sizes(measures.sizes),
        str(measures.max_minus_min),
        str(measures.balance_score),
        f"{spread[1]} ({shown(spread[0])})" if spread[1] else "0",
        str(measures.moves),
        str(measures.kept),
        _idle(measures.idle_members),
    )


def _idle(members: tuple[str, ...]) -> str:
    if not members:
        return "0"
    named = ", ".join(map(shown, members[:MOST_IDLE_NAMED]))
    return f"{len(members)} ({named}{', ...' if len(members) > MOST_IDLE_NAMED else ''})"


def _scenario(text: bytes, wanted: str | None) -> object:
    """Find the one scenario: the whole of the text, or a line of it."""
    try:
        found = [decode_line(text)]
    except ScenarioError:
        found = [decode_line(line) for line in text.split(b"\n") if line.strip()]
    if wanted is not None:
        found = [fields for fields in found if scenario_id(fields) == wanted]
    if len(found) != 1:
        raise ScenarioError(f"{len(found)} scenarios{f' with id {wanted!r}' if wanted else '; choose one with --id'}")
    return found[0]
