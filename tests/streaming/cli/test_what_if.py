"""`rebalance-monitor what-if` on groups as the monitor's tables have them."""

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
"""Range over four topics of three: the first member has eight, the second four (RangeAssignor's javadoc)."""


def write(folder: Path, events: Sequence[GroupEvent], cluster: str = "prod") -> None:
    """Write the group's rows as the monitor does."""
    update = apply_batch(GroupState(GroupSnapshot("g")), events, [assignor_named("range")])
    rows = arrow_table(GROUP_GENERATIONS, update_rows(cluster, [update], {})[GROUP_GENERATIONS])
    write_deltalake(str(folder / GROUP_GENERATIONS.name), rows, mode="append", partition_by=list(PARTITIONED_BY))


def run(folder: Path, events: Sequence[GroupEvent], *arguments: str) -> Result:
    """Write the group's rows and ask."""
    write(folder, events)
    return CliRunner().invoke(what_if, ["g", "--tables", str(folder), *arguments])


def outcomes(folder: Path, *arguments: str) -> dict[str, dict[str, object]]:
    """Return the outcomes by strategy."""
    shown = run(folder, [SKEWED], "--json", *arguments)
    assert shown.exit_code == 0, shown.output
    return {outcome["strategy"]: outcome for outcome in json.loads(shown.output)["outcomes"]}


def test_the_strategy_that_would_even_a_skewed_group_out_is_seen_with_its_price(tmp_path: Path) -> None:
    found = outcomes(tmp_path)
    assert (found["range"]["sizes"], found["range"]["excess_partitions"], found["range"]["moved_partitions"]) == (
        [4, 8],
        2,
        0,
    )
    assert (found["sticky"]["sizes"], found["sticky"]["excess_partitions"], found["sticky"]["moved_partitions"]) == (
        [6, 6],
        0,
        2,
    )


@pytest.mark.parametrize(
    ("arguments", "sizes", "why"),
    [
        (["--members", "+1"], [4, 4, 4], "one of each topic for each"),
        (["--members", "-1"], [12], "all to who is left"),
        (["--partitions", "t0=4"], [5, 8], "t0 is even then"),
        (["--members", "+1", "--partitions", "t0=6"], [5, 5, 5], "both at once"),
    ],
)
def test_members_and_partitions_can_be_asked_for_beforehand(
    tmp_path: Path, arguments: list[str], sizes: list[int], why: str
) -> None:
    found = outcomes(tmp_path, "--strategy", "range", *arguments)
    assert list(found) == ["range"]
    assert found["range"]["sizes"] == sizes, why


def test_a_person_reads_a_table_that_begins_with_today(tmp_path: Path) -> None:
    shown = run(tmp_path, [SKEWED])
    assert shown.exit_code == 0, shown.output
    assert "g, as it is: 12 partitions over 2 members" in shown.output
    lines = [line for line in shown.output.splitlines() if "│" in line]
    assert "(today)" in lines[0]
    assert "1x4 1x8" in lines[0]
    assert any("cooperative-sticky" in line and "2x6" in line for line in lines)


def test_multi_topic_range_skew_is_called_that_and_who_removes_it_is_named(tmp_path: Path) -> None:
    shown = run(tmp_path, [SKEWED], "--strategy", "range", "--strategy", "sticky").output
    assert "Today: the busiest member has 2 partitions too many;" in shown
    assert "topic skew: the same members have the extra partition of 4 topics." in shown
    assert "sticky would remove this problem and move 2 partitions." in shown


def test_of_a_fair_group_nothing_is_said_below_the_table(tmp_path: Path) -> None:
    even = written(0, 1, [member("a", {"t0": [0]}, ["t0"]), member("b", {"t0": [1]}, ["t0"])])
    assert "Today:" not in run(tmp_path, [even]).output


@pytest.mark.parametrize(
    ("events", "arguments", "said"),
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
def test_what_cannot_be_answered_is_said_in_a_line(
    tmp_path: Path, events: list[GroupEvent], arguments: list[str], said: str
) -> None:
    refused = run(tmp_path, events, *arguments)
    assert refused.exit_code != 0
    assert said in " ".join(refused.output.split())
    assert "Traceback" not in refused.output


def test_the_examples_hold() -> None:
    assert doctest.testmod(streaming.cli.what_if).failed == 0


def test_a_group_that_several_clusters_have_is_asked_for_by_cluster(tmp_path: Path) -> None:
    """The last row of any of them would be an answer on some group of that name."""
    write(tmp_path, [written(0, 2, [FIRST])], cluster="eu")
    refused = run(tmp_path, [SKEWED])
    assert refused.exit_code == 1
    assert "several clusters have a group 'g': set --cluster to one of eu, prod" in refused.output
    answered = CliRunner().invoke(what_if, ["g", "--tables", str(tmp_path), "--cluster", "eu"])
    assert "g, as it is: 8 partitions over 1 members" in answered.output
