"""Test ``rebalance-monitor compare`` as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from assignors import BUILT_IN
from streaming.cli.compare import compare

if TYPE_CHECKING:
    from pathlib import Path

OWNER = {"member_id": "A", "topics": ["t"], "owned": [["t", 0], ["t", 1], ["t", 2], ["t", 3]], "generation": 1}
SCENARIO: dict[str, Any] = {"id": "a", "partitions": {"t": 4}, "members": [OWNER, {"member_id": "B", "topics": ["t"]}]}


def run(text: str, *arguments: str) -> Result:
    return CliRunner().invoke(compare, ["-", *arguments], input=text.encode())


def test_the_help_shows_each_column_on_its_own_line() -> None:
    """Click joins lines unless the docstring has a backspace character, which a raw docstring cannot have."""
    lines = CliRunner().invoke(compare, ["--help"]).output.splitlines()
    assert "  rounds         number of rebalances until the group has the assignment" in lines


def rows(result: Result) -> dict[str, list[str]]:
    """Read the table back: the cells of each strategy."""
    lines = [line[1:-1].split("│") for line in result.stdout.splitlines() if line.startswith("│")]
    return {cells[0].strip(): [cell.strip() for cell in cells[1:]] for cells in lines}


def test_the_first_row_is_the_present_assignment_and_each_strategy_has_a_row():
    """The table compares the present assignment with the assignment of each strategy."""
    found = rows(run(json.dumps(SCENARIO)))
    assert list(found) == ["(owned now)", *BUILT_IN]
    assert found["(owned now)"] == ["1x0 1x4", "4", "4", "4 (t)", "0", "4", "1 (B)", ""]
    assert found["range"] == ["2x2", "0", "0", "0", "2", "2", "0", "1"]
    assert found["cooperative-sticky"] == ["2x2", "0", "0", "0", "2", "2", "0", "2"]


def test_without_claims_there_is_nothing_owned_to_show():
    """A row of zeros would look like real values."""
    members = [{"member_id": f"m{number}", "topics": ["t"]} for number in range(9)]
    found = rows(run(json.dumps({**SCENARIO, "members": members})))
    assert list(found) == list(BUILT_IN)
    assert found["range"][6] == "5 (m4, m5, m6, ...)"


def test_a_file_may_be_written_over_many_lines(tmp_path: Path):
    """Users write scenarios by hand."""
    file = tmp_path / "scenario.json"
    file.write_text(json.dumps(SCENARIO, indent=2))
    assert CliRunner().invoke(compare, [str(file)]).exit_code == 0


def test_of_several_scenarios_one_is_chosen_by_its_id():
    """The command accepts the same files as `assign`."""
    text = json.dumps(SCENARIO) + "\n" + json.dumps({**SCENARIO, "id": "b", "partitions": {"t": 1}})
    assert rows(run(text, "--id", "b"))["range"][0] == "1x0 1x1"
    assert "2 scenarios: choose one with --id" in run(text).output
    assert "0 scenarios with id 'c'" in run(text, "--id", "c").output


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"members": []}'])
def test_an_invalid_scenario_is_one_line(text: str):
    """A typing error causes no traceback."""
    result = run(text)
    assert result.exit_code == 1
    assert result.output.startswith("Error: ")
    assert result.output.count("\n") == 1


def test_control_characters_and_markup_in_names_are_shown_as_text():
    """Clients choose the names of topics and members."""
    members = [
        {"member_id": "\x1b[31m\ud83d", "topics": ["[bold]"]},
        {"member_id": "z", "topics": ["[bold]"], "owned": [["[bold]", 0]]},
    ]
    result = run(json.dumps({"partitions": {"[bold]": 1}, "members": members}))
    assert result.exit_code == 0
    assert r"\x1b[31m\ud83d" in rows(result)["(owned now)"][6]
    assert "1 ([bold])" in rows(result)["(owned now)"][3]


def test_a_users_strategy_has_a_row_even_if_it_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The rows of the other strategies are also shown."""
    source = "class Broken:\n    name = 'broken'\n    def assign(self, group):\n        return group\n"
    (tmp_path / "broken_row.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = rows(run(json.dumps(SCENARIO), "--assignor", "broken_row:Broken"))
    assert found["broken"][0].startswith("broken raised: TypeError")
    assert found["sticky"][0] == "2x2"
