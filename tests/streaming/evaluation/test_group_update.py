"""Tests of group updates: a verdict waits for missing inputs and becomes final once, for any split into batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from assignors import assignor_named
from streaming.combine.own_partitions import OwnPartitions
from streaming.evaluation import group_update as update_of_group
from streaming.evaluation.assignment.drift import DRIFT, MATCH, TOO_MANY_RECORDS, UNKNOWN
from streaming.evaluation.group_update import (
    EVALUATED_RECORDS_PER_BATCH,
    GROUP_CODEC,
    GroupState,
    GroupUpdate,
    apply_batch,
    decode_update,
    encode_update,
)
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import (
    ExternalFact,
    GroupEvent,
    GroupForgotten,
    GroupVanished,
    LogEvent,
    Position,
    SkipSettled,
    TopicMetadata,
    TopicsSampled,
)
from streaming.group.snapshot import DEAD, GONE, GroupSnapshot
from tests.streaming.group.test_advance import histories
from tests.streaming.groups import (
    SECOND_MS,
    advanced,
    emptied,
    epoch,
    formed,
    joined,
    left,
    member,
    sampled,
    target,
    target_epoch,
    tombstoned,
    written,
)

STRATEGIES = (assignor_named("range"), assignor_named("roundrobin"))
FRESH = GroupState(GroupSnapshot("g"))
HOLDS_BOTH = [member("m", {"orders": [0, 1]})]


def updates(batches: Iterable[Sequence[GroupEvent]], record: GroupState = FRESH) -> list[GroupUpdate]:
    """Return the updates of consecutive batches."""
    group_updates = []
    for batch in batches:
        group_updates.append(apply_batch(record, batch, STRATEGIES))
        record = group_updates[-1].record
    return group_updates


def finals(group_updates: Iterable[GroupUpdate]) -> list[Evaluation]:
    """Return the verdicts that became rows."""
    return [evaluation for update in group_updates for evaluation in update.evaluations]


def own_verdicts(group_updates: Iterable[GroupUpdate]) -> list[tuple[int, str]]:
    """Return (log offset, verdict for the group's strategy) of the verdicts that became rows."""
    return [
        (evaluation.position.offsets_topic_offset, evaluation.drifts[0].verdict) for evaluation in finals(group_updates)
    ]


KNOWN = sampled(1, orders=2)
NAMED = TopicsSampled({"orders": TopicMetadata(2, 99 * SECOND_MS, topic_id="id")})


@pytest.mark.parametrize(
    ("batches", "verdicts", "why"),
    [
        ([[written(5, 1, HOLDS_BOTH)]], [], "metadata is missing, so the verdict waits"),
        ([[written(5, 1, HOLDS_BOTH)], [KNOWN]], [(5, MATCH)], "the metadata arrives: final"),
        ([[written(5, 1, HOLDS_BOTH)], [KNOWN], [KNOWN]], [(5, MATCH)], "final once, not twice"),
        (
            [[written(5, 1, HOLDS_BOTH)], [sampled(1, sales=9)], [KNOWN]],
            [(5, MATCH)],
            "the metadata of a different topic does not count",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [written(6, 2, HOLDS_BOTH)]],
            [(5, UNKNOWN)],
            "a newer record replaces it: the verdict stays unknown",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [KNOWN, written(6, 2, HOLDS_BOTH)]],
            [(5, MATCH), (6, MATCH)],
            "metadata and a newer record in one batch: the metadata was known first",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [KNOWN], [written(6, 2, HOLDS_BOTH)]],
            [(5, MATCH), (6, MATCH)],
            "the same in two batches",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [emptied(6, 2)]],
            [(5, UNKNOWN)],
            "all members left before the metadata was known",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [tombstoned(6)]],
            [(5, UNKNOWN)],
            "the group was deleted before the metadata was known",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [epoch(6)], [KNOWN]],
            [(5, UNKNOWN)],
            "the group was upgraded before the metadata was known",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [KNOWN], [written(6, 1, [member("n", {"orders": [0, 1]})])]],
            [(5, MATCH)],
            "a static member rejoined in the same generation: the leader decided nothing new",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [KNOWN], [emptied(6, 1)], [written(7, 1, HOLDS_BOTH)]],
            [(5, MATCH), (7, MATCH)],
            "an empty group has no verdict; when members return, the metadata is still known",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [GroupVanished(5, 90)]],
            [(5, UNKNOWN)],
            "the group ended without a record before the metadata was known",
        ),
        (
            [[written(5, 1, HOLDS_BOTH)], [GroupVanished(5, 90), KNOWN]],
            [(5, MATCH)],
            "metadata and the end of the group in one batch: before, the verdict got no row",
        ),
        ([[written(5, 1, HOLDS_BOTH)], [KNOWN], [GroupVanished(5, 90)]], [(5, MATCH)], "the same in two batches"),
        ([[emptied(5, 1)], [KNOWN]], [], "no members, no verdict"),
        ([[written(5, 1, [member("m", {"orders": [1, 0, 3]})])], [sampled(5001, orders=9)]], [(5, DRIFT)], "a drift"),
    ],
)
def test_verdicts_wait_and_become_final_once(
    batches: list[list[GroupEvent]], verdicts: list[tuple[int, str]], why: str
) -> None:
    assert own_verdicts(updates(batches)) == verdicts, why


