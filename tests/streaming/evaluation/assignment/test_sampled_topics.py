"""Tests what a sample of topics proves about a record, before and after the record."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streaming.evaluation.assignment.assignment_inputs import actual_owners
from streaming.evaluation.assignment.sampled_topics import (
    METADATA_MAX_AGE_MS,
    changed_topics,
    pending_topics,
    unknown_topics,
)
from streaming.events import GroupEvent, GroupMetadataWritten, TopicsSampled
from tests.streaming.groups import advanced, at, member, metadata, sampled, written

BEFORE, AFTER = 999_999, 1_000_000
"""The record is written at 1,000,000 ms."""
LONG_BEFORE = BEFORE - METADATA_MAX_AGE_MS
"""A leader certainly knows a partition count of this time."""

HAS_0_AND_1 = written(1_000, 1, [member("m", {"orders": [0, 1]})])
HAS_NOTHING = written(1_000, 1, [member("m")])


def cooperative(held: Sequence[int], claimed: Sequence[int]) -> GroupEvent:
    """Return a generation of `cooperative-sticky`. A claimed partition without an owner is withheld."""
    one = member("m", {"orders": held}, owned=[("orders", partition) for partition in claimed])
    return GroupMetadataWritten(at(1_000), metadata(1, [one], protocol="cooperative-sticky"))


@pytest.mark.parametrize(
    ("sample", "unknown", "pending", "why"),
    [
        (sampled(1), True, True, "never sampled"),
        (sampled(BEFORE, orders=2), False, False, "sampled before, and exactly those partitions are assigned"),
        (
            sampled(BEFORE, orders=5),
            False,
            True,
            "sampled before, with more partitions: deleted or recreated since, or not assigned",
        ),
        (sampled(BEFORE, orders=1), True, True, "sampled before, with fewer partitions: it has grown in between"),
        (sampled(BEFORE, orders=None), True, True, "absent before: it may have been created in between"),
        (sampled(AFTER, orders=None), False, False, "absent at the time of the record or later: it is absent"),
        (sampled(AFTER, orders=1), False, False, "a later sample shows the present, whatever was assigned"),
    ],
)
def test_a_topic_is_known_as_of_the_record(sample: TopicsSampled, unknown: bool, pending: bool, why: str) -> None:
    snapshot = advanced([HAS_0_AND_1, sample])
    assert unknown_topics(snapshot) == (("orders",) if unknown else ()), why
    assert pending_topics(snapshot) == (("orders",) if pending else ()), why


@pytest.mark.parametrize(
    ("record", "samples", "changed", "why"),
    [
        (HAS_0_AND_1, [sampled(AFTER, orders=2)], False, "the count equals the assignment"),
        (
            HAS_0_AND_1,
            [sampled(AFTER, orders=3)],
            True,
            "grown since, or the last partition was not assigned: this cannot be decided",
        ),
        (HAS_0_AND_1, [sampled(AFTER, orders=1)], True, "recreated with fewer partitions"),
        (HAS_0_AND_1, [sampled(AFTER, orders=None)], True, "the topic was deleted since"),
        (HAS_NOTHING, [sampled(AFTER, orders=3)], True, "the topic was created since"),
        (HAS_NOTHING, [sampled(AFTER, orders=None)], False, "the topic never existed"),
        (
            HAS_0_AND_1,
            [sampled(LONG_BEFORE, orders=3), sampled(AFTER, orders=3)],
            False,
            "it had three partitions all the time",
        ),
        (HAS_NOTHING, [sampled(LONG_BEFORE, orders=3), sampled(AFTER, orders=3)], False, "it existed all the time"),
        (
            HAS_0_AND_1,
            [sampled(LONG_BEFORE + 1, orders=3), sampled(AFTER, orders=3)],
            True,
            "it had three partitions, but the leader's metadata may be older",
        ),
        (
            HAS_0_AND_1,
            [sampled(LONG_BEFORE + 1, orders=None), sampled(AFTER, orders=None)],
            True,
            "it was deleted, but the leader's metadata may be older",
        ),
        (
            cooperative([1], claimed=[0, 1]),
            [sampled(BEFORE, orders=4), sampled(AFTER, orders=4)],
            True,
            "partition 0 is withheld, so the leader may have known two",
        ),
        (
            cooperative([0], claimed=[0, 1, 2]),
            [sampled(AFTER, orders=3)],
            False,
            "partitions 1 and 2 are withheld, so all three partitions are explained",
        ),
        (
            cooperative([0], claimed=[0, 1]),
            [sampled(AFTER, orders=1)],
            False,
            "the leader assigned only the partition of the recreated topic",
        ),
        (
            written(1_000, 1, [member("m", {"orders": [1]}, owned=[("orders", 0)])]),
            [sampled(BEFORE, orders=4), sampled(AFTER, orders=4)],
            False,
            "range withholds no partition, so growth does not explain partition 0",
        ),
        (HAS_0_AND_1, [sampled(BEFORE, orders=2), sampled(AFTER, orders=3)], True, "grown between the samples"),
        (
            HAS_0_AND_1,
            [sampled(BEFORE - 1, orders=3), sampled(BEFORE, orders=2), sampled(AFTER, orders=3)],
            True,
            "the count changed and changed back: consecutive samples must agree",
        ),
        (HAS_0_AND_1, [sampled(BEFORE, orders=3)], False, "an older sample shows no change"),
        (
            written(1_000, 1, [member("m", {"orders": [1]})]),
            [sampled(AFTER, orders=3)],
            False,
            "a topic grows at its end: partition 0 was not assigned",
        ),
    ],
)
def test_a_topic_has_changed_since_it_was_assigned(
    record: object, samples: list[TopicsSampled], changed: bool, why: str
) -> None:
    snapshot = advanced([record, *samples])  # type: ignore[list-item]
    assert snapshot.classic is not None
    assert changed_topics(snapshot, actual_owners(snapshot.classic)) == (("orders",) if changed else ()), why
