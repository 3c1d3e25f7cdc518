"""Tests what a sample of topics proves about a record, before and after the record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streaming.evaluation.assignment.assignment_inputs import actual_owners
from streaming.evaluation.assignment.sampled_topics import (
    METADATA_CHANGED,
    METADATA_MAX_AGE_MS,
    METADATA_MISSING,
    changed_topics,
    pending_topics,
    unknown_topics,
    why_racks_are_uncertain,
)
from streaming.events import (
    POLLED_PARTITION,
    GroupDescribed,
    GroupEvent,
    GroupMetadataWritten,
    Position,
    TopicMetadata,
    TopicsSampled,
)
from tests.streaming.groups import advanced, at, member, metadata, sampled, written

BEFORE, AFTER, LATER = 999_999, 1_000_000, 1_000_001
"""The record is written at 1,000,000 ms."""
LONG_BEFORE = BEFORE - METADATA_MAX_AGE_MS
"""A leader certainly knows a partition count of this time."""
LONG_BEFORE_POLL = LONG_BEFORE - METADATA_MAX_AGE_MS
"""In the polling mode, a leader certainly knew racks of this time."""

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


RACKS, MOVED = (("r1",), ("r2",)), (("r2",), ("r1",))


def in_racks(sampled_at_ms: int, racks: tuple[tuple[str, ...], ...]) -> TopicsSampled:
    """Return a sample of `orders` with the racks of its replicas."""
    return TopicsSampled({"orders": TopicMetadata(2, sampled_at_ms, racks)})


@pytest.mark.parametrize(
    ("samples", "entered_at_ms", "reason", "why"),
    [
        ([in_racks(LONG_BEFORE, RACKS), in_racks(AFTER, RACKS)], None, "", "the same racks all the time"),
        ([], None, METADATA_MISSING, "never sampled"),
        (
            [in_racks(LONG_BEFORE, RACKS), in_racks(BEFORE, RACKS)],
            None,
            METADATA_MISSING,
            "only earlier samples",
        ),
        ([in_racks(AFTER, RACKS)], None, METADATA_CHANGED, "the racks before the record are unknown"),
        (
            [in_racks(LONG_BEFORE + 1, RACKS), in_racks(AFTER, RACKS)],
            None,
            METADATA_CHANGED,
            "the leader's metadata may be older",
        ),
        (
            [in_racks(LONG_BEFORE, RACKS), in_racks(BEFORE, MOVED), in_racks(AFTER, MOVED)],
            None,
            METADATA_CHANGED,
            "the replicas moved, and the leader may not have known this yet",
        ),
        (
            [in_racks(LONG_BEFORE, RACKS), in_racks(AFTER, MOVED), in_racks(LATER, RACKS)],
            None,
            METADATA_CHANGED,
            "the racks changed and changed back: consecutive samples must agree",
        ),
        ([in_racks(LONG_BEFORE, ()), in_racks(AFTER, ())], None, "", "the brokers never had racks"),
        (
            [in_racks(LONG_BEFORE, RACKS), in_racks(AFTER, RACKS)],
            BEFORE,
            METADATA_CHANGED,
            "a static member rejoined: the leader computed the assignment before the record",
        ),
        ([in_racks(LONG_BEFORE - 1, RACKS), in_racks(AFTER, RACKS)], BEFORE, "", "known long before that time too"),
    ],
)
def test_a_leader_certainly_knew_the_racks_only_if_they_were_the_same_for_long_enough(
    samples: list[TopicsSampled], entered_at_ms: int | None, reason: str, why: str
) -> None:
    """Partition counts had this rule, racks had not. So a change of racks was a false `drift`."""
    record = metadata(1, [member("m", {"orders": [0, 1]}, rack_id="r1")])
    event = GroupMetadataWritten(at(1_000), replace(record, current_state_timestamp_ms=entered_at_ms))
    assert why_racks_are_uncertain(advanced([event, *samples])) == reason, why


@pytest.mark.parametrize(
    ("samples", "instance_id", "reason", "why"),
    [
        ([in_racks(LONG_BEFORE_POLL, RACKS), in_racks(AFTER, RACKS)], None, "", "the same racks for long enough"),
        (
            [in_racks(LONG_BEFORE, RACKS), in_racks(AFTER, RACKS)],
            None,
            METADATA_CHANGED,
            "the poll can be late, so the assignment can be older than the poll",
        ),
        (
            [in_racks(LONG_BEFORE_POLL, RACKS), in_racks(BEFORE, RACKS)],
            None,
            METADATA_MISSING,
            "the racks possibly changed before the assignment, and no sample shows this yet",
        ),
        (
            [in_racks(LONG_BEFORE_POLL, RACKS), in_racks(AFTER, RACKS)],
            "static",
            METADATA_CHANGED,
            "a static member rejoined: the poll shows an old assignment",
        ),
    ],
)
def test_a_polled_assignment_can_be_older_than_its_poll(
    samples: list[TopicsSampled], instance_id: str | None, reason: str, why: str
) -> None:
    """Before, racks were never certain in the polling mode. So a user's own strategy had no `drift` there."""
    one = member("m", {"orders": [0, 1]}, rack_id="r1", instance_id=instance_id)
    polled = GroupDescribed(Position(POLLED_PARTITION, 1, AFTER), "classic", "Stable", classic=metadata(1, [one]))
    assert why_racks_are_uncertain(advanced([polled, *samples])) == reason, why


def test_a_change_of_racks_does_not_change_the_time_since_when_the_partition_count_is_known() -> None:
    """A broker that restarts changes the racks. Partition counts must stay certain."""
    snapshot = advanced([HAS_0_AND_1, in_racks(LONG_BEFORE, RACKS), in_racks(AFTER, MOVED)])
    assert snapshot.topics["orders"].known_since_ms == LONG_BEFORE
    assert snapshot.topics["orders"].racks_known_since_ms == AFTER
