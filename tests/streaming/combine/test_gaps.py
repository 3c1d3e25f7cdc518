"""Tests for the numbered rules of `streaming/combine/gaps.py`. A log is a list of (second, event) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import msgspec
import pytest

from assignors import assignor_named
from streaming.combine.combiner import GROUP_KIND, Combiner
from streaming.combine.gaps import GAP_BUCKETS_SECONDS, CommitGap, GapTotals, add_to_totals
from streaming.combine.partition_state import (
    PARTITION_CODEC,
    CommitsVanished,
    GapsClosed,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
)
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances import rebalances as kinds
from streaming.events import decode_event
from streaming.group.snapshot import GroupSnapshot
from tests.assignors.test_growth import steps
from tests.streaming.combine.test_gap_splits import STUCK_AFTER_SECONDS, UNDECODABLE
from tests.streaming.log_records import (
    LogRecord,
    commit_key,
    commit_value,
    consumer_member_key,
    consumer_member_value,
    group_key,
    group_value,
    member_fields,
    other_group_key,
    other_group_value,
    record_batch,
    target_epoch_key,
    target_epoch_value,
)

Log = Sequence[tuple[float, str]]


def log_of(log: Log) -> list[LogRecord]:
    """Return the records of group g with consecutive offsets. `hole` is an offset without a record."""
    return [
        LogRecord(*record, 0, offsets_topic_offset, int(1000 * seconds))
        for offsets_topic_offset, (seconds, what) in enumerate(log)
        if (record := _record(*what.split())) is not None
    ]


def _record(what: str, number: str = "0", committed: str = "1") -> tuple[bytes, bytes | None] | None:
    records: dict[str, tuple[bytes, bytes | None] | None] = {
        "commit": (commit_key("g", "orders", int(number)), commit_value(int(committed))),
        "delete": (commit_key("g", "orders", int(number)), None),
        "generation": (group_key("g"), group_value(int(number), [member_fields("m")])),
        "emptied": (group_key("g"), group_value(int(number))),
        "epoch": (other_group_key("consumer", "g"), other_group_value("consumer", int(number))),
        "targets": (target_epoch_key("consumer", "g"), target_epoch_value("consumer", int(number))),
        "member": (consumer_member_key("g", number), consumer_member_value()),
        "gone": (consumer_member_key("g", number), None),
        "tasks": (target_epoch_key("streams", "g"), target_epoch_value("streams", int(number))),
        "shares": (target_epoch_key("share", "g"), target_epoch_value("share", int(number))),
        "ended": (group_key("g"), None),
        "another": (commit_key("gg", "orders", int(number)), commit_value(1)),
        "rubbish": UNDECODABLE,
        "hole": None,
    }
    return records[what]


def advanced(snapshot: PartitionSnapshot, records: Sequence[LogRecord]) -> tuple[PartitionSnapshot, GapsClosed]:
    """Return the state after a batch, encoded and decoded again, and the closed gaps."""
    combiner = Combiner()
    combiner.add(record_batch(records))
    (payload,) = [payload for kind, _, payload in combiner.rows() if kind != GROUP_KIND]
    after, closed = advance_partition(snapshot, decode_partition_event(payload), STUCK_AFTER_SECONDS)
    return PARTITION_CODEC.decode(*PARTITION_CODEC.encode(after)), closed or GapsClosed((), {})


def gaps_in(log: Log) -> list[CommitGap]:
    """Return the gaps that close within a log, ordered by their boundaries."""
    closed = advanced(PartitionSnapshot(0), log_of(log))[1].gaps
    return sorted(closed, key=lambda gap: gap.position)


def is_shown(gap: CommitGap, expected: dict[str, Any]) -> bool:
    return expected.items() <= msgspec.structs.asdict(gap).items()


FIRST = [(0, "generation 1"), (1, "commit 0"), (2, "commit 1"), (6, "commit 0"), (7, "commit 1")]
"""Generation 1 with two partitions, each committed every five seconds. Later events start at offset 5."""


def gap_after_first(log: Log, *, one_batch: bool) -> CommitGap:
    """Return the first gap that opens in a log after FIRST. The log is one batch, or one batch per record."""
    records, partition_state, closed = log_of([*FIRST, *log]), PartitionSnapshot(0), []
    for batch in [records] if one_batch else [[record] for record in records]:
        partition_state, event = advanced(partition_state, batch)
        closed += event.gaps
    return next(gap for gap in closed if gap.position.offsets_topic_offset >= len(FIRST))


RULES: list[tuple[Log, dict[str, Any], str]] = [
    (
        [(8, "generation 2"), (19, "commit 0"), (21, "commit 1")],
        {"commit_gap_ms": 12_000, "worst_partition": 1, "worst_gap_ms": 14_000, "silent_partitions": 0},
        "5: the group's gap is from 7 to 19; the worst partition's gap is from 7 to 21",
    ),
    (
        [(8, "generation 2"), (19, "commit 1"), (20, "commit 0")],
        {"commit_gap_ms": 12_000, "worst_partition": 0, "worst_gap_ms": 14_000, "worst_topic": "orders"},
        "5: each partition counts from its own last commit",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (10, "commit 1")],
        {"usual_interval_ms": 5_000},
        "6: the interval comes from the generation before",
    ),
    (
        [(8, "generation 2"), (8, "another 0"), (12, "commit 0"), (13, "commit 1")],
        {"commit_gap_ms": 5_000},
        "3: a group id that is a prefix of the other group id is a different group",
    ),
    (
        [(8, "generation 2"), (9, "commit 2"), (11, "commit 0"), (12, "commit 1")],
        {"commit_gap_ms": 2_000, "worst_gap_ms": 5_000, "worst_partition": 0},
        "5: a new partition's first commit ends the group's gap; the new partition has no gap",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (9, "delete 1")],
        {"commit_gap_ms": 2_000, "worst_partition": 0, "silent_partitions": 0, "closed_by": "all_committed"},
        "3: a deleted partition is not pending any more",
    ),
    (
        [(7, "delete 1"), (8, "generation 2"), (9, "commit 0")],
        {"commit_gap_ms": 3_000, "silent_partitions": 0},
        "2: a deleted commit does not count: the last commit before is at 6",
    ),
    (
        [(8, "generation 2"), (9, "delete 0"), (9, "delete 1"), (12, "commit 0")],
        {"commit_gap_ms": None, "unknown_reason": "no_commit_after", "closed_by": "all_committed"},
        "4: commits after the record that closed the gap do not count",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (20, "generation 3")],
        {"commit_gap_ms": 2_000, "silent_partitions": 1, "closed_by": "next_rebalance", "worst_partition": 0},
        "4: the next boundary ends the gap; 5: the silent partition is not the worst",
    ),
    (
        [(8, "generation 2"), (20, "generation 3"), (21, "commit 0")],
        {"commit_gap_ms": None, "unknown_reason": "no_commit_after", "silent_partitions": 2},
        "7: no member committed between two rebalances",
    ),
    (
        [(8, "generation 2"), (9, "generation 2"), (12, "commit 0"), (13, "commit 1")],
        {"commit_gap_ms": 5_000, "closed_by": "all_committed"},
        "1: the rejoin of a static member in the same generation is not a boundary",
    ),
    (
        [(8, "emptied 2"), (60, "generation 3"), (61, "commit 0"), (62, "commit 1")],
        {"generation_id": 3, "commit_gap_ms": 54_000},
        "1: an empty group's record opens no gap; the time without members is part of the next gap",
    ),
    (
        [(8, "generation 2"), (308, "another 0"), (308.9, "commit 0"), (309, "another 0"), (309, "commit 1")],
        {"commit_gap_ms": 301_900, "silent_partitions": 1, "closed_by": "round_passed"},
        "4: a record 301 seconds later ends the gap; a record in second 300 does not",
    ),
    (
        [(8, "generation 2"), (309, "another 0"), (100, "commit 0"), (100, "commit 1")],
        {"commit_gap_ms": None, "unknown_reason": "no_commit_after", "closed_by": "round_passed"},
        "4: the order of the log decides, also if a clock went back",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (10, "ended"), (11, "another 0")],
        {"commit_gap_ms": 2_000, "silent_partitions": 1, "closed_by": "group_deleted"},
        "4: the group's tombstone ends the gap",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (20, "delete 0"), (20, "delete 1"), (20, "ended")],
        {"commit_gap_ms": 2_000, "silent_partitions": 0, "closed_by": "all_committed"},
        "10: Kafka deletes the commits before the group, so the row does not wait for a later record",
    ),
    (
        [(8, "generation 2"), (9, "ended"), (9.5, "member 0"), (9.5, "epoch 2"), (9.5, "targets 2")],
        {"commit_gap_ms": None, "unknown_reason": "no_commit_after", "closed_by": "group_deleted"},
        "10: the group was deleted, and created again half a second later",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (9, "ended"), (9, "member 0"), (9, "epoch 2"), (9, "targets 2")],
        {"commit_gap_ms": 2_000, "silent_partitions": 1, "closed_by": "next_rebalance"},
        "10: an upgrade ends the gap like a rebalance",
    ),
    (
        [(8, "epoch 2"), (8, "targets 2"), (9, "ended"), (9, "generation 2"), (10, "commit 0")],
        {"unknown_reason": "no_commit_after", "closed_by": "next_rebalance"},
        "10: a downgrade ends the gap like a rebalance",
    ),
    (
        [(8, "generation 2"), (9, "hole"), (12, "commit 0"), (13, "commit 1")],
        {"commit_gap_ms": None, "unknown_reason": "offsets_missing", "worst_gap_ms": None, "usual_interval_ms": 5_000},
        "7: the missing offset may have been a commit (compacted, aborted, or a transaction marker)",
    ),
    (
        [(8, "generation 2"), (9, "rubbish"), (12, "commit 0"), (13, "commit 1")],
        {"commit_gap_ms": None, "unknown_reason": "offsets_missing"},
        "7: an undecodable record counts as a missing offset",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (10, "hole"), (13, "commit 1")],
        {"commit_gap_ms": 2_000, "unknown_reason": None, "worst_gap_ms": None, "worst_partition": None},
        "7: the group's gap is known; one partition's gap is unknown and may be the worst",
    ),
    (
        [(8, "generation 2"), (9, "commit 0"), (10, "hole"), (13, "generation 3")],
        {"commit_gap_ms": 2_000, "silent_partitions": None, "worst_gap_ms": None},
        "7: it is unknown whether the other partition was silent",
    ),
    (
        [(8, "generation 2"), (9, "hole"), (10, "generation 3")],
        {"commit_gap_ms": None, "unknown_reason": "offsets_missing"},
        "7: it is unknown whether any member committed",
    ),
    (
        [(7, "hole"), (8, "generation 2"), (9, "commit 0"), (9, "commit 1")],
        {"unknown_reason": "offsets_missing", "usual_interval_ms": None},
        "7: the usual commit interval is unknown",
    ),
    (
        [(8, "generation 2"), (6.5, "commit 0"), (9, "commit 1")],
        {"commit_gap_ms": None, "unknown_reason": "clock_went_back", "worst_gap_ms": 2_000},
        "8: a group gap from 7 to 6.5 is impossible; the gap of each partition is valid",
    ),
    (
        [(8, "epoch 2"), (8, "targets 2"), (12, "commit 0"), (13, "commit 1")],
        {"generation_id": 2, "commit_gap_ms": 5_000},
        "1: the boundary of a KIP-848 group is the record with its target epoch",
    ),
    ([(8, "tasks 2"), (12, "commit 0"), (13, "commit 1")], {"commit_gap_ms": 5_000}, "1: the same for a streams group"),
]


@pytest.mark.parametrize(("log", "expected", "why"), RULES, ids=[why for _, _, why in RULES])
@pytest.mark.parametrize("one_batch", [True, False], ids=["one batch", "one batch per record"])
def test_each_rule(log: Log, expected: dict[str, Any], why: str, one_batch: bool) -> None:
    second = gap_after_first(log, one_batch=one_batch)
    assert is_shown(second, expected), f"{why}: {second}"


def test_the_first_generation_of_a_log_has_no_commit_before_it() -> None:
    """Rule 4: the gap closes at once. The start of a compacted log does not prove that no earlier commit existed."""
    (whole,) = gaps_in([(0, "generation 1")])
    assert is_shown(whole, {"unknown_reason": "no_commit_before", "closed_by": "nothing_before"})
    (holed,) = gaps_in([(0, "hole"), (0, "generation 1")])
    assert is_shown(holed, {"unknown_reason": "offsets_missing", "silent_partitions": None})


def test_share_groups_commit_no_offsets_and_have_no_gaps() -> None:
    assert gaps_in([(0, "commit 0"), (1, "shares 1"), (2, "commit 0")]) == []


def test_several_rebalances_without_a_commit_reach_back_to_the_same_last_commit() -> None:
    """In a rebalance storm only the last rebalance has a commit after it. Its gap covers the whole storm."""
    storm = [(10 + number, f"generation {2 + number}") for number in range(5)]
    *without, last = gaps_in([*FIRST, *storm, (30, "commit 0"), (31, "commit 1")])[1:]
    assert [gap.unknown_reason for gap in without] == ["no_commit_after"] * 4
    assert (last.commit_gap_ms, last.worst_gap_ms) == (23_000, 24_000)
    assert [gap.usual_interval_ms for gap in (*without, last)] == [5_000, None, None, None, None]


def test_compaction_makes_gaps_unknown_and_never_longer() -> None:
    """A compacted log has only the last record of each key, so the gap must become unknown."""
    log = [*FIRST, (8, "generation 2"), (9, "commit 0"), (10, "commit 1"), (14, "commit 0"), (15, "commit 1")]
    records = [*log_of(log), LogRecord(*(_record("another") or UNDECODABLE), 0, len(log), 400_000)]
    last_of_key = {record.key: record for record in records}
    compacted = [record for record in records if last_of_key[record.key] is record]
    _, event = advanced(PartitionSnapshot(0), compacted)
    assert [(gap.commit_gap_ms, gap.unknown_reason) for gap in event.gaps] == [(None, "offsets_missing")]


def test_a_gap_survives_a_restart_and_a_repeated_batch_returns_no_gap_twice() -> None:
    """Each gap is returned exactly once. The encoded partition state includes the open gap."""
    partition_state, _ = advanced(PartitionSnapshot(0), log_of([*FIRST, (8, "generation 2")]))
    assert [gap.generation_id for gap in partition_state.gaps.open.values()] == [2]
    records = log_of([*FIRST, (8, "generation 2"), (19, "commit 0"), (21, "commit 1")])[-2:]
    partition_state, event = advanced(partition_state, records)
    assert [gap.commit_gap_ms for gap in event.gaps] == [12_000]
    again, nothing = advanced(partition_state, records)
    assert (again, nothing) == (partition_state, GapsClosed((), {}))


def test_totals_are_absolute_and_end_with_the_group() -> None:
    partition_state, event = advanced(
        PartitionSnapshot(0), log_of([*FIRST, (8, "generation 2"), (19, "commit 0"), (21, "commit 1")])
    )
    assert event.totals == {"g": GapTotals((0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0), 12_000)} == partition_state.gap_totals()
    ended = LogRecord(group_key("g"), None, 0, partition_state.last_offset + 1, 30_000)
    partition_state, event = advanced(partition_state, [ended])
    assert event.totals == {"g": None}
    assert partition_state.gap_totals() == {}


@pytest.mark.parametrize("one_batch", [True, False], ids=["one batch", "one batch per record"])
@pytest.mark.parametrize(
    ("seconds", "total_ms", "why"),
    [(20, 7_000, "an upgrade: the gaps of 3 and 4 seconds"), (20.5, 4_000, "deleted, and created again")],
)
def test_an_upgrade_keeps_the_totals(seconds: float, total_ms: int, why: str, one_batch: bool) -> None:
    """Rule 10. Before, the gaps from before an upgrade were missing in the metric."""
    classic = [(8, "generation 2"), (10, "commit 0"), (10, "commit 1"), (20, "commit 0"), (20, "ended")]
    upgraded = [(seconds, what) for what in ("member 0", "epoch 2", "targets 2")]
    records = log_of([*FIRST, *classic, *upgraded, (24, "commit 0"), (24, "commit 1")])
    partition_state, totals = PartitionSnapshot(0), {}
    for batch in [records] if one_batch else [[record] for record in records]:
        partition_state, event = advanced(partition_state, batch)
        totals |= event.totals
    assert totals == partition_state.gap_totals(), "the driver has the totals of the partition state"
    assert totals["g"].sum_ms == total_ms, why


def test_the_cost_of_a_boundary_does_not_depend_on_all_partitions_of_its_group() -> None:
    """Before, 1,000 boundaries of a group with 5,000 partitions took 14 seconds of processor time."""

    def cost(boundaries: int, partitions: int) -> int:
        start = [(0, "generation 0"), *((1, f"commit {number}") for number in range(partitions))]
        rounds = ([(2, f"generation {number}"), (2, f"commit {number}")] for number in range(1, boundaries + 1))
        combiner = Combiner()
        combiner.add(record_batch(log_of([*start, *chain.from_iterable(rounds)])))
        (event,) = [decode_partition_event(payload) for kind, _, payload in combiner.rows() if kind != GROUP_KIND]
        return steps(lambda: advance_partition(PartitionSnapshot(0), event))

    assert cost(80, 800) < 2.5 * cost(40, 400)


@pytest.mark.parametrize(
    ("gap_ms", "bucket", "why"),
    [
        (0, 0, "a gap of zero"),
        (1_000, 0, "an upper bound belongs to its bucket"),
        (1_001, 1, "one millisecond more belongs to the next bucket"),
        (300_000, len(GAP_BUCKETS_SECONDS) - 1, "the last bound"),
        (300_001, len(GAP_BUCKETS_SECONDS), "a gap longer than the last bound"),
        (None, None, "an unknown gap is in no bucket"),
    ],
)
def test_gaps_are_counted_in_prometheus_buckets(gap_ms: int | None, bucket: int | None, why: str) -> None:
    (gap,) = gaps_in([(0, "generation 1")])
    totals = add_to_totals(GapTotals(), msgspec.structs.replace(gap, commit_gap_ms=gap_ms))
    assert totals.buckets == tuple(int(number == bucket) for number in range(len(GAP_BUCKETS_SECONDS) + 1)), why
    assert totals.sum_ms == (gap_ms or 0)


def test_vanished_commits_do_not_count_as_commits_before() -> None:
    """The driver found that a commit is gone without a tombstone. The next rebalance does not wait for it."""
    partition_state, _ = advanced(PartitionSnapshot(0), log_of(FIRST))
    vanished = CommitsVanished((commit_key("g", "orders", 1),), (4,))
    partition_state, event = advance_partition(partition_state, vanished)
    assert event is None
    _, closed = advanced(partition_state, log_of([*FIRST, (8, "generation 2"), (9, "commit 0")])[-2:])
    assert [(gap.commit_gap_ms, gap.closed_by) for gap in closed.gaps] == [(3_000, "all_committed")]


LIVES: list[tuple[Log, str]] = [
    ([(1, "generation 1"), (2, "generation 2"), (3, "emptied 3"), (4, "generation 4")], "classic"),
    (
        [(1, "generation 1"), (2, "ended"), (3, "generation 1"), (4, "generation 2")],
        "a classic group that is recreated",
    ),
    (
        [
            *[(1, "member 0"), (1, "epoch 1"), (1, "targets 1")],
            *[(2, "member 1"), (2, "epoch 2"), (3, "targets 2")],
            *[(4, "gone 0"), (4, "gone 1"), (4, "epoch 3"), (5, "member 2"), (5, "epoch 4"), (5, "targets 4")],
        ],
        "KIP-848: an epoch without members has no targets",
    ),
    (
        [(1, "generation 1"), (2, "ended"), (2, "member 0"), (2, "epoch 2"), (2, "targets 2")],
        "upgrade: the tombstone and the records of the new group are in one append",
    ),
    (
        [(1, "member 0"), (1, "epoch 2"), (1, "targets 2"), (2, "ended"), (2, "generation 2"), (3, "generation 3")],
        "downgrade: the tombstone and the classic record are in one append",
    ),
    ([(1, "generation 5"), (2, "generation 5"), (3, "generation 6")], "the same generation is written twice"),
]


@pytest.mark.parametrize(("log", "why"), LIVES, ids=[why for _, why in LIVES])
def test_a_gap_has_the_position_of_its_rebalance(log: Log, why: str) -> None:
    """The position joins the two tables. Each rebalance that assigns partitions has exactly one gap."""
    records = log_of(log)
    combiner = Combiner()
    combiner.add(record_batch(records))
    events = [decode_event(payload) for kind, _, payload in combiner.rows() if kind == GROUP_KIND]
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")])
    gives = {kinds.REBALANCE, kinds.FIRST_SEEN, kinds.CREATED, kinds.UPGRADED, kinds.DOWNGRADED}
    found = [of.rebalance for of in update.rebalances if of.rebalance.kind in gives]
    assert [(of.position, of.generation_id) for of in found] == _boundaries(gaps_in(log)), why


def _boundaries(gaps: Iterable[CommitGap]) -> list[tuple[Any, int]]:
    return [(gap.position, gap.generation_id) for gap in gaps]
