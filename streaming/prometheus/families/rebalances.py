"""What is told of a group's rebalances: counted by cause, and moves by need. Both since it was first seen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from streaming.prometheus.group_facts import GroupFacts, GroupFamily
from streaming.prometheus.lines import Sample
from streaming.signals import rebalances


def _by_cause(facts: GroupFacts) -> Iterator[Sample]:
    for cause, count in sorted(facts.record.story.totals.rebalances_by_cause.items()):
        yield Sample((facts.group_id, cause), count)


def _moved(facts: GroupFacts) -> Iterator[Sample]:
    for need, partitions in sorted(facts.record.story.totals.moved_partitions.items()):
        yield Sample((facts.group_id, need), partitions)


REBALANCE_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (rebalances.REBALANCES_BY_CAUSE, _by_cause),
    (rebalances.MOVED_PARTITIONS, _moved),
)
