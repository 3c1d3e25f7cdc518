"""Define cases in which alerts on rebalances fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import INFO, PAGE, READY, ROLLING, TICKET, AlertCase, condition, of_group

REBALANCES = (
    AlertCase(
        "KafkaRollingRestart",
        "a deployment",
        "5m",
        INFO,
        ROLLING,
        says=(
            "payments: members are replaced one after the other",
            (
                "A rolling restart has been in progress since 2023-11-14 22:13:20 +0000 UTC. Each member that "
                "leaves or joins causes a rebalance. What to do: nothing. Static membership (group.instance.id) "
                "would avoid these rebalances."
            ),
        ),
    ),
    AlertCase(
        "KafkaRollingRestart",
        "a rebalance storm is no rolling restart",
        "5m",
        None,
        condition("rebalance_storm", "1x300"),
    ),
    AlertCase(
        "KafkaRebalanceStorm",
        "members poll too rarely",
        "20m",
        PAGE,
        condition("rebalance_storm", "1x300")
        | of_group("rebalances_by_cause_total", "0+2x300", cause="member_gone")
        | of_group("rebalances_by_cause_total", "0+1x300", cause="member_joined")
        | of_group("group_members", "4x300"),
        says=(
            "payments: the group rebalances again and again",
            (
                "The group has rebalanced again and again since 2023-11-14 22:13:20 +0000 UTC. The most frequent "
                "cause is member_gone. The group has 4 members. Under an eager strategy, no member works during a "
                "rebalance. Likely causes: the work for one poll takes longer than max.poll.interval.ms, or a "
                "member is killed again and again. What to do: see on the group's page which members leave and "
                "join. Read the logs of these members."
            ),
        ),
    ),
    AlertCase(
        "KafkaRebalanceStorm",
        "a storm of three minutes",
        "20m",
        None,
        condition("rebalance_storm", "1x3 stale"),
    ),
    AlertCase("KafkaRebalanceStorm", "a rolling deployment is no storm", "20m", None, ROLLING),
    AlertCase(
        "KafkaRebalanceStorm",
        "a storm in old records while the monitor catches up",
        "10m",
        None,
        condition("rebalance_storm", "1x300") | {READY: "0x300"},
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "the condition stuck_rebalance is active",
        "5m",
        PAGE,
        condition("stuck_rebalance", "1x300"),
        says=(
            "payments: a rebalance does not finish",
            (
                "A rebalance of the group does not finish, or a KIP-848 member does not reach its target "
                "assignment. The allowed time ended at 2023-11-14 22:13:20 +0000 UTC. During a stuck rebalance, no "
                "member makes progress. With KIP-848, only the stuck member makes no progress. Likely causes: a "
                "member hangs and does not rejoin, or its process has ended and its session has not timed out yet. "
                "What to do: find the member that does not respond (kafka-consumer-groups.sh --describe --members) "
                "and restart it."
            ),
        ),
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "a member does not reach its target",
        "5m",
        PAGE,
        condition("stuck_reconciliation", "1x300"),
    ),
    AlertCase(
        "KafkaRebalanceStuck",
        "a rebalance of a minute",
        "5m",
        None,
        of_group("group_rebalancing_seconds", "0+60x1 stale"),
    ),
    AlertCase(
        "KafkaMemberFlapping",
        "three times in ten minutes",
        "10m",
        PAGE,
        condition("flapping_member", "1x300"),
        says=(
            "payments: a member joins and leaves again and again",
            (
                "At least one member has joined and left three times within ten minutes. The monitor first saw this "
                "at 2023-11-14 22:13:20 +0000 UTC. The group's page names the member. The group rebalances each "
                "time. Likely causes: a crash loop, two processes with the same group.instance.id, or polls that "
                "take longer than max.poll.interval.ms. What to do: read the log of that member."
            ),
        ),
    ),
    AlertCase("KafkaMemberFlapping", "each member is replaced once", "10m", None, ROLLING),
    AlertCase(
        "KafkaRejoinEndless",
        "rounds that change nothing",
        "10m",
        TICKET,
        condition("endless_cooperative_rejoin", "1x300"),
        says=(
            "payments: cooperative rebalances do not end",
            (
                "Since 2023-11-14 22:13:20 +0000 UTC, the group rebalances although no member joins, leaves or "
                "changes anything. Likely causes: the assignor of the client that leads the group never reaches a "
                "final assignment. What to do: update that client, or use a different strategy."
            ),
        ),
    ),
    AlertCase(
        "KafkaRejoinEndless",
        "it ends after two minutes",
        "10m",
        None,
        condition("endless_cooperative_rejoin", "1x2 stale"),
    ),
    AlertCase(
        "KafkaStrategiesMixed",
        "an incomplete upgrade",
        "20m",
        TICKET,
        condition("eager_and_cooperative_mixed", "1x300"),
        says=(
            "payments: the group mixes eager and cooperative strategies",
            (
                "Members claim owned partitions although the strategy is eager, or the strategy changed and changed "
                "back. The monitor first saw this at 2023-11-14 22:13:20 +0000 UTC. Partitions may have two owners "
                "or none. Likely causes: an unfinished upgrade. What to do: give all members the same list of "
                "strategies, in two rolling bounces."
            ),
        ),
    ),
    AlertCase(
        "KafkaStrategiesMixed",
        "an upgrade of ten minutes",
        "40m",
        None,
        condition("eager_and_cooperative_mixed", "1x10 stale"),
    ),
    AlertCase(
        "KafkaClaimsDuplicate",
        "one partition, two owners",
        "5m",
        TICKET,
        condition("duplicate_claims", "1x300"),
        says=(
            "payments: two members claimed the same partition",
            (
                "Two members joined and claimed the same partition for the same generation. The monitor first saw "
                "this at 2023-11-14 22:13:20 +0000 UTC. Records may have been processed twice. Likely causes: a "
                "member that the group had removed came back, or a client is old. What to do: look for duplicates "
                "downstream. Update old clients."
            ),
        ),
    ),
    AlertCase("KafkaClaimsDuplicate", "no duplicate claim", "5m", None, ROLLING),
    AlertCase(
        "KafkaSubscriptionsDiffer",
        "two applications with one group id",
        "20m",
        TICKET,
        condition("subscription_mismatch", "1x300"),
        says=(
            "payments: members subscribe to different topics",
            (
                "Members of the group subscribe to different topics, for longer than a deployment may take. This "
                "time ended at 2023-11-14 22:13:20 +0000 UTC. Strategies share such topics unevenly. Likely causes: "
                "two applications with the same group id, or two versions of one application. What to do: give each "
                "application its own group id, or finish the deployment."
            ),
        ),
    ),
    AlertCase(
        "KafkaSubscriptionsDiffer",
        "a deployment of a new topic",
        "40m",
        None,
        condition("subscription_mismatch", "1x10 stale"),
    ),
)
