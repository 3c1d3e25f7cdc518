"""Write PromQL for alerts. If several alerts need the same query, a recording rule contains the query.

Rules:

1. Every expression removes the label `instance`.
2. Two monitors may watch one cluster. So an expression first computes a sum for each monitor (`instance`), and then the
   maximum of these sums.
"""

from __future__ import annotations

from textwrap import indent
from typing import Final

ALERTING: Final = "cluster_group:rebalance_monitor_group_info:alerting"
ABOVE_MAX: Final = "cluster_group:rebalance_monitor_group_lag_seconds:above_max"
ABOVE_CRITICAL: Final = "cluster_group:rebalance_monitor_group_lag_seconds:above_critical"
MEMBERS: Final = "cluster_group:rebalance_monitor_group_members:max"
READY: Final = "cluster:rebalance_monitor_ready:max"
BEHIND_RECORDS: Final = "cluster:rebalance_monitor_behind:records"
BEHIND_SECONDS: Final = "cluster:rebalance_monitor_behind:seconds"
RULES_INFO: Final = "cluster:rebalance_monitor_rules:info"
IN_TROUBLE: Final = "cluster_coordinator:rebalance_monitor_groups_in_trouble:count"

GROUP_LABELS: Final = "team, max_severity, coordinator"
AND_READY: Final = f"and on (cluster) {READY} == 1"
AND_ABOVE_MAX: Final = f"and on (cluster, group) {ABOVE_MAX}"
NOT_ROLLING: Final = 'unless on (cluster, group) rebalance_monitor_group_condition{condition="rolling_restart"}'


def group_max(metric: str) -> str:
    """Return a query for the largest value of each group.

    >>> group_max("group_lag")
    'max by (cluster, group) (rebalance_monitor_group_lag)'
    """
    return f"max by (cluster, group) (rebalance_monitor_{metric})"


def group_min(metric: str) -> str:
    """Return a query for the smallest value of each group.

    >>> group_min("group_lag")
    'min by (cluster, group) (rebalance_monitor_group_lag)'
    """
    return f"min by (cluster, group) (rebalance_monitor_{metric})"


def condition_start(conditions: str, labels: str = "cluster, group") -> str:
    """Return a query for the start time of a condition, or of several conditions (separated by `|`).

    >>> condition_start("silent_group")
    'min by (cluster, group) (rebalance_monitor_group_condition_timestamp_seconds{condition="silent_group"})'
    """
    operator = "=~" if "|" in conditions else "="
    metric = "rebalance_monitor_group_condition_timestamp_seconds"
    return f'min by ({labels}) ({metric}{{condition{operator}"{conditions}"}})'


def lines(*parts: str) -> str:
    """Join the lines of an expression."""
    return "\n".join(parts)


def _above_limit(limit: str) -> str:
    return lines(group_max("group_lag_seconds"), "> on (cluster, group)", group_max(f'group_limit{{limit="{limit}"}}'))


_UNREAD = lines(
    "sum by (cluster, instance) (",
    "  clamp_min(rebalance_monitor_offsets_topic_lag - rebalance_monitor_offsets_topic_blocked, 0)",
    ")",
)

RECORDING_RULES: Final[tuple[tuple[str, str, str], ...]] = (
    ("", READY, "max by (cluster) (rebalance_monitor_ready)"),
    (
        "Groups that can have alerts: one series for each group, while a monitor is ready.",
        ALERTING,
        lines(
            "topk by (cluster, group) (",
            "  1,",
            "  max by (cluster, group, team, max_severity, coordinator) (",
            '    rebalance_monitor_group_info{ignore_alerts="false"}',
            "  )",
            ")",
            AND_READY,
        ),
    ),
    (
        "Lag in seconds of each group whose lag is above its limit for a warning.",
        ABOVE_MAX,
        _above_limit("max_lag_seconds"),
    ),
    (
        "Lag in seconds of each group whose lag is above its limit for a critical alert.",
        ABOVE_CRITICAL,
        _above_limit("critical_lag_seconds"),
    ),
    ("", MEMBERS, group_max("group_members")),
    (
        "For each coordinator, number of groups that have members and are silent, stuck or far behind.",
        IN_TROUBLE,
        lines(
            "count by (cluster, coordinator) (",
            f'  {ALERTING}{{coordinator!=""}}',
            "  and on (cluster, group) (",
            '    rebalance_monitor_group_condition{condition=~"silent_group|stuck_rebalance"}',
            f"    or on (cluster, group) {ABOVE_CRITICAL}",
            "  )",
            f"  and on (cluster, group) {MEMBERS} > 0",
            ")",
        ),
    ),
    (
        "Unread records of __consumer_offsets, without the records that an open transaction blocks.",
        BEHIND_RECORDS,
        lines("max by (cluster) (", indent(_UNREAD, "  "), ")"),
    ),
    (
        "Time to read the unread records at the current rate. No series if the monitor reads nothing or is not ready.",
        BEHIND_SECONDS,
        lines(
            "max by (cluster) (",
            indent(_UNREAD, "  "),
            "  / on (cluster, instance)",
            "  (sum by (cluster, instance) (rate(rebalance_monitor_records_read_total[5m])) > 0)",
            "  and on (cluster, instance) rebalance_monitor_ready == 1",
            ")",
        ),
    ),
)
"""Comment, name and expression of each recording rule. A rule may use the rules before it."""
