"""`rebalance-monitor broker`: the embedded broker alone, for trying things out."""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click

from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from streaming.jars import BROKER_SETS, KAFKA_VERSION


@click.command()
@click.option("--port", type=click.IntRange(1, 65_535), help="Port for clients [default: a free port].")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Folder for topics and log [default: a temporary folder, deleted at the end].",
)
@click.option(
    "--property", "properties", multiple=True, metavar="NAME=VALUE", help="Set a Kafka broker property. Repeatable."
)
@click.option(
    "--kafka-version",
    type=click.Choice(tuple(BROKER_SETS)),
    default=KAFKA_VERSION,
    show_default=True,
    help="Kafka version. The jars of any other version than the default are downloaded at its first use.",
)
def broker(port: int | None, folder: Path | None, properties: tuple[str, ...], kafka_version: str) -> None:
    """Run a real single-node Kafka broker on 127.0.0.1 until Ctrl-C. Print its address when it answers."""
    with ExitStack() as stack:
        kept = folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-monitor-broker-")))
        overrides = dict(map(_name_and_value, properties))
        running = EmbeddedBroker(kept, port=port, properties=overrides, kafka_version=kafka_version)
        # SIGTERM as Ctrl-C; and SIGINT anew, since a shell script's background jobs start with it ignored.
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            signal.signal(stop_signal, signal.default_int_handler)
        try:
            stack.enter_context(running)
            click.echo(running.bootstrap_servers)
            click.echo(f"topics and log are in {kept}; Ctrl-C stops the broker", err=True)
            running.wait_until_ended()
        except KeyboardInterrupt:
            click.echo("stopping", err=True)
        except RemedyError as error:
            raise click.ClickException(str(error)) from error


def _name_and_value(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{given!r} is not NAME=VALUE", param_hint="--property")
    return name, value
