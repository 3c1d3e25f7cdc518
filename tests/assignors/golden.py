"""Reads the golden files: results of Kafka 4.2.0's own classes (see tests/golden/README.md)."""

from __future__ import annotations

import gzip
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

from assignors.model import GroupAssignment

GOLDEN = Path(__file__).parents[1] / "golden"
VECTORS = GOLDEN / "dev-vectors.jsonl.gz"
KAFKA_VERSION = "4.2.0"


@cache
def golden_vectors() -> list[dict[str, Any]]:
    """Return all vectors, in the order of the file."""
    with gzip.open(VECTORS, "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def golden_lines(name: str) -> list[Any]:
    """Return the lines of a file that ``oracle/regenerate.py`` wrote. A file that was edited by hand fails."""
    first, *lines = gzip.decompress((GOLDEN / f"{name}.jsonl.gz").read_bytes()).decode().splitlines()
    header = json.loads(first)
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    assert header["sha256"] == digest, f"{name} was edited: regenerate it from Kafka's classes"
    assert header["kafka"] == KAFKA_VERSION
    return [json.loads(line) for line in lines]


def as_assignment(assignment: dict[str, list[list[Any]]]) -> GroupAssignment:
    """Return an assignment from its JSON form. Its lists are sorted, because they are compared as sets."""
    return GroupAssignment(
        {
            member_id: tuple(sorted((topic, number) for topic, number in partitions))
            for member_id, partitions in assignment.items()
        }
    )
