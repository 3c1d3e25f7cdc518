"""`rebalance-monitor demo`: broker, groups and monitor, shown live."""

from __future__ import annotations

import math
import signal
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path
from types import FrameType
from typing import NoReturn

import click

from streaming.cli.jars import fetch_jars
from streaming.demo.folder import demo_folder
from streaming.demo.load import DemoError
from streaming.demo.screen import Screen, demo_console
from streaming.demo.stage import Stage
from streaming.embedded.ports import is_taken
from streaming.errors import RemedyError
from streaming.java import find_java

_LOOK_EVERY_SECONDS = 1.0
_INTERRUPTED = 128 + signal.SIGINT
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option(
    "--duration-s",
    type=click.FloatRange(min=0, min_open=True),
    default=math.inf,
    help="Stop after this number of seconds, including the start [default: run until Ctrl-C].",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=".demo",
    show_default=True,
    help="Folder for tables and logs. They stay there until the next demo.",
)
@click.option(
    "--metrics-port", type=click.IntRange(1, 65_535), default=9560, show_default=True, help="Port of /metrics."
)
def demo(duration_s: float, folder: Path, metrics_port: int) -> None:
    """Start a real broker, real consumer groups and the monitor, and show what the monitor reports until Ctrl-C.

    The demo stops everything at the end. Exit code 0: the monitor was ready. 130: Ctrl-C before the monitor was ready.
    1: something failed, or the monitor was not ready within the duration; one line describes the error.
    """
    started = time.monotonic()
    for stop_signal in _STOP_SIGNALS:
        signal.signal(stop_signal, _interrupt)
    console = demo_console()
    try:
        with ExitStack() as stack:
            find_java()
            fetch_jars(console, verify=False)
            kept = stack.enter_context(demo_folder(folder))
            _check_port(metrics_port)
            stage = stack.enter_context(Stage(kept, metrics_port))
            stack.callback(console.print, "stopping")
            screen = stack.enter_context(Screen(console, started, _notes(stage, duration_s)))
            stack.callback(_ignore_stop_signals)
            _play(stage, screen, started + duration_s)
        console.print(f"stopped; tables and logs stay in {kept} until the next demo")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error


def _play(stage: Stage, screen: Screen, ends_at: float) -> None:
    """Start, wait until the monitor is ready, show; until `ends_at` or, once it was ready, until interrupted."""
    for what in stage.start():
        screen.wait_for(what)
    while not ((figures := stage.scrape()) and figures.ready):
        if time.monotonic() > ends_at:
            raise DemoError(
                f"the monitor was not ready in time: see {stage.monitor_log}, or choose a longer --duration-s"
            )
        stage.check()
        time.sleep(_LOOK_EVERY_SECONDS)
    with suppress(KeyboardInterrupt):
        while time.monotonic() < ends_at:
            screen.show(stage.scrape())
            stage.check()
            time.sleep(max(0.0, min(_LOOK_EVERY_SECONDS, ends_at - time.monotonic())))


def _notes(stage: Stage, duration_s: float) -> dict[str, str]:
    ends = "Ctrl-C" if math.isinf(duration_s) else f"Ctrl-C, or by itself {duration_s:g} s after the start"
    return {
        "pages": stage.pages_address,
        "metrics": stage.metrics_address,
        "Delta tables": str(stage.tables),
        "logs": str(stage.logs),
        "Kafka": f"{stage.bootstrap_servers} (a consumer group of your own will show up here)",
        "stop": ends,
    }


def _check_port(port: int) -> None:
    if is_taken(port):
        raise DemoError(
            f"port {port} is taken: stop what listens there (ss -ltnp), or choose another by --metrics-port"
        )


def _interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Stop, once: what stops us may well signal twice, and stopping must not be cut short."""
    _ignore_stop_signals()
    raise KeyboardInterrupt


def _ignore_stop_signals() -> None:
    for stop_signal in _STOP_SIGNALS:
        signal.signal(stop_signal, signal.SIG_IGN)
