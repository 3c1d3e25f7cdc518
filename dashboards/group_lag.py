"""Of one group: how far it is behind, in records and in time, where, and what retention takes meanwhile."""

from __future__ import annotations

from dashboards.panels import COUNT, AnyPanel, Card, Look, Query, lines
from dashboards.promql import ONE_GROUP
from dashboards.words import ANY, FINE, SECONDS_BEHIND, WATCH, Steps
from streaming.signals import Signal
from streaming.signals.lag import (
    GROUP_LAG,
    GROUP_LAG_SECONDS,
    GROUP_RECORDS_LOST,
    GROUP_SECONDS_UNTIL_LOST,
    GROUP_STATUS_COMPLETENESS,
    LAG_UNKNOWN_PARTITIONS,
)

_SECONDS_LEFT: Steps = ((3600, WATCH), (86_400, FINE))


def lag() -> list[AnyPanel]:
    """How far, where, and why it may not be known."""
    return [_records(), _seconds(), _lost(), _until_lost(), _unknown(), _completeness()]


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
        "Partitions of unknown lag",
        "By reason; none of them is in any sum. `held back`: an open transaction hides what was committed. `topic "
        "deleted`: the group still has offsets of a topic that is gone.",
        LAG_UNKNOWN_PARTITIONS.unknown,
        "the lag of all partitions is known",
        width=6,
    )
    return lines(card, [Query(ONE_GROUP.each(LAG_UNKNOWN_PARTITIONS), "{{reason}}")])


def _completeness() -> AnyPanel:
    card = Card(
        "How well founded the status is",
        "Share of the group's partitions whose status rests on ten commits. Below 100% the status may soon be another.",
        GROUP_STATUS_COMPLETENESS.unknown,
        width=6,
    )
    return _whole(card, GROUP_STATUS_COMPLETENESS, "complete", Look(unit="percentunit", top=1))
