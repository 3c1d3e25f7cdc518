"""Tests that rows of KIP-848 groups have topic names, both live and after a catch-up in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import AS_JAVA_LEADER
from streaming.delta.tables import GROUP_GENERATIONS, REBALANCES
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.events import GroupEvent, LogEvent, TopicMetadata, TopicsSampled
from streaming.group.not_known import TOPIC_NAMES
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NO_TOPIC_NAMES, TopicNames
from tests.streaming.groups import SECOND_MS, current, epoch, joined, left, modern_member, target, target_epoch
from tests.streaming.table_rows import update_rows

NOW_MS = 10_000 * SECOND_MS
NAMES = {"id-orders": "orders", "id-sales": "sales"}
LISTED = TopicNames(NOW_MS, NAMES)
SUBSCRIBED = modern_member(("orders", "sales"))
STRATEGIES = [AS_JAVA_LEADER["uniform"]]


def rows(group_updates: Iterable[GroupUpdate]) -> list[object]:
    """Return all rows of the history and of the rebalances of these updates."""
    reported = update_rows("prod", group_updates, {})
    return [reported[GROUP_GENERATIONS], reported[REBALANCES]]


def sampled(at_ms: int) -> TopicsSampled:
    """Return both topics as sampled at this time."""
    return TopicsSampled({name: TopicMetadata(4, at_ms, topic_id=of) for of, name in NAMES.items()})


def live(events: Sequence[LogEvent]) -> list[GroupUpdate]:
    """Read each record when it is written, with a sample after each record."""
    record, group_updates = GroupState(GroupSnapshot("g")), []
    for event in events:
        for batch in ([event], [sampled(event.position.timestamp_ms + 1)]):
            group_updates.append(apply_batch(record, batch, STRATEGIES))
            record = group_updates[-1].record
    return group_updates


def caught_up(events: Sequence[LogEvent], names: TopicNames = LISTED) -> list[GroupUpdate]:
    """Read all records at once, much later. Only the names were requested before."""
    return [apply_batch(GroupState(GroupSnapshot("g")), events, STRATEGIES, names=names)]


@st.composite
def lives(draw: st.DrawFn) -> list[LogEvent]:
    """Draw epochs of a group in which members join, leave and get partitions of two topics."""
    events: list[LogEvent] = []
    present: set[str] = set()
    for number in range(1, draw(st.integers(1, 8)) + 1):
        wanted = draw(st.sets(st.sampled_from("abc"), min_size=0 if present else 1))
        events += [joined(len(events), name, SUBSCRIBED) for name in sorted(wanted - present)]
        for name in sorted(present - wanted):
            events += left(len(events), name)
        events.append(epoch(len(events), number))
        for name in sorted(wanted):
            held = tuple((of, tuple(draw(st.sets(st.integers(0, 3), min_size=1)))) for of in sorted(NAMES))
            events.append(target(len(events), name, held))
        if wanted:
            events.append(target_epoch(len(events), number))
        events += [current(len(events), name, number=number) for name in sorted(wanted & present)]
        present = wanted
    return events


@given(lives())
def test_a_catch_up_writes_the_same_rows_as_a_live_monitor(events: list[LogEvent]) -> None:
    """Before, a catch-up wrote 650 of 657 rows with topic ids, and false causes if ids became names."""
    assert rows(caught_up(events)) == rows(live(events))


def restless(rounds: int) -> list[LogEvent]:
    """Return a group whose only member gets one more partition and one less, alternately."""
    events: list[LogEvent] = [joined(0, "m", SUBSCRIBED)]
    for number in range(1, rounds + 1):
        held = (("id-orders", (0, 1) if number % 2 else (0,)), ("id-sales", (0,)))
        at = len(events)
        events += [epoch(at, number), target(at + 1, "m", held), target_epoch(at + 2, number)]
    return events


def topics(group_updates: Iterable[GroupUpdate]) -> set[str]:
    """Return the topics of all members in the rows of the history."""
    reported = update_rows("prod", group_updates, {})[GROUP_GENERATIONS]
    held = [partition for row in reported for member in row["members"] or () for partition in member["target"] or ()]
    return {partition.get("topic") or partition["topic_id"] for partition in held}


def test_without_topic_names_rows_wait_and_are_reported_with_names() -> None:
    """Before, only the last eight rows of a group waited. All earlier rows were reported with ids."""
    record = GroupState(GroupSnapshot("g"))
    waits = apply_batch(record, restless(40), STRATEGIES, names=NO_TOPIC_NAMES)
    assert topics([waits]) == set()
    reported = apply_batch(waits.record, [sampled(NOW_MS)], STRATEGIES)
    assert topics([reported]) == {"orders", "sales"}
    assert rows([waits, reported])[1][0]["members"] == 1  # type: ignore[index]
    assert len(waits.history) + len(reported.history) == len(caught_up(restless(40))[0].history)


def test_a_topic_that_was_deleted_before_the_first_request_keeps_no_row_waiting() -> None:
    """No broker can name the topic any more, so its rows have the id."""
    (update,) = caught_up(restless(3), TopicNames(NOW_MS, {"id-orders": "orders"}))
    assert update.record.pending == ()
    assert topics([update]) == {"orders", "id-sales"}
    assert TOPIC_NAMES in update_rows("prod", [update], {})[GROUP_GENERATIONS][-1]["not_known"]


@pytest.mark.parametrize("asked_at_ms", [None, 0, 30 * SECOND_MS])
def test_a_topic_that_was_created_after_the_answer_waits_for_a_sample(asked_at_ms: int | None) -> None:
    """Its id is in no response yet, and clocks can differ by a minute."""
    (update,) = caught_up(restless(3), TopicNames(asked_at_ms, {"id-orders": "orders"}))
    assert update.record.pending != ()
    reported: list[GroupEvent] = [sampled(NOW_MS)]
    assert topics([apply_batch(update.record, reported, STRATEGIES)]) == {"orders", "sales"}


def test_a_topic_id_that_becomes_a_name_is_not_a_new_topic() -> None:
    """If too many rows wait, early rows have ids. Before, the first row with a name had cause `metadata_changed`."""
    record = GroupState(GroupSnapshot("g"))
    first = apply_batch(record, restless(1), STRATEGIES, names=TopicNames(NOW_MS, {}))
    assert topics([first]) == {"id-orders", "id-sales"}
    more = restless(2)[len(restless(1)) :]
    again = apply_batch(first.record, more, STRATEGIES, names=LISTED)
    (reported,) = [one.rebalance for one in again.rebalances]
    assert reported.causes == ("unexplained",)
    assert reported.movement.unowned == (("orders", 1),)
