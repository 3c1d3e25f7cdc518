"""Of one group: how far it is behind, in records and in time, where, and what retention takes meanwhile."""

from __future__ import annotations

from dashboards.panels import COUNT, AnyPanel, Card, Look, Query, lines
from dashboards.promql import ONE_GROUP
from dashboards.tables import Column, Label, Measure, ranked
from dashboards.words import ANY, BOUNDS, FINE, SECONDS_BEHIND, STATUSES, WATCH, Steps, as_labelled, decoded
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


def _whole(card: Card, signal: Signal, legend: str, look: Look = COUNT) -> AnyPanel:
    """One line, of the group as a whole."""
    return lines(card, [Query(f"max({ONE_GROUP.of(signal)})", legend)], look)


def _records() -> AnyPanel:
    card = Card(
        "Lag in records",
        "Records the group has yet to commit. Rising all the time: it does not keep up. Rising in steps: look for "
        "rebalances at the same time.",
        GROUP_LAG.unknown,
    )
    return _whole(card, GROUP_LAG, "records")


def _seconds() -> AnyPanel:
    card = Card(
        "Lag in time",
        "How long ago the next record was written that the group has to read, of its partitions the most. It is a "
        "lower bound where `lag in time is` above says `at least`.",
        GROUP_LAG_SECONDS.unknown,
    )
    return _whole(card, GROUP_LAG_SECONDS, "behind", Look(unit="s", steps=SECONDS_BEHIND))


def _topics() -> AnyPanel:
    card = Card(
        "Lag in records, by topic",
        "Of the chosen topics. One that rises while the others do not: look at its records or its producers.",
        f"the monitor's setting `metrics.granularity` is `group`. {TOPIC_LAG.unknown}",
        "not known, or not shown at this granularity",
    )
    return lines(card, [Query(ONE_GROUP.each(TOPIC_LAG, _IN_TOPIC), "{{topic}}")])


def _partitions() -> AnyPanel:
    card = Card(
        "Partitions that are furthest behind",
        "Those of the chosen topics with most lag. All of one member: look at the member. One alone: a hot key, or a "
        "record that cannot be worked on.",
        "every partition is read to its end; or `metrics.granularity` is `group` or `topic`. " + PARTITION_LAG.unknown,
        "none is behind, or not shown at this granularity",
    )
    most = f"topk(50, {ONE_GROUP.each(PARTITION_LAG, _IN_TOPIC)} > 0)"
    columns: list[Column] = [
        *(Label("Topic", "topic"), Label("Partition", "partition")),
        Measure("Records", most),
        Measure("Behind", _of_those(PARTITION_LAG_SECONDS, most), unit="s", steps=SECONDS_BEHIND),
        Measure(
            "is", f"{BOUNDS[0].code} + {_of_those(PARTITION_LAG_SECONDS_IS_BOUND, most)}", mappings=decoded(BOUNDS)
        ),
        Label("Status", "status", as_labelled(STATUSES)),
        Measure("", _of_those(PARTITION_STATUS, most)),
    ]
    return ranked(card, columns, by="Records")


def _of_those(signal: Signal, most: str) -> str:
    return f"{ONE_GROUP.each(signal)} and on (topic, partition) {most}"


def _lost() -> AnyPanel:
    card = Card(
        "Records lost to retention",
        "Offsets that retention took before the group committed them. They are gone: whatever it rises by was never "
        "processed, unless the group skipped it on purpose.",
        GROUP_RECORDS_LOST.unknown,
        width=6,
    )
    return _whole(card, GROUP_RECORDS_LOST, "lost", Look(steps=ANY))


def _until_lost() -> AnyPanel:
    card = Card(
        "Time until records are lost",
        "Until retention takes records the group has not committed, at its present rate. Below an hour: red.",
        GROUP_SECONDS_UNTIL_LOST.unknown,
        "no record is in danger, as far as is known",
        width=6,
    )
    return _whole(card, GROUP_SECONDS_UNTIL_LOST, "until lost", Look(unit="s", steps=_SECONDS_LEFT))


def _unknown() -> AnyPanel:
    card = Card(
        "Partitions of unknown lag or status",
        "By reason; a partition of unknown lag is in no sum. `blocked`: an open transaction hides what was "
        "committed. `topic_deleted`: the group still has offsets of a topic that is gone. `maybe_only_markers`: only "
        "transaction markers may be left, and the monitor has no READ on the topic. `read up to an open transaction`: "
        "lag is known, status is not.",
        LAG_UNKNOWN_PARTITIONS.unknown,
        "the lag of all partitions is known",
        width=6,
    )
    blocked = Query(ONE_GROUP.each(GROUP_BLOCKED_PARTITIONS), "read up to an open transaction")
    return lines(card, [Query(ONE_GROUP.each(LAG_UNKNOWN_PARTITIONS), "{{reason}}"), blocked])


def _completeness() -> AnyPanel:
    card = Card(
        "How well founded the status is",
        "Share of the group's partitions whose status rests on ten commits. Below 100% the status may soon be another.",
        GROUP_STATUS_COMPLETENESS.unknown,
        width=6,
    )
    return _whole(card, GROUP_STATUS_COMPLETENESS, "complete", Look(unit="percentunit", top=1))
