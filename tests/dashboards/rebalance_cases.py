"""Define cases in which alerts on rebalances fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.assignment_cases import LATE
from tests.dashboards.rules import BOTH, INFO, OF_GROUP, READY, ROLLING, WARNING, AlertCase, condition, group, of_group

STORM = condition("rebalance_storm", "1x300")
STUCK = condition("stuck_rebalance", "1x300")
STUCK_LABELS = {**OF_GROUP, "condition": "stuck_rebalance"}

ROLLING_RESTART = (
    AlertCase(
        "KafkaRollingRestart",
        "a deployment",
        "5m",
        (INFO,),
        ROLLING,
        says=(
            "payments on prod: a rolling restart is in progress",
            (
                "A rolling restart has been in progress since 2023-11-14 22:13:20 +0000 UTC. Members restart one after "
                "the other. Without static membership (group.instance.id), each restart causes rebalances. What to do: "
                "nothing."
            ),
        ),
    ),
    AlertCase("KafkaRollingRestart", "a rebalance storm is no rolling restart", "5m", (), STORM),
    AlertCase(
        "KafkaRollingRestart", "it ends after the deployment", "40m", (), condition("rolling_restart", "1x20 stale")
    ),
)

STORMS = (
    AlertCase(
        "KafkaRebalanceStorm",
        "members poll too rarely, and records wait too long",
        "20m",
        BOTH,
        STORM
        | LATE
        | of_group("rebalances_by_cause_total", "0+2x300", cause="member_gone")
        | of_group("rebalances_by_cause_total", "0+1x300", cause="member_joined")
        | of_group("group_members", "4x300"),
        says=(
            "payments on prod: the group rebalances again and again",
            (
                "The group has rebalanced again and again since 2023-11-14 22:13:20 +0000 UTC. The most frequent cause "
                "is member_gone. The group has 4 members. 12k records wait. The oldest uncommitted record is 15m 0s "
                "old. With an eager strategy, no member works during a rebalance. Likely causes: the work for one poll "
                "takes longer than max.poll.interval.ms, a member is killed again and again, or two processes have the "
                "same group.instance.id. What to do: open the group's page, and find the members that leave and join. "
                "Read the logs of these members."
            ),
        ),
    ),
    AlertCase("KafkaRebalanceStorm", "a storm without lag wakes nobody", "20m", (WARNING,), STORM),
    AlertCase(
        "KafkaRebalanceStorm",
        "a commit gap above the limit is harm",
        "20m",
        BOTH,
        STORM | condition("long_commit_gap", "1x300"),
    ),
    AlertCase(
        "KafkaRebalanceStorm",
        "a member that flaps, and no storm",
        "20m",
        (WARNING,),
        condition("flapping_member", "1x300"),
        says=(
            "payments on prod: the group rebalances again and again",
            (
                "The group has rebalanced again and again since 2023-11-14 22:13:20 +0000 UTC. One member joins and "
                "leaves again and again. The group's page names this member. With an eager strategy, no member works "
                "during a rebalance. Likely causes: the work for one poll takes longer than max.poll.interval.ms, a "
                "member is killed again and again, or two processes have the same group.instance.id. What to do: open "
                "the group's page, and find the members that leave and join. Read the logs of these members."
            ),
        ),
    ),
    AlertCase(
        "KafkaRebalanceStorm",
        "a member that flaps causes a storm: one alert",
        "20m",
        (WARNING,),
        STORM | condition("flapping_member", "1x300"),
    ),
    AlertCase("KafkaRebalanceStorm", "a storm of three minutes", "20m", (), condition("rebalance_storm", "1x3 stale")),
    AlertCase("KafkaRebalanceStorm", "a rolling deployment is no storm", "20m", (), ROLLING),
    AlertCase(
        "KafkaRebalanceStorm",
        "a storm in old records while the monitor catches up",
        "10m",
        (),
        STORM | {READY: "0x300"},
    ),
    AlertCase(
        "KafkaRebalanceStorm", "it ends after the storm", "60m", (), condition("rebalance_storm", "1x30 stale") | LATE
    ),
)

COMMIT_GAPS = (
    AlertCase(
        "KafkaCommitGapLong",
        "a rebalance of six minutes with the default limit",
        "5m",
        (WARNING,),
        condition("long_commit_gap", "1x300"),
        says=(
            "payments on prod: a rebalance interrupted the commits for too long",
            (
                "The time without commits around a rebalance was longer than the limit of 5m 0s. The monitor first saw "
                "this gap at 2023-11-14 22:13:20 +0000 UTC. Records waited, or the group processed some records twice. "
                "Likely causes: a crashed member with a long session.timeout.ms, members that restore their state, or "
                "an eager strategy. What to do: find the cause and the length of the last rebalances on the group's "
                "page. Consider static membership or a cooperative strategy."
            ),
        ),
    ),
    AlertCase(
        "KafkaCommitGapLong",
        "also with lag it is a warning: KafkaGroupLagging is critical",
        "5m",
        (WARNING,),
        condition("long_commit_gap", "1x300") | LATE,
    ),
    AlertCase("KafkaCommitGapLong", "a storm without a long gap", "20m", (), STORM),
    AlertCase(
        "KafkaCommitGapLong", "it ends with its condition", "40m", (), condition("long_commit_gap", "1x20 stale")
    ),
)

STUCK_REBALANCES = (
    AlertCase(
        "KafkaRebalanceStuck",
        "a rebalance does not finish, and records wait",
        "5m",
        BOTH,
        STUCK | of_group("group_lag", "7x300"),
        labels=STUCK_LABELS,
        says=(
            "payments on prod: a rebalance does not finish",
            (
                "The rebalance did not finish in time. The allowed time ended at 2023-11-14 22:13:20 +0000 UTC. With "
                "an eager strategy, no member makes progress. Likely causes: a member hangs and does not rejoin, or a "
                "member crashed and its session has not timed out yet. 7 records wait. What to do: find the member "
                "that does not respond (kafka-consumer-groups.sh --describe --members) and restart this member."
            ),
        ),
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "no record waits, so nobody misses anything",
        "5m",
        (WARNING,),
        STUCK | of_group("group_lag", "0x300"),
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "one KIP-848 member does not reach its target",
        "5m",
        (WARNING,),
        condition("stuck_reconciliation", "1x300") | of_group("group_lag", "7x300"),
        labels={**OF_GROUP, "condition": "stuck_reconciliation"},
        says=(
            "payments on prod: a member does not reach its target assignment",
            (
                "A member of this KIP-848 group did not reach its target assignment in time. The allowed time ended at "
                "2023-11-14 22:13:20 +0000 UTC. This member makes no progress. The other members continue. Likely "
                "causes: the member hangs, or it does not revoke a partition. 7 records wait. What to do: find the "
                "member that does not respond (kafka-consumer-groups.sh --describe --members) and restart this member."
            ),
        ),
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "one KIP-848 member does not reach its target, and records wait too long",
        "5m",
        BOTH,
        condition("stuck_reconciliation", "1x300") | LATE,
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "a rebalance of a minute",
        "5m",
        (),
        of_group("group_rebalance_start_timestamp_seconds", "60x1 stale"),
    ),
    AlertCase(
        "KafkaRebalanceStuck", "it ends with the rebalance", "40m", (), condition("stuck_rebalance", "1x20 stale")
    ),
)

FAULTS = (
    *(
        AlertCase(
            "KafkaProtocolFault",
            why,
            "10m",
            (WARNING,),
            condition(name, "1x300"),
            labels={**OF_GROUP, "condition": name},
            says=says,
        )
        for name, why, says in (
            (
                "endless_cooperative_rejoin",
                "rounds that change nothing",
                (
                    "payments on prod: cooperative rebalances do not end",
                    (
                        "Since 2023-11-14 22:13:20 +0000 UTC, the group has rebalanced again and again, but no "
                        "member joins, leaves or changes anything. Likely causes: the assignor of the group leader "
                        "never reaches a final assignment. What to do: update the client of the group leader, or use a "
                        "different strategy."
                    ),
                ),
            ),
            (
                "eager_and_cooperative_mixed",
                "an incomplete upgrade",
                (
                    "payments on prod: the group mixes eager and cooperative strategies",
                    (
                        "Members claim partitions even though the strategy is eager, or the group changed its "
                        "strategy more than once. The monitor first saw this problem at 2023-11-14 22:13:20 +0000 UTC. "
                        "Some partitions may have two owners, or no owner. Likely causes: an unfinished upgrade. What "
                        "to do: give all members the same list of strategies in two rolling restarts."
                    ),
                ),
            ),
            (
                "duplicate_claims",
                "one partition, two owners",
                (
                    "payments on prod: two members claimed the same partition",
                    (
                        "Two members rejoined, and both claimed the same partition in the same generation. The monitor "
                        "first saw the two claims at 2023-11-14 22:13:20 +0000 UTC. Records may have been processed "
                        "twice. Likely causes: a removed member joined again, or a client has an old version. What to "
                        "do: search the downstream systems for duplicates. Update old clients."
                    ),
                ),
            ),
            (
                "subscribed_topic_missing",
                "a misspelled topic",
                (
                    "payments on prod: a subscribed topic does not exist",
                    (
                        "Members subscribe by name to a topic that the brokers do not know. The monitor first reported "
                        "the missing topic at 2023-11-14 22:13:20 +0000 UTC. The members read nothing from this topic. "
                        "Likely causes: the name is misspelled, or the topic was deleted. What to do: see the name of "
                        "the topic on the group's page. Correct the subscription, or create the topic."
                    ),
                ),
            ),
        )
    ),
    AlertCase(
        "KafkaProtocolFault",
        "it ends after two minutes",
        "10m",
        (),
        condition("endless_cooperative_rejoin", "1x2 stale"),
    ),
    AlertCase(
        "KafkaProtocolFault",
        "the two rolling restarts of an upgrade to cooperative (KIP-429)",
        "20m",
        (),
        condition("eager_and_cooperative_mixed", "1x300") | ROLLING,
    ),
    AlertCase(
        "KafkaProtocolFault",
        "members with different subscriptions break no rule of the protocol",
        "20m",
        (),
        condition("subscription_mismatch", "1x300"),
    ),
    AlertCase(
        "KafkaProtocolFault", "it ends with its condition", "40m", (), condition("duplicate_claims", "1x20 stale")
    ),
)

CAPS = (
    AlertCase(
        "KafkaRebalanceStorm",
        "the entry of the group allows warnings only",
        "20m",
        (WARNING,),
        STORM | LATE | group(max_severity="warning"),
    ),
    AlertCase(
        "KafkaRebalanceStorm",
        "the entry of the group allows information only",
        "20m",
        (INFO,),
        STORM | LATE | group(max_severity="info"),
        labels=OF_GROUP,
    ),
    AlertCase(
        "KafkaRebalanceStorm",
        "the entry of the group ignores alerts",
        "20m",
        (),
        STORM | LATE | group(ignore_alerts="true"),
    ),
)
"""Settings of a group limit the severity of its alerts."""

REBALANCES = (*ROLLING_RESTART, *STORMS, *COMMIT_GAPS, *STUCK_REBALANCES, *FAULTS, *CAPS)
