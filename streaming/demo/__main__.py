"""`python -m streaming.demo`: the demo's groups alone, on brokers that run already; no broker of ours, no monitor."""

from __future__ import annotations

import signal
import tempfile
import threading
from pathlib import Path

import click
from kafka.errors import KafkaError

from streaming.demo.load import DemoLoad
from streaming.errors import RemedyError

_LOOK_EVERY_SECONDS = 1.0


@click.command()
@click.option("--bootstrap-servers", required=True, help="host:port of brokers to be played on; topics are made there.")
@click.option("--group", "groups", multiple=True, help="Only this group; repeatable [default: all of them].")
def main(bootstrap_servers: str, groups: tuple[str, ...]) -> None:
    """Run the demo's consumer groups and the producer that feeds them until Ctrl-C or SIGTERM.

    Meant for brokers that are there to be tried out: it creates topics named demo-... and writes to them.
    """
    stop = threading.Event()
    for stop_signal in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop_signal, lambda *_: stop.set())
    try:
        with (
            tempfile.TemporaryDirectory(prefix="rebalance-monitor-demo-") as logs,
            DemoLoad(bootstrap_servers, only=groups or None, logs=Path(logs)) as load,
        ):
            click.echo(f"playing: {', '.join(group.group_id for group in load.groups)}", err=True)
            while not stop.wait(_LOOK_EVERY_SECONDS):
                load.check()
    except (RemedyError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    except KafkaError as error:
        raise click.ClickException(f"no broker at {bootstrap_servers} answers ({error}): start it first") from error


if __name__ == "__main__":
    main(prog_name="python -m streaming.demo")
