"""Define cases in which alerts on commits and lag fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.assignment_cases import HOT_PARTITION, LATE, WORST, lag_cause
from tests.dashboards.rules import (
    BOTH,
    CRITICAL,
    INFO,
    OF_GROUP,
    READY,
    ROLLING,
    WARNING,
    AlertCase,
    condition,
    group,
    of_cluster,
    of_group,
)

MEMBERS = of_group("group_members", "3x300")
EMPTY = of_group("group_members", "0x300")
IN_TIME = of_group("group_lag", "12000x300") | of_group("group_lag_seconds", "300x300")
HOURS_LATE = of_group("group_lag", "12000x300") | of_group("group_lag_seconds", "7200x300")


def status(name: str, values: str = "1x300") -> dict[str, str]:
    """Return the series of the group's status."""
    return of_group("group_status", values, status=name)


LAGGING = (
    AlertCase(
        "KafkaGroupLagging",
        "a lag of two hours that grows: the text also contained the time to catch up",
        "30m",
        BOTH,
        MEMBERS
        | HOURS_LATE
        | of_group("group_lag", "9000+100x300")
        | of_group("group_catch_up_seconds", "1200x300")
        | WORST
        | of_group("group_lag_seconds_is_bound", "1x300")
        | of_group("group_consumed_records_per_second", "100x300")
        | of_group("group_produced_records_per_second", "150x300"),
        says=(
            "payments on prod: the group is 2h 0m 0s behind",
            (
                "The next record that the group has to read was written 2h 0m 0s ago or earlier. 12k records wait. The "
                "group reads 100 records per second. Producers write 150 records per second. The lag grows. The group "
                "has 3 members. Partition 3 of topic orders has the largest lag in seconds. Its owner is client app-2 "
                "on /10.0.0.7. What to do: open the group's page, and find the partitions that lag. If all partitions "
                "lag, the group has too few members, or its members are too slow. If only the partitions of one member "
                "lag, that member has too many partitions or is slow."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "a lag of 15 minutes that gets smaller",
        "30m",
        (WARNING,),
        MEMBERS
        | LATE
        | of_group("group_consumed_records_per_second", "160x300")
        | of_group("group_produced_records_per_second", "150x300")
        | of_group("group_catch_up_seconds", "1200x300"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group reads "
                "160 records per second. Producers write 150 records per second. The group needs 20m 0s to catch up. "
                "The group has 3 members. What to do: open the group's page, and find the partitions that lag. If all "
                "partitions lag, the group has too few members, or its members are too slow. If only the partitions of "
                "one member lag, that member has too many partitions or is slow."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the members hung and then catch up: the rates of five minutes contain the hang",
        "30m",
        (WARNING,),
        MEMBERS
        | LATE
        | of_group("group_lag", "15000-100x300")
        | of_group("group_consumed_records_per_second", "70x300")
        | of_group("group_produced_records_per_second", "100x300"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group reads "
                "70 records per second. Producers write 100 records per second. The group has 3 members. What to do: "
                "open the group's page, and find the partitions that lag. If all partitions lag, the group has too few "
                "members, or its members are too slow. If only the partitions of one member lag, that member has too "
                "many partitions or is slow."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the cause of the lag is known: the text names it instead of guesses",
        "30m",
        (WARNING,),
        MEMBERS | LATE | HOT_PARTITION,
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group has 3 "
                "members. Cause of the lag: hot partition. Partition 3 of topic orders receives more records than its "
                "owner can consume. A different assignment cannot help. What to do: look at the keys of the records, "
                "or make the processing faster."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "one member is slow: the text names the member and its host",
        "30m",
        (WARNING,),
        MEMBERS | LATE | lag_cause("slow_member", client_id="app-2", client_host="/10.0.0.7"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group has 3 "
                "members. Cause of the lag: slow member. Client app-2 on /10.0.0.7 consumes fewer records than the "
                "other members, but the input of all members is similar. What to do: compare this member with the "
                "others: version, CPU, memory, and the systems that it calls."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the cause is unknown: a transaction in a healthy partition is not the cause",
        "30m",
        (WARNING,),
        MEMBERS | LATE | lag_cause("unknown") | of_group("group_blocked_partitions", "1x300"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group has 3 "
                "members. What to do: open the group's page, and find the partitions that lag. If all partitions lag, "
                "the group has too few members, or its members are too slow. If only the partitions of one member lag, "
                "that member has too many partitions or is slow."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "an open transaction blocks every late partition: the advice was to add members",
        "30m",
        (WARNING,),
        MEMBERS | LATE | lag_cause("open_transaction"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group has 3 "
                "members. Cause of the lag: an open transaction of a producer blocks every late partition. What to do: "
                "find the producer with kafka-transactions.sh, and restart this producer. If the producer no longer "
                "exists, abort the transaction."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the application stopped ten minutes ago: there are no members whose logs could help",
        "20m",
        (WARNING,),
        EMPTY | LATE | lag_cause("no_members") | of_group("group_last_commit_timestamp_seconds", "0+60x10 600x300"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group has 0 "
                "members. Cause of the lag: the group has no members, and records wait. What to do: if the application "
                "is down, start it."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the members do not commit",
        "20m",
        (WARNING,),
        MEMBERS | LATE | lag_cause("stopped"),
        says=(
            "payments on prod: the group is 15m 0s behind",
            (
                "The next record that the group has to read was written 15m 0s ago. 12k records wait. The group has 3 "
                "members. Cause of the lag: the group has stopped. Records wait, but the group's committed offsets do "
                "not increase. What to do: read the logs of the members, and restart the members."
            ),
        ),
    ),
    AlertCase("KafkaGroupLagging", "a lag of five minutes", "30m", (), MEMBERS | IN_TIME),
    AlertCase(
        "KafkaGroupLagging",
        "a peak that lasts ten minutes",
        "40m",
        (),
        MEMBERS | of_group("group_lag_seconds", "10x10 900x10 10x300"),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "an entry [[groups]] with strict limits for an important group",
        "30m",
        BOTH,
        MEMBERS | IN_TIME | group(limits={"max_lag_seconds": 30, "critical_lag_seconds": 120}),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "an entry [[groups]] with loose limits for a slow job",
        "30m",
        (),
        MEMBERS | HOURS_LATE | group(limits={"max_lag_seconds": 14400, "critical_lag_seconds": 86400}),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the team of the group is a label of the alert",
        "30m",
        BOTH,
        MEMBERS | HOURS_LATE | group(team="payments"),
        labels={**OF_GROUP, "team": "payments"},
        says=(
            "payments on prod: the group is 2h 0m 0s behind",
            (
                "The next record that the group has to read was written 2h 0m 0s ago. 12k records wait. The group has "
                "3 members. What to do: open the group's page, and find the partitions that lag. If all partitions "
                "lag, the group has too few members, or its members are too slow. If only the partitions of one member "
                "lag, that member has too many partitions or is slow."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the entry of the group allows warnings only",
        "30m",
        (WARNING,),
        MEMBERS | HOURS_LATE | group(max_severity="warning"),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "the entry of the group allows information only",
        "30m",
        (INFO,),
        MEMBERS | HOURS_LATE | group(max_severity="info"),
    ),
    AlertCase("KafkaGroupLagging", "alerts are ignored", "30m", (), MEMBERS | HOURS_LATE | group(ignore_alerts="true")),
    AlertCase(
        "KafkaGroupLagging",
        "two monitors with different versions of the entries [[groups]]",
        "30m",
        BOTH,
        MEMBERS
        | group(instance="a:9560", team="old", coordinator="1")
        | group(instance="b:9560", team="new", coordinator="2")
        | of_group("group_lag_seconds", "7200x300", instance="a:9560")
        | of_group("group_lag_seconds", "7201x300", instance="b:9560"),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "a group without members that does not commit has a different alert",
        "30m",
        (),
        EMPTY | HOURS_LATE | of_group("group_last_commit_timestamp_seconds", "-7200x300"),
    ),
    AlertCase(
        "KafkaGroupLagging",
        "Flink commits every ten minutes without members",
        "60m",
        BOTH,
        EMPTY
        | HOURS_LATE
        | of_group("group_last_commit_timestamp_seconds", "0x9 600x9 1200x9 1800x9 2400x9 3000x9 3600x9"),
    ),
    AlertCase("KafkaGroupLagging", "the monitor catches up", "40m", (), MEMBERS | HOURS_LATE | {READY: "0x300"}),
    AlertCase(
        "KafkaGroupLagging",
        "the group has caught up",
        "60m",
        (),
        MEMBERS | of_group("group_lag_seconds", "7200x30 5x300"),
    ),
)

STOPPED = (
    AlertCase(
        "KafkaGroupStopped",
        "a group with members whose records wait too long",
        "20m",
        BOTH,
        MEMBERS | LATE | WORST | status("STOP"),
        says=(
            "payments on prod: a partition no longer gets commits, and records wait",
            (
                "A partition no longer gets commits. The time since the last commit is longer than the time in which "
                "the last ten commits arrived. 12k records wait. The oldest uncommitted record is 15m 0s old. The "
                "group has 3 members. Partition 3 of topic orders has the largest lag in seconds. Its owner is client "
                "app-2 on /10.0.0.7. Likely causes: a member hangs or fails, or the partition has no owner. What to "
                "do: find the partitions with status STOP on the group's page. Restart the owners of these partitions."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupStopped",
        "a record that the members cannot process",
        "20m",
        (WARNING,),
        MEMBERS | IN_TIME | status("STALL"),
        says=(
            "payments on prod: a partition gets the same committed offset again and again",
            (
                "Records wait and the group commits, but the committed offset of a partition stays the same. 12k "
                "records wait. The oldest uncommitted record is 5m 0s old. The group has 3 members. Likely causes: a "
                "member cannot process a record and tries the same record again and again. What to do: find the "
                "partition with status STALL on the group's page. Read the log of the member that owns the partition. "
                "Skip or repair the record."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupStopped",
        "a transaction marker makes the lag 1 for ever, but its seconds are unknown",
        "60m",
        (WARNING,),
        MEMBERS | status("STOP") | of_group("group_lag", "1x300"),
    ),
    AlertCase("KafkaGroupStopped", "a group without members has a different alert", "20m", (), EMPTY | status("STOP")),
    AlertCase("KafkaGroupStopped", "a slow group is not stopped", "20m", (), MEMBERS | LATE | status("WARN")),
    AlertCase("KafkaGroupStopped", "a deployment stops the group", "20m", (), MEMBERS | status("STOP") | ROLLING),
    AlertCase(
        "KafkaGroupStopped",
        "a deployment during which records wait too long",
        "20m",
        (CRITICAL,),
        MEMBERS | LATE | status("STOP") | ROLLING,
    ),
    AlertCase("KafkaGroupStopped", "the monitor catches up", "40m", (), MEMBERS | status("STOP") | {READY: "0x300"}),
    AlertCase(
        "KafkaGroupStopped",
        "the group commits again",
        "60m",
        (),
        MEMBERS | LATE | status("STOP", "1x30 stale") | status("OK", "_x31 1x300"),
    ),
)

SILENT = (
    AlertCase(
        "KafkaGroupSilent",
        "no member commits",
        "10m",
        (CRITICAL,),
        condition("silent_group", "1x300") | IN_TIME | MEMBERS,
        says=(
            "payments on prod: no member commits, and records wait",
            (
                "The last commit of the group was before 2023-11-14 22:13:20 +0000 UTC. The group is not in a "
                "rebalance, and new records arrived after this commit. 12k records wait. The oldest uncommitted record "
                "is 5m 0s old. The group has 3 members. Likely causes: the members hang, fail on every record, or do "
                "not commit. What to do: read the log of one member and take a thread dump. Then restart the members."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupSilent",
        "the entry of the group allows warnings only",
        "10m",
        (WARNING,),
        condition("silent_group", "1x300") | group(max_severity="warning"),
    ),
    AlertCase("KafkaGroupSilent", "it ends after three minutes", "10m", (), condition("silent_group", "1x3 stale")),
    AlertCase("KafkaGroupSilent", "the members commit again", "40m", (), condition("silent_group", "1x20 stale")),
    AlertCase(
        "KafkaStaticMemberSilent",
        "a fenced pod whose records wait too long",
        "10m",
        BOTH,
        condition("silent_static_member", "1x300")
        | LATE
        | of_group(
            "group_worst_partition_info",
            "1x300",
            topic="orders",
            partition="3",
            client_id="app-2",
            client_host="/10.0.0.7",
            group_instance_id="pod-2",
        ),
        says=(
            "payments on prod: a static member does not commit",
            (
                "The last commit of a static member was before 2023-11-14 22:13:20 +0000 UTC. At least one other "
                "member has committed since then. The group's page names the static member. 12k records wait. The "
                "oldest uncommitted record is 15m 0s old. Partition 3 of topic orders has the largest lag in seconds. "
                "Its owner is client app-2 on /10.0.0.7 (instance pod-2). Other members get the partitions of the "
                "static member only after session.timeout.ms has passed. Likely causes: the member's group.instance.id "
                "is fenced, or the member hangs. What to do: restart the static member."
            ),
        ),
    ),
    AlertCase(
        "KafkaStaticMemberSilent",
        "no record waits too long yet",
        "10m",
        (WARNING,),
        condition("silent_static_member", "1x300") | IN_TIME,
    ),
    AlertCase(
        "KafkaStaticMemberSilent",
        "it ends after three minutes",
        "10m",
        (),
        condition("silent_static_member", "1x3 stale"),
    ),
    AlertCase(
        "KafkaStaticMemberSilent",
        "the member commits again",
        "40m",
        (),
        condition("silent_static_member", "1x20 stale"),
    ),
)

DEAD = (
    of_group("group_members", "3x10 0x3000")
    | of_group("group_lag_seconds", "5x10 60+300x3000")
    | of_group("group_lag", "9x10 9+100x3000")
    | of_group("group_last_commit_timestamp_seconds", "0+300x10 3000x3000")
)
"""Series with a step of five minutes: all members leave after 50 minutes."""

DEAD_FOR_DAYS = (
    of_group("group_members", "3x2 0x300")
    | of_group("group_lag_seconds", "5x2 3600+3600x300")
    | of_group("group_last_commit_timestamp_seconds", "0+3600x2 7200x300")
)
"""Series with a step of one hour: all members leave after two hours, and twelve days pass."""

WITHOUT_MEMBERS = (
    AlertCase(
        "KafkaGroupWithoutMembers",
        "all pods are gone",
        "90m",
        (CRITICAL,),
        DEAD,
        step="5m",
        says=(
            "payments on prod: the group has no members, and records wait",
            (
                "The group has no members and does not commit. The oldest uncommitted record is 36m 0s old. 709 "
                "records wait. The last commit of the group was at 1970-01-01 00:50:00 +0000 UTC. Likely causes: the "
                "application is down, or it was scaled to zero. What to do: start the application. If the application "
                "is no longer needed, delete the group. If the application runs only from time to time, set "
                "max_lag_seconds or ignore_alerts for the group."
            ),
        ),
    ),
    *(
        AlertCase(
            "KafkaGroupWithoutMembers", f"the members left {since} ago", at, (CRITICAL,), DEAD_FOR_DAYS, step="1h"
        )
        for since, at in (("ten hours", "12h"), ("two days", "50h"), ("nine days", "220h"))
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "the entry of the group allows warnings only",
        "90m",
        (WARNING,),
        DEAD | group(max_severity="warning"),
        step="5m",
    ),
    AlertCase("KafkaGroupWithoutMembers", "the members left ten minutes ago", "60m", (), DEAD, step="5m"),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "the monitor starts when the group has been dead for days",
        "30m",
        (CRITICAL,),
        EMPTY | of_group("group_lag_seconds", "200000x300"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "the application was started again",
        "120m",
        (),
        of_group("group_members", "0x60 3x300")
        | of_group("group_lag_seconds", "7200x70 5x300")
        | of_group("group_last_commit_timestamp_seconds", "0x60 3660+60x300"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "the group was deleted",
        "120m",
        (),
        group("1x60 stale") | of_group("group_members", "0x60 stale") | of_group("group_lag_seconds", "7200x60 stale"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "alerts are ignored",
        "220h",
        (),
        DEAD_FOR_DAYS | group(ignore_alerts="true"),
        step="1h",
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "an entry [[groups]] lets a nightly job wait for a day",
        "20h",
        (),
        DEAD_FOR_DAYS | group(limits={"max_lag_seconds": 90000, "critical_lag_seconds": 90000}),
        step="1h",
    ),
    AlertCase(
        "KafkaGroupWithoutMembers", "all records are read", "220m", (), EMPTY | of_group("group_lag_seconds", "0x300")
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "a consumer with assign() commits without members",
        "60m",
        (),
        EMPTY | LATE | of_group("group_last_commit_timestamp_seconds", "0+60x300"),
    ),
    AlertCase(
        "KafkaGroupWithoutMembers",
        "a deployment that stops all members for ten minutes",
        "14m",
        (),
        of_group("group_members", "3x2 0x10 3x300")
        | of_group("group_lag_seconds", "5x2 0+60x10 5x300")
        | of_group("group_last_commit_timestamp_seconds", "0x2 120x10 780+60x300"),
    ),
)

GONE = of_group("group_members", "3x30 stale")

VANISHED = (
    AlertCase(
        "KafkaGroupVanished",
        "the coordinator lost the group",
        "45m",
        (WARNING,),
        GONE | group("1x30 stale"),
        says=(
            "payments on prod: the group had members, but the monitor no longer finds the group",
            (
                "Less than one hour ago, the group had 3 members. Now the monitor does not find the group. Likely "
                "causes: the members stopped, and somebody deleted the group before the next scrape; records of "
                "__consumer_offsets were lost; or the monitor's settings now exclude the group. What to do: run "
                "rebalance-monitor history. If the last row shows that the group was deleted, nothing is wrong. "
                "Otherwise run kafka-consumer-groups.sh --describe --group. If Kafka does not know the group, the "
                "group's offsets are lost. Check auto.offset.reset before you restart the members."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the coordinator moved before the group vanished",
        "45m",
        (WARNING,),
        GONE | group("1x10 stale", coordinator="1") | group("_x11 1x19 stale", coordinator="2"),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the group was deleted after all members had left",
        "45m",
        (),
        of_group("group_members", "3x30 0x2 stale") | group("1x32 stale"),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "a restarted monitor shows the group later",
        "45m",
        (),
        GONE | group("1x30 stale") | {READY: "1x30 0x300"},
    ),
    AlertCase("KafkaGroupVanished", "an open transaction blocks the group", "45m", (), GONE | group(state="Unknown")),
    AlertCase(
        "KafkaGroupVanished",
        "the series limit omits the group",
        "45m",
        (),
        GONE | group("1x30 stale") | of_cluster("dropped_series", "0x30 9x300", reason="max_series"),
    ),
    AlertCase(
        "KafkaGroupVanished",
        "the group is back",
        "60m",
        (),
        of_group("group_members", "3x30 _x20 3x300") | group("1x30 _x20 1x300"),
    ),
    AlertCase("KafkaGroupVanished", "alerts are ignored", "45m", (), GONE | group("1x30 stale", ignore_alerts="true")),
)

OTHERS = (
    AlertCase(
        "KafkaGroupRewound",
        "offsets were reset",
        "5m",
        (WARNING,),
        MEMBERS | IN_TIME | status("REWIND"),
        says=(
            "payments on prod: the group committed a lower offset than before",
            (
                "For a partition, the group committed a lower offset than before. The group has not reached the "
                "previous offset yet, so it processes records a second time. 12k records wait. The oldest uncommitted "
                "record is 5m 0s old. Likely causes: an operator reset the offsets, auto.offset.reset took effect, or "
                "a member commits old offsets. What to do: find out who reset the offsets. If no operator reset them, "
                "compare the members' logs with the times in the table partition_status."
            ),
        ),
    ),
    AlertCase(
        "KafkaGroupRewound",
        "the group reached the earlier offset again",
        "40m",
        (),
        MEMBERS | status("REWIND", "1x10 stale") | status("OK", "_x11 1x300"),
    ),
    AlertCase(
        "KafkaGroupUnknown",
        "records of the group are missing",
        "70m",
        (WARNING,),
        group(state="Unknown"),
        says=(
            "payments on prod: the state of the group has been unknown for an hour",
            (
                "The monitor does not know the members and the assignment of the group, so most other alerts about "
                "this group cannot fire. Likely causes: records of the group are missing in __consumer_offsets, or an "
                "open transaction blocks the group's partition of this topic. Another possible cause: a client uses "
                "its own format for subscriptions or assignments. What to do: see the reason on the group's page. "
                'Search the table "quarantine" for records of the group.'
            ),
        ),
    ),
    AlertCase("KafkaGroupUnknown", "half an hour is not yet worth a look", "30m", (), group(state="Unknown")),
    AlertCase("KafkaGroupUnknown", "a known group", "120m", (), group()),
    AlertCase(
        "KafkaGroupUnknown",
        "the group is known again",
        "120m",
        (),
        group("1x90 stale", state="Unknown") | group("_x91 1x300", state="Stable"),
    ),
)

PROGRESS = (*LAGGING, *STOPPED, *SILENT, *WITHOUT_MEMBERS, *VANISHED, *OTHERS)
