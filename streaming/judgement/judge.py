"""All verdicts on one group, from its snapshot alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from assignors import PartitionAssignor
from streaming.events import CONSUMER, Position
from streaming.group.members import members
from streaming.group.not_known import not_known
from streaming.group.snapshot import ASSIGNING, REBALANCING, GroupSnapshot
from streaming.group.snapshot import UNKNOWN as UNKNOWN_STATE
from streaming.judgement.consumer_drift import BROKER, consumer_drifts
from streaming.judgement.drift import NOT_EVALUATED, UNKNOWN, StrategyDrift, recorded, strategy_drift
from streaming.judgement.group_spec import actual_owners, group_spec
from streaming.judgement.imbalance import PartitionShares, imbalance
from streaming.judgement.leader import UNKNOWN_LEADER, Leader, leader_of
from streaming.protocol.classic import GroupMetadata

CONSUMER_PROTOCOL_TYPE = "consumer"
KAFKA_STREAMS_PROTOCOL = "stream"
"""Classic Kafka Streams (and ksqlDB) runs its own task assignor under this name: ours say nothing about it."""


_NOT_JUDGED = frozenset({ASSIGNING, UNKNOWN_STATE, *REBALANCING})


class Judgement(msgspec.Struct, frozen=True):
    """The verdicts on a group as of one record, and what they were made from.

    `metadata_sampled_at_ms` is when the oldest topic metadata was sampled, `assigned_by` whose program assigned and how
    that is told, `not_known` what the verdicts had to do without.
    """

    position: Position
    generation_id: int | None
    drifts: tuple[StrategyDrift, ...]
    shares: tuple[PartitionShares, ...]
    metadata_sampled_at_ms: int | None
    assigned_by: Leader | None = None
    not_known: tuple[str, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether nothing was missing; an incomplete judgement is made again when its inputs come."""
        return all(drift.reason != "metadata_missing" for drift in self.drifts)


def judge(snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> Judgement | None:
    """Judge the current generation; None for a group that has no members to judge, or no assignment of this epoch."""
    position, generation_id = snapshot.position, snapshot.generation_id
    if position is None or not snapshot.member_count() or snapshot.state in _NOT_JUDGED:
        return None
    if generation_id is None and snapshot.classic is None:
        return None
    if not _is_evaluated(snapshot):
        return Judgement(position, generation_id, (), (), None, not_known=not_known(snapshot))
    sampled = [topic.sampled_at_ms for topic in snapshot.topics.values()]
    if snapshot.classic is not None:
        assigned_by, drifts = leader_of(snapshot.classic), _drifts(snapshot, snapshot.classic, strategies)
    else:
        assigned_by, drifts = Leader(BROKER, ()), consumer_drifts(snapshot, strategies)
    return Judgement(
        position=position,
        generation_id=generation_id,
        drifts=drifts,
        shares=imbalance(members(snapshot)),
        metadata_sampled_at_ms=min(sampled, default=None),
        assigned_by=assigned_by,
        not_known=_not_known(snapshot, assigned_by),
    )


def _not_known(snapshot: GroupSnapshot, assigned_by: Leader) -> tuple[str, ...]:
    """What the verdicts had to do without. Counts sampled later than the record are those of then, not of its time."""
    position = snapshot.position
    is_late = position is not None and any(
        sampled.sampled_at_ms > position.timestamp_ms for sampled in snapshot.topics.values()
    )
    return (
        *(["metadata_of_the_time"] if is_late or snapshot.is_polled else []),
        *(["leader_implementation"] if assigned_by.implementation == UNKNOWN_LEADER else []),
        *not_known(snapshot),
    )


def _is_evaluated(snapshot: GroupSnapshot) -> bool:
    """Whether members divide partitions of topics among them. Connect's do not, nor do share and streams groups'."""
    if snapshot.classic is not None:
        return snapshot.classic.protocol_type == CONSUMER_PROTOCOL_TYPE
    return snapshot.group_type == CONSUMER


def _drifts(
    snapshot: GroupSnapshot, metadata: GroupMetadata, strategies: Sequence[PartitionAssignor]
) -> tuple[StrategyDrift, ...]:
    own = metadata.protocol or ""
    if own == KAFKA_STREAMS_PROTOCOL:
        return (StrategyDrift(own, True, NOT_EVALUATED, "kafka_streams"),)
    spec, owners = group_spec(snapshot, metadata), actual_owners(metadata)
    known = recorded(snapshot, spec, owners, leader_of(metadata).implementation)
    judged = tuple(strategy_drift(known, assignor, is_group_strategy=assignor.name == own) for assignor in strategies)
    if any(drift.is_group_strategy for drift in judged):
        return judged
    return (StrategyDrift(own, True, NOT_EVALUATED, "strategy_not_known"), *judged)


def keeps_verdict(previous: Judgement | None, snapshot: GroupSnapshot) -> bool:
    """Whether a generation's verdict stands although the group wrote another record.

    A static member that rejoins rewrites the record at the same generation with a new member id and empty claims. The
    leader decided nothing new, so the verdict of the generation's first record stands. So does that on an epoch's
    targets while the members of a KIP-848 group move towards them. Where generations are not told, none is the same.
    """
    if previous is None or snapshot.generation_id is None or not snapshot.member_count():
        return False
    if previous.generation_id != snapshot.generation_id:
        return False
    if snapshot.modern is not None:
        return previous.is_complete
    return all(drift.verdict != UNKNOWN for drift in previous.drifts)
