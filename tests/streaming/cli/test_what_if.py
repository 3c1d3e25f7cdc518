"""Test `rebalance-monitor what-if` on groups in the monitor's tables."""

from __future__ import annotations

import doctest
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

import streaming.cli.what_if
from assignors import assignor_named
from streaming.cli.what_if import what_if
from streaming.delta.rows import arrow_table
from streaming.delta.stored_table import StoredTable
from streaming.delta.tables import GROUP_GENERATIONS, PARTITIONED_BY
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.what_if.inputs import NO_ASSIGNMENT, UNKNOWN_MEMBER
from streaming.events import SHARE, STREAMS, GroupEvent, GroupMetadataWritten
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import TopicNames
from tests.streaming.groups import (
    at,
    current,
    emptied,
    epoch,
    formed,
    joined,
    member,
    metadata,
    modern_member,
    target,
    target_epoch,
    written,
)
from tests.streaming.past.history import lag_row, write_lag
from tests.streaming.table_rows import update_rows

TOPICS = ["t0", "t1", "t2", "t3"]
FIRST = member("a", {topic: [0, 1] for topic in TOPICS}, TOPICS)
SECOND = member("b", {topic: [2] for topic in TOPICS}, TOPICS)
SKEWED = written(0, 1, [FIRST, SECOND])
"""Range over four topics of three partitions: the first member has eight, the second four (RangeAssignor's javadoc)."""


MODERN = list(formed(0))
"""A KIP-848 group with one member."""
KIP_429 = ["--offers", "range", "--offers", "cooperative-sticky,range", "--offers", "cooperative-sticky"]
"""The migration from range to cooperative-sticky in two rolling restarts."""


ABSURD = written(0, 1, [member("a", {"t0": [0, 1, 2**31 - 1]}, TOPICS)])


def typed(protocol: str, protocol_type: str = "consumer") -> GroupEvent:
    """Return a classic group with one strategy and protocol type."""
    return GroupMetadataWritten(at(0), metadata(1, [FIRST], protocol=protocol, protocol_type=protocol_type))


def write(folder: Path, events: Sequence[GroupEvent], cluster: str = "prod") -> None:
    """Write the group's rows as the monitor does. The id of a topic is its name."""
    names = TopicNames(0, {topic: topic for topic in TOPICS})
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")], names=names)
    rows = arrow_table(GROUP_GENERATIONS, update_rows(cluster, [update], {})[GROUP_GENERATIONS])
    write_deltalake(str(folder / GROUP_GENERATIONS.name), rows, mode="append", partition_by=list(PARTITIONED_BY))


def run(folder: Path, events: Sequence[GroupEvent], *arguments: str) -> Result:
    """Write the group's rows and run the command."""
    write(folder, events)
    return CliRunner().invoke(what_if, ["g", "--tables", str(folder), *arguments])


def outcomes(folder: Path, *arguments: str) -> dict[str, dict[str, object]]:
    """Return the outcomes by strategy."""
    shown = run(folder, [SKEWED], "--json", *arguments)
    assert shown.exit_code == 0, shown.output
    return {outcome["strategy"]: outcome for outcome in json.loads(shown.output)["outcomes"]}


