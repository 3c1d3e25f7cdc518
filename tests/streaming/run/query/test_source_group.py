"""The group that Spark's Kafka source is given; with coordinators: `tests/end_to_end/test_bad_weather.py`."""

from __future__ import annotations

from streaming.run.query.source_group import candidate_ids


def test_no_two_queries_have_the_same_group() -> None:
    """Spark keeps consumers by group and topic partition: a cluster's query got another cluster's, and failed."""
    assert not set(candidate_ids()) & set(candidate_ids())
