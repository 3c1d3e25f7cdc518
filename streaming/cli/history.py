"""`rebalance-monitor history`: the last rebalances of a group, in sentences."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import click

from streaming.cli.logs import settings_of
from streaming.cli.run import config_option
from streaming.cli.text.conditions import Row, active_rows, active_sentence, change_sentence, condition_changes
from streaming.cli.text.fairness import unfairness
from streaming.cli.text.gaps import gaps_of
from streaming.cli.text.shown import output_console, shown
from streaming.errors import RemedyError
from streaming.evaluation.fairness.imbalance import MEMBER, PARTITIONS, Imbalance
from streaming.evaluation.rebalances.rebalance_words import (
    describe_rebalance,
    with_commit_gaps,
    without_upgrade_tombstones,
)

_Position = tuple[str, int, int]


@click.command()
@click.argument("group")
@click.option("--last", default=20, show_default=True, type=click.IntRange(1), help="Maximum number of rebalances.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line for each row, with every column.")
@click.option("--tables", metavar="PATH", help="Folder of the tables [default: paths.tables of the settings].")
@click.option("--cluster", metavar="NAME", help="Use only this cluster, if the tables hold several.")
@config_option
def history(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    group: str, last: int, as_json: bool, tables: str | None, cluster: str | None, file: Path | None
) -> None:
    """Describe the last rebalances of GROUP. Times are UTC.

    For each rebalance: time, cause, members, moved partitions, necessary moves and fairness. The start and end of each
    condition are listed between the rebalances. Conditions that are still active come last.

    The command reads the tables `rebalances`, `commit_gaps`, `assignment_imbalance` and `group_conditions`. The monitor
    can run at the same time.
    """
    try:
        history = _read_history(group, tables or settings_of(file).paths.tables, cluster, last)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        for row in history.rebalances:
            click.echo(json.dumps(row, default=str, ensure_ascii=True))
        return
    several = len({row["cluster"] for row in history.rebalances}) > 1
    for line in _lines(history, several=several):
        output_console().print(line, highlight=False, soft_wrap=True)


@dataclass(frozen=True, slots=True)
class _History:
    """The last rows of `rebalances`, those of `group_conditions` since then, and those that began and did not end.

    `unfair` has phrases by the position of a row of `rebalances`.
    """

    rebalances: Sequence[Row]
    unfair: Mapping[_Position, Sequence[str]]
    changes: Sequence[Row]
    standing: Sequence[Row]


def _read_history(group: str, root: str, cluster: str | None, last: int) -> _History:
    rebalances = _rows(group, root, cluster)[-last:]
    changes, standing = condition_changes(root, cluster, group), active_rows(root, cluster, group)
    if not rebalances and not changes:
        raise RemedyError(
            f"{root} has no rebalance of {group!r}: `rebalance-monitor groups` lists the groups there are"
        )
    if rebalances:
        changes = [row for row in changes if row["sampled_time"] >= rebalances[0]["record_time"]]
    return _History(rebalances, _unfair(group, root, cluster), changes, standing)


def _lines(history: _History, *, several: bool) -> Iterator[str]:
    """Everything in the order of time, and at last what holds now."""
    lines = []
    for row in history.rebalances:
        said = "; ".join([shown(describe_rebalance(row)), *history.unfair.get(_position(row), ())])
        lines.append((row["record_time"], row, f"generation {row['generation_id']}: {said}"))
    lines += [(row["sampled_time"], row, change_sentence(row)) for row in history.changes]
    for when, row, text in sorted(lines, key=itemgetter(0)):
        at = when.isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        yield f"{at}  {_of_cluster(row, several=several)}{text}"
    for row in history.standing:
        yield f"{_of_cluster(row, several=several)}{active_sentence(row)}"


def _of_cluster(row: Row, *, several: bool) -> str:
    return f"{shown(row['cluster'])}  " if several else ""


def _rows(group: str, root: str, cluster: str | None) -> Sequence[Row]:
    from streaming.delta.stored import stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.delta.tables import REBALANCES  # noqa: PLC0415 - as above

    rows = stored_rows(root, REBALANCES, group_id=group, cluster=cluster)
    if not rows:
        return ()
    with_their_gaps = sorted(with_commit_gaps(rows, gaps_of(group, root, cluster)), key=itemgetter("cluster"))
    history = (without_upgrade_tombstones(list(of)) for _, of in groupby(with_their_gaps, key=itemgetter("cluster")))
    return list(merge(*history, key=itemgetter("record_time")))


def _position(row: Row) -> _Position:
    return row["cluster"], row["offsets_topic_partition"], row["offsets_topic_offset"]


def _unfair(group: str, root: str, cluster: str | None) -> Mapping[_Position, Sequence[str]]:
    """What is not as fair as can be, by the record that assigned it so."""
    from streaming.delta.stored import NoTableError, stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.delta.tables import ASSIGNMENT_IMBALANCE  # noqa: PLC0415 - as above

    try:
        rows = stored_rows(
            root, ASSIGNMENT_IMBALANCE, group_id=group, cluster=cluster, measure=PARTITIONS, scope=MEMBER
        )
    except NoTableError:
        return {}
    measures = Imbalance.__struct_fields__
    return {
        _position(row): list(
            unfairness(Imbalance(**{name: row[name] for name in measures}), (row["topic_skew"] or {}).get("topics", 0))
        )
        for row in rows
    }
