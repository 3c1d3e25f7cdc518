"""Tests that the large group of the benchmark has the documented size."""

from __future__ import annotations

from functools import reduce

import pytest

from streaming.events import GroupEvent
from streaming.group.advance import advance
from streaming.group.members import members
from streaming.group.snapshot import STABLE, GroupSnapshot
from tests.bench import group_state


@pytest.mark.parametrize(
    "events",
    [[group_state._classic(1), group_state._classic(2)], [*group_state._modern(1, 0), *group_state._modern(2, 10_000)]],
    ids=["classic", "KIP-848"],
)
def test_every_partition_is_assigned_once_and_the_second_generation_moves_some(events: list[GroupEvent]) -> None:
    snapshot = reduce(advance, events, GroupSnapshot("g"))
    held = [partition for member in members(snapshot) for partition in member.assigned or ()]
    assert (snapshot.state, snapshot.generation_id, snapshot.totals.rebalances) == (STABLE, 2, 1)
    assert len(held) == len(set(held)) == 10_000
    assert group_state._assignment(1) != group_state._assignment(2)


def test_a_large_groups_state_is_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_state, "ROUNDS", 1)  # bytes are the same in each, and times are for a quiet machine
    figures = {figure.name: figure for figure in group_state.group_state_figures()}
    states = [figure for name, figure in figures.items() if name.endswith("state")]
    assert [figure.verdict for figure in states] == ["met", "met"]
