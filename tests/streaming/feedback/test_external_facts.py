"""Tests of feedback. Missing facts are found by comparing, so a lost fact is found again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.rebalances.failed_rebalances import (
    decide_skips,
    failed_rebalances,
    log_was_whole,
    settlements,
)
from streaming.events import ExternalFact, GroupEvent, GroupForgotten, SkipSettled, TopicMetadata, TopicsSampled
from streaming.feedback.external_facts import FORGET_AFTER_MS, pending_facts
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import (
    SECOND_MS,
    advanced,
    emptied,
    epoch,
    formed,
    left,
    member,
    sampled,
    tombstoned,
    written,
)

NOW_MS = 100 * SECOND_MS
PARTITION_STATE = PartitionSnapshot(0, last_offset=50)
HOLED = PartitionSnapshot(0, last_offset=50, last_missing_offset=15)
RACKS = (("r1", "r2"), ("r2", None))
SAMPLE = ClusterSample(NOW_MS, {"orders": TopicMetadata(2, NOW_MS, RACKS, "id"), "gone": TopicMetadata(None, NOW_MS)})
ORDERS = TopicMetadata(2, NOW_MS)
GONE = TopicMetadata(None, NOW_MS)


def facts_for(snapshot: GroupSnapshot, sample: ClusterSample = SAMPLE, pending: Sequence[GroupSnapshot] = ()) -> object:
    """Return the feedback for a group whose log is complete."""
    return pending_facts(snapshot, sample, decide_skips({}, [snapshot], {0: PARTITION_STATE}), pending)


def complete_generation(offsets_topic_offset: int, generation_id: int) -> GroupEvent:
    """Return a generation in which `m` has both partitions of `orders`."""
    return written(offsets_topic_offset, generation_id, [member("m", {"orders": [0, 1]})])


IDENTIFIED = TopicMetadata(2, NOW_MS, topic_id="id")


@pytest.mark.parametrize(
    ("events", "facts", "why"),
    [
        ([], (), "a group without records yet"),
        ([written(10, 1)], (TopicsSampled({"orders": ORDERS}),), "an unknown topic"),
        ([written(10, 1, [member("m", topics=["unsampled"])])], (), "a topic that was not sampled has no facts"),
        (
            [written(10, 1, [member("m", topics=["orders", "gone", "unsampled"])])],
            (TopicsSampled({"gone": GONE, "orders": ORDERS}),),
            "all known facts are sent, also the absence of a topic",
        ),
        ([complete_generation(10, 1), sampled(5, orders=2)], (), "known and unchanged"),
        (
            [written(10, 1), sampled(5, orders=2)],
            (TopicsSampled({"orders": ORDERS}),),
            "known, but no member got its partitions: it may have been deleted before the record",
        ),
        (
            [complete_generation(10, 1), sampled(5, orders=3)],
            (TopicsSampled({"orders": ORDERS}),),
            "the count has changed",
        ),
        (
            [written(10, 1, [member("m", {"orders": [0, 4]})]), sampled(5, orders=2)],
            (TopicsSampled({"orders": ORDERS}),),
            "the leader knew more partitions than the old sample: a later sample decides",
        ),
        ([written(10, 1), emptied(11, 2)], (), "an empty group subscribes to no topic"),
        (
            [written(10, 1), sampled(5, orders=3), emptied(11, 2)],
            (TopicsSampled({"orders": ORDERS}),),
            "an empty group keeps its topics",
        ),
        (formed(6), (TopicsSampled({"orders": IDENTIFIED}),), "records of a KIP-848 group contain only topic ids"),
        (
            [*formed(6), TopicsSampled({"orders": TopicMetadata(2, 5, topic_id="older")})],
            (TopicsSampled({"orders": IDENTIFIED}),),
            "the topic was recreated since",
        ),
        ([*formed(6), TopicsSampled({"orders": IDENTIFIED})], (), "named"),
        (
            [written(10, 1, [member("m", rack_id="r1")])],
            (TopicsSampled({"orders": TopicMetadata(2, NOW_MS, RACKS)}),),
            "racks are sent if a member has a rack (KIP-881)",
        ),
        (
            [complete_generation(10, 1), complete_generation(20, 1), sampled(5, orders=2)],
            (),
            "no generation number was skipped",
        ),
        (
            [complete_generation(10, 1), complete_generation(20, 3), sampled(5, orders=2)],
            (SkipSettled(20, log_was_whole=True),),
            "a skipped number, and no offset is missing",
        ),
        (
            [written(10, 1), written(20, 3), tombstoned(30)],
            (SkipSettled(20, log_was_whole=True),),
            "a deleted group gets its answer too",
        ),
    ],
)
def test_a_group_gets_the_facts_that_it_lacks_and_the_driver_has(
    events: list[GroupEvent], facts: tuple[ExternalFact, ...], why: str
) -> None:
    assert facts_for(advanced(events)) == facts, why


@pytest.mark.parametrize("rack_id", [None, "r1"])
def test_a_group_gets_no_new_facts_if_its_members_stop_and_return(rack_id: str | None) -> None:
    """Before, an empty group without racks got the racks, and its next members got the topics again without racks."""
    known = TopicsSampled({"orders": TopicMetadata(2, NOW_MS - 1, RACKS if rack_id else ())})
    members = [member("m", {"orders": [0, 1]}, rack_id=rack_id)]
    empty = advanced([written(10, 1, members), known, emptied(20, 2)])
    assert facts_for(empty) == ()
    assert facts_for(advanced([written(30, 3, members)], empty)) == ()


@pytest.mark.parametrize("end", [[tombstoned(9)], [*left(9), epoch(12, 4)]], ids=["deleted", "empty"])
def test_names_are_requested_as_long_as_a_row_waits_for_them_even_after_the_groups_end(end: list[GroupEvent]) -> None:
    """A console consumer that runs for a second leaves rows. The rows should have topic names."""
    waiting = advanced(formed(4))
    gone = advanced(end, waiting)
    assert facts_for(gone, pending=[waiting]) == (TopicsSampled({"orders": IDENTIFIED}),)
    assert facts_for(gone, pending=[advanced([TopicsSampled({"orders": IDENTIFIED})], waiting)]) == ()


def test_a_verdict_that_waits_for_racks_gets_one_sample_after_its_record() -> None:
    """The racks did not change, so the comparison with the state finds nothing to send."""
    record = written(10, 1, [member("m", {"orders": [0, 1]}, rack_id="r1")])
    known = advanced([record, TopicsSampled({"orders": TopicMetadata(2, 5, RACKS)})])
    assert pending_facts(known, SAMPLE, {}) == ()
    facts = pending_facts(known, SAMPLE, {}, is_verdict_complete=False)
    assert facts == (TopicsSampled({"orders": TopicMetadata(2, NOW_MS, RACKS)}),)
    later = replace(SAMPLE, topics={"orders": TopicMetadata(2, NOW_MS + 1, RACKS, "id")})
    assert pending_facts(advanced(facts, known), later, {}, is_verdict_complete=False) == ()


RACKED = [member("m", rack_id="r1")]


@pytest.mark.parametrize(
    ("earlier", "later", "fact", "why"),
    [
        (formed(4), [*left(9), tombstoned(12), written(13, 1)], IDENTIFIED, "the rows wait for topic ids"),
        (
            [*formed(4), tombstoned(9)],
            [written(13, 1, RACKED)],
            TopicMetadata(2, NOW_MS, RACKS, "id"),
            "the later group needs racks, the rows wait for topic ids",
        ),
    ],
)
def test_rows_get_their_names_if_a_classic_group_has_the_same_id_now(
    earlier: list[GroupEvent], later: list[GroupEvent], fact: TopicMetadata, why: str
) -> None:
    """Before, the sample of the classic group had no topic id and replaced the sample of the waiting rows."""
    waiting = advanced(earlier[:5])
    present = advanced(later, advanced(earlier))
    assert facts_for(present, pending=[waiting]) == (TopicsSampled({"orders": fact}),), why
    named = advanced([TopicsSampled({"orders": fact})], waiting)
    assert named.modern is not None
    assert not named.modern.unnamed_topic_ids()


@pytest.mark.parametrize(
    "events",
    [
        [written(10, 1)],
        [written(10, 1), written(20, 4), sampled(5, orders=3)],
        [written(10, 1, [member("m", topics=["orders", "gone"])])],
        [written(10, 1, [member("m", {"orders": [7]})])],
        [written(10, 1), written(20, 4), tombstoned(30)],
    ],
)
def test_after_its_feedback_nothing_is_pending(events: list[GroupEvent]) -> None:
    """Level-triggered: the comparison must find a fact that was sent. Otherwise it is sent without end."""
    snapshot = advanced(events)
    facts = facts_for(snapshot)
    assert facts != ()
    assert facts_for(snapshot) == facts, "a lost fact is found again"
    assert facts_for(advanced(facts, snapshot)) == ()


@pytest.mark.parametrize(
    ("age_ms", "forgotten"), [(0, False), (FORGET_AFTER_MS, False), (FORGET_AFTER_MS + 1, True), (-1, False)]
)
def test_a_group_that_was_deleted_a_week_ago_is_removed(age_ms: int, forgotten: bool) -> None:
    dead = advanced([written(10, 1), tombstoned(11)])
    now_ms = 11 * SECOND_MS + age_ms
    assert facts_for(dead, ClusterSample(now_ms, newest_record_ms=now_ms)) == ((GroupForgotten(),) if forgotten else ())


LATER = advanced([written(10, 1), sampled(NOW_MS + 3_600_000, orders=1)])
CORRECTED = (TopicsSampled({"orders": ORDERS}, is_time_corrected=True),)


@pytest.mark.parametrize(
    ("snapshot", "is_clock_known", "facts", "why"),
    [
        (LATER, True, CORRECTED, "the monitor's clock was ahead at the sample in the state"),
        (LATER, False, (), "the monitor's clock can be behind now"),
        (advanced([sampled(NOW_MS, orders=1)], LATER), True, CORRECTED, "an older sample does not replace a newer one"),
        (advanced(CORRECTED, LATER), True, (), "the state has the corrected sample"),
        (advanced([written(10, 1), sampled(NOW_MS, orders=2)]), True, (), "this is the last sample"),
        (advanced([written(10, 1), sampled(NOW_MS - 1, orders=2)]), True, (), "the usual case"),
    ],
)
def test_a_sample_from_the_future_is_replaced(
    snapshot: GroupSnapshot, is_clock_known: bool, facts: tuple[ExternalFact, ...], why: str
) -> None:
    """Before, a topic in the state did not change for six hours after a start with a clock six hours ahead."""
    sample = replace(SAMPLE, is_clock_known=is_clock_known)
    assert facts_for(snapshot, sample) == facts, why


EARLY_MS = 11 * SECOND_MS
LATE_MS = EARLY_MS + 2 * FORGET_AFTER_MS


@pytest.mark.parametrize(
    ("sampled_at_ms", "monitor_ms", "newest_record_ms", "deletion_time_ms", "why"),
    [
        (LATE_MS, LATE_MS, LATE_MS, LATE_MS, "old by all clocks"),
        (LATE_MS, EARLY_MS, LATE_MS, EARLY_MS, "the monitor's clock is behind, or the brokers' clocks are ahead"),
        (EARLY_MS, LATE_MS, LATE_MS, EARLY_MS, "the monitor's clock is ahead, and the clock of one broker too"),
        (LATE_MS, LATE_MS, EARLY_MS, EARLY_MS, "the monitor's clock is ahead, and the correction is not known yet"),
        (LATE_MS, LATE_MS, None, None, "the monitor has read no record since its start"),
    ],
)
def test_a_group_is_removed_only_if_it_is_old_by_every_clock(
    sampled_at_ms: int, monitor_ms: int, newest_record_ms: int | None, deletion_time_ms: int | None, why: str
) -> None:
    """After a start with a clock 100 days ahead, both clocks were the monitor's clock until a record arrived."""
    dead = advanced([written(10, 1), tombstoned(11)])
    correction_ms = sampled_at_ms - monitor_ms
    sample = ClusterSample(sampled_at_ms, clock_correction_ms=correction_ms, newest_record_ms=newest_record_ms)
    assert sample.deletion_time_ms == deletion_time_ms, why
    assert facts_for(dead, sample) == ((GroupForgotten(),) if deletion_time_ms == LATE_MS else ())


