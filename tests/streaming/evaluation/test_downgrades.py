"""Tests of the verdict after a downgrade of a KIP-848 group to the classic protocol."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from assignors import AS_JAVA_LEADER
from streaming.evaluation.assignment.drift import DRIFT, NOT_EVALUATED, UNKNOWN
from streaming.evaluation.group_update import EVALUATED_RECORDS_PER_BATCH, GroupState, apply_batch
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import CONSUMER, GroupEvent, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot, Resume
from tests.streaming.groups import (
    SECOND_MS,
    current,
    epoch,
    joined,
    member,
    modern_member,
    sampled,
    target,
    target_epoch,
    tombstoned,
    written,
)

STRATEGIES = [AS_JAVA_LEADER["range"], AS_JAVA_LEADER["roundrobin"]]
A, N = {"orders": [0, 3]}, {"orders": [1, 2]}
UNIFORM = modern_member(server_assignor="uniform")
STATIC = modern_member(instance_id="pod-0", server_assignor="uniform")
NAMED = TopicsSampled({"orders": TopicMetadata(4, SECOND_MS, topic_id="id")})
KIP_848 = [
    *(joined(0, "a", UNIFORM), joined(1, "n", STATIC), epoch(2), target(3, "a", (("id", (0, 3)),))),
    *(target(4, "n", (("id", (1, 2)),)), target_epoch(5)),
    *(current(6, "a", (("id", (0, 3)),)), current(7, "n", (("id", (1, 2)),))),
]
"""The coordinator assigned four partitions. The strategy `range` would assign them differently."""
TOMBSTONE = tombstoned(9, append_of=10)
REPLACED = written(10, 3, [member("a", A), member("c", N, instance_id="pod-0")])
"""A static member with the classic protocol replaces the last KIP-848 member. No rebalance follows."""
REJOINS = [
    written(11 + number, 3, [member("a", A), member(f"c{number}", N, instance_id="pod-0")])
    for number in range(EVALUATED_RECORDS_PER_BATCH + 10)
]


def verdict(batches: Sequence[Sequence[GroupEvent]]) -> Evaluation:
    state = GroupState(GroupSnapshot("g"))
    for batch in batches:
        state = apply_batch(state, batch, STRATEGIES).record
    assert state.evaluation is not None
    return state.evaluation


@pytest.mark.parametrize(
    ("batches", "why"),
    [
        ([KIP_848, [NAMED], [TOMBSTONE, REPLACED], [sampled(11_000, orders=4)]], "one append in one batch"),
        ([KIP_848, [NAMED], [TOMBSTONE], [REPLACED], [sampled(11_000, orders=4)]], "one append in two batches"),
        ([KIP_848, [TOMBSTONE, REPLACED], [NAMED], [sampled(11_000, orders=4)]], "a snapshot waits for topic names"),
        (
            [[replace(TOMBSTONE, group_type=CONSUMER), REPLACED], [sampled(11_000, orders=4)]],
            "all earlier records are compacted",
        ),
        (
            [
                [*KIP_848, TOMBSTONE, REPLACED],
                [written(11, 3, [member("a", A), member("c2", N, instance_id="pod-0")])],
                [sampled(12_000, orders=4)],
            ],
            "the static member rejoins before the sample",
        ),
        (
            [[*KIP_848, TOMBSTONE, REPLACED, *REJOINS], [sampled(99_000, orders=4)]],
            "more rejoins than verdicts in one batch",
        ),
    ],
)
def test_the_assignment_after_a_downgrade_without_a_rebalance_is_not_compared_with_the_strategy(
    batches: Sequence[Sequence[GroupEvent]], why: str
) -> None:
    """`GroupMetadataManager.convertToClassicGroup`: if only a static member was replaced, no rebalance follows.

    Before, the verdict was `drift` until the next rebalance, although no leader had computed the assignment.
    """
    shown = verdict(batches)
    assert shown.own is not None
    assert (shown.own.verdict, shown.own.reason) == (NOT_EVALUATED, "downgraded"), why
    assert shown.assigned_by is not None
    assert (shown.assigned_by.implementation, shown.assigned_by.evidence) == ("broker", ("downgrade",)), why


def test_the_verdict_after_a_rebuild_is_that_before_the_rebuild() -> None:
    """The rows of the downgrade are written already. The last row is the one of a rejoin in the same generation."""
    log = [*KIP_848, TOMBSTONE, REPLACED, REJOINS[0]]
    before = apply_batch(GroupState(GroupSnapshot("g")), log, STRATEGIES).record.snapshot
    assert before.position is not None
    resume = Resume(
        before.position.offsets_topic_offset, before.group_type, before.state, before.generation_id, before.totals, 0
    )
    state = GroupState(GroupSnapshot("g", resume=resume))
    for batch in (log, [sampled(99_000, orders=4)]):
        state = apply_batch(state, batch, STRATEGIES).record
    assert state.evaluation is not None
    assert state.evaluation.own is not None
    assert (state.evaluation.own.verdict, state.evaluation.own.reason) == (NOT_EVALUATED, "downgraded")


def test_the_verdict_after_a_downgrade_is_unknown_before_the_first_sample() -> None:
    own = verdict([KIP_848, [NAMED], [TOMBSTONE, REPLACED]]).own
    assert own is not None
    assert (own.verdict, own.reason) == (UNKNOWN, "metadata_missing")


def test_the_generation_after_a_downgrade_is_compared_with_the_strategy() -> None:
    after = [written(11, 4, [member("a", A), member("c", N, instance_id="pod-0")]), sampled(12_000, orders=4)]
    for batches in (
        [KIP_848, [TOMBSTONE, REPLACED], *[[one] for one in after]],
        [[*KIP_848, TOMBSTONE, REPLACED, *after]],
    ):
        own = verdict([*batches, [sampled(13_000, orders=4)]]).own
        assert own is not None
        assert own.verdict == DRIFT


def test_a_partition_without_an_owner_after_a_downgrade_breaks_a_common_rule() -> None:
    """The coordinator starts a rebalance, which assigns the partitions of the member that left."""
    own = verdict([[*KIP_848, TOMBSTONE, written(10, 3, [member("a", A)])], [sampled(11_000, orders=4)]]).own
    assert own is not None
    assert (own.verdict, own.violations) == (DRIFT, ("unassigned",))
