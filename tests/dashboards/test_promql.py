"""Test the results of the dashboards' PromQL functions with promtool, in cases that simple queries get wrong."""

from __future__ import annotations

import doctest
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("grafana_foundation_sdk", reason="the foundation SDK requires Python 3.11")

from grafana_foundation_sdk.builders import dashboard as build

import dashboards.promql
import dashboards.runbook
import dashboards.words
from dashboards import monitor, topic
from dashboards.alerts import expressions, links, texts
from dashboards.fleet import board as fleet_board
from dashboards.fleet.tables import ABOVE_LIMIT
from dashboards.group import now as group_now
from dashboards.promql import FLEET, Scope, count_or_zero, repeat_for_rows
from dashboards.words import CAUSES, CONDITIONS, STATES, STATUSES, VERDICTS
from streaming.group import snapshot
from streaming.signals.fairness import ASSIGNMENT_VERDICT, EXCESS_PARTITIONS
from streaming.signals.lag import GROUP_LAG_SECONDS, GROUP_SECONDS_UNTIL_LOST, GROUP_STATUS
from streaming.signals.monitor import QUERY_RESTARTS, RECORDS_SKIPPED
from streaming.signals.rebalances import COMMIT_GAP_SECONDS, GROUP_CONDITION, REBALANCES, REBALANCES_BY_CAUSE
from tests.monitoring_programs import monitoring_programs

GROUP = Scope('cluster="c", group="g"')
KNOWN = 'rebalance_monitor_empty_transitions_total{cluster="c", group="g", instance="%s"}'
TOTAL = 'rebalance_monitor_rebalances_total{cluster="c", group="g", instance="%s"}'
GONE = 'rebalance_monitor_rebalances_by_cause_total{cluster="c", group="g", cause="member_gone", instance="%s"}'


@dataclass(frozen=True)
class Case:
    """Series with one value per minute, and the expected increase in the ten minutes before minute 12."""

    why: str
    series: dict[str, str]
    increase: float | None


INCREASES = (
    Case("a counter that grew by 3 gives 3, not 3.3", {KNOWN % "a": "0x20", GONE % "a": "4x5 7x20"}, 3),
    Case("the first sample of a cause counts as its first rebalance", {KNOWN % "a": "0x20", GONE % "a": "_x5 1x20"}, 1),
    Case("no increase is 0", {KNOWN % "a": "0x20", GONE % "a": "4x20"}, 0),
    Case(
        "an old group whose series begin now has no increase",
        {KNOWN % "a": "_x5 0x20", GONE % "a": "_x5 4x20"},
        None,
    ),
    Case(
        "a group that becomes one of the worst groups, whose causes are exported only from now on, has no increase",
        {TOTAL % "a": "7x20", KNOWN % "a": "_x5 0x20", GONE % "a": "_x5 500x20"},
        None,
    ),
    Case(
        "a monitor that moved to a different machine continues to count",
        {KNOWN % "a": "0x4 stale", GONE % "a": "4x4 stale", KNOWN % "b": "_x6 0x20", GONE % "b": "_x6 5x20"},
        1,
    ),
    Case(
        "a group that was deleted and recreated does not count below 0",
        {KNOWN % "a": "0x20", GONE % "a": "4x5 1x20"},
        0,
    ),
    Case("without a series there is no result", {KNOWN % "a": "0x20"}, None),
)


