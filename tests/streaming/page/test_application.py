"""Tests of the pages through WSGI (PEP 3333), as a browser receives them, with the groups of `scene`."""

from __future__ import annotations

import gzip
import http.client
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from wsgiref.util import setup_testing_defaults
from wsgiref.validate import validator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from assignors import AssignorFailedError, GroupAssignment, GroupSpec
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.group.printable import printable
from streaming.http.routes import MetricsServer
from streaming.page.addresses import GROUP_API, group_address
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
    Member,
    Scene,
    generation,
    record_of,
    scene,
)

STALE_AFTER_MS = 30_000


@dataclass
class Answer:
    """A response of the pages."""

    status: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """Return the page as text."""
        return self.body.decode()

    def json(self) -> Any:  # noqa: ANN401 - any document
        """Return the parsed JSON document."""
        assert self.headers["Content-Type"] == "application/json"
        return json.loads(self.body)


def pages_of(monitor_state: MonitorState, tables: Path, now_ms: int = NOW_MS) -> Pages:
    return Pages([cluster_view(CLUSTER, monitor_state, tables, now_ms)], STRATEGIES)


def cluster_view(cluster: str, monitor_state: MonitorState, tables: Path, now_ms: int = NOW_MS) -> ClusterView:
    return ClusterView(
        cluster,
        lambda: WatchedCluster(cluster, monitor_state.view(), now_ms, STALE_AFTER_MS),
        RebalanceReader(str(tables), cluster, time.monotonic),
    )


def ask(pages: Pages, address: str, method: str = "GET", **headers: str) -> Answer:
    """Send a request as a WSGI server does, checked by wsgiref's validator."""
    parts, started = urlsplit(address), list[Any]()
    environ: dict[str, Any] = {
        "REQUEST_METHOD": method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote(parts.path, "iso-8859-1"),
        "QUERY_STRING": parts.query,
        **headers,
    }
    setup_testing_defaults(environ)
    answered = validator(pages)(environ, lambda *arguments: started.extend(arguments))
    body = b"".join(answered)
    answered.close()  # type: ignore[attr-defined]
    return Answer(started[0], dict(started[1]), body)


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("tables"))


@pytest.fixture(scope="module")
def pages(page_scene: Scene) -> Pages:
    return pages_of(page_scene.monitor_state, page_scene.tables)


class Seen(HTMLParser):
    """The elements, links and text of a parsed page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[str] = []
        self.attributes: list[str] = []
        self.links: list[str] = []
        self.pieces: list[str] = []
        self.feed(page)
        self.text = " ".join(" ".join(self.pieces).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record an element."""
        self.elements.append(tag)
        self.attributes += [name for name, _ in attrs]
        self.links += [value or "" for name, value in attrs if name == "href" and tag == "a"]

    def handle_data(self, data: str) -> None:
        """Record text."""
        self.pieces.append(data)


ALLOWED_ELEMENTS = {
    "a", "bdi", "body", "button", "code", "dd", "div", "dl", "dt", "footer", "form", "h1", "h2", "h3", "head", "header",
    "html", "input", "label", "li", "link", "main", "meta", "nav", "ol", "option", "p", "q", "section", "select",
    "small", "span", "strong", "table", "tbody", "td", "th", "thead", "time", "title", "tr", "ul",
    "clippath", "details", "defs", "pattern", "polyline", "rect", "summary", "svg", "text",
}  # fmt: skip


def test_groups_with_trouble_come_first_and_show_the_reason(pages: Pages) -> None:
    answer = ask(pages, "/")
    seen = Seen(answer.text)
    assert answer.status == "200 OK"
    assert any(link.startswith("/incidents/") for link in seen.links), "the open incident"
    assert [link for link in seen.links if link.startswith("/groups/")][:5] == [f"/groups/{group}" for group in (
        "clickstream", "fraud-detection", "search-index", "reporting", "ledger"
    )]  # fmt: skip
    assert "6 of 20 groups need attention" in seen.text
    for word in ("rebalance storm", "flapping member", "drift", "rewound", "stalled", "stopped"):
        assert word in seen.text


