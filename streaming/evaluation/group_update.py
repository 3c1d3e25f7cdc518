"""Process the events of one group in one micro-batch. The results are a new state, table rows and verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import msgspec

from assignors import PartitionAssignor
from streaming.combine.own_partitions import OwnPartitions
from streaming.evaluation.alternatives import Alternatives, compute_alternatives
from streaming.evaluation.assignment.common_rules import RuleViolations, rule_violations, with_unowned
from streaming.evaluation.assignment.drift import DRIFT, UNKNOWN
from streaming.evaluation.lag.unsubscribed import LastRead, last_read_after
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory, ReportedRebalance, extend_history
from streaming.evaluation.snapshot_evaluation import Evaluation, evaluate_snapshot, keeps_verdict
from streaming.events import ExternalFact, GroupEvent, GroupForgotten, GroupVanished, LogEvent, Position, TopicsSampled
from streaming.events.compression import compressed_if_large, decompressed_if_large
from streaming.group.advance import advance
from streaming.group.codec import StateCodec
from streaming.group.history import is_reportable, is_reread
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NO_TOPIC_NAMES, TopicNames, add_names, waits_for_names

EVALUATED_RECORDS_PER_BATCH = 50
"""Maximum number of snapshots of a group that are evaluated per batch.

If a batch has more snapshots, only the newest snapshots are evaluated. Verdicts on older snapshots are too late to be
useful.
"""


class GroupState(msgspec.Struct, frozen=True):
    """The stored state of one group: its snapshot, and the verdicts on its present generation.

    `pending` contains earlier snapshots in which some topics have an id but no name. The monitor writes the rows of
    `pending` snapshots when the brokers have returned the topic names. `rebalance_history` covers all rebalances that
    have a row in the table. `alternatives` contains the what-if results of the evaluated generation, but only for the
    present number of members. `violations` are the present violations of the common rules. `last_read` contains
    the topics that the members read before the group became Empty, or None if unknown.
    """

    snapshot: GroupSnapshot
    evaluation: Evaluation | None = None
    pending: tuple[GroupSnapshot, ...] = ()
    rebalance_history: RebalanceHistory = RebalanceHistory()
    alternatives: Alternatives | None = None
    violations: RuleViolations | None = None
    last_read: LastRead | None = None

    def topics_to_sample(self) -> frozenset[str]:
        """Return the topics to which the group and its pending snapshots subscribe."""
        topics = (snapshot.subscribed_topics() for snapshot in self.pending)
        return frozenset(self.snapshot.subscribed_topics()).union(*topics)

    def unowned_partitions(self) -> int | None:
        """Return the number of unowned partitions. Withheld partitions do not count.

        Return None if the group has no members, or if the number is unknown. For example, the number is unknown before
        the first sample of a topic.
        """
        is_sampled = all(topic in self.snapshot.topics for topic in self.snapshot.subscribed_topics())
        return self.violations.unowned_partitions() if self.violations and is_sampled else None


class GroupUpdate(msgspec.Struct, frozen=True):
    """The result of one batch for one group: its new state, and the values for the tables.

    If `forgotten` is True, the batch removes the state of a group that was deleted long ago. `alternatives` contains
    the what-if results for the last evaluated generation of the batch.
    """

    record: GroupState
    history: tuple[GroupSnapshot, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    forgotten: bool = False
    rebalances: tuple[ReportedRebalance, ...] = ()
    alternatives: Alternatives | None = None


PENDING_MEMBERS = 10_000
"""For each group: maximum number of members in all snapshots that wait for topic names.

