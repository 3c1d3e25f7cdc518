"""Tests that our decoder reads and refuses the same bytes as the classes of Kafka 4.2.0.

The golden file has Kafka's results for four kinds of records: hand-made corner cases (``cases.py``), records of every
type and version with random fields, the real sample, and mutations of all of them with fixed seeds.
``oracle/regenerate.py`` makes the file, and with ``--check`` compares new records.
"""

from __future__ import annotations

from typing import Any

import pytest

from streaming.protocol.layouts import RECORD_LAYOUTS
from tests.streaming.protocol.agreement import disagreement
from tests.streaming.protocol.cases import CASES
from tests.streaming.protocol.records import golden_lines, raw_record, sample_records

GOLDEN = golden_lines("records")
BY_HAND = [line for line in GOLDEN if "why" in line["input"]]


@pytest.mark.parametrize("line", BY_HAND, ids=lambda line: line["input"]["why"])
def test_a_corner_case_of_the_format_is_read_as_by_kafka(line: dict[str, Any]) -> None:
    assert disagreement(line) is None


def test_every_hand_made_case_has_a_result_of_kafka() -> None:
    """A case added to ``cases.py`` counts only with Kafka's result in the golden file."""
    assert [line["input"] for line in BY_HAND] == list(CASES)


def test_thousands_of_whole_and_damaged_records_are_read_as_by_kafka() -> None:
    found = [text for text in map(disagreement, GOLDEN) if text]
    assert found == []


def test_the_golden_records_cover_every_type_in_every_version_and_as_a_tombstone() -> None:
    read = [raw_record(line["input"]) for line in GOLDEN if "key" in line["kafka"]]
    covered = {(key[:2], None if value is None else value[:2]) for key, value in read}
    expected = {
        (layout.key_type.to_bytes(2, "big"), None if version is None else version.to_bytes(2, "big"))
        for layout in RECORD_LAYOUTS
        for version in (None, *range(layout.value.highest_version + 1))
    }
    assert covered == expected


def test_the_golden_records_include_many_whole_and_many_damaged_records() -> None:
    """The comparison is only meaningful if both decoders accept many records and refuse many."""
    refused = sum("refused" in line["kafka"] for line in GOLDEN)
    assert refused > 500
    assert len(GOLDEN) - refused > 2000


def test_the_real_sample_is_among_the_golden_records() -> None:
    asked = {raw_record(line["input"]) for line in GOLDEN if "key" in line["input"]}
    assert asked.issuperset(sample_records())
