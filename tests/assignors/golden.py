"""The golden vectors: scenarios with the answers of Kafka 4.2.0's own classes (see tests/golden/README.md)."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "golden" / "dev-vectors.jsonl.gz"


def golden_vectors(*strategies: str) -> list[dict[str, Any]]:
    """Read the vectors of these strategies, in the file's order."""
    with gzip.open(VECTORS, "rt", encoding="ascii") as lines:
        vectors = [json.loads(line) for line in lines]
    return [vector for vector in vectors if vector["strategy"] in strategies]


def as_sets(assignment: dict[str, list[list[Any]]]) -> dict[str, set[tuple[str, int]]]:
    """Bring an assignment as JSON has it into the form FORMAT compares."""
    return {
        member_id: {(topic, number) for topic, number in partitions} for member_id, partitions in assignment.items()
    }
