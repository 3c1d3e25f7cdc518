"""Scenarios as JSON: one group to assign, and the answer, in the form the golden vectors and the command line share."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from assignors.model import NO_GENERATION, GroupSpec, MemberSubscription
from assignors.sticky.cooperative import CooperativeStickyAssignor, rebalance_needed, rejoined

if TYPE_CHECKING:
    from assignors.model import GroupAssignment, ReplicaRacks, TopicPartition

MAX_PARTITIONS = 1_000_000
"""More than a Kafka cluster holds; a larger count is a slip or an attack, and would only exhaust memory."""

T = TypeVar("T")


class ScenarioError(ValueError):
    """The scenario cannot be used; the message says which field is wrong and how."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group and the strategy it asks for; ``scenario_id`` is whatever the line called itself."""

    scenario_id: str | None
    strategy: str
    group: GroupSpec


def parse_scenario(fields: object) -> Scenario:
    """Read the scenario in one decoded JSON value; fields it does not know are ignored. Raises ScenarioError.

    >>> parse_scenario({"strategy": "range", "partitions": {"t0": 1}, "members": []}).group.partitions
    {'t0': 1}
    """
    group = parse_group(fields)
    strategy = _typed(_required(_typed(fields, dict, "a scenario"), "strategy"), str, "strategy")
    return Scenario(scenario_id(fields), strategy, group)


def parse_group(fields: object) -> GroupSpec:
    """Read the group in one decoded JSON value, whatever strategy it names. Raises ScenarioError."""
    scenario = _typed(fields, dict, "a scenario")
    counts = _partition_counts(scenario)
    members = tuple(map(_member, _typed(_required(scenario, "members"), list, "members")))
    racks, lag_records = _racks(scenario.get("racks")), _lag_records(scenario.get("lag_records"))
    try:
        return GroupSpec(members, counts, racks, lag_records)
    except ValueError as error:
        raise ScenarioError(str(error)) from error


def scenario_id(fields: object) -> str | None:
    """Read what a decoded line calls itself, even where the rest is unusable; None where it does not say."""
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if isinstance(found, str) else None


def decode_line(line: str | bytes) -> object:
    """Decode one JSON line. Raises ScenarioError for what is not JSON, too deep or too large to be."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"not JSON: {error}") from error


def assignment_as_json(assignment: GroupAssignment) -> dict[str, list[list[str | int]]]:
    """Give the answer its form: ``{member_id: [[topic, partition], ...]}``."""
    return {
        member_id: [[topic, number] for topic, number in partitions]
        for member_id, partitions in assignment.members.items()
    }


def answer_as_json(scenario: Scenario, assignment: GroupAssignment) -> dict[str, object]:
    """Give a scenario's answer its form; where the strategy is cooperative, with what comes of it.

    That is whether a second round is needed, and what it assigns if every member took, revoked and rejoined.
    """
    answer: dict[str, object] = {"id": scenario.scenario_id, "assignment": assignment_as_json(assignment)}
    cooperative = CooperativeStickyAssignor()
    if scenario.strategy == cooperative.name:
        second = cooperative.assign(rejoined(scenario.group, assignment))
        answer["rebalance_needed"] = rebalance_needed(scenario.group, assignment)
        answer["assignment_after_second_round"] = assignment_as_json(second)
    return answer


def _member(fields: object) -> MemberSubscription:
    member = _typed(fields, dict, "a member")
    subscription_generation = member.get("subscription_generation")
    return MemberSubscription(
        member_id=_typed(_required(member, "member_id"), str, "member_id"),
        topics=tuple(_typed(topic, str, "a topic") for topic in _typed(_required(member, "topics"), list, "topics")),
        instance_id=_optional_text(member, "instance_id"),
        rack=_optional_text(member, "rack"),
        owned=tuple(map(_topic_partition, _typed(member.get("owned", []), list, "owned"))),
        generation_id=_integer(member.get("generation", NO_GENERATION), "generation"),
        user_data_version=_integer(member.get("user_data_version", 1), "user_data_version"),
        subscription_generation=None
        if subscription_generation is None
        else _integer(subscription_generation, "subscription_generation"),
    )


def _topic_partition(fields: object) -> TopicPartition:
    pair = _typed(fields, list, "an owned partition")
    if len(pair) != 2:
        raise ScenarioError("an owned partition is a pair of topic and number")
    return _typed(pair[0], str, "the topic of an owned partition"), _integer(
        pair[1], "the number of an owned partition"
    )


def _partition_counts(scenario: dict[str, Any]) -> dict[str, int]:
    partitions = _typed(_required(scenario, "partitions"), dict, "partitions")
    counts = {topic: _integer(count, f"the partition count of {topic!r}") for topic, count in partitions.items()}
    if sum(counts.values()) > MAX_PARTITIONS:
        raise ScenarioError(f"more than {MAX_PARTITIONS} partitions")
    return counts


def _racks(fields: object) -> dict[str, ReplicaRacks]:
    if fields is None:
        return {}
    racks: dict[str, ReplicaRacks] = {}
    for topic, partitions in _typed(fields, dict, "racks").items():
        racks[topic] = tuple(map(_replica_racks, _typed(partitions, list, f"the racks of {topic!r}")))
    return racks


def _lag_records(fields: object) -> dict[TopicPartition, int]:
    """Read ``{topic: [records behind, one a partition]}``; null where a partition's is not known."""
    if fields is None:
        return {}
    return {
        (topic, number): _integer(lag, f"the lag of {topic!r}")
        for topic, lags in _typed(fields, dict, "lag_records").items()
        for number, lag in enumerate(_typed(lags, list, f"the lags of {topic!r}"))
        if lag is not None
    }


def _replica_racks(fields: object) -> tuple[str | None, ...]:
    replicas = _typed(fields, list, "the racks of a partition")
    return tuple(None if rack is None else _typed(rack, str, "the rack of a replica") for rack in replicas)


def _required(fields: dict[str, Any], name: str) -> object:
    if name not in fields:
        raise ScenarioError(f"{name} is missing")
    return fields[name]


def _optional_text(fields: dict[str, Any], name: str) -> str | None:
    found = fields.get(name)
    return None if found is None else _typed(found, str, name)


def _typed(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind):
        raise ScenarioError(f"{what} must be {_JSON_NAMES[kind]}, not {_JSON_NAMES.get(type(value), 'null')}")
    return value


def _integer(value: object, what: str) -> int:
    if isinstance(value, bool):  # JSON's true is an int to Python
        raise ScenarioError(f"{what} must be a whole number, not true or false")
    return _typed(value, int, what)


_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "a whole number",
    float: "a fraction",
    bool: "true or false",
}
