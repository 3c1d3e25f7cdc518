"""Tests of the pages and documents as of a moment (`?at=`) and of two generations (`?from=`, `?to=`)."""

from __future__ import annotations

import doctest
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

import streaming.page.routes.past
from streaming.config.links import LinkSettings
from streaming.delta.incident_rows import incident_row
from streaming.delta.rows import lag_cause_end, lag_cause_row
from streaming.delta.tables import INCIDENTS, LAG_CAUSES
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.incidents.incident import Incident, make_incident_id
from streaming.evaluation.incidents.story import story
from streaming.page.addresses import GROUP_API, group_address, parse_address
from streaming.page.application import Pages
from streaming.page.past import parameters, views
from streaming.page.rendering import utc_text
from streaming.past.coverage import Coverage
from streaming.past.moments import format_moment
from streaming.past.reader import PastReader
from streaming.past.report import NOT_STORED
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import emptied, member, tombstoned, written
from tests.streaming.page.scene import HOSTILE_NAMES
from tests.streaming.page.test_application import ALLOWED_ELEMENTS, Seen, ask, cluster_view
from tests.streaming.past.history import lag_row, write_condition, write_lag, write_life, write_rows, write_status

PROD, US = "prod", "us"
A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
GREEDY = member("a", {"orders": [0, 1, 2, 3]})
LIFE = [written(10, 1, [A, B]), written(20, 2, [GREEDY, member("b")]), emptied(30, 3), tombstoned(40)]
"""A fair assignment, an unfair one, no members, deleted."""
NOW_MS = 7_200_000
FIRST, UNFAIR, EMPTY, OVER = ("1970-01-01T00:00:12", "1970-01-01T00:00:22", "1970-01-01T00:00:30", "1970-01-01T00:30")


def pages_of(tables: Path, *clusters: str) -> Pages:
    """Return pages whose monitor is still catching up. The past needs only the tables."""
    return Pages([cluster_view(name, MonitorState(), tables, NOW_MS) for name in clusters or (PROD,)], ())


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tables")
    write_life(folder, LIFE)
    write_life(folder, LIFE[:1], "calm")
    write_lag(folder, lag_row(11_000, 7, seconds=3.0), lag_row(11_000, 0, group_id="calm", seconds=0.0))
    write_status(folder, 11_000, "STALL")
    write_condition(folder, 21_000, "rebalance_storm", active=True)
    cause = lag_cause_row(PROD, 21_000, "g", Cause("slow_member", member="a@h"))
    ended = lag_cause_end(lag_cause_row(PROD, 11_000, "calm", Cause("stopped", "no_commits")), 21_000)
    write_rows(folder, {LAG_CAUSES: [cause, ended]})
    return folder


@pytest.fixture(scope="module")
def pages(tables: Path) -> Pages:
    return pages_of(tables)


def test_the_list_of_the_past_is_marked_and_leads_to_groups_of_the_same_moment(pages: Pages) -> None:
    answer = ask(pages, f"/?at={UNFAIR}")
    seen = Seen(answer.text)
    assert answer.status == "200 OK"
    assert "This page shows the state at 1970-01-01 00:00:22 UTC, from the tables." in seen.text
    assert "1 of 2 groups needed attention" in seen.text
    assert "rebalance storm" in seen.text
    assert (Cause("slow_member", member="a@h").text in seen.text, "stopped" in seen.text.lower()) == (True, False)
    links = [link for link in seen.links if link.startswith("/groups/")]
    assert links == [f"/groups/{group}?at={quote(UNFAIR)}" for group in ("g", "calm")], "the worst group comes first"
    assert "refresh" not in answer.text, "the past does not change"
    assert "Reloads" not in seen.text


