"""All verdicts on one group, from its snapshot alone.

Rules, first that applies:

1. No members, or records are missing that tell the state, or a coordinator that was asked says that the group has no
   assignment at the moment: no evaluation.
2. Members do not divide partitions of topics (Kafka Connect, share and streams groups): an evaluation without verdicts.
3. The coordinator is making an epoch's assignment (KIP-848, Assigning): `rebalancing`. While members are on their way
   to their targets (Reconciling) the targets are evaluated. A classic group's rebalance is in no record: `/metrics`
   alone has it, from listings.
4. Else drift (`drift`, `consumer_drift`) and how evenly partitions are shared (`imbalance`, `fairness`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from assignors import AS_LEADER, PartitionAssignor
from assignors.what_if.topic_skew import TopicSkew
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs, assignment_inputs
from streaming.evaluation.assignment.consumer_drift import SERVER_ASSIGNORS, THE_BROKER, consumer_drifts
from streaming.evaluation.assignment.drift import (
    METADATA_MISSING,
    REBALANCING,
    UNKNOWN,
    StrategyDrift,
    not_evaluated,
    strategy_drift,
)
from streaming.evaluation.assignment.leader import UNKNOWN_LEADER, Leader, leader_of
from streaming.evaluation.fairness.fairness import named_skew, shared_work
from streaming.evaluation.fairness.imbalance import TOPIC, Imbalance, divided
from streaming.events import CONSUMER, Position
from streaming.group.not_known import not_known
from streaming.group.snapshot import ASSIGNING, GroupSnapshot
from streaming.group.snapshot import REBALANCING as REBALANCING_STATES
from streaming.group.snapshot import UNKNOWN as UNKNOWN_STATE
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL

_NOT_EVALUATED = frozenset({UNKNOWN_STATE, *REBALANCING_STATES})


class Evaluation(msgspec.Struct, frozen=True):
    """The verdicts on a group as of one record, and what they were made from.

    `imbalances` are of partitions, `skew` is what makes them uneven if it has that name. `metadata_sampled_at_ms` is
    when the oldest topic metadata was sampled, `assigned_by` whose program assigned and how that is told, `not_known`
    what the verdicts had to do without.
    `awaits_sample`: a topic's sample is older than the record and differs from it.
    """

    position: Position
    generation_id: int | None
    drifts: tuple[StrategyDrift, ...]
    imbalances: tuple[Imbalance, ...]
    metadata_sampled_at_ms: int | None
    assigned_by: Leader | None = None
    not_known: tuple[str, ...] = ()
    skew: TopicSkew | None = None
    awaits_sample: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether nothing was missing; an incomplete evaluation is made again when its inputs come."""
        return not self.awaits_sample and all(drift.reason != METADATA_MISSING for drift in self.drifts)

    def in_short(self) -> Evaluation:
        """What is kept once its rows are written: topics are many, and nobody asks the present for them."""
        if not self.is_complete:
            return self
        return msgspec.structs.replace(self, imbalances=tuple(one for one in self.imbalances if one.scope != TOPIC))


def evaluate_snapshot(snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> Evaluation | None:
    """Judge the current generation; None for a group that has no members to evaluate.

    That a coordinator is still making the assignment of an epoch (KIP-848) is a verdict, too: `rebalancing`.
    """
    position = snapshot.position
    if position is None or not snapshot.member_count() or snapshot.state in _NOT_EVALUATED:
        return None
    if snapshot.generation_id is None and snapshot.classic is None:
        return None
    if snapshot.state == ASSIGNING or not _is_evaluated(snapshot):
        return _without_assignment(snapshot, position)
    return _evaluated(snapshot, position, strategies)


def _evaluated(snapshot: GroupSnapshot, position: Position, strategies: Sequence[PartitionAssignor]) -> Evaluation:
    known, sampled = assignment_inputs(snapshot), [topic.sampled_at_ms for topic in snapshot.topics.values()]
    if snapshot.classic is not None:
        assigned_by = leader_of(snapshot.classic)
        drifts = _drifts(known, snapshot.protocol or "", assigned_by, strategies)
    else:
        assigned_by, drifts = THE_BROKER, consumer_drifts(snapshot, known, strategies)
    shared = shared_work(snapshot, known)
    imbalances = divided(shared).imbalance()
    return Evaluation(
        position=position,
        generation_id=snapshot.generation_id,
        drifts=drifts,
        imbalances=imbalances,
        metadata_sampled_at_ms=min(sampled, default=None),
        assigned_by=assigned_by,
        not_known=_not_known(snapshot, assigned_by),
        skew=named_skew(shared, imbalances),
        awaits_sample=bool(known.stale_topics),
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


def _without_assignment(snapshot: GroupSnapshot, position: Position) -> Evaluation | None:
    """A group that is not evaluated, or one whose coordinator is making the assignment.

    If no member names one, it is the one that the coordinator reported, if it did.
    """
    own = snapshot.protocol or ""
    drifts: tuple[StrategyDrift, ...] = ()
    if _is_evaluated(snapshot):
        drifts = (StrategyDrift(SERVER_ASSIGNORS.get(own, own), True, REBALANCING),)
    elif snapshot.state == ASSIGNING:
        return None
    return Evaluation(position, snapshot.generation_id, drifts, (), None, not_known=not_known(snapshot))


def _drifts(
    known: AssignmentInputs, own: str, leader: Leader, strategies: Sequence[PartitionAssignor]
) -> tuple[StrategyDrift, ...]:
    if own == KAFKA_STREAMS_PROTOCOL:
        return (not_evaluated(known, own, "kafka_streams"),)
    evaluated = tuple(
        strategy_drift(known, _as_led_by(leader, assignor), leader, is_group_strategy=True)
        if assignor.name == own
        else strategy_drift(known, assignor, leader, is_group_strategy=False)
        for assignor in strategies
    )
    if any(drift.is_group_strategy for drift in evaluated):
        return evaluated
    return (not_evaluated(known, own, "strategy_not_known"), *evaluated)


def _as_led_by(leader: Leader, assignor: PartitionAssignor) -> PartitionAssignor:
    """The strategy as the leader's library computes it; as it is where that is no other way, or not known."""
    return AS_LEADER.get(leader.implementation, {}).get(assignor.name, assignor)


def keeps_verdict(previous: Evaluation | None, snapshot: GroupSnapshot) -> bool:
    """Whether a generation's verdict stands although the group wrote another record.

    A static member that rejoins rewrites the record at the same generation with a new member id and empty claims. The
    leader decided nothing new, so the verdict of the generation's first record stands. So does that on an epoch's
    targets while the members of a KIP-848 group move towards them. Where generations are not told, none is the same.
    """
    if previous is None or snapshot.generation_id is None or not snapshot.member_count():
        return False
    if previous.generation_id != snapshot.generation_id:
        return False
    if any(drift.verdict == REBALANCING for drift in previous.drifts):
        return snapshot.state == ASSIGNING
    if snapshot.modern is not None:
        return previous.is_complete
    return all(drift.verdict != UNKNOWN for drift in previous.drifts)
