"""Findings about Prometheus and Alertmanager, from the values that their APIs return.

1. Prometheus must have a series `rebalance_monitor_ready` whose label `cluster` is the name of the cluster. The target
   of the series must be up. If the label `exported_cluster` contains the name of the cluster, the scrape job has no
   `honor_labels`. A target is this monitor if its URL has an address of this machine and the port in the settings. If
   no target is this monitor, the finding is only a note, because Prometheus can scrape a second monitor of the cluster,
   or use the address of a proxy.
2. All rule groups of this project must be loaded, and the last evaluation of each rule must not have failed. One
   recording rule has the label `checksum` with the checksum of all rules. A different checksum means that the loaded
   rules belong to a different release.
3. A test alert has the labels `alertname`, `severity`, `cluster` and `group`, and the labels from the command line. An
   alert ends after `TEST_ALERT_SECONDS`. The finding contains the receivers that Alertmanager returns for the test
   alert. Alerts with other labels are ignored, because an older test alert can still be active. The operator must check
   at the receiver that the alert arrived. If all receivers drop alerts (DROPPING_RECEIVERS), no notification arrives.
4. Each test alert has its own value of the label `group`, so that correct inhibition rules do not suppress test alerts.
   An inhibition rule suppresses test alerts if its list `equal` does not contain `group`. The default configuration of
   kube-prometheus-stack contains such a rule.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from streaming.config.secret_settings import hide_credentials, without_credentials
from streaming.doctor.answers import RuleGroup, ScrapedTarget, StoredAlert
from streaming.doctor.finding import Finding, failed, note, ok
from streaming.doctor.rules_checksum import RULES_CHECKSUM

SCRAPE, RULES, ALERTMANAGER = "Prometheus scrapes the monitor", "alert rules", "Alertmanager"
ALERTS_SENT = "Prometheus sends alerts"
TEST_ALERT: Final = "RebalanceMonitorTestAlert"
TEST_ALERT_SECONDS: Final = 300
SEVERITIES: Final = ("critical", "warning", "info")
FIXED_LABELS: Final = ("alertname", "severity", "cluster", "group")
"""Labels of the test alerts. The command line cannot set these labels."""
DROPPING_RECEIVERS: Final = ("nobody", "null")
"""Receivers without an address: `nobody` in `deploy/`, and `null` of kube-prometheus-stack.

