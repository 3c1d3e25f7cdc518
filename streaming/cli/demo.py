"""`rebalance-monitor demo` starts a broker, consumer groups and the monitor, and shows them live."""

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
from streaming.demo.environment import DemoEnvironment
from streaming.demo.folder import demo_folder
from streaming.demo.load import DemoError
from streaming.demo.screen import Screen, demo_console
from streaming.embedded.ports import is_taken
from streaming.errors import RemedyError
from streaming.java import check_account, find_java

_REFRESH_SECONDS = 1.0
_INTERRUPTED = 128 + signal.SIGINT
_STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@click.command()
@click.option(
    "--duration-s",
    type=click.FloatRange(min=0, min_open=True),
    default=math.inf,
    help="Duration of the command, in seconds [default: run until Ctrl-C].",
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    default=".demo",
    show_default=True,
    help="Folder for tables and logs. If a previous demo created this folder, the demo first deletes all files in it.",
)
@click.option(
    "--metrics-port", type=click.IntRange(1, 65_535), default=9560, show_default=True, help="Port of /metrics."
)
def demo(duration_s: float, folder: Path, metrics_port: int) -> None:
    """Start a real broker, real consumer groups and the monitor, and show the monitor's reports until Ctrl-C.

    At the end, the demo stops all processes that it started. The exit code is 0 if the monitor became ready. The exit
    code is 130 if you pressed Ctrl-C before the monitor was ready. The exit code is 1 if a step failed, or if the
    monitor was not ready within --duration-s. If the exit code is 1, the command prints one line that describes the
    error.
    """
    started = time.monotonic()
    for stop_signal in _STOP_SIGNALS:
        signal.signal(stop_signal, _raise_interrupt)
    console = demo_console()
    try:
        with ExitStack() as stack:
            check_account()
            find_java()
            fetch_jars(console)
            if is_taken(metrics_port):
                raise DemoError(
                    f"port {metrics_port} is in use: stop the process that listens there (ss -ltnp), or choose a"
                    " different port with --metrics-port"
                )
            demo_path = stack.enter_context(demo_folder(folder))
            environment = DemoEnvironment(demo_path, metrics_port)
            stack.callback(environment.stop)
            stack.callback(console.print, "stopping")
            screen = stack.enter_context(Screen(console, started, _header_lines(environment, duration_s)))
            stack.callback(_ignore_stop_signals)
            _run_demo(environment, screen, started + duration_s)
        console.print(f"stopped; tables and logs stay in {demo_path} until the next demo starts")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error


def _run_demo(environment: DemoEnvironment, screen: Screen, ends_at: float) -> None:
    """Start all processes, wait until the monitor is ready, and show its reports until `ends_at` or Ctrl-C.

    Before the monitor is ready, Ctrl-C raises KeyboardInterrupt. Raises DemoError if the monitor is not ready by
    `ends_at`.
    """
    for step in environment.start():
        screen.wait_for(step)
    while not ((figures := environment.figures()) and figures.ready):
        if time.monotonic() > ends_at:
            raise DemoError(
                f"the monitor was not ready in time: read {environment.monitor_log}, or choose a longer --duration-s"
            )
        environment.check()
        time.sleep(_REFRESH_SECONDS)
    with suppress(KeyboardInterrupt):
        while time.monotonic() < ends_at:
            screen.show(environment.figures())
            environment.check()
            time.sleep(max(0.0, min(_REFRESH_SECONDS, ends_at - time.monotonic())))


def _header_lines(environment: DemoEnvironment, duration_s: float) -> dict[str, str]:
    stop_hint = "Ctrl-C" if math.isinf(duration_s) else f"Ctrl-C, or automatically {duration_s:g} s after the start"
    return {
        "pages": environment.pages_address,
        "metrics": environment.metrics_address,
        "Delta tables": str(environment.tables),
        "logs": str(environment.logs),
        "Kafka": f"{environment.bootstrap_servers} (if you start a consumer group there, the demo also shows it)",
        "stop": stop_hint,
    }


def _raise_interrupt(_signal: int, _frame: FrameType | None) -> NoReturn:
    _ignore_stop_signals()
    raise KeyboardInterrupt


def _ignore_stop_signals() -> None:
    for stop_signal in _STOP_SIGNALS:
        signal.signal(stop_signal, signal.SIG_IGN)
