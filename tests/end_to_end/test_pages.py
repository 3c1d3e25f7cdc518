"""Test the pages of a running monitor with TLS and a password, for a real group with a hostile name."""

from __future__ import annotations

import pytest

from streaming.embedded import EmbeddedBroker
from streaming.page.addresses import group_address
from tests.end_to_end.conftest import Group, create_topics
from tests.end_to_end.monitor_process import MonitorProcess, until

pytestmark = pytest.mark.slow


def test_a_group_of_any_name_is_shown_with_its_members_lag_and_rebalances(
    broker: EmbeddedBroker, shared_monitor: MonitorProcess, name: str
):
    """Everything from `__consumer_offsets` to the page is real."""
    group_id = f"{name}/../<script>alert('ü')</script>"
    create_topics(broker, {f"{name}-a": 3, f"{name}-b": 3})
    group = Group(broker.bootstrap_servers, group_id)
    monitor = shared_monitor
    try:
        group.join([f"{name}-a", f"{name}-b"])
        until("ready", lambda: monitor.ask("/-/ready", headers={})[0] == 200, 180)
        until("one member", lambda: monitor.group_document(group_id).get("member_count") == 1)
        group.join([f"{name}-a", f"{name}-b"])
        until("two members", lambda: monitor.group_document(group_id).get("member_count") == 2)
        until("everything committed", lambda: monitor.group_document(group_id)["lag"] == 0)
        until("its rebalances", lambda: _rebalance_kinds(monitor, group_id)[:1] == ["rebalance"])
        # The verdict is unknown until the partition counts of the new topics are known.
        until("its verdict", lambda: monitor.group_document(group_id)["verdict"] == "match")
        group_json = monitor.group_document(group_id)
        assert sorted(len(member["target"]) for member in group_json["members"]) == [2, 4], "range, two topics of three"
        assert group_json["leader"]["client_id"] == f"{group_id}-client"
        assert (group_json["session_timeouts_ms"], group_json["rebalance_timeouts_ms"]) == ([6_000], [300_000])
        assert group_json["coordinator"] == 1
        assert (group_json["verdict"], group_json["drift_partitions"]) == ("match", 0)
        lags = {(one["topic"], one["lag"]) for one in group_json["partitions"]}
        assert lags == {(f"{name}-a", 0), (f"{name}-b", 0)}
        assert group_json["what_if"][0]["alternatives"][0]["moved_partitions"] == 0
        status, page = monitor.ask(group_address(group_id))
        assert (status, "<script" in page) == (200, False)
        assert group_address(group_id) in monitor.ask("/")[1]
        assert [monitor.ask(path, headers={})[0] for path in ("/", "/metrics", group_address(group_id))] == [401] * 3
        assert "rebalance_monitor_ready" in monitor.ask("/metrics")[1]
    finally:
        group.leave_all()


def _rebalance_kinds(monitor: MonitorProcess, group_id: str) -> list[str]:
    return [rebalance["kind"] for rebalance in monitor.group_document(group_id)["rebalances"]]