@pytest.mark.parametrize("query", ["topic=orders", "host=c", "team=x", "sort=topic", "sort=host", "sort=team"])
def test_a_list_is_not_filtered_by_values_that_it_does_not_have(pages: Pages, query: str) -> None:
    """The groups of the past have no topics, hosts and teams. "0 groups" would be wrong: group g reads `orders`."""
    name = query.rpartition("=")[2] if query.startswith("sort") else query.partition("=")[0]
    for path in ("/", "/api/v1/groups"):
        answer = ask(pages, f"{path}?at={UNFAIR}&{query}")
        assert answer.status == "400 Bad Request"
        assert f"cannot be filtered or sorted by {name}, because the list does not contain this value" in answer.text
        assert ask(pages, f"{path}?at={UNFAIR}&sort=lag&state=Stable&topic=").status == "200 OK"


def test_a_filter_without_a_match_is_not_a_moment_without_groups(pages: Pages) -> None:
    """The page showed "The tables contain no group at this time", and did not show the filter `state`."""
    answer = ask(pages, f"/?at={UNFAIR}&state=Dead&q=<b>&strategy=range")
    seen = Seen(answer.text)
    assert "No group matches the filters." in seen.text
    assert "The tables contain no group" not in seen.text
    for shown in ("state: Dead ×", "name: <b> ×", "strategy: range ×"):  # noqa: RUF001 - the page shows this cross
        assert shown in seen.text
    at = f"at={quote(UNFAIR)}"
    assert f"/?{at}&q=%3Cb%3E&strategy=range" in seen.links, "a link removes the filter `state`"
    assert f"/?{at}" in seen.links, "a link removes all filters"
    one = Seen(ask(pages, f"/?at={UNFAIR}&trouble=rebalance%20storm&sort=lag").text)
    assert "1 group matches the filters. The list" in one.text
    assert "trouble: rebalance storm" in one.text
    assert "0 of 2 shown" in Seen(ask(pages, f"/?at={UNFAIR}&limit=0").text).text


def test_a_moment_without_groups_is_not_a_filter_without_a_match(tmp_path: Path) -> None:
    write_life(tmp_path, LIFE)
    text = Seen(ask(pages_of(tmp_path), f"/?at={OVER}&q=x").text).text
    assert "The tables contain no group at this time." in text
    assert "name: x" in text


def test_a_group_is_shown_with_its_owners_and_the_expected_assignment(pages: Pages) -> None:
    text = Seen(ask(pages, f"/groups/g?at={UNFAIR}").text).text
    assert "2 partitions are not assigned as range requires" in text
    assert "client-a@127.0.0.1 /127.0.0.1 4 2 orders 0-3 ?" in text, "has, expected, partitions and lag"
    assert "client-b@127.0.0.1 /127.0.0.1 0 2 – 0" in text  # noqa: RUF001 - the page shows a dash
    assert "orders -0 client-a@127.0.0.1 7 3 s STALL 100 107 1970-01-01 00:00:11" in text
    assert "The lag was measured at 1970-01-01 00:00:11 UTC." in text
    assert "rebalance storm: rebalance_storm of g since 1970-01-01 00:00:01" in text
    assert "generation 2" in text
    earlier = Seen(ask(pages, f"/groups/g?at={FIRST}").text).text
    assert "generation 2" not in earlier, "a rebalance after the moment"
    assert "rebalance storm" not in earlier


def test_what_no_table_stores_is_listed_once_and_never_shown_as_a_value(pages: Pages) -> None:
    text = Seen(ask(pages, f"/groups/g?at={FIRST}").text).text
    assert text.count("The tables do not always contain these values") == 1
    assert all(kind in text for kind in NOT_STORED)
    document = ask(pages, f"{GROUP_API}g?at={FIRST}").json()
    assert document["not_stored"] == list(NOT_STORED)
    for field in ("coordinator", "last_commit_ms", "consumed_records_per_second", "catch_up_seconds"):
        assert document[field] is None
    assert document["members"][0]["session_timeout_ms"] is None


