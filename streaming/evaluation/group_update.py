"""One group's turn in one micro-batch: its events in order, the snapshot after them, the verdicts they call for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import msgspec

from assignors import PartitionAssignor
from streaming.combine.own_partitions import OwnPartitions
from streaming.evaluation.alternatives import Alternatives, alternatives
from streaming.evaluation.assignment.common_rules import RuleViolations, rule_violations, with_unowned
from streaming.evaluation.rebalances.detectors import Limits
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory, ReportedRebalance, extend_history
from streaming.evaluation.snapshot_evaluation import Evaluation, evaluate_snapshot, keeps_verdict
from streaming.events import ExternalFact, GroupEvent, GroupForgotten, LogEvent, Position
from streaming.group.advance import advance
from streaming.group.codec import StateCodec
from streaming.group.history import is_reread, should_report, was_reported
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NOBODY_ASKED, TopicNames, named, waits_for_names

EVALUATED_RECORDS_PER_BATCH = 50
"""A storm of generations read at once is evaluated from its end: older verdicts would come too late to act on."""


class GroupState(msgspec.Struct, frozen=True):
    """What is stored per group: the snapshot, the verdict on its current generation, and what is still to be told.

    `pending` are earlier snapshots in which topics are known by id only: their names are on the way from the brokers.
    `rebalance_history` is that of its rebalances, as far as they are told. `alternatives` are those of the evaluated
    generation, as it
    is: what changes would make of it is in the table alone. `violations` are those that the group breaks now
    (`rule_violations`).
    """

    snapshot: GroupSnapshot
    evaluation: Evaluation | None = None
    pending: tuple[GroupSnapshot, ...] = ()
    rebalance_history: RebalanceHistory = RebalanceHistory()
    alternatives: Alternatives | None = None
    violations: RuleViolations | None = None

    def topics_to_sample(self) -> frozenset[str]:
        """Topics of which the group needs to know more, or will."""
        return frozenset(self.snapshot.subscribed_topics()).union(*(one.subscribed_topics() for one in self.pending))

    def unowned_partitions(self) -> int | None:
        """Partitions of subscribed topics without an owner, without those withheld for the next cooperative round.

        None where that is unknown: the number of partitions of a topic may be. A group without members owes nobody
        anything.
        """
        is_sampled = all(topic in self.snapshot.topics for topic in self.snapshot.subscribed_topics())
        return self.violations.unowned_partitions() if self.violations and is_sampled else None


class GroupUpdate(msgspec.Struct, frozen=True):
    """The result of one batch for one group: the new state, and what to report.

    `forgotten` says that nothing of the group is to be kept: it is dead, and has been for long. `alternatives` are
    those of the last verdict of the turn.
    """

    record: GroupState
    history: tuple[GroupSnapshot, ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    forgotten: bool = False
    rebalances: tuple[ReportedRebalance, ...] = ()
    alternatives: Alternatives | None = None


PENDING_MEMBERS = 10_000
"""Members of all snapshots of one group together that wait for names of topics; the wait is a sample or two.

