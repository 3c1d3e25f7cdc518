"""Test the text of `rebalance-monitor history`, from tables as the monitor writes them."""

from __future__ import annotations

import doctest
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake
from msgspec import structs

import streaming.cli.history
import streaming.cli.text.conditions
from assignors import assignor_named
from streaming.cli.history import history
from streaming.combine.gaps import CommitGap
from streaming.delta.cells import Row
from streaming.delta.rows import arrow_table, commit_gap_rows, condition_rows
from streaming.delta.stored_table import StoredTable
from streaming.delta.tables import ASSIGNMENT_IMBALANCE, COMMIT_GAPS, GROUP_CONDITIONS, PARTITIONED_BY, REBALANCES
from streaming.evaluation.conditions.condition_tracker import Condition, ConditionChange
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances.rebalance_words import describe_rebalance
from streaming.events import AssignorReported, GroupEvent, GroupMetadataWritten, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import (
    at,
    emptied,
    formed,
    joined,
    member,
    metadata,
    modern_member,
    target,
    target_epoch,
    tombstoned,
    written,
)
from tests.streaming.groups import epoch as epoch_written
from tests.streaming.past.history import lag_row, write_lag, write_life
from tests.streaming.table_rows import update_rows

NAMED = TopicsSampled({"orders": TopicMetadata(9, 10**9, topic_id="id")})


def rows_of(events: Sequence[GroupEvent], group: str = "g", cluster: str = "prod") -> list[Row]:
    """Return the rows of a group's rebalances."""
    first = apply_batch(GroupState(GroupSnapshot(group)), events, [assignor_named("range")])
    named = apply_batch(first.record, [NAMED], [assignor_named("range")])
    return update_rows(cluster, [first, named], {})[REBALANCES]


def tables_with(folder: Path, *rows: Row) -> Path:
    """Write the rows as the monitor does."""
    table = arrow_table(REBALANCES, rows)
    write_deltalake(str(folder / REBALANCES.name), table, mode="append", partition_by=list(PARTITIONED_BY))
    return folder


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(history, ["--tables", str(folder), *arguments])


CLIENT_B, CLIENT_C = "client-b@127.0.0.1", "client-c@127.0.0.1"
A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
POD = member("a", {"orders": [0]}, instance_id="pod-1")
ALL = member("a", {"orders": [0, 1, 2, 3]})
LIFE = [written(0, 1, [A, B]), written(1, 2, [ALL]), emptied(2, 3), tombstoned(3)]


