"""What alerts on rebalances fire on, and what they do not."""

from __future__ import annotations

from tests.dashboards.rules import INFO, PAGE, READY, ROLLING, TICKET, Story, condition, of_group

REBALANCES = (
    Story(
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
    Story("KafkaRollingRestart", "a storm is none", "5m", None, condition("rebalance_storm", "1x300")),
    Story(
        "KafkaRebalanceStorm",
        "members that poll too seldom",
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
    Story(
        "KafkaRebalanceStorm",
        "one that is over in three minutes",
        "20m",
        None,
        condition("rebalance_storm", "1x3 stale"),
    ),
    Story("KafkaRebalanceStorm", "a rolling deployment is none", "20m", None, ROLLING),
    Story(
        "KafkaRebalanceStorm",
        "read from the backlog of an hour ago",
        "10m",
        None,
        condition("rebalance_storm", "1x300") | {READY: "0x300"},
    ),
    Story(
        "KafkaRebalanceStuck",
        "listings show it in the middle",
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
    Story(
        "KafkaRebalanceStuck",
        "a member does not reach its target",
        "5m",
        PAGE,
        condition("stuck_reconciliation", "1x300"),
    ),
    Story(
        "KafkaRebalanceStuck",
        "a rebalance of a minute",
        "5m",
        None,
        of_group("group_rebalancing_seconds", "0+60x1 stale"),
    ),
    Story(
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
    Story("KafkaMemberFlapping", "members that are replaced once each", "10m", None, ROLLING),
    Story(
        "KafkaRejoinEndless",
        "rounds of nothing",
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
    Story("KafkaRejoinEndless", "over at once", "10m", None, condition("endless_cooperative_rejoin", "1x2 stale")),
    Story(
        "KafkaStrategiesMixed",
        "half an upgrade",
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
    Story(
        "KafkaStrategiesMixed",
        "an upgrade of ten minutes",
        "40m",
        None,
        condition("eager_and_cooperative_mixed", "1x10 stale"),
    ),
    Story(
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
    Story("KafkaClaimsDuplicate", "none", "5m", None, ROLLING),
    Story(
        "KafkaSubscriptionsDiffer",
        "two applications, one group",
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
    Story(
        "KafkaSubscriptionsDiffer",
        "a deployment of a new topic",
        "40m",
        None,
        condition("subscription_mismatch", "1x10 stale"),
    ),
)