What is told before its names are known has `topic_names` among what is not known.
"""

GROUP_CODEC = StateCodec(GroupState, version=1, is_compressed=True)

_UPDATE_ENCODER = msgspec.msgpack.Encoder()
_UPDATE_DECODER = msgspec.msgpack.Decoder(GroupUpdate)


def encode_update(update: GroupUpdate) -> bytes:
    """A turn for the way to the driver (never stored: it has no version)."""
    return _UPDATE_ENCODER.encode(update)


def decode_update(encoded: bytes) -> GroupUpdate:
    """The turn of `encode_update`."""
    return _UPDATE_DECODER.decode(encoded)


DEFAULT_LIMITS = Limits()
ANY_PARTITION = OwnPartitions()


def apply_batch(  # noqa: PLR0913 - everything a turn depends on, named
    record: GroupState,
    events: Iterable[GroupEvent],
    strategies: Sequence[PartitionAssignor],
    limits: Limits = DEFAULT_LIMITS,
    names: TopicNames = NOBODY_ASKED,
    *,
    own_partitions: OwnPartitions = ANY_PARTITION,
) -> GroupUpdate:
    """Apply the events of one batch: what was handed back first, for it was known before the records were read.

    So a verdict that waited for it is made before a newer record takes its place, be it in one batch or two. `names`
    are those of all topics when the query was started. Once a record stands in the group's home, records of other
    partitions are left out (`combine.own_partitions`, rule 3).
    """
    home = own_partitions.home(record.snapshot.group_id)
    happened = list(events)
    facts = [event for event in happened if isinstance(event, ExternalFact)]
    in_log_order = sorted((event for event in happened if isinstance(event, LogEvent)), key=_order_by(home))
    if not in_log_order and record.snapshot.is_over and any(isinstance(fact, GroupForgotten) for fact in facts):
        return GroupUpdate(record, forgotten=True)
    snapshot, present, answered = _with_facts(record, facts, strategies)
    violations = record.violations if snapshot == record.snapshot else with_unowned(snapshot, record.violations)
    waiting = [_advanced(pending, facts) for pending in record.pending]
    if any(_is_row(record.snapshot, fact, snapshot) for fact in facts):  # a fact may have been sent twice
        waiting.append(snapshot)
    for event in in_log_order:
        if _is_left_behind(snapshot.position, event.position, home):
            continue
        before, snapshot = snapshot, advance(snapshot, event)
        if _is_row(before, event, snapshot):
            snapshot = named(snapshot, names)
            waiting.append(snapshot)
            violations = with_unowned(snapshot, violations)
    released, pending = _released(waiting, names)
    rebalance_history, rebalances = extend_history(
        record.rebalance_history, record.snapshot, released, snapshot, limits
    )
    history = tuple(one for one in released if not is_reread(one))
    present, evaluations = _evaluate_history(present, history, strategies)
    if present.evaluation is None and not pending:
        # What an earlier checkpoint told is not told again, but it is the present all the same.
        present = _evaluated(snapshot, strategies)
    final = (*answered, *evaluations)
    computed, reported = _alternatives(record.alternatives, present, final, strategies)
    kept = GroupState(
        snapshot=snapshot,
        evaluation=present.evaluation and present.evaluation.in_short(),
        pending=pending,
        rebalance_history=rebalance_history,
        alternatives=computed,
        violations=record.violations if snapshot == record.snapshot else rule_violations(snapshot, violations),
    )
    return GroupUpdate(kept, history, final, rebalances=rebalances, alternatives=reported)


def _is_row(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    """Whether the snapshot after the event makes a row, or made one in an earlier checkpoint."""
    return should_report(before, event, after) or was_reported(before, event, after)


def _advanced(snapshot: GroupSnapshot, events: Iterable[GroupEvent]) -> GroupSnapshot:
    return reduce(advance, events, snapshot)


def _released(
    waiting: Sequence[GroupSnapshot], names: TopicNames
) -> tuple[tuple[GroupSnapshot, ...], tuple[GroupSnapshot, ...]]:
    """Split into those to be told now and those behind the first that waits for names of topics: order is kept.

    Too many of them are told with ids for names rather than growing the state.
    """
    members = 0
    first_kept = len(waiting)
    for snapshot in reversed(waiting):
        members += max(1, snapshot.member_count())
        if members > PENDING_MEMBERS:
            break
        first_kept -= 1
    for index in range(first_kept, len(waiting)):
        if waits_for_names(waiting[index], names):
            return tuple(waiting[:index]), tuple(waiting[index:])
    return tuple(waiting), ()


def _order_by(home: int | None) -> Callable[[LogEvent], tuple[bool, Position]]:
    """The order of the log, the group's home last: there the group goes on after the partition count changed."""
    return lambda event: (event.position.offsets_topic_partition == home, event.position)


