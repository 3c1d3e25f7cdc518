"""`rebalance-monitor history`: the last rebalances of a group, in sentences."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from streaming.cli.run import config_option
from streaming.cli.shown import output_console, shown
from streaming.config.load import load_settings
from streaming.errors import RemedyError
from streaming.judgement.rebalance_words import Row, sentence, without_upgrades_ends


@click.command()
@click.argument("group")
@click.option("--last", default=20, show_default=True, type=click.IntRange(1), help="How many of them, at most.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a row and line, every column.")
@click.option("--tables", metavar="PATH", help="Folder of the tables [default: paths.tables of the settings].")
@click.option("--cluster", metavar="NAME", help="Only this cluster, where the tables hold several.")
@config_option
def history(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    group: str, last: int, as_json: bool, tables: str | None, cluster: str | None, file: Path | None
) -> None:
    """Tell the last rebalances of GROUP: when, why, who, what moved and what had to. Times are UTC.

    Reads the table `rebalances`; the monitor may run meanwhile, or not.
    """
    try:
        rows = _rows(group, tables or load_settings(file).paths.tables, cluster)[-last:]
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    if as_json:
        for row in rows:
            click.echo(json.dumps(row, default=str, ensure_ascii=True))
        return
    several = len({row["cluster"] for row in rows}) > 1
    for row in rows:
        of_cluster = f"{shown(row['cluster'])}  " if several else ""
        when = row["record_time"].isoformat(sep=" ", timespec="milliseconds").removesuffix("+00:00")
        line = f"{when}  {of_cluster}generation {row['generation_id']}: {shown(sentence(row))}"
        output_console().print(line, highlight=False, soft_wrap=True)


def _rows(group: str, root: str, cluster: str | None) -> Sequence[Row]:
    from streaming.sinks.stored import stored_rows  # noqa: PLC0415 - slow to import; --help need not wait
    from streaming.sinks.tables import REBALANCES  # noqa: PLC0415 - as above

    rows = stored_rows(root, REBALANCES, group_id=group, cluster=cluster)
    if not rows:
        raise RemedyError(
            f"{root} has no rebalance of {group!r}: `rebalance-monitor groups` lists the groups there are"
        )
    return without_upgrades_ends(rows)
