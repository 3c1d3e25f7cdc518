"""Test that the figures on the screen are those of the monitor's metrics."""

from __future__ import annotations

from pathlib import Path

from assignors import assignor_named
from streaming.demo.figures import Figures, GroupFigures, read_figures
from streaming.evaluation.causes.cause import HOT_PARTITION, Cause
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.snapshot_evaluation import evaluate_snapshot
from streaming.events import Position, TopicMetadata
from streaming.group.modern import ModernGroup
from streaming.group.snapshot import STABLE, UNKNOWN, GroupSnapshot, GroupTotals
from streaming.prometheus.metrics import Exporter
from streaming.protocol.classic import Assignment, ClassicMember, GroupMetadata, Subscription
from streaming.state.monitor_state import MonitorState
from tests.streaming.http.answers import answer
from tests.streaming.page.test_application import ask, pages_of


def test_every_figure_is_found_in_what_the_monitor_exposes():
    """After a metric is renamed, the screen would show `?`."""
    monitor_state = MonitorState()
    monitor_state.put_batch([_record("g"), _seen("new")], [])
    monitor_state.put_sample(ClusterSample(0), None)
    monitor_state.put_health(ready=True, was_ready=True)
    monitor_state.put_batch_end(0.5, 0)
    monitor_state.put_batch_end(1.5, 0)
    figures = _scraped(monitor_state)
    assert figures.ready
    assert figures.mean_batch_seconds == 1.0
    expected = GroupFigures(
        "g",
        strategy="range",
        state="Stable",
        members=3,
        idle_members=1,
        generation=7,
        rebalances=5,
        max_partitions=2,
        excess_partitions=1,
        drift_partitions=1,
    )
    assert figures.groups["g"] == expected


def test_a_group_whose_members_are_not_known_has_no_figure_instead_of_a_zero():
    """Unknown is a separate state, not 0."""
    monitor_state = MonitorState()
    monitor_state.put_batch([_seen("new")], [])
    monitor_state.put_sample(ClusterSample(0), None)
    monitor_state.put_health(ready=True, was_ready=True)
    assert _scraped(monitor_state).groups["new"] == GroupFigures("new", state="Unknown", generation=1, rebalances=0)


def test_before_the_monitor_is_ready_the_screen_shows_no_groups():
    monitor_state = MonitorState()
    monitor_state.put_batch([_record("g")], [])
    figures = _scraped(monitor_state)
    assert not figures.ready
    assert figures.groups == {}


def test_drift_is_that_of_the_groups_own_strategy_and_no_other():
    text = (
        'rebalance_monitor_group_info{cluster="c",group="g",protocol="roundrobin",state="Stable"} 1\n'
        'rebalance_monitor_drift_partitions{cluster="c",group="g",strategy="range"} 4\n'
    )
    assert read_figures(text, "{}").groups["g"].drift_partitions is None
    own = text + 'rebalance_monitor_drift_partitions{cluster="c",group="g",strategy="roundrobin"} 0\n'
    assert read_figures(own, "{}").groups["g"].drift_partitions == 0


def test_a_group_that_only_commits_is_shown_with_its_lag():
    groups = read_figures('rebalance_monitor_group_lag{cluster="c",group="g"} 7\n', "{}").groups
    assert groups == {"g": GroupFigures("g", lag=7)}


def test_the_cause_of_lag_is_the_sentence_of_the_api(tmp_path: Path):
    """Issue 15: the screen, the page and the API show the same sentence, because it exists once."""
    cause = Cause(HOT_PARTITION, topic="t", partition=2, member="a", produced_records_per_second=8.0)
    monitor_state = MonitorState()
    monitor_state.put_batch([_record("g"), _record("h")], [])
    monitor_state.put_sample(ClusterSample(0), None)
    monitor_state.put_explained_lags({"g": ExplainedLag(None, cause)})
    monitor_state.put_health(ready=True, was_ready=True)
    listed_groups = ask(pages_of(monitor_state, tmp_path, now_ms=0), "/api/v1/groups").text
    figures = read_figures(_exposition(monitor_state), listed_groups)
    assert {group_id: group.cause for group_id, group in figures.groups.items()} == {"g": cause.text, "h": None}


def test_before_the_api_has_a_list_of_groups_no_group_has_a_cause():
    """While the monitor catches up, the API returns only an error."""
    text = 'rebalance_monitor_group_lag{cluster="c",group="g"} 7\n'
    assert read_figures(text, '{"error": "catching up"}').groups["g"].cause is None


def test_every_possible_name_of_a_group_is_read_back():
    awkward = 'quote " backslash \\ newline \n brace } ü'
    monitor_state = MonitorState()
    monitor_state.put_batch([_seen(awkward)], [])
    monitor_state.put_sample(ClusterSample(0), None)
    monitor_state.put_health(ready=True, was_ready=True)
    assert list(_scraped(monitor_state).groups) == [awkward]


def _scraped(monitor_state: MonitorState) -> Figures:
    return read_figures(_exposition(monitor_state), "{}")


def _exposition(monitor_state: MonitorState) -> str:
    return answer(Exporter([("c", monitor_state)], lambda: 0, 1_000))


def _seen(group_id: str) -> GroupState:
    return GroupState(
        GroupSnapshot(group_id, group_type="consumer", state=UNKNOWN, modern=ModernGroup(), generation_id=1)
    )


def _record(group_id: str) -> GroupState:
    """Return a group with drift: range gives each member one of three partitions, but the first member has two."""
    owned = {"a": (0, 1), "b": (2,), "c": ()}
    members = tuple(_member(member_id, partitions) for member_id, partitions in owned.items())
    metadata = GroupMetadata(group_id, "consumer", 7, "range", "a", None, members, 3)
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
