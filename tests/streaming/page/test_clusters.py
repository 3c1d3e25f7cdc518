"""Pages and JSON of several clusters: rules 1 to 3 of clusters.py, and 5 of application.py."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from streaming.evaluation.lag.lag import ClusterSample, LogEnds
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.page.addresses import GROUP_API, group_address
from streaming.page.application import Pages
from streaming.page.clusters import ClusterView
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import HOSTILE_NAMES, NOW_MS, STRATEGIES, Scene, scene
from tests.streaming.page.test_application import OURS, Seen, ask, cluster_view, pages_of

EU, US, AWAY = "eu", "us/<b>east", "away"


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("tables"))


def monitor_state_of(shown: Scene, *group_ids: str, ready: bool = True) -> MonitorState:
    """A cluster that has some of the scene's groups, and was read to its end."""
    view, monitor_state = shown.monitor_state.view(), MonitorState()
    monitor_state.put_batch([view.groups[group_id] for group_id in group_ids], [])
    assert view.sample is not None
    assert view.lag is not None
    of_groups = pc.is_in(view.lag.partitions["group_id"], pa.array(group_ids))
    monitor_state.put_sample(view.sample, LagEvaluation(view.lag.report, view.lag.partitions.filter(of_groups)))
    monitor_state.put_health(ready=ready, was_ready=True)
    return monitor_state


@pytest.fixture(scope="module")
def pages(shown: Scene) -> Pages:
    """Two clusters that both have `billing`, and one whose broker never answered."""
    registries = {
        EU: monitor_state_of(shown, "billing", "ledger"),
        US: monitor_state_of(shown, "billing", "fraud-detection"),
    }
    clusters = [cluster_view(name, monitor_state, shown.tables) for name, monitor_state in registries.items()]
    return Pages([*clusters, cluster_view(AWAY, MonitorState(), shown.tables)], STRATEGIES)


def links(page: str) -> list[str]:
    return [link for link in Seen(page).links if link.startswith("/groups/")]


def test_groups_of_all_clusters_stand_in_one_list_by_trouble_each_with_its_cluster(pages: Pages) -> None:
    page = ask(pages, "/").text
    assert links(page) == [
        group_address(group_id, cluster=cluster)
        for group_id, cluster in (("fraud-detection", US), ("ledger", EU), ("billing", EU), ("billing", US))
    ]
    seen = Seen(page)
    assert "Groups of away are not shown yet. The brokers have not answered so far" in seen.text
    assert set(seen.elements) <= OURS, "a cluster's name is text, too"
    assert "/?cluster=us%2F%3Cb%3Eeast" in seen.links


def test_a_cluster_is_looked_at_alone_and_the_search_stays_in_it(pages: Pages) -> None:
    page = ask(pages, "/?cluster=eu").text
    assert links(page) == [group_address(group_id, cluster=EU) for group_id in ("ledger", "billing")]
    assert '<input type="hidden" name="cluster" value="eu">' in page
    assert "not shown yet" not in page, "nothing is said of clusters that were not asked for"
    assert links(ask(pages, "/?cluster=eu&q=BILL").text) == [group_address("billing", cluster=EU)]


def test_a_group_that_one_cluster_has_needs_no_cluster_in_its_address(pages: Pages) -> None:
    """Rule 2: addresses in runbooks and alerts of a monitor that had one cluster lead where they led."""
    assert "30 expected 15" in Seen(ask(pages, "/groups/fraud-detection").text).text
    assert ask(pages, f"{GROUP_API}fraud-detection").json()["cluster"] == US


def test_a_group_that_two_clusters_have_is_nobodys_until_one_is_named(pages: Pages) -> None:
    """Rule 3: a guess would show a stranger's members to whoever is on call."""
    page, document = ask(pages, "/groups/billing"), ask(pages, f"{GROUP_API}billing")
    assert (page.status, document.status) == ("300 Multiple Choices", "300 Multiple Choices")
    assert links(page.text) == [group_address("billing", cluster=name) for name in (EU, US)]
    assert [one["cluster"] for one in document.json()["clusters"]] == [EU, US]
    for name in (EU, US):
        named = ask(pages, group_address("billing", GROUP_API, name))
        assert (named.status, named.json()["cluster"]) == ("200 OK", name)
        assert ask(pages, group_address("billing", cluster=name)).status == "200 OK"


def test_a_group_nobody_has_may_be_in_a_cluster_that_was_not_read_yet(pages: Pages, shown: Scene) -> None:
    """Rule 3: "no such group" would be a guess."""
    assert ask(pages, f"{GROUP_API}no-such").status == "503 Service Unavailable"
    assert ask(pages, f"{GROUP_API}no-such?cluster=eu").status == "404 Not Found"
    all_read = Pages([cluster_view(name, monitor_state_of(shown, "billing"), shown.tables) for name in (EU, US)], ())
    assert ask(all_read, f"{GROUP_API}no-such").status == "404 Not Found"
    assert ask(all_read, "/groups/no-such").status == "404 Not Found"


