"""How work is shared, and how long rebalances cost: the numbers are the rules of `work`."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import streaming.page.work
from streaming.events import Position
from streaming.page.group import GroupDetail, group_detail
from streaming.page.watched import WatchedCluster
from streaming.state.monitor_view import MonitorView, WorkShares
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene

FRESH_MS = 30_000


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> MonitorView:
    return scene(Path(tmp_path_factory.mktemp("tables"))).monitor_state.view()


def detail(view: MonitorView, group_id: str, now_ms: int = NOW_MS) -> GroupDetail:
    found = group_detail(WatchedCluster(CLUSTER, view, now_ms, FRESH_MS), group_id)
    assert found is not None
    return found


def kinds(found: GroupDetail) -> list[tuple[str, str]]:
    return [(one.measure, one.scope) for one in found.work]


OF_RECORD = [("partitions", "member"), ("partitions", "host")]
OF_SAMPLE = [("lag", "member"), ("lag", "host"), ("throughput", "member"), ("throughput", "host")]


def test_the_example_in_the_docstring_is_true() -> None:
    assert doctest.testmod(streaming.page.work).failed == 0


def test_one_member_with_all_the_work_has_all_the_lag_and_is_called_as_in_the_map(view: MonitorView) -> None:
    """Rules 1 and 3: fraud-b holds nothing; each of 30 partitions is 960 behind and grows by 10 records/s."""
    found = detail(view, "fraud-detection")
    assert kinds(found) == [*OF_RECORD, *OF_SAMPLE]
    busiest = found.heat_map.rows[0]
    by_kind = {(one.measure, one.scope): one for one in found.work}
    for measure, of_partition in (("partitions", 1), ("lag", 960), ("throughput", 10)):
        among_members = by_kind[measure, "member"]
        assert among_members.total == among_members.largest == pytest.approx(30 * of_partition)
        assert (among_members.smallest, among_members.score, among_members.max_to_mean_ratio) == (0, 0, 2)
        assert among_members.busiest == busiest.name
        assert by_kind[measure, "host"].busiest == "/10.4.7.97"


@pytest.mark.parametrize("aged", ["sample", "assignment"])
def test_lag_and_throughput_of_another_time_or_assignment_are_not_shown(view: MonitorView, aged: str) -> None:
    """Rule 1: an hour ago, or measured of the generation before."""
    before = WorkShares(Position(0, 1, 1), view.work["billing"].imbalances)
    shown, now_ms = (
        (view, NOW_MS + 3_600_000) if aged == "sample" else (replace(view, work={"billing": before}), NOW_MS)
    )
    assert kinds(detail(shown, "billing", now_ms)) == OF_RECORD


def test_work_that_is_not_known_of_every_partition_is_unknown_and_says_of_how_many(view: MonitorView) -> None:
    """Rule 2: of a group that never committed no lag is known, though the end offsets are."""
    of_lag, of_hosts, *_ = (one for one in detail(view, "..").work if one.measure == "lag")
    for one in (of_lag, of_hosts):
        assert (one.unknown_reason, one.unknown_partitions) == ("lag_unknown", 3)
        assert (one.total, one.largest, one.score, one.participants) == (None, None, None, None)


def test_a_group_without_members_shares_nothing(view: MonitorView) -> None:
    assert detail(view, "reporting").work == ()


def test_gaps_are_counted_where_one_is_known(view: MonitorView) -> None:
    """Rule 4: of the others nothing is said, not 0."""
    gaps = detail(view, "clickstream").commit_gaps
    assert gaps is not None
    assert (gaps.gaps, gaps.total_ms, gaps.long_gaps) == (8, 65_000 + 7 * 4_000, 1)
    assert detail(view, "ledger").commit_gaps is None


def test_the_owner_of_a_partition_is_unknown_and_not_nobody_where_a_members_bytes_are(view: MonitorView) -> None:
    """The page said that nobody read partitions of a group in which one member's assignment could not be read."""
    record = view.groups["fraud-detection"]
    assert record.snapshot.classic is not None
    busy, *others = sorted(record.snapshot.classic.members, key=lambda member: member.assignment is None)
    classic = replace(record.snapshot.classic, members=(replace(busy, assignment=None), *others))
    snapshot = msgspec.structs.replace(record.snapshot, classic=classic)
    unread = {**view.groups, "fraud-detection": msgspec.structs.replace(record, snapshot=snapshot)}
    found = detail(replace(view, groups=unread), "fraud-detection")
    assert {(one.owner, one.is_owner_known) for one in found.partitions} == {(None, False)}
    assert all(one.is_owner_known for one in detail(view, "fraud-detection").partitions)
