"""One group's turn in one micro-batch: its events in order, the snapshot after them, the verdicts they call for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from assignors import PartitionAssignor
from streaming.events import GroupEvent, GroupForgotten, SkipSettled, TopicsSampled
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
    """Apply the events of one batch. Sampled topics first: they were known before the records were read."""
    ordered = sorted(events, key=_order)
    history = []
    snapshot = record.snapshot
    for event in ordered:
        advanced = advance(snapshot, event)
        if advanced.position != snapshot.position:
            history.append(advanced)
        snapshot = advanced
    if not history:
        if snapshot.state == DEAD and any(isinstance(event, GroupForgotten) for event in ordered):
            return Turn(record, forgotten=True)
        return _without_records(record, snapshot, strategies)
    judgement, judgements = _judge_history(record.judgement, history, strategies)
    return Turn(GroupRecord(snapshot, judgement), tuple(history), judgements)


def _order(event: GroupEvent) -> tuple[int, int]:
    if isinstance(event, TopicsSampled):
        return 0, 0
    if isinstance(event, (SkipSettled, GroupForgotten)):
        return 2, 0
    return 1, event.position.kafka_offset


def _without_records(record: GroupRecord, snapshot: GroupSnapshot, strategies: Sequence[PartitionAssignor]) -> Turn:
    previous = record.judgement
    if previous is None or previous.is_complete or snapshot == record.snapshot:
        return Turn(GroupRecord(snapshot, previous))
    judgement = judge(snapshot, strategies)
    return Turn(GroupRecord(snapshot, judgement), (), _final(judgement))


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
