"""Define cases in which alerts on commits, lag and retention fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import PAGE, READY, ROLLING, TICKET, AlertCase, condition, of_cluster, of_group

MEMBERS = of_group("group_members", "3x300")
LAGGING = of_group("group_lag", "12000x300") | of_group("group_lag_seconds", "300x300")


def status(name: str, values: str = "1x300") -> dict[str, str]:
    """Return the series of the group's status."""
    return of_group("group_status", values, status=name)


LEFT = of_group("group_members", "3x200 0x1500") | of_group("group_lag", "0x200 0+100x1500")

PROGRESS = (
    AlertCase(
        "KafkaGroupSilent",
        "no member commits",
        "10m",
        PAGE,
        condition("silent_group", "1x300") | LAGGING,
        says=(
            "payments: no member commits, and records wait",
            (
                "No member of the group has committed since before 2023-11-14 22:13:20 +0000 UTC. The group is not "
                "in a rebalance, and new records arrive. 12k records wait. Likely causes: the members hang, fail on "
                "every record, or do not commit. What to do: read the log of one member and take a thread dump. "
                "Then restart the members."
            ),
        ),
    ),
    AlertCase("KafkaGroupSilent", "it ends after three minutes", "10m", None, condition("silent_group", "1x3 stale")),
    AlertCase(
        "KafkaStaticMemberSilent",
        "a fenced pod",
        "10m",
        PAGE,
        condition("silent_static_member", "1x300"),
        says=(
            "payments: a static member commits none of its partitions",
            (
                "A static member has committed none of its partitions since before 2023-11-14 22:13:20 +0000 UTC, "
                "although a different member has committed. The group's page names the static member. No other "
                "member gets its partitions until session.timeout.ms has passed. Likely causes: the member's "
                "group.instance.id is fenced, or the member hangs. What to do: restart that instance."
            ),
        ),
    ),
    AlertCase(
        "KafkaStaticMemberSilent",
        "it ends after three minutes",
        "10m",
        None,
        condition("silent_static_member", "1x3 stale"),
    ),
    AlertCase(
        "KafkaGroupStopped",
        "a group with members",
        "20m",
        PAGE,
        MEMBERS | LAGGING | status("STOP"),
        says=(
            "payments: the group has members, but it stopped committing",
            (
                "The group has 3 members. A partition has had no commit for longer than its last ten commits took. "
                "12k records wait. The oldest uncommitted record is 5m 0s old. Likely causes: a member hangs or "
                "fails, or the partition has no owner. What to do: find the partitions with status STOP and their "
                "owners on the group's page. Restart these members."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupStopped",
        "a group without members",
        "20m",
        None,
        of_group("group_members", "0x300") | status("STOP"),
    ),
    AlertCase(
        "KafkaGroupStopped",
        "a group that a deployment stops for a while",
        "20m",
        None,
        MEMBERS | status("STOP") | ROLLING,
    ),
    AlertCase("KafkaGroupStopped", "the monitor catches up", "40m", None, MEMBERS | status("STOP") | {READY: "0x300"}),
    AlertCase(
        "KafkaGroupStalled",
        "a record that the members cannot process",
        "20m",
        PAGE,
        MEMBERS | LAGGING | status("STALL"),
        says=(
            "payments: the group commits the same offset again and again",
            (
                "The committed offset of a partition does not advance, although the group commits and records wait. "
                "12k records wait. The oldest uncommitted record is 5m 0s old. Likely causes: a member cannot "
                "process a record and retries it for ever. What to do: find the partition on the group's page and "
                "read the log of its owner. Skip or repair the record."
            ),
        ),
    ),
    AlertCase("KafkaGroupStalled", "a slow group is not stalled", "20m", None, MEMBERS | status("WARN")),
    AlertCase(
        "KafkaGroupRewound",
        "offsets were reset",
        "5m",
        TICKET,
        MEMBERS | LAGGING | status("REWIND"),
        says=(
            "payments: a committed offset was moved back",
            (
                "The group committed a lower offset of a partition than before. It has not reached the previous "
                "offset again yet, so it processes records a second time. 12k records wait. The oldest uncommitted "
                "record is 5m 0s old. Likely causes: an operator reset the offsets, auto.offset.reset took effect, "
                "or a member commits old offsets. What to do: find out who reset the offsets. If it was not an "
                "operator, compare the members' logs with the times in the table partition_status."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupRewound",
        "the group reached the earlier offset again",
        "40m",
        None,
        MEMBERS | status("REWIND", "1x10 stale") | status("OK", "_x11 1x300"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "all pods are gone",
        "220m",
        PAGE,
        LEFT | status("STOP", "_x201 1x1500"),
        says=(
            "payments: the group has no members, and records wait",
            (
                "The group has no members. Before, it had 3 members. 1.9k records wait. Likely causes: the "
                "application is down, or it was scaled to zero. What to do: start the application. If it was "
                "retired, delete the group."
            ),
        ),
    ),
    *(
        AlertCase(
            "KafkaGroupWithoutMembers",
            f"the group existed for five hours and its members left {since} ago",
            at,
            severity,
            of_group("group_members", "2x60 0x600") | status("STOP", "1x660"),
            step="5m",
        )
        for since, at, severity in (
            ("ten minutes", "5h10m", None),
            ("50 minutes", "5h50m", PAGE),
            ("100 minutes", "6h40m", PAGE),
            ("ten hours", "15h", PAGE),
            ("20 hours", "25h", PAGE),
            ("more than a day", "30h", None),
        )
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "a job that runs twice a day, for an hour each",
        "900m",
        None,
        of_group("group_members", "0x300 3x59 0x400 3x59 0x600") | status("STOP", "1x1500"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "the alert lasts longer than the first hour",
        "1600m",
        PAGE,
        of_group("group_members", "3x1500 0x1500") | status("STOP", "_x1501 1x1500"),
    ),
    AlertCase("KafkaGroupWithoutMembers", "all records are read", "220m", None, LEFT | status("OK")),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "a deployment that stops all members first",
        "214m",
        None,
        LEFT | status("STOP", "_x201 1x1500"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "a job of an hour a day",
        "420m",
        None,
        of_group("group_members", "0x340 3x60 0x1500") | status("STOP", "1x340 0x60 1x1500"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "the group had no members for hours",
        "420m",
        None,
        of_group("group_members", "0x1500") | status("STOP", "1x1500"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "Prometheus has no earlier values",
        "60m",
        None,
        of_group("group_members", "0x1500") | status("STOP", "1x1500"),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the coordinator lost the group",
        "45m",
        TICKET,
        of_group("group_members", "3x30 stale") | of_group("group_state", "1x30 stale", state="Stable"),
        says=(
            "payments: the group had members, and the monitor does not find it any more",
            (
                "The group had 3 members when the monitor last saw it, within the last hour. Now the monitor does "
                "not find the group. Kafka deletes only groups without members. Likely causes: records of "
                "__consumer_offsets were lost, or the monitor's settings now exclude the group. What to do: run "
                "kafka-consumer-groups.sh --describe --group. If Kafka does not know the group, its offsets are "
                "gone. In this case, check auto.offset.reset before you restart the members."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the group was deleted after all members had left",
        "45m",
        None,
        of_group("group_members", "3x30 0x2 stale") | of_group("group_state", "1x32 stale", state="Stable"),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "a restarted monitor shows the group later",
        "45m",
        None,
        of_group("group_members", "3x30 stale")
        | of_group("group_state", "1x30 stale", state="Stable")
        | {READY: "1x30 0x300"},
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the group is blocked by an open transaction",
        "45m",
        None,
        of_group("group_members", "3x30 stale") | of_group("group_state", "1x300", state="Unknown"),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the series limit omits the group",
        "45m",
        None,
        of_group("group_members", "3x30 stale")
        | of_group("group_state", "1x30 stale", state="Stable")
        | of_cluster("dropped_series", "0x30 9x300", reason="max_series"),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "a lag of two hours that does not decrease",
        "30m",
        PAGE,
        MEMBERS
        | of_group("group_lag_seconds", "7200x300")
        | of_group("group_lag", "12000+5x300")
        | of_group("group_lag_seconds_is_bound", "1x300"),
        says=(
            "payments: the group is 2h 0m 0s behind",
            (
                "The next record that the group has to read was written 2h 0m 0s ago or earlier. 12.15k records "
                "wait. The group has 3 members. The lag does not decrease. What to do: see on the group's page "
                "which partitions lag. If all partitions lag, the group has too few members, or its members are too "
                "slow. If only the partitions of one member lag, that member has too many partitions or is slow."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "a lag of 15 minutes has severity ticket",
        "30m",
        TICKET,
        MEMBERS | of_group("group_lag_seconds", "900x300"),
    ),
    AlertCase("KafkaGroupLagging", "a lag of five minutes", "30m", None, MEMBERS | LAGGING),
    AlertCase(
        "KafkaGroupLagging",
        "a peak that lasts ten minutes",
        "40m",
        None,
        MEMBERS | of_group("group_lag_seconds", "10x10 900x10 10x300"),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "a group without members has a different alert",
        "30m",
        None,
        of_group("group_members", "0x300") | of_group("group_lag_seconds", "7200x300"),
    ),
)

NOT_LOST_YET = MEMBERS | of_group("group_records_lost", "0x300") | of_group("group_lag", "12000x300")

RETENTION = (
    AlertCase(
        "KafkaRecordsLost",
        "retention deleted unread records",
        "5m",
        PAGE,
        MEMBERS | of_group("group_records_lost", "1500x300") | of_group("group_lag_seconds", "7200x300"),
        says=(
            "payments: up to 1.5k records were deleted before the group read them",
            (
                "Retention deleted 1.5k offsets that the group had not committed. The group is 2h 0m 0s behind. "
                "Likely causes: the group was too slow, or it was down for longer than the topic's retention. What "
                "to do: raise retention.ms of the topic at once, to stop the loss. Then reduce the lag. Inform the "
                "owners of the data."
            ),
        ),
    ),
    AlertCase("KafkaRecordsLost", "no record is lost", "5m", None, MEMBERS | of_group("group_records_lost", "0x300")),
    AlertCase(
        "KafkaRecordsLost",
        "an unused group loses records every day",
        "300m",
        None,
        of_group("group_members", "0x400") | status("STOP", "1x400") | of_group("group_records_lost", "1500x400"),
    ),
    AlertCase(
        "KafkaRecordsLost",
        "the members left ten hours ago",
        "15h",
        PAGE,
        of_group("group_members", "2x60 0x600")
        | status("STOP", "1x660")
        | of_group("group_records_lost", "0x90 9x570"),
        step="5m",
    ),
    AlertCase(
        "KafkaRecordsLost",
        "a group with assign() has no members but is in use",
        "5m",
        PAGE,
        of_group("group_members", "0x300") | status("WARN") | of_group("group_records_lost", "1500x300"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "half an hour is left",
        "10m",
        PAGE,
        NOT_LOST_YET | of_group("group_seconds_until_lost", "1800x300"),
        says=(
            "payments: retention deletes unread records in 30m 0s",
            (
                "At the present rate, retention deletes unread records in 30m 0s, unless the group commits them "
                "before. 12k records wait. What to do: on the group's page, find the topics with lag. Raise "
                "retention.ms (or retention.bytes) of these topics. Then reduce the lag."
            ),
        ),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "four hours are left",
        "30m",
        TICKET,
        NOT_LOST_YET | of_group("group_seconds_until_lost", "14400x300"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "a day is left",
        "30m",
        None,
        NOT_LOST_YET | of_group("group_seconds_until_lost", "86400x300"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "records are already lost, which is a different alert",
        "30m",
        None,
        MEMBERS | of_group("group_records_lost", "7x300") | of_group("group_seconds_until_lost", "0x300"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost", "the time is unknown because the log start never moved", "30m", None, NOT_LOST_YET
    ),
)
