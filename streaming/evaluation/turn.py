"""One group's turn in one micro-batch: its events in order, the snapshot after them, the verdicts they call for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce

import msgspec

from assignors import PartitionAssignor
from streaming.combine.own_partitions import OwnPartitions
from streaming.evaluation.alternatives import Alternatives, alternatives
from streaming.evaluation.assignment.common_laws import CommonLaws, common_laws, with_unowned
from streaming.evaluation.judge import Judgement, judge, keeps_verdict
from streaming.evaluation.rebalances.detectors import Limits
from streaming.evaluation.rebalances.story import Story, ToldRebalance, continued
from streaming.events import GroupEvent, GroupForgotten, HandedBackEvent, LogEvent, Position
from streaming.group.advance import advance
from streaming.group.codec import StateCodec
from streaming.group.history import is_reread, is_told, was_told
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NOBODY_ASKED, TopicNames, named, waits_for_names

JUDGED_RECORDS_PER_TURN = 50
"""A storm of generations read at once is judged from its end: older verdicts would come too late to act on."""


class GroupRecord(msgspec.Struct, frozen=True):
    """What is stored per group: the snapshot, the verdict on its current generation, and what is still to be told.

    `untold` are earlier snapshots in which topics are known by id only: their names are on the way from the brokers.
    `story` is that of its rebalances, as far as they are told. `alternatives` are those of the judged generation, as it
    is: what changes would make of it is in the table alone. `laws` are those that the group breaks now (`common_laws`).
    """

    snapshot: GroupSnapshot
    judgement: Judgement | None = None
    untold: tuple[GroupSnapshot, ...] = ()
    story: Story = Story()
    alternatives: Alternatives | None = None
    laws: CommonLaws | None = None

    def topics_to_sample(self) -> frozenset[str]:
        """Topics of which the group needs to know more, or will."""
        return frozenset(self.snapshot.subscribed_topics()).union(*(one.subscribed_topics() for one in self.untold))

    def unowned_partitions(self) -> int | None:
        """Partitions of subscribed topics without an owner, without those withheld for the next cooperative round.

        None where that is unknown: the number of partitions of a topic may be. A group without members owes nobody
        anything.
        """
        is_sampled = all(topic in self.snapshot.topics for topic in self.snapshot.subscribed_topics())
        return self.laws.unowned_partitions() if self.laws and is_sampled else None


class Turn(msgspec.Struct, frozen=True):
    """What a turn leaves behind: the new record, the snapshots to be told (`is_told`), each verdict and rebalance.

    `forgotten` says that nothing of the group is to be kept: it is dead, and has been for long. `alternatives` are
    those of the last verdict of the turn.
    """

    record: GroupRecord
    history: tuple[GroupSnapshot, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    forgotten: bool = False
    rebalances: tuple[ToldRebalance, ...] = ()
    alternatives: Alternatives | None = None


KEPT_UNTOLD_MEMBERS = 10_000
"""Members of all snapshots of one group together that wait for names of topics; the wait is a sample or two.