def test_only_the_last_generation_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A generation of 1,000 members needs 7 MB. All generations of a group in a storm together needed gigabytes."""
    members = [member("a", {"t": [0]}), member("b", {"t": [1]})]
    read_all, counts = StoredTable.rows, []

    def read(table: StoredTable, sql: str) -> list[dict[str, Any]]:
        rows = read_all(table, sql)
        counts.append(len(rows))
        return rows

    monkeypatch.setattr(StoredTable, "rows", read)
    assert run(tmp_path, [written(number, number + 1, members) for number in range(40)]).exit_code == 0
    assert max(counts) == 1


def test_a_strategy_that_removes_the_skew_is_shown_with_its_moved_partitions(tmp_path: Path) -> None:
    columns = ("sizes", "excess_partitions", "moved_partitions")
    by_strategy = outcomes(tmp_path)
    assert [by_strategy["range"][column] for column in columns] == [[4, 8], 2, 0]
    assert [by_strategy["sticky"][column] for column in columns] == [[6, 6], 0, 2]


@pytest.mark.parametrize(
    ("arguments", "sizes", "why"),
    [
        (["--members", "+1"], [4, 4, 4], "each member gets one partition of each topic"),
        (["--members", "-1"], [12], "the remaining member gets all"),
        (["--topic", "t0=4"], [5, 8], "t0 is shared evenly"),
        (["--members", "+1", "--topic", "t0=6"], [5, 5, 5], "both changes together"),
    ],
)
def test_members_and_partitions_can_be_changed_in_the_question(
    tmp_path: Path, arguments: list[str], sizes: list[int], why: str
) -> None:
    found = outcomes(tmp_path, "--strategy", "range", *arguments)
    assert list(found) == ["range"]
    assert found["range"]["sizes"] == sizes, why


def test_the_first_row_of_the_table_is_the_present_assignment(tmp_path: Path) -> None:
    shown = run(tmp_path, [SKEWED])
    assert shown.exit_code == 0, shown.output
    assert "g, as it is: 12 partitions over 2 members" in shown.output
    lines = [line for line in shown.output.splitlines() if "│" in line]
    assert "(today)" in lines[0]
    assert "1x4 1x8" in lines[0]
    assert any("cooperative-sticky" in line and "2x6" in line for line in lines)


def test_topic_skew_is_named_with_the_strategy_that_removes_it(tmp_path: Path) -> None:
    shown = run(tmp_path, [SKEWED], "--strategy", "range", "--strategy", "sticky").output
    assert "Today: the busiest member has 2 partitions too many;" in shown
    assert "topic skew: some members have one extra partition in each of 4 topics." in shown
    assert "sticky would remove these problems and move 2 partitions." in shown


@pytest.mark.parametrize(
    ("is_classic", "remedy"),
    [(True, "sticky would remove"), (False, "uniform would remove")],
    ids=["classic", "KIP-848"],
)
def test_the_remedy_is_a_strategy_of_the_groups_type(tmp_path: Path, is_classic: bool, remedy: str) -> None:
    """Before, the remedy of a KIP-848 group was `sticky`, which no coordinator has."""
    held = {"a": [(topic, (0, 1)) for topic in TOPICS], "b": [(topic, (2,)) for topic in TOPICS]}
    offsets = iter(range(100))
    modern: list[GroupEvent] = [
        *(joined(next(offsets), name, modern_member(TOPICS, server_assignor="range")) for name in held),
        epoch(next(offsets)),
        *(target(next(offsets), name, tuple(of_member)) for name, of_member in held.items()),
        target_epoch(next(offsets)),
        *(current(next(offsets), name, tuple(of_member)) for name, of_member in held.items()),
    ]
    shown = run(tmp_path, [SKEWED] if is_classic else modern)
    assert shown.exit_code == 0, shown.output
    assert remedy in shown.output


def test_a_fair_group_has_no_text_below_the_table(tmp_path: Path) -> None:
    even = written(0, 1, [member("a", {"t0": [0]}, ["t0"]), member("b", {"t0": [1]}, ["t0"])])
    assert "Today:" not in run(tmp_path, [even]).output


@pytest.mark.parametrize(
    ("events", "arguments", "message"),
    [
        ([emptied(0, 1)], [], "has no members now (state Empty)"),
        ([SKEWED], ["--topic", "t0=2"], "topics do not shrink"),
        ([SKEWED], ["--topic", "nobody=9"], "no member subscribes to nobody"),
        ([SKEWED], ["--topic", "t0"], "is not TOPIC=COUNT"),
        ([SKEWED], ["--topic", f"t0={5_000 * '9'}"], "the number of partitions of 't0' has more than 9 digits"),
        ([SKEWED], ["--topic", "t0=100000000"], "the group would have more than 1000000 partitions"),
        ([SKEWED], ["--members", "1000000000"], "the group would have more than 100000 members"),
        ([SKEWED], ["--members", "-2"], "no member is left"),
        ([SKEWED], ["--strategy", "rang"], "unknown assignor 'rang'"),
        ([SKEWED], ["--cluster", "other"], "contain no cluster 'other', only prod"),
        ([SKEWED], ["--offers", "range sticky range"], "contains 3 lists, but the group has 2 members"),
        ([SKEWED], ["--offers", "range,,sticky"], "contains an empty name"),
        ([SKEWED], ["--offers", " "], "contains an empty name"),
        ([SKEWED], ["--offers", "range", "--members", "+1"], "--offers cannot be combined with"),
        ([SKEWED], ["--offers", "range", "--strategy", "range"], "--offers cannot be combined with"),
        (MODERN, ["--offers", "range"], "its members do not vote for a strategy"),
        ([ABSURD], [], "a member has partition 2147483647, but only 3 partitions of the topic have an owner"),
        ([typed("stream")], [], NO_ASSIGNMENT),
        ([typed("default", "connect")], [], NO_ASSIGNMENT),
        (formed(0, group_type=SHARE), [], NO_ASSIGNMENT),
        (formed(0, group_type=STREAMS), [], NO_ASSIGNMENT),
        ([written(0, 1, [replace(FIRST, subscription=None)])], [], UNKNOWN_MEMBER),
        ([written(0, 1, [FIRST, replace(SECOND, assignment=None)])], [], UNKNOWN_MEMBER),
    ],
)
def test_an_invalid_question_is_an_error_without_a_traceback(
    tmp_path: Path, events: list[GroupEvent], arguments: list[str], message: str
) -> None:
    """Before, share and streams groups had a table, and an absurd partition number ended in a MemoryError."""
    refused = run(tmp_path, events, *arguments)
    assert refused.exit_code != 0
    assert message in " ".join(refused.output.split())
    assert "Traceback" not in refused.output


def test_a_group_that_only_commits_is_explained(tmp_path: Path) -> None:
    """Its consumers assign partitions themselves. The command reported that the tables do not contain the group."""
    write_lag(tmp_path, lag_row(11_000, 7, group_id="batch"))
    write(tmp_path, [SKEWED])
    for name, message in (("batch", "committed offsets of 'batch', but no members"), ("x", "no members of 'x'")):
        result = CliRunner().invoke(what_if, [name, "--tables", str(tmp_path)])
        assert (result.exit_code, message in result.output) == (1, True)


def test_the_examples_in_the_docstrings_are_true() -> None:
    tested = doctest.testmod(streaming.cli.what_if)
    assert (tested.failed, tested.attempted > 0) == (0, True)


def test_a_group_name_in_several_clusters_requires_the_cluster(tmp_path: Path) -> None:
    """Otherwise the command would use the last row of any group with this name."""
    write(tmp_path, [written(0, 2, [FIRST])], cluster="eu")
    refused = run(tmp_path, [SKEWED])
    assert refused.exit_code == 1
    assert "several clusters have a group 'g': set --cluster to one of eu, prod" in refused.output
    answered = CliRunner().invoke(what_if, ["g", "--tables", str(tmp_path), "--cluster", "eu"])
    assert "g, as it is: 8 partitions over 1 members" in answered.output


def rows_of(shown: Result) -> list[list[str]]:
    """Return the cells of the printed table."""
    assert shown.exit_code == 0, shown.output
    return [[cell.strip() for cell in line.strip("│").split("│")] for line in shown.output.splitlines() if "│" in line]


def test_a_topic_that_grows_moves_keys_to_other_partitions(tmp_path: Path) -> None:
    """An application that counts per key once gave wrong results after an operator had added partitions."""
    shown = run(tmp_path, [SKEWED], "--topic", "t0=6", "--topic", "t1=4", "--topic", "t2=3").output
    assert "Warning: if t0 grows from 3 to 6 partitions" in shown
    assert "default partitioner writes 50% of all keys to a different partition" in shown
    assert "Warning: if t1 grows from 3 to 4 partitions, Kafka's default partitioner writes 75% of all keys" in shown
    assert "t2 grows from" not in shown, "three partitions are the present count"


def test_without_a_topic_that_grows_no_key_moves(tmp_path: Path) -> None:
    assert "Warning" not in run(tmp_path, [SKEWED], "--members", "+1").output


def test_the_share_of_moved_keys_is_part_of_the_json(tmp_path: Path) -> None:
    shown = run(tmp_path, [SKEWED], "--json", "--topic", "t0=6", "--topic", "t2=3")
    assert json.loads(shown.output)["share_of_moved_keys"] == {"t0": 0.5}


def test_offers_shows_each_step_of_the_migration_to_cooperative_sticky(tmp_path: Path) -> None:
    """KIP-429. Many groups need this change, and a wrong order of the steps stops them."""
    shown = run(tmp_path, [SKEWED], *KIP_429)
    assert rows_of(shown) == [
        ["now", "0 of 2", "range", "range", "eager"],
        ["restart 1", "1 of 2", "cooperative-sticky,range and range", "range", "eager"],
        ["restart 1", "2 of 2", "cooperative-sticky,range", "cooperative-sticky", "eager"],
        [
            "restart 2",
            "1 of 2",
            "cooperative-sticky and cooperative-sticky,range",
            "cooperative-sticky",
            "cooperative and eager",
        ],
        ["restart 2", "2 of 2", "cooperative-sticky", "cooperative-sticky", "cooperative"],
    ]
    assert "INCONSISTENT_GROUP_PROTOCOL" not in shown.output


def test_offers_shows_that_a_change_in_one_restart_is_rejected(tmp_path: Path) -> None:
    shown = run(tmp_path, [SKEWED], "--offers", "range", "--offers", "cooperative-sticky")
    _, rejected, _ = rows_of(shown)
    assert rejected[3:] == ["INCONSISTENT_GROUP_PROTOCOL", ""]
    assert "First add the new strategy to the list of every member. Then remove the old strategy." in shown.output


def test_offers_warns_if_the_first_lists_do_not_describe_the_group(tmp_path: Path) -> None:
    """The record of the group has the strategy that the coordinator really chose."""
    shown = run(tmp_path, [SKEWED], "--offers", "sticky,range sticky")
    warning = "The group uses range now, but with the lists of the first --offers, it would choose sticky. Check"
    assert warning in shown.output


def test_offers_as_json_has_the_same_steps(tmp_path: Path) -> None:
    found = json.loads(run(tmp_path, [SKEWED], "--json", *KIP_429).output)
    assert found["members"] == 2
    assert [(step["restart"], step["strategy"], step["rebalance_protocols"]) for step in found["steps"]][-2:] == [
        (2, "cooperative-sticky", ["cooperative", "eager"]),
        (2, "cooperative-sticky", ["cooperative"]),
    ]
