"""Which records are rebalances, and when each counts as seen."""

from __future__ import annotations

import pytest

from streaming.protocol import RecordType, decode
from tests.bench.rebalances import Delays, Rebalance, rebalances_in
from tests.streaming.protocol.records import sample_records


def test_the_rebalances_of_a_real_log_are_its_generations_with_members() -> None:
    """From the recorded sample: every GroupMetadata value with members, and nothing else."""
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
        ({}, [], "no such group is shown"),
        ({"g": 6.0}, [], "the generation before is shown"),
        ({"g": 7.0}, [2.5], "it is shown"),
        ({"g": 9.0}, [2.5], "a later one is shown: it came and went between two scrapes"),
        ({"other": 7.0}, [], "another group's generation says nothing"),
    ],
)
def test_a_rebalance_is_seen_when_its_generation_is_shown(
    shown: dict[str, float], seconds: list[float], why: str
) -> None:
    delays = Delays()
    delays.completed(Rebalance("g", 7, 100.0))
    delays.shown(shown, 102.5)
    assert delays.seconds == seconds, why


def test_a_rebalance_is_seen_once() -> None:
    delays = Delays()
    delays.completed(Rebalance("g", 7, 100.0))
    delays.shown({"g": 7.0}, 101.0)
    delays.shown({"g": 7.0}, 102.0)
    assert delays.seconds == [1.0]


def test_the_same_generation_again_is_no_rebalance() -> None:
    """A static member that comes back has its group written anew at the generation it had (KIP-345)."""
    delays = Delays()
    delays.completed(Rebalance("g", 7, 100.0))
    delays.completed(Rebalance("g", 7, 105.0))
    delays.shown({"g": 7.0}, 106.0)
    assert delays.seconds == [6.0]
