"""Compute all verdicts on one group from its snapshot.

The first rule that applies determines the result:

1. The group is not evaluated if it has no members or an unknown state. A group is also not evaluated if the coordinator
   reported that the group is in a rebalance.
2. The members of Kafka Connect groups, share groups and streams groups do not divide the partitions of topics. So
   Connect groups, share groups and streams groups have no verdicts.
3. While the coordinator computes the assignment of an epoch (KIP-848, state Assigning), the verdict is `rebalancing`.
   While the members move to their targets (state Reconciling), the targets are evaluated. The records of a classic
   group do not show a rebalance in progress. Only a listing of groups shows a rebalance of a classic group (`evaluate`,
   rule 2).
4. If the snapshot is skipped, the verdict is `unknown` with the reason `too_many_records` (`apply_batch`).
5. The record of a downgrade to the classic protocol contains the assignment of the coordinator. Usually a rebalance
   follows. But if a static member with the classic protocol replaces the last static member with the KIP-848 protocol,
   the assignment stays (`GroupMetadataManager.convertToClassicGroup`). So until the next generation, only the common
   rules are checked.
6. For all other groups, the evaluation contains the drift (`drift`, `consumer_drift`) and the distribution of
   partitions (`imbalance`, `fairness`).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from assignors import AS_LEADER, PartitionAssignor
from assignors.what_if.topic_skew import TopicSkew
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs, assignment_inputs
from streaming.evaluation.assignment.consumer_drift import SERVER_ASSIGNORS, THE_BROKER, consumer_drifts
from streaming.evaluation.assignment.drift import (
    REBALANCING,
    TOO_MANY_RECORDS,
    UNKNOWN,
    StrategyDrift,
    evaluate_common_rules,
    strategy_drift,
)
from streaming.evaluation.assignment.leader import BROKER, UNKNOWN_LEADER, Leader, leader_of
from streaming.evaluation.assignment.sampled_topics import METADATA_MISSING
from streaming.evaluation.fairness.fairness import named_skew, shared_work
from streaming.evaluation.fairness.imbalance import Imbalance, divide_work
from streaming.evaluation.fairness.participants import TOPIC
from streaming.events import CONSUMER, Position
from streaming.group.not_known import not_known
from streaming.group.snapshot import ASSIGNING, GroupSnapshot
from streaming.group.snapshot import REBALANCING as REBALANCING_STATES
from streaming.group.snapshot import UNKNOWN as UNKNOWN_STATE
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, KAFKA_STREAMS_PROTOCOL

_ASSIGNED_BEFORE_DOWNGRADE = Leader(BROKER, ("downgrade",))
"""The broker computed the assignment of a classic group. The strategies that the members can use are unknown."""

_STATES_WITHOUT_EVALUATION = frozenset({UNKNOWN_STATE, *REBALANCING_STATES})
_INCOMPLETE = frozenset({METADATA_MISSING, TOO_MANY_RECORDS})


class Evaluation(msgspec.Struct, frozen=True):
    """The verdicts on one record of a group, and the inputs of these verdicts.

    `imbalances` describes how partitions are distributed. `metadata_sampled_at_ms` is the time of the oldest sample of
    topic metadata. `not_known` contains the names of missing inputs. `awaits_sample` is True if the last sample of a
    topic is older than the record and contradicts the record.
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
        """True if the snapshot was not skipped, and the metadata of all topics was present and up to date.

        An incomplete evaluation is repeated when the metadata arrives.
        """
        return not self.awaits_sample and all(drift.reason not in _INCOMPLETE for drift in self.drifts)

    @property
    def own(self) -> StrategyDrift | None:
        """The verdict for the group's own strategy, or None if there is no such verdict."""
        return next((drift for drift in self.drifts if drift.is_group_strategy), None)

    def without_topics(self) -> Evaluation:
        """Return the evaluation for the stored state.

        Only the tables need the imbalances of single topics, and a group can have many topics. So a complete evaluation
        is stored without these imbalances.
        """
        if not self.is_complete:
            return self
        return msgspec.structs.replace(self, imbalances=tuple(one for one in self.imbalances if one.scope != TOPIC))


def evaluate_snapshot(
    snapshot: GroupSnapshot,
    strategies: Sequence[PartitionAssignor],
    *,
    is_skipped: bool = False,
    is_downgrade: bool = False,
) -> Evaluation | None:
    """Evaluate the present generation of a group. Returns None if rule 1 applies.

    If `is_downgrade` is True, the generation began with the record of a downgrade (rule 5).
    """
    position = snapshot.position
    if position is None or not snapshot.member_count() or snapshot.state in _STATES_WITHOUT_EVALUATION:
        return None
    if snapshot.generation_id is None and snapshot.classic is None:
        return None
    if is_skipped or snapshot.state == ASSIGNING or not _divides_partitions(snapshot):
        return _without_assignment(snapshot, position)
    return _evaluate_assignment(snapshot, position, strategies, is_downgrade=is_downgrade)