@pytest.mark.parametrize("address", ["/", "/groups/billing", "/api/v1/groups", f"{GROUP_API}billing", "/-/ready"])
def test_a_cluster_that_is_none_of_ours_is_not_found(pages: Pages, shown: Scene, address: str) -> None:
    """Rule 1, with one cluster as with several: another one's groups are no answer."""
    for some in (pages, pages_of(shown.monitor_state, shown.tables)):
        assert ask(some, f"{address}?cluster=nowhere").status == "404 Not Found"


def test_the_api_says_of_each_group_and_of_each_cluster_which_it_is(pages: Pages) -> None:
    document = ask(pages, "/api/v1/groups").json()
    assert [(one["cluster"], one["phase"]) for one in document["clusters"]] == [
        (EU, "ready"), (US, "ready"), (AWAY, "catching_up")
    ]  # fmt: skip
    assert sorted((one["cluster"], one["group_id"]) for one in document["groups"]) == [
        (EU, "billing"), (EU, "ledger"), (US, "billing"), (US, "fraud-detection")
    ]  # fmt: skip
    assert "phase" not in document, "of several there is no one phase"
    alone = ask(pages, "/api/v1/groups?cluster=eu").json()
    assert (alone["cluster"], alone["phase"], alone["total_groups"]) == (EU, "ready", 2)
    assert ask(pages, "/api/v1/groups?cluster=away").status == "503 Service Unavailable"


def test_one_ready_cluster_is_enough_for_the_port_and_each_is_asked_by_name(shown: Scene, tmp_path: Path) -> None:
    """A probe that failed for one cluster's sake would take the others' pages away, too."""
    monitor_state = monitor_state_of(shown, "billing")
    pages = Pages([cluster_view(EU, monitor_state, tmp_path), cluster_view(AWAY, MonitorState(), tmp_path)], ())
    answer = ask(pages, "/-/ready")
    assert (answer.status, answer.body) == ("200 OK", b"1 of 2 clusters are ready\n"), "numbers: everybody may ask"
    assert ask(pages, "/-/ready?cluster=eu").status == "200 OK"
    assert ask(pages, "/-/ready?cluster=away").body == b"Not ready: catching up\n"
    monitor_state.put_health(ready=False)
    assert ask(pages, "/-/ready").status == "503 Service Unavailable"
    assert ask(pages, "/-/healthy").status == "200 OK"


def test_while_all_are_read_for_the_first_time_each_says_how_far_it_is(tmp_path: Path) -> None:
    behind = MonitorState()
    behind.put_sample(ClusterSample(NOW_MS, offsets_topic={0: LogEnds(1_000, 900)}, offsets_topic_partitions=1), None)
    pages = Pages([cluster_view(EU, behind, tmp_path), cluster_view(AWAY, MonitorState(), tmp_path)], ())
    seen = Seen(ask(pages, "/").text).text
    assert "eu : 900 records left" in seen
    assert "away : waiting for the brokers" in seen
    assert [one["records_behind"] for one in ask(pages, "/api/v1/groups").json()["clusters"]] == [900, None]


def test_what_rests_on_one_clusters_old_sample_is_not_shown_and_the_others_is(shown: Scene) -> None:
    """The lag of a cluster out of touch is unknown; that of its neighbour is not."""
    old = cluster_view(EU, monitor_state_of(shown, "billing", ready=False), shown.tables, NOW_MS + 3_600_000)
    pages = Pages([old, cluster_view(US, monitor_state_of(shown, "billing"), shown.tables)], ())
    groups = {one["cluster"]: one["lag"] for one in ask(pages, "/api/v1/groups").json()["groups"]}
    assert groups[EU] is None
    assert groups[US] is not None
    assert "The last sample of the brokers of eu is 1 h 2 s old" in Seen(ask(pages, "/").text).text


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_a_cluster_of_a_hostile_name_is_reached_by_its_links(shown: Scene, tmp_path: Path, name: str) -> None:
    """Whoever writes the configuration may choose any name; a link must lead back to it."""
    pages = Pages([_cluster(name, shown, tmp_path), _cluster("other", shown, tmp_path)], STRATEGIES)
    seen = Seen(ask(pages, "/").text)
    assert set(seen.elements) <= OURS
    for link in (one for one in seen.links if "cluster=" in one and "other" not in one):
        assert ask(pages, link).status == "200 OK"
    document = ask(pages, group_address("billing", GROUP_API, name)).json()
    assert document["cluster"] == name
    assert json.dumps(document)


def _cluster(name: str, shown: Scene, tables: Path) -> ClusterView:
    return cluster_view(name, monitor_state_of(shown, "billing"), tables)
