"""Tests that names on a page are escaped, and that invisible characters are spelled out."""

from __future__ import annotations

import doctest
import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

import streaming.evaluation.rebalances.rebalance_words
import streaming.group.printable
import streaming.page.rendering
from streaming.evaluation.lag.lag import ClusterSample
from streaming.group.printable import printable
from streaming.page.page_input import WatchedCluster
from streaming.page.rendering import asset, page
from streaming.state.monitor_view import MonitorView


def no_group(group_id: str) -> str:
    """Return the smallest page with a group name."""
    clusters = [WatchedCluster("prod", MonitorView(), 0, 1)]
    return page("no_group.html", clusters=clusters, several=False, name=group_id).decode()


@given(st.text(st.characters(), min_size=1))
def test_a_name_on_a_page_is_its_printable_form_and_escaped(name: str) -> None:
    printable_name = printable(name)
    assert printable_name.isprintable()
    shown = no_group(name).split('<bdi class="name">')[1].split("</bdi>")[0]
    assert "<" not in shown
    assert html.unescape(shown) == printable_name


@given(st.text(st.characters()))
def test_a_printable_name_is_unchanged(name: str) -> None:
    assert (printable(name) == name) == name.isprintable()


def test_a_missing_template_variable_is_an_error() -> None:
    with pytest.raises(Exception, match="'name' is undefined"):
        page("no_group.html", clusters=[WatchedCluster("prod", MonitorView(), 0, 1)], several=False)


@pytest.mark.parametrize(("age_ms", "message"), [(0, "sampled 0 s ago"), (-5_000, "sampled 0 s ago")])
def test_after_a_clock_was_set_back_the_age_of_a_sample_is_zero(age_ms: int, message: str) -> None:
    watched = WatchedCluster("prod", MonitorView(sample=ClusterSample(10_000)), 10_000 + age_ms, 1)
    assert message in page("no_group.html", clusters=[watched], several=False, name="g").decode()


def test_a_page_loads_nothing_from_other_hosts() -> None:
    """The page works without internet access, and no other host learns of its users."""
    for name in ("style.css", "icon.svg"):
        text = asset(name).decode()
        assert "@import" not in text
        assert "url(" not in text
    assert "//" not in no_group("g").replace("<!doctype html>", "")


def test_the_examples_in_the_docstrings_are_correct() -> None:
    for module in (
        streaming.page.rendering,
        streaming.group.printable,
        streaming.evaluation.rebalances.rebalance_words,
    ):
        assert doctest.testmod(module).failed == 0