def test_a_group_page_shows_members_expected_partitions_rebalances_and_alternatives(pages: Pages) -> None:
    seen = Seen(ask(pages, "/groups/fraud-detection").text).text
    assert "15 partitions are not assigned as range requires" in seen
    assert "30 expected 15 12 12 6 28,800" in seen, "actual and expected partitions, the cells of the map, and lag"
    assert "no record shows a cause; 2 members; 15 partitions moved" in seen
    assert "1 member more: 30 partitions, 3 members" in seen
    assert "orders -0" in seen.replace("orders-", "orders -"), "lag by partition"


@pytest.mark.parametrize("group_id", HOSTILE_NAMES)
def test_a_hostile_name_is_shown_only_as_text(pages: Pages, group_id: str) -> None:
    """A client may choose any group name. The browser of a user must not run it."""
    for page in (
        ask(pages, "/"),
        ask(pages, group_address(group_id)),
        ask(pages, f"/?q={group_address(group_id)[8:]}"),
    ):
        seen = Seen(page.text)
        assert page.status == "200 OK"
        assert set(seen.elements) <= ALLOWED_ELEMENTS
        assert not [name for name in seen.attributes if name.startswith("on") or name == "style"]
        assert not [link for link in seen.links if not link.startswith(("/", "#"))]
    assert " ".join(printable(group_id).split()) in Seen(ask(pages, group_address(group_id)).text).text
    assert group_address(group_id) in Seen(ask(pages, "/").text).links


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(st.characters(), max_size=30), st.text(st.characters(), max_size=30))
def test_no_name_changes_the_elements_of_a_page(tmp_path: Path, group_id: str, client: str) -> None:
    """The elements of a page do not depend on names of groups and members."""
    pages_by_name = []
    for name, member in ((group_id, client), ("plain", "member")):
        monitor_state = MonitorState()
        held = {"orders": [0]}
        event = generation(1, 10, "range", [Member(f"{member}-a", ["orders"], instance_id=member, held=held)])
        monitor_state.put_batch([record_of(name, [event])], [])
        monitor_state.put_sample(ClusterSample(NOW_MS), None)
        monitor_state.put_health(ready=True, was_ready=True)
        pages_by_name.append((name, pages_of(monitor_state, tmp_path)))
    for address_of in (lambda _: "/", group_address):
        hostile, plain = (Seen(ask(pages, address_of(name)).text) for name, pages in pages_by_name)
        assert [e for e in hostile.elements if e != "q"] == [e for e in plain.elements if e != "q"]
        assert hostile.attributes.count("href") == plain.attributes.count("href")


def test_every_response_forbids_what_the_pages_do_not_need(pages: Pages) -> None:
    for address in ("/", "/groups/billing", "/groups/no-such", "/api/v1/groups", "/style.css", "/nowhere"):
        headers = ask(pages, address).headers
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none';")
        assert "unsafe" not in policy
        assert "script-src" not in policy, "the pages have no scripts"


@pytest.mark.parametrize(
    "address", ["/", "/groups/billing", "/groups/no-such", "/api/v1/groups", "/style.css", "/nowhere"]
)
def test_the_server_adds_the_other_security_headers_to_each_response(pages: Pages, address: str) -> None:
    server = MetricsServer("127.0.0.1", 0, lambda _: [b""], pages)
    try:
        with closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)) as connection:
            connection.request("GET", address)
            headers = connection.getresponse().headers
    finally:
        server.close()
    assert len(headers) == len({name.lower() for name in headers}), "each header appears once"
    assert headers["Content-Security-Policy"] == ask(pages, address).headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer", "addresses contain names of groups"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["Cache-Control"] == ("max-age=86400" if address == "/style.css" else "no-store")


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/nowhere", "404 Not Found"),
        ("GET", "/groups", "404 Not Found"),
        ("GET", "/groups/no-such-group", "404 Not Found"),
        ("GET", "/groups/", "404 Not Found"),
        ("GET", "/groups/%FF", "404 Not Found"),
        ("GET", "/api/v1/groups/no-such-group", "404 Not Found"),
        ("GET", "/api/v1/groups/%ED%A0%80gone", "404 Not Found"),
        ("GET", "/api/v2/groups", "404 Not Found"),
        ("GET", "/../../etc/passwd", "404 Not Found"),
        ("GET", "/style.css/../../application.py", "404 Not Found"),
        ("POST", "/", "405 Method Not Allowed"),
        ("DELETE", "/groups/billing", "405 Method Not Allowed"),
        ("PATCH", "/api/v1/groups", "405 Method Not Allowed"),
        ("GET", "/-/healthy", "200 OK"),
        ("GET", "/-/ready", "200 OK"),
        ("GET", "/icon.svg", "200 OK"),
        ("GET", "/?q=%zz&q=%ff&" + "a=1&" * 100, "400 Bad Request"),
        ("GET", "/?limit=-1", "200 OK"),
        ("GET", "/?limit=99999999999999999999", "200 OK"),
        ("GET", "/?limit=%D9%A3", "200 OK"),
    ],
)
def test_unusual_requests_get_the_correct_status(pages: Pages, method: str, address: str, status: str) -> None:
    answer = ask(pages, address, method)
    assert answer.status == status
    if answer.status.startswith("405"):
        assert answer.headers["Allow"] == "GET, HEAD"


