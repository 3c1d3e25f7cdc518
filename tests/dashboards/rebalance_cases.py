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
            "payments: its members are being replaced one after the other",
            (
                "A deployment is at work since 2023-11-14 22:13:20 +0000 UTC. Each member that goes and comes costs"
                " a rebalance. What to do: nothing; static membership (group.instance.id) would spare the "
                "rebalances."
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
            "payments: one rebalance after the other",
            (
                "The group rebalances again and again since 2023-11-14 22:13:20 +0000 UTC, mostly for member_gone, "
                "with 4 members. Work stops at each. Likely causes: max.poll.interval.ms is too short for the work "
                "of one poll, or a member is killed again and again. What to do: see on the page who comes and "
                "goes, and read that member's log."
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
            "payments: a rebalance does not end",
            (
                "A rebalance of the group, or a member's way to its target assignment, does not end: it lasts for "
                "longer than allowed since 2023-11-14 22:13:20 +0000 UTC. Work stands still meanwhile. Likely "
                "causes: a member does not rejoin: it hangs in its work, or its process is gone and its session has"
                " not run out. What to do: find the member that does not answer (describe --members) and restart "
                "it."
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
            "payments: a member comes and goes again and again",
            (
                "At least one member joined and went three times in ten minutes, since 2023-11-14 22:13:20 +0000 "
                "UTC; the page says which. Each time the group rebalances. Likely causes: a crash loop, an instance"
                " id used twice, or polls that take longer than max.poll.interval.ms. What to do: read the log of "
                "that member."
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
            "payments: cooperative rounds without end",
            (
                "The group goes through rounds in which nobody comes, goes or changes anything, since 2023-11-14 "
                "22:13:20 +0000 UTC. Likely causes: an assignor that never settles, in the client that leads the "
                "group. What to do: update that client, or set another strategy."
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
            "payments: eager and cooperative members mixed",
            (
                "Members claim to keep partitions under an eager strategy, or the strategy changes there and back, "
                "since 2023-11-14 22:13:20 +0000 UTC. Partitions may have two owners or none. Likely causes: half "
                "an upgrade. What to do: bring all members to one list of strategies, in two rolling bounces."
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
                "Two members joined with a claim to one partition of the same generation, since 2023-11-14 22:13:20"
                " +0000 UTC. Records may be worked on twice. Likely causes: a member that was thought dead came "
                "back, or an old client. What to do: look for duplicates downstream; update the clients."
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
                "Members of one group subscribe to different sets of topics since 2023-11-14 22:13:20 +0000 UTC, "
                "longer than a deployment takes. Strategies share such topics unevenly. Likely causes: two "
                "applications with one group id, or two versions. What to do: give each its own group id."
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
