"""`make bench`: measures the monitor on this machine, and compares the figures with their targets."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from streaming.demo.load import DemoLoad
from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from tests.bench.catch_up import catch_up_figures, read_by_baseline, read_by_monitor
from tests.bench.driver import driver_figures
from tests.bench.figures import Figure, figures_table
from tests.bench.fill import Fill, fill_offsets_topic
from tests.bench.group_state import group_state_figures
from tests.bench.load_figures import (
    BASELINE_SECONDS,
    QUIET_COORDINATOR_OPTIONS,
    load_figures,
    measure_baseline_under_load,
    measure_under_load,
    write_synthetic_groups,
)
from tests.bench.metrics_text import metrics_text_figures
from tests.bench.past import past_figures
from tests.bench.past_tables import PastTables
from tests.bench.rebalances import watch_rebalances
from tests.bench.synthetic_groups import SyntheticGroups
from tests.bench.table_appends import table_append_figures
from tests.bench.under_load import SteadyLoad

_WIDTH_IN_FILES = 140
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}


def record_count(_context: click.Context, _option: click.Parameter, given: str | None) -> int | None:
    """Read a number, for example 2500000, 500k or 10m."""
    if given is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([km]?)", given.lower())
    if found is None:
        raise click.BadParameter(f"{given!r} is not a number of records, for example 500k or 10m")
    return int(float(found[1]) * _FACTORS[found[2]])


@click.command()
@click.option("--groups", type=click.IntRange(1), default=2_000, show_default=True, help="Groups of the part catch-up.")
@click.option(
    "--partitions", type=click.IntRange(1), default=50, show_default=True, help="Partitions that each group commits."
)
@click.option(
    "--rounds", type=click.IntRange(1), default=20, show_default=True, help="Commits per group and partition."
)
@click.option(
    "--records", callback=record_count, metavar="COUNT", help="Total commits instead of rounds, for example 10m."
)
@click.option("--rebalances", type=click.IntRange(1), default=12, show_default=True, help="Rebalances to wait for.")
@click.option(
    "--part",
    type=click.Choice(["catch-up", "rebalances", "state", "evaluation", "scrape", "tables", "past", "driver"]),
    help="Measure only this part [default: all but driver].",
)
@click.option(
    "--synthetic-groups",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Groups of the parts evaluation and scrape.",
)
@click.option(
    "--commits-per-second", type=click.IntRange(1), default=20_000, show_default=True, help="Commits of these groups."
)
@click.option(
    "--rebalances-per-minute",
    type=click.IntRange(1),
    default=500,
    show_default=True,
    help="Rebalances of these groups.",
)
@click.option("--load-seconds", type=click.FloatRange(1), default=120, show_default=True, help="Duration of the load.")
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the figures into this file.",
)
@click.option(
    "--folder", type=click.Path(path_type=Path), default=Path(".bench"), show_default=True, help="Folder for all files."
)
@click.option("--keep", is_flag=True, help="Keep topics, checkpoints, tables and logs in the folder.")
def bench(  # noqa: PLR0913, PLR0917 - click hands over every option by name
    groups: int,
    partitions: int,
    rounds: int,
    records: int | None,
    rebalances: int,
    part: str | None,
    synthetic_groups: int,
    commits_per_second: int,
    rebalances_per_minute: int,
    load_seconds: float,
    json_file: Path | None,
    folder: Path,
    keep: bool,
) -> None:
    """Measure the monitor on this machine, and compare the figures with their targets.

    \b
    The parts, in this order:
    state       stored state of a group with 1,000 members and 10,000 partitions
    scrape      a scrape of the synthetic groups, without broker and Spark
    tables      an append to a new table, and to a table with 30 days of history
    past        pages as of a moment, from tables of 30 days: generations and
                rebalances of 10,000 groups, lag of 100 groups
    catch-up    a cold start on a full __consumer_offsets; groups x partitions x
                rounds commits
    rebalances  delay from a rebalance of the demo's groups until /metrics shows it
    evaluation  synthetic groups commit and rebalance at a steady pace; the
                monitor must keep a trigger interval of 10 s
    driver      samples and scrapes of 1,000 to 50,000 groups, without broker and
                Spark; runs only when it is named

    The benchmark starts its own broker. The monitor runs with its default settings and those of the environment
    (REBALANCE_MONITOR_...). The baseline is Spark's Kafka source, which reads the same log.
    """  # noqa: D301 - click reads the character \b
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop_signal, signal.default_int_handler)
    fill = Fill(groups, partitions, rounds)
    fill = fill if records is None else fill.with_records(records)
    steady_load = SteadyLoad(SyntheticGroups(synthetic_groups), commits_per_second, rebalances_per_minute, load_seconds)
    work = folder.absolute() / time.strftime("%Y%m%dT%H%M%S")
    load_average = os.getloadavg()
    parts: list[Part] = []
    try:
        with _own_folder(work, keep=keep), _progress() as progress:
            for measured in _measure(part, work, fill, steady_load, rebalances, progress):
                parts.append(measured)
                progress.stop()
                _print_part(measured, load_average)
                progress.start()
    except KeyboardInterrupt:
        raise click.Abort from None
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    if json_file is not None:
        _write_json(json_file, parts, load_average)


@dataclass(frozen=True, slots=True)
class Part:
    """The figures of one part of the benchmark. `size` describes its load, or is empty."""

    name: str
    size: str
    figures: Sequence[Figure]


def _measure(  # noqa: PLR0913, PLR0917 - the sizes of all parts
    part: str | None, work: Path, fill: Fill, steady_load: SteadyLoad, rebalances: int, progress: Progress
) -> Iterator[Part]:
    """Measure the selected parts one after the other."""
    groups = steady_load.synthetic_groups
    every: Mapping[str, tuple[str, Callable[[], Iterable[Figure]]]] = {
        "state": ("", group_state_figures),
        "scrape": ("", lambda: metrics_text_figures(groups)),
        "tables": ("", lambda: table_append_figures(work / "tables")),
        "past": ("", lambda: past_figures(work / "past", PastTables())),
        "catch-up": (fill.in_words, lambda: _catch_up(work / "catch-up", fill, progress)),
        "rebalances": ("", lambda: _rebalances(work / "rebalances", rebalances, progress)),
        "evaluation": (steady_load.in_words, lambda: _evaluation(work / "evaluation", steady_load, progress)),
    }
    if part == "driver":
        yield Part("driver", "", list(driver_figures()))
    for name, (size, measure) in every.items():
        if part in {None, name}:
            yield Part(name, size, list(measure()))


@contextmanager
def _own_folder(work: Path, *, keep: bool) -> Iterator[None]:
    work.mkdir(parents=True)
    try:
        yield
    except RemedyError:
        keep = True  # the message names a log in this folder
        raise
    finally:
        if keep:
            click.echo(f"topics, checkpoints, tables and logs are in {work}", err=True)
        else:
            shutil.rmtree(work, ignore_errors=True)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=Console(stderr=True))


def _catch_up(work: Path, fill: Fill, progress: Progress) -> list[Figure]:
    with EmbeddedBroker(work / "broker") as broker:
        address = broker.bootstrap_servers
        filling = progress.add_task("commit to __consumer_offsets", total=fill.records)
        records = fill_offsets_topic(address, fill, lambda more: progress.advance(filling, more))
        reading = progress.add_task("read the log: the monitor, from a cold start", total=records)
        monitor = read_by_monitor(
            address, work / "monitor", fill, records, lambda position: progress.update(reading, completed=position)
        )
        baseline_task = progress.add_task("read the log: the baseline", total=records)
        baseline = read_by_baseline(
            address, work / "baseline", records, lambda position: progress.update(baseline_task, completed=position)
        )
    return catch_up_figures(records, monitor, baseline)


def _rebalances(work: Path, wanted: int, progress: Progress) -> list[Figure]:
    with EmbeddedBroker(work / "broker") as broker, DemoLoad(broker.bootstrap_servers, logs=work):
        seeing = progress.add_task("rebalances of the demo's groups", total=wanted)
        return watch_rebalances(
            broker.bootstrap_servers, work / "monitor", wanted, lambda seen: progress.update(seeing, completed=seen)
        )


def _evaluation(work: Path, steady_load: SteadyLoad, progress: Progress) -> list[Figure]:
    def show(task: TaskID, process: str) -> Callable[[float, str], None]:
        return lambda seconds, summary: progress.update(
            task, completed=int(seconds), description=f"seconds under load, {process}: {summary}"
        )

    synthetic_groups = steady_load.synthetic_groups
    with EmbeddedBroker(work / "broker", java_options=QUIET_COORDINATOR_OPTIONS) as broker:
        writing = progress.add_task(
            "write the synthetic groups", total=synthetic_groups.groups + synthetic_groups.commit_keys
        )
        write_synthetic_groups(broker, synthetic_groups, lambda more: progress.advance(writing, more))
        evaluating = progress.add_task("seconds under load, the monitor: starting", total=int(steady_load.seconds))
        monitor = measure_under_load(broker, work / "monitor", steady_load, show(evaluating, "the monitor"))
        baseline_load = replace(steady_load, seconds=min(steady_load.seconds, BASELINE_SECONDS))
        reading = progress.add_task("seconds under load, the baseline: starting", total=int(baseline_load.seconds))
        baseline = measure_baseline_under_load(broker, work / "baseline", baseline_load, show(reading, "the baseline"))
    return load_figures(steady_load, monitor, baseline)


def _print_part(part: Part, load_average: tuple[float, ...]) -> None:
    """Print a part when it is measured, so that a long or failed run shows what it has measured."""
    load = ", ".join(f"{average:.1f}" for average in load_average)
    words = [
        part.name,
        *([part.size] if part.size else []),
        f"{os.cpu_count()} cores, load average {load} at the start",
    ]
    console = Console()
    console.width = console.width if console.is_terminal else _WIDTH_IN_FILES
    console.print(figures_table("; ".join(words), part.figures))


def _write_json(json_file: Path, parts: Sequence[Part], load_average: tuple[float, ...]) -> None:
    document = {
        "sizes": [part.size for part in parts if part.size],
        "cores": os.cpu_count(),
        "load_average": load_average,
        "figures": [figure.as_json() for part in parts for figure in part.figures],
    }
    json_file.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    bench()
