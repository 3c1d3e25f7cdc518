"""Tests of the links and the form on the pages about the past."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from streaming.page.application import Pages
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import member, written
from tests.streaming.page.test_application import Seen, ask, cluster_view
from tests.streaming.past.history import write_life

AT = "1970-01-01T00:00:12"
LIFE = [written(10, 1, [member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})])]
HIDDEN = re.compile(r'<input type="hidden" name="([^"]*)" value="([^"]*)">')


def pages_of(tables: Path, *clusters: str) -> Pages:
    return Pages([cluster_view(name, MonitorState(), tables, 7_200_000) for name in clusters or ("prod",)], ())


@pytest.mark.parametrize(
    ("address", "now"),
    [
        ("/topics/orders", "/topics/orders"),
        ("/topics/a%2Fb%3Fx", "/topics/a%2Fb%3Fx"),  # the link led to /topics/a/b?x
        ("/topics/?name=..", "/topics/?name=.."),
        ("/hosts/%C3%A9", "/hosts/%C3%A9"),
        ("/hosts/%FF", "/hosts/%FF"),
        ("/incidents?group=g", "/incidents?group=g"),
        ("/incidents/0123456789ab", "/incidents/0123456789ab"),
    ],
)
def test_a_page_without_a_past_leads_to_its_present_and_has_no_form(tmp_path: Path, address: str, now: str) -> None:
    """The link "All groups now" led to the topic, and each time in the form was refused again."""
    answer = ask(pages_of(tmp_path), f"{address}{'&' if '?' in address else '?'}at={AT}")
    seen = Seen(answer.text)
    assert answer.status == "400 Bad Request"
    assert ("All groups now" in seen.text, "form" in seen.elements) == (False, False)
    assert now in seen.links


@pytest.mark.parametrize(
    ("address", "action", "hidden"),
    [
        (f"/?q=g&sort=lag&at={AT}", "/", [("q", "g"), ("sort", "lag")]),
        (f"/?cluster=prod&limit=5&at={AT}", "/", [("cluster", "prod"), ("limit", "5")]),
        (f"/?q=g&at={AT}x", "/", [("q", "g")]),
        (f"/groups/g?span=6h&at={AT}", "/groups/g", [("cluster", "prod"), ("span", "6h")]),
        ("/groups/g?from=1&to=1", "/groups/g", [("cluster", "prod")]),
        (f"/groups/?id=..&cluster=prod&at={AT}", "/groups/", [("id", ".."), ("cluster", "prod")]),
    ],
)
def test_the_form_keeps_all_parameters_except_the_time(
    tmp_path: Path, address: str, action: str, hidden: list[tuple[str, str]]
) -> None:
    """A different time removed the filters of the list."""
    write_life(tmp_path, LIFE)
    text = ask(pages_of(tmp_path, "prod", "us"), address).text
    assert f'<form class="past" method="get" action="{action}">' in text
    assert HIDDEN.findall(text) == hidden


def test_the_host_of_the_leader_has_a_link_to_its_own_cluster(tmp_path: Path) -> None:
    """The response to the link was "Which cluster?"."""
    for cluster in ("eu", "us"):
        write_life(tmp_path, LIFE, cluster=cluster)
    seen = Seen(ask(pages_of(tmp_path, "eu", "us"), f"/groups/g?cluster=eu&at={AT}").text)
    assert [link for link in seen.links if link.startswith("/hosts/")] == ["/hosts/127.0.0.1?cluster=eu"]
    alone = Seen(ask(pages_of(tmp_path, "eu"), f"/groups/g?at={quote(AT)}").text)
    assert [link for link in alone.links if link.startswith("/hosts/")] == ["/hosts/127.0.0.1"]


def test_the_leader_comes_first_in_the_document_of_the_past(tmp_path: Path) -> None:
    """The members were sorted by id. `API.md` describes one order for both documents."""
    write_life(tmp_path, [written(10, 1, [member("b", {"orders": [2, 3]}), member("a", {"orders": [0, 1]})])])
    document = ask(pages_of(tmp_path), f"/api/v1/groups/g?at={AT}").json()
    assert document["leader"]["member_id"] == "b"
    assert [one["member_id"] for one in document["members"]] == ["b", "a"]
