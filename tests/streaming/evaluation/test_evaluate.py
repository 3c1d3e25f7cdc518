"""Tests which facts about the assignment a report contains while the group rebalances."""

from __future__ import annotations

import pytest

from assignors import assignor_named
from streaming.evaluation.evaluate import RecordedGroup, SampleValues, evaluate, with_sample
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import member, sampled, written

MEMBERS = [member("a", {"orders": [0, 1], "others": [0]}), member("b", {"orders": [1]})]
EVENTS = [written(10, 3, MEMBERS), sampled(11_000, orders=4)]


@pytest.mark.parametrize(
    ("state", "expected", "why"),
    [
        ("Stable", ("unknown", 1, 1, 2, 10), "the last record shows the present owners"),
        ("PreparingRebalance", ("rebalancing", None, None, None, None), "members may give up their partitions"),
        ("CompletingRebalance", ("rebalancing", None, None, None, None), "the next assignment is not written yet"),
    ],
)
def test_the_owners_are_unknown_in_a_rebalance(state: str, expected: tuple[object, ...], why: str) -> None:
    """The verdict was `rebalancing`, but the partitions without an owner in the last assignment still counted."""
    record = GroupState(GroupSnapshot("g"))
    for event in EVENTS:
        record = apply_batch(record, [event], [assignor_named("range")]).record
    report = with_sample(evaluate(RecordedGroup("g", record, state=state)), SampleValues(unowned_records=10))
    shown = report.assignment
    assert shown.own is not None
    found = (shown.own.verdict, shown.owned_twice_partitions, shown.not_subscribed_partitions)
    assert (*found, shown.unowned_partitions, report.unowned_records) == expected, why
