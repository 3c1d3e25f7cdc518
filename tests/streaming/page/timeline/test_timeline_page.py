"""Tests of the section on the page: links, hostile names, the table with the same facts."""

from __future__ import annotations

import time
from html.parser import HTMLParser
from pathlib import Path

import pytest

from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.page.page_input import WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import (
    CLUSTER,
    HOSTILE_NAMES,
    NOW_MS,
    STRATEGIES,
    Commits,
    Member,
    generation,
    record_of,
    simulate,
)
from tests.streaming.page.test_application import ask
from tests.streaming.page.timeline.stored import ago_ms, write_condition, write_gap, write_lag

SVG_ELEMENTS = {"svg", "defs", "pattern", "clippath", "rect", "polyline", "text", "title"}
HOSTILE_CLIENTS = ("</title></text></svg><script>alert(1)</script>", '"><image href=x onerror=alert(1)>', "{{ 7 * 7 }}")


class Svg(HTMLParser):
    """The elements inside pictures, and the text of titles and the table."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.inside = 0
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.labels: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect elements and attributes inside a picture."""
        self.inside += tag == "svg"
        if self.inside:
            self.elements.add(tag)
            self.attributes |= {name for name, _ in attrs}
        self.labels += [value or "" for name, value in attrs if name == "aria-label"]
        self.links += [value or "" for name, value in attrs if name == "href"]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect an element without an end tag."""
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        """Leave a picture."""
        self.inside -= tag == "svg"

    def handle_data(self, data: str) -> None:
        """Collect text."""
        self.text += data + " "


def pages_of(tables: Path, group_id: str, clients: tuple[str, ...]) -> Pages:
    """Return the pages of a monitor with one group: rebalances, lag, a commit gap and a condition in the last hour."""
    members = [Member(f"{client}-{number}", ("orders",)) for number, client in enumerate(clients)]
    events = [generation(1, 9_000, "range", members), generation(2, 1_200, "range", members[1:])]
    monitor_state = MonitorState()
    monitor_state.put_batch([record_of(group_id, events, tables)], [])
    sample, lag, _ = simulate({"another group": Commits(["audit"])})
    monitor_state.put_sample(sample, lag)
    monitor_state.put_health(ready=True, was_ready=True)
    if group_id.isprintable():
        write_lag(tables, group_id, 7_200, 0, int, range(12))
        write_gap(tables, group_id, 1_200, 1_230, 1_190)
        write_condition(tables, group_id, "flapping_member", 1_100)
        monitor_state.put_conditions({group_id: (Condition("flapping_member", ago_ms(1_100), "it came and went"),)})
    cluster = ClusterView(
        CLUSTER,
        lambda: WatchedCluster(CLUSTER, monitor_state.view(), NOW_MS, 60_000),
        RebalanceReader(str(tables), CLUSTER, time.monotonic),
    )
    return Pages([cluster], STRATEGIES)


def test_the_page_shows_the_last_hour_and_links_to_longer_times(tmp_path: Path) -> None:
    pages = pages_of(tmp_path, "billing", ("app", "app"))
    page = ask(pages, "/groups/billing").text
    assert "Timeline of the last hour" in page
    for span in ("1h", "6h", "24h", "7d"):
        assert f'href="/groups/billing?span={span}#timeline"' in page
    assert "Timeline of the last 7 days" in ask(pages, "/groups/billing?span=7d").text


@pytest.mark.parametrize("span", ["", "9y", "-1h", "1h%00", "7d'", "<script>", "6h6h"])
def test_an_invalid_time_is_the_last_hour(tmp_path: Path, span: str) -> None:
    page = ask(pages_of(tmp_path, "billing", ("app", "app")), f"/groups/billing?span={span}").text
    assert "Timeline of the last hour" in page
    assert "<script>" not in page


def test_the_links_keep_the_id_and_the_cluster_of_the_group(tmp_path: Path) -> None:
    """A group id that is not a path segment is in the query string, and so is the cluster."""
    page = ask(pages_of(tmp_path, "..", ("app", "app")), "/groups/?id=..").text
    assert "/groups/?id=..&amp;span=6h#timeline" in page


def test_the_links_keep_the_other_parameters(tmp_path: Path) -> None:
    page = ask(pages_of(tmp_path, "billing", ("app", "app")), "/groups/billing?members_from=50&span=24h").text
    assert 'href="/groups/billing?members_from=50&amp;span=6h#timeline"' in page


@pytest.mark.parametrize("client", HOSTILE_CLIENTS)
def test_a_hostile_client_id_is_text_in_the_picture(tmp_path: Path, client: str) -> None:
    """A client chooses its client id. The picture must not become markup."""
    parsed = Svg(ask(pages_of(tmp_path, "billing", (client, client)), "/groups/billing").text)
    assert parsed.elements == SVG_ELEMENTS
    assert not any(name.startswith("on") or name in {"style", "href"} for name in parsed.attributes)
    assert client in parsed.text


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_group_id_has_a_page(tmp_path: Path, name: str) -> None:
    from streaming.page.addresses import group_address  # noqa: PLC0415 - only here

    answer = ask(pages_of(tmp_path, name, ("app", "app")), group_address(name))
    assert answer.status == "200 OK"
    assert not Svg(answer.text).elements - SVG_ELEMENTS


def test_a_screen_reader_gets_a_summary_and_the_same_facts_as_a_table(tmp_path: Path) -> None:
    """WCAG 1.1.1: the picture has a text alternative."""
    pages = pages_of(tmp_path, "billing", ("app", "app"))
    parsed = Svg(ask(pages, "/groups/billing?reload=0").text)
    (wide, narrow) = [label for label in parsed.labels if label.startswith("Timeline of the last hour.")]
    assert wide == narrow
    assert wide.endswith("The table after the picture contains all facts.")
    for fact in ("Active now: flapping member.", "1 rebalance (member gone).", "1 commit gap. The longest took 40 s."):
        assert fact in wide
        assert fact in parsed.text
    assert "The same facts as a table" in parsed.text
    assert "app@10.4.5.48 is gone; 1 member" in parsed.text
    assert "12 partitions" in parsed.text


def test_the_table_of_facts_is_open_on_a_page_that_does_not_reload(tmp_path: Path) -> None:
    """A reload closed the table after 15 s and moved the focus to the start of the page, while somebody was reading."""
    pages = pages_of(tmp_path, "billing", ("app", "app"))
    page = ask(pages, "/groups/billing?span=6h").text
    assert "<details" not in page
    assert "/groups/billing?span=6h&reload=0#facts" in Svg(page).links
    assert "The link after the picture opens a table with all facts." in " ".join(Svg(page).labels)
    stopped = ask(pages, "/groups/billing?span=6h&reload=0").text
    assert '<details id="facts" open>' in stopped
    assert 'http-equiv="refresh"' not in stopped


def test_the_picture_has_no_inline_styles(tmp_path: Path) -> None:
    """The content security policy forbids inline styles, so the browser would ignore them."""
    page = ask(pages_of(tmp_path, "billing", ("app", "app")), "/groups/billing").text
    assert " style=" not in page
    assert "<style" not in page
