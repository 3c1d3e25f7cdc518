"""Write the links of alerts.

1. `page_url` is the link to the page of the group or of the cluster. If the setting `page_url` is empty, the link
   starts with the address of the monitor that Prometheus scrapes.
2. `incident_url` is the link to the incident of the group, or to the incidents of the cluster. `incident_url` starts
   with the same address as `page_url`. `incident_url` contains only the group, and the monitor finds the incident
   (DESIGN.md). Alerts about the monitor itself have no `incident_url`.
3. `dashboard_url` is the link to the dashboard in Grafana. If the setting `grafana_url` is empty, the alert has no
   `dashboard_url`.
4. `runbook_url` is the link to the section of the runbook. If the setting `runbook_url` is empty, `runbook_url` links
   to the runbook panel in Grafana. If the setting `grafana_url` is also empty, `runbook_url` is the name of the runbook
   file.
"""

from __future__ import annotations

from typing import Final
from zlib import crc32

from dashboards.alerts.definition import GROUP, MONITOR, Alert, Subject

FIRST_PANEL_NUMBER: Final = 1_000
PANEL_NUMBERS: Final = 1_000_000
_CLUSTER: Final = "cluster={{ urlquery $labels.cluster }}"
_GROUP: Final = "{{ urlquery $labels.group }}"
_MONITOR_ADDRESS: Final = '{{ or .Labels.page_url (printf "http://%s" .Labels.instance) }}'


def panel_number(title: str) -> int:
    """Return the Grafana panel id of a runbook section, for the link of an alert (`viewPanel`).

    The id depends only on the title, so a new alert does not change the ids of other panels. If ids changed, the links
    of older rules would open wrong panels. Panels outside the runbook have smaller ids.

    >>> panel_number("KafkaAssignmentSkewed")
    868679
    """
    return FIRST_PANEL_NUMBER + crc32(title.encode()) % PANEL_NUMBERS


def links(alert: Alert) -> dict[str, str]:
    """Return the links of an alert."""
    page, incidents, board = f"/?{_CLUSTER}", f"/incidents?{_CLUSTER}", f"/d/rebalance-monitor-itself?var-{_CLUSTER}"
    if alert.subject == GROUP:
        page, incidents = f"/groups/?id={_GROUP}&{_CLUSTER}", f"/incidents?group={_GROUP}&{_CLUSTER}"
        board = f"/d/rebalance-monitor-group?var-{_CLUSTER}&var-group={_GROUP}"
    incident_url = _with_info(alert.subject, f"{_MONITOR_ADDRESS}{incidents}")
    return {
        "page_url": _with_info(alert.subject, f"{_MONITOR_ADDRESS}{page}"),
        **({} if alert.subject == MONITOR else {"incident_url": incident_url}),
        "dashboard_url": _with_info(
            alert.subject, f"{{{{ with .Labels.grafana_url }}}}{{{{ . }}}}{board}{{{{ end }}}}"
        ),
        "runbook_url": _with_info(
            alert.subject,
            f"{{{{ if .Labels.runbook_url }}}}{{{{ .Labels.runbook_url }}}}{{{{ else if .Labels.grafana_url }}}}{{{{ "
            f".Labels.grafana_url }}}}/d/rebalance-monitor-runbook?viewPanel={panel_number(alert.name)}{{{{ else "
            f"}}}}dashboards/RUNBOOK.md{{{{ end }}}}",
            otherwise="dashboards/RUNBOOK.md",
        )
        + f"#{alert.name.lower()}",
    }


def _with_info(subject: Subject, text: str, otherwise: str = "") -> str:
    """Return a template that shows `text`, or `otherwise` if the metric `rebalance_monitor_info` has no series.

    `text` can contain the labels of `rebalance_monitor_info`. The metrics of a stopped monitor end after some minutes.
    So alerts about the monitor use the last value within one day.
    """
    selector = "rebalance_monitor_info{cluster=%q}"
    query = f"last_over_time({selector}[1d])" if subject == MONITOR else selector
    otherwise = f"{{{{ else }}}}{otherwise}" if otherwise else ""
    return (
        f'{{{{ with printf "{query}" $labels.cluster | query }}}}{{{{ with first . }}}}{text}{{{{ end }}}}'
        f"{otherwise}{{{{ end }}}}"
    )
