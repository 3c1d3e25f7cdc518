"""Reads the golden vectors: scenarios with the results of Kafka 4.2.0's own classes (see tests/golden/README.md)."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

from assignors.model import GroupAssignment

VECTORS = Path(__file__).parents[1] / "golden" / "dev-vectors.jsonl.gz"


@cache
def golden_vectors() -> list[dict[str, Any]]:
    """Return all vectors, in the order of the file."""
    with gzip.open(VECTORS, "rt", encoding="ascii") as lines:
        return [json.loads(line) for line in lines]


def as_assignment(assignment: dict[str, list[list[Any]]]) -> GroupAssignment:
    """Return an assignment from its JSON form. Its lists are sorted, because they are compared as sets."""
    return GroupAssignment(
        {
            member_id: tuple(sorted((topic, number) for topic, number in partitions))
            for member_id, partitions in assignment.items()
        }
    )
