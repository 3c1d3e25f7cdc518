"""The values on the page of a topic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from streaming.evaluation.lag.lag import LogEnds
from streaming.page.finding.topic import _partitions, topic_detail
from streaming.page.page_input import NOT_READY, READY, STALE, WatchedCluster
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, NOW_MS, PARTITIONS, Commits, simulate

STALE_AFTER_MS = 30_000


def test_a_blocked_group_does_not_hide_the_produce_rate_that_another_group_shows() -> None:
    """Two groups have committed the partition. An open transaction blocks the group with the last row."""
    rows = [
        {"group_id": "a", "partition": 0, "produced_records_per_second": 12.5},
        {"group_id": "b", "partition": 0, "produced_records_per_second": None},
    ]
    (known,) = _partitions("orders", range(1), {("orders", 0): 9}, {}, rows)
    assert known.produced_records_per_second == 12.5
    (unknown,) = _partitions("orders", range(1), {("orders", 0): 9}, {}, rows[1:])
    assert unknown.produced_records_per_second is None


@pytest.mark.parametrize(
    ("later_ms", "is_ready", "last_stable_offset", "phase"),
    [
        pytest.param(0, True, 1_000, READY, id="ready"),
        pytest.param(STALE_AFTER_MS, True, 1_000, STALE, id="stale sample"),
        pytest.param(0, False, 1_000, NOT_READY, id="not ready"),
        pytest.param(0, True, 10, READY, id="blocked by an open transaction"),
    ],
)
def test_a_group_that_only_commits_stays_in_its_topics(
    later_ms: int, is_ready: bool, last_stable_offset: int, phase: str
) -> None:
    """The topic page reported one of 21 groups while the sample was stale, although it knew all committed offsets."""
    sample, lag, _ = simulate({"export": Commits(["audit"]), "copy": Commits(["audit", "clicks"])})
    ends = dict.fromkeys(range(PARTITIONS), LogEnds(1_000, last_stable_offset))
    monitor_state = MonitorState()
    monitor_state.put_health(positions=dict.fromkeys(range(PARTITIONS), 1_000), was_ready=True, ready=is_ready)
    monitor_state.put_sample(replace(sample, offsets_topic=ends), lag)
    watched = WatchedCluster(CLUSTER, monitor_state.view(), NOW_MS + later_ms, STALE_AFTER_MS)
    detail = topic_detail(watched, "audit")
    assert watched.phase == phase
    assert detail is not None
    assert [one.group.group_id for one in detail.groups] == ["copy", "export"]
    is_lag_unknown = later_ms > 0 or not is_ready or last_stable_offset < 1_000
    assert [one.lag is None for one in detail.groups] == [is_lag_unknown, is_lag_unknown]