def test_links_lead_one_hour_earlier_one_hour_later_and_to_the_present(pages: Pages) -> None:
    links = Seen(ask(pages, f"/groups/g?at={OVER}").text).links
    for expected in (f"/groups/g?at={quote('1970-01-01T01:30')}", "/groups/g"):
        assert expected in links
    last = format_moment(NOW_MS - 60_000)
    links = Seen(ask(pages, f"/groups/g?at={last}").text).links
    assert f"/groups/g?at={quote('1970-01-01T00:59')}" in links
    assert not any("02:59" in link for link in links), "an hour later is in the future"


def test_the_links_of_a_past_list_keep_its_filters(pages: Pages) -> None:
    links = Seen(ask(pages, f"/?q=g&at={OVER}").text).links
    assert {f"/?q=g&at={quote('1970-01-01T01:30')}", "/?q=g"} <= set(links)


def test_the_documents_have_the_field_names_of_the_present(pages: Pages) -> None:
    """The report has the same type, so a client can read both with the same code."""
    document = ask(pages, f"/api/v1/groups?at={UNFAIR}").json()
    assert (document["at_ms"], document["total_groups"]) == (22_000, 2)
    (cluster,) = document["clusters"]
    assert (cluster["cluster"], cluster["first_row_ms"], cluster["last_row_ms"]) == (PROD, 10_000, 40_000)
    assert (cluster["is_measured"], cluster["last_measured_ms"], cluster["error"]) == (True, 11_000, None)
    worst = document["groups"][0]
    assert (worst["cause"]["cause"], worst["cause"]["since_ms"]) == ("slow_member", 21_000)
    assert document["groups"][1]["cause"] is None, "the cause ended before the moment"
    assert (worst["group_id"], worst["verdict"], worst["drift_partitions"], worst["member_count"]) == (
        "g",
        "drift",
        2,
        2,
    )
    assert worst["shares"]["max_partitions"] == 4
    assert ask(pages, f"{GROUP_API}g?at=22000").status == "400 Bad Request", "no time after 1973"
    single = ask(pages, f"{GROUP_API}g?at={UNFAIR}").json()
    assert {name: single[name] for name in worst} == {**worst, "leader": single["leader"]}, "a list has no members"
    assert single["leader"]["member_id"] == "a"
    assert [one["member_id"] for one in single["members"]] == ["a", "b"]
    assert (single["partitions"][0]["lag"], single["partitions"][0]["row_time_ms"]) == (7, 11_000)
    assert [one["generation_id"] for one in single["rebalances"]] == [2, 1]


def test_links_to_grafana_have_the_time_range_of_the_page(tables: Path) -> None:
    """The dashboard showed the last hour, although the page shows an hour of last week."""
    views = [cluster_view(PROD, MonitorState(), tables, NOW_MS)]
    pages = Pages(views, (), LinkSettings(grafana_url="https://grafana.example.com"))
    dashboard = "https://grafana.example.com/d/rebalance-monitor-group?var-cluster=prod&var-group=g"
    hour_ms = 3_600_000
    for query, from_ms, to_ms in (
        (f"at={OVER}", 1_800_000 - hour_ms, 1_800_000),
        (f"at={OVER}&span=6h", 1_800_000 - 6 * hour_ms, 1_800_000),
        ("from=1&to=2", 10_000, 20_000),
    ):
        links = Seen(ask(pages, f"/groups/g?{query}").text).links
        assert f"{dashboard}&from={from_ms}&to={to_ms}" in links
    assert "Grafana" not in ask(pages_of(tables), f"/groups/g?at={OVER}").text, "no address is configured"


@pytest.mark.parametrize(
    ("query", "sections"),
    [
        (f"at={UNFAIR}", ["timeline", "members", "expected", "lag", "rebalances"]),
        ("from=1&to=2", ["generations", "members", "rebalances"]),
    ],
)
def test_each_section_has_an_anchor(pages: Pages, query: str, sections: list[str]) -> None:
    """A link in a chat leads to the section that its author means."""
    text = ask(pages, f"/groups/g?{query}").text
    assert [link[1:] for link in Seen(text).links if link.startswith("#")] == sections
    assert all(text.count(f' id="{section}"') == 1 for section in sections)


