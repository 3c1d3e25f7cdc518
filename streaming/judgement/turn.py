"""One group's turn in one micro-batch: its events in order, the snapshot after them, the verdicts they call for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from assignors import PartitionAssignor
from streaming.events import GroupEvent, GroupForgotten, HandedBackEvent, LogEvent, Position
from streaming.group.advance import advance
from streaming.group.codec import StateCodec
from streaming.group.snapshot import DEAD, GroupSnapshot
from streaming.judgement.judge import Judgement, judge, keeps_verdict

JUDGED_RECORDS_PER_TURN = 50
"""A storm of generations read at once is judged from its end: older verdicts would come too late to act on."""


class GroupRecord(msgspec.Struct, frozen=True):
    """What is stored per group: the snapshot and the verdict on its current generation."""

    snapshot: GroupSnapshot
    judgement: Judgement | None = None


class Turn(msgspec.Struct, frozen=True):
    """What a turn leaves behind: the new record, the snapshot after each log record, and each verdict made.

    `forgotten` says that nothing of the group is to be kept: it is dead, and has been for long.
    """

    record: GroupRecord
    history: tuple[GroupSnapshot, ...] = ()
    judgements: tuple[Judgement, ...] = ()
    forgotten: bool = False


GROUP_CODEC = StateCodec(GroupRecord, version=1)

_TURN_ENCODER = msgspec.msgpack.Encoder()
_TURN_DECODER = msgspec.msgpack.Decoder(Turn)


def encode_turn(turn: Turn) -> bytes:
    """A turn for the way to the driver (never stored: it has no version)."""
    return _TURN_ENCODER.encode(turn)


def decode_turn(encoded: bytes) -> Turn:
    """The turn of `encode_turn`."""
    return _TURN_DECODER.decode(encoded)


def take_turn(record: GroupRecord, events: Iterable[GroupEvent], strategies: Sequence[PartitionAssignor]) -> Turn:
    """Apply the events of one batch: what was handed back first, for it was known before the records were read.

    So a verdict that waited for it is made before a newer record takes its place, be it in one batch or two.
    """
    happened = list(events)
    handed_back = [event for event in happened if isinstance(event, HandedBackEvent)]
    snapshot, judgement, answered = _with_facts(record, handed_back, strategies)
    history = []
    for event in sorted((event for event in happened if isinstance(event, LogEvent)), key=_position):
        advanced = advance(snapshot, event)
        if advanced.position != snapshot.position:
            history.append(advanced)
        snapshot = advanced
    if not history and snapshot.state == DEAD and any(isinstance(event, GroupForgotten) for event in handed_back):
        return Turn(record, forgotten=True)
    judgement, judgements = _judge_history(judgement, history, strategies)
    return Turn(GroupRecord(snapshot, judgement), tuple(history), (*answered, *judgements))


def _position(event: LogEvent) -> Position:
    return event.position


def _with_facts(
    record: GroupRecord, facts: Iterable[HandedBackEvent], strategies: Sequence[PartitionAssignor]
) -> tuple[GroupSnapshot, Judgement | None, tuple[Judgement, ...]]:
    """The snapshot with what was handed back, its verdict made again if it waited for that, and whether it is final."""
    snapshot, judgement = record.snapshot, record.judgement
    for fact in facts:
        snapshot = advance(snapshot, fact)
    if judgement is None or judgement.is_complete or snapshot == record.snapshot:
        return snapshot, judgement, ()
    again = judge(snapshot, strategies)
    return snapshot, again, _final(again)


def _judge_history(
    judgement: Judgement | None, history: Sequence[GroupSnapshot], strategies: Sequence[PartitionAssignor]
) -> tuple[Judgement | None, tuple[Judgement, ...]]:
    """The verdict on the last snapshot, and every verdict that will not change any more.

    An incomplete verdict waits for its inputs and is made again; once a newer record takes its place it is final.
    """
    final: list[Judgement] = []
    for snapshot in history[-JUDGED_RECORDS_PER_TURN:]:
        if keeps_verdict(judgement, snapshot):
            continue
        if judgement is not None and not judgement.is_complete:
            final.append(judgement)
        judgement = judge(snapshot, strategies)
        final.extend(_final(judgement))
    return judgement, tuple(final)


def _final(judgement: Judgement | None) -> tuple[Judgement, ...]:
    return (judgement,) if judgement is not None and judgement.is_complete else ()