What is told before its names are known has `topic_names` among what is not known.
"""

GROUP_CODEC = StateCodec(GroupRecord, version=2, is_compressed=True)
"""No migration from version 1: it kept members of classic groups only, and no record is read twice."""

_TURN_ENCODER = msgspec.msgpack.Encoder()
_TURN_DECODER = msgspec.msgpack.Decoder(Turn)


def encode_turn(turn: Turn) -> bytes:
    """A turn for the way to the driver (never stored: it has no version)."""
    return _TURN_ENCODER.encode(turn)


def decode_turn(encoded: bytes) -> Turn:
    """The turn of `encode_turn`."""
    return _TURN_DECODER.decode(encoded)


DEFAULT_LIMITS = Limits()
ANY_PARTITION = OwnPartitions()


def take_turn(  # noqa: PLR0913 - everything a turn depends on, named
    record: GroupRecord,
    events: Iterable[GroupEvent],
    strategies: Sequence[PartitionAssignor],
    limits: Limits = DEFAULT_LIMITS,
    names: TopicNames = NOBODY_ASKED,
    *,
    own_partitions: OwnPartitions = ANY_PARTITION,
) -> Turn:
    """Apply the events of one batch: what was handed back first, for it was known before the records were read.

    So a verdict that waited for it is made before a newer record takes its place, be it in one batch or two. `names`
    are those of all topics when the query was started. Once a record stands in the group's home, records of other
    partitions are left out (`combine.own_partitions`, rule 3).
    """
    home = own_partitions.home(record.snapshot.group_id)
    happened = list(events)
    handed_back = [event for event in happened if isinstance(event, HandedBackEvent)]
    in_log_order = sorted((event for event in happened if isinstance(event, LogEvent)), key=_order_by(home))
    if not in_log_order and record.snapshot.is_over and any(isinstance(fact, GroupForgotten) for fact in handed_back):
        return Turn(record, forgotten=True)
    snapshot, present, answered = _with_facts(record, handed_back, strategies)
    laws = record.laws if snapshot == record.snapshot else with_unowned(snapshot, record.laws)
    waiting = [_advanced(untold, handed_back) for untold in record.untold]
    if any(_is_row(record.snapshot, fact, snapshot) for fact in handed_back):  # a fact may have been sent twice
        waiting.append(snapshot)
    for event in in_log_order:
        if _is_left_behind(snapshot.position, event.position, home):
            continue
        before, snapshot = snapshot, advance(snapshot, event)
        if _is_row(before, event, snapshot):
            snapshot = named(snapshot, names)
            waiting.append(snapshot)
            laws = with_unowned(snapshot, laws)
    released, untold = _released(waiting, names)
    story, rebalances = continued(record.story, record.snapshot, released, snapshot, limits)
    history = tuple(one for one in released if not is_reread(one))
    present, judgements = _judge_history(present, history, strategies)
    if present.judgement is None and not untold:
        # What an earlier checkpoint told is not told again, but it is the present all the same.
        present = _judged(snapshot, strategies)
    final = (*answered, *judgements)
    computed, told = _alternatives(record.alternatives, present, final, strategies)
    kept = GroupRecord(
        snapshot=snapshot,
        judgement=present.judgement and present.judgement.in_short(),
        untold=untold,
        story=story,
        alternatives=computed,
        laws=record.laws if snapshot == record.snapshot else common_laws(snapshot, laws),
    )
    return Turn(kept, history, final, rebalances=rebalances, alternatives=told)


def _is_row(before: GroupSnapshot, event: GroupEvent, after: GroupSnapshot) -> bool:
    """Whether the snapshot after the event makes a row, or made one in an earlier checkpoint."""
    return is_told(before, event, after) or was_told(before, event, after)


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
        if members > KEPT_UNTOLD_MEMBERS:
            break
        first_kept -= 1
    for index in range(first_kept, len(waiting)):
        if waits_for_names(waiting[index], names):
            return tuple(waiting[:index]), tuple(waiting[index:])
    return tuple(waiting), ()


def _order_by(home: int | None) -> Callable[[LogEvent], tuple[bool, Position]]:
    """The order of the log, the group's home last: there the group goes on after the partition count changed."""
    return lambda event: (event.position.kafka_partition == home, event.position)


def _is_left_behind(known: Position | None, position: Position, home: int | None) -> bool:
    """Whether a record stands in a different partition than the group's last one, and that is not its home."""
    if known is None or known.kafka_partition == position.kafka_partition:
        return False
    return position.kafka_partition != home


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict, and of which snapshot it was made; None for one of an earlier turn."""

    judgement: Judgement | None
    snapshot: GroupSnapshot | None = None


def _judged(snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> _Judged:
    return _Judged(judge(snapshot, strategies), snapshot)


def _with_facts(
    record: GroupRecord, facts: Iterable[HandedBackEvent], strategies: Sequence[PartitionAssignor]
) -> tuple[GroupSnapshot, _Judged, tuple[Judgement, ...]]:
    """The snapshot with what was handed back, its verdict made again if it waited for that, and whether it is final."""
    snapshot, judgement = record.snapshot, record.judgement
    for fact in facts:
        snapshot = advance(snapshot, fact)
    if judgement is None or judgement.is_complete or snapshot == record.snapshot:
        return snapshot, _Judged(judgement), ()
    again = judge(snapshot, strategies)
    if again is not None and again.generation_id == judgement.generation_id:
        # Members that moved meanwhile change nothing of what is judged: the verdict stays where it was first due.
        again = msgspec.structs.replace(again, position=judgement.position)
    return snapshot, _Judged(again, snapshot), _final(again)


def _judge_history(
    present: _Judged, history: Sequence[GroupSnapshot], strategies: Sequence[PartitionAssignor]
) -> tuple[_Judged, tuple[Judgement, ...]]:
    """The verdict on the last snapshot, and every verdict that will not change any more.

    An incomplete verdict waits for its inputs and is made again; once a newer record takes its place it is final.
    """
    final: list[Judgement] = []
    for snapshot in history[-JUDGED_RECORDS_PER_TURN:]:
        if keeps_verdict(present.judgement, snapshot):
            continue
        if present.judgement is not None and not present.judgement.is_complete:
            final.append(present.judgement)
        present = _judged(snapshot, strategies)
        final.extend(_final(present.judgement))
    return present, tuple(final)


def _final(judgement: Judgement | None) -> tuple[Judgement, ...]:
    return (judgement,) if judgement is not None and judgement.is_complete else ()


def _alternatives(
    known: Alternatives | None, present: _Judged, final: Iterable[Judgement], strategies: Sequence[PartitionAssignor]
) -> tuple[Alternatives | None, Alternatives | None]:
    """The present's, as it is, and all there is to be told: of a verdict made in this turn whose rows are written."""
    if present.judgement is None:
        return None, None
    if present.snapshot is None:
        return known, None
    found = alternatives(present.judgement, present.snapshot, strategies)
    return found and found.as_it_is(), found if present.judgement in final else None
