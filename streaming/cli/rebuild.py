"""`rebalance-monitor rebuild` creates a new checkpoint from the tables."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click

from streaming.cli.run import config_option
from streaming.cli.text.logs import load_settings_and_redact, redact, start_logging
from streaming.config.load import forget_secrets
from streaming.errors import RemedyError


@click.command()
@click.option("--cluster", metavar="NAME", help="Name of the cluster. Required if several clusters are configured.")
@click.option(
    "--repair-tables",
    "is_repairing",
    is_flag=True,
    help="Repair damaged tables first. The repair moves damaged files to a separate folder, but deletes no file.",
)
@config_option
def rebuild(cluster: str | None, is_repairing: bool, file: Path | None) -> None:
    """Create a new checkpoint from the tables. The counters of rebalances keep their values.

    Use this command if a checkpoint is damaged or belongs to a different version of the monitor. Also use this command
    if you must change a setting that is fixed for an existing checkpoint. The command renames the old checkpoint. The
    next `rebalance-monitor run` reads __consumer_offsets from its start, but does not write rows that the tables
    already contain. With source.kind = "admin-api", this run requests the state of all groups instead. If several
    clusters are configured, the command rebuilds the checkpoint of only one cluster.

    The command fails while a monitor uses the checkpoint. If a running monitor reports that it cannot watch the
    cluster, you do not need to stop the monitor. It uses the new checkpoint at its next try.

    If tables are damaged, the command fails and changes nothing. With --repair-tables, the command first repairs each
    damaged table and prints a description of the repair. A repair restores the last good version of a table, removes
    damaged files from the table, or replaces the whole table by a new table. The next `run` writes removed
    rows again if they are newer than the last remaining row of their group, and if __consumer_offsets still contains
    their records. Most other removed rows are lost. If the repair may also have removed rows of a different cluster,
    `run` reports this and does not watch that cluster. Then also rebuild the checkpoint of that cluster. The command
    refuses a repair while a monitor writes to the tables.

    The exit code is 0 if the checkpoint was rebuilt. The exit code is 1 if the rebuild failed and a second try may
    help. The exit code is 78 if you must fix the reported error before you try again. If the command fails, the old
    checkpoint keeps its name.
    """
    start_logging("info")
    try:
        from streaming.run.rebuild import rebuild_checkpoint  # noqa: PLC0415 - importing Spark is slow

        settings = load_settings_and_redact(file)
        forget_secrets()
        stamp = time.strftime("%Y%m%dT%H%M%S")
        report_repair = (lambda repair: click.echo(redact(repair))) if is_repairing else None
        old = rebuild_checkpoint(settings.of_cluster(cluster), stamp, report_repair)
    except RemedyError as error:
        click.ClickException(redact(str(error))).show()
        sys.exit(error.exit_code)
    click.echo(redact(f"the old checkpoint is {old}") if old else "there was no checkpoint before")
    click.echo("a new checkpoint is ready: start `rebalance-monitor run`, if it is not running")