def test_only_the_last_rebalances_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rebalance of a group with 200 members needs 240 kB. After a storm, all rebalances together needed gigabytes."""
    storm = [written(number, number + 1, [A, B] if number % 2 else [ALL]) for number in range(40)]
    tables_with(tmp_path, *rows_of(storm))
    read_all, counts = StoredTable.rows, []

    def read(table: StoredTable, sql: str) -> list[Row]:
        rows: list[Row] = read_all(table, sql)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(StoredTable, "rows", read)
    assert len(run(tmp_path, "g", "--last", "2", "--json").stdout.splitlines()) > 0
    assert max(counts) == 4, "two rebalances, and a tombstone for each if both are upgrades"


def test_each_rebalance_is_one_line_with_its_time(tmp_path: Path) -> None:
    result = run(tables_with(tmp_path, *rows_of(LIFE), *rows_of(LIFE, "other")), "g")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "1970-01-01 00:00:00.000  generation 1: seen for the first time; 2 members",
        f"1970-01-01 00:00:01.000  generation 2: {CLIENT_B} is gone; 1 member; 2 partitions moved (2 necessary)",
        "1970-01-01 00:00:02.000  generation 3: client-a@127.0.0.1 is gone; the group is empty",
        "1970-01-01 00:00:03.000  generation 3: deleted",
    ]


def test_an_unfair_generation_is_described(tmp_path: Path) -> None:
    """One of two members owns all four partitions. It has two too many, and the other member is idle without need."""
    update = apply_batch(GroupState(GroupSnapshot("g")), [written(0, 1, [ALL, member("b")])], [assignor_named("range")])
    known = TopicsSampled({"orders": TopicMetadata(4, 10**9)})
    evaluated = apply_batch(update.record, [known], [assignor_named("range")])
    rows = update_rows("prod", [update, evaluated], {})
    shares = arrow_table(ASSIGNMENT_IMBALANCE, rows[ASSIGNMENT_IMBALANCE])
    write_deltalake(str(tmp_path / ASSIGNMENT_IMBALANCE.name), shares, partition_by=list(PARTITIONED_BY))
    (line,) = run(tables_with(tmp_path, *rows[REBALANCES]), "g").stdout.splitlines()
    assert line.endswith("; 2 members; the busiest member has 2 partitions too many; 1 member is idle without need")


def test_the_last_rebalances_can_be_printed_as_json(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("g", "--cluster", "nope"), "contain no cluster 'nope', only prod"),
        (("x", "--cluster", "prod"), "contain no rebalance of 'x': run `rebalance-monitor groups`"),
        (("batch",), "contain committed offsets of 'batch', but no rebalance. Either its consumers assign partitions"),
        (("\udcff",), "contain no rebalance of '\\udcff': run `rebalance-monitor groups`"),
    ],
)
def test_the_error_shows_why_there_are_no_rows(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    """For a wrong cluster, the remedy was about the group. A name that is not UTF-8 was an error of the storage."""
    write_life(tmp_path, LIFE)
    write_lag(tmp_path, lag_row(11_000, 7, group_id="batch"))
    result = run(tmp_path, *arguments)
    assert (result.exit_code, message in result.output) == (1, True)


def test_a_folder_name_that_is_not_utf_8_is_an_error_of_one_line(tmp_path: Path) -> None:
    result = run(tmp_path / "\udcff", "g")
    assert (result.exit_code, "is not a Delta table" in result.output) == (1, True)


def test_rebalances_of_one_cluster_do_not_change_the_history_of_a_different_cluster(tmp_path: Path) -> None:
    """The next record of the same cluster decides whether a tombstone is the end of a group."""
    upgraded = rows_of([written(0, 1, [A]), tombstoned(1, append_of=2), epoch_written(2, 2)])
    assert [row["kind"] for row in upgraded][-2:] == ["deleted", "upgraded"]
    alone = run(tables_with(tmp_path / "alone", *upgraded), "g", "--cluster", "prod").stdout
    elsewhere = rows_of([written(0, 1, [B])], cluster="test")
    between = {**elsewhere[0], "record_time": upgraded[-2]["record_time"]}
    both = run(tables_with(tmp_path / "both", *upgraded, between), "g").stdout
    of_prod = [line.replace("prod  ", "") for line in both.splitlines() if "prod" in line]
    assert of_prod == alone.splitlines()


def test_the_tombstone_of_an_upgraded_group_is_not_its_end(tmp_path: Path) -> None:
    """The coordinator deletes the classic record and writes the new records in the same append."""
    rows = rows_of([written(0, 3), tombstoned(1, append_of=2), *formed(2, 3)])
    output = run(tables_with(tmp_path, *rows), "g").stdout
    assert "deleted" not in output
    assert "upgraded from the classic protocol" in output


def test_a_strategy_that_the_coordinator_reported_is_marked(tmp_path: Path) -> None:
    """If no member of a KIP-848 group names an assignor, the group uses the broker's default."""
    named = modern_member(server_assignor="range")
    events = [
        *formed(0),
        joined(5, "m", named),
        epoch_written(6, 4),
        target_epoch(7, 4),
        joined(8, "m"),
        epoch_written(9, 5),
        AssignorReported(5, "uniform"),
        target_epoch(10, 5),
    ]
    taken, record = [], GroupState(GroupSnapshot("g"))
    for event in [*events, NAMED]:
        taken.append(apply_batch(record, [event], [assignor_named("uniform")]))
        record = taken[-1].record
    rows = update_rows("prod", taken, {})[REBALANCES]
    assert [row["protocol_source"] for row in rows] == [None, "records", "broker"]
    assert (
        "the strategy changed from range to uniform (reported by the broker)"
        in run(tables_with(tmp_path / "new", *rows), "g").stdout
    )
    (tmp_path / "old").mkdir()
    table = arrow_table(REBALANCES, rows).drop_columns(["protocol_source"])
    write_deltalake(str(tmp_path / "old" / REBALANCES.name), table, partition_by=list(PARTITIONED_BY))
    output = run(tmp_path / "old", "g").stdout
    assert "the strategy changed from range to uniform" in output, "an older table without the column"
    assert "reported" not in output


