"""Process the events of one group in one micro-batch. The results are a new state, table rows and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

import msgspec

from assignors import PartitionAssignor
from streaming.combine.own_partitions import OwnPartitions
from streaming.evaluation.alternatives import Alternatives, compute_alternatives
from streaming.evaluation.assignment.common_rules import RuleViolations, Unowned, rule_violations, with_unowned
from streaming.evaluation.assignment.drift import DRIFT, UNKNOWN
from streaming.evaluation.lag.unsubscribed import LastRead, last_read_after
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory, ReportedRebalance, extend_history
from streaming.evaluation.snapshot_evaluation import (
    Evaluation,
    continues_downgrade,
    evaluate_snapshot,
    keeps_verdict,
)
from streaming.events import (
    ExternalFact,
    GroupEvent,
    GroupForgotten,
    GroupVanished,
    LogEvent,
    Position,
    TopicsSampled,
)
from streaming.events.compression import compressed_if_large, decompressed_if_large
from streaming.group.advance import advance
from streaming.group.codec import StateCodec
from streaming.group.history import is_reportable, is_reread
from streaming.group.snapshot import DEAD, GroupSnapshot
from streaming.group.topic_names import NO_TOPIC_NAMES, TopicNames, add_names, waits_for_names

EVALUATED_RECORDS_PER_BATCH = 50
"""Maximum number of snapshots of a group that are evaluated per batch.

Verdicts on older snapshots would come too late to help anybody. So an older snapshot gets only a row with the reason
`too_many_records` (`snapshot_evaluation`, rule 4).
"""


class GroupState(msgspec.Struct, frozen=True):
    """The stored state of one group: its snapshot, and the verdicts on its present generation.

    `pending` contains earlier snapshots in which some topics have an id but no name. Their rows are written when the
    brokers have returned the names. `rebalance_history` covers all rebalances that have a row in the table.
    `alternatives` contains only the what-if results for the present number of members.
    """

    snapshot: GroupSnapshot
    evaluation: Evaluation | None = None
    pending: tuple[GroupSnapshot, ...] = ()
    rebalance_history: RebalanceHistory = RebalanceHistory()
    alternatives: Alternatives | None = None
    violations: RuleViolations | None = None
    last_read: LastRead | None = None

    def topics_to_sample(self) -> frozenset[str]:
        """Return the topics whose metadata the group or one of its pending snapshots needs."""
        topics = (snapshot.topics_to_sample() for snapshot in self.pending)
        return frozenset(self.snapshot.topics_to_sample()).union(*topics)

    def unowned_partitions(self, lasting: Collection[Unowned] = ()) -> int | None:
        """Return the number of unowned partitions (`RuleViolations.unowned_partitions`).

        None if the group has no members, or if the number is unknown, for example before the first sample of a topic.
        """
        is_sampled = all(topic in self.snapshot.topics for topic in self.snapshot.subscribed_topics())
        return self.violations.unowned_partitions(lasting) if self.violations and is_sampled else None


class GroupUpdate(msgspec.Struct, frozen=True):
    """The result of one batch for one group: its new state, and the values for the tables.

    If `forgotten` is True, the batch removes the state of a group that was deleted long ago.
    """

    record: GroupState
    history: tuple[GroupSnapshot, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    forgotten: bool = False
    rebalances: tuple[ReportedRebalance, ...] = ()
    alternatives: Alternatives | None = None


PENDING_MEMBERS = 10_000
"""For each group: maximum number of members in all snapshots that wait for topic names.

The names usually arrive with one of the next two samples. If the snapshots have more members than this number, the rows
of the oldest snapshots are written with topic ids, and their `not_known` contains `topic_names`.
"""

GROUP_CODEC = StateCodec(
    GroupState, version=3, migrations={1: lambda encoded: encoded, 2: lambda encoded: encoded}, is_compressed=True
)
"""Version 2 added the field `last_read`, and version 3 added the field `TopicMetadata.racks_since_ms`.

