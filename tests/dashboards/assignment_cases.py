"""Define cases in which alerts on assignments fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import (
    BOTH,
    COORDINATOR,
    OF_GROUP,
    READY,
    ROLLING,
    WARNING,
    AlertCase,
    condition,
    group,
    of_group,
)

LATE = of_group("group_lag", "12000x300") | of_group("group_lag_seconds", "900x300")
"""A lag above the default limit of 600 s."""

WORST = of_group(
    "group_worst_partition_info",
    "1x300",
    topic="orders",
    partition="3",
    client_id="app-2",
    client_host="/10.0.0.7",
    group_instance_id="",
)


def lag_cause(cause: str, **labels: str) -> dict[str, str]:
    """Return the series of the cause of the group's lag."""
    whole_group = {"topic": "", "partition": "", "client_id": "", "client_host": ""}
    return of_group("group_lag_cause_info", "1x300", cause=cause, **{**whole_group, **labels})


HOT_PARTITION = lag_cause("hot_partition", topic="orders", partition="3", client_id="app-2", client_host="/10.0.0.7")


def skewed(excess: str = "5x300", most: str = "16x300") -> dict[str, str]:
    """Return the series of a group with range and many topics: the same members get the extra partition of each."""
    return (
        of_group("excess_partitions", excess)
        | of_group("member_partitions_max", most)
        | of_group("busiest_member", most, client_id="app", client_host="/10.0.0.7", group_instance_id="")
        | of_group("assignment_timestamp_seconds", "1700000000x300")
        | of_group("topic_skew", excess, remedy="sticky")
    )


HOSTILE = 'a"b\\c/{{ $value }} é&d=#?'
"""Id of a group with characters that need escaping."""

TWO_MONITORS = {
    name: values
    for instance in ("a:9560", "b:9560")
    for name, values in {
        f'rebalance_monitor_ready{{cluster="prod",instance="{instance}"}}': "1x300",
        **group(instance=instance),
        **of_group("excess_partitions", "5x300", instance=instance),
        **of_group("group_lag_seconds", "900x300", instance=instance),
    }.items()
}
"""Series of two monitors of one cluster. Both see the same group with skew and lag."""

MOVED = {
    READY: "_x60",
    'rebalance_monitor_ready{cluster="prod",instance="a:9560"}': "1x30 stale",
    'rebalance_monitor_ready{cluster="prod",instance="b:9560"}': "_x31 1x30",
    **group("1x30 stale", instance="a:9560"),
    **group("_x31 1x30", instance="b:9560"),
    **of_group("excess_partitions", "5x30 stale", instance="a:9560"),
    **of_group("excess_partitions", "_x31 5x30", instance="b:9560"),
}
"""Series of a monitor that moves to a different machine after half an hour."""

