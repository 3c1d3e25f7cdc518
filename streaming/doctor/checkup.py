"""All checks of `rebalance-monitor doctor`, in the order in which a new installation needs them."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from streaming.config.links import LinkSettings
from streaming.config.load import Settings
from streaming.doctor.ask_alerting import AlertingCheck
from streaming.doctor.ask_brokers import ClusterCheck
from streaming.doctor.ask_machine import checkpoint_finding, machine_findings, tables_finding
from streaming.doctor.finding import Finding


def all_findings(
    settings: Settings,
    of_clusters: Sequence[Settings],
    links: LinkSettings,
    test_labels: Mapping[str, str] | None,
) -> Iterator[Finding]:
    """Yield each finding as soon as it is known. If `test_labels` is not None, send test alerts.

    If there are several clusters, the points of a cluster start with its name.
    """
    yield from machine_findings(settings)
    yield tables_finding(settings)
    for of_cluster in of_clusters:
        prefix = f"{of_cluster.kafka.cluster}: " if len(of_clusters) > 1 else ""
        for finding in _cluster_findings(of_cluster):
            yield replace(finding, point=f"{prefix}{finding.point}")
    clusters = [of_cluster.kafka.cluster for of_cluster in of_clusters]
    alerting = AlertingCheck(links.prometheus_url, links.alertmanager_url)
    yield from alerting.findings(clusters, settings.metrics.port)
    if test_labels is not None:
        yield from alerting.send_test_alerts(clusters[0], test_labels, datetime.now(timezone.utc), time.sleep)


def _cluster_findings(settings: Settings) -> Iterator[Finding]:
    yield checkpoint_finding(settings)
    yield from ClusterCheck(settings, lambda: time.time_ns() // 1_000_000, time.sleep).findings()