def test_control_characters_in_a_client_id_are_escaped(tmp_path: Path) -> None:
    """Every client can choose its client id."""
    hostile = member("\x1b[2J[red]", {"orders": [0]})
    output = run(tables_with(tmp_path, *rows_of([written(0, 1), written(1, 2, [hostile])])), "g").stdout
    assert "\x1b" not in output
    assert "client-\\x1b[2J[red]" in output


def test_a_missing_table_or_group_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    missing = run(tmp_path / "nowhere", "g")
    assert missing.exit_code == 1
    assert "is not a Delta table: specify the folder" in missing.output
    unknown = run(tables_with(tmp_path, *rows_of(LIFE)), "nobody")
    assert unknown.exit_code == 1
    assert "no rebalance of 'nobody'" in unknown.output


def conditions_in(folder: Path, *changes: tuple[int, bool, str], since: int = 1) -> None:
    """Write changes of the condition flapping_member as the monitor does: (second, is active, detail)."""
    for second, active, detail in changes:
        condition = Condition("flapping_member", since * 1000, detail)
        change = ConditionChange("g", condition, active=active, read_up_to_ms=second * 1000)
        table = arrow_table(GROUP_CONDITIONS, condition_rows("prod", second * 1000, [change]))
        write_deltalake(str(folder / GROUP_CONDITIONS.name), table, mode="append", partition_by=list(PARTITIONED_BY))


FLAP_THRESHOLD = "member pod-3 left or rejoined 4 times in 10 minutes"


def test_conditions_are_sorted_by_time_and_active_conditions_come_last(tmp_path: Path) -> None:
    """The alert reports only that a member flaps. The history names the member.

    The counts of an active condition are as old as its last row. `history` showed the counts of the start as if they
    were the present ones: 17 rebalances, when there were 107.
    """
    folder = tables_with(tmp_path, *rows_of(LIFE[:3]))
    conditions_in(folder, (1, True, FLAP_THRESHOLD), (91, False, FLAP_THRESHOLD))
    conditions_in(folder, (92, True, FLAP_THRESHOLD), since=92)
    lines = run(folder, "g").stdout.splitlines()
    assert [line for line in lines if "flapping" in line] == [
        f"1970-01-01 00:00:01.000  flapping member: {FLAP_THRESHOLD}",
        f"1970-01-01 00:01:31.000  flapping member ended after 90 seconds: {FLAP_THRESHOLD}",
        f"1970-01-01 00:01:32.000  flapping member: {FLAP_THRESHOLD}",
        f"since 1970-01-01 00:01:32 flapping member: {FLAP_THRESHOLD} (as of 1970-01-01 00:01:32)",
    ]
    assert "generation 2" in lines[1], "sorted by time"
    assert len(run(folder, "g", "--json").stdout.splitlines()) == 3, "only rows of `rebalances`"


def test_a_condition_starts_at_the_same_time_as_on_the_page(tmp_path: Path) -> None:
    """The monitor caught up, so it saw the start 84 s late. The lines were 7 minutes apart, but showed 8 minutes."""
    folder = tables_with(tmp_path, *rows_of(LIFE[:3]))
    conditions_in(folder, (85, True, FLAP_THRESHOLD), (501, False, FLAP_THRESHOLD))
    assert [line for line in run(folder, "g").stdout.splitlines() if "flapping" in line] == [
        f"1970-01-01 00:00:01.000  flapping member: {FLAP_THRESHOLD}",
        f"1970-01-01 00:08:21.000  flapping member ended after 8 minutes: {FLAP_THRESHOLD}",
    ]


