"""Tests that large events and updates are small while they are sent between processes."""

from __future__ import annotations

import msgspec
import pytest

from streaming.evaluation.group_update import GroupState, apply_batch, decode_update, encode_update
from streaming.events import GroupEvent, decode_event, encode_event
from streaming.events.compression import LARGE_BYTES
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import member, written

LARGE_GROUP = [
    member(f"consumer-{at}", {"orders": [at]}, [f"topic-{number}" for number in range(10)]) for at in range(1_000)
]
"""A group whose record is larger than LARGE_BYTES."""


def _events(generations: int) -> list[GroupEvent]:
    return [written(at, at + 1, LARGE_GROUP) for at in range(generations)]


def test_a_large_event_is_compressed_and_a_small_event_is_not() -> None:
    """200 records of a group with 1,000 members exceeded the heap of the JVM. Every restart failed."""
    (large,) = _events(1)
    encoded = encode_event(large)
    assert len(encoded) < len(msgspec.msgpack.encode(large)) / 5
    assert decode_event(encoded) == large
    small = written(0, 1)
    assert encode_event(small) == msgspec.msgpack.encode(small)


def test_an_update_with_many_large_generations_is_compressed() -> None:
    update = apply_batch(GroupState(GroupSnapshot("g")), _events(5), [])
    encoded = encode_update(update)
    assert len(encoded) < len(msgspec.msgpack.encode(update)) / 10
    assert decode_update(encoded) == update


@pytest.mark.parametrize("cut", [1, 4, 5, 100])
def test_damaged_compressed_bytes_are_refused_like_all_others(cut: int) -> None:
    (large,) = _events(1)
    assert len(msgspec.msgpack.encode(large)) > LARGE_BYTES
    with pytest.raises(msgspec.DecodeError):
        decode_event(encode_event(large)[:cut])
