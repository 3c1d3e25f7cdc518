"""Tests of the page of a group: all partitions by link, members, anchors, and links to other systems."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dashboards.alerts.links import panel_number
from dashboards.boards import GROUP_UID, RUNBOOK_UID, TOPIC_UID
from streaming.config.links import LinkSettings
from streaming.delta.tables import GROUP_CONDITIONS
from streaming.evaluation.assignment.leader import ASSIGNMENT, CLIENT_ID, UNKNOWN_LEADER, MemberLibrary, member_library
from streaming.evaluation.assignment.rule_words import RULE_WORDS
from streaming.evaluation.severity.trouble import Trouble
from streaming.events import TopicMetadata, TopicsSampled
from streaming.group.members import GroupMember
from streaming.page.application import Pages
from streaming.page.links import grafana, runbook
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import current, epoch, joined, modern_member, target, target_epoch
from tests.streaming.page.scene import (
    CLUSTER,
    STRATEGIES,
    TOPICS,
    Commits,
    Member,
    Scene,
    generation,
    record_of,
    scene,
    simulate,
)
from tests.streaming.page.test_application import Seen, ask, cluster_view, pages_of
from tests.streaming.situations import Situation, shown

ROOT = Path(__file__).parents[3]
GRAFANA, WIKI = "https://grafana.example.com", "https://wiki.example.com/runbook"


@pytest.fixture(scope="module")
def page_scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return scene(tmp_path_factory.mktemp("tables"))


def _pages(page_scene: Scene, **links: str) -> Pages:
    views = [cluster_view(CLUSTER, page_scene.monitor_state, page_scene.tables)]
    return Pages(views, STRATEGIES, LinkSettings(**links))


@pytest.fixture
def large_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pages:
    """Return the pages of a group with 130 partitions and 60 members. It has committed 120 of its partitions."""
    monkeypatch.setitem(TOPICS, "large", 120)
    monkeypatch.setitem(TOPICS, "new", 10)
    members = [Member(f"app{number:02}-a", ["large", "new"]) for number in range(60)]
    state = MonitorState()
    state.put_batch([record_of("g", [generation(1, 10, "roundrobin", members)])], [])
    sample, lag, _ = simulate({"g": Commits(["large"], behind=10)})
    state.put_sample(sample, lag)
    state.put_health(ready=True, was_ready=True)
    return pages_of(state, tmp_path)


def test_all_partitions_are_on_pages_of_50(large_group: Pages) -> None:
    """Before, the page showed the 20 partitions with the highest lag, and no page showed the others."""
    address, seen = "/groups/g", list[str]()
    while True:
        page = ask(large_group, address).text
        seen += re.findall(r"large</bdi></a>-(\d+)</th>", page)
        following = [link for link in Seen(page).links if "partitions_from" in link and "#lag" in link]
        later = [link for link in following if int(re.findall(r"from=(\d+)", link)[0]) >= len(seen)]
        if not later:
            break
        address = later[0].partition("#")[0]
    assert sorted(map(int, seen)) == list(range(120))
    assert "Owned partitions without a committed offset: new 0-9" in Seen(page).text


def test_all_members_are_on_pages_of_50_and_the_pages_of_partitions_stay(large_group: Pages) -> None:
    page = Seen(ask(large_group, "/groups/g?partitions_from=50&members_from=50").text)
    assert "51 to 60 of 60 members" in page.text
    assert "51 to 100 of 120 partitions" in page.text
    assert "/groups/g?partitions_from=50#members" in page.links


def test_every_section_has_an_anchor_that_a_user_can_copy(page_scene: Scene) -> None:
    page = ask(_pages(page_scene), "/groups/fraud-detection").text
    ids, links = re.findall(r'<h2 id="([^"]+)"', page), re.findall(r'href="#([^"]+)"', page)
    assert len(ids) == page.count("<h2") == len(set(ids))
    assert set(ids) <= set(links)


def test_members_show_client_host_timeouts_and_the_leader(page_scene: Scene) -> None:
    page = Seen(ask(_pages(page_scene), "/groups/fraud-detection").text)
    assert (
        "fraud@10.4.7.97 leader fraud /10.4.7.97 java 45 s 5 min 30 fraud@10.4.7.98 fraud /10.4.7.98 ? 45 s"
        in page.text
    )
    assert "/hosts/10.4.7.98" in page.links
    assert "/topics/orders" in page.links


@pytest.mark.parametrize("is_reconciled", [False, True])
def test_the_page_says_that_members_have_their_partitions_only_if_no_member_is_reconciling(
    tmp_path: Path, is_reconciled: bool
) -> None:
    """KIP-848: the verdict is about the targets. It was `match` while member n still waited for orders-1."""
    uniform = modern_member(server_assignor="uniform")
    targets = [target(3, "m", (("id", (0,)),)), target(4, "n", (("id", (1,)),)), target_epoch(5)]
    arrived = current(7, "n", (("id", (1,)),)) if is_reconciled else current(7, "n", (), 3, "UnreleasedPartitions")
    sampled = TopicsSampled({"orders": TopicMetadata(2, 0, topic_id="id")})
    events = [joined(0, "m", uniform), joined(1, "n", uniform), epoch(2), *targets, current(6, "m", (("id", (0,)),))]
    had = shown(Situation("KIP-848", [*events, arrived, sampled], topics={"orders": 2}))
    report = had.monitor_state.reports(had.monitor_state.view(), is_fresh=True)["g"]
    assert report.assignment.verdict == "match"
    page = Seen(ask(pages_of(had.monitor_state, tmp_path), "/groups/g").text).text
    assert ("Every member has the partitions that uniform assigns to it" in page) == is_reconciled


def _member(client_id: str, member_id: str = "m") -> GroupMember:
    return GroupMember(member_id, None, client_id, "/h", None, None, None, None, None, None, None, None)


LEADER = _member("app", "leader")


@pytest.mark.parametrize(
    ("member", "assigned_by", "expected", "why"),
    [
        (LEADER, "sarama", MemberLibrary("sarama", ASSIGNMENT), "rule 7"),
        (LEADER, UNKNOWN_LEADER, None, "rule 7: the library was not recognised"),
        (LEADER, "broker", None, "rule 7: the broker is not the library of a member"),
        (LEADER, None, None, "no assignment was evaluated"),
        (_member("app"), "sarama", None, "rule 3: another member can have another library"),
        (_member("rdkafka"), "java", MemberLibrary("librdkafka", CLIENT_ID), "rule 8"),
        (_member("sarama"), None, MemberLibrary("sarama", CLIENT_ID), "rule 8"),
        (_member("consumer-g-12"), None, MemberLibrary("java", CLIENT_ID), "rule 8: Java's id has the group"),
        (_member("consumer-other-12"), None, None, "the id of a different group was configured"),
        (_member("consumer-g-x"), None, None, "not Java's form"),
        (_member("consumer-g-"), None, None, "not Java's form"),
        (_member(""), None, None, "no client id"),
    ],
)
def test_the_library_of_a_member(
    member: GroupMember, assigned_by: str | None, expected: MemberLibrary | None, why: str
) -> None:
    assert member_library("g", member, LEADER, assigned_by) == expected, why


def test_links_to_grafana_have_the_group_and_the_time_range_of_the_page(page_scene: Scene) -> None:
    pages = _pages(page_scene, grafana_url=GRAFANA)
    group = f"{GRAFANA}/d/{GROUP_UID}?var-cluster={CLUSTER}&var-group=billing&from=now-%s&to=now"
    for span, expected in (("", "1h"), ("6h", "6h"), ("7d", "7d"), ("9y", "1h")):
        assert group % expected in Seen(ask(pages, f"/groups/billing?span={span}").text).links
    topic = f"{GRAFANA}/d/{TOPIC_UID}?var-cluster={CLUSTER}&var-topic=orders&from=now-1h&to=now"
    assert topic in Seen(ask(pages, "/topics/orders").text).links


def test_an_incident_links_to_the_same_section_of_the_runbook_as_the_page_of_its_group(page_scene: Scene) -> None:
    """Only `grafana_url` is set. So alerts and the page of the group link to the panel of the section."""
    panel = f"{GRAFANA}/d/{RUNBOOK_UID}?viewPanel={panel_number('KafkaRebalanceStorm')}"
    for settings, expected in (
        ({"grafana_url": GRAFANA}, panel),
        ({"runbook_url": WIKI}, f"{WIKI}#kafkarebalancestorm"),
    ):
        pages = _pages(page_scene, **settings)
        incident_id = ask(pages, "/api/v1/groups/clickstream").json()["incident_id"]
        assert expected in Seen(ask(pages, f"/incidents/{incident_id}").text).links


def test_each_trouble_links_to_its_section_of_the_runbook(page_scene: Scene) -> None:
    wiki = Seen(ask(_pages(page_scene, runbook_url=WIKI, grafana_url=GRAFANA), "/groups/clickstream").text).links
    assert f"{WIKI}#kafkarebalancestorm" in wiki
    panel = f"{GRAFANA}/d/{RUNBOOK_UID}?viewPanel={panel_number('KafkaRebalanceStorm')}"
    assert panel in Seen(ask(_pages(page_scene, grafana_url=GRAFANA), "/groups/clickstream").text).links
    without = Seen(ask(_pages(page_scene), "/groups/clickstream").text).links
    assert not [link for link in without if link.startswith("http")], "without settings, there are no links"


def test_every_word_of_a_trouble_has_a_section_that_the_runbook_has() -> None:
    """A new trouble without a section would have no link, and nobody would notice."""
    sections = set(re.findall(r"^## (\w+)$", (ROOT / "dashboards" / "RUNBOOK.md").read_text(), re.MULTILINE))
    assert set(runbook.SECTIONS.values()) <= sections
    source = (ROOT / "streaming" / "evaluation" / "severity" / "trouble.py").read_text()
    words = set(re.findall(r'Trouble\(\d+, "([^"]+)"', source)) | {"rewound", "stalled", "stopped"}
    comment = GROUP_CONDITIONS.schema.field("condition").metadata[b"comment"].decode().partition("The rules")[0]
    conditions = {name.replace("_", " ") for name in re.findall(r"[a-z]+(?:_[a-z]+)+", comment)}
    assert len(conditions) >= 14, "the names of all conditions"
    words |= conditions
    assert {
        word for word in words if runbook.runbook_link(LinkSettings(runbook_url=WIKI), Trouble(1, word, "")) is None
    } == set()
    for word, _ in RULE_WORDS.values():
        drift = Trouble(2, f"drift: {word}", "")
        assert runbook.runbook_link(LinkSettings(runbook_url=WIKI), drift) == f"{WIKI}#kafkaassignmentdrift"


def test_the_pages_use_the_names_of_the_dashboards() -> None:
    """The package `dashboards` is not part of the wheel, so the pages have copies of these names."""
    assert (grafana.GROUP_UID, grafana.TOPIC_UID, runbook.RUNBOOK_UID) == (GROUP_UID, TOPIC_UID, RUNBOOK_UID)
    for section in runbook.SECTIONS.values():
        assert runbook._panel_number(section) == panel_number(section)


def test_a_condition_has_the_section_of_the_alert_about_this_condition() -> None:
    """An alert and the page must send the engineer to the same section."""
    from dashboards.alerts.catalogue import ALERTS  # noqa: PLC0415 - needs Grafana's builders

    sections_by_condition: dict[str, set[str]] = {}
    for alert in ALERTS:
        for level in alert.levels:
            for names in re.findall(
                r'rebalance_monitor_group_condition_timestamp_seconds\{condition=~?"([^"]+)"', level.expression
            ):
                for name in names.split("|"):
                    sections_by_condition.setdefault(name, set()).add(alert.name)
    assert sections_by_condition
    for name, sections in sections_by_condition.items():
        assert runbook.SECTIONS[name.replace("_", " ")] in sections, name