def test_conditions_before_the_first_shown_rebalance_are_omitted_unless_they_are_active(tmp_path: Path) -> None:
    folder = tables_with(tmp_path, *rows_of(LIFE[:3]))
    conditions_in(folder, (0, True, FLAP_THRESHOLD), (1, False, FLAP_THRESHOLD))
    assert "flapping" not in run(folder, "g", "--last", "1").stdout
    conditions_in(folder, (2, True, FLAP_THRESHOLD))
    output = run(folder, "g", "--last", "1").stdout.splitlines()
    assert output[-1] == f"since 1970-01-01 00:00:01 flapping member: {FLAP_THRESHOLD} (as of 1970-01-01 00:00:02)"


def test_a_group_without_a_rebalance_can_have_conditions(tmp_path: Path) -> None:
    """With the polling source a classic group has no generation, so it has no rows of rebalances."""
    folder = tables_with(tmp_path, *rows_of(LIFE, "other"))
    conditions_in(folder, (1, True, "static member \x1b[2J owns 1 partition and has not committed"))
    output = run(folder, "g").stdout
    assert "since 1970-01-01 00:00:01 flapping member: static member \\x1b[2J owns 1 partition" in output


def cooperative(offsets_topic_offset: int, generation_id: int, *members: object) -> GroupEvent:
    """Return a generation with the strategy cooperative-sticky."""
    return GroupMetadataWritten(
        at(offsets_topic_offset),
        metadata(generation_id, members, protocol="cooperative-sticky"),  # type: ignore[arg-type]
    )


ROUND_ONE = cooperative(1, 2, member("a", {"orders": [0, 1]}, owned=[("orders", 2), ("orders", 3)]), member("b"))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (
            [written(0, 1, [ALL]), written(1, 5, [ALL])],
            "no record shows a cause; 1 member; no partition moved; 3 preceding generations have no record",
        ),
        (
            [cooperative(0, 1, ALL), ROUND_ONE],
            f"{CLIENT_B} joined; 2 members; 2 partitions withheld until the next round",
        ),
        (
            [cooperative(0, 1, ALL), ROUND_ONE, cooperative(2, 3, A, B)],
            "the next round of a cooperative rebalance; 2 members; 2 partitions moved (2 necessary)",
        ),
        (
            [written(0, 1, [ALL]), written(1, 2, [member("a", {"orders": [0]}), member("b", {"orders": [1, 2, 3]})])],
            f"{CLIENT_B} joined; 2 members; 3 partitions moved (1 necessary)",
        ),
        (
            [written(0, 1, [A, B]), written(1, 2, [A, member("b", {"orders": [2]})])],
            "no record shows a cause; 2 members; no partition moved; 1 partition no longer assigned",
        ),
        (
            [written(0, 1, [A, B]), cooperative(1, 2, A, B)],
            "the strategy changed from range to cooperative-sticky; 2 members; no partition moved",
        ),
        (
            [written(0, 1, [ALL]), written(1, 2, [ALL, *(member(name) for name in "bcde")])],
            f"{CLIENT_B}, {CLIENT_C}, client-d@127.0.0.1 and 1 more joined; 5 members; no partition moved",
        ),
        (
            [written(0, 1, [A, B]), written(1, 2, [A, member("b", {"orders": [2, 3]}, ["orders", "sales"])])],
            f"{CLIENT_B} changed its subscription; 2 members; no partition moved",
        ),
        (
            [*formed(0), target(5, "n", ()), epoch_written(6, 4), target_epoch(7, 4)],
            "the cause is unknown (missing: member_metadata); 1 member; no partition moved",
        ),
        (
            [*formed(0), joined(5, "n"), epoch_written(6, 4), target(7, "n", ()), target_epoch(8, 4)],
            "client@127.0.0.1 joined; 2 members; no partition moved",
        ),
        (
            [written(0, 1, [POD]), written(1, 1, [replace(POD, member_id="a2")])],
            "static member pod-1 rejoined under a new member id; no rebalance",
        ),
    ],
)
def test_sentences(events: list[GroupEvent], message: str) -> None:
    """Each sentence names the causes, the members and the moved partitions of a rebalance."""
    row = arrow_table(REBALANCES, rows_of(events)).to_pylist()[-1]
    assert describe_rebalance(row) == message