The names usually arrive with one of the next two samples. If the snapshots have more members, the rows of the oldest
snapshots are written with topic ids. In these rows, `not_known` contains `topic_names`.
"""

GROUP_CODEC = StateCodec(GroupState, version=2, migrations={1: lambda encoded: encoded}, is_compressed=True)
"""Version 2 has the field `last_read`. In bytes of version 1, the field is missing, so its value is None (unknown)."""

_UPDATE_ENCODER = msgspec.msgpack.Encoder()
_UPDATE_DECODER = msgspec.msgpack.Decoder(GroupUpdate)


def encode_update(update: GroupUpdate) -> bytes:
    """Encode the update of a group for the transfer to the driver, and compress a large update.

    The format has no version, because the bytes are never stored.
    """
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
    divides the events into batches. `names` contains the names of all topics at the start of the query. After the first
    record in the group's home partition, records in other partitions are ignored (`combine.own_partitions`, rule 3).
    """
    home = own_partitions.home(state.snapshot.group_id)
    events = list(events)
    facts = [event for event in events if isinstance(event, ExternalFact)]
    log_events = sorted((event for event in events if isinstance(event, LogEvent)), key=_log_order(home))
    if not log_events and state.snapshot.is_over and any(isinstance(fact, GroupForgotten) for fact in facts):
        return GroupUpdate(state, forgotten=True)
    ends = [fact for fact in facts if isinstance(fact, GroupVanished)]
    knowledge = [fact for fact in facts if not isinstance(fact, GroupVanished)]
    known, present, completed = _apply_facts(state, knowledge, strategies)
    snapshot = _advance_all(known, ends)
    last_read = last_read_after(state.last_read, known, snapshot)
    violations = state.violations if snapshot == state.snapshot else with_unowned(snapshot, state.violations)
    waiting = [_advance_all(pending, facts) for pending in state.pending]
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
    present, evaluations = _evaluate_history(present, history, strategies)
    if present.evaluation is None and not pending:
        # The monitor wrote the rows of this snapshot with an earlier checkpoint. Only the verdict is missing.
        present = _evaluate_current(snapshot, strategies)
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


def _advance_all(snapshot: GroupSnapshot, events: Iterable[GroupEvent]) -> GroupSnapshot:
    return reduce(advance, events, snapshot)


