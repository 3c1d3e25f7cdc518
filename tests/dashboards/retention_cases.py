"""Define cases in which alerts on lost records and expiring offsets fire, and cases in which they must not fire."""

from __future__ import annotations

from tests.dashboards.progress_cases import MEMBERS
from tests.dashboards.rules import BOTH, CRITICAL, WARNING, AlertCase, group, of_group

NOT_LOST_YET = MEMBERS | of_group("group_records_lost", "0x300") | of_group("group_lag", "12000x300")
HOUR, DAY = 3600, 86400


def expiring(in_seconds: int, last_commit: int) -> dict[str, str]:
    """Return the series of a group without members: the time of the expiry and of the last commit, from minute 0."""
    return (
        of_group("group_members", "0x300")
        | of_group("group_offsets_expire_timestamp_seconds", f"{in_seconds}x300")
        | of_group("group_last_commit_timestamp_seconds", f"{last_commit}x300")
    )


LOST = (
    AlertCase(
        "KafkaRecordsLost",
        "retention deleted unread records",
        "5m",
        (CRITICAL,),
        MEMBERS | of_group("group_records_lost", "1500x300") | of_group("group_lag_seconds", "7200x300"),
        says=(
            "payments on prod: up to 1.5k records were deleted before the group read them",
            (
                "Retention deleted up to 1.5k records that the group had not committed yet. The oldest uncommitted "
                "record is 2h 0m 0s old. The group has 3 members. Likely causes: the group was too slow, or it was "
                "down for longer than the topic's retention. What to do: read the current retention.ms of the topic. "
                "Immediately raise retention.ms to stop the loss. Then reduce the lag. Inform the owners of the data. "
                "If the group is no longer needed, delete it."
            ),
        ),
    ),
    AlertCase("KafkaRecordsLost", "no record is lost", "5m", (), MEMBERS | of_group("group_records_lost", "0x300")),
    AlertCase(
        "KafkaRecordsLost",
        "a group without members keeps the alert for ten days",
        "240h",
        (CRITICAL,),
        of_group("group_members", "0x300") | of_group("group_records_lost", "9x300"),
        step="1h",
    ),
    AlertCase(
        "KafkaRecordsLost",
        "the committed offsets have moved past the loss",
        "120m",
        (),
        MEMBERS | of_group("group_records_lost", "1500x60 0x300"),
    ),
    AlertCase(
        "KafkaRecordsLost",
        "the entry of the group allows warnings only",
        "5m",
        (WARNING,),
        of_group("group_records_lost", "1500x300") | group(max_severity="warning"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "half an hour is left",
        "20m",
        BOTH,
        NOT_LOST_YET | of_group("group_seconds_until_lost", "1800x300"),
        says=(
            "payments on prod: retention will delete unread records in 30m 0s",
            (
                "At the current rate, retention will delete unread records in 30m 0s. Records that the group commits "
                "before then are not lost. 12k records wait. The group has 3 members. What to do: find the topics with "
                "lag on the group's page. Read the current retention.ms (or retention.bytes) of these topics. Raise "
                "the retention. Then reduce the lag. If the group is no longer needed, delete it."
            ),
        ),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "four hours are left",
        "30m",
        (WARNING,),
        NOT_LOST_YET | of_group("group_seconds_until_lost", "14400x300"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "a day is left",
        "30m",
        (),
        NOT_LOST_YET | of_group("group_seconds_until_lost", "86400x300"),
    ),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "records are already lost, which is a different alert",
        "30m",
        (),
        MEMBERS | of_group("group_records_lost", "7x300") | of_group("group_seconds_until_lost", "0x300"),
    ),
    AlertCase("KafkaRecordsAboutToBeLost", "the time is unknown", "30m", (), NOT_LOST_YET),
    AlertCase(
        "KafkaRecordsAboutToBeLost",
        "the group has caught up",
        "60m",
        (),
        NOT_LOST_YET | of_group("group_seconds_until_lost", "1800x30 stale"),
    ),
)

EXPIRING = (
    AlertCase(
        "KafkaOffsetsExpiring",
        "the default retention of a week has six days behind it",
        "10m",
        (WARNING,),
        expiring(12 * HOUR, last_commit=12 * HOUR - 7 * DAY),
        says=(
            "payments on prod: Kafka will delete the group's committed offsets in 11h 50m 0s",
            (
                "The group is inactive, and the retention time of its offsets (offsets.retention.minutes) has almost "
                "passed. The last commit of the group was at 1969-12-25 12:00:00 +0000 UTC. After Kafka has deleted "
                "the offsets, a group with auto.offset.reset=latest skips records. A group with "
                "auto.offset.reset=earliest reads all records again. What to do: start the application before Kafka "
                "deletes the offsets. If the group is no longer needed, delete it or set ignore_alerts."
            ),
        ),
    ),
    AlertCase("KafkaOffsetsExpiring", "two days are left", "60m", (), expiring(2 * DAY, last_commit=-5 * DAY)),
    AlertCase(
        "KafkaOffsetsExpiring",
        "a retention of two hours has only begun",
        "20m",
        (),
        expiring(2 * HOUR, last_commit=0),
    ),
    AlertCase(
        "KafkaOffsetsExpiring",
        "the second half of a retention of two hours",
        "70m",
        (WARNING,),
        expiring(2 * HOUR, last_commit=0),
    ),
    AlertCase(
        "KafkaOffsetsExpiring",
        "the time has passed, and the broker has not deleted the offsets yet",
        "150m",
        (WARNING,),
        expiring(2 * HOUR, last_commit=0),
        says=(
            "payments on prod: Kafka will delete the group's committed offsets at any moment",
            (
                "The group is inactive, and the retention time of its offsets (offsets.retention.minutes) has almost "
                "passed. The last commit of the group was at 1970-01-01 00:00:00 +0000 UTC. After Kafka has deleted "
                "the offsets, a group with auto.offset.reset=latest skips records. A group with "
                "auto.offset.reset=earliest reads all records again. What to do: start the application before Kafka "
                "deletes the offsets. If the group is no longer needed, delete it or set ignore_alerts."
            ),
        ),
    ),
    AlertCase(
        "KafkaOffsetsExpiring",
        "the time of the last commit is unknown",
        "10m",
        (WARNING,),
        of_group("group_offsets_expire_timestamp_seconds", "3600x300"),
    ),
    AlertCase(
        "KafkaOffsetsExpiring",
        "the application was started again",
        "60m",
        (),
        of_group("group_offsets_expire_timestamp_seconds", "3600x30 stale"),
    ),
    AlertCase("KafkaOffsetsExpiring", "offsets of an active group do not expire", "60m", (), MEMBERS),
)

RETENTION = (*LOST, *EXPIRING)
