"""The part `state`: measures the stored state of a large group, and the time of one of its rebalances.

The time is from stored bytes to stored bytes. The group has 1,000 members, which all subscribe to 100 topics with
10,000 partitions. It is measured as a classic group (one record) and as a KIP-848 group (per member one target record
and two records of its current assignment).
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
from tests.bench.figures import Figure, Target

MEMBERS, TOPICS, PARTITIONS_PER_TOPIC = 1_000, 100, 100
STATE_TARGET, ADVANCE_TARGET = Target(2_000_000, "at most"), Target(300, "at most")
ROUNDS = 3


def _topic_id(topic: str) -> str:
    return topic[-22:].rjust(22, "A")


_TOPICS = tuple(f"team.some-topic-{number:03}" for number in range(TOPICS))
_SAMPLED = TopicsSampled(
    {topic: TopicMetadata(PARTITIONS_PER_TOPIC, 2**41, topic_id=_topic_id(topic)) for topic in _TOPICS}
)
_STRATEGIES = tuple(AS_JAVA_LEADER.values())

AssignmentByMember = dict[str, list[tuple[str, int]]]
Stored = tuple[int, bytes]


def group_state_figures() -> list[Figure]:
    """Return the figures of both groups: bytes, and milliseconds as the best of `ROUNDS` rounds."""
    figures: list[Figure] = []
    for name, formed, rebalanced in (
        ("classic", [_classic(1)], [_classic(2)]),
        ("KIP-848", _modern(1, 0), _modern(2, 10_000)),
    ):
        state = _evaluate(GROUP_CODEC.encode(GroupState(GroupSnapshot("g"))), formed)
        state = _evaluate(state, [_SAMPLED])
        label = f"{name} group, {MEMBERS:,} x {TOPICS * PARTITIONS_PER_TOPIC:,}"
        figures += [
            Figure(f"{label}: state", "bytes", len(state[1]), target=STATE_TARGET),
            Figure(
                f"{label}: advanced by one rebalance",
                "ms",
                _best_ms(state, rebalanced, _advance),
                target=ADVANCE_TARGET,
            ),
            Figure(
                f"{label}: written as a row, evaluated by all strategies", "ms", _best_ms(state, rebalanced, _evaluate)
            ),
        ]
    return figures


def _best_ms(
    state: Stored, events: Sequence[GroupEvent], process: Callable[[Stored, Sequence[GroupEvent]], Stored]
) -> float:
    """Measure processor time, because other processes hardly change it."""
    encoded = [encode_event(event) for event in events]
    best_seconds = float("inf")
    for _ in range(ROUNDS):
        started = process_time()
        process(state, [decode_event(event) for event in encoded])
        best_seconds = min(best_seconds, process_time() - started)
    return best_seconds * 1000


def _advance(state: Stored, events: Sequence[GroupEvent]) -> Stored:
    record = GROUP_CODEC.decode(*state)
    return GROUP_CODEC.encode(msgspec.structs.replace(record, snapshot=reduce(advance, events, record.snapshot)))


def _evaluate(state: Stored, events: Sequence[GroupEvent]) -> Stored:
    return GROUP_CODEC.encode(apply_batch(GROUP_CODEC.decode(*state), events, _STRATEGIES).record)


def _assignment(generation: int) -> AssignmentByMember:
    """Return a random assignment, so that it compresses as a real one. A later generation moves a tenth of it."""
    generator = random.Random(0)
    ids = [str(UUID(int=generator.getrandbits(128))) for _ in range(MEMBERS)]
    partitions = [(topic, number) for topic in _TOPICS for number in range(PARTITIONS_PER_TOPIC)]
    generator.shuffle(partitions)
    each = len(partitions) // MEMBERS
    held = {member_id: partitions[each * at : each * (at + 1)] for at, member_id in enumerate(ids)}
    for giver, taker in pairwise(ids) if generation > 1 else ():
        held[taker].append(held[giver].pop(0))
    return held


def _classic(generation: int) -> GroupEvent:
    before = _assignment(generation - 1)
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
        for member_id, partitions in _assignment(generation).items()
    )
    metadata = GroupMetadata("g", "consumer", generation, "cooperative-sticky", members[0].member_id, None, members, 3)
    return GroupMetadataWritten(_at(generation), replace(metadata, generation_id=generation))


def _modern(epoch: int, offset: int) -> list[GroupEvent]:
    """Return the records of an epoch. The first epoch also contains the member records."""
    member = ModernMember(None, None, "some-service", "/10.0.0.1", _TOPICS, None, 300_000, "uniform", None)
    targets = {member_id: _by_id(partitions) for member_id, partitions in _assignment(epoch).items()}
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
