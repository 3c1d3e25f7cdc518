"""Makes links from the troubles of a group, and from incidents, to sections of the runbook.

Each section has the name of an alert. An incident links to the section of its cause.

1. A trouble links to the section of the alert about the same problem (SECTIONS). If an owner breaks a rule of the
   strategy, the link opens the section about drift.
2. If `links.runbook_url` is set, the link opens the section at that address. If only `links.grafana_url` is set, the
   link opens the section's panel in Grafana. If neither is set, there is no link. The links of alerts follow the same
   rule (`dashboards/alerts/links.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final
from zlib import crc32

from streaming.config.links import LinkSettings
from streaming.evaluation.severity.trouble import Trouble

RUNBOOK_UID: Final = "rebalance-monitor-runbook"
SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "rolling restart": "KafkaRollingRestart",
        "rebalance storm": "KafkaRebalanceStorm",
        "flapping member": "KafkaRebalanceStorm",
        "stuck rebalance": "KafkaRebalanceStuck",
        "stuck reconciliation": "KafkaRebalanceStuck",
        "endless cooperative rejoin": "KafkaProtocolFault",
        "eager and cooperative mixed": "KafkaProtocolFault",
        "duplicate claims": "KafkaProtocolFault",
        "subscribed topic missing": "KafkaProtocolFault",
        "subscription mismatch": "KafkaAssignmentSkewed",
        "unowned partitions": "KafkaPartitionsUnowned",
        "silent group": "KafkaGroupSilent",
        "silent static member": "KafkaStaticMemberSilent",
        "long commit gap": "KafkaCommitGapLong",
        "two owners": "KafkaAssignmentDrift",
        "not subscribed": "KafkaAssignmentDrift",
        "drift": "KafkaAssignmentDrift",
        "unowned": "KafkaPartitionsUnowned",
        "records lost": "KafkaRecordsLost",
        "no coordinator": "KafkaCoordinatorTrouble",
        "losing soon": "KafkaRecordsAboutToBeLost",
        "offsets expire": "KafkaOffsetsExpiring",
        "rewound": "KafkaGroupRewound",
        "stalled": "KafkaGroupStopped",
        "stopped": "KafkaGroupStopped",
        "no members": "KafkaGroupWithoutMembers",
        "idle": "KafkaAssignmentSkewed",
        "uneven": "KafkaAssignmentSkewed",
        "topic skew": "KafkaAssignmentSkewed",
        "uneven work": "KafkaAssignmentSkewed",
        "open transaction": "KafkaGroupLagging",
        "too slow": "KafkaGroupLagging",
        "unknown": "KafkaGroupUnknown",
        "lag unknown": "KafkaGroupUnknown",
    }
)
"""The section about each trouble. The key is the part of `Trouble.word` before the colon."""


def runbook_link(links: LinkSettings, trouble: Trouble) -> str | None:
    """Return the address of the section about a trouble. Return None if there is no link (rules 1 and 2).

    >>> runbook_link(LinkSettings(runbook_url="https://wiki/runbook"), Trouble(2, "drift: unbalanced", ""))
    'https://wiki/runbook#kafkaassignmentdrift'
    """
    section = SECTIONS.get(trouble.word.partition(":")[0])
    return None if section is None else section_link(links, section)


def section_link(links: LinkSettings, section: str) -> str | None:
    """Return the address of a section. Return None if there is no link (rule 2).

    >>> section_link(LinkSettings(runbook_url="https://wiki/runbook"), "KafkaGroupSilent")
    'https://wiki/runbook#kafkagroupsilent'
    """
    if links.runbook_url:
        return f"{links.runbook_url}#{section.lower()}"
    return f"{links.grafana_url}/d/{RUNBOOK_UID}?viewPanel={_panel_number(section)}" if links.grafana_url else None


def _panel_number(section: str) -> int:
    """Return the Grafana panel id of the section. `dashboards.alerts.links.panel_number` computes the same id."""
    return 1_000 + crc32(section.encode()) % 1_000_000
