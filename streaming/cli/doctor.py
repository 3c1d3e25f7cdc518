"""`rebalance-monitor doctor` checks this machine, the brokers, the permissions, and the delivery of alerts."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import asdict
from pathlib import Path

import click

from streaming.cli.run import Address, config_option
from streaming.cli.text.logs import load_settings_and_redact, redact
from streaming.doctor.alerting import FIXED_LABELS
from streaming.doctor.finding import OK, Finding, exit_code
from streaming.errors import RemedyError
from streaming.group.printable import printable

_WIDTH = max(map(len, ("ok", "note", "failed", "not checked")))


@click.command()
@config_option
@click.option("--cluster", metavar="NAME", help="Check only this cluster [default: all clusters in the settings].")
@click.option("--prometheus", type=Address(), help="Address of Prometheus [default: links.prometheus_url].")
@click.option(
    "--alertmanager",
    type=Address(),
    help="Address of Alertmanager [default: links.alertmanager_url, or the address that Prometheus reports].",
)
@click.option(
    "--send-test-alert",
    is_flag=True,
    help="Send one test alert of each severity to Alertmanager, and print the receivers of each alert. The test"
    " alerts end after five minutes.",
)
@click.option(
    "--alert-label",
    "alert_labels",
    metavar="NAME=VALUE",
    multiple=True,
    help="Additional label of the test alerts, for example team=payments. You can repeat this option. You cannot set"
    " the labels alertname, severity, cluster and group.",
)
@click.option("--json", "as_json", is_flag=True, help="For each check, print one line with a JSON object.")
def doctor(  # noqa: PLR0913 - click hands over every option by name
    *,
    file: Path | None,
    cluster: str | None,
    prometheus: str | None,
    alertmanager: str | None,
    send_test_alert: bool,
    alert_labels: tuple[str, ...],
    as_json: bool,
) -> None:
    """Check everything that the monitor needs. Print one line for each check, and a remedy for each problem.

    The command checks Java, memory, disks, jars, the HTTP port, your strategies, brokers, permissions, clocks, the
    checkpoint and the tables. If the address of Prometheus is known, the command also checks the scrape job, the alert
    rules and Alertmanager. The check of a cluster takes about 20 seconds, or longer if a broker does not respond. If a
    check does not end within 60 seconds, the check fails, and the next check starts. Run the command with the settings
    of the monitor. The monitor can run at the same time. The command changes nothing, but with --send-test-alert, it
    sends test alerts. If a test alert cannot be sent, the check fails.

    Each line starts with `ok`, `note`, `failed` or `not checked`. A note describes a problem that does not stop the
    monitor.

    The exit code is 0 if no check failed. The exit code is 1 if a check failed, or if the settings have errors. The
    exit code is 2 if the arguments are wrong.
    """
    labels = dict(map(_label, alert_labels))
    try:
        settings = load_settings_and_redact(file)
        of_clusters = settings.of_clusters() if cluster is None else (settings.of_cluster(cluster),)
    except RemedyError as error:
        raise click.ClickException(str(error)) from error
    options = {"prometheus_url": prometheus, "alertmanager_url": alertmanager}
    links = settings.links.model_copy(update={name: url for name, url in options.items() if url is not None})
    findings = []
    from streaming.doctor.checkup import all_findings  # noqa: PLC0415 - slow imports would slow down --help

    for finding in all_findings(settings, of_clusters, links, labels if send_test_alert else None):
        findings.append(finding)
        click.echo(redact(json.dumps(asdict(finding), ensure_ascii=True) if as_json else _as_text(finding)))
    sys.exit(exit_code(findings))


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]*", name):
        raise click.BadParameter(f"{text!r} is not NAME=VALUE", param_hint="--alert-label")
    if name in FIXED_LABELS:
        message = f"the command itself sets the label {name}. Choose a label other than {', '.join(FIXED_LABELS)}"
        raise click.BadParameter(message, param_hint="--alert-label")
    return name, value


def _as_text(finding: Finding) -> str:
    lines = [f"{finding.status:<{_WIDTH}}  {finding.point}: {finding.text}"]
    if finding.remedy is not None and finding.status != OK:
        first, *more = finding.remedy.splitlines()
        lines += [f"{'':<{_WIDTH}}  -> {first}", *(f"{'':<{_WIDTH}}     {line}" for line in more)]
    return "\n".join(map(printable, lines))
