"""All verdicts on one group, from its snapshot alone."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from assignors import PartitionAssignor
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.drift import NOT_EVALUATED, UNKNOWN, StrategyDrift, strategy_drift
from streaming.judgement.group_spec import actual_owners, group_spec
from streaming.judgement.imbalance import PartitionShares, imbalance
from streaming.protocol.classic import GroupMetadata

CONSUMER_PROTOCOL_TYPE = "consumer"
KAFKA_STREAMS_PROTOCOL = "stream"
"""Classic Kafka Streams (and ksqlDB) runs its own task assignor under this name: ours say nothing about it."""


class Judgement(msgspec.Struct, frozen=True):
    """The verdicts on a group as of one record, and the age of the topic metadata they were made with."""

    position: Position
    generation_id: int
    drifts: tuple[StrategyDrift, ...]
    shares: tuple[PartitionShares, ...]
    metadata_sampled_at_ms: int | None

    @property
    def is_complete(self) -> bool:
        """Whether nothing was missing; an incomplete judgement is made again when its inputs come."""
        return all(drift.reason != "metadata_missing" for drift in self.drifts)


def judge(snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> Judgement | None:
    """Judge the current generation; None for a group that has no members to judge."""
    metadata, position = snapshot.metadata, snapshot.position
    if metadata is None or position is None or not metadata.members:
        return None
    if metadata.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return Judgement(position, metadata.generation_id, (), (), None)
    sampled = [topic.sampled_at_ms for topic in snapshot.topics.values()]
    return Judgement(
        position=position,
        generation_id=metadata.generation_id,
        drifts=_drifts(snapshot, metadata, strategies),
        shares=imbalance(metadata),
        metadata_sampled_at_ms=min(sampled, default=None),
    )


def _drifts(
    snapshot: GroupSnapshot, metadata: GroupMetadata, strategies: Sequence[PartitionAssignor]
) -> tuple[StrategyDrift, ...]:
    own = metadata.protocol or ""
    if own == KAFKA_STREAMS_PROTOCOL:
        return (StrategyDrift(own, True, NOT_EVALUATED, "kafka_streams"),)
    spec, owners = group_spec(snapshot, metadata), actual_owners(metadata)
    judged = tuple(
        strategy_drift(snapshot, spec, owners, assignor, is_group_strategy=assignor.name == own)
        for assignor in strategies
    )
    if any(drift.is_group_strategy for drift in judged):
        return judged
    return (StrategyDrift(own, True, NOT_EVALUATED, "strategy_not_known"), *judged)


def keeps_verdict(previous: Judgement | None, snapshot: GroupSnapshot) -> bool:
    """Whether a generation's verdict stands although the group wrote another record.

    A static member that rejoins rewrites the record at the same generation with a new member id and empty claims. The
    leader decided nothing new, so the verdict of the generation's first record stands.
    """
    return (
        previous is not None
        and snapshot.metadata is not None
        and bool(snapshot.metadata.members)
        and previous.generation_id == snapshot.generation_id
        and all(drift.verdict != UNKNOWN for drift in previous.drifts)
    )
