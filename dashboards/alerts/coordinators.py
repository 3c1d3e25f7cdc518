"""Alerts on coordinators and on __consumer_offsets. One failed coordinator can cause trouble in many groups."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.definition import CLUSTER, CRITICAL, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import ALERTING, AND_READY, IN_TROUBLE, MEMBERS, lines
from dashboards.alerts.texts import COUNT, IN_CLUSTER

_WITH_MEMBERS = f'count by (cluster, coordinator) ({ALERTING}{{coordinator!=""}} and on (cluster, group) {MEMBERS} > 0)'
_MANY_GROUPS = lines(
    f"{IN_TROUBLE} >= 5",
    "and on (cluster, coordinator)",
    f"  {IN_TROUBLE} / on (cluster, coordinator)",
    f"  {_WITH_MEMBERS} >= 0.5",
)
# Without a leader, the monitor reads no records. So this alert must not depend on the monitor's readiness.
_MISSING = "max by (cluster) (rebalance_monitor_offsets_topic_leaderless_partitions) > 0"
# While one transaction is open, the last stable offset does not change. With many short transactions, it changes.
_BLOCKED = lines(
    "max by (cluster, partition) (rebalance_monitor_offsets_topic_blocked) > 0",
    "and on (cluster, partition)",
    "  max by (cluster, partition) (changes(rebalance_monitor_offsets_topic_last_stable_offset[2m])) == 0",
    AND_READY,
)

COORDINATORS: Final = AlertFile(
    "6-coordinators",
    "Alerts on coordinators and on __consumer_offsets. One such problem can be the cause of trouble in many groups.",
    (
        Alert(
            "KafkaCoordinatorTrouble",
            CLUSTER,
            harm="Many groups with the same coordinator fail. One notification about the coordinator replaces the "
            "notifications about the groups.",
            levels=(Level(CRITICAL, _MANY_GROUPS, "5m"),),
            summary=f"{IN_CLUSTER}{{{{ $value }}}} groups of coordinator {{{{ $labels.coordinator }}}} are in trouble",
            description="{{ $value }} groups are silent, stuck in a rebalance or far behind. Broker {{ "
            "$labels.coordinator }} is the coordinator of all these groups. At least half of the groups with this "
            "coordinator have such a problem. Groups without members do not count. Alertmanager suppresses most alerts "
            "about the groups. Likely causes: the broker is overloaded or cannot write __consumer_offsets, or clients "
            "cannot reach the broker. What to do: first check the log, the disks and the network of this broker. Also "
            "check the replicas of __consumer_offsets.",
        ),
        Alert(
            "KafkaCoordinatorMissing",
            CLUSTER,
            harm="Groups without a coordinator cannot commit or rebalance. The monitor receives no new records.",
            levels=(Level(CRITICAL, _MISSING, "2m", "5m"),),
            summary=f"{IN_CLUSTER}partitions of __consumer_offsets have no leader",
            description=f"{COUNT} partitions of __consumer_offsets have no leader. Groups that store their offsets in "
            "these partitions have no coordinator, so they cannot commit or rebalance. Until all partitions have a "
            "leader, alerts about groups of this cluster cannot fire. Likely causes: the brokers with the replicas are "
            "down. What to do: start these brokers. The page /incidents names the groups and their last coordinator.",
        ),
        Alert(
            "KafkaOffsetsBlockedByTransaction",
            CLUSTER,
            harm="An open transaction blocks a partition of `__consumer_offsets`. If the transaction contains offsets "
            "of a group, new consumers of the group cannot start until the transaction ends.",
            levels=(Level(CRITICAL, _BLOCKED, "15m", "5m"), Level(WARNING, _BLOCKED, "5m", "5m")),
            summary=f"{IN_CLUSTER}an open transaction blocks partition {{{{ $labels.partition }}}} of "
            f"__consumer_offsets",
            description=f"One transaction stays open and blocks {COUNT} records. By default, Kafka ends each "
            f"transaction after at most 15 minutes (transaction.max.timeout.ms). If a transaction stays open for "
            f"longer, it probably hangs."
            '{{ with printf "count(max by (group) (rebalance_monitor_group_info{cluster=%q,state=\\"Unknown\\"}))" '
            "$labels.cluster | query }} Groups in state Unknown: {{ . | first | value }}.{{ end }} If the transaction "
            "contains offsets of a group, new consumers of the group cannot fetch these offsets. Likely causes: a "
            "hanging transaction, or a producer that crashed or does not end its transaction. What to do: search for a "
            "hanging transaction with kafka-transactions.sh find-hanging, and abort it. By default, the command lists "
            "only transactions without a new record for 15 minutes. If the command lists no transaction, see the "
            "runbook.",
        ),
    ),
)
