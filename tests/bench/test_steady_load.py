"""Tests that the load writes the records that it reports, into the partitions of the coordinators."""

from __future__ import annotations

import doctest
import threading
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka import KafkaAdminClient

import tests.bench.encoder
import tests.bench.steady_load
from streaming.embedded import EmbeddedBroker
from tests.bench.load_figures import await_listed, write_synthetic_groups
from tests.bench.steady_load import SyntheticWriter, _by_round, run_load
from tests.bench.synthetic_groups import FIRST_OFFSET, SyntheticGroups

if TYPE_CHECKING:
    from pathlib import Path


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 60))
def test_commits_have_no_gap_and_no_repetition(first: int, more: int, keys: int) -> None:
    """Rule 4 of `synthetic_groups`. The size of the steps must not matter."""
    numbers = [at_round * keys + place for at_round, places in _by_round(first, first + more, keys) for place in places]
    assert numbers == list(range(first, first + more))


def test_the_docstring_examples_are_correct() -> None:
    for module in (tests.bench.encoder, tests.bench.steady_load):
        assert doctest.testmod(module).failed == 0


@pytest.mark.slow
def test_the_broker_loads_the_synthetic_groups_as_its_own(tmp_path: Path) -> None:
    """Checks groups, members and commits in Kafka's own responses after the broker has loaded the records.

    With an idempotent producer, the broker loaded the commits as those of an open transaction. Then no group had any
    commits.
    """
    received: list[int] = []
    synthetic_groups, stop = SyntheticGroups(30), threading.Event()
    with EmbeddedBroker(tmp_path) as broker:
        write_synthetic_groups(broker, synthetic_groups, received.append)
        assert sum(received) == synthetic_groups.groups + synthetic_groups.commit_keys
        assert _committed(broker.bootstrap_servers, synthetic_groups) == {
            (synthetic_groups.group_id(number), *partition): FIRST_OFFSET
            for number in range(synthetic_groups.groups)
            for partition in synthetic_groups.partitions(number)
        }
        writer = SyntheticWriter(broker.bootstrap_servers, synthetic_groups)
        for written in run_load(writer, synthetic_groups, 1_000, 1_200, stop):
            if written.commits >= 450:
                stop.set()
        writer.finish()
        del writer  # otherwise it logs errors while the broker is stopped
        broker.stop()
        broker.start()
        await_listed(broker, synthetic_groups)
        offsets = _committed(broker.bootstrap_servers, synthetic_groups)
        assert sum(offsets.values()) == FIRST_OFFSET * synthetic_groups.commit_keys + written.commits
        assert set(offsets.values()) == {FIRST_OFFSET + 1, FIRST_OFFSET + 2}
        assert _members(broker.bootstrap_servers, synthetic_groups) == {
            synthetic_groups.group_id(number): 6
            if synthetic_groups.last_generation(number, written.rebalances) == 2
            else 5
            for number in range(synthetic_groups.groups)
        }


def _committed(bootstrap_servers: str, synthetic_groups: SyntheticGroups) -> dict[tuple[str, str, int], int]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        answers = admin.list_group_offsets(
            [synthetic_groups.group_id(number) for number in range(synthetic_groups.groups)]
        )
    finally:
        admin.close()
    return {
        (group_id, at.topic, at.partition): commit.offset
        for group_id, offsets in answers.items()
        for at, commit in offsets.items()
    }


def _members(bootstrap_servers: str, synthetic_groups: SyntheticGroups) -> dict[str, int]:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap_servers)
    try:
        described = admin.describe_groups(
            [synthetic_groups.group_id(number) for number in range(synthetic_groups.groups)]
        )
    finally:
        admin.close()
    return {group_id: len(group["members"]) for group_id, group in described.items()}
