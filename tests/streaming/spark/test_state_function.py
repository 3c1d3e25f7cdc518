"""Tests of the state function with Spark's own GroupState, without a Spark session."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql.streaming.state import GroupState

from streaming.combine.combiner import GROUP_KIND
from streaming.custom.catalogue import users_assignors
from streaming.evaluation.group_update import GroupUpdate, decode_update
from streaming.events import GroupEvent, encode_event
from streaming.spark.query import STORED_STATE
from streaming.spark.steps import StateFunction
from tests.streaming.groups import member, sampled, written

USERS_OWN = """
import time
from assignors.roundrobin import RoundRobinAssignor

class Theirs(RoundRobinAssignor):
    name = "theirs"

class Raising:
    name = "raising"
    def assign(self, group):
        raise RuntimeError("no idea")

class Hanging:
    name = "hanging"
    def assign(self, group):
        time.sleep(3600)
"""


LIMIT_SECONDS = 0.5


def empty_state() -> GroupState:
    """Return the state object that Spark passes for a group without state."""
    return GroupState(None, 0, 0, "NoTimeout", False, False, False, False, False, -1, b"", STORED_STATE)


def update_of(function: StateFunction, state: GroupState, *events: GroupEvent) -> GroupUpdate:
    """Call the function as Spark does, and return its only update."""
    chunks = [pd.DataFrame({"payload": [encode_event(event)]}) for event in events]
    (output,) = function(("cluster", GROUP_KIND, "g"), chunks, state)
    return decode_update(output["payload"].iloc[0])


@pytest.fixture
def users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[tuple[str, str], ...]]:
    """Provide three strategies of a user: one works, one raises and one hangs."""
    (tmp_path / "users_own.py").write_text(USERS_OWN)
    monkeypatch.syspath_prepend(tmp_path)
    users_assignors.cache_clear()
    references = tuple((name.lower(), f"users_own:{name}") for name in ("Theirs", "Raising", "Hanging"))
    yield references
    for assignor in users_assignors(references, LIMIT_SECONDS):
        assignor.close()
    users_assignors.cache_clear()


def test_a_users_strategy_that_raises_or_hangs_is_reported_and_the_other_strategies_are_evaluated(
    users_own: tuple[tuple[str, str], ...], monkeypatch: pytest.MonkeyPatch
):
    """A user's strategy that raises, exceeds its time limit, or breaks a rule never stops the job."""
    monkeypatch.setattr("streaming.spark.steps.LIMIT_SECONDS", LIMIT_SECONDS)
    function = StateFunction(("range",), users_own)
    state = empty_state()
    # This is roundrobin's assignment. Range would assign two adjacent partitions to the first member.
    members = [member("A", {"orders": [0, 2]}), member("B", {"orders": [1]})]
    update_of(function, state, written(1, 1, members))
    update = update_of(function, state, sampled(0, orders=3))
    verdicts = {drift.strategy: (drift.verdict, drift.reason) for drift in update.record.evaluation.drifts}
    assert verdicts == {
        "range": ("drift", ""),
        "theirs": ("same", ""),
        "raising": ("not_evaluated", "assignor_raised"),
        "hanging": ("not_evaluated", "assignor_timed_out"),
    }
