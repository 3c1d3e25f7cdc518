"""What alerts on commits, lag and retention fire on, and what they do not."""

from __future__ import annotations

from tests.dashboards.rules import PAGE, READY, ROLLING, TICKET, Story, condition, of_cluster, of_group

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
    *(
        Story(
            "KafkaGroupWithoutMembers",
            f"it was made five hours before they left, and that is {since} ago",
            at,
            severity,
            of_group("group_members", "2x60 0x600") | status("STOP", "1x660"),
            step="5m",
        )
        for since, at, severity in (
            ("ten minutes", "5h10m", None),
            ("50 minutes", "5h50m", PAGE),
            ("100 minutes", "6h40m", PAGE),
            ("ten hours", "15h", PAGE),
            ("20 hours", "25h", PAGE),
            ("more than a day", "30h", None),
        )
    ),
    Story(
        "KafkaGroupWithoutMembers",
        "a job that runs twice a day, for an hour each",
        "900m",
        None,
        of_group("group_members", "0x300 3x59 0x400 3x59 0x600") | status("STOP", "1x1500"),
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
        "its members are gone for ten hours",
        "15h",
        PAGE,
        of_group("group_members", "2x60 0x600")
        | status("STOP", "1x660")
        | of_group("group_records_lost", "0x90 9x570"),
        step="5m",
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