def check_result(folder: Path, series: dict[str, str], expression: str, expected: list[dict[str, Any]]) -> None:
    """Fail with promtool's output unless the expression has this result at minute 12."""
    test = {
        "evaluation_interval": "1m",
        "tests": [
            {
                "interval": "1m",
                "input_series": [{"series": name, "values": values} for name, values in series.items()],
                "promql_expr_test": [{"expr": expression, "eval_time": "12m", "exp_samples": expected}],
            }
        ],
    }
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump(test))
    command = [monitoring_programs().promtool, "test", "rules", str(file)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stdout + completed.stderr


@pytest.mark.parametrize("case", INCREASES, ids=lambda case: case.why)
def test_the_increase_of_a_counter_is_exact(tmp_path: Path, case: Case):
    """`increase` ignores a series' first sample and extrapolates. The monitor's totals survive its restarts."""
    labels = '{cluster="c", group="g", cause="member_gone"}'
    expected = [] if case.increase is None else [{"labels": labels, "value": case.increase}]
    check_result(tmp_path, case.series, GROUP.increase(REBALANCES_BY_CAUSE, "10m"), expected)


def test_a_time_range_longer_than_the_stored_series_counts_the_stored_part(tmp_path: Path):
    """Ten minutes after the installation the table of most rebalances must not be empty."""
    increase = GROUP.increase_in_range(REBALANCES).replace("$__range", "1h")
    check_result(tmp_path, {TOTAL % "a": "7x5 9x20"}, increase, [{"labels": '{cluster="c", group="g"}', "value": 2}])


CLUSTER = Scope('cluster="c"')
READY = 'rebalance_monitor_ready{cluster="c", instance="%s"}'
RESTARTS = 'rebalance_monitor_query_restarts_total{cluster="c", instance="%s"}'
GAPS = 'rebalance_monitor_commit_gap_seconds_bucket{cluster="c", group="g", le="5", instance="%s"}'
SKIPPED = 'rebalance_monitor_records_skipped_total{cluster="c", reason="truncated", instance="%s"}'
FROM_0 = (
    (
        "the process of the monitor restarted, and its query failed four times",
        CLUSTER.increase_in_range(QUERY_RESTARTS),
        {READY % "a": "1x20", RESTARTS % "a": "6x4 0 1 2 3 4x20"},
        {"labels": '{cluster="c"}', "value": 4},
    ),
    (
        "the monitor moved to a different machine, and its query failed four times",
        CLUSTER.increase_in_range(QUERY_RESTARTS),
        {
            READY % "a": "1x4 stale",
            READY % "b": "_x5 1x20",
            RESTARTS % "a": "6x4 stale",
            RESTARTS % "b": "_x5 0 1 2 3 4x20",
        },
        {"labels": '{cluster="c"}', "value": 4},
    ),
    (
        "more failures than before the restart",
        CLUSTER.increase_in_range(QUERY_RESTARTS),
        {READY % "a": "1x20", RESTARTS % "a": "1x4 0 1 2 3 4x20"},
        {"labels": '{cluster="c"}', "value": 4},
    ),
    (
        "the group was deleted and created again, and had three commit gaps",
        GROUP.increase_in_range(COMMIT_GAP_SECONDS),
        {KNOWN % "a": "0x20", GAPS % "a": "5x4 0 1 2 3x20"},
        {"labels": '{cluster="c", group="g", le="5"}', "value": 3},
    ),
    (
        "the checkpoint was rebuilt, and the monitor read old records again",
        CLUSTER.increase_in_range(RECORDS_SKIPPED),
        {READY % "a": "1x20", SKIPPED % "a": "50x4 1 20 50x20"},
        {"labels": '{cluster="c", reason="truncated"}', "value": 0},
    ),
)


@pytest.mark.parametrize(
    ("query", "series", "expected"), [case[1:] for case in FROM_0], ids=[case[0] for case in FROM_0]
)
def test_a_counter_that_starts_again_at_0_shows_the_events_since_then(
    tmp_path: Path, query: str, series: dict[str, str], expected: dict[str, Any]
):
    """After a restart of the process, "Query restarts in the time range" was 0 although the query failed four times."""
    check_result(tmp_path, series, query.replace("$__range", "10m"), [expected])


def test_a_value_of_a_group_is_repeated_for_each_of_its_rows(tmp_path: Path):
    """Otherwise Grafana shows the value for one of the group's conditions and leaves the other cells empty."""
    condition = 'rebalance_monitor_group_condition{cluster="c", group="g", condition="%s"}'
    series = {condition % "rebalance_storm": "1x20", condition % "flapping_member": "1x20"}
    how_many = f"count by (cluster, group) ({GROUP.series(GROUP_CONDITION)})"
    rows = [name.removeprefix(GROUP_CONDITION.name) for name in sorted(series)]
    expected = [{"labels": row, "value": 2} for row in rows]
    check_result(tmp_path, series, repeat_for_rows(how_many, "cluster, group", GROUP.series(GROUP_CONDITION)), expected)


@pytest.mark.parametrize(
    ("values", "expected"),
    [("3x20", [{"labels": "{}", "value": 1}]), ("0x20", [{"labels": "{}", "value": 0}]), ("_x20", [])],
    ids=["one group is skewed", "no group is skewed", "skew is unknown"],
)
def test_a_count_is_0_only_if_the_values_are_known(tmp_path: Path, values: str, expected: list[dict[str, Any]]):
    """Rule 2: while the monitor catches up, the number of skewed groups is unknown, not 0."""
    series = {'rebalance_monitor_excess_partitions{cluster="c", group="g"}': values}
    excess = GROUP.series(EXCESS_PARTITIONS)
    check_result(tmp_path, series, count_or_zero(f"{excess} > 0", excess), expected)


def now(expression: str) -> str:
    """Return a query of a dashboard for the group `g`, with values for its variables."""
    values = {
        '=~"$cluster"': '="c"',
        '"$cluster"': '"c"',
        '"$group"': '"g"',
        '"$topic"': '"t"',
        '"$team"': '"payments"',
        "$top": "10",
        "$__interval": "10m",
        "$__rate_interval": "10m",
    }
    for variable, value in values.items():
        expression = expression.replace(variable, value)
    return expression.replace('group=~"g"', 'group=~".*"')


LAG_SECONDS = 'rebalance_monitor_group_lag_seconds{cluster="c", group="%s"}'
LIMIT = 'rebalance_monitor_group_limit{cluster="c", group="%s", limit="%s"}'
INFO = 'rebalance_monitor_group_info{cluster="c", group="%s", team="%s"}'


def test_a_team_sees_only_its_groups(tmp_path: Path):
    """Only one metric has the label `team`. The queries of all other metrics look the team up there."""
    series = {
        LAG_SECONDS % "ours": "5x20",
        LAG_SECONDS % "theirs": "9x20",
        INFO % ("ours", "payments"): "1x20",
        INFO % ("theirs", "search"): "1x20",
    }
    expected = [{"labels": '{cluster="c", group="ours"}', "value": 5}]
    check_result(tmp_path, series, now(FLEET.series(GROUP_LAG_SECONDS)), expected)


def test_each_group_is_compared_with_its_own_limit(tmp_path: Path):
    """Users of Burrow and of kafka_exporter ask for a threshold per group, because a nightly job may lag for hours."""
    series = {
        LAG_SECONDS % "realtime": "60x20",
        LIMIT % ("realtime", "max_lag_seconds"): "30x20",
        LIMIT % ("realtime", "critical_lag_seconds"): "3600x20",
        LAG_SECONDS % "nightly": "7200x20",
        LIMIT % ("nightly", "max_lag_seconds"): "86400x20",
        INFO % ("realtime", "payments"): "1x20",
        INFO % ("nightly", "payments"): "1x20",
    }
    check_result(tmp_path, series, now(ABOVE_LIMIT), [{"labels": '{cluster="c", group="realtime"}', "value": 60}])


def query_of(panel_title: str, query: int = 0) -> str:
    """Return the query of a panel on the first screen of the group `g`."""
    built = [panel.build() for panel in (*group_now.keeping_up(), *group_now.latest_events())]
    return _query_of(built, panel_title, query)


def query_on(board: build.Dashboard, panel_title: str, query: int = 0) -> str:
    """Return the query of an open panel of a dashboard, for the group `g` and the topic `t`."""
    return _query_of(board.build().panels or (), panel_title, query)


def _query_of(panels: Iterable[Any], panel_title: str, query: int) -> str:
    (panel,) = [one for one in panels if one.title == panel_title]
    return now(panel.targets[query].expr)


@dataclass(frozen=True)
class CatchUp:
    """Lag, rates and time to catch up of a group (`_` is unknown), and the number that the dashboard shows."""

    why: str
    lag: str
    consumed: str
    produced: str
    catch_up: str
    shown: float | None


CATCH_UPS = (
    CatchUp("the lag shrinks", "100", "20", "10", "10", 10),
    CatchUp("the group has no lag", "0", "10", "10", "_", 0),
    CatchUp("the lag stays the same", "100", "10", "10", "_", -1),
    CatchUp("the lag grows", "100", "10", "20", "_", -1),
    CatchUp("the group gains less than 2 %, so the metric has no series", "100", "100", "99", "_", -1),
    CatchUp("without the produce rate, nothing is known", "100", "20", "_", "_", None),
    CatchUp("without a rate, nothing is known", "100", "_", "20", "_", None),
    CatchUp("without a lag, nothing is known", "_", "10", "20", "_", None),
)


@pytest.mark.parametrize("case", CATCH_UPS, ids=lambda case: case.why)
def test_the_time_to_catch_up_shows_why_it_has_no_value(tmp_path: Path, case: CatchUp):
    """An empty panel would mean both "no lag" and "the lag grows for ever"."""
    values = {
        "group_lag": case.lag,
        "group_consumed_records_per_second": case.consumed,
        "group_produced_records_per_second": case.produced,
        "group_catch_up_seconds": case.catch_up,
    }
    series = {f'rebalance_monitor_{name}{{cluster="c", group="g"}}': f"{value}x20" for name, value in values.items()}
    result = [] if case.shown is None else [{"labels": '{cluster="c", group="g"}', "value": case.shown}]
    check_result(tmp_path, series, query_of("Catches up in"), result)


@pytest.mark.parametrize(
    ("lag", "expected"),
    [("5x20", 91), ("601x20", 92), ("3601x20", 93), ("_x20", None)],
    ids=["below the limit", "above the limit", "above the critical limit", "the lag is unknown"],
)
def test_the_lag_is_rated_by_the_limits_of_its_group(tmp_path: Path, lag: str, expected: float | None):
    """A colour with a fixed threshold would contradict the alert of a group with its own limit."""
    series = {
        LAG_SECONDS % "g": lag,
        LIMIT % ("g", "max_lag_seconds"): "600x20",
        LIMIT % ("g", "critical_lag_seconds"): "3600x20",
    }
    result = [] if expected is None else [{"labels": '{cluster="c", group="g"}', "value": expected}]
    check_result(tmp_path, series, query_of("Lag limit"), result)


def test_a_limit_is_drawn_only_near_the_lag(tmp_path: Path):
    """On an axis up to a limit of an hour, a lag of seconds would be a flat line."""
    series = {
        LAG_SECONDS % "g": "61x20",
        LIMIT % ("g", "max_lag_seconds"): "600x20",
        LIMIT % ("g", "critical_lag_seconds"): "3600x20",
    }
    drawn = [{"labels": '{cluster="c", group="g", limit="max_lag_seconds"}', "value": 600}]
    check_result(tmp_path, series, query_of("Lag in seconds", query=1), drawn)


@pytest.mark.parametrize(
    ("series", "cause"),
    [
        ({TOTAL % "a": "7x5 9x20", KNOWN % "a": "0x20", GONE % "a": "4x5 6x20"}, "member_gone"),
        ({TOTAL % "a": "7x5 9x20"}, "not exported"),
    ],
    ids=["the cause is exported", "only the number of rebalances is exported"],
)
def test_rebalances_of_a_group_without_details_are_shown_without_a_cause(
    tmp_path: Path, series: dict[str, str], cause: str
):
    """Only the worst groups have causes by default. The rebalances of all other groups must not disappear."""
    expected = [{"labels": f'{{cause="{cause}"}}', "value": 2}]
    check_result(tmp_path, series, now(group_now.rebalance_increase()), expected)


def test_of_two_monitors_the_shorter_time_until_records_are_lost_counts(tmp_path: Path):
    """The dashboard showed the larger value, and the alert used the smaller one."""
    name = 'rebalance_monitor_group_seconds_until_lost{cluster="c", group="g", instance="%s"}'
    expected = [{"labels": '{cluster="c", group="g"}', "value": 600}]
    check_result(
        tmp_path, {name % "a": "600x20", name % "b": "9000x20"}, GROUP.series(GROUP_SECONDS_UNTIL_LOST), expected
    )


def test_of_two_monitors_each_group_and_each_record_counts_once(tmp_path: Path):
    """Two monitors poll at different times. So one can show STOP while the other one already shows STALL."""
    of_monitors = {"m1": "STOP", "m2": "STALL"}
    status = 'rebalance_monitor_group_status{cluster="c", group="g", status="%s", instance="%s"}'
    verdict = 'rebalance_monitor_assignment_verdict{cluster="c",group="g",strategy="%s",verdict="drift",instance="%s"}'
    read = 'rebalance_monitor_records_read_total{cluster="c", kind="offset_commit", instance="%s"}'
    known, rows = {INFO % ("g", "payments"): "1x20"}, 'rebalance_monitor_topic_lag{cluster="c", group="g", topic="t"}'
    statuses = {status % (value, instance): "1x20" for instance, value in of_monitors.items()}
    verdicts = {verdict % (strategy, instance): "1x20" for strategy, instance in (("range", "m1"), ("sticky", "m2"))}
    once = [{"labels": "{}", "value": 1}]
    check_result(tmp_path, known | statuses, query_on(fleet_board.dashboard(), "No progress"), once)
    check_result(tmp_path, known | verdicts, query_on(fleet_board.dashboard(), "With drift"), once)
    check_result(tmp_path, {rows: "5x20"} | statuses, query_on(topic.dashboard(), "Groups without progress"), once)
    records = {read % instance: "0+600x20" for instance in of_monitors}
    rate = query_on(monitor.dashboard(), "Records that the monitor read, by kind")
    check_result(tmp_path, records, rate, [{"labels": '{kind="offset_commit"}', "value": 10}])
    rebalances = {TOTAL % instance: "7x5 9x20" for instance in of_monitors}
    increase = GROUP.increase_in_range(REBALANCES).replace("$__range", "1h")
    check_result(tmp_path, rebalances, increase, [{"labels": '{cluster="c", group="g"}', "value": 2}])


@pytest.mark.parametrize("title", ["Skewed", "With drift", "With a condition"])
@pytest.mark.parametrize(("ready", "shown"), [("1x20", 0), ("0x20", None)], ids=["ready", "not ready"])
def test_if_all_groups_are_empty_no_group_is_skewed_or_drifts(
    tmp_path: Path, title: str, ready: str, shown: float | None
):
    """The panels were blank. Their descriptions explained that no monitor was ready."""
    series = {READY % "a": ready, INFO % ("g", "payments"): "1x20"}
    expected = [] if shown is None else [{"labels": "{}", "value": shown}]
    check_result(tmp_path, series, query_on(fleet_board.dashboard(), title), expected)


ONE_UNKNOWN = {
    'rebalance_monitor_topic_lag{cluster="c", group="known", topic="t"}': "5x20",
    'rebalance_monitor_topic_lag_unknown_partitions{cluster="c", group="g", topic="t"}': "1x20",
    'rebalance_monitor_topic_lag_unknown_partitions{cluster="c", group="elsewhere", topic="u"}': "1x20",
}


@pytest.mark.parametrize(
    ("title", "query", "expected"),
    [
        ("Groups", 0, [{"labels": "{}", "value": 2}]),
        ("Groups with lag", 0, [{"labels": "{}", "value": 1}]),
        ("Groups with unknown lag", 0, [{"labels": "{}", "value": 1}]),
        ("Largest lag", 0, [{"labels": "{}", "value": 5}]),
        ("Groups without progress", 0, [{"labels": "{}", "value": 1}]),
        ("Groups that read this topic", 0, [{"labels": '{cluster="c", group="known"}', "value": 5}]),
        ("Groups that read this topic", 1, [{"labels": '{cluster="c", group="g"}', "value": 1}]),
        ("Firing alerts", 0, [{"labels": '{alertname="KafkaGroupUnknown", cluster="c", group="g"}', "value": 2}]),
    ],
)
def test_a_group_with_one_unknown_partition_is_on_the_dashboard_of_its_topic(
    tmp_path: Path, title: str, query: int, expected: list[dict[str, Any]]
):
    """The lag of the topic has no series for this group. So the group and its alerts were not shown."""
    alert = 'ALERTS{alertname="KafkaGroupUnknown", alertstate="firing", cluster="c", group="%s", severity="warning"}'
    status = 'rebalance_monitor_group_status{cluster="c", group="%s", status="STOP"}'
    others = {name % group: "1x20" for name in (alert, status) for group in ("g", "elsewhere")}
    check_result(tmp_path, ONE_UNKNOWN | others, query_on(topic.dashboard(), title, query), expected)


def test_firing_alerts_have_a_severity_and_the_number_of_their_runbook_panel(tmp_path: Path):
    """The second column of values is the link. An alert of a different product with a similar name is not listed."""
    alert = 'ALERTS{alertname="%s", alertstate="firing", cluster="c", group="g", severity="critical"}'
    series = {alert % "KafkaGroupLagging": "1x20", alert % "KafkaBrokerOffline": "1x20"}
    row = '{alertname="KafkaGroupLagging", cluster="c", group="g"}'
    check_result(tmp_path, series, query_of("Firing alerts"), [{"labels": row, "value": 3}])
    number = dashboards.runbook.panel_number("KafkaGroupLagging")
    check_result(tmp_path, series, query_of("Firing alerts", query=1), [{"labels": row, "value": number}])


def test_every_value_of_a_label_has_a_display_text():
    """A value without a text leaves its row of the timeline empty, as if it were unknown."""
    assert {word.value for word in STATUSES} == set(GROUP_STATUS.label_values["status"])
    assert {word.value for word in VERDICTS} == set(ASSIGNMENT_VERDICT.label_values["verdict"])
    assert {word.value for word in CONDITIONS} == set(GROUP_CONDITION.label_values["condition"])
    assert set(CAUSES) == set(REBALANCES_BY_CAUSE.label_values["cause"])
    of_classic = {snapshot.STABLE, snapshot.EMPTY, *snapshot.REBALANCING, snapshot.UNKNOWN}
    of_newer_types = {snapshot.ASSIGNING, snapshot.RECONCILING, "NotReady", snapshot.DEAD}
    assert {word.value for word in STATES} == of_classic | of_newer_types
    codes = [word.code for words in (STATES, STATUSES, VERDICTS, CONDITIONS) for word in words]
    assert len(set(codes)) == len(codes)


def test_the_examples_in_the_docstrings_are_true():
    for module in (expressions, links, texts, dashboards.promql, dashboards.runbook, dashboards.words):
        assert doctest.testmod(module).failed == 0
