"""Define which alerts suppress the notifications of other alerts.

Rules:

1. The alert about a cause suppresses the alerts about its effects.
2. An alert never suppresses a more severe alert. Exception: `KafkaRollingRestart` (info) suppresses warnings.
3. Each rule lists the names of the suppressed alerts. A pattern such as `Kafka.+` would also suppress alerts of other
   products.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dashboards.alerts.definition import CRITICAL, GROUP, INFO, WARNING, Alert

Matcher = tuple[str, str, str]
"""A matcher of labels: name, operator (`=` or `=~`) and value."""

_OF_GROUP: Final = ("cluster", "group")
_SAME_ALERT: Final = ("alertname", "cluster", "group", "partition", "condition")
_LOWER: Final[tuple[Matcher, ...]] = (("severity", "=~", f"{WARNING}|{INFO}"),)
_COORDINATOR_MISSING: Final = "KafkaCoordinatorMissing"
_DATA_LOSS: Final = ("KafkaRecordsLost", "KafkaRecordsAboutToBeLost", "KafkaOffsetsExpiring")


@dataclass(frozen=True, slots=True)
class Inhibition:
    """A set of source alerts that suppress a set of target alerts, and the reason.

    A source suppresses a target only if the labels `equal` have the same values in both alerts.

    If `only_if_critical` is true, only sources with the severity critical suppress alerts.
    """

    why: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    equal: tuple[str, ...] = _OF_GROUP
    only_if_critical: bool = False


@dataclass(frozen=True, slots=True)
class InhibitionRule:
    """One rule of Alertmanager."""

    why: str
    source: tuple[Matcher, ...]
    target: tuple[Matcher, ...]
    equal: tuple[str, ...]


def inhibitions(alerts: tuple[Alert, ...]) -> tuple[Inhibition, ...]:
    """Return all inhibitions, each with its reason."""
    of_groups = tuple(alert.name for alert in alerts if alert.subject == GROUP)
    needs_ready = tuple(
        alert.name for alert in alerts if alert.name.startswith("Kafka") and alert.name != _COORDINATOR_MISSING
    )
    several_levels = tuple(alert.name for alert in alerts if CRITICAL in alert.severities and len(alert.levels) > 1)
    return (
        Inhibition(
            "If an alert fires with several severities, only the highest severity sends a notification.",
            several_levels,
            several_levels,
            _SAME_ALERT,
            only_if_critical=True,
        ),
        Inhibition(
            "If the monitor is down or not ready, its values for groups are not current.",
            ("RebalanceMonitorDown", "RebalanceMonitorStale"),
            needs_ready,
            ("cluster",),
            only_if_critical=True,
        ),
        Inhibition(
            "While a partition of __consumer_offsets has no leader, the monitor receives no records.",
            (_COORDINATOR_MISSING,),
            ("RebalanceMonitorStale",),
            ("cluster",),
        ),
        Inhibition(
            "Many groups of one coordinator fail. Alerts about lost data are still sent for each group.",
            ("KafkaCoordinatorTrouble",),
            tuple(name for name in of_groups if name not in _DATA_LOSS),
            ("cluster", "coordinator"),
            only_if_critical=True,
        ),
        Inhibition(
            "An open transaction hides the records of groups.",
            ("KafkaOffsetsBlockedByTransaction",),
            ("KafkaGroupUnknown",),
            ("cluster",),
        ),
        Inhibition(
            "A rolling restart causes these alerts and ends by itself.",
            ("KafkaRollingRestart",),
            ("KafkaRebalanceStorm", "KafkaGroupStopped", "KafkaProtocolFault"),
        ),
        Inhibition(
            "These alerts show why a group makes no progress.",
            ("KafkaRebalanceStuck", "KafkaGroupSilent", "KafkaStaticMemberSilent", "KafkaGroupWithoutMembers"),
            ("KafkaGroupStopped", "KafkaGroupLagging", "KafkaCommitGapLong"),
        ),
        Inhibition("A group that makes no progress falls behind.", ("KafkaGroupStopped",), ("KafkaGroupLagging",)),
    )


def inhibition_rules(alerts: tuple[Alert, ...]) -> Iterator[InhibitionRule]:
    """Return the inhibition rules of Alertmanager. No source suppresses a more severe target (rule 2).

    Exception: a source with the severity info also suppresses warnings. An example is `KafkaRollingRestart`.
    """
    can_be_critical = {alert.name for alert in alerts if CRITICAL in alert.severities}
    for one in inhibitions(alerts):
        critical = tuple(name for name in one.sources if name in can_be_critical)
        lower_targets = (_names(one.targets), *_LOWER)
        if critical:
            source = (_names(critical), ("severity", "=", CRITICAL))
            target = lower_targets if one.equal == _SAME_ALERT else (_names(one.targets),)
            yield InhibitionRule(one.why, source, target, one.equal)
        if not one.only_if_critical:
            yield InhibitionRule(one.why, (_names(one.sources),), lower_targets, one.equal)


def _names(names: tuple[str, ...]) -> Matcher:
    return ("alertname", "=~" if len(names) > 1 else "=", "|".join(names))
