"""The pages and the API of incidents, from the monitor state and from the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from deltalake import write_deltalake

from streaming.config.links import LinkSettings
from streaming.delta.incident_rows import incident_row
from streaming.delta.rows import arrow_table
from streaming.delta.stored import stored_rows
from streaming.delta.tables import INCIDENTS, PARTITIONED_BY
from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.incidents.incident import MAX_EVIDENCE, Incident, make_incident_id
from streaming.evaluation.incidents.story import story
from streaming.evaluation.lag.lag import ClusterSample
from streaming.page.addresses import group_address
from streaming.page.application import Pages
from streaming.page.rendering import utc_text
from streaming.past.moments import parse_moment
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, HOSTILE_NAMES, NOW_MS, Scene, scene
from tests.streaming.page.test_application import ALLOWED_ELEMENTS, Seen, ask, cluster_view, pages_of
from tests.streaming.situations import GROUP, SITUATIONS, shown
from tests.streaming.situations import NOW_MS as SITUATION_MS

HOUR_MS = 3_600_000
OLD = NOW_MS - 30 * HOUR_MS


def incident_of(groups: Sequence[str], since_ms: int = OLD, end_ms: int | None = None, text: str = "storm") -> Incident:
    facts = [Evidence("condition", "rebalance_storm", one, text, since_ms, end_ms) for one in groups]
    return Incident(
        make_incident_id(CLUSTER, facts[0]), CLUSTER, since_ms, tuple(facts), tuple(sorted(groups)), (), end_ms, end_ms
    )


def write_rows(tables: Path, *incidents: Incident, at_ms: int = OLD) -> None:
    rows = [incident_row(at_ms, one, story(one, utc_text)) for one in incidents]
    path = str(tables / INCIDENTS.name)
    write_deltalake(path, arrow_table(INCIDENTS, rows), mode="append", partition_by=list(PARTITIONED_BY))


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    tables = tmp_path_factory.mktemp("tables")
    made = scene(tables)
    ended = incident_of(["nightly-batch"], end_ms=OLD + HOUR_MS)
    merged = replace(incident_of(["later"], since_ms=OLD + 1, end_ms=OLD + HOUR_MS), merged_into=ended.incident_id)
    write_rows(tables, replace(ended, end_ms=None, quiet_since_ms=None), at_ms=OLD)
    write_rows(tables, ended, merged, at_ms=OLD + HOUR_MS)
    return made


@pytest.fixture(scope="module")
def pages(page_scene: Scene) -> Pages:
    return pages_of(page_scene.monitor_state, page_scene.tables)


def test_the_list_has_open_incidents_first_and_then_those_of_the_last_days(pages: Pages) -> None:
    listed = ask(pages, "/api/v1/incidents").json()["incidents"]
    assert [one["is_open"] for one in listed] == sorted((one["is_open"] for one in listed), reverse=True)
    assert {tuple(one["groups"]) for one in listed if one["is_open"]} >= {("clickstream",)}
    assert [one["groups"] for one in listed if not one["is_open"]] == [["later"], ["nightly-batch"]]
    seen = Seen(ask(pages, "/incidents").text).text
    for one in listed:
        assert one["story"]["what_happened"] in seen


def test_a_link_from_an_alert_leads_to_the_open_incident_of_its_group(pages: Pages) -> None:
    """An alert knows its group, but not the id of the incident."""
    answer = ask(pages, f"/incidents?group=clickstream&cluster={CLUSTER}")
    assert answer.status == "302 Found"
    seen = Seen(ask(pages, answer.headers["Location"]).text).text
    for word in ("clickstream", "Since when", "Who", "How bad", "What to do now", "flapping member", "still active"):
        assert word in seen


def test_without_an_open_incident_the_link_of_an_alert_shows_the_last_ones_and_the_group(pages: Pages) -> None:
    answer = ask(pages, f"/incidents?group=nightly-batch&cluster={CLUSTER}")
    seen = Seen(answer.text)
    assert answer.status == "200 OK"
    assert "nightly-batch: storm" in seen.text
    assert "/groups/nightly-batch?cluster=prod-eu" in seen.links


def test_the_link_of_an_alert_without_an_incident_leads_to_the_timeline_of_the_group(pages: Pages) -> None:
    """Drift, offsets that expire and other facts form no incident, so the link of their alerts led nowhere."""
    empty = Seen(ask(pages, f"/incidents?group=audit-export&cluster={CLUSTER}").text)
    assert "No incident of this group in the last seven days. Alerts about drift," in empty.text
    assert f"/groups/audit-export?cluster={CLUSTER}#timeline" in empty.links
    assert 'id="timeline"' in ask(pages, "/groups/audit-export").text
    (past,) = [link for link in empty.links if "at=" in link]
    assert past.startswith(f"/groups/audit-export?cluster={CLUSTER}&at="), "a deleted group has no page now"


@pytest.mark.parametrize(("hours_ago", "is_listed"), [(6 * 24 + 23, True), (7 * 24 + 1, False)])
@pytest.mark.parametrize("hour", [1, 13, 23])
def test_the_last_seven_days_end_now_at_any_hour(tmp_path: Path, hour: int, hours_ago: int, *, is_listed: bool) -> None:
    """At 01:00, an incident that ended 6 days and 2 hours before was missing, because its date was too old."""
    now_ms = NOW_MS // (24 * HOUR_MS) * 24 * HOUR_MS + hour * HOUR_MS
    ended_ms = now_ms - hours_ago * HOUR_MS
    write_rows(tmp_path, incident_of(["orders"], ended_ms - HOUR_MS, ended_ms), at_ms=ended_ms)
    listed = ask(pages_of(MonitorState(), tmp_path, now_ms), "/api/v1/incidents").json()["incidents"]
    assert [one["groups"] for one in listed] == [["orders"]] * is_listed


def test_an_ended_incident_and_a_merged_one_are_found_in_the_table(pages: Pages) -> None:
    listed = {one["groups"][0]: one for one in ask(pages, "/api/v1/incidents").json()["incidents"]}
    ended, merged = listed["nightly-batch"], listed["later"]
    page = Seen(ask(pages, f"/incidents/{ended['incident_id']}").text).text
    assert "The incident ended at 2026-11-20" in page
    assert merged["merged_into"] == ended["incident_id"]
    page_of_merged = Seen(ask(pages, f"/incidents/{merged['incident_id']}").text)
    assert f"/incidents/{ended['incident_id']}" in page_of_merged.links


@pytest.mark.parametrize(("age_ms", "text"), [(0, "203 open."), (HOUR_MS, "0 open. 203 open when the cluster was")])
def test_the_number_of_open_incidents_counts_those_that_are_not_listed(tmp_path: Path, age_ms: int, text: str) -> None:
    """Storms of 203 groups without a common cause are 203 incidents. The list has 200 lines, and it showed 200 open."""
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True, was_ready=True)
    monitor_state.put_sample(ClusterSample(NOW_MS), None)
    monitor_state.put_incidents(tuple(incident_of([f"g-{number:03}"]) for number in range(203)))
    seen = Seen(ask(pages_of(monitor_state, tmp_path, NOW_MS + age_ms), "/incidents").text).text
    assert text in seen
    assert "200 of 203 shown." in seen


def test_a_merged_incident_does_not_show_that_its_facts_are_still_active(tmp_path: Path) -> None:
    """After the merge, the older incident has the facts. So this incident does not show when they end."""
    merged = replace(incident_of(["orders"]), end_ms=OLD + HOUR_MS, merged_into="0" * 12)
    write_rows(tmp_path, merged)
    address = f"/incidents/{merged.incident_id}"
    seen = Seen(ask(pages_of(MonitorState(), tmp_path), address).text).text
    assert "active when the incidents merged" in seen
    assert "still active" not in seen
    assert ask(pages_of(MonitorState(), tmp_path), f"/api/v1{address}").json()["active_groups"] == []


def test_table_page_and_api_show_the_same_incident(pages: Pages, page_scene: Scene) -> None:
    """One truth: the sentences are computed in one place."""
    last = {row["incident_id"]: row for row in stored_rows(str(page_scene.tables), INCIDENTS)}
    for row in last.values():
        shown = ask(pages, f"/api/v1/incidents/{row['incident_id']}").json()
        assert list(shown["story"].values()) == row["story"]
        assert [shown[name] for name in ("cause", "runbook_section", "groups", "group_count", "merged_into")] == [
            row[name] for name in ("cause", "runbook_section", "groups", "group_count", "merged_into")
        ]
        page = Seen(ask(pages, f"/incidents/{row['incident_id']}").text).text
        assert all(sentence in page for sentence in row["story"])


def test_group_page_and_overview_link_to_the_incident(pages: Pages) -> None:
    group = ask(pages, "/api/v1/groups/clickstream").json()
    address = f"/incidents/{group['incident_id']}"
    assert address in Seen(ask(pages, "/groups/clickstream").text).links
    assert any(link.startswith("/incidents/") for link in Seen(ask(pages, "/").text).links)
    assert ask(pages, "/api/v1/groups/audit-export").json()["incident_id"] is None


@pytest.mark.parametrize(
    ("incident_id", "why"),
    [
        ("0" * 12, "no such id"),
        ("'; DROP TABLE stored", "not an id, and no part of a query"),
        ("", "no id"),
        ("../groups/x", "a path"),
        ("%00", "a byte that no id has"),
    ],
)
def test_an_unknown_id_is_not_found(pages: Pages, incident_id: str, why: str) -> None:
    assert ask(pages, f"/incidents/{incident_id}").status == "404 Not Found", why
    assert ask(pages, f"/api/v1/incidents/{incident_id}").status == "404 Not Found", why


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_hostile_name_in_an_incident_is_only_text(tmp_path: Path, name: str) -> None:
    """Groups, hosts and topics are written by clients. The page with a hostile name has the elements of every page."""
    elements = []
    for index, group_id in enumerate((name, "plain")):
        fact = Evidence(
            "condition", "rebalance_storm", group_id, f"storm {group_id}", OLD, None, 3, False, (name,), (name,)
        )
        incident = Incident(make_incident_id(CLUSTER, fact), CLUSTER, OLD, (fact,), (group_id,))
        monitor_state = MonitorState()
        monitor_state.put_health(ready=True, was_ready=True)
        monitor_state.put_incidents((incident,))
        tables = tmp_path / str(index)
        write_rows(tables, incident)
        pages = pages_of(monitor_state, tables)
        page = ask(pages, f"/incidents/{incident.incident_id}")
        assert ask(pages, f"/incidents?{group_address(group_id).partition('?')[2]}").status == "200 OK"
        assert "<script" not in page.text
        assert set(Seen(page.text).elements) <= ALLOWED_ELEMENTS
        elements.append(Seen(page.text).elements)
        assert ask(pages, f"/api/v1/incidents/{incident.incident_id}").json()["evidence"][0]["group_id"] == group_id
    assert elements[0] == elements[1] or name != name.strip(), "a blank name has quotation marks"


def test_after_a_restart_the_table_shows_open_incidents_until_the_log_is_read(tmp_path: Path) -> None:
    """Somebody who was paged opens the link while the monitor is still starting."""
    incident = incident_of(["orders"])
    write_rows(tmp_path, incident)
    pages = pages_of(MonitorState(), tmp_path)
    assert "orders: storm" in Seen(ask(pages, f"/incidents/{incident.incident_id}").text).text
    assert ask(pages, "/incidents?group=orders").status == "302 Found"


def test_if_the_table_cannot_be_read_the_list_shows_the_reason_and_the_open_incidents(tmp_path: Path) -> None:
    monitor_state = MonitorState()
    monitor_state.put_incidents((incident_of(["orders"]),))
    seen = Seen(ask(pages_of(monitor_state, tmp_path / "none"), "/incidents").text).text
    assert "the table incidents cannot be read (NoTableError)" in seen
    assert "orders: storm" in seen


def test_if_the_table_cannot_be_read_it_is_unknown_whether_an_incident_exists(tmp_path: Path) -> None:
    """The storage did not answer, and the link of an alert showed `No such incident`, as if its rows were deleted."""
    pages = pages_of(MonitorState(), tmp_path / "none")
    answer, document = (ask(pages, f"{prefix}/incidents/{'0' * 12}") for prefix in ("", "/api/v1"))
    assert answer.status == document.status == "503 Service Unavailable"
    seen = Seen(answer.text).text
    assert "The table incidents cannot be read (NoTableError)" in seen
    assert "No such incident" not in seen
    assert document.json()["error"] == "the table incidents cannot be read (NoTableError)"
    assert ask(pages, "/incidents/no-id").status == "404 Not Found", "this text is no id"


@pytest.mark.parametrize("name", ["blocked", "no leader", "stale sample", "catching up"])
def test_if_the_lag_is_unknown_the_incident_shows_this(tmp_path: Path, name: str) -> None:
    """The page showed `no group is behind by more than its limit`, although the lag of the group was unknown."""
    monitor_state = shown(SITUATIONS.get(name, SITUATIONS["storm"])).monitor_state
    monitor_state.put_health(ready=name != "catching up", was_ready=name != "catching up")
    incident = incident_of([GROUP])
    monitor_state.put_incidents((incident,))
    pages = pages_of(monitor_state, tmp_path, SITUATION_MS)
    seen = Seen(ask(pages, f"/incidents/{incident.incident_id}").text).text
    assert "The monitor has seen no lost records and no lag above the limit. The lag is unknown." in seen


def test_each_affected_group_has_links_to_now_to_the_start_and_to_grafana(tmp_path: Path) -> None:
    """The page linked only to the present page of a group. If the group was deleted, the link led to a 404."""
    incident = incident_of(["a/b", "orders"], end_ms=OLD + HOUR_MS)
    write_rows(tmp_path, incident)
    views = [cluster_view(CLUSTER, MonitorState(), tmp_path)]
    pages = Pages(views, (), LinkSettings(grafana_url="https://grafana"))
    links = Seen(ask(pages, f"/incidents/{incident.incident_id}").text).links
    for group in ("a%2Fb", "orders"):
        assert f"/groups/{group}" in links
        (at_start,) = [link for link in links if link.startswith(f"/groups/{group}?at=")]
        assert parse_moment(parse_qs(urlsplit(at_start).query)["at"][0]) == OLD
        time_range = f"from={OLD - 600_000}&to={OLD + HOUR_MS + 600_000}"
        assert any(f"var-group={group}&{time_range}" in link for link in links)
    without_grafana = Seen(ask(pages_of(MonitorState(), tmp_path), f"/incidents/{incident.incident_id}").text)
    assert not any("/d/" in link for link in without_grafana.links)


@pytest.mark.parametrize(("parameter", "section"), [("groups_from", "groups"), ("evidence_from", "evidence")])
def test_all_groups_and_all_facts_of_an_incident_can_be_read(tmp_path: Path, parameter: str, section: str) -> None:
    """The page named three of 120 groups, and listed 100 facts. It had no link to the others."""
    incident = incident_of([f"g-{number:03}" for number in range(120)])
    write_rows(tmp_path, incident)
    pages, address = pages_of(MonitorState(), tmp_path), f"/incidents/{incident.incident_id}"
    assert f"{address}?{parameter}=50#{section}" in Seen(ask(pages, address).text).links
    last = Seen(ask(pages, f"{address}?{parameter}=100").text)
    assert "101 to 120 of 120" in last.text
    assert "/groups/g-119" in last.links


def test_a_group_whose_facts_are_not_listed_still_has_its_incident(tmp_path: Path) -> None:
    """An incident of 501 groups lists 500 facts. The alert of the other group leads to the incident."""
    groups = tuple(f"g-{number:03}" for number in range(MAX_EVIDENCE + 1))
    incident = replace(incident_of(groups[:-1]), groups=groups)
    made = scene(tmp_path)
    made.monitor_state.put_incidents((incident,))
    answer = ask(pages_of(made.monitor_state, tmp_path), f"/incidents?group={groups[-1]}")
    assert answer.headers["Location"] == f"/incidents/{incident.incident_id}"


@pytest.mark.parametrize("is_stale", [False, True])
def test_while_the_last_sample_is_too_old_no_page_and_no_document_shows_an_open_incident(
    tmp_path: Path, *, is_stale: bool
) -> None:
    """The brokers have not answered for six hours. The incident was open at the last sample."""
    incident = incident_of(["orders"])
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True, was_ready=True)
    monitor_state.put_sample(ClusterSample(NOW_MS - (6 * HOUR_MS if is_stale else 0)), None)
    monitor_state.put_incidents((incident,))
    write_rows(tmp_path, incident)
    pages = pages_of(monitor_state, tmp_path)
    address = f"/incidents/{incident.incident_id}"
    listed, shown = ask(pages, "/api/v1/incidents").json()["incidents"][0], ask(pages, f"/api/v1{address}").json()
    expected = (None, None) if is_stale else (True, ["orders"])
    for one in (listed, shown):
        assert (one["is_open"], one["active_groups"]) == expected
    for path in ("/", "/incidents", address):
        seen = Seen(ask(pages, path).text).text
        assert ("possibly ended" in seen) == is_stale, path
        assert ("still active" in seen) == (path == address and not is_stale)
    assert ask(pages, "/incidents?group=orders").headers["Location"] == address


def test_while_the_last_sample_is_too_old_no_page_shows_that_nothing_is_wrong(tmp_path: Path) -> None:
    """The brokers were unreachable for an hour. The page of a broken group showed `Nothing is wrong with this group`.

    The link to its incident was missing, and the overview showed `nothing` and `0 of 13 groups need attention`.
    """
    made = scene(tmp_path)
    [incident] = [one for one in made.monitor_state.view().incidents if "clickstream" in one.groups]
    pages = pages_of(made.monitor_state, tmp_path, NOW_MS + HOUR_MS)
    groups = ask(pages, "/api/v1/groups").json()["groups"]
    assert {one["troubles"][-1]["rule"] for one in groups} == {10}
    assert all("no_fresh_sample" in one["lag_unknown"] or one["state"] == "Unknown" for one in groups)
    seen, overview = Seen(ask(pages, "/groups/clickstream").text), Seen(ask(pages, "/").text)
    assert "Nothing is wrong" not in seen.text
    assert "lag and conditions unknown" in seen.text
    assert f"/incidents/{incident.incident_id}" in seen.links
    assert ask(pages, "/api/v1/groups/clickstream").json()["incident_id"] == incident.incident_id
    assert " nothing " not in overview.text
    assert "The state or the lag of" in overview.text


@pytest.mark.parametrize(("evidence", "is_open"), [("no_coordinator", True), ("rebalance_storm", None)])
def test_while_the_monitor_is_not_ready_only_a_missing_coordinator_is_known(
    tmp_path: Path, evidence: str, is_open: bool | None
) -> None:
    """A partition of `__consumer_offsets` has no leader. The monitor takes samples, but receives no records."""
    incident = incident_of(["orders"])
    incident = replace(incident, evidence=tuple(replace(one, name=evidence) for one in incident.evidence))
    monitor_state = MonitorState()
    monitor_state.put_health(ready=False, was_ready=True)
    monitor_state.put_sample(ClusterSample(NOW_MS), None)
    monitor_state.put_incidents((incident,))
    pages = pages_of(monitor_state, tmp_path)
    [listed] = ask(pages, "/api/v1/incidents").json()["incidents"]
    assert listed["is_open"] is is_open
    assert ("possibly ended" in Seen(ask(pages, f"/incidents/{incident.incident_id}").text).text) == (is_open is None)


def test_an_unknown_cluster_is_not_found(pages: Pages) -> None:
    assert ask(pages, "/incidents?cluster=none").status == "404 Not Found"
    assert ask(pages, "/api/v1/incidents?cluster=none").status == "404 Not Found"


def test_an_open_incident_shows_the_lag_of_its_group_that_is_most_behind(pages: Pages, page_scene: Scene) -> None:
    """A reader of the picture of a hot partition did not find out how many records wait."""
    groups = ask(pages, "/api/v1/groups").json()["groups"]
    behind = {one["group_id"]: one for one in groups if one["lag"] is not None and one["lag_seconds"]}
    most = max(behind, key=lambda group_id: behind[group_id]["lag_seconds"])
    incident = incident_of(sorted(behind))
    page_scene.monitor_state.put_incidents((incident,))
    seen = Seen(ask(pages, f"/incidents/{incident.incident_id}").text).text
    assert len(behind) > 1
    assert f"the group {most} had the largest lag in seconds: {behind[most]['lag']:,} record" in seen
