"""`make soak`: whether anything grows while the monitor runs for hours."""

from __future__ import annotations

import shutil
import signal
import time
from pathlib import Path

import click
from rich.console import Console

from streaming.demo import DemoLoad
from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from tests.bench.growth import Reading, growth_table, growths
from tests.bench.soak import soak as run_soak

_WIDTH_IN_FILES = 120


@click.command()
@click.option(
    "--hours", type=click.FloatRange(min=0, min_open=True), default=1.0, show_default=True, help="How long it runs."
)
@click.option(
    "--every-seconds", type=click.FloatRange(1), default=60.0, show_default=True, help="How often it measures."
)
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".bench"), show_default=True, help="Where it works."
)
@click.option("--keep", is_flag=True, help="Leave topics, checkpoint, tables and logs there.")
def soak(hours: float, every_seconds: float, folder: Path, keep: bool) -> None:
    """Run a broker, the demo's groups and the monitor for hours, and measure all that could grow.

    Prints memory (driver, JVM, workers), threads, open files, files by folder and the time of an append, once a minute
    in brief, and at the end with the slope per hour of each. The first third of the time is left out of the slopes.
    """
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop_signal, signal.default_int_handler)
    work = folder.absolute() / time.strftime("soak-%Y%m%dT%H%M%S")
    readings: list[Reading] = []

    def take(reading: Reading) -> None:
        readings.append(reading)
        click.echo(_in_brief(reading))

    click.echo(f"starting broker, groups and monitor in {work}")
    try:
        with EmbeddedBroker(work / "broker") as broker, DemoLoad(broker.bootstrap_servers, logs=work) as load:
            run_soak(broker.bootstrap_servers, work, hours, every_seconds, take)
            load.check()
    except KeyboardInterrupt:
        click.echo("interrupted: slopes of what was measured so far")
    except RemedyError as error:
        keep = True  # its message points into a log there
        raise click.ClickException(str(error)) from error
    finally:
        if readings:
            console = Console()
            console.width = console.width if console.is_terminal else _WIDTH_IN_FILES
            console.print(growth_table(f"soak, {readings[-1].at_hours:.2f} hours", growths(readings)))
        if keep:
            click.echo(f"topics, checkpoint, tables and logs are in {work}")
        else:
            shutil.rmtree(work, ignore_errors=True)


def _in_brief(reading: Reading) -> str:
    """One line: a user sees at a glance that it goes on, and whether something runs away."""
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
