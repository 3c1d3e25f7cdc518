"""`python -m streaming.demo` runs only the groups and the producer of the demo, on existing brokers."""

from __future__ import annotations

import tempfile
from pathlib import Path

import click
from kafka.errors import KafkaError

from streaming.demo.load import DemoLoad
from streaming.errors import RemedyError
from streaming.stop_signals import stop_event

_CHECK_INTERVAL_SECONDS = 1.0


@click.command()
@click.option(
    "--bootstrap-servers", required=True, help="Brokers as host:port. The demo creates topics on these brokers."
)
@click.option(
    "--group", "groups", multiple=True, help="Run only this group. You can repeat this option [default: all groups]."
)
def main(bootstrap_servers: str, groups: tuple[str, ...]) -> None:
    """Run the demo's consumer groups and their producer until Ctrl-C or SIGTERM.

    Use test brokers, because the command creates topics and writes records to these topics. The names of the topics
    start with demo-.
    """
    stop = stop_event()
    try:
        with (
            tempfile.TemporaryDirectory(prefix="rebalance-monitor-demo-") as logs,
            DemoLoad(bootstrap_servers, only=groups or None, logs=Path(logs)) as load,
        ):
            click.echo(f"running: {', '.join(group.group_id for group in load.groups)}", err=True)
            while not stop.wait(_CHECK_INTERVAL_SECONDS):
                load.check()
    except (RemedyError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    except KafkaError as error:
        raise click.ClickException(
            f"no broker answers at {bootstrap_servers} ({error}): start a broker first"
        ) from error


if __name__ == "__main__":
    main(prog_name="python -m streaming.demo")
