"""Clusters on which nothing is wrong, however it looks: no alert may fire."""

from __future__ import annotations

from tests.dashboards.rules import READY, Story, condition, of_cluster, of_group


def works(members: str = "3x300", *, excess: str = "0x300", most: str = "4x300") -> dict[str, str]:
    """A group that does what it should."""
    return (
        of_group("group_members", members)
        | of_group("group_state", "1x300", state="Stable")
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
    works(excess="0x20 4x30 0x300", most="4x20 8x30 4x300")
    | of_group("group_state", "1x300", state="Stable")
    | of_group("avoidable_idle_members", "0x20 1x30 0x300")
    | of_group("unowned_partitions", "0x20 2x30 0x300")
    | condition("rolling_restart", "_x20 1x30 stale")
    | condition("rebalance_storm", "_x21 1x3 stale")
    | condition("unowned_partitions", "_x22 1x4 stale")
)
"""Half an hour of a rolling deploy. While members come and go the assignment is never fair for long."""


CATCHING_UP = (
    works()
    | {READY: "0x14 1x300"}
    | condition("rebalance_storm", "1x14 stale")
    | of_group("excess_partitions", "9x14 0x300")
    | of_group("group_status", "1x14 stale", status="STOP")
    | of_group("group_lag_seconds", "86400x14 2x300")
)
"""A monitor that reads the backlog of a day: what it shows meanwhile was so long ago."""

ENDED = (
    of_group("group_members", "3x200 0x5 stale")
    | of_group("group_state", "1x205 stale", state="Stable")
    | of_group("group_status", "1x200 stale", status="OK")
)
"""Its members left, and five minutes after somebody deleted it."""

EMPTY = (
    of_group("group_members", "3x200 0x100")
    | of_group("group_state", "1x300", state="Empty")
    | of_group("group_status", "1x300", status="OK")
    | of_group("group_lag_seconds", "0x300")
)
"""Its members left with everything read, and nothing comes."""

CALM = (
    Story("*", "a group that works", "60m", None, works() | OWN),
    Story(
        "*",
        "seven partitions over five members: nothing closes the gap",
        "60m",
        None,
        works("5x300", most="2x300") | OWN,
    ),
    Story(
        "*",
        "two members more than partitions: they must be idle",
        "60m",
        None,
        works("9x300", most="1x300") | of_group("idle_members", "2x300") | OWN,
    ),
    Story("*", "a rolling deploy, its tenth minute", "30m", None, ROLLED | OWN),
    Story("*", "a rolling deploy, its last minute", "49m", None, ROLLED | OWN),
    Story("*", "a rolling deploy, after it", "60m", None, ROLLED | OWN),
    Story("*", "the monitor catches up, its 13th minute", "13m", None, CATCHING_UP | OWN),
    Story("*", "the monitor caught up", "25m", None, CATCHING_UP | OWN),
    Story("*", "a Prometheus that has just started", "3m", None, works() | OWN | {READY: "_x2 1x300"}),
    Story("*", "a group that ended and was deleted", "230m", None, ENDED | OWN),
    Story("*", "a group that everybody left with all records read", "260m", None, EMPTY | OWN),
)