def test_groups_are_found_by_part_of_their_name_in_any_case(pages: Pages) -> None:
    seen = Seen(ask(pages, "/?q=BILL").text)
    assert [link for link in seen.links if link.startswith("/groups/")] == ["/groups/billing"]
    assert "No group matches the filters" in Seen(ask(pages, "/?q=nothing-like-it").text).text


def test_a_limited_number_of_rows_is_shown_and_the_rest_is_counted(pages: Pages) -> None:
    seen = Seen(ask(pages, "/?limit=2").text)
    assert [link for link in seen.links if link.startswith("/groups/")] == [
        "/groups/clickstream",
        "/groups/fraud-detection",
    ]
    assert "2 of 20 shown" in seen.text


def test_the_api_has_the_same_order_as_the_page_and_units_in_names(pages: Pages) -> None:
    document = ask(pages, "/api/v1/groups?limit=3").json()
    assert [group["group_id"] for group in document["groups"]] == ["clickstream", "fraud-detection", "search-index"]
    assert (document["total_groups"], document["cluster"], document["phase"]) == (20, CLUSTER, "ready")
    second = document["groups"][1]
    assert (second["drift_partitions"], second["lag"], second["lag_seconds"]) == (15, 28_800, 96.0)
    assert (second["shares"]["excess_partitions"], second["shares"]["score"]) == (15, 0.0)
    other_group = ask(pages, "/api/v1/groups/reporting").json()
    assert other_group["shares"]["excess_partitions"] is None, "a value that is not evaluated is null and not 0"


def test_the_api_returns_a_group_with_any_name(pages: Pages, page_scene: Scene) -> None:
    for group_id in page_scene.groups:
        document = ask(pages, group_address(group_id, GROUP_API)).json()
        assert document["group_id"] == group_id


def fields_of(document: object) -> Iterator[str]:
    """Return every field name in a document, at any depth."""
    if isinstance(document, dict):
        for name, value in document.items():
            yield name
            yield from fields_of(value)
    elif isinstance(document, list):
        for value in document:
            yield from fields_of(value)


def test_before_the_log_is_read_the_page_shows_progress_and_no_verdict(page_scene: Scene, tmp_path: Path) -> None:
    """A verdict from a part of the log could cause a false alert."""
    monitor_state = MonitorState()
    monitor_state.put_batch(page_scene.monitor_state.view().groups.values(), [])
    ends = {number: LogEnds(1_000, 900) for number in range(50)}
    monitor_state.put_sample(ClusterSample(NOW_MS, offsets_topic=ends, offsets_topic_partitions=50), None)
    monitor_state.put_health(positions={0: 900, 1: 400})
    pages = pages_of(monitor_state, tmp_path)
    for address in ("/", "/groups/billing"):
        seen = Seen(ask(pages, address).text).text
        assert "43,700 records still to read" in seen
        assert "range" not in seen
    answer = ask(pages, "/api/v1/groups")
    assert (answer.status, answer.json()["records_behind"]) == ("503 Service Unavailable", 43_700)
    assert ask(pages, "/api/v1/groups/billing").status == "503 Service Unavailable"
    assert ask(pages, "/-/ready").status == "503 Service Unavailable"
    assert ask(pages, "/-/healthy").status == "200 OK", "the process is alive and must not be restarted"


