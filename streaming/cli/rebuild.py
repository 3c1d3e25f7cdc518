"""`rebalance-monitor rebuild`: a new checkpoint from topic and tables."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from streaming.cli.logs import redacted, settings_of, start_logging
from streaming.cli.run import config_option
from streaming.config.load import forget_secrets
from streaming.errors import RemedyError


@click.command()
@click.option("--cluster", metavar="NAME", help="Whose checkpoint, where several clusters are configured.")
@click.option(
    "--repair-tables",
    "is_repairing",
    is_flag=True,
    help="Repair damaged tables first. What is taken out of a table is kept beside it.",
)
@config_option
def rebuild(cluster: str | None, is_repairing: bool, file: Path | None) -> None:
    """Make a new checkpoint from topic and tables, keeping totals; the old one is moved aside.

    Needed when a checkpoint is damaged, of another version, or bound to settings you want to change. The next run reads
    the topic from its start: rows that the tables have are not written again, counters go on from where they were.
    Of several clusters it is that of one; the others' stay as they are.

    Damaged tables are refused: nothing changes then. --repair-tables restores each to its last good version, or takes
    damaged files out, or moves the table aside and begins a new one; it prints which. Rows of records that the topic
    still has are written again by the next run, of this cluster; other rows that were taken out stay out.

    Exit codes: 0 rebuilt; 1 not rebuilt, and another try may go well; 78 not rebuilt, and no try will until somebody
    changes something. Then the old checkpoint is where it was.
    """
    start_logging("INFO")
    try:
        from streaming.run.rebuild import rebuild_checkpoint  # noqa: PLC0415 - Spark is slow to import

        settings = settings_of(file)
        forget_secrets()
        stamp = time.strftime("%Y%m%dT%H%M%S")
        rebuilt = rebuild_checkpoint(settings.of_cluster(cluster), stamp, is_repairing=is_repairing)
    except RemedyError as error:
        click.ClickException(redacted(str(error))).show()
        sys.exit(error.exit_code)
    for repair in rebuilt.repairs:
        click.echo(redacted(repair))
    old = rebuilt.old_checkpoint
    click.echo(redacted(f"the old checkpoint is {old}") if old else "there was no checkpoint before")
    click.echo("a new checkpoint is ready; `rebalance-monitor run` reads the topic from its start")
