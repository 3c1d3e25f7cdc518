"""`rebalance-monitor history` as a person on call reads it, from tables as the monitor writes them."""

from __future__ import annotations

import doctest
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

import streaming.cli.history
from assignors import assignor_named
from streaming.cli.history import history
from streaming.events import GroupEvent, GroupMetadataWritten, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.rebalance_words import sentence
from streaming.judgement.turn import GroupRecord, take_turn
from streaming.sinks.rows import Row, arrow_table, turn_rows
from streaming.sinks.tables import PARTITIONED_BY, REBALANCES
from tests.streaming.groups import (
    at,
    emptied,
    formed,
    joined,
    member,
    metadata,
    target,
    target_epoch,
    tombstoned,
    written,
)
from tests.streaming.groups import epoch as epoch_written

NAMED = TopicsSampled({"orders": TopicMetadata(9, 10**9, topic_id="id")})


def rows_of(events: Sequence[GroupEvent], group: str = "g", cluster: str = "prod") -> list[Row]:
    """Return the rows of a group's rebalances."""
    first = take_turn(GroupRecord(GroupSnapshot(group)), events, [assignor_named("range")])
    named = take_turn(first.record, [NAMED], [assignor_named("range")])
    return turn_rows(cluster, [first, named], {})[REBALANCES]


def tables_with(folder: Path, *rows: Row) -> Path:
    """Write the rows as the monitor does."""
    table = arrow_table(REBALANCES, rows)
    write_deltalake(str(folder / REBALANCES.name), table, mode="append", partition_by=list(PARTITIONED_BY))
    return folder


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(history, ["--tables", str(folder), *arguments])


CLIENT_B, CLIENT_C = "client-b (/127.0.0.1)", "client-c (/127.0.0.1)"
A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
POD = member("a", {"orders": [0]}, instance_id="pod-1")
ALL = member("a", {"orders": [0, 1, 2, 3]})
LIFE = [written(0, 1, [A, B]), written(1, 2, [ALL]), emptied(2, 3), tombstoned(3)]


def test_a_groups_life_is_told_line_by_line_with_times(tmp_path: Path) -> None:
    result = run(tables_with(tmp_path, *rows_of(LIFE), *rows_of(LIFE, "other")), "g")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "1970-01-01 00:00:00.000  generation 1: seen for the first time; 2 members",
        f"1970-01-01 00:00:01.000  generation 2: {CLIENT_B} is gone; 1 member; 2 partitions moved, no fewer would do",
        "1970-01-01 00:00:02.000  generation 3: client-a (/127.0.0.1) is gone; the group is empty",
        "1970-01-01 00:00:03.000  generation 3: deleted",
    ]


def test_only_the_last_ones_and_as_json_where_a_program_reads(tmp_path: Path) -> None:
    result = run(tables_with(tmp_path, *rows_of(LIFE)), "g", "--last", "3", "--json")
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert [row["kind"] for row in found] == ["rebalance", "became_empty", "deleted"]
    assert found[0]["changes"][0]["assigned"] == [
        {"topic": "orders", "partition": 2},
        {"topic": "orders", "partition": 3},
    ]
    assert found[0]["record_time"] == "1970-01-01 00:00:01+00:00"


def test_clusters_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    folder = tables_with(tmp_path, *rows_of(LIFE[:1]), *rows_of(LIFE[:1], cluster="test"))
    assert ["  prod  " in line for line in run(folder, "g").stdout.splitlines()] == [True, False]
    assert len(run(folder, "g", "--cluster", "test").stdout.splitlines()) == 1


def test_an_upgraded_groups_tombstone_is_no_end(tmp_path: Path) -> None:
    """The coordinator tombstones the classic record and goes on in the same append."""
    told = run(tables_with(tmp_path, *rows_of([written(0, 3), tombstoned(1), *formed(2, 3)])), "g").stdout
    assert "deleted" not in told
    assert "upgraded to the consumer protocol (KIP-848)" in told


def test_what_others_named_reaches_the_terminal_unarmed(tmp_path: Path) -> None:
    """A client id may hold terminal controls."""
    hostile = member("\x1b[2J[red]", {"orders": [0]})
    told = run(tables_with(tmp_path, *rows_of([written(0, 1), written(1, 2, [hostile])])), "g").stdout
    assert "\x1b" not in told
    assert "client-\\x1b[2J[red]" in told


