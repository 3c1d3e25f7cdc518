"""Tests of stuck groups and stuck members: one table per rule, and each row has its reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.conditions.silence import (
    SILENT_GROUP,
    STUCK_REBALANCE,
    GroupCommits,
    OwnedPartitions,
    PartitionCommits,
    is_silent,
    silence_condition,
    silent_static_owners,
)
from streaming.evaluation.rebalances.condition_detectors import Limits
from tests.streaming.evaluation.silences import MINUTE_MS, NOW_MS, Commits, Ends, busy, silence

LIMITS = Limits()
AT, OTHER = ("orders", 0), ("orders", 1)
IDLE_THEN_A_RECORD = [*[100] * 30, 101]


@pytest.mark.parametrize(
    ("committed", "ends", "limits", "waits", "why"),
    [
        (100, busy(), LIMITS, True, "the group is 20 minutes behind, and records arrive"),
        (300, busy(), LIMITS, False, "no record is left to read"),
        (270, busy(), LIMITS, False, "the group is three minutes behind"),
        (100, IDLE_THEN_A_RECORD, LIMITS, False, "the first record after a quiet half hour is a minute old"),
        (100, [*busy(20), *[200] * 10], LIMITS, False, "a hundred records wait, but their producer stopped"),
        (
            299,
            [*[299] * 20, *[300] * 11],
            Limits(allowed_lag=1),
            False,
            "the offset is a transaction marker, which no consumer receives",
        ),
        (100, busy(), Limits(allowed_lag=250), False, "this lag is allowed"),
        (100, busy(), Limits(stuck_after_seconds=1300), False, "22 minutes are allowed"),
        (
            0,
            [500, 600, 700, 800],
            LIMITS,
            None,
            "sampled for three minutes only: the age of the next record is unknown",
        ),
        (400, busy(), LIMITS, None, "the topic was recreated, so the lag is unknown"),
    ],
)
def test_when_records_wait(committed: int, ends: Sequence[int], limits: Limits, waits: bool | None, why: str) -> None:
    """Rule 10: `lag_seconds` gives the age of the next record. Growth alone would make an idle group silent."""
    group = silence({("g", *AT): (committed, 20)}, {AT: ends}, limits).by_group()["g"]
    assert group.wait is waits, why
    assert (group.partitions, group.last_ms) == (1, NOW_MS - 20 * MINUTE_MS)


def test_a_group_waits_if_any_of_its_partitions_waits() -> None:
    commits = {("g", *AT): (300, 1), ("g", *OTHER): (100, 9), ("g", "unheard", 0): (5, 3), ("h", *AT): (300, 1)}
    found = silence(commits, {AT: busy(), OTHER: busy()}).by_group()
    assert found == {
        "g": GroupCommits(NOW_MS - MINUTE_MS, 3, wait=True, wait_seconds=1_200.0),
        "h": GroupCommits(NOW_MS - MINUTE_MS, 1, wait=False),
    }


def test_a_cluster_without_commits_has_no_silent_groups() -> None:
    nothing = silence({}, {})
    assert (nothing.by_group(), nothing.groups_with_a_silent_partition(), nothing.of_groups([])) == (
        {},
        frozenset(),
        {},
    )
    assert nothing.growing_rows([]) == nothing.growing_rows([AT]) == {}


@given(
    st.dictionaries(
        st.tuples(st.sampled_from("gh"), st.just("orders"), st.integers(0, 3)),
        st.tuples(st.integers(0, 320), st.integers(0, 30)),
    ),
    st.dictionaries(
        st.tuples(st.just("orders"), st.integers(0, 3)),
        st.sampled_from([busy(), IDLE_THEN_A_RECORD, [500, 600, 700, 800]]),
    ),
)
def test_results_for_many_groups_equal_results_for_each_partition(commits: Commits, ends: Ends) -> None:
    """Evaluating many groups at once gives the same result as one by one."""
    at_once = silence(commits, ends)
    alone = {key: silence({key: commit}, ends) for key, commit in commits.items()}
    waits = {key: one.by_group()[key[0]].wait for key, one in alone.items()}
    for group_id, group in at_once.by_group().items():
        of_group = [wait for key, wait in waits.items() if key[0] == group_id]
        assert group.wait is (True if True in of_group else (None if None in of_group else False))
    assert at_once.groups_with_a_silent_partition() == {
        group_id for one in alone.values() for group_id in one.groups_with_a_silent_partition()
    }
    for group_id, by_partition in at_once.of_groups("gh").items():
        assert by_partition.waiting == {key[1:] for key, wait in waits.items() if key[0] == group_id and wait}
        assert by_partition.last_ms.keys() == {key[1:] for key in commits if key[0] == group_id}


def commits_of(minutes_ago: float, wait: bool | None) -> GroupCommits:
    """Return a group's commits. The last commit is this number of minutes ago."""
    return GroupCommits(int(NOW_MS - minutes_ago * MINUTE_MS), 2, wait)


