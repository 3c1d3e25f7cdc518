"""Tests that the comparison of `make test-clients` finds wrong values."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from tests.clients.comparison import GroupComparison
from tests.clients.groups import GroupPlan
from tests.clients.libraries import LIBRARIES
from tests.clients.observed import KafkaState, MonitorOutput
from tests.clients.recount import Generation, Partition, Share
from tests.end_to_end.group_description import GroupDescription, MemberDescription, ShownGroups

LIBRARY = LIBRARIES[0]
PLAN = GroupPlan("g", "range", (LIBRARY, LIBRARY, LIBRARY, LIBRARY))
TOPICS = frozenset({"t"})
HELD: Mapping[str, frozenset[Partition]] = {"a": frozenset({("t", 0), ("t", 1)}), "b": frozenset({("t", 2)})}
METRICS: Mapping[str, Mapping[tuple[tuple[str, str], ...], float]] = {
    "rebalance_monitor_group_info": {(("group", "g"), ("group_type", "classic"), ("state", "Stable")): 1},
    "rebalance_monitor_group_generation": {(("group", "g"),): 2},
    "rebalance_monitor_group_members": {(("group", "g"),): 2},
    "rebalance_monitor_group_lag": {(("group", "g"),): 4},
    "rebalance_monitor_assignment_verdict": {(("group", "g"), ("verdict", "match")): 1},
    "rebalance_monitor_moved_partitions_total": {(("group", "g"), ("necessary", "true")): 1},
    "rebalance_monitor_member_partitions": {
        (("group", "g"), ("member", "a"), ("topic", "t")): 2,
        (("group", "g"), ("member", "b"), ("topic", "t")): 1,
    },
    "kafka_consumergroup_current_offset": {(("consumergroup", "g"), ("partition", "0"), ("topic", "t")): 6},
    "kafka_consumergroup_lag": {(("consumergroup", "g"), ("partition", "0"), ("topic", "t")): 4},
}


def _generation_row(offset: int, held: Mapping[str, frozenset[Partition]]) -> dict[str, Any]:
    members = [
        {
            "member_id": name,
            "group_instance_id": None,
            "client_id": name,
            "client_host": "/h",
            "rack_id": None,
            "member_epoch": None,
            "subscription": ["t"],
            "assignment": [{"topic": topic, "partition": number} for topic, number in sorted(partitions)],
            "target": None,
            "owned": [],
        }
        for name, partitions in held.items()
    ]
    return {
        "offsets_topic_partition": 0,
        "offsets_topic_offset": offset,
        "group_type": "classic",
        "state": "Stable",
        "generation_id": offset,
        "assignment_epoch": None,
        "protocol": "range",
        "members": members,
    }


def _rebalance_row(offset: int, kind: str, **columns: Any) -> dict[str, Any]:  # noqa: ANN401 - any column
    counted = {"causes": [], "moved_partitions": None, "fewest_moves": None, "withheld_partitions": 0, "members": 2}
    return {
        "offsets_topic_partition": 0,
        "offsets_topic_offset": offset,
        "generation_id": offset,
        "kind": kind,
        **counted,
        **columns,
    }


def _tables() -> dict[str, list[dict[str, Any]]]:
    joined = {"causes": ["member_joined"], "moved_partitions": 1, "fewest_moves": 1}
    return {
        "group_generations": [
            _generation_row(1, {"a": frozenset({("t", 0), ("t", 1), ("t", 2)})}),
            _generation_row(2, HELD),
        ],
        "rebalances": [_rebalance_row(1, "first_seen"), _rebalance_row(2, "rebalance", **joined)],
        "assignment_drift": [{"is_group_strategy": True, "verdict": "match"}],
        "group_lag": [{"topic": "t", "partition": 0, "lag": 4}],
    }


def _api() -> dict[str, Any]:
    members = [
        {
            "member_id": name,
            "assigned": [{"topic": topic, "partition": number} for topic, number in partitions],
            "subscribed_topics": ["t"],
        }
        for name, partitions in HELD.items()
    ]
    committed = {"topic": "t", "partition": 0, "committed_offset": 6, "end_offset": 10, "lag": 4, "owner": "a@h"}
    return {
        "group_id": "g",
        "state": "Stable",
        "members": members,
        "partitions": [committed],
        "verdict": "match",
        "verdict_reason": "",
        "violations": [],
        "drift_partitions": 0,
        "unowned_partitions": 0,
        "owned_twice_partitions": 0,
        "not_subscribed_partitions": 0,
        "assigned_by": "sarama",
    }


def _described() -> GroupDescription:
    members = {name: MemberDescription(name, "/h", assignment=held) for name, held in HELD.items()}
    return GroupDescription("classic", "Stable", assignor="range", members=members)


def compared(api: Mapping[str, Any] | None = None, tables: Mapping[str, Any] | None = None) -> GroupComparison:
    """Return a comparison without differences: a second member has joined and got one of three partitions."""
    shares = {name: Share(TOPICS, held) for name, held in HELD.items()}
    alone = Generation("range", {"a": Share(TOPICS, frozenset({("t", 0), ("t", 1), ("t", 2)}))})
    shown = tables or _tables()
    now = KafkaState(_described(), Generation("range", shares), {("t", 0): 6}, {("t", 0): 10})
    return GroupComparison(
        plan=PLAN,
        partitions={"t": 3},
        grew=False,
        before=replace(now, generation=alone),
        now=now,
        since=(0, 1),
        shown=MonitorOutput(ShownGroups({"g": shown["group_generations"][-1]}, METRICS), api or _api(), shown),
    )


def test_a_group_that_is_shown_correctly_has_no_differences():
    """Otherwise every run would fail."""
    assert compared().differences() == []


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("state", "Empty", {"state in the API"}),
        ("members", [], {"members in the API"}),
        ("partitions", [], {"partitions in the API (committed, end, lag, owner)"}),
        ("verdict", "drift", {"verdict", "verdict in /metrics", "verdict in assignment_drift"}),
        ("verdict", "unknown", {"verdict", "verdict in /metrics", "verdict in assignment_drift"}),
        ("violations", ["unbalanced"], {"broken rules"}),
        ("drift_partitions", 1, {"drift partitions"}),
        ("unowned_partitions", None, {"unowned partitions"}),
        ("assigned_by", "java", {"assigned by"}),
    ],
)
def test_a_false_value_of_the_api_is_found(name: str, value: object, found: set[str]):
    """The monitor has shown each of these wrong values for a library."""
    differences = compared(api={**_api(), name: value}).differences()
    assert {one.name for one in differences} == found


@pytest.mark.parametrize(
    ("column", "value", "found"),
    [
        ("causes", ["metadata_changed"], {"causes of generation 2 (rebalance)", "causes in this step"}),
        ("causes", None, {"causes of generation 2 (rebalance)", "causes in this step"}),
        ("moved_partitions", None, {"moved_partitions of generation 2 (rebalance)"}),
        ("moved_partitions", 0, {"moved_partitions of generation 2 (rebalance)", "moved partitions in this step"}),
        ("fewest_moves", 2, {"fewest_moves of generation 2 (rebalance)"}),
        ("withheld_partitions", 1, {"withheld_partitions of generation 2 (rebalance)"}),
    ],
)
def test_a_false_value_of_a_rebalance_is_found(column: str, value: object, found: set[str]):
    """In this step a member joined, and one partition moved from the first member to it."""
    tables = deepcopy(_tables())
    tables["rebalances"][-1][column] = value
    assert found <= {one.name for one in compared(tables=tables).differences()}


def test_a_topic_that_grew_must_be_named_as_a_cause():
    """A changed topic without its cause is wrong, and so is the cause without a changed topic."""
    differences = replace(compared(), grew=True).differences()
    assert [(one.name, one.expected) for one in differences] == [
        ("causes in this step", ["member_joined", "metadata_changed"])
    ]


def test_an_owner_that_does_not_subscribe_must_be_drift():
    """KafkaJS's leader assigns every topic to every member. So the verdict `match` would be wrong."""
    valid = compared()
    shares = {**valid.now.generation.members, "b": Share(frozenset({"u"}), HELD["b"])}
    invalid = replace(valid.now, generation=Generation("range", shares))
    found = {one.name: one.expected for one in replace(valid, now=invalid, partitions={"t": 3, "u": 0}).differences()}
    assert found["verdict"] == ("drift",)
    assert found["broken rules"] == ["not_subscribed"]
    assert found["not subscribed"] == 1