def _evaluate_assignment(
    snapshot: GroupSnapshot, position: Position, strategies: Sequence[PartitionAssignor], *, is_downgrade: bool
) -> Evaluation:
    inputs, sampled = assignment_inputs(snapshot), [topic.sampled_at_ms for topic in snapshot.topics.values()]
    if snapshot.classic is not None:
        assigned_by = _ASSIGNED_BEFORE_DOWNGRADE if is_downgrade else leader_of(snapshot.classic)
        drifts = _strategy_drifts(inputs, snapshot.protocol or "", assigned_by, strategies)
    else:
        assigned_by, drifts = THE_BROKER, consumer_drifts(snapshot, inputs, strategies)
    # If a sample is later than the record, the metadata at the time of the record is unknown.
    is_late = snapshot.is_polled or any(sampled_at_ms > position.timestamp_ms for sampled_at_ms in sampled)
    is_unknown = assigned_by.implementation == UNKNOWN_LEADER
    missing = {"metadata_of_the_time": is_late, "leader_implementation": is_unknown}
    shared = shared_work(snapshot, inputs)
    imbalances = divide_work(shared).imbalance()
    return Evaluation(
        position=position,
        generation_id=snapshot.generation_id,
        drifts=drifts,
        imbalances=imbalances,
        metadata_sampled_at_ms=min(sampled, default=None),
        assigned_by=assigned_by,
        not_known=(*(name for name, is_missing in missing.items() if is_missing), *not_known(snapshot)),
        skew=named_skew(shared, imbalances),
        awaits_sample=bool(inputs.stale_topics),
    )


def _divides_partitions(snapshot: GroupSnapshot) -> bool:
    if snapshot.classic is not None:
        return snapshot.classic.protocol_type == CONSUMER_PROTOCOL_TYPE
    return snapshot.group_type == CONSUMER


def _without_assignment(snapshot: GroupSnapshot, position: Position) -> Evaluation | None:
    """Evaluate a snapshot without a comparison of assignments (rules 2 to 4)."""
    own = snapshot.protocol or ""
    drifts: tuple[StrategyDrift, ...] = ()
    if _divides_partitions(snapshot):
        strategy = own if snapshot.classic is not None else SERVER_ASSIGNORS.get(own, own)
        verdict, reason = (REBALANCING, "") if snapshot.state == ASSIGNING else (UNKNOWN, TOO_MANY_RECORDS)
        drifts = (StrategyDrift(strategy, True, verdict, reason),)
    elif snapshot.state == ASSIGNING:
        return None
    return Evaluation(position, snapshot.generation_id, drifts, (), None, not_known=not_known(snapshot))


def _strategy_drifts(
    inputs: AssignmentInputs, own: str, leader: Leader, strategies: Sequence[PartitionAssignor]
) -> tuple[StrategyDrift, ...]:
    if own == KAFKA_STREAMS_PROTOCOL:
        return (evaluate_common_rules(inputs, own, "kafka_streams"),)
    if leader == _ASSIGNED_BEFORE_DOWNGRADE:
        others = (strategy_drift(inputs, one, leader, is_group_strategy=False) for one in strategies if one.name != own)
        return (_downgrade_drift(inputs, own), *others)
    as_leader_computes = AS_LEADER.get(leader.implementation, {})
    evaluated = tuple(
        strategy_drift(inputs, as_leader_computes.get(own, assignor), leader, is_group_strategy=True)
        if assignor.name == own
        else strategy_drift(inputs, assignor, leader, is_group_strategy=False)
        for assignor in strategies
    )
    if any(drift.is_group_strategy for drift in evaluated):
        return evaluated
    return (evaluate_common_rules(inputs, own, "strategy_not_known"), *evaluated)


def _downgrade_drift(inputs: AssignmentInputs, own: str) -> StrategyDrift:
    """Check the common rules (rule 5). Before the first sample of a topic, the verdict is unknown."""
    if inputs.unknown_topics:
        return StrategyDrift(own, True, UNKNOWN, METADATA_MISSING)
    return evaluate_common_rules(inputs, own, "downgraded")


def continues_downgrade(previous: Evaluation | None, snapshot: GroupSnapshot) -> bool:
    """Return True if the previous verdict is about the same generation, which began with a downgrade (rule 5)."""
    return (
        previous is not None
        and previous.assigned_by == _ASSIGNED_BEFORE_DOWNGRADE
        and previous.generation_id == snapshot.generation_id
    )


def keeps_verdict(previous: Evaluation | None, snapshot: GroupSnapshot) -> bool:
    """Return True if the previous verdict still applies after a new record of the group.

    If a static member rejoins, the coordinator writes a second record with the same generation. In the second record,
    the member has a new id and claims no partitions. The leader did not compute a new assignment, so the verdict on the
    first record still applies. In a KIP-848 group, the verdict on the targets of an epoch applies while the members
    move to these targets. If the generation is unknown, the previous verdict does not apply.
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