AN_HOUR_AHEAD = sampled(3_600 * SECOND_MS, orders=2)
RESYNCED = [
    [written(5, 1, HOLDS_BOTH)],
    [AN_HOUR_AHEAD],
    [written(60, 2, [member("m", topics=["orders"])])],
]
"""The clock was an hour ahead at the only sample. Then the topic was deleted, and the group has no partitions."""


def test_a_verdict_from_a_sample_with_a_wrong_time_is_computed_again() -> None:
    """Before, a deleted topic counted as a grown topic for ever, because the sample seemed to be later than the record.

    The written row of the verdict does not change.
    """
    corrected = TopicsSampled({"orders": TopicMetadata(None, 65 * SECOND_MS)}, is_time_corrected=True)
    group_updates = updates([*RESYNCED, [corrected]])
    assert own_verdicts(group_updates) == [(5, MATCH), (60, UNKNOWN)]
    before, after = (update.record for update in group_updates[-2:])
    assert (before.unowned_partitions(), after.unowned_partitions()) == (2, 0)
    assert after.evaluation is not None
    assert after.evaluation.own is not None
    assert after.evaluation.own.verdict == MATCH


def test_a_verdict_that_agrees_with_its_samples_stays_if_their_times_were_wrong() -> None:
    """The topic grew after the record. A verdict `match` does not depend on the time of the sample."""
    corrected = replace(sampled(65 * SECOND_MS, orders=4), is_time_corrected=True)
    (*_, last) = updates([*RESYNCED[:2], [corrected]])
    assert last.record.evaluation is not None
    assert last.record.evaluation.own is not None
    assert (last.record.evaluation.own.verdict, last.record.unowned_partitions()) == (MATCH, 2)


def test_a_verdict_that_waits_is_shown_as_unknown() -> None:
    (update,) = updates([[written(5, 1, HOLDS_BOTH)]])
    assert update.record.evaluation is not None
    assert not update.record.evaluation.is_complete
    assert {drift.verdict for drift in update.record.evaluation.drifts} == {UNKNOWN}
    assert update.record.evaluation.imbalances[0].total == 2, "the imbalance of partitions needs no metadata"


def test_a_settled_skip_does_not_evaluate_a_verdict_again() -> None:
    group_updates = updates(
        [[written(5, 1, HOLDS_BOTH), written(6, 3, HOLDS_BOTH)], [SkipSettled(6, log_was_whole=True)]]
    )
    assert group_updates[1].evaluations == ()
    assert group_updates[1].record.snapshot.totals.rebalances_failed == 1


def test_rows_in_any_order_are_applied_in_log_order() -> None:
    """A group's rows reach the state function in several chunks, in any order."""
    events = [written(7, 3), written(5, 1), tombstoned(8), written(6, 2)]
    (update,) = updates([events])
    assert [snapshot.position and snapshot.position.offsets_topic_offset for snapshot in update.history] == [5, 6, 7, 8]
    assert update.record.snapshot.state == DEAD


