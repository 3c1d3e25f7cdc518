"""One truth: after the last row, the tables show the same group as the report of the present."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from assignors import assignor_named
from streaming.evaluation.evaluate import RecordedGroup, evaluate
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import STREAMS, GroupEvent
from streaming.group.snapshot import GroupSnapshot
from streaming.page.api.as_json import summary_json
from streaming.past.reader import PastReader
from tests.streaming.groups import (
    current,
    emptied,
    epoch,
    formed,
    joined,
    member,
    target,
    target_epoch,
    written,
)
from tests.streaming.past.history import CLUSTER, NAMED, write_life

A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
GREEDY = member("a", {"orders": [0, 1, 2, 3]})
STATIC = member("a", {"orders": [0, 1, 2, 3]}, instance_id="pod-1")
RECONCILING = [
    *formed(1, 3),
    joined(10, "n"),
    epoch(11, 4),
    target(12, "m", (("id", (0,)),)),
    target(13, "n", (("id", (1,)),)),
    target_epoch(14, 4),
    current(15, "m", (("id", (0,)),), 4),
]
NOT_STORED = {
    "coordinator",
    "session_timeouts_ms",
    "rebalance_timeouts_ms",
    "owned_twice_partitions",
    "not_subscribed_partitions",
    "unowned_partitions",
}
"""Fields that no table stores. They are null or empty in the past."""


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([written(1, 1, [A, B])], id="a fair classic group"),
        pytest.param([written(1, 1, [A, B]), written(2, 2, [GREEDY, member("b")])], id="drift"),
        pytest.param([written(1, 1, [STATIC])], id="a static member"),
        pytest.param([written(1, 1, [A]), emptied(2, 2)], id="no members"),
        pytest.param(formed(1), id="a KIP-848 group"),
        pytest.param(RECONCILING, id="a KIP-848 group that reconciles"),
        pytest.param([epoch(1, 3)], id="a KIP-848 group whose targets are missing"),
        pytest.param(formed(1, group_type=STREAMS), id="a streams group, whose state is in no record"),
        pytest.param(formed(1, group_type=STREAMS)[1:], id="a streams group whose member metadata are missing"),
    ],
)
def test_after_the_last_row_the_past_is_the_present(tmp_path: Path, events: Sequence[GroupEvent]) -> None:
    record = GroupState(GroupSnapshot("g"))
    for event in events:
        for one in (event, NAMED):
            record = apply_batch(record, [one], [assignor_named("range")]).record
    report = evaluate(RecordedGroup("g", record, state=record.snapshot.state))
    present = summary_json(report)
    present["troubles"] = [one for one in present["troubles"] if one["word"] != "unowned"]  # depends on NOT_STORED
    write_life(tmp_path, events)
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("g", 3_600_000)
    assert past is not None
    shown = summary_json(past.report)
    assert {name: shown[name] for name in shown.keys() - NOT_STORED} == {
        name: present[name] for name in present.keys() - NOT_STORED
    }
    assert all(shown[name] in (None, []) for name in NOT_STORED)
    assert past.report.members.expected_partitions == report.members.expected_partitions
    listed = [summary_json(report) for report in reader.groups(3_600_000)]
    assert [{**one, "leader": shown["leader"]} for one in listed] == [shown]
