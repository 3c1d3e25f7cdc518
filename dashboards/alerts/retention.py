"""These alerts fire if Kafka deletes records or committed offsets that a group still needs."""

from __future__ import annotations

from typing import Final

from dashboards.alerts.definition import CRITICAL, GROUP, WARNING, Alert, AlertFile, Level
from dashboards.alerts.expressions import group_max, group_min, lines
from dashboards.alerts.texts import (
    COUNT,
    DURATION,
    GROUP_MEMBERS,
    IN_GROUP,
    LAG_SECONDS,
    LAST_COMMIT,
    RECORDS_WAIT,
    WORST_PARTITION,
)

_NOT_LOST_YET = f"unless on (cluster, group) ({group_max('group_records_lost')} > 0)"
_UNTIL_LOST = group_min("group_seconds_until_lost")
_EXPIRE = group_min("group_offsets_expire_timestamp_seconds")
_LAST_COMMIT_TIME = group_max("group_last_commit_timestamp_seconds")
# If offsets.retention.minutes is shorter than two days, fire only in its last half.
_EXPIRING = lines(
    f"{_EXPIRE} - time() < 86400",
    "unless on (cluster, group)",
    f"  {_EXPIRE} - time() > 0.5 * ({_EXPIRE} - {_LAST_COMMIT_TIME})",
)

RETENTION: Final = AlertFile(
    "5-retention",
    "These alerts fire if Kafka deletes records or committed offsets that a group still needs.",
    (
        Alert(
            "KafkaRecordsLost",
            GROUP,
            harm="Retention deleted records that the group had not read. The alert ends when the committed offsets are "
            "higher than the offsets of the lost records.",
            levels=(Level(CRITICAL, f"{group_max('group_records_lost')} > 0", "1m"),),
            summary=f"{IN_GROUP}up to {COUNT} records were deleted before the group read them",
            description=f"Retention deleted up to {COUNT} records that the group had not committed "
            f"yet.{LAG_SECONDS}{GROUP_MEMBERS}{WORST_PARTITION} Likely causes: the group was too slow, or it was down "
            f"for longer than the topic's retention. What to do: read the current retention.ms of the topic. "
            f"Immediately raise retention.ms to stop the loss. Then reduce the lag. Inform the owners of the data. If "
            f"the group is no longer needed, delete it.",
        ),
        Alert(
            "KafkaRecordsAboutToBeLost",
            GROUP,
            harm="Kafka will soon delete unread records, unless the group catches up or somebody raises the retention.",
            levels=(
                Level(CRITICAL, lines(f"{_UNTIL_LOST} < 3600", _NOT_LOST_YET), "5m"),
                Level(WARNING, lines(f"{_UNTIL_LOST} < 21600", _NOT_LOST_YET), "15m"),
            ),
            summary=f"{IN_GROUP}retention will delete unread records in {DURATION}",
            description=f"At the current rate, retention will delete unread records in {DURATION}. Records that the "
            f"group commits before then are not lost.{RECORDS_WAIT}{LAG_SECONDS}{GROUP_MEMBERS}{WORST_PARTITION} What "
            f"to do: find the topics with lag on the group's page. Read the current retention.ms (or retention.bytes) "
            f"of these topics. Raise the retention. Then reduce the lag. If the group is no longer needed, delete it.",
        ),
        Alert(
            "KafkaOffsetsExpiring",
            GROUP,
            harm="After Kafka has deleted the committed offsets, the group skips records or reads all records again.",
            levels=(Level(WARNING, _EXPIRING, "5m"),),
            summary=f"{IN_GROUP}Kafka will delete the group's committed offsets {{{{ if gt $value 0.0 }}}}in "
            f"{DURATION}{{{{ else }}}}at any moment{{{{ end }}}}",
            description=f"The group is inactive, and the retention time of its offsets (offsets.retention.minutes) has "
            f"almost passed.{LAST_COMMIT}{RECORDS_WAIT} After Kafka has deleted the offsets, a group with "
            f"auto.offset.reset=latest skips records. A group with auto.offset.reset=earliest reads all records again. "
            f"What to do: start the application before Kafka deletes the offsets. If the group is no longer needed, "
            f"delete it or set ignore_alerts.",
        ),
    ),
)