@given(histories(), st.data())
def test_history_and_totals_do_not_depend_on_the_split_into_batches(
    events: list[GroupEvent], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(events)), max_size=20)))
    bounds = [0, *cuts, len(events)]
    chunks = [events[start:end] for start, end in pairwise(bounds)]
    at_once, spread = updates([events]), updates(chunks)
    assert at_once[-1].record == spread[-1].record
    assert [one for update in at_once for one in update.history] == [one for update in spread for one in update.history]
    assert finals(at_once) == finals(spread)


@st.composite
def mixed_batches(draw: Callable[..., Any]) -> list[list[GroupEvent]]:
    """Draw a group's batches with feedback between the records. Some batches are replayed."""
    events = draw(histories())
    cuts = sorted(draw(st.lists(st.integers(0, len(events)), max_size=5)))
    bounds = [0, *cuts, len(events)]
    batches: list[list[GroupEvent]] = []
    for start, end in pairwise(bounds):
        batch = list(events[start:end])
        if draw(st.booleans()):
            partitions = draw(st.none() | st.integers(0, 2))
            batch.append(sampled(draw(st.integers(0, 60_000)), orders=partitions))
        batches.append(batch)
        if draw(st.integers(0, 4)) == 0:
            batches.append(batch)
    return batches


@given(mixed_batches())
def test_each_position_and_strategy_gets_at_most_one_row(batches: list[list[GroupEvent]]) -> None:
    """Rows have the record position as key. A second verdict for a record would be a duplicate row."""
    evaluations = finals(updates(batches))
    rows = Counter((one.position, drift.strategy) for one in evaluations for drift in one.drifts)
    assert all(count == 1 for count in rows.values())
    assert [one.position for one in evaluations] == sorted(one.position for one in evaluations)


@given(mixed_batches())
def test_updates_and_states_survive_their_encodings(batches: list[list[GroupEvent]]) -> None:
    for update in updates(batches):
        assert decode_update(encode_update(update)) == update
        assert GROUP_CODEC.decode(*GROUP_CODEC.encode(update.record)) == update.record


def test_a_replayed_batch_leaves_no_history_and_no_verdict() -> None:
    batch = [written(5, 1, HOLDS_BOTH), KNOWN, written(6, 2, HOLDS_BOTH)]
    first, again = updates([batch, batch])
    assert len(first.history) == 2
    assert again.history == ()
    assert own_verdicts([again]) == [(6, MATCH)], "the replay adds only metadata, which was known late"
    assert again.record.snapshot.totals == first.record.snapshot.totals


@given(mixed_batches(), st.data())
def test_an_external_fact_that_is_sent_twice_counts_once(batches: list[list[GroupEvent]], data: st.DataObject) -> None:
    """A fact without effect is sent again after some time. On a busy machine, one batch can contain both."""
    offsets = sorted(
        {one.position.offsets_topic_offset for batch in batches for one in batch if isinstance(one, LogEvent)}
    )
    facts = st.builds(GroupVanished, st.sampled_from(offsets), st.just(90)) | st.builds(
        SkipSettled, st.sampled_from(offsets), st.booleans()
    )
    more = [data.draw(st.lists(facts, max_size=2)) if offsets else [] for _ in batches]
    once = [[*batch, *drawn] for batch, drawn in zip(batches, more, strict=True)]
    twice = [[*batch, *(one for one in batch if isinstance(one, ExternalFact))] for batch in once]
    assert updates(twice) == updates(once)


@pytest.mark.parametrize(
    "facts",
    [
        pytest.param([GroupVanished(5, 90)] * 2, id="sent again while a slow batch delayed it"),
        pytest.param([GroupVanished(5, 90), KNOWN, GroupVanished(5, 90)], id="sent again after a different fact"),
        pytest.param([GroupVanished(5, 80), GroupVanished(5, 90)], id="found again by a later listing"),
    ],
)
def test_an_end_without_a_record_is_reported_once(facts: list[GroupEvent]) -> None:
    """A later listing finds the same end with a different time."""
    _, at_once = updates([[written(5, 1)], facts])
    assert [one.state for one in at_once.history] == [GONE]
    one_by_one = updates([[written(5, 1)], *([fact] for fact in facts)])
    assert [one.state for update in one_by_one[1:] for one in update.history] == [GONE]


GROWN = OwnPartitions((50, 60))
EARLIER, HOME, FOREIGN = 12, 42, 13
"""The partitions of my-group by both counts, and a partition that is not its own by either count."""


