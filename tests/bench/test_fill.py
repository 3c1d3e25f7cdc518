"""Tests that a fill has the requested size, and that a broker receives every commit of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaAdminClient

from streaming.embedded import EmbeddedBroker
from tests.bench.fill import TOPIC, Fill, fill_offsets_topic, offsets_topic_ends

if TYPE_CHECKING:
    from pathlib import Path


@given(st.integers(1, 500), st.integers(1, 100), st.integers(1, 10**7))
def test_a_number_of_records_is_reached_with_the_fewest_rounds(groups: int, partitions: int, records: int) -> None:
    fill = Fill(groups, partitions).with_records(records)
    assert records <= fill.records < records + groups * partitions


def test_the_default_fill_has_the_size_that_the_targets_are_for() -> None:
    assert (Fill().records, len(set(Fill().group_ids))) == (2_000_000, 2_000)


@pytest.mark.slow
def test_a_broker_holds_every_commit_of_a_fill(tmp_path: Path) -> None:
    """Checks Kafka's own responses. Each group's last commit must be that of the last round."""
    fill = Fill(groups=70, partitions=3, rounds=4)
    received: list[int] = []
    with EmbeddedBroker(tmp_path, properties={"offsets.topic.num.partitions": "5"}) as broker:
        records = fill_offsets_topic(broker.bootstrap_servers, fill, received.append)
        assert records == sum(received) == fill.records == sum(offsets_topic_ends(broker.bootstrap_servers).values())
        admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
        try:
            committed = admin.list_group_offsets(list(fill.group_ids))
        finally:
            admin.close()
    last_commits = {
        (group_id, at.topic, at.partition, commit.offset)
        for group_id, offsets in committed.items()
        for at, commit in offsets.items()
    }
    assert last_commits == {
        (group_id, TOPIC, number, fill.rounds) for group_id in fill.group_ids for number in range(3)
    }