def test_what_is_missing_is_said_with_the_remedy(tmp_path: Path) -> None:
    missing = run(tmp_path / "nowhere", "g")
    assert missing.exit_code == 1
    assert "is no Delta table: name the folder" in missing.output
    unknown = run(tables_with(tmp_path, *rows_of(LIFE)), "nobody")
    assert unknown.exit_code == 1
    assert "no rebalance of 'nobody'" in unknown.output


def cooperative(kafka_offset: int, generation_id: int, *members: object) -> GroupEvent:
    """Return a generation made by a cooperative leader."""
    return GroupMetadataWritten(
        at(kafka_offset),
        metadata(generation_id, members, protocol="cooperative-sticky"),  # type: ignore[arg-type]
    )


ROUND_ONE = cooperative(1, 2, member("a", {"orders": [0, 1]}, owned=[("orders", 2), ("orders", 3)]), member("b"))


@pytest.mark.parametrize(
    ("events", "said"),
    [
        (
            [written(0, 1, [ALL]), written(1, 5, [ALL])],
            "no record says why; 1 member; no partition moved; 3 generations before it without a record",
        ),
        (
            [cooperative(0, 1, ALL), ROUND_ONE],
            f"{CLIENT_B} joined; 2 members; 2 partitions to be handed over in the next round",
        ),
        (
            [cooperative(0, 1, ALL), ROUND_ONE, cooperative(2, 3, A, B)],
            "the next round of a cooperative rebalance; 2 members; 2 partitions moved, no fewer would do",
        ),
        (
            [written(0, 1, [ALL]), written(1, 2, [member("a", {"orders": [0]}), member("b", {"orders": [1, 2, 3]})])],
            f"{CLIENT_B} joined; 2 members; 3 partitions moved, 1 had to",
        ),
        (
            [written(0, 1, [A, B]), written(1, 2, [A, member("b", {"orders": [2]})])],
            "no record says why; 2 members; no partition moved; 1 partition without an owner",
        ),
        (
            [written(0, 1, [A, B]), cooperative(1, 2, A, B)],
            "the strategy changed from range to cooperative-sticky; 2 members; no partition moved",
        ),
        (
            [written(0, 1, [ALL]), written(1, 2, [ALL, *(member(name) for name in "bcde")])],
            f"{CLIENT_B}, {CLIENT_C}, client-d (/127.0.0.1) and 1 more joined; 5 members; no partition moved",
        ),
        (
            [written(0, 1, [A, B]), written(1, 2, [A, member("b", {"orders": [2, 3]}, ["orders", "sales"])])],
            f"{CLIENT_B} subscribes anew; 2 members; no partition moved",
        ),
        (
            [*formed(0), target(5, "n", ()), epoch_written(6, 4), target_epoch(7, 4)],
            "the cause is unknown: member_metadata missing; 1 member; no partition moved",
        ),
        (
            [*formed(0), joined(5, "n"), epoch_written(6, 4), target(7, "n", ()), target_epoch(8, 4)],
            "client (/127.0.0.1) joined; 2 members; no partition moved",
        ),
        (
            [written(0, 1, [POD]), written(1, 1, [replace(POD, member_id="a2")])],
            "static member pod-1 rejoined under a new member id; no rebalance",
        ),
    ],
)
def test_sentences(events: list[GroupEvent], said: str) -> None:
    """What an on-call person reads needs no manual."""
    row = arrow_table(REBALANCES, rows_of(events)).to_pylist()[-1]
    assert sentence(row) == said


def test_the_sync_time_is_told_where_the_record_tells_it() -> None:
    row = arrow_table(REBALANCES, rows_of([written(0, 1, [A, B]), written(1, 2, [ALL])])).to_pylist()[-1]
    assert sentence({**row, "sync_time_ms": 120}).endswith("; assigned within 120 ms")


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(streaming.cli.history).failed == 0


def test_what_the_last_ones_show_together_ends_the_line() -> None:
    """Five within five seconds: the fifth says that it is a storm."""
    rows = arrow_table(REBALANCES, rows_of([written(number, number, [ALL]) for number in range(6)])).to_pylist()
    assert [sentence(row).endswith("; rebalance storm") for row in rows] == [False] * 5 + [True]
