"""Tests of groups that exist in records but not in any coordinator. A missing answer is no proof."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pyarrow as pa
import pytest

from assignors.coordinator import coordinator_partition
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.events import GroupEvent, TopicMetadata
from streaming.group.listing import (
    GroupListing,
    ListedGroup,
    ListingGap,
    OffsetsByPartition,
    Unanswered,
)
from streaming.integrity.reconcile import (
    Suspect,
    is_read,
    keep_silent_suspects,
    missing_by_partition,
    suspected_commits,
    suspected_groups,
)
from tests.streaming.groups import advanced, formed, tombstoned, written

LISTED = ListedGroup("classic", "consumer", "Stable", 1)
WITHOUT, WITH = GroupListing(9_000, {}), GroupListing(9_000, {"g": LISTED})
SAMPLE = ClusterSample(9_100, offsets_topic={0: LogEnds(100, 90)}, offsets_topic_partitions=50)
SUSPECT = Suspect(offsets_topic_partition=0, after_offset=50, read_up_to=100, listed_at_ms=9_000)


def record(*events: GroupEvent) -> Mapping[str, GroupState]:
    """Return the state of the one group after its records."""
    return {"g": GroupState(advanced(events))}


@pytest.mark.parametrize(
    ("groups", "listing", "sample", "suspects", "why"),
    [
        (record(written(50, 1)), WITHOUT, SAMPLE, {"g": SUSPECT}, "alive by the records, unknown to all coordinators"),
        (record(*formed(46)), WITHOUT, SAMPLE, {"g": SUSPECT}, "the same for a KIP-848 group"),
        (record(written(50, 1)), WITH, SAMPLE, {}, "listed"),
        (record(tombstoned(50)), WITHOUT, SAMPLE, {}, "deleted by the records and not listed"),
        (record(), WITHOUT, SAMPLE, {}, "a group without records yet"),
        (
            record(written(50, 1)),
            GroupListing(9_000, {}, (ListingGap(2, "coordinator_load_in_progress"),)),
            SAMPLE,
            {},
            "an incomplete listing can lack groups that exist",
        ),
        (
            record(written(50, 1)),
            WITHOUT,
            ClusterSample(9_100, offsets_topic_partitions=50),
            {},
            "the end of its partition is unknown, so the time of reading is unknown",
        ),
    ],
)
def test_a_suspect_is_alive_by_the_records_and_unknown_to_every_coordinator(
    groups: Mapping[str, GroupState],
    listing: GroupListing,
    sample: ClusterSample,
    suspects: Mapping[str, Suspect],
    why: str,
) -> None:
    assert suspected_groups(groups, listing, sample) == suspects, why


@pytest.mark.parametrize(
    ("groups", "listing", "stays", "why"),
    [
        (record(written(50, 1)), WITHOUT, True, "no new record and no listing"),
        (record(written(50, 1), written(60, 2)), WITHOUT, False, "the group has a new record"),
        (record(written(50, 1), tombstoned(60)), WITHOUT, False, "the group has a tombstone"),
        (record(written(50, 1)), WITH, False, "the group is listed again: its coordinator had moved"),
        ({}, WITHOUT, False, "the group was removed from the state meanwhile"),
    ],
)
def test_any_new_record_or_listing_clears_a_suspect(
    groups: Mapping[str, GroupState], listing: GroupListing, stays: bool, why: str
) -> None:
    assert keep_silent_suspects({"g": SUSPECT}, groups, listing) == ({"g": SUSPECT} if stays else {}), why


@pytest.mark.parametrize(
    ("positions", "read"), [({0: 99}, False), ({0: 100}, True), ({0: 101}, True), ({}, False), ({1: 500}, False)]
)
def test_a_tombstone_may_follow_until_the_log_is_read_to_its_end(positions: Mapping[int, int], read: bool) -> None:
    assert is_read(SUSPECT, positions) is read


def commits(*rows: tuple[str, str, int, int]) -> pa.Table:
    """Return commits of (group, topic, partition, log offset)."""
    names = ("group_id", "topic", "partition", "key", "offsets_topic_offset", "offsets_topic_partition")
    columns: dict[str, list[object]] = {name: [] for name in names}
    for group_id, topic, partition, offsets_topic_offset in rows:
        key, stands_in = f"{group_id}/{topic}/{partition}".encode(), coordinator_partition(group_id, 50)
        named = (group_id, topic, partition, key, offsets_topic_offset, stands_in)
        for column, value in zip(columns.values(), named, strict=True):
            column.append(value)
    return pa.table(columns)


OFFSET = 7
DESCRIBED = {"orders": TopicMetadata(3, 1), "deleted": TopicMetadata(None, 1)}


@pytest.mark.parametrize(
    ("answers", "missing", "why"),
    [
        ({"g": {("orders", 0): OFFSET}}, [1], "the coordinator knows one of two commits"),
        ({"g": {}}, [0, 1], "the coordinator knows no commit of the group"),
        (
            {"g": {("orders", 0): OFFSET, ("orders", 1): OFFSET, ("sales", 5): OFFSET}},
            [],
            "the coordinator knows both commits and one more",
        ),
        ({"g": Unanswered("group_authorization_failed")}, [], "an error is no proof"),
        ({}, [], "the group was not polled"),
    ],
)
def test_a_commit_is_suspect_if_its_coordinator_answers_without_it(
    answers: Mapping[str, OffsetsByPartition | Unanswered], missing: Sequence[int], why: str
) -> None:
    known = commits(("g", "orders", 0, 10), ("g", "orders", 1, 11))
    assert suspected_commits(known, answers, DESCRIBED)["partition"].to_pylist() == missing, why


@pytest.mark.parametrize(("topic", "is_suspect"), [("orders", True), ("deleted", True), ("secret", False)])
def test_an_answer_lacks_offsets_of_topics_without_permission(topic: str, is_suspect: bool) -> None:
    """Rule 4: otherwise, a missing permission for a topic would look like deleted commits."""
    found = suspected_commits(commits(("g", topic, 0, 10)), {"g": {}}, DESCRIBED)
    assert found.num_rows == is_suspect


def test_missing_commits_are_reported_to_the_partition_that_contains_them() -> None:
    """The group's own partition can be a different one since the partition count changed."""
    groups = ["a", "b", "c", "d"]
    ends = {partition: LogEnds(1_000 + partition, 1_000) for partition in range(50)}
    sample = ClusterSample(5, offsets_topic=ends, offsets_topic_partitions=50)
    found = missing_by_partition(commits(*((group, "t", 0, 10) for group in groups)), sample)
    reported = {key: one.suspect.offsets_topic_partition for one in found for key in one.vanished.keys}
    assert reported == {f"{group}/t/0".encode(): coordinator_partition(group, 50) for group in groups}
    assert all(one.suspect.read_up_to == 1_000 + one.suspect.offsets_topic_partition for one in found)
    assert all(
        before.suspect.offsets_topic_partition < after.suspect.offsets_topic_partition
        for before, after in pairwise(found)
    )
    assert missing_by_partition(commits(("a", "t", 0, 10)), ClusterSample(5, offsets_topic_partitions=50)) == []
    grown = ClusterSample(5, offsets_topic=ends, offsets_topic_partitions=60)
    assert missing_by_partition(commits(*((group, "t", 0, 10) for group in groups)), grown) == found
