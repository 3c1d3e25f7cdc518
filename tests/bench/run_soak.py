"""`make soak`: checks if anything grows while the monitor runs for hours."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import click
from rich.console import Console

from streaming.demo.load import DemoLoad
from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from tests.bench.growth import Reading, compute_growth, growth_table
from tests.bench.soak import soak as run_soak

_WIDTH_IN_FILES = 120


@click.command()
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="Duration of the run."
)
@click.option(
    "--every-seconds",
    type=click.FloatRange(1),
    default=60.0,
    show_default=True,
    help="Interval between two measurements.",
)
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".bench"), show_default=True, help="Folder for all files."
)
@click.option("--keep", is_flag=True, help="Keep topics, checkpoint, tables and logs in the folder.")
def soak(hours: float, every_seconds: float, folder: Path, keep: bool) -> None:
    """Run a broker, the demo's groups and the monitor for hours, and measure all values that could grow.

    Measures memory (driver, JVM, workers), threads, open files, files by folder and the time of an append. Prints one
    line per interval. At the end, prints each value with its slope per hour. The slopes do not include the first third
    of the run.
    """
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop_signal, signal.default_int_handler)
    work = folder.absolute() / time.strftime("soak-%Y%m%dT%H%M%S")
    readings: list[Reading] = []

    def add_reading(reading: Reading) -> None:
        readings.append(reading)
        click.echo(_summary_line(reading))

    click.echo(f"starting broker, groups and monitor in {work}")
    try:
        with EmbeddedBroker(work / "broker") as broker, DemoLoad(broker.bootstrap_servers, logs=work) as load:
            run_soak(broker.bootstrap_servers, work, hours, every_seconds, add_reading)
            load.check()
    except KeyboardInterrupt:
        click.echo("interrupted: slopes of the values measured so far")
    except RemedyError as error:
        keep = True  # the message names a log in this folder
        raise click.ClickException(str(error)) from error
    finally:
        if readings:
            console = Console()
            console.width = console.width if console.is_terminal else _WIDTH_IN_FILES
            console.print(growth_table(f"soak, {readings[-1].at_hours:.2f} hours", compute_growth(readings)))
        if keep:
            click.echo(f"topics, checkpoint, tables and logs are in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)


def _summary_line(reading: Reading) -> str:
    """Return a reading as one line with the most important values."""
    values = reading.values
    memory = " / ".join(f"{values[f'memory of the {role}, MiB']:.0f}" for role in ("driver", "JVM", "workers"))
    files = sum(count for name, count in values.items() if name.startswith("files: "))
    append = f"{values['append, ms']:.1f} ms" if "append, ms" in values else "none"
    return (
        f"{reading.at_hours * 60:6.1f} min: driver / JVM / workers {memory} MiB, {values['open files']:.0f} open files,"
        f" {files:.0f} files on disk, append {append}"
    )


if __name__ == "__main__":
    soak()
