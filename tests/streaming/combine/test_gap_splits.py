"""Tests that commit gaps do not depend on batch sizes, early reduction, repeated batches or a restore."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.combine import combiner as combiner_module
from streaming.combine.combiner import GROUP_KIND, Combiner
from streaming.combine.gaps import CommitGap
from streaming.combine.partition_state import (
    PARTITION_CODEC,
    GapsClosed,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
)
from tests.streaming.combine.gap_model import compute_gaps
from tests.streaming.combine.strategies import logs, pieces
from tests.streaming.log_records import (
    LogRecord,
    commit_key,
    commit_value,
    group_key,
    group_value,
    member_fields,
    other_group_key,
    other_group_value,
    record_batch,
    target_epoch_key,
    target_epoch_value,
)

STUCK_AFTER_SECONDS = 300
UNDECODABLE = (b"\x00\x63", b"")
STEPS_MS = ([0, 100, 1_000, 5_000], [1_000, 5_000, 60_000, 120_000], [0, 5_000, 50_000, 400_000, -20_000])


KINDS = {"commit": 60, "deleted": 8, "generation": 12, "targets": 4, "epoch": 2, "ended": 1, "rubbish": 1}
"""The kinds of random records, with their frequency."""


def group_record(rng: Random) -> tuple[bytes, bytes | None]:
    """Return a random record: most often a commit, or a tombstone, generation, epoch or invalid bytes."""
    group, group_type, number = (
        rng.choice(["a", "bb"]),
        rng.choice(["consumer", "share", "streams"]),
        rng.randrange(1, 4),
    )
    (kind,) = rng.choices([*KINDS], [*KINDS.values()])
    key = commit_key(group, "orders", rng.randrange(3), legacy=rng.random() < 0.1)
    members = [member_fields("m")] if rng.random() < 0.8 else []
    records: dict[str, tuple[bytes, bytes | None]] = {
        "commit": (key, commit_value(rng.randrange(4), 0)),
        "deleted": (key, None),
        "generation": (group_key(group), group_value(number, members)),
        "targets": (target_epoch_key(group_type, group), target_epoch_value(group_type, number)),
        "epoch": (other_group_key(group_type, group), other_group_value(group_type, number)),
        "ended": (rng.choice([group_key(group), other_group_key("consumer", group)]), None),
        "rubbish": UNDECODABLE,
    }
    return records[kind]


@st.composite
def group_logs(draw: Callable[..., Any]) -> list[LogRecord]:
    """Draw two `__consumer_offsets` partitions with two groups. Offsets can be missing, and clocks can jump or go back.

    A random seed makes the records. Drawn one by one, they rarely include a rebalance with commits on both sides.
    """
    rng, kafka_offsets, times_ms = Random(draw(st.integers(0, 2**32))), [0, 0], [10_000_000, 10_000_000]
    hole_rate, steps_ms = draw(st.sampled_from([0, 0, 0.05])), draw(st.sampled_from(STEPS_MS))
    records = []
    for _ in range(draw(st.integers(0, 80))):
        partition = int(rng.random() < 0.2)
        kafka_offsets[partition] += rng.randrange(1, 4) if rng.random() < hole_rate else 0
        times_ms[partition] += rng.choice(steps_ms)
        records.append(LogRecord(*group_record(rng), partition, kafka_offsets[partition], times_ms[partition]))
        kafka_offsets[partition] += 1
    return records


def gaps_of(batches: Sequence[Sequence[LogRecord]], *, is_restored: bool = False) -> list[CommitGap]:
    """Return the gaps that close over the micro-batches. With `is_restored`, each state is encoded and decoded."""
    partition_states: dict[int, PartitionSnapshot] = {}
    closed: list[CommitGap] = []
    for records in batches:
        combiner = Combiner()
        for start in range(0, len(records), 7):
            combiner.add(record_batch(records[start : start + 7]))
        for kind, state_key, payload in combiner.rows():
            if kind == GROUP_KIND:
                continue
            known = partition_states.get(int(state_key), PartitionSnapshot(int(state_key)))
            if is_restored:
                known = PARTITION_CODEC.decode(*PARTITION_CODEC.encode(known))
            partition_states[int(state_key)], event = advance_partition(
                known, decode_partition_event(payload), STUCK_AFTER_SECONDS
            )
            closed += event.gaps if isinstance(event, GapsClosed) else ()
    return sorted(closed, key=lambda gap: gap.position)


@given(group_logs())
def test_gaps_in_bulk_equal_gaps_record_by_record(records: list[LogRecord]) -> None:
    assert gaps_of([records]) == compute_gaps(records, STUCK_AFTER_SECONDS)


@given(st.data())
def test_one_batch_or_twenty_give_the_same_gaps(data: st.DataObject) -> None:
    records = data.draw(group_logs())
    batches = [piece for piece in data.draw(pieces(records, max_cuts=20)) if piece]
    assert gaps_of(batches, is_restored=data.draw(st.booleans())) == compute_gaps(records, STUCK_AFTER_SECONDS)


@given(st.data())
def test_reducing_early_changes_no_gap(data: st.DataObject) -> None:
    """The combiner reduces pending rows to limit memory. The time of the reduction must not change the result."""
    records = data.draw(group_logs())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combiner_module, "PENDING_COMMIT_ROWS", data.draw(st.integers(0, 9)))
        assert gaps_of([records]) == compute_gaps(records, STUCK_AFTER_SECONDS)


@given(st.data())
def test_damaged_records_of_many_partitions_change_no_gap(data: st.DataObject) -> None:
    records = data.draw(logs())
    batches = [piece for piece in data.draw(pieces(records, max_cuts=20)) if piece]
    assert gaps_of(batches) == compute_gaps(records, STUCK_AFTER_SECONDS)