In older bytes, a new field is missing, so its value is None (unknown).
"""

_UPDATE_ENCODER = msgspec.msgpack.Encoder()
_UPDATE_DECODER = msgspec.msgpack.Decoder(GroupUpdate)


def encode_update(update: GroupUpdate) -> bytes:
    """Encode an update for the transfer to the driver. The bytes are never stored, so they have no version."""
    return compressed_if_large(_UPDATE_ENCODER.encode(update))


def decode_update(encoded: bytes) -> GroupUpdate:
    """Decode the result of `encode_update`."""
    return _UPDATE_DECODER.decode(decompressed_if_large(encoded))


DEFAULT_LIMITS = Limits()
ANY_PARTITION = OwnPartitions()


def apply_batch(  # noqa: PLR0913 - everything that the update depends on, by name
    state: GroupState,
    events: Iterable[GroupEvent],
    strategies: Sequence[PartitionAssignor],
    limits: Limits = DEFAULT_LIMITS,
    names: TopicNames = NO_TOPIC_NAMES,
    *,
    own_partitions: OwnPartitions = ANY_PARTITION,
) -> GroupUpdate:
    """Apply the events of one batch to the state of a group.

    External facts are applied before log events, because the driver knew the facts before Spark read the records. So an
    incomplete verdict becomes complete before a newer record replaces it. The result does not depend on how Spark
    divides the events into batches, with one exception: only the last EVALUATED_RECORDS_PER_BATCH snapshots of a batch
    are evaluated. `names` contains the names of all topics at the start of the query. After the first record in the
    group's home partition, records in other partitions are ignored (`combine.own_partitions`, rule 3).
    """
    home = own_partitions.home(state.snapshot.group_id)
    facts, log_events = _divide(list(events), home)
    if not log_events and state.snapshot.is_over and any(isinstance(fact, GroupForgotten) for fact in facts):
        return GroupUpdate(state, forgotten=True)
    ends = [fact for fact in facts if isinstance(fact, GroupVanished)]
    knowledge = [fact for fact in facts if not isinstance(fact, GroupVanished)]
    known, present, completed = _apply_facts(state, knowledge, strategies)
    snapshot = reduce(advance, ends, known)
    last_read = last_read_after(state.last_read, known, snapshot)
    violations = state.violations if snapshot == state.snapshot else with_unowned(snapshot, state.violations)
    waiting = [reduce(advance, facts, pending) for pending in state.pending]
    if any(is_reportable(state.snapshot, fact, snapshot) for fact in facts):  # the driver may send a fact twice
        waiting.append(snapshot)
    for event in log_events:
        if _is_in_abandoned_partition(snapshot.position, event.position, home):
            continue
        before, snapshot = snapshot, advance(snapshot, event)
        last_read = last_read_after(last_read, before, snapshot)
        if is_reportable(before, event, snapshot):
            snapshot = add_names(snapshot, names)
            waiting.append(snapshot)
            violations = with_unowned(snapshot, violations)
    released, pending = _split_waiting(waiting, names)
    rebalance_history, rebalances = extend_history(state.rebalance_history, state.snapshot, released, snapshot, limits)
    history = tuple(one for one in released if not is_reread(one))
    downgrades = _downgrades(state, released)
    present, evaluations = _evaluate_history(present, history, downgrades, strategies)
    if present.evaluation is None and not pending:
        # The monitor wrote the rows of this snapshot with an earlier checkpoint. Only the verdict is missing.
        is_downgrade = snapshot.position in downgrades
        present = _CurrentVerdict(evaluate_snapshot(snapshot, strategies, is_downgrade=is_downgrade), snapshot)
    final = (*completed, *evaluations)
    computed, reported = _update_alternatives(state.alternatives, present, final, strategies)
    new_state = GroupState(
        snapshot=snapshot,
        evaluation=present.evaluation and present.evaluation.without_topics(),
        pending=pending,
        rebalance_history=rebalance_history,
        alternatives=computed,
        violations=state.violations if snapshot == state.snapshot else rule_violations(snapshot, violations),
        last_read=last_read,
    )
    return GroupUpdate(new_state, history, final, rebalances=rebalances, alternatives=reported)


def _divide(events: Sequence[GroupEvent], home: int | None) -> tuple[Sequence[ExternalFact], Sequence[LogEvent]]:
    """Return the external facts, and the log events sorted by position. Events in the home partition come last.

    After a change of the partition count of `__consumer_offsets`, the group's new records are in the home partition. So
    records in other partitions are older.
    """
    facts = [event for event in events if isinstance(event, ExternalFact)]
    log_events = [event for event in events if isinstance(event, LogEvent)]
    return facts, sorted(log_events, key=lambda one: (one.position.offsets_topic_partition == home, one.position))


def _is_in_abandoned_partition(known: Position | None, position: Position, home: int | None) -> bool:
    """Return False if the position is in the home partition, or in the partition of the last record."""
    number = position.offsets_topic_partition
    return known is not None and number not in {known.offsets_topic_partition, home}


def _split_waiting(
    waiting: Sequence[GroupSnapshot], names: TopicNames
) -> tuple[tuple[GroupSnapshot, ...], tuple[GroupSnapshot, ...]]:
    """Divide the snapshots into two parts: the rows of the first part are written now, and the second part waits.

    The second part starts with the first snapshot that waits for topic names. The snapshots of the second part have at
    most PENDING_MEMBERS members in total.
    """
    members = 0
    first_allowed = len(waiting)
    for snapshot in reversed(waiting):
        members += max(1, snapshot.member_count())
        if members > PENDING_MEMBERS:
            break
        first_allowed -= 1
    for index in range(first_allowed, len(waiting)):
        if waits_for_names(waiting[index], names):
            return tuple(waiting[:index]), tuple(waiting[index:])
    return tuple(waiting), ()


def _downgrades(state: GroupState, released: Sequence[GroupSnapshot]) -> frozenset[Position | None]:
    """Return the positions of all records of generations that began with a downgrade.

    The record of a downgrade follows the tombstone of the same append. A static member can rejoin in this generation.
    """
    known = () if state.pending else (state.snapshot,)
    found, generation = set(), None
    for before, after in pairwise((*known, *released)):
        if before.state == DEAD and after.is_carried_over and after.classic is not None:
            generation = after.generation_id
        elif after.classic is None or after.generation_id != generation:
            generation = None
        if generation is not None:
            found.add(after.position)
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _CurrentVerdict:
    """The present verdict, and its snapshot. `snapshot` is None if an earlier batch computed the verdict."""

    evaluation: Evaluation | None
    snapshot: GroupSnapshot | None = None


def _apply_facts(
    state: GroupState, facts: Sequence[ExternalFact], strategies: Sequence[PartitionAssignor]
) -> tuple[GroupSnapshot, _CurrentVerdict, tuple[Evaluation, ...]]:
    """Return three values: the snapshot after the external facts, its verdict, and the verdicts that became final.

    An incomplete verdict is computed again. A complete verdict is computed again in two cases: the coordinator has
    reported a different assignor, or the verdict depends on samples whose times were corrected. The rows of the
    previous verdict stay in the table.
    """
    snapshot, evaluation = reduce(advance, facts, state.snapshot), state.evaluation
    unchanged = snapshot, _CurrentVerdict(evaluation), ()
    # If older snapshots wait for topic names, this snapshot is evaluated only once, after them.
    if evaluation is None or snapshot == state.snapshot or state.pending:
        return unchanged
    if evaluation.is_complete:
        is_corrected = any(isinstance(fact, TopicsSampled) and fact.is_time_corrected for fact in facts)
        is_doubtful = is_corrected and _depends_on_samples(evaluation)
        if snapshot.protocol == state.snapshot.protocol and not is_doubtful:
            return unchanged
        return snapshot, _evaluate_again(snapshot, evaluation, strategies), ()
    again = evaluate_snapshot(snapshot, strategies, is_downgrade=continues_downgrade(evaluation, snapshot))
    if again is not None and again.generation_id == evaluation.generation_id:
        # The position of `again` may be newer than the verdict's position, because members have moved to their targets.
        # The verdict keeps its first position.
        again = msgspec.structs.replace(again, position=evaluation.position)
    return snapshot, _CurrentVerdict(again, snapshot), _complete_only(again)


def _depends_on_samples(evaluation: Evaluation) -> bool:
    """Return True if an outdated sample may have caused the verdict on the group's own strategy.

    The verdict `match` proves that the assignment agrees with the samples. So the samples were not outdated.
    """
    return evaluation.own is not None and evaluation.own.verdict in {DRIFT, UNKNOWN}


def _evaluate_again(
    snapshot: GroupSnapshot, evaluation: Evaluation, strategies: Sequence[PartitionAssignor]
) -> _CurrentVerdict:
    """Compute a complete verdict again, with the corrected facts. An incomplete new verdict does not replace it."""
    is_same_generation = snapshot.generation_id == evaluation.generation_id
    is_downgrade = continues_downgrade(evaluation, snapshot)
    again = evaluate_snapshot(snapshot, strategies, is_downgrade=is_downgrade) if is_same_generation else None
    if again is None or not again.is_complete:
        return _CurrentVerdict(evaluation)
    return _CurrentVerdict(msgspec.structs.replace(again, position=evaluation.position), snapshot)


def _evaluate_history(
    present: _CurrentVerdict,
    history: Sequence[GroupSnapshot],
    downgrades: Container[Position | None],
    strategies: Sequence[PartitionAssignor],
) -> tuple[_CurrentVerdict, tuple[Evaluation, ...]]:
    """Return the verdict on the last snapshot, and all final verdicts.

    An incomplete verdict is computed again when its missing inputs arrive. If a newer record arrives before the missing
    inputs, the incomplete verdict becomes final.
    """
    final: list[Evaluation] = []
    skipped = len(history) - EVALUATED_RECORDS_PER_BATCH
    for index, snapshot in enumerate(history):
        if keeps_verdict(present.evaluation, snapshot):
            continue
        if present.evaluation is not None and not present.evaluation.is_complete:
            final.append(present.evaluation)
        is_downgrade = snapshot.position in downgrades or continues_downgrade(present.evaluation, snapshot)
        evaluation = evaluate_snapshot(snapshot, strategies, is_skipped=index < skipped, is_downgrade=is_downgrade)
        present = _CurrentVerdict(evaluation, snapshot)
        final.extend(_complete_only(evaluation))
    return present, tuple(final)


def _complete_only(evaluation: Evaluation | None) -> tuple[Evaluation, ...]:
    return (evaluation,) if evaluation is not None and evaluation.is_complete else ()


def _update_alternatives(
    known: Alternatives | None,
    present: _CurrentVerdict,
    final: Iterable[Evaluation],
    strategies: Sequence[PartitionAssignor],
) -> tuple[Alternatives | None, Alternatives | None]:
    """Return the what-if results for the group's state, and those for the table (only if a verdict became final)."""
    if present.evaluation is None:
        return None, None
    if present.snapshot is None:
        return known, None
    computed = compute_alternatives(present.evaluation, present.snapshot, strategies)
    return computed and computed.as_it_is(), computed if present.evaluation in final else None
