"""Tests of pages and JSON with several clusters: rules 1 to 3 of clusters.py, and rule 5 of application.py."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streaming.config.settings import ADMIN_API_SOURCE
from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.page.addresses import GROUP_API, group_address
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import HOSTILE_NAMES, NOW_MS, STRATEGIES, Scene, scene
from tests.streaming.page.test_application import ALLOWED_ELEMENTS, Seen, ask, cluster_view, pages_of

EU, US, AWAY = "eu", "us/<b>east", "away"


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("tables"))


def monitor_state_of(page_scene: Scene, *group_ids: str, ready: bool = True, was_ready: bool = True) -> MonitorState:
    """Return the state of a cluster that has some groups of the scene. By default, it was read to its end."""
    view, monitor_state = page_scene.monitor_state.view(), MonitorState()
    monitor_state.put_batch([view.groups[group_id] for group_id in group_ids], [])
    assert view.sample is not None
    assert view.lag is not None
    of_groups = pc.is_in(view.lag.partitions["group_id"], pa.array(group_ids))
    monitor_state.put_sample(view.sample, LagEvaluation(view.lag.report, view.lag.partitions.filter(of_groups)))
    monitor_state.put_health(ready=ready, was_ready=was_ready)
    return monitor_state


@pytest.fixture(scope="module")
def pages(page_scene: Scene) -> Pages:
    """Return pages of two clusters with the group `billing`, and of one cluster whose brokers never answered."""
    states_by_cluster = {
        EU: monitor_state_of(page_scene, "billing", "ledger"),
        US: monitor_state_of(page_scene, "billing", "fraud-detection"),
    }
    clusters = [
        cluster_view(name, monitor_state, page_scene.tables) for name, monitor_state in states_by_cluster.items()
    ]
    return Pages([*clusters, cluster_view(AWAY, MonitorState(), page_scene.tables)], STRATEGIES)


def links(page: str) -> list[str]:
    return [link for link in Seen(page).links if link.startswith("/groups/")]


def test_groups_of_all_clusters_are_in_one_list_sorted_by_trouble(pages: Pages) -> None:
    page = ask(pages, "/").text
    assert links(page) == [
        group_address(group_id, cluster=cluster)
        for group_id, cluster in (("fraud-detection", US), ("ledger", EU), ("billing", EU), ("billing", US))
    ]
    seen = Seen(page)
    assert "This page does not show the groups of away yet. The brokers have not answered so far" in seen.text
    assert set(seen.elements) <= ALLOWED_ELEMENTS, "the name of a cluster is also shown only as text"
    assert "/?cluster=us%2F%3Cb%3Eeast" in seen.links


def test_a_page_of_one_cluster_searches_only_in_this_cluster(pages: Pages) -> None:
    page = ask(pages, "/?cluster=eu&find=1").text
    assert links(page) == [group_address(group_id, cluster=EU) for group_id in ("ledger", "billing")]
    assert '<input type="hidden" name="cluster" value="eu">' in page
    assert "does not show the groups" not in page, "the page mentions no other cluster"
    assert links(ask(pages, "/?cluster=eu&q=BILL").text) == [group_address("billing", cluster=EU)]


def test_a_group_of_only_one_cluster_needs_no_cluster_in_its_address(pages: Pages) -> None:
    """Rule 2: addresses in runbooks and alerts stay valid after a second cluster is added."""
    assert "30 expected 15" in Seen(ask(pages, "/groups/fraud-detection").text).text
    assert ask(pages, f"{GROUP_API}fraud-detection").json()["cluster"] == US


def test_for_a_group_of_two_clusters_the_page_asks_which_cluster(pages: Pages) -> None:
    """Rule 3: a guess could show members of the wrong cluster to the on-call engineer."""
    page, document = ask(pages, "/groups/billing"), ask(pages, f"{GROUP_API}billing")
    assert (page.status, document.status) == ("300 Multiple Choices", "300 Multiple Choices")
    choices = [link for link in links(page.text) if "cluster=" in link]
    assert choices == [group_address("billing", cluster=name) for name in (EU, US)]
    assert [one["cluster"] for one in document.json()["clusters"]] == [EU, US]
    for name in (EU, US):
        named = ask(pages, group_address("billing", GROUP_API, name))
        assert (named.status, named.json()["cluster"]) == ("200 OK", name)
        assert ask(pages, group_address("billing", cluster=name)).status == "200 OK"


def test_an_unknown_group_may_be_in_a_cluster_that_is_not_read_yet(pages: Pages, page_scene: Scene) -> None:
    """Rule 3: the response "no such group" would be a guess."""
    assert ask(pages, f"{GROUP_API}no-such").status == "503 Service Unavailable"
    assert ask(pages, f"{GROUP_API}no-such?cluster=eu").status == "404 Not Found"
    all_read = Pages(
        [cluster_view(name, monitor_state_of(page_scene, "billing"), page_scene.tables) for name in (EU, US)], ()
    )
    assert ask(all_read, f"{GROUP_API}no-such").status == "404 Not Found"
    assert ask(all_read, "/groups/no-such").status == "404 Not Found"


@pytest.mark.parametrize("address", ["/groups/billing", f"{GROUP_API}billing", "/topics/orders", "/hosts/10.0.0.1"])
def test_the_first_records_of_a_group_are_not_shown_as_its_state(page_scene: Scene, address: str) -> None:
    """Rule 3: while the monitor reads the log, it knows an old generation of the group. That is not the present."""
    reading = monitor_state_of(page_scene, "billing", ready=False, was_ready=False)
    answer = ask(pages_of(reading, page_scene.tables), address)
    assert "30 expected" not in answer.text
    assert answer.status.startswith("503") or "Catching up" in Seen(answer.text).text


@pytest.mark.parametrize("address", ["/", "/groups/billing", "/api/v1/groups", f"{GROUP_API}billing", "/-/ready"])
def test_an_unknown_cluster_is_not_found(pages: Pages, page_scene: Scene, address: str) -> None:
    """Rule 1, with one and with several clusters. Groups of a different cluster must not be returned."""
    for some_pages in (pages, pages_of(page_scene.monitor_state, page_scene.tables)):
        assert ask(some_pages, f"{address}?cluster=nowhere").status == "404 Not Found"


def test_the_api_names_the_cluster_of_each_group(pages: Pages) -> None:
    document = ask(pages, "/api/v1/groups").json()
    assert [(one["cluster"], one["phase"]) for one in document["clusters"]] == [
        (EU, "ready"), (US, "ready"), (AWAY, "catching_up")
    ]  # fmt: skip
    assert sorted((one["cluster"], one["group_id"]) for one in document["groups"]) == [
        (EU, "billing"), (EU, "ledger"), (US, "billing"), (US, "fraud-detection")
    ]  # fmt: skip
    assert "phase" not in document, "several clusters have no common phase"
    alone = ask(pages, "/api/v1/groups?cluster=eu").json()
    assert (alone["cluster"], alone["phase"], alone["total_groups"]) == (EU, "ready", 2)
    assert ask(pages, "/api/v1/groups?cluster=away").status == "503 Service Unavailable"


def test_in_the_polling_mode_no_text_names_the_topic_that_the_monitor_does_not_read(tmp_path: Path) -> None:
    """An operator whose cluster hides `__consumer_offsets` searched for a permission that this mode does not need."""
    monitor_state = MonitorState()
    monitor_state.put_health(source=ADMIN_API_SOURCE)
    pages = Pages([cluster_view(AWAY, monitor_state, tmp_path)], ())
    assert ask(pages, "/-/ready").body == b"Not ready: the monitor has not polled all groups since its start\n"
    assert "__consumer_offsets" not in Seen(ask(pages, "/").text).text
    monitor_state.put_health(was_ready=True)
    monitor_state.put_sample(ClusterSample(NOW_MS), None)
    assert b"has not polled all groups" in ask(pages, "/-/ready").body
    assert "__consumer_offsets" not in Seen(ask(pages, "/").text).text


def test_the_port_is_ready_if_one_cluster_is_ready(page_scene: Scene, tmp_path: Path) -> None:
    """If the probe failed because of one cluster, the pages of the other clusters would also be unreachable."""
    monitor_state = monitor_state_of(page_scene, "billing")
    pages = Pages([cluster_view(EU, monitor_state, tmp_path), cluster_view(AWAY, MonitorState(), tmp_path)], ())
    answer = ask(pages, "/-/ready")
    assert (answer.status, answer.body) == ("200 OK", b"1 of 2 clusters are ready\n"), (
        "only numbers, because the probe needs no password"
    )
    assert ask(pages, "/-/ready?cluster=eu").status == "200 OK"
    assert (
        ask(pages, "/-/ready?cluster=away").body
        == b"Not ready: the monitor is still reading __consumer_offsets after its start\n"
    )
    monitor_state.put_health(ready=False)
    assert ask(pages, "/-/ready").status == "503 Service Unavailable"
    assert ask(pages, "/-/healthy").status == "200 OK"


def test_while_all_clusters_are_read_for_the_first_time_each_shows_its_progress(tmp_path: Path) -> None:
    behind = MonitorState()
    behind.put_sample(ClusterSample(NOW_MS, offsets_topic={0: LogEnds(1_000, 900)}, offsets_topic_partitions=1), None)
    pages = Pages([cluster_view(EU, behind, tmp_path), cluster_view(AWAY, MonitorState(), tmp_path)], ())
    seen = Seen(ask(pages, "/").text).text
    assert "eu : 900 records still to read" in seen
    assert "away : waiting for the brokers" in seen
    assert [one["records_behind"] for one in ask(pages, "/api/v1/groups").json()["clusters"]] == [900, None]


def test_an_old_sample_of_one_cluster_does_not_affect_the_others(page_scene: Scene) -> None:
    """The lag of the cluster with the old sample is unknown. The lag of the other cluster is known."""
    old = cluster_view(EU, monitor_state_of(page_scene, "billing", ready=False), page_scene.tables, NOW_MS + 3_600_000)
    pages = Pages([old, cluster_view(US, monitor_state_of(page_scene, "billing"), page_scene.tables)], ())
    groups = {one["cluster"]: one["lag"] for one in ask(pages, "/api/v1/groups").json()["groups"]}
    assert groups[EU] is None
    assert groups[US] is not None
    assert "The last sample of the brokers of eu is 1 h 2 s old" in Seen(ask(pages, "/").text).text


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_the_links_of_a_cluster_with_a_hostile_name_work(page_scene: Scene, tmp_path: Path, name: str) -> None:
    """The configuration may contain any cluster name, and its links must work."""
    pages = Pages([_cluster(name, page_scene, tmp_path), _cluster("other", page_scene, tmp_path)], STRATEGIES)
    seen = Seen(ask(pages, "/").text)
    assert set(seen.elements) <= ALLOWED_ELEMENTS
    for link in (one for one in seen.links if "cluster=" in one and "other" not in one):
        assert ask(pages, link).status == "200 OK"
    document = ask(pages, group_address("billing", GROUP_API, name)).json()
    assert document["cluster"] == name
    assert json.dumps(document)


def _cluster(name: str, page_scene: Scene, tables: Path) -> ClusterView:
    return cluster_view(name, monitor_state_of(page_scene, "billing"), tables)
