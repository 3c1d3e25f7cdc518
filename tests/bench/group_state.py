"""What a large group costs: its stored state, and one rebalance of it from stored bytes to stored bytes.

1,000 members on 10,000 partitions of 100 topics that each of them subscribes to, once as a classic group (one record)
and once as a KIP-848 group (a target for each member, and two steps towards it).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import pairwise
from time import process_time
from uuid import UUID

import msgspec

from assignors import AS_JAVA_LEADER
from streaming.evaluation.group_update import GROUP_CODEC, GroupState, apply_batch
from streaming.events import (
    CONSUMER,
    CurrentWritten,
    EpochWritten,
    GroupEvent,
    GroupMetadataWritten,
    MemberWritten,
    Position,
    TargetEpochWritten,
    TargetWritten,
    TopicMetadata,
    TopicsSampled,
    decode_event,
    encode_event,
)
from streaming.group.advance import advance
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
from streaming.protocol.modern import IdPartitions, MemberAssignment, ModernMember
from tests.bench.figures import Bar, Figure

MEMBERS, TOPICS, PARTITIONS_PER_TOPIC = 1_000, 100, 100
STATE_BAR, ADVANCE_BAR = Bar(2_000_000, "at most"), Bar(300, "at most")
ROUNDS = 3


def _topic_id(topic: str) -> str:
    return topic[-22:].rjust(22, "A")


_TOPICS = tuple(f"team.some-topic-{number:03}" for number in range(TOPICS))
_SAMPLED = TopicsSampled(
    {topic: TopicMetadata(PARTITIONS_PER_TOPIC, 2**41, topic_id=_topic_id(topic)) for topic in _TOPICS}
)
_STRATEGIES = tuple(AS_JAVA_LEADER.values())

Held = dict[str, list[tuple[str, int]]]
Stored = tuple[int, bytes]


def group_state_figures() -> list[Figure]:
    """Measure both groups: bytes and milliseconds, the best of a few rounds."""
    figures: list[Figure] = []
    for name, formed, rebalanced in (
        ("classic", [_classic(1)], [_classic(2)]),
        ("KIP-848", _modern(1, 0), _modern(2, 10_000)),
    ):
        state = _evaluated(GROUP_CODEC.encode(GroupState(GroupSnapshot("g"))), formed)
        state = _evaluated(state, [_SAMPLED])
        label = f"{name} group, {MEMBERS:,} x {TOPICS * PARTITIONS_PER_TOPIC:,}"
        figures += [
            Figure(f"{label}: state", "bytes", len(state[1]), bar=STATE_BAR),
            Figure(
                f"{label}: advanced by one rebalance", "ms", _best_ms(state, rebalanced, _advanced), bar=ADVANCE_BAR
            ),
            Figure(f"{label}: told, and evaluated by all strategies", "ms", _best_ms(state, rebalanced, _evaluated)),
        ]
    return figures


def _best_ms(
    state: Stored, events: Sequence[GroupEvent], go_on: Callable[[Stored, Sequence[GroupEvent]], Stored]
) -> float:
    """Processor time, which another process's work does not change as it does the wall's."""
    encoded = [encode_event(event) for event in events]
    best_seconds = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        go_on(state, [decode_event(event) for event in encoded])
        best_seconds = min(best_seconds, process_time() - started)
    return best_seconds * 1000


def _advanced(state: Stored, events: Sequence[GroupEvent]) -> Stored:
    record = GROUP_CODEC.decode(*state)
    return GROUP_CODEC.encode(msgspec.structs.replace(record, snapshot=reduce(advance, events, record.snapshot)))


def _evaluated(state: Stored, events: Sequence[GroupEvent]) -> Stored:
    return GROUP_CODEC.encode(apply_batch(GROUP_CODEC.decode(*state), events, _STRATEGIES).record)


def _held(generation: int) -> Held:
    """Random, so that nothing compresses that would not in life; another generation moves a tenth."""
    chance = random.Random(0)
    ids = [str(UUID(int=chance.getrandbits(128))) for _ in range(MEMBERS)]
    partitions = [(topic, number) for topic in _TOPICS for number in range(PARTITIONS_PER_TOPIC)]
    chance.shuffle(partitions)
    each = len(partitions) // MEMBERS
    held = {member_id: partitions[each * at : each * (at + 1)] for at, member_id in enumerate(ids)}
    for giver, taker in pairwise(ids) if generation > 1 else ():
        held[taker].append(held[giver].pop(0))
    return held


def _classic(generation: int) -> GroupEvent:
    before = _held(generation - 1)
    members = tuple(
        ClassicMember(
            member_id=member_id,
            group_instance_id=None,
            client_id="some-service",
            client_host="/10.0.0.1",
            rebalance_timeout_ms=300_000,
            session_timeout_ms=45_000,
            subscription=Subscription(3, _TOPICS, None, tuple(before[member_id]), generation - 1, None),
            assignment=Assignment(3, tuple(partitions), None),
        )
        for member_id, partitions in _held(generation).items()
    )
    metadata = GroupMetadata("g", "consumer", generation, "cooperative-sticky", members[0].member_id, None, members, 3)
    return GroupMetadataWritten(_at(generation), replace(metadata, generation_id=generation))


def _modern(epoch: int, offset: int) -> list[GroupEvent]:
    """The records of an epoch; the first also makes the members."""
    member = ModernMember(None, None, "some-service", "/10.0.0.1", _TOPICS, None, 300_000, "uniform", None)
    targets = {member_id: _by_id(partitions) for member_id, partitions in _held(epoch).items()}
    at = iter(range(offset, offset + 9_999))
    joins = [MemberWritten(_at(next(at)), CONSUMER, one, member) for one in targets] if epoch == 1 else []
    return [
        *joins,
        EpochWritten(_at(next(at)), CONSUMER, epoch),
        *(TargetWritten(_at(next(at)), CONSUMER, one, target) for one, target in targets.items()),
        TargetEpochWritten(_at(next(at)), CONSUMER, epoch),
        *(
            CurrentWritten(_at(next(at)), CONSUMER, one, MemberAssignment(reached, epoch - 1, state, target, ()))
            for reached, state in ((epoch - 1, "UnrevokedPartitions"), (epoch, "Stable"))
            for one, target in targets.items()
        ),
    ]


def _by_id(partitions: list[tuple[str, int]]) -> IdPartitions:
    return tuple((_topic_id(topic), (number,)) for topic, number in partitions)


def _at(offsets_topic_offset: int) -> Position:
    return Position(0, offsets_topic_offset, 1_000 * offsets_topic_offset)