SKEWED = (
    AlertCase(
        "KafkaAssignmentSkewed",
        "skew with a lag above the limit: the text has member, partition, start, lag and remedy",
        "20m",
        BOTH,
        skewed() | LATE | WORST,
        says=(
            "payments on prod: the busiest member holds 5 partitions more than necessary",
            (
                "Client app on /10.0.0.7 holds 16 partitions. In the fairest assignment, the busiest member would hold "
                "5 fewer than now. The assignment has been in use since 2023-11-14 22:13:20 +0000 UTC. 12k records "
                "wait. The oldest uncommitted record is 15m 0s old. Partition 3 of topic orders has the largest lag in "
                "seconds. Its owner is client app-2 on /10.0.0.7. Cause of the uneven assignment: topic skew. In "
                "several topics, the same members hold one partition more than the other members. What to do: change "
                "the group's strategy to sticky. This strategy removes the topic skew."
            ),
        ),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "skew is not the cause of the lag: the text names the cause, so nobody changes the strategy in vain",
        "20m",
        BOTH,
        of_group("excess_partitions", "5x300") | LATE | HOT_PARTITION,
        says=(
            "payments on prod: the busiest member holds 5 partitions more than necessary",
            (
                "One member holds too many partitions. In the fairest assignment, the busiest member would hold 5 "
                "fewer than now. 12k records wait. The oldest uncommitted record is 15m 0s old. Cause of the lag: hot "
                "partition. Partition 3 of topic orders receives more records than its owner can consume. A different "
                "assignment cannot help. Likely causes of the uneven assignment: a client uses its own strategy, or "
                "members subscribe to different topics. What to do: compare the strategies in the what-if table on the "
                "group's page."
            ),
        ),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "fair numbers of partitions, but one member receives most records: a warning without harm",
        "20m",
        (WARNING,),
        of_group("uneven_work_records_per_second", "390x300") | of_group("excess_partitions", "0x300"),
        says=(
            "payments on prod: the busiest member receives 390 more records per second than necessary",
            (
                "One member receives too many records. In the fairest assignment, the busiest member would receive 390 "
                "fewer records per second than now. What to do: find the busiest member on the group's page (section "
                "'How the work is shared'). Compare the strategies in the what-if table."
            ),
        ),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "one partition more than necessary is no reason, but uneven work is: the text does not mix the two numbers",
        "20m",
        (WARNING,),
        of_group("uneven_work_records_per_second", "390x300") | of_group("excess_partitions", "1x300"),
        says=(
            "payments on prod: the busiest member receives 390 more records per second than necessary",
            (
                "One member receives too many records. In the fairest assignment, the busiest member would receive 390 "
                "fewer records per second than now. What to do: find the busiest member on the group's page (section "
                "'How the work is shared'). Compare the strategies in the what-if table."
            ),
        ),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "uneven work with a lag above the limit",
        "20m",
        BOTH,
        of_group("uneven_work_records_per_second", "390x300") | LATE,
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "uneven work during a rolling restart",
        "40m",
        (),
        of_group("uneven_work_records_per_second", "390x300") | LATE | ROLLING,
    ),
    AlertCase("KafkaAssignmentSkewed", "skew without harm is a warning", "20m", (WARNING,), skewed()),
    AlertCase(
        "KafkaAssignmentSkewed",
        "a lag of 4 s is no harm: the picture of the showcase, 8 partitions where 6 would do",
        "60m",
        (WARNING,),
        skewed("2x300", "8x300") | of_group("group_lag_seconds", "4x300"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "a lag above the limit without skew is no skew",
        "20m",
        (),
        skewed("0x300", "4x300") | LATE,
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "the lag of an entry [[groups]] decides, not the default",
        "20m",
        (WARNING,),
        skewed() | LATE | group(limits={"max_lag_seconds": 1200}),
    ),
    AlertCase("KafkaAssignmentSkewed", "two monitors of one cluster", "20m", BOTH, TWO_MONITORS),
    AlertCase(
        "KafkaAssignmentSkewed", "an unavoidable difference of one is no excess", "20m", (), skewed("0x300", "2x300")
    ),
    AlertCase("KafkaAssignmentSkewed", "not in the first ten minutes", "9m", (), skewed() | LATE),
    AlertCase("KafkaAssignmentSkewed", "not during a rolling restart", "40m", (), skewed() | LATE | ROLLING),
    AlertCase(
        "KafkaAssignmentSkewed", "not while the monitor catches up", "40m", (), skewed() | LATE | {READY: "0x300"}
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "not if the excess is unknown and has no series",
        "40m",
        (),
        of_group("member_partitions_max", "9x300") | LATE,
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "a fair assignment for a moment does not end the alert",
        "34m",
        BOTH,
        skewed("5x30 0x3 5x30", "16x30 11x3 16x30") | LATE,
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "it ends when the assignment is fair",
        "50m",
        (),
        skewed("5x30 0x300", "16x30 11x300") | LATE,
    ),
    AlertCase("KafkaAssignmentSkewed", "the monitor moves to a different machine", "31m", (WARNING,), MOVED),
    AlertCase(
        "KafkaAssignmentSkewed",
        "a group of any name is queried and linked by its name",
        "20m",
        (WARNING,),
        group(group=HOSTILE) | of_group("excess_partitions", "2x300", group=HOSTILE),
        labels={"cluster": "prod", "group": HOSTILE, "coordinator": COORDINATOR},
        says=(
            'a"b\\c/{{ $value }} é&d=#? on prod: the busiest member holds 2 partitions more than necessary',
            (
                "One member holds too many partitions. In the fairest assignment, the busiest member would hold 2 "
                "fewer than now. Likely causes of the uneven assignment: a client uses its own strategy, or members "
                "subscribe to different topics. What to do: compare the strategies in the what-if table on the group's "
                "page."
            ),
        ),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "members subscribe to different topics, which is the cause",
        "20m",
        (WARNING,),
        of_group("excess_partitions", "2x300") | condition("subscription_mismatch", "1x300"),
        says=(
            "payments on prod: the busiest member holds 2 partitions more than necessary",
            (
                "One member holds too many partitions. In the fairest assignment, the busiest member would hold 2 "
                "fewer than now. Cause of the uneven assignment: members subscribe to different topics. What to do: "
                "give each application its own group id, or finish the deployment."
            ),
        ),
    ),
)


def range_group(excess: str) -> dict[str, str]:
    """Return the series of a Java group that keeps up, with 5 members and range on topics of 3, 5 and 7 partitions.

    Range gives the first member 1 + 1 + 2 partitions. 15 partitions over 5 members need only 3 each.
    """
    return (
        of_group("group_members", "5x300")
        | of_group("excess_partitions", excess)
        | of_group("member_partitions_max", "4x300")
        | of_group("group_status", "1x300", status="OK")
        | of_group("group_lag", "5x300")
        | of_group("group_lag_seconds", "1x300")
    )


ONE_PARTITION_MORE = (
    AlertCase(
        "KafkaAssignmentSkewed",
        "5 members with range on 3, 5 and 7 partitions, without lag",
        "280m",
        (),
        range_group("1x300"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "two members with range on two topics of one partition: one has both, the other is idle",
        "280m",
        (),
        of_group("excess_partitions", "1x300")
        | of_group("member_partitions_max", "2x300")
        | of_group("avoidable_idle_members", "1x300"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "one partition more and a short peak of lag that stays below the limit",
        "280m",
        (),
        of_group("excess_partitions", "1x300") | of_group("group_lag_seconds", "0x100 599x100 0x100"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "one partition more and a lag above the limit",
        "20m",
        BOTH,
        of_group("excess_partitions", "1x300") | LATE,
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "one partition more and a lag above the limit, in a group whose alerts are warnings at most",
        "20m",
        (WARNING,),
        of_group("excess_partitions", "1x300") | LATE | group(max_severity="warning"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "one partition more and an unknown lag: unknown is no harm",
        "280m",
        (),
        of_group("excess_partitions", "1x300"),
    ),
)
"""Groups with one partition more than necessary. Without lag above the limit, they get no alert."""

ASSIGNMENTS = (
    *SKEWED,
    *ONE_PARTITION_MORE,
    AlertCase(
        "KafkaAssignmentDrift",
        "two partitions with drift",
        "20m",
        (WARNING,),
        of_group("assignment_verdict", "1x300", strategy="range", verdict="drift")
        | of_group("drift_partitions", "2x300", strategy="range")
        | of_group("assignment_timestamp_seconds", "1700000000x300"),
        says=(
            "payments on prod: the assignment does not follow the strategy range",
            (
                "Partitions assigned against a rule of the strategy: 2. The assignment has been in use since "
                "2023-11-14 22:13:20 +0000 UTC. Likely causes: the group leader does not follow the strategy, or it "
                "uses old topic metadata. What to do: find the partitions and the broken rule on the group's page. "
                "Compare the client versions of the members."
            ),
        ),
        labels={**OF_GROUP, "strategy": "range"},
    ),
    AlertCase(
        "KafkaAssignmentDrift",
        "a known difference of a client that is not Java is no drift",
        "20m",
        (),
        of_group("assignment_verdict", "1x300", strategy="range", verdict="differs_from_java")
        | of_group("drift_partitions", "2x300", strategy="range"),
    ),
    AlertCase(
        "KafkaAssignmentDrift",
        "a difference from a strategy that the group does not use is no drift",
        "20m",
        (),
        of_group("assignment_verdict", "1x300", strategy="range", verdict="match")
        | of_group("drift_partitions", "7x300", strategy="sticky"),
    ),
    AlertCase(
        "KafkaAssignmentDrift",
        "it ends when the next assignment follows the strategy",
        "60m",
        (),
        of_group("assignment_verdict", "1x30 stale", strategy="range", verdict="drift")
        | of_group("assignment_verdict", "_x31 1x300", strategy="range", verdict="match"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "records wait in two partitions without an owner",
        "10m",
        BOTH,
        condition("unowned_partitions", "1x300")
        | of_group("unowned_partitions", "2x300")
        | of_group("unowned_records", "0+15x300"),
        says=(
            "payments on prod: partitions have no owner, so no member reads them",
            (
                "Subscribed partitions without an owner: 2. The partitions have had no owner since 2023-11-14 22:13:20 "
                "+0000 UTC or earlier. 150 records wait in these partitions. Likely causes: the clients do not see new "
                "partitions of a topic yet, the assignment is incomplete, or a cooperative rebalance does not finish. "
                "What to do: restart the group leader. The group's page names the group leader. If the restart does "
                "not help, restart all members."
            ),
        ),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "the number of waiting records is unknown because a partition has no leader",
        "10m",
        (WARNING,),
        condition("unowned_partitions", "1x300") | of_group("unowned_partitions", "2x300"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "a topic grew an hour ago and its new partitions have no records yet",
        "60m",
        (WARNING,),
        condition("unowned_partitions", "1x300")
        | of_group("unowned_partitions", "2x300")
        | of_group("unowned_records", "0x300"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "a topic grew a moment ago and metadata.max.age.ms has not passed",
        "20m",
        (),
        of_group("unowned_partitions", "0x10 3x5 0x300") | of_group("unowned_records", "_x10 9x5 stale"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "partitions withheld for one cooperative round are no condition",
        "20m",
        (),
        of_group("unowned_partitions", "2x3 0x300"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "partitions without an owner during a deployment",
        "20m",
        (),
        condition("unowned_partitions", "1x300") | ROLLING,
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "it ends when every partition has an owner",
        "40m",
        (),
        condition("unowned_partitions", "1x20 stale")
        | of_group("unowned_partitions", "2x20 0x300")
        | of_group("unowned_records", "9x20 stale"),
    ),
)