def test_two_generations_are_compared(pages: Pages) -> None:
    for query in ("from=1&to=2", f"from={FIRST}&to={UNFAIR}", f"from=2&to={FIRST}"):
        text = Seen(ask(pages, f"/groups/g?{query}").text).text
        assert "2 partitions moved. 0 of these moves were necessary." in text
        assert "client-a@127.0.0.1 stayed – orders 2-3" in text  # noqa: RUF001 - the page shows a dash
        assert "client-b@127.0.0.1 stayed orders 2-3 –" in text  # noqa: RUF001 - the page shows a dash
    document = ask(pages, f"{GROUP_API}g?from=1&to=3").json()
    assert [document[end]["generation_id"] for end in ("before", "after")] == [1, 3]
    assert [(one["member_id"], one["changes"]) for one in document["changes"]] == [("a", ["gone"]), ("b", ["gone"])]
    assert document["changes"][1]["revoked"] == [{"topic": "orders", "partition": number} for number in (2, 3)]
    rebalances = Seen(ask(pages, f"/groups/g?at={EMPTY}").text).links
    link = f"/groups/g?from={quote('1970-01-01T00:00:10')}&to={quote('1970-01-01T00:00:20')}"
    assert link in rebalances, "each rebalance leads to its comparison"


def test_links_compare_generations_of_the_same_life_of_a_group(tmp_path: Path) -> None:
    """A group was deleted and created again. Each number from 1 to 3 exists twice, and the deletion has number 3."""
    first = [written(second, second - 10, [A, B] if second % 2 else [GREEDY, member("b")]) for second in (11, 12, 13)]
    again = [written(second, second - 20, [A, B]) for second in (21, 22, 23)]
    write_life(tmp_path, [*first, tombstoned(14), *again])
    pages = pages_of(tmp_path)
    links = {}
    for moment in ("1970-01-01T00:00:15", "1970-01-01T00:00:24"):
        shown = [link for link in Seen(ask(pages, f"/groups/g?at={moment}").text).links if "from=" in link]
        for link in shown:
            document = ask(pages, link.replace("/groups", "/api/v1/groups")).json()
            ends = [(document[end]["record_timestamp_ms"], document[end]["state"]) for end in ("before", "after")]
            links[link] = ends
    expected = [(11, 12), (12, 13), (21, 22), (22, 23)]
    assert sorted(links.values()) == [[(1000 * one, "Stable"), (1000 * other, "Stable")] for one, other in expected]
    document = ask(pages, f"{GROUP_API}g?from=1&to=3").json()
    assert document["after"]["record_timestamp_ms"] == 23_000
    write_life(tmp_path, [written(31, 9, [A]), tombstoned(32)], "deleted")
    document = ask(pages, f"{GROUP_API}deleted?from=9&to=9").json()
    assert document["after"]["state"] == "Stable", "the generation, and not its deletion"


