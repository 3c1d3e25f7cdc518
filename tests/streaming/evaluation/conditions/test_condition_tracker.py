"""Tests of the conditions of all groups at one sample: start, continuation, end, and the low cost of quiet groups."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.evaluation.conditions.condition_tracker import (
    Condition,
    ConditionEvaluation,
    ConditionInputs,
    ConditionTracker,
)
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.evaluation.rebalances.rebalance_history import RebalanceHistory
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.events import GroupEvent, Position
from streaming.group.listing import GroupListing, ListedGroup, ListingGap
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from tests.streaming.evaluation.rebalances.test_condition_detectors import every_minute, restarts
from tests.streaming.evaluation.silences import MINUTE_MS, NOW_MS, Commits, Ends, busy, silence
from tests.streaming.groups import (
    advanced,
    current,
    formed,
    joined,
    member,
    metadata,
    target,
    target_epoch,
    tombstoned,
    written,
)
from tests.streaming.groups import epoch as epoch_written

LIMITS = Limits()
STORM = every_minute(5)


def record(name: str = "g", recent: Sequence[RebalanceSummary] = (), members: int = 1) -> GroupState:
    """Return a group that was formed long ago, with these rebalances in its history."""
    formed_once = [written(0, 1, [member(f"m{number}") for number in range(members)])]
    return GroupState(
        advanced(formed_once, GroupSnapshot(name)), rebalance_history=RebalanceHistory(recent=tuple(recent))
    )


def inputs(
    *records: GroupState,
    now_ms: int | None = NOW_MS,
    commits: Commits | None = None,
    ends: Ends | None = None,
    listed: Mapping[str, str | None] | None = None,
    rebalancing_minutes: Mapping[str, int] | None = None,
) -> ConditionInputs:
    """Return the inputs of one sample. Without `listed`, the listing of groups failed."""
    groups = {name: ListedGroup("classic", "consumer", state, 1) for name, state in (listed or {}).items()}
    return ConditionInputs(
        groups={one.snapshot.group_id: one for one in records},
        now_ms={} if now_ms is None else {0: now_ms},
        silence=silence(commits or {}, ends or {}),
        listing=None if listed is None else GroupListing(NOW_MS, groups),
        rebalancing_since_ms={
            name: NOW_MS - minutes * MINUTE_MS for name, minutes in (rebalancing_minutes or {}).items()
        },
    )


def names(evaluation: ConditionEvaluation, group_id: str = "g") -> set[str]:
    """Return the names of the active conditions of a group."""
    return {condition.name for condition in evaluation.active.get(group_id, ())}


def tracker_after(*samples: ConditionInputs) -> ConditionTracker:
    """Return a tracker that has evaluated and committed each of these inputs."""
    tracker = ConditionTracker(LIMITS)
    for sample in samples:
        tracker.commit(tracker.evaluate(sample))
    return tracker


def changes(evaluation: ConditionEvaluation) -> list[tuple[str, str, bool]]:
    """Return (group, condition, is active) of each change."""
    return [(change.group_id, change.condition.name, change.active) for change in evaluation.changes]


def test_a_condition_starts_once_continues_with_new_details_and_ends_once() -> None:
    """Rules 2 and 4."""
    tracker = ConditionTracker(LIMITS)
    begun = tracker.evaluate(inputs(record(recent=restarts(3))))
    assert changes(begun) == [("g", "rebalance_storm", True), ("g", "flapping_member", True)]
    (_, flapping) = begun.active["g"]
    assert flapping == Condition("flapping_member", NOW_MS, "member pod left or rejoined 3 times in 10 minutes")
    tracker.commit(begun)
    later = tracker.evaluate(inputs(record(recent=restarts(4)), now_ms=NOW_MS + 30_000))
    assert later.changes == ()
    assert later.active["g"][1].since_ms == NOW_MS, "the start time stays"
    assert "4 times" in later.active["g"][1].detail
    tracker.commit(later)
    ended = tracker.evaluate(inputs(record(recent=restarts(4)), now_ms=NOW_MS + 60 * MINUTE_MS))
    assert changes(ended) == [("g", "rebalance_storm", False), ("g", "flapping_member", False)]
    assert (ended.active, ended.known) == ({}, {})
    assert "4 times" in ended.changes[1].condition.detail, "the end is reported with the last detail"
    tracker.commit(ended)
    assert tracker.evaluate(inputs(record(recent=restarts(4)), now_ms=NOW_MS + 61 * MINUTE_MS)).changes == ()


def test_a_remembered_verdict_is_not_used_for_an_earlier_time() -> None:
    """If a clock goes back or a partition is read again, the window ends earlier than before."""
    stormy = record(recent=STORM)
    tracker = tracker_after(inputs(stormy, now_ms=NOW_MS + 60 * MINUTE_MS))
    assert names(tracker.evaluate(inputs(stormy))) == {"rebalance_storm"}


def test_an_uncommitted_change_is_found_again() -> None:
    """A row that could not be written is written at the next sample."""
    tracker = ConditionTracker(LIMITS)
    assert (
        tracker.evaluate(inputs(record(recent=STORM))).changes
        == tracker.evaluate(inputs(record(recent=STORM))).changes
        != ()
    )


@pytest.mark.parametrize(
    ("then", "shown", "changed", "why"),
    [
        (inputs(record(recent=STORM)), {"rebalance_storm"}, [], "the condition continues"),
        (
            inputs(record(recent=STORM), now_ms=None),
            set(),
            [],
            "its partition was not read yet, or an open transaction blocks it",
        ),
        (inputs(record()), set(), [("g", "rebalance_storm", False)], "the condition ends"),
        (inputs(), set(), [("g", "rebalance_storm", False)], "the group was removed from the state"),
        (
            inputs(
                GroupState(
                    advanced([written(0, 1), tombstoned(1)]), rebalance_history=RebalanceHistory(recent=tuple(STORM))
                )
            ),
            set(),
            [("g", "rebalance_storm", False)],
            "the group is deleted",
        ),
    ],
)
def test_a_condition_at_the_next_sample(
    then: ConditionInputs, shown: set[str], changed: list[tuple[str, str, bool]], why: str
) -> None:
    """Rules 1 and 2: an unknown condition does not end and is not shown."""
    tracker = tracker_after(inputs(record(recent=STORM)))
    evaluation = tracker.evaluate(then)
    assert (names(evaluation), changes(evaluation)) == (shown, changed), why


def test_a_condition_keeps_its_start_time_after_an_unknown_time() -> None:
    tracker = tracker_after(inputs(record(recent=STORM)), inputs(record(recent=STORM), now_ms=None))
    evaluation = tracker.evaluate(inputs(record(recent=STORM), now_ms=NOW_MS + 9_000))
    assert evaluation.changes == ()
    assert evaluation.active["g"][0].since_ms == NOW_MS


def test_a_restart_repeats_no_start_and_loses_no_end() -> None:
    """Rule 3: changes are computed from the last rows in the table."""
    tracker = ConditionTracker(LIMITS)
    last_rows = {
        ("g", "rebalance_storm"): Condition("rebalance_storm", 5, "9 rebalances in 10 minutes"),
        ("gone", "silent_group"): Condition("silent_group", 7, "no member committed for 9 minutes"),
    }
    tracker.restore(last_rows)
    evaluation = tracker.evaluate(inputs(record(recent=STORM)))
    assert evaluation.active["g"][0].since_ms == 5
    assert changes(evaluation) == [("gone", "silent_group", False)]
    assert evaluation.changes[0].read_up_to_ms is None


SILENT: Commits = {("g", "orders", 0): (100, 20)}
FED: Ends = {("orders", 0): busy()}


@pytest.mark.parametrize(
    ("condition_inputs", "found", "why"),
    [
        (inputs(record(), commits=SILENT, ends=FED), {"stuck_rebalance"}, "silent, and no listing contradicts it"),
        (inputs(record(), commits=SILENT, ends=FED, listed={"g": "Stable"}), {"silent_group"}, "listed as Stable"),
        (inputs(record(members=0), commits=SILENT, ends=FED), set(), "the group has no members"),
        (
            inputs(record(), commits=SILENT, ends=FED, listed={"g": "Empty"}),
            set(),
            "its coordinator reports no members",
        ),
        (
            inputs(record(), commits=SILENT, ends=FED, listed={"h": "Stable"}),
            set(),
            "the group may have been deleted without a record",
        ),
        (
            inputs(record(), commits=SILENT, ends=FED, now_ms=NOW_MS - 16 * MINUTE_MS),
            set(),
            "the log was not read up to this time",
        ),
        (inputs(record(), commits={("g", "orders", 0): (300, 20)}, ends=FED), set(), "all records are read"),
        (
            inputs(record(), listed={"g": "PreparingRebalance"}, rebalancing_minutes={"g": 6}),
            {"stuck_rebalance"},
            "listed in a rebalance, and it never committed",
        ),
        (
            inputs(record(), listed={"g": "PreparingRebalance"}, rebalancing_minutes={"g": 4}),
            set(),
            "listed in a rebalance for exactly the time that a rebalance may take",
        ),
    ],
)
def test_stuck_and_silent_groups(condition_inputs: ConditionInputs, found: set[str], why: str) -> None:
    """Rules 11 to 13 of `silence.py` for a sample."""
    assert names(ConditionTracker(LIMITS).evaluate(condition_inputs)) == found, why


@pytest.mark.parametrize(
    ("condition_inputs", "goes_on", "why"),
    [
        (inputs(record(), commits=SILENT, ends={}), True, "end offsets could not be sampled"),
        (
            inputs(record(), commits=SILENT, ends={("orders", 0): [500, 600]}),
            True,
            "end offsets were sampled for one minute only",
        ),
        (inputs(record()), True, "its commits are gone, so it is unknown whether the group works"),
        (
            inputs(record(), commits=SILENT, ends=FED, listed={"h": "Stable"}),
            True,
            "the listing does not contain the group, which may be deleted",
        ),
        (
            inputs(record(), commits={("g", "orders", 0): (300, 1)}, ends=FED, listed={"g": "Stable"}),
            False,
            "it commits",
        ),
    ],
)
def test_an_unknown_silence_does_not_end_the_condition(
    condition_inputs: ConditionInputs, goes_on: bool, why: str
) -> None:
    """Rule 2."""
    tracker = tracker_after(inputs(record(), commits=SILENT, ends=FED))
    evaluation = tracker.evaluate(condition_inputs)
    assert (("g", "stuck_rebalance") in evaluation.known) is goes_on, why
    assert names(evaluation) == set(), "an unknown condition is not shown"


@pytest.mark.parametrize(("state", "condition"), [("Stable", "silent_group"), (None, "stuck_rebalance")])
def test_a_silent_group_stays_silent_while_no_new_record_arrives(state: str | None, condition: str) -> None:
    """A topic got one record per ten minutes. A hanging group was silent for 5 minutes, then not silent for 5 minutes.

    So the alert, which waits for 5 minutes, never fired. Without new records, no silence starts.
    """
    quiet, listed = {("orders", 0): [*busy(20), *[200] * 10]}, {"g": state}
    without_new_records = inputs(record(), commits=SILENT, ends=quiet, listed=listed)
    assert names(ConditionTracker(LIMITS).evaluate(without_new_records)) == set()
    tracker = tracker_after(inputs(record(), commits=SILENT, ends=FED, listed=listed))
    for _ in range(2):
        evaluation = tracker.evaluate(without_new_records)
        assert [one.name for one in evaluation.active["g"]] == [condition]
        assert evaluation.active["g"][0].detail.startswith("no member committed for 20 minutes while records wait")
        assert "new records arrive" not in evaluation.active["g"][0].detail
        tracker.commit(evaluation)
    commits: Sequence[Commits] = ({("g", "orders", 0): (100, 1)}, {("g", "orders", 0): (200, 20)})
    for ended in commits:
        evaluation = tracker.evaluate(inputs(record(), commits=ended, ends=quiet, listed=listed))
        assert changes(evaluation) == [("g", condition, False)], "a commit, or all records are read"


def test_a_silent_group_that_enters_a_rebalance_stays_silent() -> None:
    """Without new records, `silent_group` became `stuck_rebalance` for one sample, and then nothing was active."""
    quiet = {("orders", 0): [*busy(20), *[200] * 10]}
    tracker = tracker_after(inputs(record(), commits=SILENT, ends=FED, listed={"g": "Stable"}))
    for state, condition in (
        ("Stable", "silent_group"),
        ("PreparingRebalance", "stuck_rebalance"),
        ("PreparingRebalance", "stuck_rebalance"),
        ("Stable", "silent_group"),
    ):
        evaluation = tracker.evaluate(inputs(record(), commits=SILENT, ends=quiet, listed={"g": state}))
        assert [one.name for one in evaluation.active["g"]] == [condition]
        tracker.commit(evaluation)


def test_conditions_of_a_group_whose_commits_are_refused_are_unknown() -> None:
    """Polling: the last description showed a partition without an owner, and its age grew with each poll."""
    silent = inputs(record(), commits=SILENT, ends=FED, listed={"g": "Stable"})
    refused = replace(silent, refused_groups={"g"})
    assert names(ConditionTracker(LIMITS).evaluate(refused)) == set(), "nothing starts"
    evaluation = tracker_after(silent).evaluate(refused)
    assert (names(evaluation), changes(evaluation)) == (set(), []), "nothing is shown, and nothing ends"


def test_an_incomplete_listing_does_not_end_a_stuck_rebalance() -> None:
    rebalancing = inputs(record(), listed={"g": "PreparingRebalance"}, rebalancing_minutes={"g": 6})
    partial = replace(
        inputs(record()), listing=GroupListing(NOW_MS, {}, (ListingGap(2, "coordinator_load_in_progress"),))
    )
    assert changes(tracker_after(rebalancing).evaluate(partial)) == []
    fresh = inputs(record(), commits={("g", "orders", 0): (300, 1)}, ends=FED, listed={"g": "Stable"})
    assert changes(tracker_after(rebalancing).evaluate(fresh)) == [("g", "stuck_rebalance", False)]


def static(*pods: ClassicMember, name: str = "g") -> GroupState:
    """Return a group of static members."""
    return GroupState(advanced([written(0, 1, pods)], GroupSnapshot(name)))


POD_0 = member("a", {"orders": [0]}, instance_id="pod-0")
POD_1 = member("b", {"orders": [1, 2]}, instance_id="pod-1")
THREE: Ends = {("orders", number): busy() for number in range(3)}
OTHERS_COMMIT: Commits = {("g", "orders", 1): (300, 1), ("g", "orders", 2): (300, 1)}


@pytest.mark.parametrize(
    ("commits", "ends", "detail", "why"),
    [
        (
            {**OTHERS_COMMIT, ("g", "orders", 0): (100, 20)},
            THREE,
            "static member pod-0 owns 1 partition and has not committed for 20 minutes while records wait",
            "it stopped committing",
        ),
        (
            OTHERS_COMMIT,
            THREE,
            "static member pod-0 owns 1 partition and has not committed for 100 minutes while records wait",
            "PostHog 65809: it has not committed since the last rebalance",
        ),
        (
            {("g", "orders", 0): (300, 1)},
            THREE,
            "static member pod-1 owns 2 partitions and has not committed for 100 minutes while records wait",
            "the member commits neither partition",
        ),
        ({**OTHERS_COMMIT, ("g", "orders", 0): (300, 20)}, THREE, None, "it has read all records"),
        (OTHERS_COMMIT, {**THREE, ("orders", 0): [0] * 31}, None, "its partition never had a record"),
        ({("g", "orders", 1): (300, 20), ("g", "orders", 0): (300, 1)}, THREE, None, "it commits one of its two"),
    ],
)
def test_a_silent_static_member_is_named(commits: Commits, ends: Ends, detail: str | None, why: str) -> None:
    """Rule 14 of `silence.py` for a sample."""
    pods = [POD_0, POD_1] if why != "it commits one of its two" else [member("a", {"orders": [0, 1]}, instance_id="p")]
    evaluation = ConditionTracker(LIMITS).evaluate(
        inputs(static(*pods), commits=commits, ends=ends, listed={"g": "Stable"})
    )
    details = [
        condition.detail for condition in evaluation.active.get("g", ()) if condition.name == "silent_static_member"
    ]
    assert details == ([] if detail is None else [detail]), why


GROWN: list[GroupEvent] = [
    *formed(0),
    joined(5, "n"),
    epoch_written(6, 4),
    target(7, "n", ()),
    target_epoch(8, 4),
    current(9, "n", (), 4, "UnreleasedPartitions"),
]


def test_a_member_that_does_not_reach_its_target_is_named_with_its_allowed_time() -> None:
    """Rule 16 of `reconciliation.py`. Both members are the same program on the same host."""
    modern = GroupState(advanced(GROWN))
    tracker = tracker_after(inputs(modern, now_ms=10_000))
    assert tracker.evaluate(inputs(modern, now_ms=300_000)).active == {}
    modern = GroupState(advanced([joined(299, "late")], modern.snapshot))
    evaluation = tracker.evaluate(inputs(modern, now_ms=7 * MINUTE_MS + 9_000))
    (condition,) = evaluation.active["g"]
    assert condition.name == "stuck_reconciliation"
    assert condition.detail == (
        "members client@127.0.0.1, client@127.0.0.1 have not reached the target assignment for at least 7 minutes"
        " (allowed: 5 minutes)"
    )
    arrived = GroupState(advanced([current(300, number=4), current(301, "n", (), 4)], modern.snapshot))
    tracker.commit(evaluation)
    assert changes(tracker.evaluate(inputs(arrived, now_ms=8 * MINUTE_MS))) == [("g", "stuck_reconciliation", False)]


def test_a_polled_group_is_evaluated_as_of_the_last_poll() -> None:
    """For polled groups, the snapshot and the read time both use partition -1."""
    snapshot = advanced([written(0, 1)])
    polled = GroupState(_at_poll(snapshot), rebalance_history=RebalanceHistory(recent=tuple(STORM)))
    condition_inputs = replace(inputs(polled), now_ms={-1: NOW_MS})
    assert names(ConditionTracker(LIMITS).evaluate(condition_inputs)) == {"rebalance_storm"}
    assert names(ConditionTracker(LIMITS).evaluate(replace(condition_inputs, now_ms={0: NOW_MS}))) == set(), (
        "the group was never polled"
    )


def _at_poll(snapshot: GroupSnapshot) -> GroupSnapshot:
    from msgspec.structs import replace as with_fields  # noqa: PLC0415 - structs and dataclasses each have their own

    return with_fields(snapshot, position=Position(-1, 5, 0))


RECENT = st.lists(st.sampled_from([0.5, 2, 4, 8, 12, 40]), max_size=7).map(
    lambda minutes: [one for at in sorted(minutes, reverse=True) for one in every_minute(1, start=at)]
)


@given(st.lists(st.dictionaries(st.sampled_from("gh"), RECENT), max_size=4), st.sets(st.integers(0, 3)))
def test_starts_and_ends_alternate_and_add_up_to_the_active_conditions(
    samples: list[dict[str, list[RebalanceSummary]]], unread: Iterable[int]
) -> None:
    """Replaying the rows of the table gives the active conditions of the last sample, also after unknown samples."""
    tracker, active_keys = ConditionTracker(LIMITS), set[tuple[str, str]]()
    for number, groups in enumerate(samples):
        records = [record(name, recent) for name, recent in groups.items()]
        evaluation = tracker.evaluate(inputs(*records, now_ms=None if number in unread else NOW_MS))
        for change in evaluation.changes:
            key = (change.group_id, change.condition.name)
            assert (key in active_keys) is not change.active, "no condition starts twice or ends twice"
            active_keys ^= {key}
        tracker.commit(evaluation)
        assert active_keys == set(evaluation.known)
        shown = {(group_id, one.name) for group_id, held in evaluation.active.items() for one in held}
        assert shown <= active_keys


def synthetic_groups(groups: int, restless: int) -> ConditionInputs:
    """Return this number of groups, each with ten committed partitions and static members.

    Some have just rebalanced.
    """
    pods = [member(f"m{number}", {"orders": [number]}, instance_id=f"pod-{number}") for number in range(10)]
    written_once = apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1, pods)], [assignor_named("range")]).record
    records = []
    for number in range(groups):
        snapshot = _named(written_once.snapshot, f"group-{number}")
        rebalance_history = (
            RebalanceHistory(recent=tuple(every_minute(2, start=4)))
            if number < restless
            else written_once.rebalance_history
        )
        records.append(GroupState(snapshot, rebalance_history=rebalance_history))
    commits = {(f"group-{number}", "orders", at): (295, 0.1) for number in range(groups) for at in range(10)}
    return inputs(*records, commits=commits, ends={("orders", at): busy() for at in range(10)}, listed={})


def _named(snapshot: GroupSnapshot, name: str) -> GroupSnapshot:
    from msgspec.structs import replace as with_fields  # noqa: PLC0415 - as above

    return with_fields(snapshot, group_id=name, classic=metadata(1, snapshot.classic.members))  # type: ignore[union-attr]


def test_an_evaluation_needs_few_calls_per_group_whatever_it_commits() -> None:
    """The sampler evaluates 10,000 groups every five seconds, and half of them rebalanced recently."""
    condition_inputs = synthetic_groups(1_000, 500)
    tracker = tracker_after(condition_inputs)
    again = replace(condition_inputs, silence=condition_inputs.silence)
    with counted_calls() as calls:
        assert tracker.evaluate(again).active == {}
    assert calls.total() < 15 * 1_000, "about nine calls per group when this was written, with ten partitions each"


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Count the function calls in the block. Unlike time, the count is the same on every machine."""
    calls: Counter[str] = Counter()

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        if event in ("call", "c_call"):
            calls[event] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(before)
