"""Define cases in which alerts on the monitor fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import PAGE, READY, TICKET, AlertCase, of_cluster, of_group

CLUSTER = {"cluster": "prod"}
PARTITION_LABELS = {"cluster": "prod", "partition": "7"}


def unread(records: str, read: str = "0+6000x300") -> dict[str, str]:
    """Return the series of the number of unread records and of the records read so far."""
    return (
        of_cluster("offsets_topic_lag", records, partition="0")
        | of_cluster("offsets_topic_blocked", "0x300", partition="0")
        | of_cluster("records_read_total", read, kind="offset_commit")
    )


def clocks(offset: str, within: str) -> dict[str, str]:
    """Return the series of the clock offset of one broker and of its error bound."""
    known = of_cluster("clock_offset_seconds", offset, broker="1")
    return known | of_cluster("clock_offset_within_seconds", within, broker="1")


def blocked(records: str, last_stable_offset: str) -> dict[str, str]:
    """Return the series of the blocked records of a partition and of its last stable offset."""
    return of_cluster("offsets_topic_blocked", records, partition="7") | of_cluster(
        "offsets_topic_last_stable_offset", last_stable_offset, partition="7"
    )


CRASHES_WHEN_READY = " ".join(["0x9 1x2 stale"] * 9)
"""Two hours of repeated crashes: ten minutes catching up, three minutes ready, one minute down."""

CRASHES_BEFORE_IT_IS_READY = " ".join(["0x9 stale"] * 12)
"""Two hours of repeated crashes: ten minutes catching up, then down."""

MONITOR = (
    AlertCase(
        "KafkaOffsetsHeldByTransaction",
        "a transaction that does not end",
        "25m",
        PAGE,
        blocked("900x300", "100x300") | of_group("group_state", "1x300", state="Unknown"),
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
        labels=PARTITION_LABELS,
    ),
    AlertCase(
        "KafkaOffsetsHeldByTransaction",
        "short transactions one after the other",
        "60m",
        None,
        blocked("5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1 5x9 0x1", "100+5x300"),
    ),
    AlertCase(
        "KafkaOffsetsHeldByTransaction",
        "exactly-once traffic in which a different transaction is open at each moment",
        "60m",
        None,
        blocked("5x300", "100+5x300"),
    ),
    AlertCase(
        "KafkaOffsetsHeldByTransaction",
        "transactions of 15 minutes one after the other, the allowed maximum",
        "60m",
        None,
        blocked("5x300", "100x14 200x14 300x14 400x300"),
    ),
    AlertCase(
        "RebalanceMonitorNotReady",
        "the monitor lost its query",
        "20m",
        PAGE,
        {READY: "1x2 0x300"} | unread("60000x300"),
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
    AlertCase("RebalanceMonitorNotReady", "the monitor starts and catches up", "20m", None, {READY: "0x10 1x300"}),
    AlertCase(
        "RebalanceMonitorNotReady",
        "the monitor crashes soon after it is ready",
        "110m",
        PAGE,
        {READY: CRASHES_WHEN_READY},
    ),
    AlertCase(
        "RebalanceMonitorNotReady",
        "the monitor crashes while it catches up",
        "60m",
        PAGE,
        {READY: CRASHES_BEFORE_IT_IS_READY},
    ),
    AlertCase(
        "RebalanceMonitorNotReady",
        "the monitor crashed for two hours and is now ready for 20 minutes",
        "143m",
        None,
        {READY: " ".join(["0x9 1 stale"] * 10) + " 1x300"},
    ),
    AlertCase(
        "RebalanceMonitorNotReady",
        "the monitor was updated twice in an hour",
        "90m",
        None,
        {READY: "1x60 stale 0x8 1x10 stale 0x8 1x300"},
    ),
    AlertCase(
        "RebalanceMonitorNotReady",
        "a second monitor of the cluster is ready",
        "20m",
        None,
        {READY: "0x300", 'rebalance_monitor_ready{cluster="prod",instance="other:9560"}': "1x300"},
    ),
    AlertCase(
        "RebalanceMonitorDown",
        "the monitor was up 20 minutes ago",
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
        AlertCase(
            "RebalanceMonitorDown",
            f"one of two monitors ran for five hours and is down {since}",
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
            ("for more than a day, which means it was removed", "30h", None),
        )
    ),
    AlertCase(
        "RebalanceMonitorDown",
        "the monitor of one of two clusters is down",
        "100m",
        PAGE,
        {READY: "1x80 stale", 'rebalance_monitor_ready{cluster="test",instance="other:9560"}': "1x300"},
    ),
    AlertCase("RebalanceMonitorDown", "the monitor never started", "15m", PAGE, {READY: "_x300"}),
    AlertCase(
        "RebalanceMonitorDown",
        "Prometheus has just started and has not scraped the monitor yet",
        "5m",
        None,
        {READY: "_x5 1x300"},
    ),
    AlertCase("RebalanceMonitorDown", "the monitor was restarted", "100m", None, {READY: "1x80 _x5 0x3 1x300"}),
    AlertCase(
        "RebalanceMonitorBehind",
        "the monitor reads more slowly than brokers write",
        "20m",
        TICKET,
        unread("20000x300") | of_cluster("last_batch_seconds", "95x300"),
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
    AlertCase(
        "RebalanceMonitorBehind",
        "one unread transaction marker on a quiet cluster",
        "20m",
        None,
        unread("1x300", "7x300"),
    ),
    AlertCase(
        "RebalanceMonitorBehind",
        "the monitor catches up and is not ready",
        "14m",
        None,
        unread("900000x300") | {READY: "0x300"},
    ),
    AlertCase(
        "RebalanceMonitorBehind",
        "the unread records are blocked by an open transaction",
        "20m",
        None,
        unread("20000x300") | of_cluster("offsets_topic_blocked", "20000x300", partition="0"),
    ),
    AlertCase(
        "RebalanceMonitorBehind",
        "the monitor reads nothing, so the remaining time is unknown",
        "20m",
        None,
        unread("2000+60x300", "7x300"),
    ),
    AlertCase(
        "RebalanceMonitorStandsStill",
        "a batch hangs",
        "20m",
        PAGE,
        unread("2000+60x300", "7x300"),
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
    AlertCase(
        "RebalanceMonitorStandsStill", "a quiet cluster without new records", "60m", None, unread("60x300", "7x300")
    ),
    AlertCase("RebalanceMonitorStandsStill", "the monitor reads slowly", "20m", None, unread("20000x300", "0+1x300")),
    AlertCase(
        "RebalanceMonitorStandsStill",
        "the unread records are blocked by an open transaction",
        "20m",
        None,
        unread("20000x300", "7x300") | of_cluster("offsets_topic_blocked", "20000x300", partition="0"),
    ),
    AlertCase(
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
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "the first failure with this reason, whose series begins at one",
        "40m",
        TICKET,
        of_cluster("records_skipped_total", "_x30 1x300", reason="truncated"),
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "a total that does not increase",
        "90m",
        None,
        of_cluster("records_skipped_total", "5x300", reason="truncated"),
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "a restarted monitor continues its total",
        "46m",
        None,
        of_cluster("records_skipped_total", "5x20 _x18 5x300", reason="truncated") | {READY: "1x20 _x16 0x2 1x300"},
    ),
    *(
        AlertCase(
            "RebalanceMonitorQuarantineGrows",
            f"a rebuild reads the old records again, {when} after it",
            at,
            None,
            of_cluster("records_skipped_total", "50x60 stale _x4 1+5x9 50x300", reason="truncated")
            | {READY: "1x60 stale _x4 0x9 1x300"},
        )
        for when, at in (("one minute", "77m"), ("8 minutes", "84m"), ("20 minutes", "96m"), ("an hour", "136m"))
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "the first failure with this reason, soon after the monitor was ready again",
        "90m",
        TICKET,
        of_cluster("records_skipped_total", "_x80 1x300", reason="truncated") | {READY: "1x60 stale _x4 0x9 1x300"},
    ),
    AlertCase(
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
    AlertCase(
        "RebalanceMonitorSeriesDropped",
        "full detail is configured for the worst groups only",
        "20m",
        None,
        of_cluster("dropped_series", "4000x300", reason="top_k"),
    ),
    AlertCase(
        "RebalanceMonitorSeriesDropped",
        "no dropped series",
        "20m",
        None,
        of_cluster("dropped_series", "0x300", reason="max_series"),
    ),
    AlertCase(
        "RebalanceMonitorQueryRestarts",
        "the query fails every five minutes",
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
    AlertCase(
        "RebalanceMonitorQueryRestarts",
        "the query failed once",
        "40m",
        None,
        of_cluster("query_restarts_total", "0x10 1x300"),
    ),
    AlertCase(
        "RebalanceMonitorListingIncomplete",
        "two brokers refuse the request",
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
    AlertCase(
        "RebalanceMonitorListingIncomplete",
        "all brokers answer, but a right is missing",
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
    AlertCase(
        "RebalanceMonitorListingIncomplete",
        "a broker restarts",
        "20m",
        None,
        of_cluster("group_listing_gaps", "1x8 stale", reason="timed_out"),
    ),
    AlertCase(
        "RebalanceMonitorClocksDiffer",
        "the monitor's clock is a minute ahead",
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
    AlertCase(
        "RebalanceMonitorClocksDiffer",
        "records are rare, so the error bound is large",
        "20m",
        None,
        clocks("8x300", "6x300"),
    ),
    AlertCase("RebalanceMonitorClocksDiffer", "the clock was corrected", "20m", None, clocks("60x8 0x300", "1x300")),
)
