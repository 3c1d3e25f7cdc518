"""Each verdict on a record is written once, however facts and records of a KIP-848 group are interleaved."""

from __future__ import annotations

from collections import Counter

from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from assignors import AS_JAVA_LEADER
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import GroupEvent, LogEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import TopicNames
from tests.streaming.groups import SECOND_MS, epoch, joined, modern_member, target, target_epoch

STRATEGIES = [AS_JAVA_LEADER["uniform"]]
BOTH, ORDERS = ("orders", "sales"), ("orders",)
NAMES_AT_START = TopicNames(0, {"id-orders": "orders"})


def sampled(at_second: int, topics: tuple[str, ...]) -> TopicsSampled:
    """Return a sample of some topics."""
    return TopicsSampled({name: TopicMetadata(4, at_second * SECOND_MS, topic_id=f"id-{name}") for name in topics})


def one_epoch(at: int, number: int, topics: tuple[str, ...], *, target_first: bool = True) -> list[LogEvent]:
    """Return the records of one epoch in which member m gets one partition of each topic.

    Kafka writes the epoch before the target. A log can have any order.
    """
    held = tuple((f"id-{topic}", (0,)) for topic in topics)
    if target_first:
        return [target(at, "m", held), epoch(at + 1, number), target_epoch(at + 2, number)]
    return [epoch(at, number), target(at + 1, "m", held), target_epoch(at + 2, number)]


@st.composite
def histories(draw: st.DrawFn) -> list[list[GroupEvent]]:
    """Draw batches: epochs with one or two topics, and samples of one or both topics at any time.

    Some samples correct the times of earlier samples.
    """
    batches: list[list[GroupEvent]] = [[joined(0, "m", modern_member(BOTH))]]
    at = 1
    for number in range(1, draw(st.integers(2, 6)) + 1):
        topics, target_first = draw(st.sampled_from([BOTH, ORDERS])), draw(st.booleans())
        batches.append(list(one_epoch(at, number, topics, target_first=target_first)))
        at += 3
        if draw(st.booleans()):
            fact = sampled(draw(st.integers(0, 3)) + at, draw(st.sampled_from([BOTH, ORDERS])))
            batches.append([replace(fact, is_time_corrected=draw(st.booleans()))])
    return [*batches, [sampled(1_000, BOTH)]]


@given(histories())
@example(
    [
        [joined(0, "m", modern_member(BOTH))],
        list(one_epoch(1, 1, ORDERS)),
        list(one_epoch(4, 2, BOTH)),
        list(one_epoch(7, 3, BOTH)),
        [sampled(20, ORDERS)],
        [sampled(1_000, BOTH)],
    ]
)
def test_no_record_gets_two_verdicts_of_one_strategy(batches: list[list[GroupEvent]]) -> None:
    """Rule: nothing counted twice.

    An incomplete verdict was computed again from the newest record, while rows before it still waited for the names of
    their topics. When the names came, the newest record got a second verdict.
    """
    state, written = GroupState(GroupSnapshot("g")), Counter[tuple[int, str]]()
    for batch in batches:
        update = apply_batch(state, batch, STRATEGIES, names=NAMES_AT_START)
        state = update.record
        written.update(
            (evaluation.position.offsets_topic_offset, drift.strategy)
            for evaluation in update.evaluations
            for drift in evaluation.drifts
        )
    assert [key for key, times in written.items() if times > 1] == []
