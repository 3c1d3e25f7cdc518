"""Define cases in which alerts on the monitor fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.rules import BOTH, CRITICAL, READY, WARNING, AlertCase, of_cluster

CLUSTER = {"cluster": "prod"}
OTHER_CLUSTER = 'rebalance_monitor_ready{cluster="test",instance="other:9560"}'
SECOND_MONITOR = 'rebalance_monitor_ready{cluster="prod",instance="other:9560"}'


def unread(records: str, read: str = "0+6000x300", batch: str = "0+60x300") -> dict[str, str]:
    """Return the series of the unread records, of the records read so far, and of the end of the last batch."""
    return (
        of_cluster("offsets_topic_lag", records, partition="0")
        | of_cluster("offsets_topic_blocked", "0x300", partition="0")
        | of_cluster("records_read_total", read, kind="offset_commit")
        | of_cluster("last_batch_timestamp_seconds", batch)
    )


def clocks(offset: str, within: str) -> dict[str, str]:
    """Return the series of the clock offset of one broker and of its error bound."""
    known = of_cluster("clock_offset_seconds", offset, broker="1")
    return known | of_cluster("clock_offset_within_seconds", within, broker="1")


CRASHES_WHEN_READY = " ".join(["0x9 1x2 stale"] * 9)
"""Two hours of repeated crashes: ten minutes catching up, three minutes ready, one minute down."""

CRASHES_BEFORE_IT_IS_READY = " ".join(["0x9 stale"] * 12)
"""Two hours of repeated crashes: ten minutes catching up, then down."""

DOWN = (
    AlertCase(
        "RebalanceMonitorDown",
        "the monitor was up 20 minutes ago",
        "100m",
        (CRITICAL,),
        {READY: "1x80 stale"},
        labels=CLUSTER,
        says=(
            "prod: Prometheus receives nothing from the monitor",
            (
                "Prometheus has received nothing from the monitor of prod for 10 minutes. Until Prometheus receives "
                "data again, no alert about a group can fire. What to do: check whether the monitor's process runs and "
                "whether Prometheus can reach the monitor's port. If necessary, start the monitor. The monitor "
                "continues at its last position. If you no longer monitor the cluster, silence this alert."
            ),
        ),
    ),
    *(
        AlertCase(
            "RebalanceMonitorDown",
            f"the monitor of one of two clusters is down {since}",
            at,
            fires,
            {READY: "1x60 stale", OTHER_CLUSTER: "1x400"},
            step="5m",
        )
        for since, at, fires in (("for five minutes", "5h5m", ()), ("for half an hour", "5h30m", (CRITICAL,)))
    ),
    *(
        AlertCase(
            "RebalanceMonitorDown",
            f"the monitor of one of two clusters is down {since}",
            at,
            (CRITICAL,),
            {READY: "1x5 stale", OTHER_CLUSTER: "1x400"},
            step="1h",
        )
        for since, at in (("for ten hours", "15h"), ("for 30 hours", "35h"), ("for a week", "175h"))
    ),
    AlertCase(
        "RebalanceMonitorDown",
        "the only monitor is down for a week: one alert, with the name of the cluster",
        "175h",
        (CRITICAL,),
        {READY: "1x5 stale"},
        step="1h",
    ),
    AlertCase(
        "RebalanceMonitorDown",
        "the cluster is scraped again after a week",
        "180h",
        (),
        {READY: "1x5 _x168 1x100", OTHER_CLUSTER: "1x400"},
        step="1h",
    ),
    AlertCase(
        "RebalanceMonitorDown",
        "one of two monitors of a cluster is down",
        "100m",
        (),
        {READY: "1x30 stale", SECOND_MONITOR: "1x300"},
    ),
    AlertCase("RebalanceMonitorDown", "the monitor never started", "15m", (CRITICAL,), {READY: "_x300"}, labels={}),
    AlertCase(
        "RebalanceMonitorDown",
        "Prometheus has just started and has not scraped the monitor yet",
        "5m",
        (),
        {READY: "_x5 1x300"},
    ),
    AlertCase("RebalanceMonitorDown", "the monitor was restarted", "100m", (), {READY: "1x80 _x5 0x3 1x300"}),
)

STALE = (
    AlertCase(
        "RebalanceMonitorStale",
        "the monitor lost its query and makes no progress",
        "30m",
        BOTH,
        {READY: "1x2 0x300"} | unread("60000x300", "7x300", "60x300"),
        labels=CLUSTER,
        says=(
            "prod: the monitor is not ready",
            (
                "For 15 minutes or more, the monitor has not been ready, or it has lost readiness again and again. "
                "Alerts about the groups of this cluster cannot fire during this time. Unread records of "
                "__consumer_offsets: 60k. The monitor reads 0 records per second. The last batch ended at 1970-01-01 "
                "00:01:00 +0000 UTC. Likely causes: the monitor has too few cores, cannot reach the brokers, or its "
                "query fails. What to do: read the monitor's log. If KafkaCoordinatorMissing also fires, act on that "
                "alert. If the monitor still reads records, wait, or give the monitor more cores. If the monitor reads "
                "no records, restart the monitor."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the monitor catches up for an hour and reads on",
        "60m",
        (WARNING,),
        {READY: "0x300"} | unread("900000x300"),
    ),
    AlertCase("RebalanceMonitorStale", "the monitor starts and catches up", "20m", (), {READY: "0x10 1x300"}),
    AlertCase(
        "RebalanceMonitorStale",
        "a new cluster has no consumer group and so no topic __consumer_offsets",
        "60m",
        (WARNING,),
        {READY: "0x300"} | of_cluster("waiting_for_offsets_topic", "1x300"),
        labels=CLUSTER,
        says=(
            "prod: the monitor is not ready",
            (
                "For 15 minutes or more, the monitor has not been ready, or it has lost readiness again and again. "
                "Alerts about the groups of this cluster cannot fire during this time. The monitor waits, because the "
                "cluster has no topic __consumer_offsets. Kafka creates this topic at the first commit of a consumer "
                "group. What to do: if the cluster has no consumer groups yet, silence this alert. If the cluster has "
                "consumer groups, it hides the topic: set source.kind to admin-api."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the topic appeared, and the query does not start",
        "90m",
        BOTH,
        {READY: "0x300"} | of_cluster("waiting_for_offsets_topic", "1x30 0x300"),
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the monitor reads more slowly than brokers write",
        "20m",
        (WARNING,),
        unread("20000x300"),
        labels=CLUSTER,
        says=(
            "prod: the monitor lags behind __consumer_offsets",
            (
                "For 15 minutes or more, the monitor has lagged behind __consumer_offsets, so its values are old. "
                "Unread records of __consumer_offsets: 20k. The monitor reads 100 records per second. The last batch "
                "ended at 1970-01-01 00:20:00 +0000 UTC. Likely causes: the monitor has too few cores, cannot reach "
                "the brokers, or its query fails. What to do: read the monitor's log. If KafkaCoordinatorMissing also "
                "fires, act on that alert. If the monitor still reads records, wait, or give the monitor more cores. "
                "If the monitor reads no records, restart the monitor."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "two monitors, each 40 s behind: their records are not added up",
        "20m",
        (),
        unread("4000x300")
        | of_cluster("offsets_topic_lag", "4000x300", partition="0", instance="b")
        | of_cluster("offsets_topic_blocked", "0x300", partition="0", instance="b")
        | of_cluster("records_read_total", "0+6000x300", kind="offset_commit", instance="b"),
    ),
    AlertCase("RebalanceMonitorStale", "a batch hangs", "30m", (CRITICAL,), unread("2000+60x300", "7x300", "0x300")),
    AlertCase(
        "RebalanceMonitorStale",
        "a batch hangs on a quiet cluster",
        "30m",
        (CRITICAL,),
        unread("1x300", "7x300", "0x300"),
    ),
    AlertCase(
        "RebalanceMonitorStale", "a quiet cluster without new records", "60m", (), unread("0x300", "7x300", "0x300")
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the unread records are blocked by an open transaction",
        "60m",
        (),
        unread("20000x300", "7x300", "0x300") | of_cluster("offsets_topic_blocked", "20000x300", partition="0"),
    ),
    AlertCase(
        "RebalanceMonitorStale", "the monitor crashes soon after it is ready", "110m", BOTH, {READY: CRASHES_WHEN_READY}
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the monitor crashes while it catches up",
        "60m",
        BOTH,
        {READY: CRASHES_BEFORE_IT_IS_READY},
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the monitor crashed for two hours and is now ready for 20 minutes",
        "143m",
        (),
        {READY: " ".join(["0x9 1 stale"] * 10) + " 1x300"},
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "the monitor was updated twice in an hour",
        "90m",
        (),
        {READY: "1x60 stale 0x8 1x10 stale 0x8 1x300"},
    ),
    AlertCase(
        "RebalanceMonitorStale",
        "a second monitor of the cluster is ready",
        "20m",
        (),
        {READY: "0x300", SECOND_MONITOR: "1x300"},
    ),
)


def skipped(records: str, reason: str) -> str:
    """Return the description of RebalanceMonitorQuarantineGrows."""
    return (
        f"Within 15 minutes, the monitor ignored {records} of __consumer_offsets. The reason is {reason}. Likely "
        "causes: a client library writes subscriptions or assignments in its own format. In this case, the "
        'table "quarantine" names a member in its column "field". If the reason is unknown_record_type or '
        "unknown_value_version, Kafka is newer than this monitor. If the reason is foreign_partition, a "
        "program other than Kafka wrote the records, or the partition count of the topic changed. What to do: "
        'see the table "quarantine", then update the client or the monitor. For foreign_partition, see the '
        "runbook."
    )


QUARANTINE = (
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "records of a newer Kafka",
        "40m",
        (WARNING,),
        of_cluster("records_skipped_total", "0x10 0+2x300", reason="unknown_value_version"),
        says=(
            "prod: the monitor cannot use records of __consumer_offsets (unknown_value_version)",
            skipped("30 records", "unknown_value_version"),
        ),
        labels={"cluster": "prod", "reason": "unknown_value_version"},
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "one record, although `increase` returns more than 1",
        "40m",
        (WARNING,),
        of_cluster("records_skipped_total", "7x30 8x300", reason="truncated"),
        says=(
            "prod: the monitor cannot use records of __consumer_offsets (truncated)",
            skipped("1 record", "truncated"),
        ),
        labels={"cluster": "prod", "reason": "truncated"},
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "the first failure with this reason, whose series begins at one",
        "40m",
        (WARNING,),
        of_cluster("records_skipped_total", "_x30 1x300", reason="truncated"),
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "a total that does not increase",
        "90m",
        (),
        of_cluster("records_skipped_total", "5x300", reason="truncated"),
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "a restarted monitor continues its total",
        "46m",
        (),
        of_cluster("records_skipped_total", "5x20 _x18 5x300", reason="truncated") | {READY: "1x20 _x16 0x2 1x300"},
    ),
    *(
        AlertCase(
            "RebalanceMonitorQuarantineGrows",
            f"a rebuild reads the old records again, {when} after it",
            at,
            (),
            of_cluster("records_skipped_total", "50x60 stale _x4 1+5x9 50x300", reason="truncated")
            | {READY: "1x60 stale _x4 0x9 1x300"},
        )
        for when, at in (("one minute", "77m"), ("8 minutes", "84m"), ("20 minutes", "96m"), ("an hour", "136m"))
    ),
    AlertCase(
        "RebalanceMonitorQuarantineGrows",
        "the first failure with this reason, soon after the monitor was ready again",
        "90m",
        (WARNING,),
        of_cluster("records_skipped_total", "_x80 1x300", reason="truncated") | {READY: "1x60 stale _x4 0x9 1x300"},
    ),
)

OTHERS = (
    AlertCase(
        "RebalanceMonitorRestarts",
        "the query fails every five minutes",
        "40m",
        (WARNING,),
        of_cluster("query_restarts_total", "0x4 1x4 2x4 3x4 4x4 5x4 6x4 7x4 8x4"),
        labels=CLUSTER,
        says=(
            "prod: the monitor fails again and again, or it cannot watch the cluster",
            (
                "Within half an hour, the monitor failed 6 times. After each failure, the monitor had to catch up. "
                "What to do: read the monitor's log. The log describes each error in one line."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorRestarts",
        "three restarts in half an hour",
        "31m",
        (WARNING,),
        of_cluster("query_restarts_total", "0x9 1x9 2x9 3x300"),
    ),
    AlertCase(
        "RebalanceMonitorRestarts",
        "two restarts in half an hour",
        "31m",
        (),
        of_cluster("query_restarts_total", "0x9 1x9 2x300"),
    ),
    AlertCase(
        "RebalanceMonitorRestarts",
        "the query has run for an hour again",
        "100m",
        (),
        of_cluster("query_restarts_total", "0x9 1x4 2x4 3x300"),
    ),
    AlertCase(
        "RebalanceMonitorTablesFailing",
        "writes fail again and again",
        "40m",
        (WARNING,),
        of_cluster("table_write_failures_total", "0+1x300"),
        labels=CLUSTER,
        says=(
            "prod: the monitor cannot write its tables",
            (
                "Writes to Delta tables have failed for 15 minutes. The monitor retries each failed write. Until a "
                "retry succeeds, rows are missing in the tables. Likely causes: the storage is full, is slow, or "
                "refuses the credentials. What to do: read the monitor's log. The log names the table and the error."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorTablesFailing",
        "a disk is nearly full",
        "20m",
        (WARNING,),
        of_cluster("disk_free_ratio", "0.0712x300", folder="tables")
        | of_cluster("disk_free_ratio", "0.5x300", folder="checkpoint"),
        labels={**CLUSTER, "folder": "tables"},
        says=(
            "prod: the disk with the folder tables has 7 % free space",
            (
                "The setting paths.tables names a folder. The disk of this folder has only 7 % free space. If this "
                "disk becomes full, the monitor is no longer ready. What to do: make space on the disk, use a larger "
                "disk, or shorten the retention of the tables."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorTablesFailing",
        "one write failed, and the second try succeeded",
        "40m",
        (),
        of_cluster("table_write_failures_total", "0x10 1x300"),
    ),
    AlertCase(
        "RebalanceMonitorTablesFailing",
        "half of the disk is free",
        "40m",
        (),
        of_cluster("disk_free_ratio", "0.5x300", folder="tables"),
    ),
    AlertCase(
        "RebalanceMonitorTablesFailing",
        "space was added",
        "60m",
        (),
        of_cluster("disk_free_ratio", "0.07x30 0.5x300", folder="tables"),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "more groups than the limit",
        "20m",
        (WARNING,),
        of_cluster("dropped_series", "4000x300", reason="max_series"),
        labels={**CLUSTER, "reason": "max_series"},
        says=(
            "prod: /metrics leaves out 4k series (max_series)",
            (
                "The setting metrics.max_series removes 4k series from /metrics. Alerts about some groups might "
                "not fire. What to do: raise metrics.max_series, choose a coarser metrics.granularity, or exclude "
                "groups that you do not need."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "full detail is configured for the worst groups only",
        "20m",
        (),
        of_cluster("dropped_series", "4000x300", reason="top_k"),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "no dropped series",
        "20m",
        (),
        of_cluster("dropped_series", "0x300", reason="max_series"),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "two brokers refuse the request",
        "20m",
        (WARNING,),
        of_cluster("group_listing_gaps", "2x300", reason="group_authorization_failed"),
        labels={**CLUSTER, "reason": "group_authorization_failed"},
        says=(
            "prod: the listing of groups is incomplete for 2 brokers (group_authorization_failed)",
            (
                "Brokers whose listing of groups is missing or incomplete: 2. The reason is "
                "group_authorization_failed. The monitor does not see rebalances in progress on these brokers. The "
                "monitor may also show groups that no longer exist. What to do: check whether these brokers are up. "
                "Grant the monitor's user the DESCRIBE permission on groups and on the cluster."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "two monitors count each broker once",
        "20m",
        (WARNING,),
        of_cluster("group_listing_gaps", "1x300", reason="timed_out", instance="a")
        | of_cluster("group_listing_gaps", "1x300", reason="timed_out", instance="b"),
        labels={**CLUSTER, "reason": "timed_out"},
        says=(
            "prod: the listing of groups is incomplete for 1 broker (timed_out)",
            (
                "Brokers whose listing of groups is missing or incomplete: 1. The reason is timed_out. The monitor "
                "does not see rebalances in progress on these brokers. The monitor may also show groups that no longer "
                "exist. What to do: check whether these brokers are up. Grant the monitor's user the DESCRIBE "
                "permission on groups and on the cluster."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "all brokers answer, but a permission is missing",
        "20m",
        (WARNING,),
        of_cluster("group_listing_gaps", "1x300", reason="cluster_describe_not_authorized"),
        labels={**CLUSTER, "reason": "cluster_describe_not_authorized"},
        says=(
            "prod: groups may be missing from the listing (cluster_describe_not_authorized)",
            (
                "The monitor's user does not have the DESCRIBE permission on the cluster. So the listing contains only "
                "groups that this user may describe. For other groups, the monitor does not see rebalances in "
                "progress. What to do: grant the monitor's user the DESCRIBE permission on the cluster."
            ),
        ),
    ),
    AlertCase(
        "RebalanceMonitorIncomplete",
        "a broker restarts",
        "20m",
        (),
        of_cluster("group_listing_gaps", "1x8 stale", reason="timed_out"),
    ),
    AlertCase(
        "RebalanceMonitorClocksDiffer",
        "the monitor's clock is a minute ahead",
        "20m",
        (WARNING,),
        clocks("-60x300", "1.5x300"),
        says=(
            "prod: the clocks of broker 1 and of the monitor differ by 58.5s or more",
            (
                "The monitor corrects an error of its own clock, but Prometheus and Grafana use their own clocks. If "
                "the clocks of the brokers differ, the monitor does not correct the times of rebalances, so commit "
                "gaps can be wrong. What to do: synchronize the clocks of the brokers and of the monitor (NTP)."
            ),
        ),
        labels={"cluster": "prod", "broker": "1"},
    ),
    AlertCase(
        "RebalanceMonitorClocksDiffer",
        "records are rare, so the error bound is large",
        "20m",
        (),
        clocks("8x300", "6x300"),
    ),
    AlertCase("RebalanceMonitorClocksDiffer", "the clock was corrected", "20m", (), clocks("60x8 0x300", "1x300")),
)

MONITOR = (*DOWN, *STALE, *QUARANTINE, *OTHERS)
