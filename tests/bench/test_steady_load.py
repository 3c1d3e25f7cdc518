"""The load writes what it says it writes, where the coordinator looks for it."""

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
from tests.bench.load_figures import await_listed, found_synthetic_groups
from tests.bench.steady_load import SyntheticWriter, _by_round, run_load
from tests.bench.synthetic_groups import FIRST_OFFSET, SyntheticGroups

if TYPE_CHECKING:
    from pathlib import Path


@given(st.integers(0, 500), st.integers(0, 500), st.integers(1, 60))
def test_commits_go_round_without_a_gap_or_a_repetition(first: int, more: int, keys: int) -> None:
    """Rule 4 of the crowd: in whatever steps they are written."""
    numbers = [at_round * keys + place for at_round, places in _by_round(first, first + more, keys) for place in places]
    assert numbers == list(range(first, first + more))


def test_the_examples_hold() -> None:
    for module in (tests.bench.encoder, tests.bench.steady_load):
        assert doctest.testmod(module).failed == 0


@pytest.mark.slow
def test_the_broker_takes_the_crowd_for_groups_of_its_own(tmp_path: Path) -> None:
    """Kafka's own answers after it has loaded what we wrote: groups, members and commits.

    Commits by an idempotent producer were loaded as those of an open transaction: every group was without any.
    """
    heard: list[int] = []
    synthetic_groups, stop = SyntheticGroups(30), threading.Event()
    with EmbeddedBroker(tmp_path) as broker:
        found_synthetic_groups(broker, synthetic_groups, heard.append)
        assert sum(heard) == synthetic_groups.groups + synthetic_groups.commit_keys
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
        del writer  # or it looks for the broker while that is away
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
