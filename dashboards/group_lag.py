"""Define the lag panels of one group: lag in records and in time, by topic and partition, and records lost."""

from __future__ import annotations

from dashboards.panels import COUNT, AnyPanel, DisplayOptions, PanelSpec, Query, line_panel
from dashboards.promql import ONE_GROUP
from dashboards.tables import Column, Label, Measure, ranked_table
from dashboards.words import ANY, BOUNDS, FINE, SECONDS_BEHIND, STATUSES, WATCH, Steps, code_mappings, label_mappings
from streaming.signals import Signal
from streaming.signals.lag import (
    GROUP_BLOCKED_PARTITIONS,
    GROUP_LAG,
    GROUP_LAG_SECONDS,
    GROUP_RECORDS_LOST,
    GROUP_SECONDS_UNTIL_LOST,
    GROUP_STATUS_COMPLETENESS,
    LAG_UNKNOWN_PARTITIONS,
)
from streaming.signals.partitions import (
    PARTITION_LAG,
    PARTITION_LAG_SECONDS,
    PARTITION_LAG_SECONDS_IS_BOUND,
    PARTITION_STATUS,
    TOPIC_LAG,
)

_IN_TOPIC = 'topic=~"$topic"'
_SECONDS_LEFT: Steps = ((3600, WATCH), (86_400, FINE))


def lag() -> list[AnyPanel]:
    """Return the panels: lag of the group, then of topics and partitions, then lost records and unknown lag."""
    return [
        *(_records(), _seconds()),
        *(_topics(), _partitions()),
        *(_lost(), _until_lost(), _unknown(), _completeness()),
    ]


def _group_line(spec: PanelSpec, signal: Signal, legend: str, display: DisplayOptions = COUNT) -> AnyPanel:
    """Return a panel with one line for the complete group."""
    return line_panel(spec, [Query(f"max({ONE_GROUP.selector(signal)})", legend)], display)


def _records() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records",
        "Records that the group has not committed. If the lag rises all the time, the group does not keep up. If the "
        "lag rises in steps, look for rebalances at the times of the steps.",
        GROUP_LAG.unknown,
    )
    return _group_line(spec, GROUP_LAG, "records")


def _seconds() -> AnyPanel:
    spec = PanelSpec(
        "Lag in time",
        "Age of the next record that the group must read, in the partition with the largest lag in time. The value is "
        "a lower bound if the row `lag in time` in `State over time` shows `at least`.",
        GROUP_LAG_SECONDS.unknown,
    )
    return _group_line(spec, GROUP_LAG_SECONDS, "lag", DisplayOptions(unit="s", steps=SECONDS_BEHIND))


def _topics() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by topic",
        "Lag of the selected topics. If only one topic rises, look at its records and its producers.",
        f"The setting `metrics.granularity` is `group`. {TOPIC_LAG.unknown}",
        "unknown, or not shown at this granularity",
    )
    return line_panel(spec, [Query(ONE_GROUP.series(TOPIC_LAG, _IN_TOPIC), "{{topic}}")])


def _partitions() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with the largest lag",
        "Partitions of the selected topics, with the largest lag first. If all these partitions belong to one member, "
        "look at this member. If only one partition has lag, look for a hot key, or for a record that the consumer "
        "cannot process.",
        "No partition has lag, or `metrics.granularity` is `group` or `topic`. " + PARTITION_LAG.unknown,
        "no lag, or not shown at this granularity",
    )
    selected = f"topk(50, {ONE_GROUP.series(PARTITION_LAG, _IN_TOPIC)} > 0)"
    columns: list[Column] = [
        *(Label("Topic", "topic"), Label("Partition", "partition")),
        Measure("Lag in records", selected),
        Measure("Lag in time", _of_same_partitions(PARTITION_LAG_SECONDS, selected), unit="s", steps=SECONDS_BEHIND),
        Measure(
            "Precision",
            f"{BOUNDS[0].code} + {_of_same_partitions(PARTITION_LAG_SECONDS_IS_BOUND, selected)}",
            mappings=code_mappings(BOUNDS),
        ),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", _of_same_partitions(PARTITION_STATUS, selected)),
    ]
    return ranked_table(spec, columns, sort_by="Lag in records")


def _of_same_partitions(signal: Signal, selected: str) -> str:
    return f"{ONE_GROUP.series(signal)} and on (topic, partition) {selected}"


def _lost() -> AnyPanel:
    spec = PanelSpec(
        "Records lost to retention",
        "Offsets that retention deleted before the group committed them. The group never processed these records, or "
        "it skipped them on purpose.",
        GROUP_RECORDS_LOST.unknown,
        width=6,
    )
    return _group_line(spec, GROUP_RECORDS_LOST, "lost", DisplayOptions(steps=ANY))


def _until_lost() -> AnyPanel:
    spec = PanelSpec(
        "Time until records are lost",
        "Time until retention deletes records that the group has not committed, if the present rate does not change. "
        "Red: less than an hour is left.",
        GROUP_SECONDS_UNTIL_LOST.unknown,
        "no record is known to be in danger",
        width=6,
    )
    return _group_line(spec, GROUP_SECONDS_UNTIL_LOST, "until lost", DisplayOptions(unit="s", steps=_SECONDS_LEFT))


def _unknown() -> AnyPanel:
    spec = PanelSpec(
        "Partitions with unknown lag or status",
        "Partitions with unknown lag or status, by reason. If the lag of a partition is unknown, sums do not include "
        "it. `blocked`: an open transaction blocks the commits. `topic_deleted`: the group has offsets of a deleted "
        "topic. `maybe_only_markers`: the remaining offsets may be only transaction markers, and only a monitor with "
        "the READ permission on the topic can check this. `read up to an open transaction`: the lag is known, but the "
        "status is unknown.",
        LAG_UNKNOWN_PARTITIONS.unknown,
        "all lag is known",
        width=6,
    )
    blocked = Query(ONE_GROUP.series(GROUP_BLOCKED_PARTITIONS), "read up to an open transaction")
    return line_panel(spec, [Query(ONE_GROUP.series(LAG_UNKNOWN_PARTITIONS), "{{reason}}"), blocked])


def _completeness() -> AnyPanel:
    spec = PanelSpec(
        "Completeness of the status",
        "Share of the group's partitions whose status is based on ten commits. If this share is below 100 %, the "
        "status may soon change.",
        GROUP_STATUS_COMPLETENESS.unknown,
        width=6,
    )
    return _group_line(spec, GROUP_STATUS_COMPLETENESS, "complete", DisplayOptions(unit="percentunit", maximum=1))
