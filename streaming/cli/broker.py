"""`rebalance-monitor broker` runs the embedded broker without a monitor, for experiments."""

from __future__ import annotations

import signal
import tempfile
from contextlib import ExitStack
from pathlib import Path

import click
from rich.console import Console

from streaming.cli.jars import fetch_jars
from streaming.embedded import EmbeddedBroker
from streaming.errors import RemedyError
from streaming.jars import BROKER_SETS, KAFKA_VERSION
from streaming.temporary_folder import TemporaryFolderError, raising_temporary_folder_error


@click.command()
@click.option("--port", type=click.IntRange(1, 65_535), help="Port for clients [default: a free port].")
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    help="Folder for the broker's topics and log file [default: a temporary folder, which the command deletes when the"
    " broker stops].",
)
@click.option(
    "--property",
    "properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="Set a Kafka broker property. You can repeat this option.",
)
@click.option(
    "--kafka-version",
    type=click.Choice(tuple(BROKER_SETS)),
    default=KAFKA_VERSION,
    show_default=True,
    help="Kafka version. If the jars of this version are missing, the command downloads them.",
)
def broker(port: int | None, folder: Path | None, properties: tuple[str, ...], kafka_version: str) -> None:
    """Run a real single-node Kafka broker on 127.0.0.1 until Ctrl-C.

    The command prints the address of the broker when the broker is ready.
    """
    with ExitStack() as stack:
        broker_folder = folder or _temporary_folder(stack)
        overrides = dict(map(_parse_property, properties))
        embedded_broker = EmbeddedBroker(broker_folder, port=port, properties=overrides, kafka_version=kafka_version)
        # SIGTERM acts like Ctrl-C. SIGINT gets a handler, too, because background jobs of a shell script ignore SIGINT.
        for stop_signal in (signal.SIGTERM, signal.SIGINT):
            signal.signal(stop_signal, signal.default_int_handler)
        try:
            fetch_jars(Console(stderr=True), [BROKER_SETS[kafka_version]])
            stack.enter_context(embedded_broker)
            click.echo(embedded_broker.bootstrap_servers)
            click.echo(f"topics and log are in {broker_folder}. Press Ctrl-C to stop the broker.", err=True)
            embedded_broker.wait_until_ended()
        except KeyboardInterrupt:
            click.echo("stopping", err=True)
        except RemedyError as error:
            raise click.ClickException(str(error)) from error


def _temporary_folder(stack: ExitStack) -> Path:
    try:
        with raising_temporary_folder_error():
            return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rebalance-monitor-broker-")))
    except TemporaryFolderError as error:
        raise click.ClickException(f"{error}, or set --folder") from error


def _parse_property(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--property")
    return name, value
