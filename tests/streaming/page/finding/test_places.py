"""Tests of the pages of topics and client hosts, and of the links to them, with the groups of `scene`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.events import SHARE, STREAMS, GroupEvent, TopicMetadata, TopicsSampled
from streaming.page.addresses import host_address, topic_address
from streaming.page.application import Pages
from streaming.page.finding.host import host_detail
from streaming.page.finding.topic import topic_detail
from streaming.page.page_input import WatchedCluster
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import current, epoch, formed, joined, modern_member, target, target_epoch
from tests.streaming.page.scene import (
    CLUSTER,
    HOSTILE_NAMES,
    NOW_MS,
    STRATEGIES,
    TOPICS,
    Member,
    Scene,
    generation,
    record_of,
    scene,
)
from tests.streaming.page.test_application import ALLOWED_ELEMENTS, STALE_AFTER_MS, Seen, ask, cluster_view, pages_of
from tests.streaming.situations import NOW_MS as SAMPLED_MS
from tests.streaming.situations import Situation, shown

NAMED = TopicsSampled({"orders": TopicMetadata(2, 0, topic_id="id")})
HOT = TopicLoad("orders", 12, 1_200.0, 3, 700.0, 0.58, 7.0)


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    page_scene = scene(tmp_path_factory.mktemp("tables"))
    view = page_scene.monitor_state.view()
    assert view.sample is not None
    assert view.lag is not None
    page_scene.monitor_state.put_sample(view.sample, replace(view.lag, topic_loads={"orders": HOT}))
    return page_scene


@pytest.fixture(scope="module")
def pages(page_scene: Scene) -> Pages:
    return pages_of(page_scene.monitor_state, page_scene.tables)


def _watched(page_scene: Scene, now_ms: int = NOW_MS) -> WatchedCluster:
    return WatchedCluster(CLUSTER, page_scene.monitor_state.view(), now_ms, STALE_AFTER_MS)


def test_the_page_of_a_topic_answers_who_reads_it_who_owns_what_and_where_it_is_hot(pages: Pages) -> None:
    """Incident: one key gets most records. The producer's team asks which groups suffer and which partition it is."""
    seen = Seen(ask(pages, "/topics/orders").text)
    assert "hottest partition 3 700/s, 58 % of the new records, 7.0 times the mean" in seen.text
    groups = [link for link in seen.links if link.startswith("/groups/")]
    assert groups == [f"/groups/{name}" for name in ("fraud-detection", "search-index", "reporting", "billing")]
    assert "3 hot 10/s 6,200 fraud-detection : fraud /10.4.7.97" in seen.text
    assert "/hosts/10.4.7.97" in seen.links


def test_a_topic_that_nobody_reads_has_partitions_but_no_groups(page_scene: Scene) -> None:
    """The sample knows the topics of the groups. A topic without groups is in it until the groups are forgotten."""
    only_sample = MonitorState()
    sample = page_scene.monitor_state.view().sample
    assert sample is not None
    only_sample.put_sample(sample, None)
    only_sample.put_health(ready=True, was_ready=True)
    detail = topic_detail(WatchedCluster(CLUSTER, only_sample.view(), NOW_MS, STALE_AFTER_MS), "orders")
    assert detail is not None
    assert (detail.groups, detail.partition_count, len(detail.partitions)) == ((), 12, 12)


def test_without_a_fresh_sample_the_owners_are_known_and_the_rates_are_unknown(page_scene: Scene) -> None:
    detail = topic_detail(_watched(page_scene, NOW_MS + 3_600_000), "orders")
    assert detail is not None
    assert (detail.partition_count, detail.load, len(detail.partitions)) == (None, None, 12)
    assert {(one.end_offset, one.produced_records_per_second) for one in detail.partitions} == {(None, None)}
    assert {one.lag for one in detail.groups} == {None}
    assert "fraud-detection" in {owner.group_id for one in detail.partitions for owner in one.owners if owner.member}


