"""The state function on Spark's own GroupState, without a Spark around it."""

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
    """Return the state of a group that has none yet, as Spark hands it in."""
    return GroupState(None, 0, 0, "NoTimeout", False, False, False, False, False, -1, b"", STORED_STATE)


def update_of(function: StateFunction, state: GroupState, *events: GroupEvent) -> GroupUpdate:
    """Call the function as Spark does and read its one answer."""
    chunks = [pd.DataFrame({"payload": [encode_event(event)]}) for event in events]
    (answer,) = function(("cluster", GROUP_KIND, "g"), chunks, state)
    return decode_update(answer["payload"].iloc[0])


@pytest.fixture
def users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[tuple[str, str], ...]]:
    """Strategies of a user's: one good, one that raises, one that hangs."""
    (tmp_path / "users_own.py").write_text(USERS_OWN)
    monkeypatch.syspath_prepend(tmp_path)
    users_assignors.cache_clear()
    references = tuple((name.lower(), f"users_own:{name}") for name in ("Theirs", "Raising", "Hanging"))
    yield references
    for assignor in users_assignors(references, LIMIT_SECONDS):
        assignor.guarded.close()
    users_assignors.cache_clear()


def test_a_users_strategy_that_raises_or_hangs_is_reported_for_the_group_and_the_others_are_judged(
    users_own: tuple[tuple[str, str], ...],
):
    """The issue: one that raises, hangs past a limit, or breaks the laws never stops the job."""
    function = StateFunction(("range",), users_own, users_limit_seconds=LIMIT_SECONDS)
    state = empty_state()
    # What roundrobin gives; range would give the first member its two partitions in a row.
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
