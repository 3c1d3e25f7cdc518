"""Test ``rebalance-monitor assign`` as a script runs it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from streaming.cli.assign import assign

VECTORS = Path(__file__).parents[2] / "golden" / "dev-vectors.jsonl.gz"
SCENARIO = {"id": "a", "strategy": "range", "partitions": {"t0": 3}, "members": [{"member_id": "c0", "topics": ["t0"]}]}
BROKEN = """
class Broken:
    name = "broken"
    def assign(self, group):
        raise RuntimeError("no idea")
"""


def run(*lines: str | bytes, arguments: tuple[str, ...] = ()) -> Result:
    encoded = b"\n".join(line if isinstance(line, bytes) else line.encode() for line in lines)
    return CliRunner().invoke(assign, [*arguments, "-"], input=encoded)


def answers(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_scenario_is_answered_on_one_line():
    """Members and partitions of the answer are sorted, because scripts compare lines."""
    result = run(json.dumps(SCENARIO))
    assert result.exit_code == 0
    assert result.stdout == '{"id":"a","assignment":{"c0":[["t0",0],["t0",1],["t0",2]]}}\n'


def test_the_answer_of_cooperative_sticky_shows_the_second_round():
    """Partitions that change their owner are withheld in the first round. The answer shows both rounds."""
    owner = {"member_id": "A", "topics": ["t"], "owned": [["t", 0], ["t", 1]], "generation": 1}
    members = [owner, {"member_id": "B", "topics": ["t"]}]
    scenario = {"id": "c", "strategy": "cooperative-sticky", "partitions": {"t": 2}, "members": members}
    assert answers(run(json.dumps(scenario))) == [
        {
            "id": "c",
            "assignment": {"A": [["t", 0]], "B": []},
            "rebalance_needed": True,
            "assignment_after_second_round": {"A": [["t", 0]], "B": [["t", 1]]},
        }
    ]


@pytest.mark.parametrize(
    ("line", "scenario_id", "error"),
    [
        ("{", None, "not JSON"),
        (b'{"id": "\xff"}', None, "not JSON"),
        ("[]", None, "a scenario must be an object, not an array"),
        ('{"id": "b"}', "b", "partitions is missing"),
        (
            json.dumps({**SCENARIO, "strategy": "magic"}),
            "a",
            "unknown assignor 'magic': the assignors are range, roundrobin",
        ),
        (json.dumps({**SCENARIO, "members": 1}), "a", "members must be an array, not a whole number"),
    ],
)
def test_an_invalid_scenario_is_an_error_on_its_line_and_the_others_are_answered(
    line: str | bytes, scenario_id: str | None, error: str
):
    """One invalid line does not affect the others, but the exit code is 1."""
    result = run(line, "", json.dumps(SCENARIO))
    first, second = answers(result)
    assert result.exit_code == 1
    assert first["id"] == scenario_id
    assert error in first["error"]
    assert second["assignment"]


def test_names_that_are_not_ascii_come_back_as_they_were():
    """Line separators, supplementary characters and lone surrogates are allowed in JSON names."""
    odd = "\u2028\U0001f600\ud83d"
    scenario = {**SCENARIO, "partitions": {odd: 1}, "members": [{"member_id": odd, "topics": [odd]}]}
    assert answers(run(json.dumps(scenario)))[0]["assignment"] == {odd: [[odd, 0]]}


def test_a_file_of_vectors_is_answered_whole(tmp_path: Path):
    """The golden vectors are scenarios. The command ignores their additional fields."""
    file = tmp_path / "vectors.jsonl"
    file.write_bytes(gzip.decompress(VECTORS.read_bytes()))
    result = CliRunner().invoke(assign, [str(file)])
    assert result.exit_code == 0
    vectors = [json.loads(line) for line in file.read_text().splitlines()]
    assert [answer["id"] for answer in answers(result)] == [vector["id"] for vector in vectors]


def test_the_answer_does_not_depend_on_pythons_hash_codes(tmp_path: Path):
    """The order of sets differs in every process, but two runs must give the same answer."""
    file = tmp_path / "vectors.jsonl"
    file.write_bytes(gzip.decompress(VECTORS.read_bytes()))
    command = [sys.executable, "-c", "from streaming.cli.assign import assign; assign()", str(file)]
    outputs = {
        subprocess.run(command, env={**os.environ, "PYTHONHASHSEED": seed}, check=True, capture_output=True).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_users_strategy_can_be_named_by_reference(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The strategy is used under its own name. If it fails, the line has an error."""
    (tmp_path / "broken_strategy.py").write_text(BROKEN)
    monkeypatch.syspath_prepend(str(tmp_path))
    lines = [json.dumps({**SCENARIO, "strategy": "broken"}), json.dumps(SCENARIO)]
    result = run(*lines, arguments=("--assignor", "broken_strategy:Broken"))
    failed, served = answers(result)
    assert failed == {"id": "a", "error": "broken raised: RuntimeError: no idea"}
    assert served["assignment"]


def test_a_reference_that_cannot_be_loaded_is_an_error():
    """Without the requested strategy no scenario is answered."""
    result = run(json.dumps(SCENARIO), arguments=("--assignor", "absent_module:Strategy"))
    assert result.exit_code == 1
    assert "absent_module" in result.output
