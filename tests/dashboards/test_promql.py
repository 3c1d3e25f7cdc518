"""Test the results of the dashboards' PromQL functions with promtool, in cases that simple queries get wrong."""

from __future__ import annotations

import doctest
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

pytest.importorskip("grafana_foundation_sdk", reason="the foundation SDK requires Python 3.11")

import dashboards.promql
import dashboards.words
from dashboards.alerts import expressions, links, texts
from dashboards.promql import Scope, count_or_zero, repeat_for_rows
from dashboards.words import CAUSES, CONDITIONS, STATES, STATUSES, VERDICTS
from streaming.group import snapshot
from streaming.signals.fairness import ASSIGNMENT_VERDICT, EXCESS_PARTITIONS
from streaming.signals.lag import GROUP_STATUS
from streaming.signals.rebalances import GROUP_CONDITION, REBALANCES, REBALANCES_BY_CAUSE
from tests.monitoring_programs import monitoring_programs

GROUP = Scope('cluster="c", group="g"')
TOTAL = 'rebalance_monitor_rebalances_total{cluster="c", group="g", instance="%s"}'
GONE = 'rebalance_monitor_rebalances_by_cause_total{cluster="c", group="g", cause="member_gone", instance="%s"}'


@dataclass(frozen=True)
class Case:
    """Series with one value per minute, and the expected increase in the ten minutes before minute 12."""

    why: str
    series: dict[str, str]
    increase: float | None


INCREASES = (
    Case("a counter that grew by 3 gives 3, not 3.3", {TOTAL % "a": "7x20", GONE % "a": "4x5 7x20"}, 3),
    Case("the first sample of a cause counts as its first rebalance", {TOTAL % "a": "7x20", GONE % "a": "_x5 1x20"}, 1),
    Case("no increase is 0", {TOTAL % "a": "7x20", GONE % "a": "4x20"}, 0),
    Case(
        "an old group whose series begin now has no increase",
        {TOTAL % "a": "_x5 7x20", GONE % "a": "_x5 4x20"},
        None,
    ),
    Case(
        "a monitor that moved to a different machine continues to count",
        {TOTAL % "a": "7x4 stale", GONE % "a": "4x4 stale", TOTAL % "b": "_x6 7x20", GONE % "b": "_x6 5x20"},
        1,
    ),
    Case(
        "a group that was deleted and recreated does not count below 0",
        {TOTAL % "a": "7x5 1x20", GONE % "a": "4x5 1x20"},
        0,
    ),
    Case("without a series there is no result", {TOTAL % "a": "7x20"}, None),
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
    for module in (expressions, links, texts, dashboards.promql, dashboards.words):
        assert doctest.testmod(module).failed == 0
