"""Test `rebalance-monitor what-if` on groups in the monitor's tables."""

from __future__ import annotations

import doctest
import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from deltalake import write_deltalake

import streaming.cli.what_if
from assignors import assignor_named
from streaming.cli.what_if import what_if
from streaming.delta.rows import arrow_table, update_rows
from streaming.delta.tables import GROUP_GENERATIONS, PARTITIONED_BY
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import GroupEvent
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import emptied, member, written

TOPICS = ["t0", "t1", "t2", "t3"]
FIRST = member("a", {topic: [0, 1] for topic in TOPICS}, TOPICS)
SECOND = member("b", {topic: [2] for topic in TOPICS}, TOPICS)
SKEWED = written(0, 1, [FIRST, SECOND])
"""Range over four topics of three partitions: the first member has eight, the second four (RangeAssignor's javadoc)."""


def write(folder: Path, events: Sequence[GroupEvent], cluster: str = "prod") -> None:
    """Write the group's rows as the monitor does."""
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")])
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
        (["--partitions", "t0=4"], [5, 8], "t0 is shared evenly"),
        (["--members", "+1", "--partitions", "t0=6"], [5, 5, 5], "both changes together"),
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
    assert "topic skew: the same members have the extra partition of 4 topics." in shown
    assert "sticky would remove this problem and move 2 partitions." in shown


def test_a_fair_group_has_no_text_below_the_table(tmp_path: Path) -> None:
    even = written(0, 1, [member("a", {"t0": [0]}, ["t0"]), member("b", {"t0": [1]}, ["t0"])])
    assert "Today:" not in run(tmp_path, [even]).output


@pytest.mark.parametrize(
    ("events", "arguments", "message"),
    [
        ([emptied(0, 1)], [], "has no members now (state Empty)"),
        ([SKEWED], ["--partitions", "t0=2"], "topics do not shrink"),
        ([SKEWED], ["--partitions", "nobody=9"], "no member subscribes to nobody"),
        ([SKEWED], ["--partitions", "t0"], "is not TOPIC=COUNT"),
        ([SKEWED], ["--members", "-2"], "no member is left"),
        ([SKEWED], ["--strategy", "rang"], "unknown assignor 'rang'"),
        ([SKEWED], ["--cluster", "other"], "has no group 'g'"),
    ],
)
def test_an_invalid_question_is_an_error_without_a_traceback(
    tmp_path: Path, events: list[GroupEvent], arguments: list[str], message: str
) -> None:
    refused = run(tmp_path, events, *arguments)
    assert refused.exit_code != 0
    assert message in " ".join(refused.output.split())
    assert "Traceback" not in refused.output


def test_the_examples_in_the_docstrings_are_true() -> None:
    assert doctest.testmod(streaming.cli.what_if).failed == 0


def test_a_group_name_in_several_clusters_requires_the_cluster(tmp_path: Path) -> None:
    """Otherwise the command would use the last row of any group with this name."""
    write(tmp_path, [written(0, 2, [FIRST])], cluster="eu")
    refused = run(tmp_path, [SKEWED])
    assert refused.exit_code == 1
    assert "several clusters have a group 'g': set --cluster to one of eu, prod" in refused.output
    answered = CliRunner().invoke(what_if, ["g", "--tables", str(tmp_path), "--cluster", "eu"])
    assert "g, as it is: 8 partitions over 1 members" in answered.output
