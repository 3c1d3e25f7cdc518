"""`rebalance-monitor compare` shows the results of all strategies for one group in a table."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, BinaryIO

import click
from rich.table import Column, Table

from assignors import AssignorFailedError
from assignors.fairness.measures import measure
from assignors.what_if.comparison import compare as compare_strategy
from assignors.what_if.comparison import current_assignment, format_sizes
from assignors.what_if.scenario import ScenarioError, decode_line, parse_group, scenario_id
from streaming.cli.assign import assignor_option
from streaming.cli.text.terminal import escape_text, print_tables
from streaming.custom.catalogue import Catalogue

if TYPE_CHECKING:
    from assignors.fairness.measures import Measures
    from assignors.model import GroupSpec

COLUMNS = ("sizes", "imbalance", "score", "topic spread", "moves", "kept", "idle", "rounds")
MAX_IDLE_NAMES = 3


@click.command()
@click.argument("file", type=click.File("rb"))
@click.option("--id", "wanted_id", help="Id of the scenario. Required if FILE contains several scenarios.")
@assignor_option
def compare(file: BinaryIO, wanted_id: str | None, references: tuple[str, ...]) -> None:
    """Compare the assignments of all strategies for the scenario in FILE.

    If FILE is "-", read standard input. To see the format of a scenario, run `rebalance-monitor assign --help`. Columns
    of the output:

    \b
    sizes          partitions of each member; 2x3 means that two members have three partitions each
    imbalance      difference in partitions between the busiest and the least busy member
    score          sum of the differences in partitions between all pairs of members; 0 is best
    topic spread   largest difference in partitions of one topic between two subscribers
    moves          number of partitions that change their current owner
    kept           number of partitions that keep their current owner
    idle           number of members without a partition
    rounds         number of rebalances until the group has the assignment
    """  # noqa: D301 - click keeps the lines after a real backspace character
    try:
        group = parse_group(_read_scenario(file.read(), wanted_id))
        table = Table(Column("strategy", no_wrap=True), *COLUMNS)
        if any(member.owned for member in group.members):
            table.add_row("(owned now)", *_measure_cells(measure(group, current_assignment(group))), "")
        with closing(Catalogue(references)) as catalogue:
            for name in catalogue.names():
                table.add_row(*_strategy_row(name, group, catalogue))
    except (ScenarioError, AssignorFailedError) as error:
        raise click.ClickException(str(error)) from error
    print_tables(table)


def _strategy_row(name: str, group: GroupSpec, catalogue: Catalogue) -> tuple[str, ...]:
    try:
        comparison = compare_strategy(group, catalogue.assignor(name))
    except AssignorFailedError as error:
        return escape_text(name), escape_text(str(error).splitlines()[0])
    return (escape_text(name), *_measure_cells(comparison.measures), str(comparison.rounds))


def _measure_cells(measures: Measures) -> tuple[str, ...]:
    topic, spread = max(measures.topic_spread.items(), key=lambda item: item[1], default=("", 0))
    idle = measures.idle_members
    names = [*map(escape_text, idle[:MAX_IDLE_NAMES]), *(["..."] if len(idle) > MAX_IDLE_NAMES else [])]
    return (
        format_sizes(measures.sizes),
        str(measures.max_minus_min),
        str(measures.balance_score),
        f"{spread} ({escape_text(topic)})" if spread else "0",
        str(measures.moves),
        str(measures.kept),
        f"{len(idle)} ({', '.join(names)})" if idle else "0",
    )


def _read_scenario(text: bytes, wanted_id: str | None) -> object:
    """Return the scenario with the id `wanted_id`, or the only scenario.

    `text` contains a single object, or one object on each line.
    """
    try:
        scenarios = [decode_line(text)]
    except ScenarioError:
        scenarios = [decode_line(line) for line in text.split(b"\n") if line.strip()]
    if wanted_id is not None:
        scenarios = [fields for fields in scenarios if scenario_id(fields) == wanted_id]
    if len(scenarios) != 1:
        hint = f" with id {wanted_id!r}" if wanted_id else ": choose one with --id"
        raise ScenarioError(f"the input contains {len(scenarios)} scenarios{hint}")
    return scenarios[0]