def _is_left_behind(known: Position | None, position: Position, home: int | None) -> bool:
    """Whether a record stands in a different partition than the group's last one, and that is not its home."""
    if known is None or known.offsets_topic_partition == position.offsets_topic_partition:
        return False
    return position.offsets_topic_partition != home


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """A verdict, and of which snapshot it was made; None for one of an earlier turn."""

    evaluation: Evaluation | None
    snapshot: GroupSnapshot | None = None


def _evaluated(snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> _Evaluated:
    return _Evaluated(evaluate_snapshot(snapshot, strategies), snapshot)


def _with_facts(
    record: GroupState, facts: Iterable[ExternalFact], strategies: Sequence[PartitionAssignor]
) -> tuple[GroupSnapshot, _Evaluated, tuple[Evaluation, ...]]:
    """The snapshot with what was handed back, its verdict made again if it waited for that, and whether it is final.

    A complete verdict is made again if the coordinator reported a different assignor. Its rows are written and stay.
    """
    snapshot, evaluation = record.snapshot, record.evaluation
    for fact in facts:
        snapshot = advance(snapshot, fact)
    if evaluation is None or snapshot == record.snapshot:
        return snapshot, _Evaluated(evaluation), ()
    if evaluation.is_complete:
        return snapshot, _judged_by_reported(snapshot, record, evaluation, strategies), ()
    again = evaluate_snapshot(snapshot, strategies)
    if again is not None and again.generation_id == evaluation.generation_id:
        # Members that moved meanwhile change nothing of what is evaluated: the verdict stays where it was first due.
        again = msgspec.structs.replace(again, position=evaluation.position)
    return snapshot, _Evaluated(again, snapshot), _final(again)


def _judged_by_reported(
    snapshot: GroupSnapshot, record: GroupState, evaluation: Evaluation, strategies: Sequence[PartitionAssignor]
) -> _Evaluated:
    """The verdict on the same generation by the assignor that is known now; as it was if that is the same.

    Snapshots that wait for names of topics are evaluated when they are released: their rows are not written yet.
    """
    is_same_generation = snapshot.generation_id == evaluation.generation_id
    if snapshot.protocol == record.snapshot.protocol or not is_same_generation or record.pending:
        return _Evaluated(evaluation)
    again = evaluate_snapshot(snapshot, strategies)
    if again is None or not again.is_complete:
        return _Evaluated(evaluation)
    return _Evaluated(msgspec.structs.replace(again, position=evaluation.position), snapshot)


def _evaluate_history(
    present: _Evaluated, history: Sequence[GroupSnapshot], strategies: Sequence[PartitionAssignor]
) -> tuple[_Evaluated, tuple[Evaluation, ...]]:
    """The verdict on the last snapshot, and every verdict that will not change any more.

    An incomplete verdict waits for its inputs and is made again; once a newer record takes its place it is final.
    """
    final: list[Evaluation] = []
    for snapshot in history[-EVALUATED_RECORDS_PER_BATCH:]:
        if keeps_verdict(present.evaluation, snapshot):
            continue
        if present.evaluation is not None and not present.evaluation.is_complete:
            final.append(present.evaluation)
        present = _evaluated(snapshot, strategies)
        final.extend(_final(present.evaluation))
    return present, tuple(final)


def _final(evaluation: Evaluation | None) -> tuple[Evaluation, ...]:
    return (evaluation,) if evaluation is not None and evaluation.is_complete else ()


def _alternatives(
    known: Alternatives | None,
    present: _Evaluated,
    final: Iterable[Evaluation],
    strategies: Sequence[PartitionAssignor],
) -> tuple[Alternatives | None, Alternatives | None]:
    """The present's, as it is, and all there is to be told: of a verdict made in this turn whose rows are written."""
    if present.evaluation is None:
        return None, None
    if present.snapshot is None:
        return known, None
    found = alternatives(present.evaluation, present.snapshot, strategies)
    return found and found.as_it_is(), found if present.evaluation in final else None
