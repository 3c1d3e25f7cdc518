"""Tests what a sample of topics proves about a record, before and after the record."""

from __future__ import annotations

import pytest

from streaming.evaluation.assignment.group_spec import actual_owners
from streaming.evaluation.assignment.sampled_topics import changed_topics, pending_topics, unknown_topics
from streaming.events import TopicsSampled
from tests.streaming.groups import advanced, member, sampled, written

BEFORE, AFTER = 9_999, 10_000
"""The record is written at 10,000 ms."""

HAS_0_AND_1 = written(10, 1, [member("m", {"orders": [0, 1]})])
HAS_NOTHING = written(10, 1, [member("m")])


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
            [sampled(BEFORE, orders=3), sampled(AFTER, orders=3)],
            False,
            "it had three partitions all the time",
        ),
        (HAS_NOTHING, [sampled(BEFORE, orders=3), sampled(AFTER, orders=3)], False, "it existed all the time"),
        (HAS_0_AND_1, [sampled(BEFORE, orders=2), sampled(AFTER, orders=3)], True, "grown between the samples"),
        (
            HAS_0_AND_1,
            [sampled(BEFORE - 1, orders=3), sampled(BEFORE, orders=2), sampled(AFTER, orders=3)],
            True,
            "the count changed and changed back: consecutive samples must agree",
        ),
        (HAS_0_AND_1, [sampled(BEFORE, orders=3)], False, "an older sample shows no change"),
        (
            written(10, 1, [member("m", {"orders": [1]})]),
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
