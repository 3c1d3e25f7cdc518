"""Tests of compacted topics from the settings of the brokers to the lag, with the real sampler."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.evaluation.lag.next_offsets import REPEAT_AFTER_MS
from tests.streaming.run.samples.lag.test_retention_settings import Configs
from tests.streaming.run.samples.test_conditions import MINUTE_MS, Monitor


@pytest.mark.parametrize(("retention_ms", "lag", "fetches"), [(-1, 10, 2), (3_600_000, 500, 1)])
def test_compaction_after_the_last_commit_changes_the_lag(
    tmp_path: Path, retention_ms: int, lag: int, fetches: int
) -> None:
    """Compaction removes the records 500 to 989. The first fetch found record 500.

    A topic with retention -1 is compacted. If the topic is not compacted, the monitor fetches no record twice.
    """
    monitor = Monitor(tmp_path, configs=Configs(orders=retention_ms))
    monitor.cluster.end_offsets = {("orders", 0): 1_000, ("orders", 1): 1_000}
    monitor.commit(p0=500)
    monitor.pass_minutes(2)
    monitor.cluster.next_records["orders", 0] = 990
    monitor.pass_minutes(REPEAT_AFTER_MS // MINUTE_MS)
    evaluated = monitor.monitor_state.view().lag
    assert evaluated is not None
    assert evaluated.by_partition["g"]["orders", 0] == lag
    assert len(monitor.cluster.looks) == fetches