SKIPPING = advanced([complete_generation(10, 1), complete_generation(20, 4)])


@pytest.mark.parametrize(
    ("last_missing", "is_whole", "why"),
    [
        (-1, True, "no offset was ever missing"),
        (9, True, "the missing offset is before the skip"),
        (11, False, "the first record of the range is missing"),
        (19, False, "the last one"),
        (10, False, "the offset of the group's own record is never tested and proves nothing"),
        (35, False, "a later offset is missing: the state has only the highest one, so earlier ones are unknown"),
    ],
)
def test_only_a_completely_read_range_proves_a_failed_rebalance(last_missing: int, is_whole: bool, why: str) -> None:
    partition_state = PartitionSnapshot(0, last_offset=50, last_missing_offset=last_missing)
    (skip,) = SKIPPING.unsettled_skips
    assert log_was_whole(skip, partition_state) == is_whole, why
    decisions = decide_skips({}, [SKIPPING], {0: partition_state})
    assert failed_rebalances(SKIPPING, decisions) == (2 if is_whole else 0)
    assert settlements(SKIPPING, decisions) == (SkipSettled(20, log_was_whole=is_whole),)


def test_a_decision_stays_when_offsets_are_missing_later() -> None:
    """Before (defect 8), a transaction marker after a failed rebalance reduced the table's counter from 1 to 0."""
    before = decide_skips({}, [SKIPPING], {0: PARTITION_STATE})
    holed_since = PartitionSnapshot(0, last_offset=60, last_missing_offset=55)
    assert decide_skips(before, [SKIPPING], {0: holed_since}) == before == {("g", 20): True}
    assert decide_skips({}, [SKIPPING], {0: holed_since}) == {("g", 20): False}, "at the first time it is not proven"
    assert decide_skips(before, [group_with_settled_skip()], {0: PARTITION_STATE}) == {}, (
        "a settled skip need not be remembered"
    )


def group_with_settled_skip() -> GroupSnapshot:
    return advanced([SkipSettled(20, log_was_whole=True)], SKIPPING)


def test_without_its_partition_state_a_skip_is_not_settled() -> None:
    known = advanced([sampled(5, orders=2)], SKIPPING)
    assert pending_facts(known, SAMPLE, decide_skips({}, [known], {})) == ()
    assert pending_facts(known, SAMPLE, decide_skips({}, [known], {0: HOLED})) == (
        SkipSettled(20, log_was_whole=False),
    )


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8, unique_by=lambda one: one[0]))
def test_settled_skips_equal_the_failures_that_rows_called_proven(steps: list[tuple[int, int]]) -> None:
    """A row shows the proven failures before their settlement. The total after it must be the same."""
    snapshot = advanced(written(offset, generation) for offset, generation in sorted(steps))
    for partition_state in (PARTITION_STATE, HOLED):
        decisions = decide_skips({}, [snapshot], {0: partition_state})
        settled = advanced(settlements(snapshot, decisions), snapshot)
        assert settled.totals.rebalances_failed == failed_rebalances(snapshot, decisions)
        assert settled.unsettled_skips == ()