def in_partition(offsets_topic_partition: int, *events: GroupEvent) -> list[LogEvent]:
    """Return the records in this partition, with the same offsets."""
    records = [event for event in events if isinstance(event, LogEvent)]
    return [
        replace(event, position=replace(event.position, offsets_topic_partition=offsets_topic_partition))
        for event in records
    ]


def test_after_a_change_of_the_partition_count_a_group_continues_in_its_new_partition() -> None:
    """Restarted brokers write to the new partition, where the group starts again. Others write to the old one.

    Later timeouts in the earlier partition are about the old group. They must not empty the new one.
    """
    earlier = in_partition(EARLIER, written(900, 40), written(901, 41))
    home = in_partition(HOME, written(5, 1), written(6, 2))
    dying = in_partition(EARLIER, emptied(902, 42), tombstoned(903))
    for batches in ([[*home, *earlier, *dying]], [earlier, [*dying, *home]], [earlier, home, dying], [home, earlier]):
        record = GroupState(GroupSnapshot("my-group"))
        for batch in batches:
            record = apply_batch(record, batch, STRATEGIES, own_partitions=GROWN).record
        assert record.snapshot.position == Position(HOME, 6, 6_000)
        assert (record.snapshot.generation_id, record.snapshot.state) == (2, "Stable")


def test_a_group_that_moves_to_a_different_partition_is_created_again() -> None:
    """Its members and partitions are not compared with the earlier ones, and nothing is counted twice."""
    record = GroupState(GroupSnapshot("my-group"))
    moved = apply_batch(
        record,
        [*in_partition(EARLIER, written(900, 40), written(901, 41)), *in_partition(HOME, written(5, 42))],
        STRATEGIES,
        own_partitions=GROWN,
    )
    assert [one.rebalance.kind for one in moved.rebalances] == ["first_seen", "rebalance", "created"]
    again = apply_batch(moved.record, in_partition(HOME, written(5, 42)), STRATEGIES, own_partitions=GROWN)
    assert (again.history, again.rebalances) == ((), ())


def test_a_group_without_a_record_in_its_new_partition_stays_in_the_old_one() -> None:
    """The brokers have not restarted yet, or no member has used the group since."""
    record = GroupState(GroupSnapshot("my-group"))
    for offsets_topic_partition, event in (
        (EARLIER, written(900, 40)),
        (FOREIGN, written(999, 7)),
        (EARLIER, written(901, 41)),
    ):
        record = apply_batch(
            record, in_partition(offsets_topic_partition, event), STRATEGIES, own_partitions=GROWN
        ).record
    assert (record.snapshot.position, record.snapshot.generation_id) == (Position(EARLIER, 901, 901_000), 41)


def test_a_storm_is_evaluated_at_its_end_but_every_record_is_kept() -> None:
    """Strimzi 3225: a generation every few milliseconds. Old verdicts would come too late.

    The skipped generations had no row in `assignment_drift`, and nothing explained the missing rows.
    """
    known = updates([[written(0, 0, HOLDS_BOTH)], [sampled(0, orders=2)]])[-1].record
    storm = [written(offset, offset, HOLDS_BOTH) for offset in range(1, 201)]
    (update,) = updates([storm], known)
    assert len(update.history) == 200
    skipped = 200 - EVALUATED_RECORDS_PER_BATCH
    assert own_verdicts([update]) == [(offset, UNKNOWN if offset <= skipped else MATCH) for offset in range(1, 201)]
    reasons = [tuple(drift.reason for drift in one.drifts) for one in update.evaluations]
    assert reasons == [(TOO_MANY_RECORDS,)] * skipped + [("", "")] * EVALUATED_RECORDS_PER_BATCH


@pytest.mark.parametrize(
    "events",
    [
        [written(offset, 1, HOLDS_BOTH) for offset in range(1, 101)],
        [*formed(0), *(target_epoch(offset) for offset in range(5, 101))],
    ],
    ids=["classic", "KIP-848"],
)
def test_a_generation_with_many_records_in_one_batch_gets_a_verdict(events: list[GroupEvent]) -> None:
    """The missing verdict on an earlier record of the same generation does not apply to the later records."""
    evaluation = updates([events, [NAMED]])[-1].record.evaluation
    assert evaluation is not None
    assert evaluation.is_complete
    assert all(drift.reason != TOO_MANY_RECORDS for drift in evaluation.drifts)


