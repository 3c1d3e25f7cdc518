"""Tests of shares of work and commit gaps on the page, by the numbered rules of `group.py`."""

from __future__ import annotations

import doctest
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

import streaming.page.group
from streaming.cli.text.group_output import reported_cells
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.causes.member_work import PartitionWork, group_work
from streaming.evaluation.what_if.advice import TooHotPartition
from streaming.events import Position
from streaming.page.group import GroupDetail, group_detail
from streaming.page.page_input import WatchedCluster
from streaming.state.monitor_view import MonitorView, WorkShares
from tests.streaming.page.scene import CLUSTER, NOW_MS, scene
from tests.streaming.page.test_application import Seen, ask, pages_of

FRESH_MS = 30_000


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> MonitorView:
    return scene(Path(tmp_path_factory.mktemp("tables"))).monitor_state.view()


def detail(view: MonitorView, group_id: str, now_ms: int = NOW_MS) -> GroupDetail:
    page = group_detail(WatchedCluster(CLUSTER, view, now_ms, FRESH_MS), group_id)
    assert page is not None
    return page


def kinds(group: GroupDetail) -> list[tuple[str, str]]:
    return [(one.measure, one.scope) for one in group.work]


OF_RECORD = [("partitions", "member"), ("partitions", "host")]
OF_SAMPLE = [("lag", "member"), ("lag", "host"), ("throughput", "member"), ("throughput", "host")]


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.group).failed == 0


def test_one_member_with_all_the_work_has_all_the_lag_and_the_same_name_as_in_the_heat_map(view: MonitorView) -> None:
    """Rules 4 and 6: fraud-b has no partitions. Each of 30 partitions has a lag of 960 and receives 10 records/s."""
    page = detail(view, "fraud-detection")
    assert kinds(page) == [*OF_RECORD, *OF_SAMPLE]
    busiest = page.heat_map.rows[0]
    by_kind = {(one.measure, one.scope): one for one in page.work}
    for measure, of_partition in (("partitions", 1), ("lag", 960), ("throughput", 10)):
        among_members = by_kind[measure, "member"]
        assert among_members.total == among_members.largest == pytest.approx(30 * of_partition)
        assert (among_members.smallest, among_members.score, among_members.max_to_mean_ratio) == (0, 0, 2)
        assert among_members.busiest == busiest.name
        assert by_kind[measure, "host"].busiest == "/10.4.7.97"


@pytest.mark.parametrize("outdated", ["sample", "assignment"])
def test_lag_and_throughput_of_an_old_sample_or_assignment_are_not_shown(view: MonitorView, outdated: str) -> None:
    """Rule 4: the sample is an hour old, or the shares are of the previous generation."""
    before = WorkShares(Position(0, 1, 1), view.work["billing"].imbalances)
    shown, now_ms = (
        (view, NOW_MS + 3_600_000) if outdated == "sample" else (replace(view, work={"billing": before}), NOW_MS)
    )
    assert kinds(detail(shown, "billing", now_ms)) == OF_RECORD


def test_work_is_unknown_if_one_partition_is_unknown_and_the_number_is_shown(view: MonitorView) -> None:
    """Rule 5: the lag of a group that never committed is unknown, although end offsets are known."""
    of_lag, of_hosts, *_ = (one for one in detail(view, "..").work if one.measure == "lag")
    for one in (of_lag, of_hosts):
        assert (one.unknown_reason, one.unknown_partitions) == ("lag_unknown", 3)
        assert (one.total, one.largest, one.score, one.participants) == (None, None, None, None)


def test_a_group_without_members_has_no_shares(view: MonitorView) -> None:
    assert detail(view, "reporting").work == ()


