"""Tests of `rebalance-monitor history GROUP --at` and `--between`, from tables as the monitor writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from streaming.cli.history import history
from streaming.delta.incident_rows import incident_row
from streaming.delta.tables import INCIDENTS
from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.incidents.incident import Incident, make_incident_id
from streaming.evaluation.incidents.story import headline, story
from tests.streaming.groups import emptied, member, tombstoned, written
from tests.streaming.past.history import lag_row, write_condition, write_lag, write_life, write_rows, write_status

A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
ALL = member("a", {"orders": [0, 1, 2, 3]})
LIFE = [written(10, 1, [A, B]), written(20, 2, [ALL]), emptied(30, 3), tombstoned(40)]
DURING = "1970-01-01T00:00:12"


def run(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(history, ["--tables", str(folder), *arguments])


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    write_life(tmp_path, LIFE)
    write_lag(tmp_path, lag_row(11_000, 7, seconds=3.0), lag_row(11_000, None, partition=1, reason="no_end_offset"))
    write_status(tmp_path, 11_000, "STALL")
    write_condition(tmp_path, 11_500, "rebalance_storm", active=True)
    return tmp_path


def test_the_group_is_described_as_of_a_moment(tables: Path) -> None:
    result = run(tables, "g", "--at", DURING)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "g in cluster prod at 1970-01-01T00:00:12 UTC",
        "state Stable, generation 1, strategy range, 2 members, last record 1970-01-01T00:00:10",
        "verdict match, drift 0 partitions, lag ? records, 3.0 s behind, status STALL",
        "trouble: rebalance storm: rebalance_storm of g",
        "trouble: stalled: a partition gets the same committed offset again and again (STALL)",
        "trouble: lag unknown: no end offset",
        "lag measured at 1970-01-01T00:00:11",
        "member client-a@127.0.0.1: 2 partitions, lag ?: orders 0-1",
        "member client-b@127.0.0.1: 2 partitions, lag ?: orders 2-3",
        "partition orders-1: lag ? (no_end_offset), ? s behind, status ?",
        "partition orders-0: lag 7, 3.0 s behind, status STALL",
        "1970-01-01T00:00:10  generation 1: seen for the first time; 2 members",
        "The tables cover 1970-01-01T00:00:10 to 1970-01-01T00:00:40 UTC",
    ]


def test_the_incident_of_the_group_is_named(tables: Path) -> None:
    fact = Evidence("condition", "rebalance_storm", "g", "storm", 11_500)
    incident = Incident(make_incident_id("prod", fact), "prod", 11_500, (fact,), ("g",))
    write_rows(tables, {INCIDENTS: [incident_row(11_500, incident, story(incident, str))]})
    named = f"part of the incident {incident.incident_id}: {headline(incident)}"
    assert named in run(tables, "g", "--at", DURING).stdout.splitlines()
    assert f"at the last measurement: {named}" in run(tables, "g", "--at", "1970-01-01T02:04").stdout.splitlines()


def test_what_was_active_before_a_stop_of_the_monitor_is_not_active_during_the_stop(tables: Path) -> None:
    lines = run(tables, "g", "--at", "1970-01-01T00:00:39").stdout.splitlines()
    assert "trouble: rebalance storm: rebalance_storm of g" in lines
    lines = run(tables, "g", "--at", "1970-01-01T02:04").stdout.splitlines()
    assert not any("trouble: rebalance storm" in line for line in lines)
    assert (
        "not measured: The last measurement before this time is from 1970-01-01 00:00:11 UTC. So lag, status,"
        " conditions, causes and incidents are unknown." in lines
    )
    assert "at the last measurement: rebalance storm since 1970-01-01 00:00:01 UTC: rebalance_storm of g" in lines


@pytest.mark.parametrize("ends", [("1", "2"), ("2", "1"), (DURING, "2"), (DURING, "1970-01-01T00:00:20Z")])
def test_two_generations_are_compared_in_the_order_of_time(tables: Path, ends: tuple[str, str]) -> None:
    result = run(tables, "g", "--between", *ends)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "g in cluster prod",
        "before: generation 1 at 1970-01-01T00:00:10, state Stable, strategy range, 2 members",
        "after: generation 2 at 1970-01-01T00:00:20, state Stable, strategy range, 1 members",
        "member client-b@127.0.0.1: left; lost orders 2-3",
        "member client-a@127.0.0.1: stayed; gained orders 2-3",
        "2 partitions moved (2 necessary)",
        "1970-01-01T00:00:20  generation 2: client-b@127.0.0.1 is gone; 1 member; 2 partitions moved (2 necessary)",
    ]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("g", "--at", "1970-01-01T00:00:09"), "the moment is earlier than the first row. The tables cover"),
        (("g", "--at", "9999-01-01T00:00"), "the moment is in the future"),
        (("g", "--at", "yesterday"), "is not a valid time: use a time in UTC"),
        (("nobody", "--at", DURING), "Either the group did not exist, or the monitor deleted the rows"),
        (("g", "--between", "1", "7"), "no generation 7 of 'g' in cluster prod. The last generation is 3: run"),
        (("nobody", "--between", "1", "7"), "Either the group did not exist, or the monitor deleted the rows"),
        (("g", "--between", "x", "7"), "needs two values"),
        (("g", "--between", "1970-01-01T00:00:01", "2"), "the moment is earlier than the first row"),
        (("g", "--at", DURING, "--cluster", "us"), "contain no cluster 'us', only prod"),
        (("\udcff", "--at", DURING), "Either the group did not exist, or the monitor deleted the rows"),
    ],
)
def test_a_question_without_an_answer_is_an_error_with_the_reason(
    tables: Path, arguments: tuple[str, ...], error: str
) -> None:
    """Before the first row, "no members" would be wrong, because the rows were deleted or never written."""
    result = run(tables, *arguments)
    assert result.exit_code == 1
    assert error in result.output


def test_at_and_between_exclude_each_other_and_need_tables(tables: Path) -> None:
    assert run(tables, "g", "--at", DURING, "--between", "1", "2").exit_code == 2
    missing = run(tables / "nowhere", "g", "--at", DURING)
    assert (missing.exit_code, "is not a Delta table" in missing.output) == (1, True)


def test_json_is_the_document_of_the_api(tables: Path) -> None:
    (line,) = run(tables, "g", "--at", DURING, "--json").stdout.splitlines()
    document = json.loads(line)
    assert (document["at_ms"], document["cluster"], document["group_id"]) == (12_000, "prod", "g")
    assert document["clusters"] == [
        {
            "cluster": "prod",
            "first_row_ms": 10_000,
            "last_row_ms": 40_000,
            "is_measured": True,
            "last_measured_ms": 11_000,
            "error": None,
        }
    ]
    assert document["last_findings"] is None
    (line,) = run(tables, "g", "--between", "1", "2", "--json").stdout.splitlines()
    document = json.loads(line)
    assert (document["moved_partitions"], document["fewest_moves"], document["fewest_is_exact"]) == (2, 2, True)


def test_every_cluster_that_has_the_group_is_shown(tables: Path) -> None:
    write_life(tables, LIFE[:1], cluster="us")
    output = run(tables, "g", "--at", DURING).stdout
    assert [line for line in output.splitlines() if line.startswith("g in cluster")] == [
        "g in cluster prod at 1970-01-01T00:00:12 UTC",
        "g in cluster us at 1970-01-01T00:00:12 UTC",
    ]
    assert "in cluster prod" not in run(tables, "g", "--at", DURING, "--cluster", "us").stdout


def test_control_characters_of_clients_do_not_reach_the_terminal(tmp_path: Path) -> None:
    hostile = member("\x1b[2J[red]", {"orders": [0]})
    write_life(tmp_path, [written(10, 1), written(20, 2, [hostile])], "\x1b]0;x")
    for arguments in (("--at", "1970-01-01T00:00:20"), ("--between", "1", "2")):
        output = run(tmp_path, "\x1b]0;x", *arguments).stdout
        assert "\x1b" not in output
        assert "client-\\x1b[2J[red]" in output
