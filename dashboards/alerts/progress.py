"""Alerts on commits and lag of consumer groups."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.definition import CRITICAL, GROUP, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import (
    ABOVE_CRITICAL,
    ABOVE_MAX,
    ALERTING,
    AND_ABOVE_MAX,
    AND_READY,
    MEMBERS,
    NOT_ROLLING,
    condition_start,
    group_max,
    lines,
)
from dashboards.alerts.texts import (
    DURATION,
    GROUP_MEMBERS,
    IN_GROUP,
    LAG_SECONDS,
    LAST_COMMIT,
    RATES,
    RECORDS_WAIT,
    START,
    WORST_PARTITION,
    known,
    known_with,
    lag_cause,
)

# Some applications commit without members: Flink, Spark, and consumers with assign(). They have a recent commit.
_NO_CONSUMER = lines(
    f"  {MEMBERS} == 0",
    "  unless on (cluster, group)",
    "  time() - max by (cluster, group) (rebalance_monitor_group_last_commit_timestamp_seconds) < 900",
)
_LAGGING = lines("unless on (cluster, group) (", _NO_CONSUMER, ")")
_STOPPED = lines(
    'max by (cluster, group) (rebalance_monitor_group_status{status=~"STOP|STALL"}) == 1',
    f"and on (cluster, group) {MEMBERS} > 0",
)
_VANISHED = lines(
    f"last_over_time({MEMBERS}[1h]) > 0",
    "unless on (cluster, group) rebalance_monitor_group_info",
    'unless on (cluster) rebalance_monitor_dropped_series{reason="max_series"} > 0',
    AND_READY,
)
_REWOUND = 'max by (cluster, group) (rebalance_monitor_group_status{status="REWIND"}) == 1'
_SILENT_MEMBER = condition_start("silent_static_member")
_IS_STALLED = 'status="STALL"'

PROGRESS: Final = AlertFile(
    "4-progress",
    "Alerts on commits and lag of consumer groups.",
    (
        Alert(
            "KafkaGroupLagging",
            GROUP,
            harm="The oldest record that the group has not committed is older than the limit of the group.",
            levels=(
                Level(CRITICAL, lines(ABOVE_CRITICAL, _LAGGING), "15m"),
                Level(WARNING, lines(ABOVE_MAX, _LAGGING), "15m"),
            ),
            summary=f"{IN_GROUP}the group is {DURATION} behind",
            description=f"The next record that the group has to read was written {DURATION} ago"
            + known("rebalance_monitor_group_lag_seconds_is_bound@ == 1", " or earlier")
            + f".{RECORDS_WAIT}{RATES}{GROUP_MEMBERS}{WORST_PARTITION}"
            + known_with(
                "group_lag_cause_info",
                'cause!="unknown"',
                lag_cause(with_action=True)
                + "{{ else }} What to do: open the group's page, and find the partitions that lag. If all partitions "
                "lag, the group has too few members, or its members are too slow. If only the partitions of one member "
                "lag, that member has too many partitions or is slow.",
            ),
        ),
        Alert(
            "KafkaGroupStopped",
            GROUP,
            harm="The group has members, but makes no progress in at least one partition.",
            levels=(
                Level(CRITICAL, lines(_STOPPED, AND_ABOVE_MAX), "15m"),
                Level(WARNING, lines(_STOPPED, NOT_ROLLING), "15m"),
            ),
            summary=IN_GROUP
            + known_with(
                "group_status",
                _IS_STALLED,
                "a partition gets the same committed offset again and again{{ else }}a partition no longer gets "
                "commits, and records wait",
            ),
            description=known_with(
                "group_status",
                _IS_STALLED,
                "Records wait and the group commits, but the committed offset of a partition stays the same.{{ else "
                "}}A partition no longer gets commits. The time since the last commit is longer than the time in which "
                "the last ten commits arrived.",
            )
            + f"{RECORDS_WAIT}{LAG_SECONDS}{GROUP_MEMBERS}{WORST_PARTITION}"
            + known_with(
                "group_status",
                _IS_STALLED,
                " Likely causes: a member cannot process a record and tries the same record again and again. What to "
                "do: find the partition with status STALL on the group's page. Read the log of the member that owns "
                "the partition. Skip or repair the record.{{ else }} Likely causes: a member hangs or fails, or the "
                "partition has no owner. What to do: find the partitions with status STOP on the group's page. Restart "
                "the owners of these partitions.",
            ),
        ),
        Alert(
            "KafkaGroupSilent",
            GROUP,
            harm="The group has members and unread records, but no member commits an offset.",
            levels=(Level(CRITICAL, condition_start("silent_group"), "5m"),),
            summary=f"{IN_GROUP}no member commits, and records wait",
            description=f"The last commit of the group was before {START}. The group is not in a rebalance, and new "
            f"records arrived after this commit.{RECORDS_WAIT}{LAG_SECONDS}{GROUP_MEMBERS} Likely causes: the members "
            f"hang, fail on every record, or do not commit. What to do: read the log of one member and take a thread "
            f"dump. Then restart the members.",
        ),
        Alert(
            "KafkaStaticMemberSilent",
            GROUP,
            harm="A static member keeps its partitions but does not commit.",
            levels=(Level(CRITICAL, lines(_SILENT_MEMBER, AND_ABOVE_MAX), "5m"), Level(WARNING, _SILENT_MEMBER, "5m")),
            summary=f"{IN_GROUP}a static member does not commit",
            description=f"The last commit of a static member was before {START}. At least one other member has "
            f"committed since then. The group's page names the static "
            f"member.{RECORDS_WAIT}{LAG_SECONDS}{WORST_PARTITION} Other members get the partitions of the static "
            f"member only after session.timeout.ms has passed. Likely causes: the member's group.instance.id is "
            f"fenced, or the member hangs. What to do: restart the static member.",
        ),
        Alert(
            "KafkaGroupWithoutMembers",
            GROUP,
            harm="The group has no members, and its oldest uncommitted record is older than the limit of the group. "
            "The alert ends when the group consumes again. The alert also ends if the group no longer exists, or if "
            "somebody sets `ignore_alerts`.",
            levels=(Level(CRITICAL, lines(ABOVE_MAX, "and on (cluster, group) (", _NO_CONSUMER, ")"), "5m"),),
            summary=f"{IN_GROUP}the group has no members, and records wait",
            description=f"The group has no members and does not commit. The oldest uncommitted record is {DURATION} "
            f"old.{RECORDS_WAIT}{LAST_COMMIT} Likely causes: the application is down, or it was scaled to zero. What "
            f"to do: start the application. If the application is no longer needed, delete the group. If the "
            f"application runs only from time to time, set max_lag_seconds or ignore_alerts for the group.",
        ),
        Alert(
            "KafkaGroupVanished",
            GROUP,
            harm="Kafka never deletes a group with members. So if a group with members disappears, it is possible that "
            "its committed offsets are lost.",
            levels=(Level(WARNING, _VANISHED, "10m", "0s"),),
            summary=f"{IN_GROUP}the group had members, but the monitor no longer finds the group",
            description="Less than one hour ago, the group had {{ $value }} members. Now the monitor does not find the "
            "group. Likely causes: the members stopped, and somebody deleted the group before the next scrape; records "
            "of __consumer_offsets were lost; or the monitor's settings now exclude the group. What to do: run "
            "rebalance-monitor history. If the last row shows that the group was deleted, nothing is wrong. Otherwise "
            "run kafka-consumer-groups.sh --describe --group. If Kafka does not know the group, the group's offsets "
            "are lost. Check auto.offset.reset before you restart the members.",
            labels_of_groups=f"topk by (cluster, group) (1, last_over_time({ALERTING}[1h]))",
        ),
        Alert(
            "KafkaGroupRewound",
            GROUP,
            harm="The group processes records a second time. Some applications do not tolerate duplicates.",
            levels=(Level(WARNING, _REWOUND, "2m"),),
            summary=f"{IN_GROUP}the group committed a lower offset than before",
            description=f"For a partition, the group committed a lower offset than before. The group has not reached "
            f"the previous offset yet, so it processes records a second time.{RECORDS_WAIT}{LAG_SECONDS} Likely "
            f"causes: an operator reset the offsets, auto.offset.reset took effect, or a member commits old offsets. "
            f"What to do: find out who reset the offsets. If no operator reset them, compare the members' logs with "
            f"the times in the table partition_status.",
        ),
        Alert(
            "KafkaGroupUnknown",
            GROUP,
            harm="The monitor does not know the state of the group, so most other alerts about the group cannot fire.",
            levels=(Level(WARNING, group_max('group_info{state="Unknown"}'), "1h"),),
            summary=f"{IN_GROUP}the state of the group has been unknown for an hour",
            description="The monitor does not know the members and the assignment of the group, so most other alerts "
            "about this group cannot fire. Likely causes: records of the group are missing in __consumer_offsets, or "
            "an open transaction blocks the group's partition of this topic. Another possible cause: a client uses its "
            "own format for subscriptions or assignments. What to do: see the reason on the group's page. Search the "
            'table "quarantine" for records of the group.',
        ),
    ),
)
