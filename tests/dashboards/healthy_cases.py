"""Define healthy situations in which no alert may fire."""

from __future__ import annotations

from tests.dashboards.rules import READY, AlertCase, condition, group, of_cluster, of_group


def healthy_group(members: str = "3x300", *, excess: str = "0x300", most: str = "4x300") -> dict[str, str]:
    """Return the series of a group without a problem."""
    return (
        of_group("group_members", members)
        | of_group("excess_partitions", excess)
        | of_group("member_partitions_max", most)
        | of_group("avoidable_idle_members", "0x300")
        | of_group("assignment_verdict", "1x300", strategy="range", verdict="match")
        | of_group("group_status", "1x300", status="OK")
        | of_group("group_lag_seconds", "2x300")
        | of_group("group_records_lost", "0x300")
        | of_group("group_seconds_until_lost", "500000x300")
    )


OWN = (
    of_cluster("offsets_topic_lag", "20x300", partition="0")
    | of_cluster("offsets_topic_blocked", "0x300", partition="0")
    | of_cluster("records_read_total", "0+60000x300", kind="offset_commit")
    | of_cluster("query_restarts_total", "0x300")
)

ROLLED = (
    healthy_group(excess="0x20 4x30 0x300", most="4x20 8x30 4x300")
    | of_group("avoidable_idle_members", "0x20 1x30 0x300")
    | of_group("unowned_partitions", "0x20 2x30 0x300")
    | condition("rolling_restart", "_x20 1x30 stale")
    | condition("rebalance_storm", "_x21 1x3 stale")
    | condition("unowned_partitions", "_x22 1x4 stale")
)
"""Series of half an hour of a rolling deployment. Meanwhile the assignment is never fair for long."""


CATCHING_UP = (
    healthy_group()
    | {READY: "0x14 1x300"}
    | condition("rebalance_storm", "1x14 stale")
    | of_group("excess_partitions", "9x14 0x300")
    | of_group("group_status", "1x14 stale", status="STOP")
    | of_group("group_lag_seconds", "86400x14 2x300")
)
"""Series of a monitor that reads the records of the last day. Until it is ready, its values are up to a day old."""

ENDED = (
    of_group("group_members", "3x200 0x5 stale")
    | group("1x205 stale")
    | of_group("group_status", "1x200 stale", status="OK")
)
"""Series of a group whose members left and that was deleted five minutes later."""

EMPTY = (
    of_group("group_members", "3x200 0x100")
    | group(state="Empty")
    | of_group("group_status", "1x300", status="OK")
    | of_group("group_lag_seconds", "0x300")
)
"""Series of a group whose members left after they had read all records. No new records arrive."""

TWO_MONITORS = {
    name.replace("}", ',instance="other:9560"}'): values for name, values in (healthy_group() | OWN | group()).items()
}
"""Series of a second monitor of the same cluster."""

HEALTHY = (
    AlertCase("*", "a group without a problem", "60m", (), healthy_group() | OWN),
    AlertCase("*", "two monitors of one cluster", "60m", (), healthy_group() | OWN | group() | TWO_MONITORS),
    AlertCase(
        "*",
        "seven partitions over five members cannot be shared more evenly",
        "60m",
        (),
        healthy_group("5x300", most="2x300") | OWN,
    ),
    AlertCase(
        "*",
        "two members more than partitions must be idle",
        "60m",
        (),
        healthy_group("9x300", most="1x300") | of_group("idle_members", "2x300") | OWN,
    ),
    AlertCase("*", "the tenth minute of a rolling deployment", "30m", (), ROLLED | OWN),
    AlertCase("*", "the last minute of a rolling deployment", "49m", (), ROLLED | OWN),
    AlertCase("*", "after a rolling deployment", "60m", (), ROLLED | OWN),
    AlertCase("*", "the 13th minute in which the monitor catches up", "13m", (), CATCHING_UP | OWN),
    AlertCase("*", "the monitor has caught up", "25m", (), CATCHING_UP | OWN),
    AlertCase("*", "Prometheus has just started", "3m", (), healthy_group() | OWN | {READY: "_x2 1x300"}),
    AlertCase("*", "a group that ended and was deleted", "230m", (), ENDED | OWN),
    AlertCase("*", "a group that all members left after they had read all records", "260m", (), EMPTY | OWN),
)
