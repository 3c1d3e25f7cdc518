"""Rows of KIP-848 groups name topics, whether they are read as they are written or long after, in one batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import AS_JAVA_LEADER
from streaming.delta.rows import update_rows
from streaming.delta.tables import GROUP_GENERATIONS, REBALANCES
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.events import GroupEvent, LogEvent, TopicMetadata, TopicsSampled
from streaming.group.not_known import TOPIC_NAMES
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import NO_TOPIC_NAMES, TopicNames
from tests.streaming.groups import SECOND_MS, current, epoch, joined, left, modern_member, target, target_epoch

NOW_MS = 10_000 * SECOND_MS
NAMES = {"id-orders": "orders", "id-sales": "sales"}
LISTED = TopicNames(NOW_MS, NAMES)
SUBSCRIBED = modern_member(("orders", "sales"))
STRATEGIES = [AS_JAVA_LEADER["uniform"]]


def rows(taken: Iterable[GroupUpdate]) -> list[object]:
    """Return everything that history and rebalances of the turns add to the tables."""
    reported = update_rows("prod", taken, {})
    return [reported[GROUP_GENERATIONS], reported[REBALANCES]]


def sampled(at_ms: int) -> TopicsSampled:
    """Return both topics as sampled then."""
    return TopicsSampled({name: TopicMetadata(4, at_ms, topic_id=of) for of, name in NAMES.items()})


def live(events: Sequence[LogEvent]) -> list[GroupUpdate]:
    """Read each record as it is written, with a sample right after it."""
    record, taken = GroupState(GroupSnapshot("g")), []
    for event in events:
        for batch in ([event], [sampled(event.position.timestamp_ms + 1)]):
            taken.append(apply_batch(record, batch, STRATEGIES))
            record = taken[-1].record
    return taken


def caught_up(events: Sequence[LogEvent], names: TopicNames = LISTED) -> list[GroupUpdate]:
    """Read all records at once, long after; only names were asked for before."""
    return [apply_batch(GroupState(GroupSnapshot("g")), events, STRATEGIES, names=names)]


@st.composite
def lives(draw: st.DrawFn) -> list[LogEvent]:
    """Draw epochs of a group in which members come, go and get partitions of two topics."""
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
def test_a_catch_up_writes_what_a_live_monitor_wrote(events: list[LogEvent]) -> None:
    """A fresh monitor over a whole log had 650 of 657 rows by topic id, and false causes where ids became names."""
    assert rows(caught_up(events)) == rows(live(events))


def restless(rounds: int) -> list[LogEvent]:
    """Return a group whose only member is given one partition more and one less in turn."""
    events: list[LogEvent] = [joined(0, "m", SUBSCRIBED)]
    for number in range(1, rounds + 1):
        held = (("id-orders", (0, 1) if number % 2 else (0,)), ("id-sales", (0,)))
        at = len(events)
        events += [epoch(at, number), target(at + 1, "m", held), target_epoch(at + 2, number)]
    return events


def topics(taken: Iterable[GroupUpdate]) -> set[str]:
    """Return the topics of all members in the rows of the history."""
    reported = update_rows("prod", taken, {})[GROUP_GENERATIONS]
    held = [partition for row in reported for member in row["members"] or () for partition in member["target"] or ()]
    return {partition.get("topic") or partition["topic_id"] for partition in held}


def test_without_an_answer_rows_wait_and_are_told_with_names() -> None:
    """Only the last eight rows of a group waited; all before them were told with ids."""
    record = GroupState(GroupSnapshot("g"))
    waits = apply_batch(record, restless(40), STRATEGIES, names=NO_TOPIC_NAMES)
    assert topics([waits]) == set()
    reported = apply_batch(waits.record, [sampled(NOW_MS)], STRATEGIES)
    assert topics([reported]) == {"orders", "sales"}
    assert rows([waits, reported])[1][0]["members"] == 1  # type: ignore[index]
    assert len(waits.history) + len(reported.history) == len(caught_up(restless(40))[0].history)


def test_a_topic_that_was_deleted_before_anybody_asked_keeps_no_row_waiting() -> None:
    """Nobody can name it any more, and its rows say so."""
    (update,) = caught_up(restless(3), TopicNames(NOW_MS, {"id-orders": "orders"}))
    assert update.record.pending == ()
    assert topics([update]) == {"orders", "id-sales"}
    assert TOPIC_NAMES in update_rows("prod", [update], {})[GROUP_GENERATIONS][-1]["not_known"]


@pytest.mark.parametrize("asked_at_ms", [None, 0, 30 * SECOND_MS])
def test_a_topic_that_was_created_after_the_answer_waits_for_a_sample(asked_at_ms: int | None) -> None:
    """Its id is in no answer yet; clocks may differ by a minute."""
    (update,) = caught_up(restless(3), TopicNames(asked_at_ms, {"id-orders": "orders"}))
    assert update.record.pending != ()
    reported: list[GroupEvent] = [sampled(NOW_MS)]
    assert topics([apply_batch(update.record, reported, STRATEGIES)]) == {"orders", "sales"}


def test_what_was_an_id_and_is_a_name_now_is_no_new_topic() -> None:
    """Too many rows waited: those before were told by id, and the first by name was called `metadata_changed`."""
    record = GroupState(GroupSnapshot("g"))
    first = apply_batch(record, restless(1), STRATEGIES, names=TopicNames(NOW_MS, {}))
    assert topics([first]) == {"id-orders", "id-sales"}
    more = restless(2)[len(restless(1)) :]
    again = apply_batch(first.record, more, STRATEGIES, names=LISTED)
    (reported,) = [one.rebalance for one in again.rebalances]
    assert reported.causes == ("unexplained",)
    assert reported.movement.unowned == (("orders", 1),)
