"""What alerts on the monitor, and on what it reads, fire on, and what they do not."""

from __future__ import annotations

from tests.dashboards.rules import PAGE, READY, TICKET, Story, of_cluster, of_group

CLUSTER = {"cluster": "prod"}
HELD = {"cluster": "prod", "partition": "7"}


def behind(records: str, read: str = "0+6000x300") -> dict[str, str]:
    """Records not read yet, and those that are."""
    return (
        of_cluster("offsets_topic_lag", records, partition="0")
        | of_cluster("offsets_topic_blocked", "0x300", partition="0")
        | of_cluster("records_read_total", read, kind="offset_commit")
    )


def clocks(offset: str, within: str) -> dict[str, str]:
    """What is known of the clock of one broker."""
    known = of_cluster("clock_offset_seconds", offset, broker="1")
    return known | of_cluster("clock_offset_within_seconds", within, broker="1")


def held(records: str, last_stable_offset: str) -> dict[str, str]:
    """Records of a partition that are held back, and where what holds them back begins."""
    return of_cluster("offsets_topic_blocked", records, partition="7") | of_cluster(
        "offsets_topic_last_stable_offset", last_stable_offset, partition="7"
    )


CRASHES_WHEN_READY = " ".join(["0x9 1x2 stale"] * 9)
"""Ten minutes it catches up, three it is ready, one it is gone; for two hours."""

CRASHES_BEFORE_IT_IS_READY = " ".join(["0x9 stale"] * 12)
"""Ten minutes it catches up, then it is gone; for two hours."""