# The totals of a deleted group are kept for a week. Then the whole group is removed.

DEAD_RECORD = updates([[written(5, 1), tombstoned(6)]])[-1].record


def test_groups_deleted_for_a_week_are_removed() -> None:
    update = apply_batch(DEAD_RECORD, [GroupForgotten()], STRATEGIES)
    assert update.forgotten
    assert update.history == ()


def test_a_group_that_returned_is_not_removed() -> None:
    for events in ([GroupForgotten(), written(7, 1)], [written(7, 1), GroupForgotten()]):
        update = apply_batch(DEAD_RECORD, events, STRATEGIES)
        assert not update.forgotten
        assert update.record.snapshot.totals.incarnations == 2


def test_a_living_group_is_not_removed() -> None:
    alive = GroupState(advanced([written(5, 1)]))
    assert not apply_batch(alive, [GroupForgotten()], STRATEGIES).forgotten


# Snapshots with unnamed topic ids wait for names. Waiting does not change their order or content.


def reported_states(group_updates: Iterable[GroupUpdate]) -> list[tuple[int, str]]:
    """Return (log offset, state) of the snapshots that became rows."""
    return [
        (snapshot.position.offsets_topic_offset, snapshot.state)
        for update in group_updates
        for snapshot in update.history
        if snapshot.position
    ]


@pytest.mark.parametrize(
    ("batches", "rows", "why"),
    [
        (
            [formed(0)],
            [(1, "Assigning")],
            "no partition is assigned in the first epoch; later snapshots have ids without names",
        ),
        ([formed(0), [NAMED]], [(1, "Assigning"), (3, "Reconciling"), (4, "Stable")], "the names arrive"),
        ([[NAMED, *formed(0)]], [(1, "Assigning")], "names of topics without a subscriber are not kept"),
        (
            [formed(0), [tombstoned(5)], [NAMED]],
            [(1, "Assigning"), (3, "Reconciling"), (4, "Stable"), (5, "Dead")],
            "a row with names waits for an earlier row without names: rows are in log order",
        ),
        (
            [formed(0), [NAMED], [joined(5, "n"), epoch(6, 4)]],
            [(1, "Assigning"), (3, "Reconciling"), (4, "Stable"), (6, "Assigning")],
            "known names are used for later rows",
        ),
    ],
)
def test_rows_wait_for_the_names_of_topics(
    batches: list[list[GroupEvent]], rows: list[tuple[int, str]], why: str
) -> None:
    assert reported_states(updates(batches)) == rows, why


def test_a_row_that_waited_contains_the_names() -> None:
    *_, last = updates([formed(0), [NAMED]])
    assert [snapshot.modern.topic_names for snapshot in last.history if snapshot.modern] == [{"id": "orders"}] * 2
    assert last.record.pending == ()


def test_waiting_rows_are_limited_and_none_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that does not answer for an hour must not grow the state. The group has one member."""
    monkeypatch.setattr(update_of_group, "PENDING_MEMBERS", 8)
    restless = [event for number in range(40) for event in (target(5 + 2 * number), target_epoch(6 + 2 * number))]
    (update,) = updates([[*formed(0), *restless]])
    assert len(update.record.pending) == 8
    assert len(update.history) + 8 == 3 + 40


def test_targets_of_an_epoch_are_evaluated_once_however_long_members_move() -> None:
    group_updates = updates([formed(0), [NAMED], [*left(5), epoch(8, 4)]])
    states = [
        (evaluation.position.offsets_topic_offset, evaluation.drifts[0].verdict) for evaluation in finals(group_updates)
    ]
    assert states == [(1, "rebalancing"), (3, UNKNOWN)]
    assert group_updates[-1].record.evaluation is None, "the group has no members any more"


def test_a_group_without_targets_for_its_epoch_is_rebalancing() -> None:
    group_updates = updates([formed(0), [NAMED], [joined(5, "n"), epoch(6, 4)]])
    assert group_updates[-2].record.evaluation is not None
    evaluation = group_updates[-1].record.evaluation
    assert evaluation is not None
    assert [drift.verdict for drift in evaluation.drifts] == ["rebalancing"], (
        "the verdict of the earlier epoch is not used"
    )