def test_commit_gaps_are_shown_only_for_groups_with_a_known_gap(view: MonitorView) -> None:
    """Rule 7: other groups show no value instead of 0."""
    gaps = detail(view, "clickstream").commit_gaps
    assert gaps is not None
    assert (gaps.gaps, gaps.total_ms, gaps.long_gaps) == (8, 65_000 + 7 * 4_000, 1)
    assert detail(view, "ledger").commit_gaps is None


def test_the_owner_of_a_partition_is_unknown_if_an_assignment_cannot_be_decoded(view: MonitorView) -> None:
    """The page showed partitions without an owner, because the assignment of one member could not be decoded."""
    record = view.groups["fraud-detection"]
    assert record.snapshot.classic is not None
    busy, *others = sorted(record.snapshot.classic.members, key=lambda member: member.assignment is None)
    classic = replace(record.snapshot.classic, members=(replace(busy, assignment=None), *others))
    snapshot = msgspec.structs.replace(record.snapshot, classic=classic)
    unread = {**view.groups, "fraud-detection": msgspec.structs.replace(record, snapshot=snapshot)}
    page = detail(replace(view, groups=unread), "fraud-detection")
    assert {(one.owner, one.is_owner_known) for one in page.partitions} == {(None, False)}
    assert all(one.is_owner_known for one in detail(view, "fraud-detection").partitions)


def test_the_page_of_a_late_group_names_the_cause_and_shows_the_work_of_each_member(tmp_path: Path) -> None:
    """One sentence first, then the evidence: who has which share of the records, and who has the lag."""
    had = scene(tmp_path)
    report = had.monitor_state.reports(had.monitor_state.view(), is_fresh=True)["fraud-detection"]
    owned = [partition for member in report.members.each for partition in member.assigned or ()]
    rows = [PartitionWork(topic, number, 960, 10.0, 2.0, is_late=True) for topic, number in owned]
    work = group_work(report.members.each, rows, capacities={report.members.owners[owned[0]].member_id: 60.0})
    cause = Cause("under_provisioned", produced_records_per_second=300.0, consumed_records_per_second=60.0, since_ms=0)
    had.monitor_state.put_explained_lags({"fraud-detection": ExplainedLag(work, cause)})
    pages = pages_of(had.monitor_state, had.tables)
    text = Seen(ask(pages, "/groups/fraud-detection").text).text
    assert f"Cause of the lag. {cause.text} since 1970-01-01 00:00:00" in text
    assert "28,800 100 % 300/s 100 % 60/s 100 % 60/s" in text
    document = ask(pages, "/api/v1/groups/fraud-detection").json()
    assert (document["cause"]["cause"], document["cause"]["text"]) == ("under_provisioned", cause.text)
    assert [one["produced_share"] for one in document["member_work"]] == [1.0, 0.0]
    assert [one["lag_share"] for one in document["host_work"]] == [1.0, 0.0]
    assert "Cause of the lag" not in Seen(ask(pages, "/groups/billing").text).text


def test_page_api_and_command_show_the_advice_after_the_cause(tmp_path: Path) -> None:
    """The advice can contain the name of a topic. So every output escapes it."""
    had = scene(tmp_path)
    advice = TooHotPartition(("<b>orders", 3), 900.0, 300.0).text
    cause = Cause("under_provisioned", produced_records_per_second=960.0, consumed_records_per_second=60.0)
    explained = ExplainedLag(None, replace(cause, since_ms=0, advice=advice))
    had.monitor_state.put_explained_lags({"fraud-detection": explained})
    pages = pages_of(had.monitor_state, had.tables)
    page = ask(pages, "/groups/fraud-detection").text
    assert f"{cause.text} {advice} since" in Seen(page).text
    assert "<b>" not in page
    document = ask(pages, "/api/v1/groups/fraud-detection").json()
    assert document["cause"]["advice"] == advice
    (listed,) = [one for one in ask(pages, "/api/v1/groups").json()["groups"] if one["group_id"] == "fraud-detection"]
    assert reported_cells(listed, verbose=False)[1] == f"{cause.text} {advice}"