def test_before_any_sample_the_page_waits_for_the_brokers(tmp_path: Path) -> None:
    assert "waiting for the brokers" in ask(pages_of(MonitorState(), tmp_path), "/").text


def test_values_from_an_old_sample_are_not_shown(page_scene: Scene) -> None:
    pages = pages_of(page_scene.monitor_state, page_scene.tables, NOW_MS + 3_600_000)
    seen = Seen(ask(pages, "/").text).text
    assert "The last sample of the brokers is 1 h 2 s old" in seen
    assert "rewound" not in seen
    document = ask(pages, "/api/v1/groups/billing").json()
    assert (document["phase"], document["lag"], document["status"], document["partitions"]) == ("stale", None, None, [])
    assert document["member_count"] == 5, "members come from records, not from the sample"
    assert ask(pages, "/-/ready").status == "503 Service Unavailable"


def test_a_monitor_that_lost_its_connection_shows_no_lag(page_scene: Scene) -> None:
    """When a broker was dead, no commit was read, and each healthy group looked slower than its producers."""
    monitor_state = MonitorState()
    view = page_scene.monitor_state.view()
    monitor_state.put_batch(view.groups.values(), [])
    assert view.sample is not None
    monitor_state.put_sample(view.sample, view.lag)
    monitor_state.put_health(ready=False, was_ready=True)
    pages = pages_of(monitor_state, page_scene.tables)
    reason = "the monitor has not read all of __consumer_offsets, cannot read a table, or waits for a broker"
    assert f"{reason[1:]}. New commits can be missing" in Seen(ask(pages, "/").text).text
    document = ask(pages, "/api/v1/groups/billing").json()
    assert (document["phase"], document["lag_unknown"]) == ("not_ready", ["log_not_read"])
    assert (document["lag"], document["status"], document["partitions"]) == (None, None, [])
    assert document["member_count"] == 5, "members come from records"
    assert not {"rewound", "stalled", "stopped", "too slow"} & {
        trouble["word"] for group in ask(pages, "/api/v1/groups").json()["groups"] for trouble in group["troubles"]
    }
    assert ask(pages, "/-/ready").body == f"Not ready: {reason}\n".encode()


def test_a_full_disk_is_named_as_the_reason_why_the_monitor_is_not_ready(page_scene: Scene) -> None:
    """The page and `/-/ready` blamed `__consumer_offsets` and the brokers, although the disk was full.

    `/-/ready` names only the setting, because the path of a checkpoint can contain the name of a cluster.
    """
    monitor_state = MonitorState()
    view = page_scene.monitor_state.view()
    assert view.sample is not None
    monitor_state.put_sample(view.sample, view.lag)
    monitor_state.put_health(ready=False, was_ready=True)
    watched = WatchedCluster(
        CLUSTER, monitor_state.view(), NOW_MS, STALE_AFTER_MS, full_folders={"tables": "/data/tables"}
    )
    reader = RebalanceReader(str(page_scene.tables), CLUSTER, time.monotonic)
    pages = Pages([ClusterView(CLUSTER, lambda: watched, reader)], STRATEGIES)
    seen = Seen(ask(pages, "/").text).text
    assert "The disk with the folder /data/tables" in seen
    assert "is full. The monitor" in seen
    assert "a broker does not answer" not in seen
    assert (
        ask(pages, "/-/ready").body
        == b"Not ready: the disk with the folder paths.tables is full: make space on this disk\n"
    )


def test_a_cluster_without_the_offsets_topic_is_not_shown_as_being_read(tmp_path: Path) -> None:
    """A new cluster has no `__consumer_offsets` until the first commit. The page showed that the monitor reads it."""
    monitor_state = MonitorState()
    monitor_state.put_health(waits_for_topic=True)
    pages = pages_of(monitor_state, tmp_path)
    assert "waiting for __consumer_offsets" in Seen(ask(pages, "/").text).text
    for address in ("/-/ready", "/api/v1/groups"):
        assert "the cluster has no topic __consumer_offsets yet, or hides it" in ask(pages, address).text


