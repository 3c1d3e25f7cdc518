"""Groups that ended without a record: nobody lists them any more. Before and after a rebuild they are the same."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from assignors import assignor_named
from streaming.evaluation.rebalances.story import Story
from streaming.evaluation.turn import GroupRecord, Turn, take_turn
from streaming.events import GroupEvent, GroupVanished
from streaming.group.snapshot import GONE, GroupSnapshot, GroupTotals, Resume
from tests.streaming.groups import written

RANGE = (assignor_named("range"),)
FRESH = GroupRecord(GroupSnapshot("g"))
LAST, LATER = [written(5, 7)], [written(9, 8)]
ENDED = [LAST, [GroupVanished(5, 90)]]
"""By the listing's clock the group was gone before its last record was written."""


def turns(batches: Iterable[Sequence[GroupEvent]], record: GroupRecord = FRESH) -> list[Turn]:
    """Return the turns of consecutive batches."""
    taken = []
    for batch in batches:
        taken.append(take_turn(record, batch, RANGE))
        record = taken[-1].record
    return taken


def rows(taken: Iterable[Turn]) -> list[GroupSnapshot]:
    """Return the snapshots that became rows, in the order of their times: `rebuild` goes on from the last one."""
    told = [snapshot for turn in taken for snapshot in turn.history]
    return sorted(told, key=lambda one: one.position.timestamp_ms if one.position else 0)


def seed_of(last: GroupSnapshot) -> GroupRecord:
    """Return what `rebuild` makes of a group's last row."""
    assert last.position is not None
    resume = Resume(last.position.kafka_offset, last.group_type, last.state, last.generation_id, last.totals, 0)
    return GroupRecord(GroupSnapshot("g", totals=last.totals, resume=resume), story=Story(told_up_to=5))


def test_the_end_is_the_last_row_whatever_the_clocks_say() -> None:
    """Both rows have the offset of the last record. A rebuild took the wrong one and wrote the end again."""
    assert rows(turns(ENDED))[-1].state == GONE


@pytest.mark.parametrize("again", [[GroupVanished(5, 95)], []], ids=["found missing again", "not asked for yet"])
def test_a_group_that_comes_back_after_a_rebuild_is_created_anew(again: list[GroupEvent]) -> None:
    """The log may still hold the last record. Counted on from there, the new group was a rebalance of the old one."""
    ended = turns(ENDED)
    (lived_on,) = turns([LATER], ended[-1].record)
    reread, found, rebuilt = turns([LAST, again, LATER], seed_of(rows(ended)[-1]))
    assert GONE not in {one.state for one in rows([reread, found, rebuilt])}, "that row is in the table"
    assert rebuilt.record.snapshot.totals == lived_on.record.snapshot.totals == GroupTotals(incarnations=2)
    assert [one.rebalance.kind for one in rebuilt.rebalances] == ["created"]
    assert [one.rebalance.kind for one in lived_on.rebalances] == ["created"]
