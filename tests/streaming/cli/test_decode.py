"""Test ``rebalance-monitor decode`` as a user runs it."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from streaming.cli.decode import decode
from tests.streaming.protocol.records import SAMPLE, golden_lines, lines_of

if TYPE_CHECKING:
    from pathlib import Path

TOMBSTONE = b'{"key": "AAMAAWc=", "value": null}\n'
ANSWER = {"record": "ConsumerGroupMetadata", "key": {"groupId": "g"}, "value": None}


def _answers(stdin: bytes, *arguments: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(decode, list(arguments), input=stdin)
    assert result.exit_code == 0, result.output
    lines = result.stdout_bytes.split(b"\n")
    assert lines.pop() == b""
    return [json.loads(line) for line in lines]


def test_the_real_sample_prints_as_kafka_prints_it() -> None:
    """Fields, their order and their values are those of Kafka's JSON converters. The monitor adds ``decoded``."""
    golden = {json.dumps(line["input"]): line["kafka"] for line in golden_lines("records")}
    lines = lines_of(SAMPLE)
    answers = _answers("\n".join(lines).encode())
    assert len(answers) == len(lines) == 1910
    for line, answer in zip(lines, answers, strict=True):
        answer.pop("decoded", None)
        read = json.loads(line)
        kafka = golden[json.dumps({"key": read["key"], "value": read["value"]})]
        assert json.dumps(answer) == json.dumps(kafka)


def test_a_file_and_standard_input_give_the_same(tmp_path: Path) -> None:
    file = tmp_path / "records.jsonl"
    file.write_bytes(TOMBSTONE)
    assert _answers(b"", str(file)) == _answers(TOMBSTONE) == _answers(TOMBSTONE, "-") == [ANSWER]


def test_a_record_that_kafka_refuses_is_an_error_with_reason_and_field() -> None:
    (answer,) = _answers(b'{"key": "AAMAAWc=", "value": "AAAA"}')
    assert answer == {"error": "truncated", "field": "value.epoch"}


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"not json",
        b"[]",
        b'{"key": "AAMAAWc="}',  # a missing value is no tombstone
        b'{"key": "AAM AAWc=", "value": null}',
        b'{"key": "AAMAAWc=", "value": 7}',
        b'{"key": "AAMAAWc=", "value": null',
        b"\xff\xfe",
    ],
)
def test_a_line_without_a_record_is_an_error_and_the_next_line_is_read(line: bytes) -> None:
    """Every line has one answer. No line is skipped silently."""
    bad, good = _answers(line + b"\n" + TOMBSTONE)
    assert bad["error"] == "bad_line"
    assert good == ANSWER


def test_a_name_with_a_line_separator_stays_on_its_line() -> None:
    """U+2028 ends a line for some tools but not in JSON lines."""
    key = b"\x00\x03\x00\x03" + "\u2028".encode()
    line = json.dumps({"key": b64encode(key).decode(), "value": None}).encode()
    (answer,) = _answers(line)
    assert answer["key"] == {"groupId": "\u2028"}


def test_a_missing_file_is_one_clear_line() -> None:
    result = CliRunner().invoke(decode, ["no-such-file"])
    assert result.exit_code == 2
    assert "no-such-file" in result.output