def test_two_generations_are_compared_although_the_last_record_is_later_than_now(tmp_path: Path) -> None:
    """The clock of the broker is ahead. A request with two generations contains no moment that can be in the future."""
    write_life(tmp_path, [*LIFE[:2], written(NOW_MS // 1000 + 60, 3, [A, B])])
    pages = pages_of(tmp_path)
    assert ask(pages, f"{GROUP_API}g?from=1&to=2").status == "200 OK"
    assert ask(pages, f"{GROUP_API}g?from=1&to={FIRST}").status == "200 OK"
    empty = ask(pages_of(tmp_path, "other"), f"{GROUP_API}g?from=1&to=2")
    assert empty.status == "404 Not Found"
    assert "the tables have no row of this cluster" in empty.text


@pytest.mark.parametrize(
    ("address", "status", "text"),
    [
        ("/?at=1970-01-01T00:00:09", "404 Not Found", "the moment is earlier than the first row"),
        ("/groups/g?at=1970-01-01T00:00", "404 Not Found", "the moment is earlier than the first row"),
        ("/groups/g?at=2026-11-22T22:04", "404 Not Found", "the moment is in the future"),
        ("/groups/g?from=1970-01-01T00:00&to=2", "404 Not Found", "the moment is earlier than the first row"),
        ("/groups/nobody?at=1970-01-01T00:00:12", "404 Not Found", "Either the group or the generation did not exist"),
        ("/groups/g?from=1&to=9", "404 Not Found", "Either the group or the generation did not exist"),
        ("/groups/%FF?at=1970-01-01T00:00:12", "404 Not Found", "Either the group or the generation did not exist"),
        ("/?at=last%20night", "400 Bad Request", "must be a time in UTC"),
        ("/groups/g?from=1&to=x", "400 Bad Request", "or generations"),
        ("/?at=1970-01-01T00:00:12&cluster=x", "404 Not Found", "no such cluster"),
    ],
)
def test_a_request_without_an_answer_shows_the_reason_and_what_the_tables_cover(
    pages: Pages, address: str, status: str, text: str
) -> None:
    answer = ask(pages, address)
    assert answer.status == status
    seen = Seen(answer.text).text
    assert text.lower() in seen.lower()
    assert "The group had no members" not in seen
    document = ask(
        pages, address.replace("/groups", "/api/v1/groups") if "groups" in address else f"/api/v1/groups{address[1:]}"
    )
    assert document.status == status
    assert document.json()["error"]
    if status.startswith("404") and "no such" not in text:
        assert "from 1970-01-01 00:00:10 to 1970-01-01 00:00:40 UTC" in seen
        covered = [link for link in Seen(answer.text).links if quote("1970-01-01T00:00:10") in link]
        if "/groups/g?" in address or address.startswith("/?"):
            assert [ask(pages, link).status for link in covered] == ["200 OK"], "the first moment has an answer"


def test_a_group_that_ended_before_the_moment_did_not_exist(pages: Pages) -> None:
    text = Seen(ask(pages, f"/groups/g?at={OVER}").text).text
    assert "7 3 s STALL" not in text
    assert "The group did not exist at this time." in text
    assert "/groups/g" not in " ".join(Seen(ask(pages, f"/?at={OVER}").text).links[:-1])


def test_a_group_without_members_is_not_a_group_with_unknown_members(pages: Pages) -> None:
    text = Seen(ask(pages, f"/groups/g?at={EMPTY}").text).text
    assert "The group had no members." in text
    assert "orders -0 none 7" in text, "the partition has no owner, and this is known"


def test_findings_from_before_a_stop_of_the_monitor_are_unknown_during_the_stop(tmp_path: Path) -> None:
    """The monitor ran until 00:00:30. At 01:30, the page showed a storm and a cause of lag as if they were active."""
    write_life(tmp_path, LIFE[:2])
    write_life(tmp_path, LIFE[:1], "calm")
    write_lag(tmp_path, lag_row(30_000, 0, seconds=0.0, group_id="calm"))
    write_condition(tmp_path, 21_000, "rebalance_storm", active=True)
    cause = Cause("slow_member", member="a@h")
    write_rows(tmp_path, {LAG_CAUSES: [lag_cause_row(PROD, 21_000, "g", cause)]})
    pages, during = pages_of(tmp_path), "1970-01-01T01:30"
    for at, is_active in ((UNFAIR, False), ("1970-01-01T00:00:31", True), (during, False)):
        document = ask(pages, f"{GROUP_API}g?at={at}").json()
        (cluster,) = document["clusters"]
        assert cluster["is_measured"] == is_active
        assert [one["condition"] for one in document["conditions"]] == ["rebalance_storm"] * is_active
        assert (document["cause"] is None, document["last_findings"] is None) == (not is_active, is_active)
        (listed,) = [one for one in ask(pages, f"/api/v1/groups?at={at}").json()["groups"] if one["group_id"] == "g"]
        assert (listed["conditions"], listed["cause"]) == (document["conditions"], document["cause"])
    assert cluster["last_measured_ms"] == 30_000
    assert document["last_findings"]["conditions"][0]["condition"] == "rebalance_storm"
    assert document["last_findings"]["cause"]["text"] == cause.text
    gap = "The last measurement before this time is from 1970-01-01 00:00:30 UTC."
    text = Seen(ask(pages, f"/groups/g?at={during}").text).text
    assert gap in text
    assert "Cause of the lag." not in text
    assert "The last measurement before this time found these problems." in text
    assert "rebalance storm since 1970-01-01 00:00:01 UTC: rebalance_storm of g" in text
    assert f"cause of the lag since 1970-01-01 00:00:21 UTC: {cause.text}" in text
    calm = Seen(ask(pages, f"/groups/calm?at={during}").text).text
    assert "The tables contain no problem of this group at this time." not in calm
    listing = Seen(ask(pages, f"/?at={during}").text).text
    assert gap in listing
    assert "? of 2 groups needed attention" in listing, "without a measurement, nobody knows"
    assert "storm" not in listing
    assert cause.text not in listing


def incident_of(first: str, *groups: str, since_ms: int, end_ms: int | None = None) -> Incident:
    facts = tuple(Evidence("condition", "rebalance_storm", one, "storm", since_ms, end_ms) for one in (first, *groups))
    return Incident(make_incident_id(PROD, facts[0]), PROD, since_ms, facts, (first, *groups), (), end_ms, end_ms)


def write_incidents(tables: Path, sampled_ms: int, *incidents: Incident) -> None:
    rows = [incident_row(sampled_ms, one, story(one, utc_text)) for one in incidents]
    write_rows(tables, {INCIDENTS: rows})


def test_the_incident_of_a_group_is_shown_while_it_is_open(tmp_path: Path) -> None:
    """The page listed incidents under "The tables do not contain", although a table contains them."""
    write_life(tmp_path, LIFE[:1])
    write_life(tmp_path, LIFE[:1], "calm")
    write_lag(tmp_path, lag_row(11_000, 0, seconds=0.0), lag_row(45_000, 0, partition=1, seconds=0.0))
    alone, both = incident_of("g", since_ms=15_000), incident_of("calm", "g", since_ms=12_000)
    write_incidents(tmp_path, 15_000, alone)
    write_incidents(tmp_path, 20_000, both)
    ended = [replace(one, quiet_since_ms=30_000, end_ms=30_000) for one in (alone, both)]
    write_incidents(tmp_path, 40_000, *ended)
    pages = pages_of(tmp_path)
    expected = {14: (None, None), 15: (alone, None), 20: (both, both), 39: (both, both), 40: (None, None)}
    for second, of_groups in expected.items():
        at = f"1970-01-01T00:00:{second}"
        listed = {one["group_id"]: one for one in ask(pages, f"/api/v1/groups?at={at}").json()["groups"]}
        for group_id, incident in zip(("g", "calm"), of_groups, strict=True):
            document = ask(pages, f"{GROUP_API}{group_id}?at={at}").json()
            ids = {document["incident_id"], listed[group_id]["incident_id"]}
            assert ids == {incident.incident_id if incident else None}
            seen = Seen(ask(pages, f"/groups/{group_id}?at={at}").text)
            links = [link for link in seen.links if link.startswith("/incidents/")]
            assert links == ([f"/incidents/{incident.incident_id}"] if incident else [])
            assert (incident is not None) == ("Part of the incident" in seen.text)
            assert (incident is None) == ("The tables contain no problem" in seen.text)
    text = Seen(ask(pages, "/?at=1970-01-01T00:00:20").text).text
    assert "part of an incident" in text
    assert "incidents" not in ask(pages, f"{GROUP_API}g?at={FIRST}").json()["not_stored"]


def test_an_incident_from_before_a_stop_of_the_monitor_is_possibly_over(tmp_path: Path) -> None:
    """Two days later, the monitor still did not run. The incident is found, but nobody knows whether it is open."""
    write_life(tmp_path, LIFE[:1])
    write_lag(tmp_path, lag_row(11_000, 0, seconds=0.0))
    incident = incident_of("g", since_ms=12_000)
    write_incidents(tmp_path, 12_000, incident)
    at, now_ms = "1970-01-03T00:00", 10**12
    pages = Pages([cluster_view(PROD, MonitorState(), tmp_path, now_ms)], ())
    document = ask(pages, f"{GROUP_API}g?at={at}").json()
    assert (document["incident_id"], document["last_findings"]["incident_id"]) == (None, incident.incident_id)
    seen = Seen(ask(pages, f"/groups/g?at={at}").text)
    assert "At the last measurement, part of the incident" in seen.text
    assert f"/incidents/{incident.incident_id}" in seen.links


@pytest.mark.parametrize("waiting", [0, 1])
def test_too_many_requests_are_refused_instead_of_waiting(
    tables: Path, monkeypatch: pytest.MonkeyPatch, waiting: int
) -> None:
    """Each waiting request used one of the 16 places of the port, so `/metrics` was delayed by many slow reads."""
    is_reading, may_continue, original = threading.Event(), threading.Event(), PastReader.coverage

    def coverage(reader: PastReader) -> Coverage:
        is_reading.set()
        assert may_continue.wait(60)
        return original(reader)

    monkeypatch.setattr(PastReader, "coverage", coverage)
    monkeypatch.setattr(streaming.page.routes.past, "MAX_WAITING_READS", waiting)
    pages = pages_of(tables)
    with ThreadPoolExecutor(2) as threads:
        reading = threads.submit(ask, pages, f"/?at={UNFAIR}")
        assert is_reading.wait(60)
        other = threads.submit(ask, pages, f"/api/v1/groups?at={UNFAIR}")
        if not waiting:
            assert other.result(60).status == "503 Service Unavailable"
        may_continue.set()
        assert reading.result(60).status == "200 OK"
        answer = other.result(60)
    assert (answer.headers.get("Retry-After"), "error" in answer.json()) == ((None, False) if waiting else ("5", True))
    assert ask(pages, f"/?at={UNFAIR}").status == "200 OK", "each place is free again"


def test_tables_that_cannot_be_read_are_an_error(tmp_path: Path) -> None:
    answer = ask(pages_of(tmp_path), f"/groups/g?at={FIRST}")
    assert answer.status == "503 Service Unavailable"
    assert "The tables cannot be read" in answer.text


def test_requests_without_a_moment_are_about_the_present(pages: Pages) -> None:
    """The monitor of these pages is still catching up."""
    for address in ("/", "/groups/g", "/groups/g?at=&from=", "/?at=", "/style.css?at=x", "/-/healthy?at=x"):
        assert "from the tables" not in ask(pages, address).text
    assert ask(pages, f"{GROUP_API}g").status == "503 Service Unavailable"


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("/groups/g?from=41", "A comparison needs both `from` and `to`"),
        ("/api/v1/groups/g?to=41", "a comparison needs both `from` and `to`"),
        (f"/groups/g?at={FIRST}&from=1&to=2", "`at` cannot be used together with `from` and `to`"),
        ("/?from=1&to=2", "`from` and `to` can only be used for one group"),
        (f"/api/v1/groups?at={FIRST}&from=1", "`from` and `to` can only be used for one group"),
        *(
            (f"{path}?at={FIRST}", "his address does not show the past, so it cannot be used with `at`")
            for path in ("/topics/orders", "/hosts/h", "/incidents", "/incidents/0123456789ab")
        ),
        ("/api/v1/incidents?from=1&to=2", "cannot be used with `from` and `to`"),
        (f"/api/v1/incidents/0123456789ab?at={FIRST}", "cannot be used with `at`"),
        (f"/api/v1/events?at={FIRST}", "cannot be used with `at`"),
    ],
)
def test_a_parameter_of_the_past_that_has_no_effect_is_refused(pages: Pages, address: str, reason: str) -> None:
    """The response was 200 with the values of the present, and nothing showed that the parameter was ignored."""
    answer = ask(pages, address)
    assert answer.status == "400 Bad Request"
    assert reason in (answer.json()["error"] if address.startswith("/api/") else Seen(answer.text).text)


@pytest.mark.parametrize("query", ["&".join(f"p{number}=1" for number in range(21)), "q=%ff"])
def test_a_query_that_cannot_be_read_is_refused(pages: Pages, query: str) -> None:
    """No parameter was read, also not `at`. So the response had the values of the present."""
    for path in ("/", "/groups/g"):
        assert ask(pages, f"{path}?at={FIRST}&{query}").status == "400 Bad Request"
    answer = ask(pages, f"/api/v1/groups?at={FIRST}&{query}")
    assert (answer.status, "more than 20 parameters" in answer.json()["error"]) == ("400 Bad Request", True)


def test_several_clusters_are_merged_and_a_group_of_two_clusters_must_be_selected(tmp_path: Path) -> None:
    write_life(tmp_path, LIFE[:1], cluster=PROD)
    write_life(tmp_path, [written(15, 7, [A])], cluster=US)
    pages = pages_of(tmp_path, PROD, US)
    both = ask(pages, "/api/v1/groups?at=1970-01-01T00:00:20").json()
    assert [(one["cluster"], one["generation_id"]) for one in both["groups"]] == [(PROD, 1), (US, 7)]
    one = ask(pages, f"/api/v1/groups?at={FIRST}").json()
    assert [each["error"] for each in one["clusters"]] == [None, "the moment is earlier than the first row"]
    assert [each["cluster"] for each in one["groups"]] == [PROD]
    choice = ask(pages, "/groups/g?at=1970-01-01T00:00:20")
    assert choice.status == "300 Multiple Choices"
    links = [link for link in Seen(choice.text).links if "cluster=" in link]
    assert links == [f"/groups/g?cluster={name}&at={quote('1970-01-01T00:00:20')}" for name in (PROD, US)]
    assert all(ask(pages, link).status == "200 OK" for link in links)
    assert ask(pages, f"/groups/g?at={FIRST}").status == "200 OK", "only one of them existed at this time"


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if "\ud800" not in name])
def test_hostile_names_stay_text_on_every_page(tmp_path: Path, name: str) -> None:
    hostile = member(f"m{name}", {f"topic{name}": [0]}, [f"topic{name}"])
    write_life(tmp_path, [written(10, 1, [hostile]), written(20, 2, [member(name)])], name)
    pages = pages_of(tmp_path)
    address = group_address(name)
    for query in ({"at": "1970-01-01T00:00:20"}, {"from": "1", "to": "2"}, {"at": "1970-01-01T00:00"}):
        answer = ask(pages, parse_address(address).change(**query))
        assert answer.status == ("404 Not Found" if query.get("at", "").endswith("T00:00") else "200 OK")
        seen = Seen(answer.text)
        assert {*seen.elements} <= {*ALLOWED_ELEMENTS}
        assert not {"onerror", "onclick", "style"} & {*seen.attributes}
        assert all(link.startswith(("/", "#")) for link in seen.links)
    listed = Seen(ask(pages, "/?at=1970-01-01T00:00:20").text)
    assert {*listed.elements} <= {*ALLOWED_ELEMENTS}
    (link,) = [link for link in listed.links if link.startswith("/groups/") and "at=" in link]
    assert ask(pages, link).status == "200 OK"


def test_a_lone_surrogate_in_an_address_is_no_group(pages: Pages) -> None:
    assert ask(pages, parse_address(group_address("\ud800")).change(at=FIRST)).status == "404 Not Found"


@pytest.mark.parametrize("module", [parameters, views])
def test_the_examples_in_the_docstrings_are_correct(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
