"""Tests of the link that stops the reloads of a page."""

from __future__ import annotations

import pytest

from streaming.page.application import Pages
from tests.streaming.page.scene import scene
from tests.streaming.page.test_application import Seen, ask, pages_of


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    tables = tmp_path_factory.mktemp("tables")
    return pages_of(scene(tables).monitor_state, tables)


@pytest.mark.parametrize(
    "path", ["/", "/?find=", "/groups/billing", "/groups/no-such", "/topics/orders", "/hosts/10.4.9.97", "/incidents"]
)
def test_each_page_that_reloads_has_a_link_that_stops_its_reloads(pages: Pages, path: str) -> None:
    """WCAG 2.2.2: every 15 s, a reload moved the focus of the keyboard to the start of the page."""
    page = ask(pages, path).text
    (stop,) = [link for link in Seen(page).links if link.endswith("reload=0")]
    stopped = ask(pages, stop).text
    assert 'http-equiv="refresh"' in page
    assert 'http-equiv="refresh"' not in stopped
    assert "This page does not reload." in stopped
    assert path in Seen(stopped).links, "the link that starts the reloads again"