The names in an AlertmanagerConfig have the form `namespace/config/receiver`, so only the last part is compared.
"""
RULE_GROUPS: Final = tuple(
    f"rebalance-monitor-{subject}"
    for subject in ("recording", "assignments", "rebalances", "progress", "retention", "coordinators", "monitor")
)
"""The rule groups in dashboards/rules. A test compares these names with the rule files."""

Labels = Mapping[str, str]


def scrape_finding(
    cluster: str, port: int, targets: Sequence[ScrapedTarget], series: Sequence[Labels], own_urls: Collection[str]
) -> Finding:
    """Return the finding about the scrapes of this monitor for one cluster (rule 1).

    `port` is the port in the settings. `series` contains the labels of each series of `rebalance_monitor_ready`.
    `own_urls` contains the URLs of targets with this port and an address of this machine.
    """
    point = f"{SCRAPE} of {cluster!r}"
    if any(labels.get("exported_cluster") == cluster for labels in series):
        text = "the label cluster of the scrape target replaces the name of the Kafka cluster"
        return failed(point, text, "set honor_labels: true in the scrape job (honorLabels in a ServiceMonitor)")
    scraped = {_job_and_instance(labels) for labels in series if labels.get("cluster") == cluster}
    candidates = _candidates(targets, scraped, port, own_urls)
    for target in candidates:
        if target.health == "down":
            url, reason = without_credentials(target.scrape_url), hide_credentials(target.last_error)
            text = f"the target {url} is down ({reason})"
            return failed(point, text, "check that the monitor runs and that Prometheus can reach this address")
    if candidates and not any(_job_and_instance(target.labels) in scraped for target in candidates):
        urls = ", ".join(without_credentials(target.scrape_url) for target in candidates)
        text = f"no series of this cluster comes from {urls}"
        return failed(point, text, "wait for one scrape. Then check kafka.cluster in the settings of this monitor")
    if not scraped:
        text = "Prometheus has no target and no series of this monitor"
        return failed(point, text, "add the scrape job of deploy/README.md, or apply the ServiceMonitor")
    jobs = ", ".join(sorted(f"{instance} (job {job})" for job, instance in scraped))
    if any(target.scrape_url in own_urls for target in candidates):
        return ok(point, jobs)
    text = f"the series come from {jobs}. None comes from port {port} of this machine"
    remedy = "check that this monitor is one of these instances, because Prometheus must scrape each monitor"
    return note(point, text, remedy)


def _job_and_instance(labels: Labels) -> tuple[str, str]:
    return labels.get("job", ""), labels.get("instance", "")


def _candidates(
    targets: Sequence[ScrapedTarget], scraped: Collection[tuple[str, str]], port: int, own_urls: Collection[str]
) -> Sequence[ScrapedTarget]:
    """Return the targets that can be this monitor.

    There are three tests. The result contains all targets that pass the first test. If no target passes a test, the
    next test decides.
    """
    return (
        [target for target in targets if target.scrape_url in own_urls]
        or [target for target in targets if _job_and_instance(target.labels) in scraped]
        or [
            target
            for target in targets
            if "rebalance-monitor" in target.labels.get("job", "") or target.scrape_url.endswith(f":{port}/metrics")
        ]
    )


def rules_finding(loaded: Sequence[RuleGroup]) -> Finding:
    """Return the finding about the rules of this project: whether they are loaded and healthy (rule 2)."""
    ours = [rule for group in loaded if group.name in RULE_GROUPS for rule in group.rules]
    missing = [name for name in RULE_GROUPS if name not in {group.name for group in loaded if group.rules}]
    if missing:
        remedy = "add dashboards/rules/*.yaml to rule_files and reload Prometheus, or apply the PrometheusRule"
        return failed(RULES, f"not loaded: {', '.join(missing)}", remedy)
    if RULES_CHECKSUM not in {rule.labels.get("checksum") for rule in ours}:
        remedy = "install dashboards/rules/*.yaml of this version and reload Prometheus, or apply the PrometheusRule"
        return failed(RULES, "the loaded rules belong to a different version of the monitor", remedy)
    errors = [f"{rule.name} ({hide_credentials(rule.last_error)})" for rule in ours if rule.health == "err"]
    if errors:
        more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
        return failed(RULES, f"the evaluation failed: {errors[0]}{more}", "open the page Rules of Prometheus")
    pending = sum(rule.health != "ok" for rule in ours)
    if pending:
        return note(RULES, f"{pending} of {len(ours)} rules have not been evaluated yet", "run the command again")
    return ok(RULES, f"{len(ours)} rules in {len(RULE_GROUPS)} groups, all healthy")


def alertmanagers_finding(active: Sequence[str]) -> Finding:
    """Return the finding about the Alertmanagers to which Prometheus sends alerts."""
    if active:
        return ok(ALERTS_SENT, f"to {', '.join(active)}")
    remedy = "add Alertmanager to the section alerting of Prometheus' configuration"
    return failed(ALERTS_SENT, "Prometheus has no active Alertmanager", remedy)


def labels_to_send(cluster: str, labels: Labels) -> list[Labels]:
    """Return the labels of one test alert for each severity (rules 3 and 4).

    Labels without a value are left out, because Alertmanager also removes empty labels.
    """
    given = {name: value for name, value in labels.items() if value}
    return [
        {
            **given,
            "alertname": TEST_ALERT,
            "severity": severity,
            "cluster": cluster,
            "group": f"rebalance-monitor-test-{severity}",
        }
        for severity in SEVERITIES
    ]


def alerts_to_send(cluster: str, labels: Labels, starts_at: str, ends_at: str) -> list[dict[str, object]]:
    """Return one test alert for each severity, as JSON for the Alertmanager API v2 (rule 3)."""
    annotations = {
        "summary": f"Test alert from rebalance-monitor doctor for {cluster}",
        "description": "Nothing is wrong. This alert tests the delivery of alerts to this receiver.",
    }
    return [
        {"labels": one, "annotations": annotations, "startsAt": starts_at, "endsAt": ends_at}
        for one in labels_to_send(cluster, labels)
    ]


def sent_findings(sent: Sequence[StoredAlert]) -> Iterator[Finding]:
    """Return one finding for the test alert of each severity (rule 3)."""
    by_severity = {alert.labels["severity"]: alert for alert in sent}
    for severity in SEVERITIES:
        point, alert = f"test alert {severity}", by_severity.get(severity)
        if alert is None:
            remedy = "run the command again. If several Alertmanagers share the address, use the address of only one"
            yield failed(point, "sent, but Alertmanager does not return it", remedy)
            continue
        receivers = [receiver.name for receiver in alert.receivers]
        if alert.status.silenced_by:
            silences = ", ".join(alert.status.silenced_by)
            yield failed(point, f"sent, but suppressed by silence {silences}", "end the silence")
        elif alert.status.inhibited_by:
            text = f"sent, but suppressed by alert {', '.join(alert.status.inhibited_by)} of a different group"
            otherwise = "Otherwise, the rule also suppresses real alerts"
            yield failed(point, text, f"add cluster and group to `equal` of the inhibition rule. {otherwise}")
        elif not receivers:
            yield failed(point, "sent, but it has no receiver", "add a route to the configuration of Alertmanager")
        elif all(receiver.rpartition("/")[2] in DROPPING_RECEIVERS for receiver in receivers):
            text = f"sent, and dropped by the receiver {', '.join(receivers)}"
            if severity == "info":
                yield ok(point, f"{text}, because this severity needs no notification")
            else:
                yield note(
                    point, text, f"add a route for the severity {severity}. Otherwise, such alerts notify nobody"
                )
        else:
            yield ok(point, f"sent to {', '.join(receivers)}; check that it arrived there")
