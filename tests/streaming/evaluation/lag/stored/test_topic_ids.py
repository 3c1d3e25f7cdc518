"""Tests of topic ids: which topics were created again, and for how long an id is kept."""

from __future__ import annotations

import pytest

from streaming.evaluation.lag.stored.topic_ids import TopicIds
from streaming.events import TopicMetadata


@pytest.mark.parametrize(
    ("ids", "expected", "why"),
    [
        (["A", "A"], [False, False], "the same topic"),
        (["A", "B", "B"], [False, True, False], "each new topic is reported once"),
        (["A", None, "B"], [False, False, True], "the topic was gone for one sample"),
        (["A", None, "A"], [False, False, False], "an unknown id proves nothing"),
        ([None, "A"], [False, False], "brokers from 2.8 give an id to each topic that exists"),
    ],
)
def test_only_a_different_id_shows_a_new_topic(ids: list[str | None], expected: list[bool], why: str) -> None:
    known = TopicIds()
    found = []
    for topic_id in ids:
        found.append("t" in known.update({"t": TopicMetadata(1, 0, topic_id=topic_id)}, stored=["t"]))
        known = TopicIds(known.stored())
    assert found == expected, why


@pytest.mark.parametrize(("stored", "is_kept"), [(["t"], True), ([], False)])
def test_the_id_of_an_unused_topic_is_kept_as_long_as_its_points(stored: list[str], is_kept: bool) -> None:
    """No group commits for the topic, so no sample contains it. Its points are still stored, for example for a day."""
    known = TopicIds({"t": "A"})
    known.update({}, stored)
    assert ("t" in known.stored()) is is_kept
