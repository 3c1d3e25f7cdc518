"""Tests that every stored form of a state is read, or refused with its version."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from streaming.combine.partition_state import PARTITION_CODEC
from streaming.errors import RemedyError
from streaming.evaluation.group_update import GROUP_CODEC, GroupState
from streaming.events import GroupEvent
from streaming.group.codec import StateCodec, StateVersionError
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.group.test_advance import histories
from tests.streaming.groups import advanced, member, sampled, written


class _Today(msgspec.Struct, frozen=True):
    name: str
    count: int


def _renamed(encoded: bytes) -> bytes:
    stored = msgspec.msgpack.decode(encoded)
    return msgspec.msgpack.encode({"name": stored["title"]})


def _counted(encoded: bytes) -> bytes:
    return msgspec.msgpack.encode({**msgspec.msgpack.decode(encoded), "count": 1})


CODEC = StateCodec(_Today, version=3, migrations={1: _renamed, 2: _counted})


@pytest.mark.parametrize(
    ("version", "stored", "why"),
    [
        (1, {"title": "g"}, "two consecutive migrations"),
        (2, {"name": "g"}, "one migration"),
        (3, {"name": "g", "count": 1}, "none"),
    ],
)
def test_older_versions_are_migrated_step_by_step(version: int, stored: dict[str, object], why: str) -> None:
    assert CODEC.decode(version, msgspec.msgpack.encode(stored)) == _Today("g", 1), why


@pytest.mark.parametrize("version", [4, 0, -1, 2**31 - 1])
def test_a_version_without_a_migration_is_refused_with_the_remedy(version: int) -> None:
    with pytest.raises(
        StateVersionError, match=rf"has version {version}, but this monitor reads version 3: run .*rebuild"
    ):
        CODEC.decode(version, b"")
    assert issubclass(StateVersionError, RemedyError), "commands print it without a traceback"


def test_an_encoded_state_has_the_present_version() -> None:
    version, encoded = CODEC.encode(_Today("g", 7))
    assert version == 3
    assert CODEC.decode(version, encoded) == _Today("g", 7)


@pytest.mark.parametrize(("codec", "oldest"), [(GROUP_CODEC, 1), (PARTITION_CODEC, 1)])
def test_every_older_version_of_a_state_has_its_own_migration(codec: StateCodec[object], oldest: int) -> None:
    """Groups and partition states have separate versions. A migration of groups must not change a partition state."""
    assert sorted(codec._migrations) == list(range(oldest, codec.version))


MANY = [
    member(f"{number:032x}", {"orders": range(10 * number, 10 * number + 10)}, [f"topic-{at:03}" for at in range(100)])
    for number in range(1_000)
]


def test_a_group_of_a_thousand_members_on_ten_thousand_partitions_is_stored_in_less_than_two_megabytes() -> None:
    """The limit is from the issue.

    Each member subscribes to a hundred topics: their names alone are 9 MB uncompressed.
    """
    _, stored = GROUP_CODEC.encode(GroupState(advanced([written(0, 1, MANY)])))
    assert len(stored) < 2_000_000
    assert len(GROUP_CODEC.decode(GROUP_CODEC.version, stored).snapshot.classic.members) == 1_000


SNAPSHOTS = StateCodec(GroupSnapshot, version=1)


@given(histories())
def test_every_snapshot_survives_its_stored_form(events: list[GroupEvent]) -> None:
    snapshot = advanced(events)
    assert SNAPSHOTS.decode(*SNAPSHOTS.encode(snapshot)) == snapshot


def test_members_and_topics_survive_their_stored_form() -> None:
    rejoined = member("m", {"orders": [0, 2]}, instance_id="i", rack_id="r", user_data=b"\xff\x00")
    snapshot = advanced([written(0, 1, [rejoined]), written(1, 4, [rejoined]), sampled(5, orders=None)])
    assert SNAPSHOTS.decode(*SNAPSHOTS.encode(snapshot)) == snapshot
