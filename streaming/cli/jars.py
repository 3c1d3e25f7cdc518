"""`rebalance-monitor jars` downloads all jars and creates the class archives, so that later commands start faster."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from streaming.child_process import ChildProcess
from streaming.class_archive import ARCHIVES
from streaming.errors import RemedyError
from streaming.jars import BROKER_SETS, FIRST_RUN, JAR_SETS, JarSetName, cache_folder, resolve


@click.command()
@click.option(
    "--every-kafka",
    is_flag=True,
    help=f"Also download the broker jars of these Kafka versions: {', '.join(BROKER_SETS)}.",
)
def jars(*, every_kafka: bool) -> None:
    """Download and verify the jars of Spark, Delta and Kafka, and create class archives.

    Each user of the machine downloads the jars only once. If all files exist already, the command takes about one
    second. Java starts faster with class archives. To create them, the command runs a broker and a monitor once, which
    takes one minute. If this fails, the command prints the reason, and Java starts without class archives.
    """
    console = Console(stderr=True)
    try:
        fetch_jars(console, tuple(JAR_SETS) if every_kafka else FIRST_RUN)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    console.print(f"jars are in {cache_folder() / 'jars'}", highlight=False, soft_wrap=True)
    _create_archives(console)


def _create_archives(console: Console) -> None:
    """Create the class archives in a process that has no settings. On a failure, print its last line."""
    with TemporaryDirectory() as folder, console.status("creating class archives"):
        training = ChildProcess([sys.executable, "-m", "streaming.class_archive_training"], Path(folder, "output"))
        training.wait()
        lines = training.output.read_text(errors="replace").splitlines()
    result = f"class archives are in {cache_folder() / ARCHIVES}" if training.exit_code == 0 else "".join(lines[-1:])
    console.print(result, highlight=False, soft_wrap=True)


def fetch_jars(console: Console, set_names: Iterable[JarSetName] = FIRST_RUN, *, verify: bool = True) -> None:
    """Download the missing jars. On a terminal, show a progress bar. Otherwise, print one line per jar."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    jar = TextColumn("{task.fields[jar]}")
    with Progress(*columns, jar, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks = {set_name: bars.add_task(f"{set_name} jars", total=None, jar="") for set_name in sorted(set_names)}
        for set_name, task in tasks.items():
            jar_files = resolve(set_name, _ProgressDisplay(console, bars, task), verify=verify)
            bars.update(task, total=len(jar_files), completed=len(jar_files), jar="")


class _ProgressDisplay:
    """Callback for `resolve` that shows the progress of one set of jars."""

    def __init__(self, console: Console, bars: Progress, task: TaskID) -> None:
        self._console, self._bars, self._task = console, bars, task

    def __call__(self, set_name: JarSetName, number: int, total: int, jar: str) -> None:
        self._bars.update(self._task, total=total, completed=number - 1, jar=jar)
        if not self._console.is_terminal:
            self._console.print(f"{set_name} jars: {number}/{total} {jar}", highlight=False)
