"""`rebalance-monitor history` describes the last rebalances of a group in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from streaming.cli.run import config_option
from streaming.cli.text.conditions import Row, active_sentence, change_sentence, change_time
from streaming.cli.text.logs import load_settings_and_redact
from streaming.cli.text.terminal import escape_text, output_console
from streaming.errors import RemedyError
from streaming.evaluation.rebalances.rebalance_words import describe_rebalance

if TYPE_CHECKING:
    from streaming.cli.text.stored import History


@click.command()
@click.argument("group")
@click.option("--last", default=20, show_default=True, type=click.IntRange(1), help="Maximum number of rebalances.")
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="For each rebalance, print one line with a JSON object. The object contains all columns of the table"
    " `rebalances`. With --at or --between, print the JSON document of the API.",
)
@click.option("--at", metavar="TIME", help="Show the group at this time in UTC, for example 2026-11-22T22:04.")
@click.option(
    "--between",
    nargs=2,
    metavar="A B",
    help="Compare two generations of the group. Each of A and B is a generation (for example 41) or a time in UTC.",
)
@click.option("--tables", metavar="PATH", help="Folder of the tables [default: paths.tables in the settings].")
@click.option("--cluster", metavar="NAME", help="Show only this cluster [default: all clusters in the tables].")
@config_option
def history(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    group: str,
    last: int,
    as_json: bool,
    at: str | None,
    between: tuple[str, str] | None,
    tables: str | None,
    cluster: str | None,
    file: Path | None,
) -> None:
    """Describe the last rebalances of GROUP. Times are UTC.

    For each rebalance, the output shows the time, the cause, the members, the moved partitions, the necessary moves and
    the fairness. The output also shows the start and the end of each condition, for example of a rebalance storm. The
    lines are sorted by time. Conditions that are still active come last.

    With --at TIME, the output shows the state of the group at TIME, for example the members and the lag. With
    --between, the output shows the members that joined or left, and the partitions that each member lost or gained.

    The command reads only the tables, so you can run it while the monitor runs.
    """
    if at is not None and between is not None:
        raise click.UsageError("--at and --between cannot be used together")
    try:
        root = tables or load_settings_and_redact(file).paths.tables
        if at is not None or between is not None:
            _print_past(root, cluster, group, at, between, as_json=as_json)
            return
        from streaming.cli.text.stored import read_history  # noqa: PLC0415 - a slow import would slow down --help

        history = read_history(root, cluster, group, last)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        for row in history.rebalances:
            click.echo(json.dumps(row, default=str, ensure_ascii=True))
        return
    for line in _lines(history):
        output_console().print(line, highlight=False, soft_wrap=True)


def _print_past(  # noqa: PLR0913 - the options of the command
    root: str, cluster: str | None, group: str, at: str | None, between: tuple[str, str] | None, *, as_json: bool
) -> None:
    from streaming.cli.text.past import lines_at, lines_between  # noqa: PLC0415 - a slow import would slow down --help

    lines = (
        lines_between(root, cluster, group, between or (), as_json=as_json)
        if at is None
        else lines_at(root, cluster, group, at, as_json=as_json)
    )
    for line in lines:
        if as_json:
            click.echo(line)
        else:
            output_console().print(line, highlight=False, soft_wrap=True)


def _lines(history: History) -> Iterator[str]:
    show_cluster = len({row["cluster"] for row in history.rebalances}) > 1

    def prefix(row: Row) -> str:
        return f"{escape_text(row['cluster'])}  " if show_cluster else ""

    lines = []
    for row, problems in zip(history.rebalances, history.problems, strict=True):
        description = "; ".join([escape_text(describe_rebalance(row)), *problems])
        lines.append((row["record_time"], row, f"generation {row['generation_id']}: {description}"))
    lines += [(change_time(row), row, change_sentence(row)) for row in history.changes]
    for when, row, text in sorted(lines, key=itemgetter(0)):
        at = when.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        yield f"{at}  {prefix(row)}{text}"
    yield from (f"{prefix(row)}{active_sentence(row)}" for row in history.active)