def test_every_partition_of_a_topic_has_its_owner_of_each_group(page_scene: Scene) -> None:
    """The owners on the page of the topic are those of the group's report."""
    reports = _watched(page_scene).reports
    for topic, count in TOPICS.items():
        detail = topic_detail(_watched(page_scene), topic)
        assert detail is not None
        assert [one.partition for one in detail.partitions] == list(range(count))
        shown = {
            (owner.group_id, one.partition): owner.member
            for one in detail.partitions
            for owner in one.owners
            if owner.member
        }
        assert shown == {
            (name, number): member
            for name, report in reports.items()
            for (of_topic, number), member in report.members.owners.items()
            if of_topic == topic
        }


def shown_group(*events: GroupEvent) -> MonitorState:
    """Return the state with one group, which has a committed offset of the topic `orders` with two partitions."""
    return shown(Situation("", events, {("orders", 0): 4}, topics={"orders": 2})).monitor_state


def owners_of(*events: GroupEvent) -> list[list[tuple[str | None, int]]]:
    """Return the owners of each partition in the group: their member id (None if not exactly one) and their number."""
    detail = topic_detail(WatchedCluster(CLUSTER, shown_group(*events).view(), SAMPLED_MS, STALE_AFTER_MS), "orders")
    assert detail is not None
    return [[(one.member and one.member.member_id, one.members) for one in row.owners] for row in detail.partitions]


def test_the_owner_in_a_group_is_unknown_and_not_missing_if_the_group_hides_its_owners() -> None:
    """KIP-1071: the records contain tasks. Before, the page showed "no owner" for every partition.

    If the metadata of a member are missing, the state of the group is unknown, and the member can own partitions.
    """
    assert owners_of(
        *(joined(0, member=modern_member(()), group_type=STREAMS), epoch(1, group_type=STREAMS)),
        *(target(2, held=(), group_type=STREAMS), target_epoch(3, group_type=STREAMS)),
        current(4, held=(), group_type=STREAMS),
    ) == [[], []]
    known = [*formed(0), target(5, held=(("id", (0,)),)), current(6, held=(("id", (0,)),))]
    assert owners_of(*known, NAMED) == [[("m", 1)], [(None, 0)]]
    assert owners_of(*known, target(7, "n", ()), NAMED) == [[("m", 1)], []]


SHARED = (
    *formed(0, group_type=SHARE),
    *(joined(5, "n", group_type=SHARE), epoch(6, 4, SHARE), target(7, "n", (("id", (1,)),), SHARE)),
    *(target_epoch(8, 4, SHARE), current(9, "n", (("id", (1,)),), 4, group_type=SHARE), NAMED),
)


def test_all_members_of_a_share_group_that_read_a_partition_are_its_owners(tmp_path: Path) -> None:
    """KIP-932: before, the page named only the last member, as if it were the only owner."""
    assert owners_of(*SHARED) == [[("m", 1)], [(None, 2)]]
    page = Seen(ask(pages_of(shown_group(*SHARED), tmp_path), "/topics/orders").text)
    assert "g : 2 members" in page.text


def test_the_page_of_a_host_shows_what_it_owns_in_all_groups(pages: Pages) -> None:
    """Incident: a host is slow. The engineer asks which groups and partitions are affected."""
    text = Seen(ask(pages, "/hosts/10.4.7.97").text).text
    assert "groups 3 members 3 owned partitions 43 lag" in text
    assert "search-index clicks 0,3,6,9,12,15,18,21 orders 0,3,6,9 rewound" in text
    assert "orders 0-11 payments 0-11 shipments 0-5" in text


def test_the_lag_of_a_host_is_unknown_if_one_partition_has_no_lag(page_scene: Scene) -> None:
    """Rule 2: a sum without an unknown part would be too low."""
    detail = host_detail(_watched(page_scene, NOW_MS + 3_600_000), "10.4.7.97")
    assert detail is not None
    assert (detail.lag, detail.partitions) == (None, 43)
    known = host_detail(_watched(page_scene), "10.4.7.97")
    assert known is not None
    assert known.lag == sum(one.lag or 0 for one in known.members) > 0