def test_a_topic_that_is_new_to_the_group_may_change_the_leaders_metadata():
    """kafka-python's leader first assigns nothing of such a topic. It rebalances when it knows the topic."""
    tables = deepcopy(_tables())
    tables["rebalances"][-1]["causes"] = ["member_joined", "metadata_changed"]
    late = compared(tables=tables)
    assert [one.name for one in late.differences()] == ["causes that did not occur in this step"]
    assert late.before is not None
    alone = Generation("range", {"a": Share(frozenset(), late.before.generation.members["a"].held)})
    assert replace(late, before=replace(late.before, generation=alone)).differences() == []


def test_a_new_leader_may_learn_late_of_a_topic_it_does_not_subscribe_to():
    """kafka-python's next leader, too, assigns nothing of such a topic until it knows the topic."""
    tables = deepcopy(_tables())
    tables["group_generations"][0] = _generation_row(1, {"a": frozenset()})
    counted = {"causes": ["member_joined", "metadata_changed"], "moved_partitions": 0, "fewest_moves": 0}
    tables["rebalances"][-1].update(counted)
    late = compared(tables=tables)
    assert late.before is not None
    without = replace(late.before, generation=Generation("range", {"a": Share(TOPICS, frozenset())}))
    unmoved = {**METRICS, "rebalance_monitor_moved_partitions_total": {(("group", "g"), ("necessary", "true")): 0}}
    shown = replace(late.shown, shows=replace(late.shown.shows, metrics=unmoved))
    assert replace(late, before=without, shown=shown).differences() == []
