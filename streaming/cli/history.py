"""`rebalance-monitor history` describes the last rebalances of a group in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import click

from streaming.cli.run import config_option
from streaming.cli.text.conditions import Row, active_sentence, change_sentence
from streaming.cli.text.fairness import fairness_problems
from streaming.cli.text.logs import load_settings_and_redact
from streaming.cli.text.terminal import escape_text, output_console
from streaming.errors import RemedyError
from streaming.evaluation.rebalances.rebalance_words import (
    describe_rebalance,
    with_commit_gaps,
    without_upgrade_tombstones,
)

_Position = tuple[str, int, int]


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
        history = _read_history(group, root, cluster, last)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        for row in history.rebalances:
            click.echo(json.dumps(row, default=str, ensure_ascii=True))
        return
    show_cluster = len({row["cluster"] for row in history.rebalances}) > 1
    for line in _lines(history, show_cluster=show_cluster):
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


@dataclass(frozen=True, slots=True)
class _History:
    """The rows that the command prints.

    `rebalances` contains the last rows of the table `rebalances`. `changes` contains the rows of `group_conditions`
    since the first rebalance in `rebalances`. `active` contains the conditions that have not ended. `problems` contains
    the fairness problems after each rebalance. The keys of `problems` are the positions of the rebalances' records in
    `__consumer_offsets`.
    """

    rebalances: Sequence[Row]
    problems: Mapping[_Position, Sequence[str]]
    changes: Sequence[Row]
    active: Sequence[Row]


def _read_history(group: str, root: str, cluster: str | None, last: int) -> _History:
    from streaming.cli.text.stored import (  # noqa: PLC0415 - a slow import would slow down --help
        no_row_error,
        read_active_conditions,
        read_condition_changes,
    )

    rebalances = _read_rebalances(group, root, cluster)[-last:]
    changes, active = read_condition_changes(root, cluster, group), read_active_conditions(root, cluster, group)
    if not rebalances and not changes:
        raise no_row_error(root, cluster, group, "no rebalance")
    if rebalances:
        changes = [row for row in changes if row["sampled_time"] >= rebalances[0]["record_time"]]
    return _History(rebalances, _read_fairness_problems(group, root, cluster), changes, active)


def _lines(history: _History, *, show_cluster: bool) -> Iterator[str]:
    lines = []
    for row in history.rebalances:
        description = "; ".join([escape_text(describe_rebalance(row)), *history.problems.get(_position(row), ())])
        lines.append((row["record_time"], row, f"generation {row['generation_id']}: {description}"))
    lines += [(row["sampled_time"], row, change_sentence(row)) for row in history.changes]
    for when, row, text in sorted(lines, key=itemgetter(0)):
        at = when.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        yield f"{at}  {_cluster_prefix(row, show_cluster=show_cluster)}{text}"
    for row in history.active:
        yield f"{_cluster_prefix(row, show_cluster=show_cluster)}{active_sentence(row)}"


def _cluster_prefix(row: Row, *, show_cluster: bool) -> str:
    return f"{escape_text(row['cluster'])}  " if show_cluster else ""


def _read_rebalances(group: str, root: str, cluster: str | None) -> Sequence[Row]:
    from streaming.cli.text.stored import read_commit_gaps  # noqa: PLC0415 - a slow import would slow down --help
    from streaming.delta.stored import stored_rows  # noqa: PLC0415 - as above
    from streaming.delta.tables import REBALANCES  # noqa: PLC0415 - as above

    rows = stored_rows(root, REBALANCES, group_id=group, cluster=cluster)
    if not rows:
        return ()
    rows_with_gaps = sorted(with_commit_gaps(rows, read_commit_gaps(root, cluster, group)), key=itemgetter("cluster"))
    by_cluster = groupby(rows_with_gaps, key=itemgetter("cluster"))
    histories = (without_upgrade_tombstones(list(cluster_rows)) for _, cluster_rows in by_cluster)
    return list(merge(*histories, key=itemgetter("record_time")))


def _position(row: Row) -> _Position:
    return row["cluster"], row["offsets_topic_partition"], row["offsets_topic_offset"]


def _read_fairness_problems(group: str, root: str, cluster: str | None) -> Mapping[_Position, Sequence[str]]:
    """Return the fairness problems of each assignment.

    The keys of the result are the positions of the assignments' records.
    """
    from streaming.cli.text.stored import read_imbalances  # noqa: PLC0415 - a slow import would slow down --help
    from streaming.past.rows import imbalance  # noqa: PLC0415 - as above

    return {
        _position(row): list(fairness_problems(imbalance(row), (row["topic_skew"] or {}).get("topics", 0)))
        for row in read_imbalances(root, cluster, group)
    }
