"""What is told of each group from its records: members, generation, state, and counts that never fall."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streaming.evaluation.turn import GroupRecord
from streaming.group.not_known import REBALANCES_FAILED, not_known
from streaming.prometheus.families.gaps import GAP_FAMILIES
from streaming.prometheus.families.imbalance import IMBALANCE_FAMILIES
from streaming.prometheus.families.owners import OWNER_FAMILIES
from streaming.prometheus.families.rebalances import REBALANCE_FAMILIES
from streaming.prometheus.group_facts import GroupFacts, GroupFamily, single
from streaming.prometheus.lines import Sample
from streaming.signals import groups, kafka_exporter, rebalances


def _members(record: GroupRecord) -> float | None:
    """Number of members; None where some of their records are missing."""
    snapshot = record.snapshot
    is_told = snapshot.classic is not None if snapshot.modern is None else snapshot.modern.tells_state
    return snapshot.member_count() if is_told else None


def _generation(record: GroupRecord) -> float | None:
    return record.snapshot.generation_id


def _failed(record: GroupRecord) -> int | None:
    """Rebalances proven to have failed; None where nothing could prove one."""
    return None if REBALANCES_FAILED in not_known(record.snapshot) else record.snapshot.totals.rebalances_failed


def _state(facts: GroupFacts) -> Iterable[Sample]:
    snapshot = facts.record.snapshot
    protocol_type, protocol = snapshot.protocol_type or "", snapshot.protocol or ""
    yield Sample((facts.group_id, snapshot.group_type, protocol_type, protocol, facts.state), 1)


GROUP_FAMILIES: Final[tuple[GroupFamily, ...]] = (
    (groups.GROUP_MEMBERS, single(_members)),
    (groups.GROUP_GENERATION, single(_generation)),
    (groups.GROUP_STATE, _state),
    (rebalances.REBALANCES, single(lambda record: record.snapshot.totals.rebalances, is_told_held_back=True)),
    (rebalances.REBALANCES_FAILED, single(_failed, is_told_held_back=True)),
    (
        rebalances.EMPTY_TRANSITIONS,
        single(lambda record: record.snapshot.totals.empty_transitions, is_told_held_back=True),
    ),
    *REBALANCE_FAMILIES,
    *GAP_FAMILIES,
    *IMBALANCE_FAMILIES,
    *OWNER_FAMILIES,
    (kafka_exporter.CONSUMERGROUP_MEMBERS, single(_members)),
)
"""All that is told of each group and changes only with it."""
