"""Tests of the time at which the brokers delete the committed offsets of a group without members."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pyarrow as pa
import pytest

from streaming.evaluation.lag.retention.expiry import EACH_COMMIT, expiry, expiry_starts
from streaming.events import GroupMetadataWritten
from streaming.group.listing import GroupListing, ListedGroup
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import advanced, at, emptied, formed, joined, left, metadata, tombstoned, written

EMPTIED_MS = 77_000
WEEK_MS = 7 * 24 * 3_600_000


def emptied_at(at_ms: int | None, protocol_type: str = "consumer") -> GroupMetadataWritten:
    """Return the record of a classic group without members, with the time when it became Empty."""
    record = replace(metadata(2, protocol_type=protocol_type), current_state_timestamp_ms=at_ms)
    return GroupMetadataWritten(at(1), record)


CLASSIC = advanced([written(0, 1), emptied_at(EMPTIED_MS)])
CLASSIC_OLD_RECORD = advanced([written(0, 1), emptied(1, 2)])
CONNECT = advanced([emptied_at(EMPTIED_MS, "connect")])
SIMPLE = advanced([emptied_at(EMPTIED_MS, "")])
BUSY = advanced([written(0, 1)])
MODERN_BUSY = advanced([*formed(0)])
MODERN_EMPTY = advanced([*formed(0), *left(9)])
POLLED = msgspec.structs.replace(
    CLASSIC, position=msgspec.structs.replace(CLASSIC.position, offsets_topic_partition=-1)
)
UNKNOWN = advanced([joined(0)])
DELETED = advanced([written(0, 1), tombstoned(1)])
ABSENT = "absent"


@pytest.mark.parametrize(
    ("snapshot", "listed", "start", "why"),
    [
        (CLASSIC, "Empty", EMPTIED_MS, "rule 2: KIP-211 counts from the moment when the last member left"),
        (CLASSIC, None, EMPTIED_MS, "rule 2: the record is enough if the listing failed"),
        (CONNECT, "Empty", EMPTIED_MS, "rule 2: every protocol type, not only consumer"),
        (CLASSIC_OLD_RECORD, "Empty", EACH_COMMIT, "rule 2: a record before version 2 has no time"),
        (SIMPLE, "Empty", EACH_COMMIT, "rule 3: without a protocol type, the group only commits"),
        (MODERN_EMPTY, "Empty", EACH_COMMIT, "rule 3: a KIP-848 group"),
        (None, "Empty", EACH_COMMIT, "rule 3: a group without any membership record"),
        (DELETED, "Empty", EACH_COMMIT, "rule 3: a client commits under the name of a deleted group"),
        (BUSY, "Stable", ABSENT, "rule 1: it has members"),
        (MODERN_BUSY, "Stable", ABSENT, "rule 1: it has members"),
        (CLASSIC, "PreparingRebalance", ABSENT, "rule 4: a member is joining, which no record shows"),
        (POLLED, "Empty", ABSENT, "rule 4: a coordinator does not return the time of the Empty state"),
        (UNKNOWN, None, ABSENT, "rule 4: records are missing"),
        (None, None, ABSENT, "rule 4: without a listing, a group without records may have members"),
    ],
)
def test_offsets_expire_from_the_moment_that_the_coordinator_uses(
    snapshot: GroupSnapshot | None, listed: str | None, start: int | str | None, why: str
) -> None:
    """Source: `offsetExpirationCondition` of ClassicGroup and ConsumerGroup."""
    listing = None if listed is None else GroupListing(9, {"g": ListedGroup("classic", "consumer", listed, 1)})
    found = expiry_starts(["g"], {} if snapshot is None else {"g": snapshot}, listing)
    assert found.get("g", ABSENT) == start, why


def test_the_earliest_offset_counts_and_a_passed_time_is_zero_seconds_away() -> None:
    """The brokers check every ten minutes, so the offsets of an expired group are still there for some time."""
    commits = pa.table({"group_id": ["g", "g", "gone"], "commit_timestamp_ms": [1_000, 5_000, 0]})
    starts = {"g": EACH_COMMIT, "gone": EMPTIED_MS}
    answer = expiry(commits, starts, WEEK_MS, now_ms=WEEK_MS + 78_000)
    assert answer["offsets_expire_ms"].to_pylist() == [WEEK_MS + 1_000, WEEK_MS + 5_000, WEEK_MS + EMPTIED_MS]
    assert answer["seconds_until_expiry"].to_pylist() == [0.0, 0.0, 0.0]


def test_without_the_setting_of_the_brokers_the_time_is_unknown() -> None:
    """Kafka's default is a week. A guess would be wrong on each cluster with a different setting."""
    commits = pa.table({"group_id": ["g"], "commit_timestamp_ms": [1_000]})
    answer = expiry(commits, {"g": EACH_COMMIT}, None, 2_000)
    assert answer.to_pylist() == [{"offsets_expire_ms": None, "seconds_until_expiry": None}]
