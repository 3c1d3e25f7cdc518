"""Define cases in which alerts on assignments fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import PAGE, READY, ROLLING, TICKET, AlertCase, condition, of_group


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

ASSIGNMENTS = (
    AlertCase(
        "KafkaAssignmentSkewed",
        "the text has member, amount, start time, cause and remedy",
        "20m",
        PAGE,
        skewed(),
        says=(
            "payments: the busiest member holds 45% more partitions than necessary",
            (
                "Client app on /10.0.0.7 holds 16 partitions, 5 more than the fairest possible maximum, since "
                "2023-11-14 22:13:20 +0000 UTC. Cause: topic skew. The same members hold the extra partition of "
                "several topics. What to do: change the group's strategy to sticky. This strategy removes the topic "
                "skew."
            ),
        ),
    ),
    AlertCase(
        "KafkaAssignmentSkewed", "16 instead of 11 is more than a third and has severity page", "20m", PAGE, skewed()
    ),
    AlertCase("KafkaAssignmentSkewed", "6 instead of 5 has severity ticket", "20m", TICKET, skewed("1x300", "6x300")),
    AlertCase("KafkaAssignmentSkewed", "4 instead of 3 is a third more", "20m", PAGE, skewed("1x300", "4x300")),
    AlertCase(
        "KafkaAssignmentSkewed", "an unavoidable difference of one is no excess", "20m", None, skewed("0x300", "2x300")
    ),
    AlertCase("KafkaAssignmentSkewed", "not in the first ten minutes", "9m", None, skewed()),
    AlertCase("KafkaAssignmentSkewed", "not during a rolling restart", "40m", None, skewed() | ROLLING),
    AlertCase("KafkaAssignmentSkewed", "not while the monitor catches up", "40m", None, skewed() | {READY: "0x300"}),
    AlertCase(
        "KafkaAssignmentSkewed",
        "not if the excess is unknown and has no series",
        "40m",
        None,
        of_group("member_partitions_max", "9x300"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "a fair assignment for a moment does not end the alert",
        "34m",
        PAGE,
        skewed("5x30 0x3 5x30", "16x30 11x3 16x30"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "it ends when the assignment is fair",
        "50m",
        None,
        skewed("5x30 0x300", "16x30 11x300"),
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "the alert continues when the monitor moves to a different machine",
        "31m",
        PAGE,
        {
            'rebalance_monitor_ready{cluster="prod",instance="a:9560"}': "1x30 stale",
            'rebalance_monitor_ready{cluster="prod",instance="b:9560"}': "_x31 1x30",
            READY: "_x60",
            'rebalance_monitor_excess_partitions{cluster="prod",group="payments",instance="a:9560"}': "5x30 stale",
            'rebalance_monitor_member_partitions_max{cluster="prod",group="payments",instance="a:9560"}': "9x30 stale",
            'rebalance_monitor_excess_partitions{cluster="prod",group="payments",instance="b:9560"}': "_x31 5x30",
            'rebalance_monitor_member_partitions_max{cluster="prod",group="payments",instance="b:9560"}': "_x31 9x30",
        },
    ),
    AlertCase(
        "KafkaAssignmentSkewed",
        "a group of any name is queried and linked by its name",
        "20m",
        PAGE,
        of_group("excess_partitions", "5x300", group=HOSTILE)
        | of_group("member_partitions_max", "9x300", group=HOSTILE),
        says=(
            f"{HOSTILE}: the busiest member holds 125% more partitions than necessary",
            (
                "One member holds too many partitions, 5 more than the fairest possible maximum. Likely causes: "
                "members subscribe to different topics, or a client uses its own strategy. What to do: check the "
                "what-if table on the group's page."
            ),
        ),
        labels={"cluster": "prod", "group": HOSTILE},
    ),
    AlertCase(
        "KafkaAssignmentDrift",
        "two partitions with drift",
        "20m",
        TICKET,
        of_group("assignment_verdict", "1x300", strategy="range", verdict="drift")
        | of_group("drift_partitions", "2x300", strategy="range")
        | of_group("assignment_timestamp_seconds", "1700000000x300"),
        says=(
            "payments: the assignment does not follow the strategy range",
            (
                "2 partitions have an owner that the strategy does not allow, since 2023-11-14 22:13:20 +0000 UTC. "
                "Likely causes: the client that leads the group computes a different assignment, or it uses old "
                "topic metadata. What to do: find the partitions and the broken rule on the group's page. Compare "
                "the client versions of the members."
            ),
        ),
        labels={"cluster": "prod", "group": "payments", "strategy": "range"},
    ),
    AlertCase(
        "KafkaAssignmentDrift",
        "a known difference of a client that is not Java is no drift",
        "20m",
        None,
        of_group("assignment_verdict", "1x300", strategy="range", verdict="differs_from_java")
        | of_group("drift_partitions", "2x300", strategy="range"),
    ),
    AlertCase(
        "KafkaAssignmentDrift",
        "a difference from a strategy that the group does not use is no drift",
        "20m",
        None,
        of_group("assignment_verdict", "1x300", strategy="range", verdict="match")
        | of_group("drift_partitions", "7x300", strategy="sticky"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "two partitions have no owner",
        "10m",
        PAGE,
        condition("unowned_partitions", "1x300")
        | of_group("unowned_partitions", "2x300")
        | of_group("unowned_records", "0+15x300"),
        says=(
            "payments: partitions have no owner, so no member reads them",
            (
                "2 subscribed partitions have had no owner since 2023-11-14 22:13:20 +0000 UTC or earlier. 150 "
                "records wait in these partitions. Likely causes: a topic got more partitions and the client has "
                "not read the new number yet, the assignment leaves out partitions, or a cooperative rebalance does "
                "not finish. What to do: restart the member that leads the group. If that does not help, restart "
                "all members."
            ),
        ),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "the number of waiting records is unknown because a partition has no leader",
        "10m",
        PAGE,
        condition("unowned_partitions", "1x300") | of_group("unowned_partitions", "2x300"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "a topic grew an hour ago and its new partitions have no records yet",
        "60m",
        TICKET,
        condition("unowned_partitions", "1x300")
        | of_group("unowned_partitions", "2x300")
        | of_group("unowned_records", "0x300"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "a topic grew a moment ago and metadata.max.age.ms has not passed",
        "20m",
        None,
        of_group("unowned_partitions", "0x10 3x5 0x300") | of_group("unowned_records", "_x10 9x5 stale"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "partitions withheld for one cooperative round are no condition",
        "20m",
        None,
        of_group("unowned_partitions", "2x3 0x300"),
    ),
    AlertCase(
        "KafkaPartitionsUnowned",
        "partitions without an owner during a deployment",
        "20m",
        None,
        condition("unowned_partitions", "1x300") | ROLLING,
    ),
    AlertCase(
        "KafkaMembersIdle",
        "one member has no partition while the busiest has four",
        "20m",
        TICKET,
        of_group("avoidable_idle_members", "1x300")
        | of_group("member_partitions_max", "4x300")
        | of_group("assignment_timestamp_seconds", "1700000000x300"),
        says=(
            "payments: idle members that could get partitions: 1",
            (
                "Members without partitions that a valid assignment could give partitions to: 1. The busiest member "
                "holds 4 partitions. The assignment was made at 2023-11-14 22:13:20 +0000 UTC. If there are more "
                "members than partitions, the surplus members are not counted. Likely causes: the strategy, or "
                "members with different subscriptions. What to do: check the what-if table on the group's page."
            ),
        ),
    ),
    AlertCase(
        "KafkaMembersIdle",
        "idle members cannot be avoided with more members than partitions",
        "20m",
        None,
        of_group("avoidable_idle_members", "0x300") | of_group("idle_members", "3x300"),
    ),
)