def test_a_group_blocked_by_an_open_transaction_is_shown_as_unknown(page_scene: Scene) -> None:
    """The API showed no reason for the unknown lag, although `/metrics` showed the reason `blocked`.

    The page showed that the assignment of generation ? comes from an unknown program.
    """
    monitor_state = MonitorState()
    view = page_scene.monitor_state.view()
    monitor_state.put_batch(view.groups.values(), [])
    assert view.sample is not None
    offsets_topic = {number: LogEnds(1_005, 1_000) for number in range(50)}
    monitor_state.put_sample(replace(view.sample, offsets_topic=offsets_topic), view.lag)
    monitor_state.put_health(ready=True, was_ready=True)
    pages = pages_of(monitor_state, page_scene.tables)
    document = ask(pages, "/api/v1/groups/billing").json()
    assert (document["state"], document["not_known"]) == ("Unknown", ["blocked"])
    assert (document["lag"], document["member_count"], document["members"]) == (None, None, [])
    assert (document["lag_unknown"], document["partitions"]) == (["blocked"], [])
    text = Seen(ask(pages, "/groups/billing").text).text
    assert " lag ? " in text
    assert "Actual and expected assignment" in text
    assert "comes from" not in text


@pytest.mark.parametrize("accept_encoding", ["gzip;q=0", "identity", ""])
def test_responses_are_not_compressed_for_clients_that_refuse_gzip(pages: Pages, accept_encoding: str) -> None:
    """The header Vary informs caches that the response depends on the client."""
    answer = ask(pages, "/", HTTP_ACCEPT_ENCODING=accept_encoding)
    assert "Content-Encoding" not in answer.headers
    assert answer.headers["Vary"] == "Accept-Encoding"


def test_responses_are_compressed_for_clients_that_accept_gzip(pages: Pages) -> None:
    answer = ask(pages, "/", HTTP_ACCEPT_ENCODING="gzip")
    assert answer.headers["Content-Encoding"] == "gzip"
    assert answer.headers["Vary"] == "Accept-Encoding"
    assert b"Consumer groups" in gzip.decompress(answer.body)


def test_if_tables_cannot_be_read_only_the_rebalances_are_missing(page_scene: Scene, tmp_path: Path) -> None:
    page = ask(pages_of(page_scene.monitor_state, tmp_path), "/groups/billing").text
    assert "the table rebalances cannot be read (NoTableError)" in page
    assert "Partitions of each member" in page


def test_a_group_page_shows_shares_of_work_and_commit_gaps(pages: Pages) -> None:
    """The busiest of five members has 8 of 30 partitions, a lag of 320 of 1,200 records, and 80 of 300 records/s."""
    text = Seen(ask(pages, "/groups/billing").text).text
    busiest = ask(pages, "/api/v1/groups/billing").json()["work"][0]["busiest"]
    for text_part in (
        f"partitions of 5 members 88 8 {busiest} 5 30 1.33",
        f"lag of 5 members, in records 88 320 {busiest} 200 1,200 1.33",
        "throughput of 5 hosts, records/s 88 80 /10.4.9.97 50 300 1.33",
        "The commit gap is known for 2 rebalances. The total of these gaps is 11 s, and the average is 5.5 s.",
    ):
        assert text_part in text
    assert "1 commit gap was longer than 1 min" in Seen(ask(pages, "/groups/clickstream").text).text
    nothing_committed = Seen(ask(pages, group_address("..")).text).text
    assert "lag of members, in records unknown: lag unknown (3 partitions)" in nothing_committed
    assert "A commit gap is the time" not in nothing_committed


def test_the_error_of_a_users_strategy_is_shown_as_text(page_scene: Scene) -> None:
    """The user's code wrote the error message, so the page must show it only as text."""
    monitor_state = MonitorState()
    first = generation(1, 60, "range", [Member("m-a", ["orders"])])
    monitor_state.put_batch([record_of("g", [first], own=[Failing()])], [])
    monitor_state.put_health(was_ready=True)
    page = ask(pages_of(monitor_state, page_scene.tables), "/groups/g").text
    assert "failing failed: exception: <b>bad</b>" in Seen(page).text
    assert "<b>" not in page


class Failing:
    """A strategy whose error message contains markup."""

    name = "failing"

    def assign(self, group: GroupSpec) -> GroupAssignment:
        """Raise the error that the guarded process would report."""
        raise AssignorFailedError("exception", f"<b>bad</b> for {len(group.members)} members")
