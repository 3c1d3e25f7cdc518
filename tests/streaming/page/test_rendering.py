"""What others named is shown as it is, spelled out where it cannot be seen, and never obeyed."""

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
from streaming.page.rendering import asset, page
from streaming.page.watched import WatchedCluster
from streaming.state.monitor_view import MonitorView


def no_group(group_id: str) -> str:
    """Return the smallest page that shows a name."""
    clusters = [WatchedCluster("prod", MonitorView(), 0, 1)]
    return page("no_group.html", clusters=clusters, several=False, group_id=group_id).decode()


@given(st.text(st.characters(), min_size=1))
def test_a_name_on_a_page_is_its_spelled_out_self_escaped(name: str) -> None:
    spelled = printable(name)
    assert spelled.isprintable()
    shown = no_group(name).split('<bdi class="name">')[1].split("</bdi>")[0]
    assert "<" not in shown
    assert html.unescape(shown) == spelled


@given(st.text(st.characters()))
def test_what_can_be_seen_stays_as_it_is(name: str) -> None:
    assert (printable(name) == name) == name.isprintable()


def test_a_name_that_is_not_there_is_a_mistake_and_not_an_empty_place() -> None:
    with pytest.raises(Exception, match="group_id"):
        page("no_group.html", clusters=[WatchedCluster("prod", MonitorView(), 0, 1)], several=False)


@pytest.mark.parametrize(("age_ms", "said"), [(0, "sampled 0 s ago"), (-5_000, "sampled 0 s ago")])
def test_a_clock_that_was_set_back_makes_no_sample_of_the_future(age_ms: int, said: str) -> None:
    watched = WatchedCluster("prod", MonitorView(sample=ClusterSample(10_000)), 10_000 + age_ms, 1)
    assert said in page("no_group.html", clusters=[watched], several=False, group_id="g").decode()


def test_nothing_is_fetched_from_elsewhere() -> None:
    """The page works where there is no way out, and tells nobody who looks at it."""
    for name in ("style.css", "icon.svg"):
        text = asset(name).decode()
        assert "@import" not in text
        assert "url(" not in text
    assert "//" not in no_group("g").replace("<!doctype html>", "")


def test_what_the_docstrings_show_is_true() -> None:
    for module in (
        streaming.page.rendering,
        streaming.group.printable,
        streaming.evaluation.rebalances.rebalance_words,
    ):
        assert doctest.testmod(module).failed == 0
