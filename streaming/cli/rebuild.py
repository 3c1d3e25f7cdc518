"""`rebalance-monitor rebuild`: a new checkpoint from topic and tables."""

from __future__ import annotations

import time
from pathlib import Path

import click

from streaming.cli.logs import start_logging
from streaming.cli.run import config_option
from streaming.config.load import forget_secrets, load_settings
from streaming.errors import RemedyError


@click.command()
@click.option("--cluster", metavar="NAME", help="Whose checkpoint, where several clusters are configured.")
@config_option
def rebuild(cluster: str | None, file: Path | None) -> None:
    """Make a new checkpoint from topic and tables, keeping totals; the old one is moved aside.

    Needed when a checkpoint is damaged, of another version, or bound to settings you want to change. The next run reads
    the topic from its start: rows that the tables have are not written again, counters go on from where they were.
    Of several clusters it is that of one; the others' stay as they are.
    """
    start_logging("INFO")
    try:
        from streaming.run.rebuild import rebuild_checkpoint  # noqa: PLC0415 - Spark is slow to import

        settings = load_settings(file)
        forget_secrets()
        moved_to = rebuild_checkpoint(settings.of_cluster(cluster), time.strftime("%Y%m%dT%H%M%S"))
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"the old checkpoint is {moved_to}" if moved_to else "there was no checkpoint before")
    click.echo("a new checkpoint is ready; `rebalance-monitor run` reads the topic from its start")
