"""Tests of the group id for Spark's Kafka source. `tests/end_to_end/test_bad_weather.py` tests it with coordinators."""

from __future__ import annotations

from streaming.run.query.source_group import candidate_ids


def test_no_two_queries_have_the_same_group() -> None:
    """Spark caches consumers by group and partition. A query got the consumer of a different cluster and failed."""
    assert not set(candidate_ids()) & set(candidate_ids())
