"""What alerts on commits, lag and retention fire on, and what they do not."""

from __future__ import annotations

from tests.dashboards.rules import PAGE, READY, ROLLING, TICKET, Story, condition, of_cluster, of_group

MEMBERS = of_group("group_members", "3x300")
BEHIND = of_group("group_lag", "12000x300") | of_group("group_lag_seconds", "300x300")


def status(name: str, values: str = "1x300") -> dict[str, str]:
    """The group's status."""
    return of_group("group_status", values, status=name)


LEFT = of_group("group_members", "3x200 0x1500") | of_group("group_lag", "0x200 0+100x1500")

PROGRESS = (
    Story(
        "KafkaGroupSilent",
        "nobody commits",
        "10m",
        PAGE,
        condition("silent_group", "1x300") | BEHIND,
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
    Story("KafkaGroupSilent", "over at once", "10m", None, condition("silent_group", "1x3 stale")),
    Story(
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
    Story("KafkaStaticMemberSilent", "over at once", "10m", None, condition("silent_static_member", "1x3 stale")),
    Story(
        "KafkaGroupStopped",
        "it has members",
        "20m",
        PAGE,
        MEMBERS | BEHIND | status("STOP"),
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
    Story(
        "KafkaGroupStopped",
        "an abandoned group has none",
        "20m",
        None,
        of_group("group_members", "0x300") | status("STOP"),
    ),
    Story("KafkaGroupStopped", "a deployment stops it for a while", "20m", None, MEMBERS | status("STOP") | ROLLING),
    Story("KafkaGroupStopped", "a monitor that catches up", "40m", None, MEMBERS | status("STOP") | {READY: "0x300"}),
    Story(
        "KafkaGroupStalled",
        "a record nobody can work on",
        "20m",
        PAGE,
        MEMBERS | BEHIND | status("STALL"),
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
    Story("KafkaGroupStalled", "slow is not stalled", "20m", None, MEMBERS | status("WARN")),
    Story(
        "KafkaGroupRewound",
        "offsets were reset",
        "5m",
        TICKET,
        MEMBERS | BEHIND | status("REWIND"),
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
    Story(
        "KafkaGroupRewound",
        "it got back there",
        "40m",
        None,
        MEMBERS | status("REWIND", "1x10 stale") | status("OK", "_x11 1x300"),
    ),
    Story(
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
        Story(
            "KafkaGroupWithoutMembers",
            f"it was made five hours before they left, and that is {since} ago",
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
    Story(
        "KafkaGroupWithoutMembers",
        "a job that runs twice a day, for an hour each",
        "900m",
        None,
        of_group("group_members", "0x300 3x59 0x400 3x59 0x600") | status("STOP", "1x1500"),
    ),
    Story(
        "KafkaGroupWithoutMembers",
        "it lasts beyond the first hour",
        "1600m",
        PAGE,
        of_group("group_members", "3x1500 0x1500") | status("STOP", "_x1501 1x1500"),
    ),
    Story("KafkaGroupWithoutMembers", "nothing is left to read", "220m", None, LEFT | status("OK")),
    Story(
        "KafkaGroupWithoutMembers",
        "a deployment that stops all first",
        "214m",
        None,
        LEFT | status("STOP", "_x201 1x1500"),
    ),
    Story(
        "KafkaGroupWithoutMembers",
        "a job of an hour a day",
        "420m",
        None,
        of_group("group_members", "0x340 3x60 0x1500") | status("STOP", "1x340 0x60 1x1500"),
    ),
    Story(
        "KafkaGroupWithoutMembers",
        "it was abandoned long ago",
        "420m",
        None,
        of_group("group_members", "0x1500") | status("STOP", "1x1500"),
    ),
    Story(
        "KafkaGroupWithoutMembers",
        "a Prometheus that does not know what was before",
        "60m",
        None,
        of_group("group_members", "0x1500") | status("STOP", "1x1500"),
    ),
    Story(
        "KafkaGroupVanished",
        "its coordinator lost it",
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
    Story(
        "KafkaGroupVanished",
        "deleted when nobody was left",
        "45m",
        None,
        of_group("group_members", "3x30 0x2 stale") | of_group("group_state", "1x32 stale", state="Stable"),
    ),
    Story(
        "KafkaGroupVanished",
        "a monitor that starts again knows it later",
        "45m",
        None,
        of_group("group_members", "3x30 stale")
        | of_group("group_state", "1x30 stale", state="Stable")
        | {READY: "1x30 0x300"},
    ),
    Story(
        "KafkaGroupVanished",
        "hidden by an open transaction it is there still",
        "45m",
        None,
        of_group("group_members", "3x30 stale") | of_group("group_state", "1x300", state="Unknown"),
    ),
    Story(
        "KafkaGroupVanished",
        "left out by the limit of series",
        "45m",
        None,
        of_group("group_members", "3x30 stale")
        | of_group("group_state", "1x30 stale", state="Stable")
        | of_cluster("dropped_series", "0x30 9x300", reason="max_series"),
    ),
    Story(
        "KafkaGroupLagging",
        "two hours behind and not catching up",
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
    Story(
        "KafkaGroupLagging",
        "a quarter of an hour can wait",
        "30m",
        TICKET,
        MEMBERS | of_group("group_lag_seconds", "900x300"),
    ),
    Story("KafkaGroupLagging", "five minutes are fine", "30m", None, MEMBERS | BEHIND),
    Story(
        "KafkaGroupLagging",
        "a peak of ten minutes",
        "40m",
        None,
        MEMBERS | of_group("group_lag_seconds", "10x10 900x10 10x300"),
    ),
    Story(
        "KafkaGroupLagging",
        "nobody is there to catch up: that is told by another",
        "30m",
        None,
        of_group("group_members", "0x300") | of_group("group_lag_seconds", "7200x300"),
    ),
)

ABOUT_TO_BE = MEMBERS | of_group("group_records_lost", "0x300") | of_group("group_lag", "12000x300")

RETENTION = (
    Story(
        "KafkaRecordsLost",
        "retention was quicker",
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
    Story("KafkaRecordsLost", "nothing is lost", "5m", None, MEMBERS | of_group("group_records_lost", "0x300")),
    Story(
        "KafkaRecordsLost",
        "a group nobody uses any more loses records every day",
        "300m",
        None,
        of_group("group_members", "0x400") | status("STOP", "1x400") | of_group("group_records_lost", "1500x400"),
    ),
    Story(
        "KafkaRecordsLost",
        "its members are gone for ten hours",
        "15h",
        PAGE,
        of_group("group_members", "2x60 0x600")
        | status("STOP", "1x660")
        | of_group("group_records_lost", "0x90 9x570"),
        step="5m",
    ),
    Story(
        "KafkaRecordsLost",
        "one that reads by assign() has no members and is in use",
        "5m",
        PAGE,
        of_group("group_members", "0x300") | status("WARN") | of_group("group_records_lost", "1500x300"),
    ),
    Story(
        "KafkaRecordsAboutToBeLost",
        "half an hour is left",
        "10m",
        PAGE,
        ABOUT_TO_BE | of_group("group_seconds_until_lost", "1800x300"),
        says=(
            "payments: retention deletes unread records in 30m 0s",
            (
                "At the present rate, retention deletes unread records in 30m 0s, unless the group commits them "
                "before. 12k records wait. What to do: on the group's page, find the topics with lag. Raise "
                "retention.ms (or retention.bytes) of these topics. Then reduce the lag."
            ),
        ),
    ),
    Story(
        "KafkaRecordsAboutToBeLost",
        "four hours are left",
        "30m",
        TICKET,
        ABOUT_TO_BE | of_group("group_seconds_until_lost", "14400x300"),
    ),
    Story(
        "KafkaRecordsAboutToBeLost",
        "a day is left",
        "30m",
        None,
        ABOUT_TO_BE | of_group("group_seconds_until_lost", "86400x300"),
    ),
    Story(
        "KafkaRecordsAboutToBeLost",
        "where records are lost already that is told",
        "30m",
        None,
        MEMBERS | of_group("group_records_lost", "7x300") | of_group("group_seconds_until_lost", "0x300"),
    ),
    Story("KafkaRecordsAboutToBeLost", "not known: the log start never moved", "30m", None, ABOUT_TO_BE),
)
