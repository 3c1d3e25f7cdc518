"""`rebalance-monitor run` watches clusters until a signal stops the process."""

from __future__ import annotations

import ctypes
import logging
import os
import sys
from pathlib import Path

import click
from pydantic import TypeAdapter, ValidationError

from streaming.cli.text.logs import load_settings_and_redact, redact, start_logging
from streaming.config.links import Url
from streaming.config.load import forget_secrets
from streaming.errors import RemedyError
from streaming.spark.launch.jvm import MALLOC_ARENAS, spark_launch
from streaming.stop_signals import stop_event

SWITCH_SECONDS = 0.001
"""Time after which Python interrupts a busy thread, so that a waiting thread can run.

During a scrape, Python switches threads about a hundred times. So with Python's default of 5 ms, a scrape during a
sample or a batch takes 50 % longer than with 1 ms (tests/bench/DESIGN.md).
"""

_M_ARENA_MAX = -8
"""The number of this option in glibc's malloc.h."""

_log = logging.getLogger(__name__)

_URL: TypeAdapter[str] = TypeAdapter(Url)


class Address(click.ParamType[str]):
    """The type of an option whose value is the address of a server. The same rules apply to the settings in `[links]`.

    The error never contains the address, because it can be a secret.
    """

    name = "URL"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the address without a slash at its end."""
        try:
            return _URL.validate_python(value or "://")  # an address in the settings can be empty, an option cannot
        except ValidationError as invalid:
            self.fail(invalid.errors()[0]["msg"].removeprefix("Value error, "), param, ctx)


config_option = click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="TOML file with settings [default: no file, only environment variables and default values].",
)


@click.command()
@config_option
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"], case_sensitive=False),
    default="info",
    show_default=True,
    help="Log level. The command writes the log to standard error.",
)
def run(file: Path | None, log_level: str) -> None:
    """Watch one or more clusters, write Delta tables and serve /metrics.

    Ctrl-C or SIGTERM stops the monitor. The next start continues from the checkpoint. By default, the monitor watches
    localhost:9092, and stores the checkpoint and the tables in ~/.local/state/kafka-rebalance-monitor. To print every
    setting, run `rebalance-monitor config check`.

    After the first sample of a cluster, the log shows the brokers and the groups. The log also shows the missing
    permissions, the unknown values and the next steps. To check everything before the start, run
    `rebalance-monitor doctor`.

    Each section [clusters.NAME] of the configuration adds a cluster. If the monitor cannot watch one of several
    clusters, it logs the error and tries again. The monitor continues to watch the other clusters.

    The exit code is 0 if a signal stopped the monitor. The exit code is 1 if the monitor failed and a restart may help.
    The exit code is 78 if you must fix the reported error before you start the monitor again. The exit code is 2 if the
    arguments are wrong.
    """
    start_logging(log_level)
    sys.setswitchinterval(SWITCH_SECONDS)
    _limit_malloc_arenas()
    stop = stop_event()
    try:
        settings = load_settings_and_redact(file)
        forget_secrets()
        for exposed_file in settings.exposed_files():
            _log.warning("every user of this machine can read %s: mount this file with mode 0440", exposed_file)

        def log_address(port: int) -> None:
            _log.info("metrics at %s/metrics, pages at /", settings.metrics.address(port))

        with spark_launch(settings.spark, clusters=len(settings.of_clusters())) as launch:
            launch.limit_stop(stop)
            launch.begin()  # the JVM starts while Python imports the monitor
            from streaming.run.monitor import Monitor  # noqa: PLC0415 - importing Spark would slow down --help

            Monitor(settings, stop, log_address).run(launch)
    except RemedyError as error:
        click.ClickException(redact(str(error))).show()
        sys.exit(error.exit_code)
    _log.info("stopped")


def _limit_malloc_arenas() -> None:
    """Limit the number of malloc arenas, because many arenas waste memory. Only glibc has this option."""
    if (mallopt := getattr(ctypes.CDLL(None), "mallopt", None)) is not None and "MALLOC_ARENA_MAX" not in os.environ:
        mallopt(_M_ARENA_MAX, MALLOC_ARENAS)
