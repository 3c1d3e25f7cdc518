"""Tests that the rebalance history does not depend on batches, counts everything once, and stays small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.group_update import (
    GROUP_CODEC,
    GroupState,
    GroupUpdate,
    apply_batch,
    decode_update,
    encode_update,
)
from streaming.evaluation.rebalances.partition_movement import PartitionMovement
from streaming.evaluation.rebalances.rebalance_history import (
    KEPT_REBALANCES,
    RebalanceHistory,
    RebalanceTotals,
    ReportedRebalance,
    moves_by_need,
)
from streaming.evaluation.rebalances.rebalance_summary import KEPT_NAMES, summarize
from streaming.events import GroupEvent, GroupMetadataWritten, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot, GroupTotals, Resume
from streaming.protocol.classic import ClassicMember
from tests.streaming.groups import (
    at,
    current,
    emptied,
    epoch,
    formed,
    joined,
    left,
    member,
    metadata,
    target,
    target_epoch,
    tombstoned,
    written,
)

FRESH = GroupState(GroupSnapshot("g"))
RANGE = (assignor_named("range"),)
NAMED = TopicsSampled({"orders": TopicMetadata(9, 10**9, topic_id="id")})


def updates(batches: Sequence[Sequence[GroupEvent]], record: GroupState = FRESH) -> list[GroupUpdate]:
    """Return the updates of consecutive batches. Each starts from the stored form of the previous state."""
    group_updates = []
    for batch in batches:
        group_updates.append(apply_batch(record, batch, RANGE))
        record = GROUP_CODEC.decode(*GROUP_CODEC.encode(group_updates[-1].record))
    return group_updates


def rebalances(group_updates: Sequence[GroupUpdate]) -> list[ReportedRebalance]:
    """Return the rebalances that became rows."""
    return [rebalance for update in group_updates for rebalance in update.rebalances]


@st.composite
def generations(draw: Callable[..., Any]) -> list[GroupEvent]:
    """Draw a group's log: members join, leave and rejoin, strategies change, and the group is deleted and recreated.

    Sections of KIP-848 records are between sections of classic records.
    """
    offset, generation, events = 0, draw(st.integers(0, 3)), []
    for _ in range(draw(st.integers(1, 8))):
        generation += draw(st.sampled_from([0, 1, 1, 1, 2, -1]))
        step = draw(st.sampled_from(["generation"] * 4 + ["empty", "tombstone", "formed", "another epoch"]))
        records: Sequence[GroupEvent] = ()
        if step == "generation":
            protocol = draw(st.sampled_from(["range", "cooperative-sticky", "cooperative-sticky"]))
            records = [GroupMetadataWritten(at(offset), metadata(generation, draw(some_members()), protocol=protocol))]
        elif step == "empty":
            records = [emptied(offset, generation)]
        elif step == "tombstone":
            records = [tombstoned(offset)]
        elif step == "formed":
            records = formed(offset, generation)
        else:
            records = [
                joined(offset, "n"),
                epoch(offset + 1, generation),
                target(offset + 2, "n", (("id", (1,)),)),
                target_epoch(offset + 3, generation),
                current(offset + 4, "n", number=generation),
                *draw(st.sampled_from([(), left(offset + 5, "n")])),
            ]
        events += records
        offset += 8 + draw(st.integers(0, 1))
    return events


@st.composite
def kip_848_logs(draw: Callable[..., Any]) -> list[GroupEvent]:
    """Draw the log of a KIP-848 group. Members join and leave, and the coordinator computes some of the assignments."""
    offset, number, members, events = 5, 3, {"m"}, [*formed(0, 3)]
    for member_id in draw(st.lists(st.sampled_from(["m", "n", None]), max_size=12)):
        if member_id is None:
            targets = [target(offset + at, one, ()) for at, one in enumerate(sorted(members))]
            events += [*targets, target_epoch(offset + 3, number)] if members else []
        else:
            number += 1
            events += left(offset, member_id) if member_id in members else [joined(offset, member_id)]
            events.append(epoch(offset + 3, number))
            members ^= {member_id}
        offset += 4
    return events


@given(kip_848_logs())
def test_a_kip_848_group_counts_the_rebalances_that_have_a_row(events: list[GroupEvent]) -> None:
    """Each second, a member joined and left, and Kafka computed one assignment for both epochs.

    `rebalances_total` was 340, but the table had 178 rows.
    """
    found = updates([events, [NAMED]])
    kinds = Counter(one.rebalance.kind for one in rebalances(found))
    totals = found[-1].record.snapshot.totals
    assert (totals.rebalances, totals.empty_transitions) == (kinds["rebalance"], kinds["became_empty"])
    assert sum(found[-1].record.rebalance_history.totals.rebalances_by_cause.values()) == totals.rebalances


@st.composite
def some_members(draw: Callable[..., Any]) -> list[ClassicMember]:
    """Draw members of a group. Some are static, with any partitions and claims."""
    partitions = st.lists(st.integers(0, 4), unique=True)
    ids = draw(st.sets(st.sampled_from(["a", "b", "c", "s1", "s2"]), min_size=1))
    return [
        member(
            member_id,
            {"orders": draw(partitions)},
            instance_id="s" if member_id == min(ids & {"s1", "s2"}, default="") else None,
            owned=[("orders", number) for number in draw(partitions)],
        )
        for member_id in sorted(ids)
    ]


@given(generations(), st.data())
def test_the_same_records_give_the_same_rows_in_one_batch_or_in_twenty(
    events: list[GroupEvent], data: st.DataObject
) -> None:
    """The result does not depend on how Spark splits the log into batches."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=20)))
    bounds = [0, *cuts, len(events)]
    at_once = updates([events, [NAMED]])
    spread = updates([*(events[start:end] for start, end in pairwise(bounds)), [NAMED]])
    assert rebalances(spread) == rebalances(at_once)
    assert spread[-1].record.rebalance_history == at_once[-1].record.rebalance_history