@pytest.mark.parametrize(
    ("address", "status", "words"),
    [
        ("/topics/no-such", "404 Not Found", "No such topic"),
        ("/hosts/no-such", "404 Not Found", "No such host"),
        ("/topics/", "404 Not Found", "No such topic"),
        ("/hosts/%FF", "404 Not Found", "does not contain a valid name"),
        ("/topics/%ED%A0%80", "404 Not Found", "No such topic"),
        ("/topics/orders?cluster=no-such", "404 Not Found", "No such cluster"),
        ("/topics/orders?groups_from=x&partitions_from=-1", "200 OK", "Partitions"),
        ("/topics/orders?partitions_from=99999", "200 OK", "Partitions"),
        ("/hosts/%2F10.4.7.97", "404 Not Found", "No such host"),
    ],
)
def test_unusual_addresses_of_topics_and_hosts(pages: Pages, address: str, status: str, words: str) -> None:
    answer = ask(pages, address)
    assert answer.status == status
    assert words in Seen(answer.text).text


def _with(value: Any, **fields: object) -> Any:  # noqa: ANN401 - any struct or dataclass
    """Return a copy with other fields."""
    return msgspec.structs.replace(value, **fields) if isinstance(value, msgspec.Struct) else replace(value, **fields)


@pytest.mark.parametrize("name", [name for name in HOSTILE_NAMES if "\ud800" not in name])
def test_hostile_names_of_topics_and_hosts_are_shown_and_linked_only_as_text(tmp_path: Path, name: str) -> None:
    """Kafka restricts names of topics, but a subscription can contain any text, and a client host is not checked."""
    state, event = MonitorState(), generation(1, 10, "range", [Member("app-a", ["orders"])])
    record = record_of("g", [event])
    classic = record.snapshot.classic
    assert classic is not None
    (member,) = classic.members
    held = _with(member, client_host=name, subscription=_with(member.subscription, topics=(name,)))
    snapshot = _with(record.snapshot, classic=_with(classic, members=(held,)))
    state.put_batch([_with(record, snapshot=snapshot)], [])
    state.put_health(ready=True, was_ready=True)
    pages = pages_of(state, tmp_path)
    host = name.removeprefix("/")
    for address in (topic_address(name), host_address(host), "/groups/g", "/?sort=topic", "/?sort=host"):
        answer = ask(pages, address)
        seen = Seen(answer.text)
        assert answer.status == "200 OK"
        assert set(seen.elements) <= ALLOWED_ELEMENTS
        assert not [attribute for attribute in seen.attributes if attribute.startswith("on") or attribute == "style"]
        assert not [link for link in seen.links if not link.startswith(("/", "#"))]
    assert topic_address(name) in Seen(ask(pages, "/?sort=topic").text).links
    assert host_address(host) in Seen(ask(pages, "/groups/g").text).links


def test_a_topic_of_several_clusters_needs_a_cluster_and_keeps_the_page(page_scene: Scene) -> None:
    """The rules of `clusters` hold for topics and hosts as for groups."""
    empty = MonitorState()
    empty.put_health(ready=True, was_ready=True)
    views = [cluster_view(name, page_scene.monitor_state, page_scene.tables) for name in ("eu", "us")]
    pages = Pages([*views, cluster_view("empty", empty, page_scene.tables)], STRATEGIES)
    answer = ask(pages, "/topics/orders?partitions_from=0")
    assert answer.status == "300 Multiple Choices"
    links = [link for link in Seen(answer.text).links if "cluster=" in link]
    assert links == [f"/topics/orders?partitions_from=0&cluster={name}" for name in ("eu", "us")]
    seen = Seen(ask(pages, links[1]).text)
    assert all("cluster=us" in link for link in seen.links if link.startswith(("/groups/", "/hosts/")))
    assert ask(pages, "/hosts/10.4.7.97?cluster=empty").status == "404 Not Found"


def test_while_a_cluster_is_catching_up_a_topic_is_not_missing(page_scene: Scene) -> None:
    """Rule 3 of `clusters`: a group of the cluster possibly reads the topic."""
    views = [cluster_view("eu", page_scene.monitor_state, page_scene.tables)]
    pages = Pages([*views, cluster_view("starting", MonitorState(), page_scene.tables)], STRATEGIES)
    assert "Catching up" in ask(pages, "/topics/no-such").text
    assert ask(pages, "/topics/orders").status == "200 OK"
