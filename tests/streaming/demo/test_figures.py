"""Test that the figures on the screen are those of the monitor's API."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from assignors import assignor_named
from streaming.demo.figures import Figures, GroupFigures, LagCause, Shares
from streaming.evaluation.causes.cause import HOT_PARTITION, Cause
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import Position, TopicMetadata
from streaming.group.modern import ModernGroup
from streaming.group.snapshot import STABLE, UNKNOWN, GroupSnapshot, GroupTotals
from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import NOW_MS, Commits, simulate
from tests.streaming.page.test_application import STALE_AFTER_MS, ask, pages_of


@pytest.fixture
def monitor_state() -> MonitorState:
    """Return the state of a monitor that is ready."""
    state = MonitorState()
    state.put_sample(ClusterSample(0), None)
    state.put_health(ready=True, was_ready=True)
    return state


def test_every_figure_is_found_in_what_the_api_returns(monitor_state: MonitorState, tmp_path: Path):
    monitor_state.put_batch([_record("g"), _seen("new")], [])
    figures = _figures(monitor_state, tmp_path)
    assert figures.ready
    expected = GroupFigures(
        "g",
        protocol="range",
        state="Stable",
        member_count=3,
        generation_id=7,
        rebalances_total=5,
        shares=Shares(max_partitions=2, excess_partitions=1, idle_members=1),
        drift_partitions=1,
    )
    assert expected in figures.groups


def test_a_group_whose_members_are_not_known_has_no_figure_instead_of_a_zero(
    monitor_state: MonitorState, tmp_path: Path
):
    """Unknown is a separate state, not 0."""
    monitor_state.put_batch([_seen("new")], [])
    new = GroupFigures("new", state="Unknown", generation_id=1, rebalances_total=0)
    assert _figures(monitor_state, tmp_path).groups == [new]


def test_before_the_monitor_is_ready_the_screen_shows_no_groups(tmp_path: Path):
    """While the monitor catches up, the API returns only an error."""
    monitor_state = MonitorState()
    monitor_state.put_batch([_record("g")], [])
    figures = _figures(monitor_state, tmp_path)
    assert (figures.ready, figures.groups) == (False, [])


def test_a_monitor_whose_last_sample_is_too_old_is_not_ready(monitor_state: MonitorState, tmp_path: Path):
    monitor_state.put_batch([_record("g")], [])
    figures = _figures(monitor_state, tmp_path, now_ms=STALE_AFTER_MS + 1)
    assert not figures.ready
    assert [group.lag for group in figures.groups] == [None]


def test_drift_is_that_of_the_groups_own_strategy_and_no_other(monitor_state: MonitorState, tmp_path: Path):
    monitor_state.put_batch(
        [_record("g", protocol="own-strategy"), _record("h", {"a": (0,), "b": (1,), "c": (2,)})], []
    )
    groups = _figures(monitor_state, tmp_path).groups
    drifts = {group.group_id: (group.protocol, group.drift_partitions) for group in groups}
    assert drifts == {"g": ("own-strategy", None), "h": ("range", 0)}


def test_a_group_that_only_commits_is_shown_with_its_lag(monitor_state: MonitorState, tmp_path: Path):
    sample, lag, _ = simulate({"g": Commits(("audit",), behind=7)})
    monitor_state.put_sample(sample, lag)
    groups = _figures(monitor_state, tmp_path, NOW_MS).groups
    assert groups == [GroupFigures("g", state="Unknown", lag=3 * 7)]


def test_the_cause_of_lag_is_the_sentence_of_the_api(monitor_state: MonitorState, tmp_path: Path):
    """Issue 15: the screen, the page and the API show the same sentence, because it exists once."""
    cause = Cause(HOT_PARTITION, topic="t", partition=2, member="a", produced_records_per_second=8.0)
    monitor_state.put_batch([_record("g"), _record("h")], [])
    monitor_state.put_explained_lags({"g": ExplainedLag(None, cause)})
    figures = _figures(monitor_state, tmp_path)
    assert {group.group_id: group.cause for group in figures.groups} == {"g": LagCause(cause.text), "h": None}


def test_every_possible_name_of_a_group_is_read_back(monitor_state: MonitorState, tmp_path: Path):
    awkward = 'quote " backslash \\ newline \n brace } ü'
    monitor_state.put_batch([_seen(awkward)], [])
    assert [group.group_id for group in _figures(monitor_state, tmp_path).groups] == [awkward]


def _figures(monitor_state: MonitorState, tables: Path, now_ms: int = 0) -> Figures:
    return msgspec.json.decode(ask(pages_of(monitor_state, tables, now_ms), "/api/v1/groups").text, type=Figures)


def _seen(group_id: str) -> GroupState:
    return GroupState(
        GroupSnapshot(group_id, group_type="consumer", state=UNKNOWN, modern=ModernGroup(), generation_id=1)
    )


_DRIFT = {"a": (0, 1), "b": (2,), "c": ()}
"""An assignment with drift: range gives each member one of three partitions, but the first member has two."""


def _record(group_id: str, owned: Mapping[str, tuple[int, ...]] = _DRIFT, protocol: str = "range") -> GroupState:
    members = tuple(_member(member_id, partitions) for member_id, partitions in owned.items())
    metadata = GroupMetadata(group_id, "consumer", 7, protocol, "a", None, members, 3)
    snapshot = GroupSnapshot(
        group_id,
        state=STABLE,
        position=Position(0, 0, 1_000),
        generation_id=7,
        classic=metadata,
        totals=GroupTotals(rebalances=5),
        topics={"t": TopicMetadata(partitions=3, sampled_at_ms=500)},
    )
    return GroupState(snapshot, evaluate_snapshot(snapshot, [assignor_named("range")]))


def _member(member_id: str, partitions: tuple[int, ...]) -> ClassicMember:
    return ClassicMember(
        member_id,
        None,
        "client",
        "host",
        1,
        1,
        Subscription(1, ("t",), None, (), -1, None),
        Assignment(0, tuple(("t", partition) for partition in partitions), None),
    )