def _split_waiting(
    waiting: Sequence[GroupSnapshot], names: TopicNames
) -> tuple[tuple[GroupSnapshot, ...], tuple[GroupSnapshot, ...]]:
    """Divide the snapshots into two parts: the rows of the first part are written now, and the second part waits.

    The first part ends before the first snapshot that waits for topic names. If the snapshots have more than
    PENDING_MEMBERS members, the first part also contains the oldest waiting snapshots. Their rows contain topic ids
    instead of names.
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


def _log_order(home: int | None) -> Callable[[LogEvent], tuple[bool, Position]]:
    """Return the sort key of log events: by position, but events in the group's home partition come last.

    After a change of the partition count of `__consumer_offsets`, the group's new records are in the home partition.
    """
    return lambda event: (event.position.offsets_topic_partition == home, event.position)


def _is_in_abandoned_partition(known: Position | None, position: Position, home: int | None) -> bool:
    """Return False if the position is in the home partition, or in the partition of the last record."""
    if known is None or known.offsets_topic_partition == position.offsets_topic_partition:
        return False
    return position.offsets_topic_partition != home


@dataclass(frozen=True, slots=True)
class _CurrentVerdict:
    """The present verdict, and its snapshot. `snapshot` is None if an earlier batch computed the verdict."""

    evaluation: Evaluation | None
    snapshot: GroupSnapshot | None = None


def _evaluate_current(snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> _CurrentVerdict:
    return _CurrentVerdict(evaluate_snapshot(snapshot, strategies), snapshot)


def _apply_facts(
    state: GroupState, facts: Iterable[ExternalFact], strategies: Sequence[PartitionAssignor]
) -> tuple[GroupSnapshot, _CurrentVerdict, tuple[Evaluation, ...]]:
    """Return three values: the snapshot after the external facts, its verdict, and the verdicts that became final.

    `facts` contains no `GroupVanished`. An incomplete verdict is computed again. A complete verdict is computed again
    in two cases: the coordinator has reported a different assignor, or the verdict depends on samples whose times were
    corrected. The rows of the previous verdict stay in the table.
    """
    snapshot, evaluation = state.snapshot, state.evaluation
    for fact in facts:
        snapshot = advance(snapshot, fact)
    if evaluation is None or snapshot == state.snapshot:
        return snapshot, _CurrentVerdict(evaluation), ()
    if evaluation.is_complete:
        is_doubtful = _depends_on_samples(evaluation) and any(
            isinstance(fact, TopicsSampled) and fact.is_time_corrected for fact in facts
        )
        if snapshot.protocol == state.snapshot.protocol and not is_doubtful:
            return snapshot, _CurrentVerdict(evaluation), ()
        return snapshot, _evaluate_again(snapshot, state, evaluation, strategies), ()
    if state.pending:
        # Older snapshots wait for topic names. This snapshot is evaluated only once, after them.
        return snapshot, _CurrentVerdict(evaluation), ()
    again = evaluate_snapshot(snapshot, strategies)
    if again is not None and again.generation_id == evaluation.generation_id:
        # The position may be newer, because members have moved to their targets. The verdict keeps its first position.
        again = msgspec.structs.replace(again, position=evaluation.position)
    return snapshot, _CurrentVerdict(again, snapshot), _complete_only(again)


def _depends_on_samples(evaluation: Evaluation) -> bool:
    """Return True if an outdated sample may have caused the verdict on the group's own strategy.

    The verdict `match` proves that the assignment agrees with the samples. So the samples were not outdated.
    """
    return evaluation.own is not None and evaluation.own.verdict in {DRIFT, UNKNOWN}


def _evaluate_again(
    snapshot: GroupSnapshot, state: GroupState, evaluation: Evaluation, strategies: Sequence[PartitionAssignor]
) -> _CurrentVerdict:
    """Compute the verdict on the same generation again, with the corrected facts.

    If snapshots wait for topic names, return the previous verdict. The monitor evaluates waiting snapshots when it
    writes their rows.
    """
    is_same_generation = snapshot.generation_id == evaluation.generation_id
    if not is_same_generation or state.pending:
        return _CurrentVerdict(evaluation)
    again = evaluate_snapshot(snapshot, strategies)
    if again is None or not again.is_complete:
        return _CurrentVerdict(evaluation)
    return _CurrentVerdict(msgspec.structs.replace(again, position=evaluation.position), snapshot)


def _evaluate_history(
    present: _CurrentVerdict, history: Sequence[GroupSnapshot], strategies: Sequence[PartitionAssignor]
) -> tuple[_CurrentVerdict, tuple[Evaluation, ...]]:
    """Return the verdict on the last snapshot, and all final verdicts.

    An incomplete verdict is computed again when its missing inputs arrive. If a newer record arrives before the missing
    inputs, the incomplete verdict becomes final.
    """
    final: list[Evaluation] = []
    for snapshot in history[-EVALUATED_RECORDS_PER_BATCH:]:
        if keeps_verdict(present.evaluation, snapshot):
            continue
        if present.evaluation is not None and not present.evaluation.is_complete:
            final.append(present.evaluation)
        present = _evaluate_current(snapshot, strategies)
        final.extend(_complete_only(present.evaluation))
    return present, tuple(final)


def _complete_only(evaluation: Evaluation | None) -> tuple[Evaluation, ...]:
    return (evaluation,) if evaluation is not None and evaluation.is_complete else ()


def _update_alternatives(
    known: Alternatives | None,
    present: _CurrentVerdict,
    final: Iterable[Evaluation],
    strategies: Sequence[PartitionAssignor],
) -> tuple[Alternatives | None, Alternatives | None]:
    """Return two what-if results: the first is for the group's state, and the second is for the table.

    The second result is None if the present verdict did not become final in this batch.
    """
    if present.evaluation is None:
        return None, None
    if present.snapshot is None:
        return known, None
    computed = compute_alternatives(present.evaluation, present.snapshot, strategies)
    return computed and computed.as_it_is(), computed if present.evaluation in final else None
