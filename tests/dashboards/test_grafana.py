r"""Test that the tests replace variables as Grafana does. The cases come from Grafana's tests (datasource.test.ts).

Values are escaped for PromQL's string literals, so `\` is written twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.grafana import Dashboard, Times
from tests.promql import selectors

TIMES = Times(range_seconds=3600, step_seconds=15, scrape_seconds=15)


@pytest.mark.parametrize(
    ("group", "asked"),
    [
        ("cryptodepression", "cryptodepression"),
        ("looking'glass", r"looking\\'glass"),
        ("looking\\glass", r"looking\\glass"),
    ],
)
def test_one_value_is_a_string(group: str, asked: str):
    """The group's dashboard selects one group, so it uses `=` without a regular expression."""
    assert Dashboard("group").resolve_query('m{group="$group"}', {"group": group}, TIMES) == f'm{{group="{asked}"}}'


@pytest.mark.parametrize(
    ("groups", "asked"),
    [
        (None, ".*"),
        ("looking{glass", r"looking\\{glass"),
        ("looking\\glass", r"looking\\\\glass"),
        (["a.b", "a+b"], r"(a\\.b|a\\+b)"),
        (["alone"], "alone"),
    ],
)
def test_several_values_are_a_regular_expression_of_them(groups: str | Sequence[str] | None, asked: str):
    """A group named `a.b` must not also select `axb`."""
    query = Dashboard("fleet").resolve_query('m{group=~"$group"}', {"group": groups}, TIMES)
    assert query == f'm{{group=~"{asked}"}}'
    assert selectors(query)


def test_windows_fit_the_step_and_the_scrapes():
    """The rate interval is at least four scrapes: https://grafana.com/docs/grafana/latest/datasources/prometheus/."""
    asked = Dashboard("monitor").resolve_query("$__interval $__range $__rate_interval", {}, TIMES)
    assert asked == "15s 3600s 60s"
    assert Times(86_400, 300, 15).variables()["__rate_interval"] == "315s"


def test_a_variable_that_the_dashboard_does_not_have_is_no_variable():
    """Grafana would query a group that is named `$group`."""
    with pytest.raises(KeyError):
        Dashboard("monitor").resolve_query('m{group="$group"}', {}, TIMES)
