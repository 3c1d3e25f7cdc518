"""Of one group: how far it is behind, in records and in time, where, and what retention takes meanwhile."""

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
    """How far, where, and why it may not be known."""
    return [
        *(_records(), _seconds()),
        *(_topics(), _partitions()),
        *(_lost(), _until_lost(), _unknown(), _completeness()),
    ]


def _group_line(spec: PanelSpec, signal: Signal, legend: str, display: DisplayOptions = COUNT) -> AnyPanel:
    """One line, of the group as a whole."""
    return line_panel(spec, [Query(f"max({ONE_GROUP.selector(signal)})", legend)], display)


def _records() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records",
        "Records the group has yet to commit. Rising all the time: it does not keep up. Rising in steps: look for "
        "rebalances at the same time.",
        GROUP_LAG.unknown,
    )
    return _group_line(spec, GROUP_LAG, "records")


def _seconds() -> AnyPanel:
    spec = PanelSpec(
        "Lag in time",
        "How long ago the next record was written that the group has to read, of its partitions the most. It is a "
        "lower bound where `lag in time is` above says `at least`.",
        GROUP_LAG_SECONDS.unknown,
    )
    return _group_line(spec, GROUP_LAG_SECONDS, "behind", DisplayOptions(unit="s", steps=SECONDS_BEHIND))


def _topics() -> AnyPanel:
    spec = PanelSpec(
        "Lag in records, by topic",
        "Of the chosen topics. One that rises while the others do not: look at its records or its producers.",
        f"the monitor's setting `metrics.granularity` is `group`. {TOPIC_LAG.unknown}",
        "not known, or not shown at this granularity",
    )
    return line_panel(spec, [Query(ONE_GROUP.series(TOPIC_LAG, _IN_TOPIC), "{{topic}}")])


def _partitions() -> AnyPanel:
    spec = PanelSpec(
        "Partitions that are furthest behind",
        "Those of the chosen topics with most lag. All of one member: look at the member. One alone: a hot key, or a "
        "record that cannot be worked on.",
        "every partition is read to its end; or `metrics.granularity` is `group` or `topic`. " + PARTITION_LAG.unknown,
        "none is behind, or not shown at this granularity",
    )
    selected = f"topk(50, {ONE_GROUP.series(PARTITION_LAG, _IN_TOPIC)} > 0)"
    columns: list[Column] = [
        *(Label("Topic", "topic"), Label("Partition", "partition")),
        Measure("Records", selected),
        Measure("Behind", _of_same_partitions(PARTITION_LAG_SECONDS, selected), unit="s", steps=SECONDS_BEHIND),
        Measure(
            "is",
            f"{BOUNDS[0].code} + {_of_same_partitions(PARTITION_LAG_SECONDS_IS_BOUND, selected)}",
            mappings=code_mappings(BOUNDS),
        ),
        Label("Status", "status", label_mappings(STATUSES)),
        Measure("", _of_same_partitions(PARTITION_STATUS, selected)),
    ]
    return ranked_table(spec, columns, sort_by="Records")


def _of_same_partitions(signal: Signal, selected: str) -> str:
    return f"{ONE_GROUP.series(signal)} and on (topic, partition) {selected}"


def _lost() -> AnyPanel:
    spec = PanelSpec(
        "Records lost to retention",
        "Offsets that retention took before the group committed them. They are gone: whatever it rises by was never "
        "processed, unless the group skipped it on purpose.",
        GROUP_RECORDS_LOST.unknown,
        width=6,
    )
    return _group_line(spec, GROUP_RECORDS_LOST, "lost", DisplayOptions(steps=ANY))


def _until_lost() -> AnyPanel:
    spec = PanelSpec(
        "Time until records are lost",
        "Until retention takes records the group has not committed, at its present rate. Below an hour: red.",
        GROUP_SECONDS_UNTIL_LOST.unknown,
        "no record is in danger, as far as is known",
        width=6,
    )
    return _group_line(spec, GROUP_SECONDS_UNTIL_LOST, "until lost", DisplayOptions(unit="s", steps=_SECONDS_LEFT))


def _unknown() -> AnyPanel:
    spec = PanelSpec(
        "Partitions of unknown lag or status",
        "By reason; a partition of unknown lag is in no sum. `blocked`: an open transaction hides what was "
        "committed. `topic_deleted`: the group still has offsets of a topic that is gone. `maybe_only_markers`: only "
        "transaction markers may be left, and the monitor has no READ on the topic. `read up to an open transaction`: "
        "lag is known, status is not.",
        LAG_UNKNOWN_PARTITIONS.unknown,
        "the lag of all partitions is known",
        width=6,
    )
    blocked = Query(ONE_GROUP.series(GROUP_BLOCKED_PARTITIONS), "read up to an open transaction")
    return line_panel(spec, [Query(ONE_GROUP.series(LAG_UNKNOWN_PARTITIONS), "{{reason}}"), blocked])


def _completeness() -> AnyPanel:
    spec = PanelSpec(
        "How well founded the status is",
        "Share of the group's partitions whose status rests on ten commits. Below 100% the status may soon be another.",
        GROUP_STATUS_COMPLETENESS.unknown,
        width=6,
    )
    return _group_line(spec, GROUP_STATUS_COMPLETENESS, "complete", DisplayOptions(unit="percentunit", maximum=1))