MONITOR_STORIES = (
    Story(
        "KafkaOffsetsHeldByTransaction",
        "nobody ends it",
        "25m",
        PAGE,
        held("900x300", "100x300") | of_group("group_state", "1x300", state="Unknown"),
        says=(
            "prod: an open transaction blocks partition 7 of __consumer_offsets",
            (
                "One transaction has been open for 20 minutes or more. It blocks 900 records. Kafka's default "
                "for transaction.max.timeout.ms is 15 minutes. Groups in state Unknown: 1. Consumers that start now "
                "cannot fetch their offsets if their group belongs to this partition. Likely causes: a hanging "
                "transaction. What to do: find the transaction with kafka-transactions.sh find-hanging, then abort "
                "it."
            ),
        ),
        labels=HELD,
    ),
    Story(
        "KafkaOffsetsHeldByTransaction",
        "one after the other, each for a moment",
        "60m",
        None,
        held("5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1", "100+5x300"),
    ),
    Story(
        "KafkaOffsetsHeldByTransaction",
        "exactly-once traffic: at each moment another one is open",
        "60m",
        None,
        held("5x300", "100+5x300"),
    ),
    Story(
        "KafkaOffsetsHeldByTransaction",
        "one of 15 minutes after the other: as long as it may be",
        "60m",
        None,
        held("5x300", "100x14 200x14 300x14 400x300"),
    ),
    Story(
        "RebalanceMonitorNotReady",
        "it lost its query",
        "20m",
        PAGE,
        {READY: "1x2 0x300"} | behind("60000x300"),
        says=(
            "prod: the monitor's values are not current",
            (
                "The monitor has not been ready for 15 minutes, or it was ready for less than half of the last hour "
                "and lost readiness more than once. Likely causes: the monitor has not caught up, its query failed, "
                "it crashes, or it does not reach the brokers. Unread records of __consumer_offsets: 60k. The "
                "monitor reads 100 records per second. Alerts on the groups of this cluster do not fire during this "
                "time. What to do: read the monitor's log. If the monitor still reads records, wait."
            ),
        ),
        labels=CLUSTER,
    ),
    Story("RebalanceMonitorNotReady", "it starts and catches up", "20m", None, {READY: "0x10 1x300"}),
    Story("RebalanceMonitorNotReady", "it crashes soon after it is ready", "110m", PAGE, {READY: CRASHES_WHEN_READY}),
    Story(
        "RebalanceMonitorNotReady", "it crashes while it catches up", "60m", PAGE, {READY: CRASHES_BEFORE_IT_IS_READY}
    ),
    Story(
        "RebalanceMonitorNotReady",
        "it crashed for two hours, and is ready since 20 minutes",
        "143m",
        None,
        {READY: " ".join(["0x9 1 stale"] * 10) + " 1x300"},
    ),
    Story(
        "RebalanceMonitorNotReady",
        "it was updated twice in an hour",
        "90m",
        None,
        {READY: "1x60 stale 0x8 1x10 stale 0x8 1x300"},
    ),
    Story(
        "RebalanceMonitorNotReady",
        "the other of two shows the present",
        "20m",
        None,
        {READY: "0x300", 'rebalance_monitor_ready{cluster="prod",instance="other:9560"}': "1x300"},
    ),
    Story(
        "RebalanceMonitorDown",
        "it was there an hour ago",
        "100m",
        PAGE,
        {READY: "1x80 stale"},
        says=(
            "prod: Prometheus receives nothing from the monitor",
            (
                "Prometheus has received nothing from the monitor of prod for 10 minutes. It did within the last "
                "day. No alert on a group fires during this time. What to do: check whether the monitor's process "
                "runs and whether Prometheus can reach its port. If necessary, start the monitor. It continues "
                "where it stopped."
            ),
        ),
        labels=CLUSTER,
    ),
    *(
        Story(
            "RebalanceMonitorDown",
            f"one of two ran for five hours and is gone {since}",
            at,
            severity,
            {
                READY: "1x60 stale",
                'rebalance_monitor_ready{cluster="test",instance="other:9560"}': "1x600",
            },
            step="5m",
        )
        for since, at, severity in (
            ("for five minutes", "5h5m", None),
            ("for half an hour", "5h30m", PAGE),
            ("for 100 minutes", "6h40m", PAGE),
            ("for ten hours", "15h", PAGE),
            ("for 20 hours", "25h", PAGE),
            ("for more than a day: it is monitored no more", "30h", None),
        )
    ),
    Story(
        "RebalanceMonitorDown",
        "one of two clusters' is gone",
        "100m",
        PAGE,
        {READY: "1x80 stale", 'rebalance_monitor_ready{cluster="test",instance="other:9560"}': "1x300"},
    ),
    Story("RebalanceMonitorDown", "it never came", "15m", PAGE, {READY: "_x300"}),
    Story(
        "RebalanceMonitorDown",
        "Prometheus has just started and has not scraped it yet",
        "5m",
        None,
        {READY: "_x5 1x300"},
    ),
    Story("RebalanceMonitorDown", "it was restarted", "100m", None, {READY: "1x80 _x5 0x3 1x300"}),
    Story(
        "RebalanceMonitorBehind",
        "it reads more slowly than is written",
        "20m",
        TICKET,
        behind("20000x300") | of_cluster("last_batch_seconds", "95x300"),
        says=(
            "prod: the monitor is 3m 20s behind __consumer_offsets",
            (
                "At the present rate, the monitor needs 3m 20s to read all waiting records. The last batch took 1m "
                "35s. The monitor's values are about that old. Likely causes: too few cores, slow brokers, or slow "
                "storage of the tables. What to do: check the monitor's dashboard. Give the monitor more cores."
            ),
        ),
        labels=CLUSTER,
    ),
    Story(
        "RebalanceMonitorBehind", "a marker nobody is handed, on a quiet cluster", "20m", None, behind("1x300", "7x300")
    ),
    Story(
        "RebalanceMonitorBehind",
        "it catches up: it is not ready then",
        "14m",
        None,
        behind("900000x300") | {READY: "0x300"},
    ),
    Story(
        "RebalanceMonitorBehind",
        "what a transaction holds back is not its fault",
        "20m",
        None,
        behind("20000x300") | of_cluster("offsets_topic_blocked", "20000x300", partition="0"),
    ),
    Story(
        "RebalanceMonitorBehind",
        "it reads nothing at all: nobody knows how long that takes",
        "20m",
        None,
        behind("2000+60x300", "7x300"),
    ),
    Story(
        "RebalanceMonitorStandsStill",
        "its batch hangs",
        "20m",
        PAGE,
        behind("2000+60x300", "7x300"),
        says=(
            "prod: the monitor reads no records of __consumer_offsets",
            (
                "3.2k records are unread, and the monitor has read none for 10 minutes. Its values for the groups "
                "get older. Likely causes: a batch hangs, at the storage of the tables or at the brokers. What to "
                "do: read the monitor's log and take a thread dump. Then restart the monitor. It continues where it "
                "stopped."
            ),
        ),
        labels=CLUSTER,
    ),
    Story(
        "RebalanceMonitorStandsStill", "nothing is written on a quiet cluster", "60m", None, behind("60x300", "7x300")
    ),
    Story("RebalanceMonitorStandsStill", "it reads, if slowly", "20m", None, behind("20000x300", "0+1x300")),
    Story(
        "RebalanceMonitorStandsStill",
        "what a transaction holds back it cannot read",
        "20m",
        None,
        behind("20000x300", "7x300") | of_cluster("offsets_topic_blocked", "20000x300", partition="0"),
    ),
    Story(
        "RebalanceMonitorQuarantineGrows",
        "records of a newer Kafka",
        "40m",
        TICKET,
        of_cluster("records_skipped_total", "0x10 0+2x300", reason="unknown_value_version"),
        says=(
            "prod: the monitor cannot use records of __consumer_offsets (unknown_value_version)",
            (
                "Within 15 minutes, the monitor ignored 30 records of __consumer_offsets, completely or for one "
                "member. The reason is unknown_value_version. The content of these records is unknown. Likely "
                "causes: a client library writes subscriptions or assignments in its own format (the column field "
                "names a member); Kafka is newer than this monitor (unknown_record_type, unknown_value_version); a "
                "program other than Kafka wrote the records, or the partition count of the topic changed "
                "(foreign_partition). What to do: see the table quarantine, then update the client or the monitor. "
                "For foreign_partition, see the runbook."
            ),
        ),
        labels={"cluster": "prod", "reason": "unknown_value_version"},
    ),
    Story(
        "RebalanceMonitorQuarantineGrows",
        "the first of its kind: its series begins at one",
        "40m",
        TICKET,
        of_cluster("records_skipped_total", "_x30 1x300", reason="truncated"),
    ),
    Story(
        "RebalanceMonitorQuarantineGrows",
        "a total that stands",
        "90m",
        None,
        of_cluster("records_skipped_total", "5x300", reason="truncated"),
    ),
    Story(
        "RebalanceMonitorQuarantineGrows",
        "a monitor that starts again goes on with its total",
        "46m",
        None,
        of_cluster("records_skipped_total", "5x20 _x18 5x300", reason="truncated") | {READY: "1x20 _x16 0x2 1x300"},
    ),
    *(
        Story(
            "RebalanceMonitorQuarantineGrows",
            f"a rebuild reads the old ones again, {when} after it",
            at,
            None,
            of_cluster("records_skipped_total", "50x60 stale _x4 1+5x9 50x300", reason="truncated")
            | {READY: "1x60 stale _x4 0x9 1x300"},
        )
        for when, at in (("one minute", "77m"), ("8 minutes", "84m"), ("20 minutes", "96m"), ("an hour", "136m"))
    ),
    Story(
        "RebalanceMonitorQuarantineGrows",
        "the first of its kind, soon after it was ready again",
        "90m",
        TICKET,
        of_cluster("records_skipped_total", "_x80 1x300", reason="truncated") | {READY: "1x60 stale _x4 0x9 1x300"},
    ),
    Story(
        "RebalanceMonitorSeriesDropped",
        "more groups than the limit",
        "20m",
        TICKET,
        of_cluster("dropped_series", "4000x300", reason="max_series"),
        says=(
            "prod: /metrics leaves out 4k series (max_series)",
            (
                "The setting metrics.max_series removes 4k series from /metrics. Alerts on some groups may not "
                "fire. What to do: raise the limit, choose a coarser metrics.granularity, or exclude groups that "
                "you do not need."
            ),
        ),
        labels={"cluster": "prod", "reason": "max_series"},
    ),
    Story(
        "RebalanceMonitorSeriesDropped",
        "only the worst groups were asked for in full",
        "20m",
        None,
        of_cluster("dropped_series", "4000x300", reason="top_k"),
    ),
    Story(
        "RebalanceMonitorSeriesDropped", "none", "20m", None, of_cluster("dropped_series", "0x300", reason="max_series")
    ),
    Story(
        "RebalanceMonitorQueryRestarts",
        "it fails every five minutes",
        "40m",
        TICKET,
        of_cluster("query_restarts_total", "0x4 1x4 2x4 3x4 4x4 5x4 6x4 7x4 8x4"),
        says=(
            "prod: the monitor fails again and again, or it cannot watch the cluster",
            (
                "In half an hour, the monitor restarted its query, or tried again to watch the cluster, 6 times. It "
                "must catch up each time. What to do: read the monitor's log. It names the error in one line."
            ),
        ),
        labels=CLUSTER,
    ),
    Story(
        "RebalanceMonitorQueryRestarts", "it failed once", "40m", None, of_cluster("query_restarts_total", "0x10 1x300")
    ),
    Story(
        "RebalanceMonitorListingIncomplete",
        "a broker refuses",
        "20m",
        TICKET,
        of_cluster("group_listing_gaps", "2x300", reason="group_authorization_failed"),
        says=(
            "prod: 2 brokers do not list their groups (group_authorization_failed)",
            (
                "2 brokers did not list their groups. The reason is group_authorization_failed. The monitor does "
                "not see rebalances in progress on these brokers, and it keeps groups that ended there. What to do: "
                "check whether these brokers are up. Grant the monitor's user DESCRIBE on groups and on the "
                "cluster."
            ),
        ),
        labels={"cluster": "prod", "reason": "group_authorization_failed"},
    ),
    Story(
        "RebalanceMonitorListingIncomplete",
        "all brokers answer, and a right is lacking",
        "20m",
        TICKET,
        of_cluster("group_listing_gaps", "1x300", reason="cluster_describe_not_authorized"),
        says=(
            "prod: groups may be missing from the listing (cluster_describe_not_authorized)",
            (
                "All brokers answer, but the monitor's user does not have DESCRIBE on the cluster. So the listing "
                "contains only groups that this user may describe. Other groups are unknown, and the monitor does "
                "not see their rebalances in progress. What to do: grant the monitor's user DESCRIBE on the "
                "cluster."
            ),
        ),
        labels={"cluster": "prod", "reason": "cluster_describe_not_authorized"},
    ),
    Story(
        "RebalanceMonitorListingIncomplete",
        "a broker is restarted",
        "20m",
        None,
        of_cluster("group_listing_gaps", "1x8 stale", reason="timed_out"),
    ),
    Story(
        "RebalanceMonitorClocksDiffer",
        "the monitor is a minute ahead",
        "20m",
        TICKET,
        clocks("-60x300", "1.5x300"),
        says=(
            "prod: the clocks of broker 1 and of the monitor differ by 58.5s or more",
            (
                "The monitor corrects its own times by the proven part of the difference. It cannot correct times "
                "that Prometheus and Grafana compare with their own clocks. It cannot correct differences between "
                "the brokers. What to do: synchronize the clocks of the brokers and of the monitor (NTP)."
            ),
        ),
        labels={"cluster": "prod", "broker": "1"},
    ),
    Story(
        "RebalanceMonitorClocksDiffer",
        "records are rare, so little is proven",
        "20m",
        None,
        clocks("8x300", "6x300"),
    ),
    Story("RebalanceMonitorClocksDiffer", "it was set", "20m", None, clocks("60x8 0x300", "1x300")),
)
