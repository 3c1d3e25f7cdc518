"""Tests which records are rebalances, and when a rebalance counts as shown."""

from __future__ import annotations

import pytest

from streaming.protocol import RecordType, decode
from tests.bench.rebalances import Delays, Rebalance, rebalances_in
from tests.streaming.protocol.records import sample_records


def test_the_rebalances_of_a_real_log_are_its_generations_with_members() -> None:
    """In the recorded sample, a rebalance is a GroupMetadata value with members, and nothing else."""
    records = [(key, value, 1_500) for key, value in sample_records()]
    decoded = [
        decode(key, value) for key, value, _ in records if int.from_bytes(key[:2], "big") == RecordType.GROUP_METADATA
    ]
    expected = [
        Rebalance(record.key["group"], record.value["generation"], 1.5)
        for record in decoded
        if record.value is not None and record.value["members"]
    ]
    assert list(rebalances_in(records)) == expected
    assert len(expected) > 10
    assert len(expected) < len(decoded)


@pytest.mark.parametrize(
    ("shown", "seconds", "why"),
    [
        ({}, [], "the group is not shown"),
        ({"g": 6.0}, [], "the previous generation is shown"),
        ({"g": 7.0}, [2.5], "the generation is shown"),
        ({"g": 9.0}, [2.5], "a later generation is shown, because several came between two scrapes"),
        ({"other": 7.0}, [], "the generation of a different group is shown"),
    ],
)
def test_a_rebalance_is_seen_when_its_generation_is_shown(
    shown: dict[str, float], seconds: list[float], why: str
) -> None:
    delays = Delays()
    delays.add_completed(Rebalance("g", 7, 100.0))
    delays.add_shown(shown, 102.5)
    assert delays.seconds == seconds, why


def test_a_rebalance_is_seen_once() -> None:
    delays = Delays()
    delays.add_completed(Rebalance("g", 7, 100.0))
    delays.add_shown({"g": 7.0}, 101.0)
    delays.add_shown({"g": 7.0}, 102.0)
    assert delays.seconds == [1.0]


def test_the_same_generation_again_is_no_rebalance() -> None:
    """When a static member comes back, the coordinator writes the group again with the same generation (KIP-345)."""
    delays = Delays()
    delays.add_completed(Rebalance("g", 7, 100.0))
    delays.add_completed(Rebalance("g", 7, 105.0))
    delays.add_shown({"g": 7.0}, 106.0)
    assert delays.seconds == [6.0]