@given(generations(), st.data())
def test_a_section_that_is_read_again_gives_no_second_row(events: list[GroupEvent], data: st.DataObject) -> None:
    """No row is written twice. A batch that was interrupted by a kill runs again."""
    end = data.draw(st.integers(0, len(events)))
    start = data.draw(st.integers(0, end))
    again = updates([events[:end], events[start:end], events[end:], [NAMED]])
    assert rebalances(again) == rebalances(updates([events[:end], events[end:], [NAMED]]))


@given(generations())
def test_totals_are_the_sum_of_the_rows_and_survive_their_encodings(events: list[GroupEvent]) -> None:
    group_updates = updates([events, [NAMED]])
    rows = rebalances(group_updates)
    by_cause = Counter(row.rebalance.primary_cause or "unknown" for row in rows if row.rebalance.kind == "rebalance")
    totals = group_updates[-1].record.rebalance_history.totals
    assert totals.rebalances_by_cause == dict(by_cause)
    moved = sum(row.rebalance.movement.moved_partitions or 0 for row in rows if row.rebalance.kind == "rebalance")
    assert sum(totals.moved_partitions.values()) == moved
    assert not rows or rows[-1].totals == totals
    for update in group_updates:
        assert decode_update(encode_update(update)) == update


@given(generations(), st.data())
def test_a_new_checkpoint_continues_reports_and_counts_from_the_tables_last_row(
    events: list[GroupEvent], data: st.DataObject
) -> None:
    """`rebuild` reads the log from its start. It adds the missing rows and does not repeat existing rows."""
    whole = updates([events, [NAMED]])
    rows, snapshots = rebalances(whole), [one for update in whole for one in update.history]
    written_rows = data.draw(st.integers(0, len(rows)))
    last = rows[written_rows - 1] if written_rows else None
    reported_up_to = last.rebalance.position.offsets_topic_offset if last else -1
    # At worst, a kill happens between the writes of the two tables. Then generations are written up to any later row.
    later = [one for one in snapshots if one.position and one.position.offsets_topic_offset >= reported_up_to]
    resumed = data.draw(st.sampled_from(later)) if later else None
    resume = None
    if resumed is not None and resumed.position is not None:
        resume = Resume(
            resumed.position.offsets_topic_offset,
            resumed.group_type,
            resumed.state,
            resumed.generation_id,
            resumed.totals,
        )
    seed = GroupState(
        GroupSnapshot("g", totals=resumed.totals if resumed else GroupTotals(), resume=resume),
        rebalance_history=RebalanceHistory(
            totals=last.totals if last else RebalanceTotals(), reported_up_to=reported_up_to
        ),
    )
    again = rebalances(updates([events, [NAMED]], seed))
    assert [one.rebalance.position for one in again] == [one.rebalance.position for one in rows[written_rows:]]
    assert [one.rebalance.causes for one in again] == [one.rebalance.causes for one in rows[written_rows:]]


def test_a_classic_groups_present_assignment_is_not_stored_twice() -> None:
    """A thousand members with ten thousand partitions are stored once."""
    record = updates([[written(0, 1, [member("a", {"orders": [0]})])]])[-1].record
    assert record.rebalance_history.baseline is not None
    assert record.rebalance_history.baseline.snapshot is None


def test_only_the_last_rebalances_and_some_names_are_kept() -> None:
    """Strimzi 3225: a generation every few milliseconds. The state must stay bounded."""
    record = updates([[written(number, number) for number in range(KEPT_REBALANCES + 9)]])[-1].record
    assert [one.generation_id for one in record.rebalance_history.recent] == list(range(9, KEPT_REBALANCES + 9))
    many = [member(f"{number:03}") for number in range(KEPT_NAMES + 5)]
    brief = updates([[written(0, 0), written(1, 1, many)]])[-1].record.rebalance_history.recent[-1]
    assert len(brief.joined) == KEPT_NAMES
    assert brief.changed_members == KEPT_NAMES + 5 + 1
    assert not brief.is_whole


def test_a_group_without_changes_keeps_its_history_object() -> None:
    """The update of an unchanged group must be cheap, because every batch does it for every group."""
    (first,) = updates([[written(0, 1)]])
    assert apply_batch(first.record, [NAMED], RANGE).record.rebalance_history == first.record.rebalance_history


@pytest.mark.parametrize(
    ("movement", "by_need", "why"),
    [
        (PartitionMovement(), {}, "unknown moves have no kind"),
        (PartitionMovement(0, 0, is_exact=True), {}, "no moves"),
        (PartitionMovement(5, 3, is_exact=True), {"true": 3, "false": 2}, "two moves were not necessary"),
        (PartitionMovement(5, 5, is_exact=True), {"true": 5}, "all moves were necessary"),
        (PartitionMovement(5, 3, is_exact=False), {"true": 3, "unknown": 2}, "three is only a lower bound"),
        (PartitionMovement(5, None), {"unknown": 5}, "a rule is broken, so no minimum exists"),
    ],
)
def test_moves_are_split_by_whether_they_were_necessary(
    movement: PartitionMovement, by_need: dict[str, int], why: str
) -> None:
    (one,) = rebalances(updates([[written(0, 1)]]))
    assert moves_by_need(msgspec.structs.replace(one.rebalance, movement=movement)) == by_need, why
    assert summarize(one.rebalance).kind == "first_seen"
