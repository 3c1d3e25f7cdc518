"""Kafka 4.2.0's own answers, by the check that tests/golden/README.md describes."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from assignors import BUILT_IN
from assignors.scenario import assignment_as_json, parse_scenario
from tests.assignors.golden import VECTORS, as_sets, golden_vectors

ALWAYS_EXACT = ("range", "roundrobin", "server-range")


def test_the_vectors_are_the_ones_kafka_gave():
    """Facts are not edited to make a test pass: a changed file must come with a new generation and a new digest."""
    digest = hashlib.sha256(VECTORS.read_bytes()).hexdigest()
    assert digest == "637e12c44bf07c91f162b02b810a6fc77082bf41fd4a6fe2bf7160583f095dc3"


@pytest.mark.parametrize("vector", golden_vectors(*ALWAYS_EXACT), ids=lambda vector: vector["id"])
def test_a_strategy_with_one_right_answer_gives_it(vector: dict[str, Any]):
    """Both ranges and roundrobin leave nothing open: equal to Java, or wrong."""
    group = parse_scenario(vector).group
    answer = assignment_as_json(BUILT_IN[vector["strategy"]].assign(group))
    assert as_sets(answer) == as_sets(vector["expected"]["assignment"])
