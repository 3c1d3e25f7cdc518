"""Facts handed back: found missing by comparison, so that one lost on its way is found missing again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine.partition_state import PartitionSnapshot
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.rebalances.skips import decide_skips, failed_rebalances, log_was_whole, settlements
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


def asked(snapshot: GroupSnapshot, sample: ClusterSample = SAMPLE, pending: Sequence[GroupSnapshot] = ()) -> object:
    """Return what is handed back where nothing of the log is missing."""
    return pending_facts(snapshot, sample, decide_skips({}, [snapshot], {0: PARTITION_STATE}), pending)


def whole(offsets_topic_offset: int, generation_id: int) -> GroupEvent:
    """Return a generation in which `m` has both partitions of `orders`."""
    return written(offsets_topic_offset, generation_id, [member("m", {"orders": [0, 1]})])


IDENTIFIED = TopicMetadata(2, NOW_MS, topic_id="id")


@pytest.mark.parametrize(
    ("events", "facts", "why"),
    [
        ([], (), "a group nobody wrote of yet"),
        ([written(10, 1)], (TopicsSampled({"orders": ORDERS}),), "a topic never heard of"),
        ([written(10, 1, [member("m", topics=["unsampled"])])], (), "nobody can tell of a topic that was not sampled"),
        (
            [written(10, 1, [member("m", topics=["orders", "gone", "unsampled"])])],
            (TopicsSampled({"gone": GONE, "orders": ORDERS}),),
            "what can be told is told, the absence of a topic too",
        ),
        ([whole(10, 1), sampled(5, orders=2)], (), "known, and the same"),
        (
            [written(10, 1), sampled(5, orders=2)],
            (TopicsSampled({"orders": ORDERS}),),
            "known, and nobody was given anything of it: it may have been deleted before the record",
        ),
        ([whole(10, 1), sampled(5, orders=3)], (TopicsSampled({"orders": ORDERS}),), "the count has changed"),
        (
            [written(10, 1, [member("m", {"orders": [0, 4]})]), sampled(5, orders=2)],
            (TopicsSampled({"orders": ORDERS}),),
            "the leader knew more partitions than the old sample: a later one settles it",
        ),
        ([written(10, 1), emptied(11, 2)], (), "an empty group subscribes to nothing"),
        (formed(6), (TopicsSampled({"orders": IDENTIFIED}),), "records of a KIP-848 group name topics by id only"),
        (
            [*formed(6), TopicsSampled({"orders": TopicMetadata(2, 5, topic_id="older")})],
            (TopicsSampled({"orders": IDENTIFIED}),),
            "the topic was deleted and created anew since",
        ),
        ([*formed(6), TopicsSampled({"orders": IDENTIFIED})], (), "named"),
        (
            [written(10, 1, [member("m", rack_id="r1")])],
            (TopicsSampled({"orders": TopicMetadata(2, NOW_MS, RACKS)}),),
            "racks go where a member names its own (KIP-881)",
        ),
        ([whole(10, 1), whole(20, 1), sampled(5, orders=2)], (), "no number was skipped"),
        (
            [whole(10, 1), whole(20, 3), sampled(5, orders=2)],
            (SkipSettled(20, log_was_whole=True),),
            "a skipped number on a whole stretch",
        ),
        (
            [written(10, 1), written(20, 3), tombstoned(30)],
            (SkipSettled(20, log_was_whole=True),),
            "the dead are owed an answer too",
        ),
    ],
)
def test_a_group_awaits_what_it_does_not_know_and_somebody_does(
    events: list[GroupEvent], facts: tuple[ExternalFact, ...], why: str
) -> None:
    assert asked(advanced(events)) == facts, why


@pytest.mark.parametrize("end", [[tombstoned(9)], [*left(9), epoch(12, 4)]], ids=["deleted", "empty"])
def test_names_are_asked_for_as_long_as_a_row_waits_for_them_also_when_the_group_is_over(end: list[GroupEvent]) -> None:
    """A console consumer that comes and goes within a second leaves rows; they ought to name its topics."""
    waiting = advanced(formed(4))
    gone = advanced(end, waiting)
    assert asked(gone, pending=[waiting]) == (TopicsSampled({"orders": IDENTIFIED}),)
    assert asked(gone, pending=[advanced([TopicsSampled({"orders": IDENTIFIED})], waiting)]) == ()


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
def test_once_handed_back_nothing_is_awaited_any_more(events: list[GroupEvent]) -> None:
    """Level-triggered: the same comparison that finds a fact missing finds it there; otherwise it is sent for ever."""
    snapshot = advanced(events)
    facts = asked(snapshot)
    assert facts != ()
    assert asked(snapshot) == facts, "lost on the way, found missing again"
    assert asked(advanced(facts, snapshot)) == ()


@pytest.mark.parametrize(
    ("age_ms", "forgotten"), [(0, False), (FORGET_AFTER_MS, False), (FORGET_AFTER_MS + 1, True), (-1, False)]
)
def test_a_group_dead_for_a_week_is_forgotten(age_ms: int, forgotten: bool) -> None:
    dead = advanced([written(10, 1), tombstoned(11)])
    sample = ClusterSample(11 * SECOND_MS + age_ms)
    assert asked(dead, sample) == ((GroupForgotten(),) if forgotten else ())


SKIPPING = advanced([whole(10, 1), whole(20, 4)])


@pytest.mark.parametrize(
    ("last_missing", "whole", "why"),
    [
        (-1, True, "nothing was ever missing"),
        (9, True, "what is missing lies before"),
        (11, False, "the first record of the stretch is missing"),
        (19, False, "the last one"),
        (10, False, "the group's own record: never asked, and no proof"),
        (35, False, "missing behind it: the lane remembers only the highest, so what was before is not known"),
    ],
)
def test_only_a_stretch_that_was_read_whole_proves_a_failure(last_missing: int, whole: bool, why: str) -> None:
    partition_state = PartitionSnapshot(0, last_offset=50, last_missing_offset=last_missing)
    (skip,) = SKIPPING.unsettled_skips
    assert log_was_whole(skip, partition_state) == whole, why
    decisions = decide_skips({}, [SKIPPING], {0: partition_state})
    assert failed_rebalances(SKIPPING, decisions) == (2 if whole else 0)
    assert settlements(SKIPPING, decisions) == (SkipSettled(20, log_was_whole=whole),)


def test_what_was_decided_once_stands_whatever_is_missing_later() -> None:
    """Defect 8: a transaction marker behind a failed rebalance made the table's counter fall from 1 to 0."""
    before = decide_skips({}, [SKIPPING], {0: PARTITION_STATE})
    holed_since = PartitionSnapshot(0, last_offset=60, last_missing_offset=55)
    assert decide_skips(before, [SKIPPING], {0: holed_since}) == before == {("g", 20): True}
    assert decide_skips({}, [SKIPPING], {0: holed_since}) == {("g", 20): False}, (
        "seen for the first time, it is not proven"
    )
    assert decide_skips(before, [whole_log()], {0: PARTITION_STATE}) == {}, "settled, it need not be remembered"


def whole_log() -> GroupSnapshot:
    return advanced([SkipSettled(20, log_was_whole=True)], SKIPPING)


def test_without_its_lane_a_skip_is_not_settled() -> None:
    known = advanced([sampled(5, orders=2)], SKIPPING)
    assert pending_facts(known, SAMPLE, decide_skips({}, [known], {})) == ()
    assert pending_facts(known, SAMPLE, decide_skips({}, [known], {0: HOLED})) == (
        SkipSettled(20, log_was_whole=False),
    )


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 9)), max_size=8, unique_by=lambda one: one[0]))
def test_settling_by_the_lane_counts_what_the_rows_called_proven(steps: list[tuple[int, int]]) -> None:
    """A row shows the proven failures before their settlement: the total after it must be the same."""
    snapshot = advanced(written(offset, generation) for offset, generation in sorted(steps))
    for partition_state in (PARTITION_STATE, HOLED):
        decisions = decide_skips({}, [snapshot], {0: partition_state})
        settled = advanced(settlements(snapshot, decisions), snapshot)
        assert settled.totals.rebalances_failed == failed_rebalances(snapshot, decisions)
        assert settled.unsettled_skips == ()
