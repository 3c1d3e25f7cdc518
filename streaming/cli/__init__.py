"""The command line. Each command has a separate module, and only the module of the called command is imported.

The package may import all other packages.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from streaming.cli.text.streams import replace_streams

_COMMANDS = (
    "run",
    "doctor",
    "demo",
    "groups",
    "history",
    "what-if",
    "config",
    "rebuild",
    "assign",
    "compare",
    "decode",
    "broker",
    "jars",
)
"""The names of the commands. The name of the module and of the click command contains `_` instead of `-`."""


class _LazyCommandGroup(click.Group):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - click's signature
        """Run the command line of this process."""
        replace_streams()
        return super().__call__(*args, **kwargs)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(_COMMANDS)

    def invoke(self, ctx: click.Context) -> object:
        """Run a command. If the command fails, remove from the error message all secrets that are in the settings."""
        try:
            result: object = super().invoke(ctx)
            sys.stdout.flush()  # at exit, the interpreter would report a failed flush in several lines
        except click.UsageError:
            raise
        except click.ClickException as error:
            from streaming.cli.text.logs import redact  # noqa: PLC0415 - importing pydantic would slow down --help

            raise click.ClickException(redact(error.message)) from error
        return result

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - as above
        if cmd_name not in _COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(importlib.import_module(f"streaming.cli.{name}"), name)
        return command


@click.group(cls=_LazyCommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="kafka-rebalance-monitor")
def main() -> None:
    """Show why the assignment of a Kafka consumer group is unfair or wrong, or why it keeps changing.

    To try the monitor, run `rebalance-monitor demo`. The demo starts a broker, real consumer groups and the monitor,
    and shows live reports. To watch your own cluster, run `rebalance-monitor run --config FILE`. Then open
    http://127.0.0.1:9560/metrics.
    """
