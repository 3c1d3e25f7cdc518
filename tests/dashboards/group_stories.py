"""What alerts on groups fire on, and what they do not."""

from __future__ import annotations

from tests.dashboards.rules import INFO, PAGE, READY, TICKET, Story, condition, of_cluster, of_group

ROLLING = condition("rolling_restart", "1x300")


def skewed(excess: str = "5x300", most: str = "16x300") -> dict[str, str]:
    """Range over many topics: the same members get the one partition more of each."""
    return (
        of_group("excess_partitions", excess)
        | of_group("member_partitions_max", most)
        | of_group("busiest_member", most, client_id="app", client_host="/10.0.0.7", group_instance_id="")
        | of_group("assignment_timestamp_seconds", "1700000000x300")
        | of_group("topic_skew", excess, remedy="sticky")
    )


HOSTILE = 'a"b\\c/{{ $value }} é&d=#?'
"""A group may be called anything."""

ASSIGNMENTS = (
    Story(
        "KafkaAssignmentSkewed",
        "the message says who, how much, since when, why and what to do",
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
    Story("KafkaAssignmentSkewed", "16 where 11 would do is a third more and pages", "20m", PAGE, skewed()),
    Story("KafkaAssignmentSkewed", "6 where 5 would do can wait", "20m", TICKET, skewed("1x300", "6x300")),
    Story("KafkaAssignmentSkewed", "4 where 3 would do is a third more", "20m", PAGE, skewed("1x300", "4x300")),
    Story(
        "KafkaAssignmentSkewed", "a gap of one that nothing closes is no excess", "20m", None, skewed("0x300", "2x300")
    ),
    Story("KafkaAssignmentSkewed", "not in the first ten minutes", "9m", None, skewed()),
    Story("KafkaAssignmentSkewed", "not while members are rolled", "40m", None, skewed() | ROLLING),
    Story("KafkaAssignmentSkewed", "not while the monitor catches up", "40m", None, skewed() | {READY: "0x300"}),
    Story(
        "KafkaAssignmentSkewed",
        "not where it is unknown: no series",
        "40m",
        None,
        of_group("member_partitions_max", "9x300"),
    ),
    Story(
        "KafkaAssignmentSkewed",
        "a moment of fairness in a rebalance ends no page",
        "34m",
        PAGE,
        skewed("5x30 0x3 5x30", "16x30 11x3 16x30"),
    ),
    Story("KafkaAssignmentSkewed", "it ends when it was mended", "50m", None, skewed("5x30 0x300", "16x30 11x300")),
    Story(
        "KafkaAssignmentSkewed",
        "a monitor that moved to another machine ends no page, nor pages again",
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
    Story(
        "KafkaAssignmentSkewed",
        "a group of any name is asked for and linked to by that name",
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
    Story(
        "KafkaAssignmentDrift",
        "two partitions elsewhere",
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
    Story(
        "KafkaAssignmentDrift",
        "another program's own way to share is no drift",
        "20m",
        None,
        of_group("assignment_verdict", "1x300", strategy="range", verdict="differs_from_java")
        | of_group("drift_partitions", "2x300", strategy="range"),
    ),
    Story(
        "KafkaAssignmentDrift",
        "nor is what another strategy would have elsewhere",
        "20m",
        None,
        of_group("assignment_verdict", "1x300", strategy="range", verdict="match")
        | of_group("drift_partitions", "7x300", strategy="sticky"),
    ),
    Story(
        "KafkaPartitionsUnowned",
        "two partitions are nobody's",
        "10m",
        PAGE,
        condition("unowned_partitions", "1x300") | of_group("unowned_partitions", "2x300"),
        says=(
            "payments: partitions that nobody reads",
            (
                "2 subscribed partitions have no owner since 2023-11-14 22:13:20 +0000 UTC at the latest: their "
                "records wait. Likely causes: the assignment leaves them out, or a cooperative hand-over does not "
                "end. What to do: restart the member that leads the group, or all members if that does not help."
            ),
        ),
    ),
    Story(
        "KafkaPartitionsUnowned",
        "a cooperative hand-over has such for a round, and no condition",
        "20m",
        None,
        of_group("unowned_partitions", "2x3 0x300"),
    ),
    Story(
        "KafkaPartitionsUnowned",
        "a deployment leaves some unowned in between",
        "20m",
        None,
        condition("unowned_partitions", "1x300") | ROLLING,
    ),
    Story(
        "KafkaMembersIdle",
        "one has nothing while another has four",
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
    Story(
        "KafkaMembersIdle",
        "more members than partitions: they are spares",
        "20m",
        None,
        of_group("avoidable_idle_members", "0x300") | of_group("idle_members", "3x300"),
    ),
)

REBALANCES = (
    Story(
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
            "payments: one rebalance after the other",
            (
                "The group rebalances again and again since 2023-11-14 22:13:20 +0000 UTC, mostly for member_gone, "
                "with 4 members. Work stops at each. Likely causes: max.poll.interval.ms is too short for the work "
                "of one poll, or a member is killed again and again. What to do: see on the page who comes and "
                "goes, and read that member's log."
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
            "payments: a member comes and goes again and again",
            (
                "At least one member joined and went three times in ten minutes, since 2023-11-14 22:13:20 +0000 "
                "UTC; the page says which. Each time the group rebalances. Likely causes: a crash loop, an instance"
                " id used twice, or polls that take longer than max.poll.interval.ms. What to do: read the log of "
                "that member."
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
            "payments: cooperative rounds without end",
            (
                "The group goes through rounds in which nobody comes, goes or changes anything, since 2023-11-14 "
                "22:13:20 +0000 UTC. Likely causes: an assignor that never settles, in the client that leads the "
                "group. What to do: update that client, or set another strategy."
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
            "payments: eager and cooperative members mixed",
            (
                "Members claim to keep partitions under an eager strategy, or the strategy changes there and back, "
                "since 2023-11-14 22:13:20 +0000 UTC. Partitions may have two owners or none. Likely causes: half "
                "an upgrade. What to do: bring all members to one list of strategies, in two rolling bounces."
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
                "Two members joined with a claim to one partition of the same generation, since 2023-11-14 22:13:20"
                " +0000 UTC. Records may be worked on twice. Likely causes: a member that was thought dead came "
                "back, or an old client. What to do: look for duplicates downstream; update the clients."
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
                "Members of one group subscribe to different sets of topics since 2023-11-14 22:13:20 +0000 UTC, "
                "longer than a deployment takes. Strategies share such topics unevenly. Likely causes: two "
                "applications with one group id, or two versions. What to do: give each its own group id."
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
            "payments: has members, and none commits while records wait",
            (
                "Nobody of the group commits since before 2023-11-14 22:13:20 +0000 UTC, though it is in no "
                "rebalance and records come; 12k records wait. Likely causes: members hang in their work, fail on "
                "each record, or do not commit. What to do: read a member's log, take a thread dump, then restart."
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
            "payments: a static member owns partitions and does not read them",
            (
                "A static member committed none of its partitions since before 2023-11-14 22:13:20 +0000 UTC, while"
                " others of the group did; the page says which. Its records wait and nobody else gets them until "
                "session.timeout.ms runs out. Likely causes: its instance id is fenced, or it hangs. What to do: "
                "restart that instance."
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
            "payments: has members and stopped committing",
            (
                "The group has 3 members and a partition of it was not committed for longer than all its last "
                "commits took. 12k records wait, the oldest for 5m 0s. Likely causes: a member hangs or fails, or "
                "its partition is read by nobody. What to do: see on the page which partitions are STOP and who "
                "owns them; restart that member."
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
            "payments: commits and does not get on",
            (
                "A partition of the group is committed at the same offset again and again while records wait. 12k "
                "records wait, the oldest for 5m 0s. Likely causes: a record that cannot be worked on, retried for "
                "ever. What to do: see on the page which partition; read the log of its owner; skip or mend the "
                "record."
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
            "payments: its offsets were set back",
            (
                "A partition of the group was committed at an earlier offset than before, and did not get back "
                "there yet: records are worked on again. 12k records wait, the oldest for 5m 0s. Likely causes: "
                "somebody reset offsets, auto.offset.reset took over, or a member commits old offsets. What to do: "
                "ask who reset them; else compare the members' logs with the time in the table partition_status."
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
            "payments: all members are gone and records wait",
            (
                "The group had 3 members, now it has none. 1.9k records wait. Likely causes: the application is "
                "down, or scaled to nothing. What to do: start it; if it was retired, delete the group."
            ),
        ),
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
            "payments: does not exist any more, and had members when last seen",
            (
                "The group had 3 members when it was last seen, within the last hour, and its coordinator does not "
                "know it now. A group that is deleted has no members before. Likely causes: records of "
                "__consumer_offsets were lost, or the monitor was told to leave the group out. What to do: ask "
                "Kafka (describe --group); if it is gone, its offsets are too: restart its members only after "
                "auto.offset.reset was thought about."
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
            "payments: 2h 0m 0s behind",
            (
                "The next record the group has to read was written 2h 0m 0s ago or longer; 12.15k records wait; 3 "
                "members work; they do not catch up. What to do: see on the page whether all partitions lag (too "
                "few or too slow members) or those of one member (skew, or a slow member)."
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
            "payments: up to 1.5k records were deleted before it read them",
            (
                "The log of a partition starts 1.5k offsets after what the group committed: retention took them; "
                "the group is 2h 0m 0s behind. Likely causes: the group was too slow, or away, for longer than the "
                "topic keeps records. What to do: raise retention.ms of the topic at once, so that no more are "
                "lost; then see to the lag; tell who needs those records."
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
            "payments: retention takes unread records in 30m 0s",
            (
                "At the present rate retention takes unread records of the group in 30m 0s, unless it commits them "
                "before. 12k records wait. What to do: raise retention.ms (or retention.bytes) of the topics the "
                "group is behind on, see the page; then see to the lag."
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

GROUP_STORIES = (*ASSIGNMENTS, *REBALANCES, *PROGRESS, *RETENTION)
