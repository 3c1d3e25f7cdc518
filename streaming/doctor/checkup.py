"""All checks of `rebalance-monitor doctor`, in the order of the steps of a new installation."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

from streaming.config.links import LinkSettings
from streaming.config.load import Settings
from streaming.doctor import ask_machine, machine
from streaming.doctor.alerting import ALERTMANAGER
from streaming.doctor.ask_alerting import PROMETHEUS, TEST_ALERTS, AlertingCheck
from streaming.doctor.ask_brokers import ClusterCheck
from streaming.doctor.brokers import BROKERS
from streaming.doctor.finding import Finding
from streaming.doctor.time_limit import LIMIT_SECONDS, Check, run_checks
from streaming.wall_clock import now_ms

_DISK = "check that the disk responds: for a network file system, check its server"
_SERVER = "check that the server and the network to it are not overloaded"


def all_findings(
    settings: Settings, of_clusters: Sequence[Settings], links: LinkSettings, test_labels: Mapping[str, str] | None
) -> Iterator[Finding]:
    """Yield each finding as soon as it is known.

    If `test_labels` is not None, also send test alerts with the labels in `test_labels`. If there are several clusters,
    the field `point` of each finding starts with the name of the cluster. Each check ends after at most
    `LIMIT_SECONDS`.
    """
    clusters = [of_cluster.kafka.cluster for of_cluster in of_clusters]
    yield from run_checks(_machine_checks(settings), LIMIT_SECONDS)
    yield from ask_machine.strategy_findings(settings.evaluation.assignors)
    for of_cluster in of_clusters:
        prefix = f"{of_cluster.kafka.cluster}: " if len(of_clusters) > 1 else ""
        for finding in run_checks(_cluster_checks(of_cluster), LIMIT_SECONDS):
            yield replace(finding, point=f"{prefix}{finding.point}")
    yield from run_checks(_alerting_checks(clusters, links, settings.metrics.port, test_labels), LIMIT_SECONDS)


def _machine_checks(settings: Settings) -> Iterator[Check]:
    yield Check(machine.JAVA, lambda: [ask_machine.java_finding()], _DISK)
    yield Check(machine.MEMORY, lambda: [ask_machine.memory_of_machine_finding(settings)], _DISK)
    yield Check(machine.JARS, lambda: [ask_machine.jars_folder_finding()], _DISK)
    yield Check(machine.TEMPORARY, lambda: [ask_machine.temporary_folder_finding()], _DISK)
    yield Check(machine.TABLES, lambda: [ask_machine.tables_finding(settings)], _DISK)
    remedy = "check DNS, and check that the disk responds"
    yield Check(machine.PORT, lambda: [ask_machine.port_finding(settings.metrics)], remedy)


def _cluster_checks(settings: Settings) -> Iterator[Check]:
    brokers = ClusterCheck(settings, now_ms, time.sleep)
    yield Check(machine.CHECKPOINT, lambda: [ask_machine.checkpoint_finding(settings)], _DISK)
    yield Check(BROKERS, brokers.findings, "check DNS, and the network between this machine and the brokers")


def _alerting_checks(
    clusters: Sequence[str], links: LinkSettings, port: int, test_labels: Mapping[str, str] | None
) -> Iterator[Check]:
    check = AlertingCheck(links.prometheus_url, links.alertmanager_url)
    yield Check(PROMETHEUS, partial(check.prometheus_findings, clusters, port), _SERVER)
    yield Check(ALERTMANAGER, lambda: [check.alertmanager_finding()], _SERVER)
    if test_labels is not None:
        send = partial(check.send_test_alerts, clusters[0], test_labels, datetime.now(timezone.utc), time.sleep)
        yield Check(TEST_ALERTS, send, _SERVER)