def test_the_sync_time_is_shown_if_it_is_known() -> None:
    row = arrow_table(REBALANCES, rows_of([written(0, 1, [A, B]), written(1, 2, [ALL])])).to_pylist()[-1]
    assert describe_rebalance({**row, "sync_time_ms": 120}).endswith("; assigned within 120 ms")


@pytest.mark.parametrize("module", [streaming.cli.history, streaming.cli.text.conditions])
def test_the_examples_in_the_docstrings_are_true(module: ModuleType) -> None:
    assert doctest.testmod(module).failed == 0


def test_a_condition_shown_by_several_rebalances_is_at_the_end_of_the_line() -> None:
    """Five rebalances within five seconds are a storm, which the line of the fifth shows."""
    rows = arrow_table(REBALANCES, rows_of([written(number, number, [ALL]) for number in range(6)])).to_pylist()
    assert [describe_rebalance(row).endswith("; rebalance storm") for row in rows] == [False] * 5 + [True]


SECOND_LINE = f"{CLIENT_B} is gone; 1 member; 2 partitions moved (2 necessary)"
SETTLED = CommitGap("g", at(1), 2, 12_000, None, "orders", 3, 30_500, 0, 5_000, 0, "all_committed")


@pytest.mark.parametrize(
    ("gap", "message", "why"),
    [
        (
            SETTLED,
            "; no member committed for 12.0 s (usual interval: 5.0 s); orders-3 was not committed for 30.5 s",
            "the group's gap, its usual interval, and the worst partition",
        ),
        (
            structs.replace(SETTLED, usual_interval_ms=None, worst_gap_ms=12_000),
            "; no member committed for 12.0 s",
            "the usual interval is unknown, and the worst partition waited no longer than the group",
        ),
        (
            structs.replace(SETTLED, usual_interval_ms=None, worst_gap_ms=12_000, recommitted_records=40),
            "; no member committed for 12.0 s; 40 records were committed twice",
            "the first commit is lower than the last commit before the rebalance",
        ),
        (
            structs.replace(SETTLED, commit_gap_ms=None, unknown_reason="no_commit_after", closed_by="next_rebalance"),
            "; no member committed before the next rebalance",
            "a rebalance storm",
        ),
        (
            structs.replace(SETTLED, commit_gap_ms=None, unknown_reason="no_commit_after", closed_by="round_passed"),
            "; no member committed within evaluation.stuck_after_seconds",
            "a stuck group, or a group without new records",
        ),
        (
            structs.replace(SETTLED, commit_gap_ms=None, unknown_reason="offsets_missing"),
            "; the commit gap is unknown: offsets missing",
            "records that were compacted away",
        ),
        (
            structs.replace(SETTLED, commit_gap_ms=None, unknown_reason="no_commit_before", closed_by="nothing_before"),
            "",
            "no text for a group that never commits (Kafka Connect)",
        ),
        (structs.replace(SETTLED, position=at(0)), "", "the gap of another rebalance"),
    ],
)
def test_the_commit_gap_is_shown_with_its_rebalance(tmp_path: Path, gap: CommitGap, message: str, why: str) -> None:
    tables_with(tmp_path, *rows_of(LIFE[:2]))
    rows = arrow_table(COMMIT_GAPS, commit_gap_rows("prod", [gap])[COMMIT_GAPS])
    write_deltalake(str(tmp_path / COMMIT_GAPS.name), rows, partition_by=list(PARTITIONED_BY))
    assert run(tmp_path, "g", "--last", "1").stdout.strip().endswith(f"{SECOND_LINE}{message}"), why
