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
            "payments: its busiest member has 45.45% more than it need have",
            (
                "Client app on /10.0.0.7 holds 16 partitions, 5 more than anybody has in the fairest valid "
                "assignment, since 2023-11-14 22:13:20 +0000 UTC. Why: topic skew, the same members get the one "
                "partition more of every topic. What to do: change the group's strategy to sticky, which shares all"
                " topics evenly."
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
            f"{HOSTILE}: its busiest member has 125% more than it need have",
            (
                "One member holds too many partitions, 5 more than anybody has in the fairest valid assignment. Likely "
                "causes: members subscribe to different topics, or a client divides partitions by rules of its own. "
                "What to do: see the what-if table of the group."
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
            "payments: its assignment is not what range promises",
            (
                "2 partitions are not where range puts them, since 2023-11-14 22:13:20 +0000 UTC. Likely causes: "
                "the client that leads the group computes something else, or computes it from old metadata. What to"
                " do: see on the page which partitions and which law is broken; compare the versions of the "
                "members' clients."
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
            "payments: partitions that nobody reads",
            (
                "2 subscribed partitions have no owner since 2023-11-14 22:13:20 +0000 UTC at the latest, and 150 "
                "records wait there. Likely causes: a topic grew and the client has not noticed, the assignment leaves "
                "partitions out, or a cooperative rebalance does not end. What to do: restart the member that leads "
                "the group, or all members if that does not help."
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
            "payments: 1 of its members have nothing to do and could have",
            (
                "1 of the members hold no partition although a valid assignment would give them some; the busiest "
                "holds 4, since 2023-11-14 22:13:20 +0000 UTC. Members beyond the number of partitions are not "
                "counted. Likely causes: the strategy, or subscriptions that differ. What to do: see the what-if "
                "table of the group."
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