@pytest.mark.parametrize(
    ("members", "commits", "silent", "why"),
    [
        (3, commits_of(6, wait=True), True, "silent while records wait"),
        (3, commits_of(6, wait=False), False, "nothing to commit"),
        (3, commits_of(4, wait=True), False, "the silence is short: one or all partitions are slow"),
        (0, commits_of(60, wait=True), False, "the group has no member that could commit"),
        (0, None, False, "the group has neither members nor commits"),
        (3, None, None, "the group never committed: it may keep its offsets elsewhere"),
        (3, commits_of(6, wait=None), None, "end offsets are unknown"),
    ],
)
def test_a_silent_group(members: int, commits: GroupCommits | None, silent: bool | None, why: str) -> None:
    """Rule 11: Redpanda 3300, PreparingRebalance without an end. No record shows it, only the silence."""
    assert is_silent(members, commits, NOW_MS, LIMITS) is silent, why


@pytest.mark.parametrize(
    ("silent", "state", "minutes", "condition", "why"),
    [
        (True, None, None, STUCK_REBALANCE, "no listing reports its state, so only the silence is known"),
        (
            True,
            "PreparingRebalance",
            1,
            STUCK_REBALANCE,
            "the group rebalances, perhaps repeatedly, and does not finish",
        ),
        (True, "Stable", None, SILENT_GROUP, "the coordinator reports no rebalance, so the members hang"),
        (True, "Reconciling", None, SILENT_GROUP, "KIP-848 members continue to work while others reconcile"),
        (False, "PreparingRebalance", 6, STUCK_REBALANCE, "listed in this state for longer than a rebalance may take"),
        (None, "CompletingRebalance", 6, STUCK_REBALANCE, "the state is enough, whatever the group commits"),
        (False, "PreparingRebalance", 5, None, "listed for exactly the time that a rebalance may take"),
        (None, "Stable", None, None, "an unknown silence is not a condition"),
        (False, "Stable", None, None, "no problem"),
    ],
)
def test_a_stuck_rebalance_is_distinguished_from_members_that_hang(
    silent: bool | None, state: str | None, minutes: int | None, condition: str | None, why: str
) -> None:
    """Rules 12 and 13: an alert with the wrong cause sends the engineer to the wrong place."""
    rebalancing_ms = None if minutes is None else minutes * MINUTE_MS
    assert silence_condition(silent, state, rebalancing_ms, LIMITS) == condition, why


OWNED = {"pod-0": (AT,), "pod-1": (OTHER,)}
LONG_AGO, JUST_NOW = NOW_MS - 60 * MINUTE_MS, NOW_MS - MINUTE_MS
BOTH = frozenset({AT, OTHER})


@pytest.mark.parametrize(
    ("since_ms", "commits", "silent", "why"),
    [
        (
            LONG_AGO,
            PartitionCommits({OTHER: JUST_NOW}, BOTH),
            ("pod-0",),
            "PostHog 65809: the member is ready but consumes nothing",
        ),
        (
            LONG_AGO,
            PartitionCommits({AT: LONG_AGO - 1, OTHER: JUST_NOW}, BOTH),
            ("pod-0",),
            "only the previous owner committed",
        ),
        (LONG_AGO, PartitionCommits({AT: JUST_NOW, OTHER: JUST_NOW}, BOTH), (), "both commit"),
        (LONG_AGO, PartitionCommits({OTHER: JUST_NOW}, {OTHER}), (), "the member has nothing to commit"),
        (
            LONG_AGO,
            PartitionCommits({OTHER: LONG_AGO}, BOTH),
            (),
            "all members are silent: the whole group is stuck or idle",
        ),
        (JUST_NOW, PartitionCommits({OTHER: JUST_NOW}, BOTH), (), "the member got its partition one minute ago"),
        (LONG_AGO, PartitionCommits({}, BOTH), (), "the group has no commits"),
    ],
)
def test_static_members_that_own_partitions_and_never_commit(
    since_ms: int, commits: PartitionCommits, silent: Sequence[str], why: str
) -> None:
    """Rule 14."""
    assert silent_static_owners(OwnedPartitions(OWNED, since_ms), commits, NOW_MS, LIMITS) == silent, why


@pytest.mark.parametrize(
    ("ends", "owned_minutes", "waits", "why"),
    [
        (busy(), 20, True, "records arrived all the time, and no member ever committed"),
        (busy(), 4, False, "the member got the partition four minutes ago"),
        (IDLE_THEN_A_RECORD, 30, False, "the only record has just arrived"),
        ([*busy(20), *[200] * 10], 30, False, "no record arrives any more"),
        ([*[7] * 26, 8, 9, 10, 11, 12], 30, False, "records arrived only within the time that a rebalance may take"),
    ],
)
def test_records_of_a_partition_that_was_never_committed(
    ends: Sequence[int], owned_minutes: int, waits: bool, why: str
) -> None:
    """Rule 10, last sentence: without a commit the lag is unknown."""
    evaluation = silence({}, {AT: ends})
    rows = evaluation.growing_rows([AT, ("unheard", 3)])
    found = AT in rows and evaluation.waits_since(rows[AT], NOW_MS - owned_minutes * MINUTE_MS)
    assert found is waits, why
