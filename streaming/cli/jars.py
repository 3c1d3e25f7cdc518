"""`rebalance-monitor jars` downloads all jars and creates the class archives, so that other commands start faster."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streaming.child_process import ChildProcess
from streaming.class_archive import ARCHIVES
from streaming.errors import RemedyError
from streaming.jars import BROKER_SETS, FIRST_RUN, JAR_SETS, JarsError, JarSetName, cache_folder, copy_set, resolve
from streaming.temporary_folder import TemporaryFolderError, raising_temporary_folder_error


@click.command()
@click.option(
    "--every-kafka",
    is_flag=True,
    help=f"Also include the broker jars of these Kafka versions: {', '.join(BROKER_SETS)}.",
)
@click.option(
    "--to",
    "target",
    type=click.Path(path_type=Path, readable=False),  # our own error has the remedy
    metavar="FOLDER",
    help="Also copy the jars into this folder, so that a machine without internet access can use them.",
)
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path, readable=False),  # our own error has the remedy
    metavar="FOLDER",
    help="Copy the jars from this folder instead of downloading them. The option --to creates this folder.",
)
def jars(*, every_kafka: bool, target: Path | None, source: Path | None) -> None:
    """Download and verify the jars of Spark, Delta and Kafka, and create class archives.

    Each user account of a machine needs this command only once. If all files exist already, the command takes about one
    second. With class archives, Java starts faster. To create the archives, the command runs a broker and a monitor for
    about one minute. If the command cannot create the archives, it prints the reason, and Java later starts without
    archives.

    For a machine without internet access, run `rebalance-monitor jars --to FOLDER` on a machine with internet access.
    Copy the folder to the other machine, and run `rebalance-monitor jars --from FOLDER` there. Both machines need the
    same version of the monitor. The monitor contains the hash of each jar, and the command compares each jar with its
    hash.
    """
    if target is not None and source is not None:
        raise click.UsageError("--to and --from cannot be used together: use --to on the machine with internet access")
    console = Console(stderr=True)
    set_names = tuple(JAR_SETS) if every_kafka else FIRST_RUN
    try:
        if source is not None and not os.path.isdir(source):  # noqa: PTH112 - Path.is_dir raises PermissionError
            raise JarsError(
                f"{source} is not a readable folder: run `jars --to FOLDER` on a machine with internet access, and copy"
                " FOLDER to this machine"
            )
        fetch_jars(console, set_names, source=source)
        if target is not None:
            names = frozenset[str]().union(*(copy_set(set_name, target) for set_name in set_names))
            console.print(f"{len(names)} jars are also in {target}", highlight=False, soft_wrap=True)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    console.print(f"jars are in {cache_folder() / 'jars'}", highlight=False, soft_wrap=True)
    try:
        _create_archives(console)
    except TemporaryFolderError as error:
        console.print(f"no class archives: {error}", highlight=False, soft_wrap=True)


_TRAINING = "import sys; del sys.path[0]; from streaming.class_archive_training import main; main()"
"""The code of the child process. `-m` is not used, because Python could then import modules from the current folder."""


def _create_archives(console: Console) -> None:
    """Create the class archives in a child process without the monitor's settings.

    If the process fails, print the last line of its output. Raises TemporaryFolderError.
    """
    with raising_temporary_folder_error():
        temporary = TemporaryDirectory()
    with temporary as folder, console.status("creating class archives"):
        training = ChildProcess([sys.executable, "-c", _TRAINING], Path(folder, "output"))
        training.wait()
        lines = training.output.read_text(errors="replace").splitlines()
    reason = (lines or [f"no class archives: the process that creates them ended with code {training.exit_code}"])[-1]
    result = f"class archives are in {cache_folder() / ARCHIVES}" if training.exit_code == 0 else reason
    console.print(result, highlight=False, soft_wrap=True)


def fetch_jars(console: Console, set_names: Iterable[JarSetName] = FIRST_RUN, *, source: Path | None = None) -> None:
    """Download the missing jars. If `source` is set, copy the jars from this folder instead.

    On a terminal, show a progress bar instead of one line per jar. Raises JarsError or JavaError.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    jar_column = TextColumn("{task.fields[jar]}")
    with Progress(*columns, jar_column, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks = {set_name: bars.add_task(f"{set_name} jars", total=None, jar="") for set_name in sorted(set_names)}

        def show_jar(set_name: JarSetName, number: int, total: int, jar: str) -> None:
            bars.update(tasks[set_name], total=total, completed=number - 1, jar=jar)
            if not console.is_terminal:
                console.print(f"{set_name} jars: {number}/{total} {jar}", highlight=False)

        for set_name, task in tasks.items():
            jar_files = resolve(set_name, show_jar, source=source)
            bars.update(task, total=len(jar_files), completed=len(jar_files), jar="")
