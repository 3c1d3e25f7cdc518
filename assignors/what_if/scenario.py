"""Reads scenarios from JSON and writes results as JSON. The golden vectors and the CLI use the same JSON format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, TypeVar

from assignors.model import NO_GENERATION, GroupAssignment, GroupSpec, MemberSubscription, ReplicaRacks, TopicPartition
from assignors.sticky.cooperative import CooperativeStickyAssignor, group_after_rejoin, rebalance_needed

MAX_PARTITIONS = 1_000_000
"""Maximum number of partitions in a scenario. A larger scenario would use too much memory."""

_MEMBER_FIELDS = frozenset(
    (
        "member_id",
        "topics",
        "instance_id",
        "rack",
        "owned",
        "generation",
        "user_data_version",
        "subscription_generation",
    )
)

T = TypeVar("T")


class ScenarioError(ValueError):
    """The scenario is invalid. The message contains the name of the invalid field and the reason."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A group, and the name of the strategy to apply. ``scenario_id`` is the field ``id`` of the JSON line."""

    scenario_id: str | None
    strategy: str
    group: GroupSpec


def parse_scenario(fields: object) -> Scenario:
    """Read a scenario from one decoded JSON value. Raises ScenarioError.

    An unknown field of a member is an error. If, for example, a misspelt "owned" were ignored, the strategy would
    compute a wrong assignment. Other unknown fields are ignored. For example, test data can contain the expected
    assignment.

    >>> parse_scenario({"strategy": "range", "partitions": {"t0": 1}, "members": []}).group.partitions
    {'t0': 1}
    """
    group = parse_group(fields)
    strategy = _require_type(_require_field(_require_type(fields, dict, "a scenario"), "strategy"), str, "strategy")
    return Scenario(scenario_id(fields), strategy, group)


def parse_group(fields: object) -> GroupSpec:
    """Read the group of a scenario, without the strategy, from one decoded JSON value. Raises ScenarioError."""
    scenario = _require_type(fields, dict, "a scenario")
    counts = _partition_counts(scenario)
    members = tuple(map(_member, _require_type(_require_field(scenario, "members"), list, "members")))
    racks, lag_records = _racks(scenario.get("racks")), _lag_records(scenario.get("lag_records"))
    try:
        return GroupSpec(members, counts, racks, lag_records)
    except ValueError as error:
        raise ScenarioError(str(error)) from error


def scenario_id(fields: object) -> str | None:
    """Return the field ``id`` of a decoded line, or None if the line has no id. Other fields are not checked."""
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if isinstance(found, str) else None


def decode_line(line: str | bytes) -> object:
    """Decode one JSON line. Raises ScenarioError if the line is not JSON, or has too many nested levels."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ScenarioError(f"not JSON: {error}") from error


def assignment_as_json(assignment: GroupAssignment) -> dict[str, list[list[str | int]]]:
    """Return the assignment as ``{member_id: [[topic, partition], ...]}``."""
    return {
        member_id: [[topic, number] for topic, number in partitions]
        for member_id, partitions in assignment.members.items()
    }


def answer_as_json(scenario: Scenario, assignment: GroupAssignment) -> dict[str, object]:
    """Return the result of a scenario as values that ``json`` can write.

    For ``cooperative-sticky``, the JSON also contains ``rebalance_needed`` and the assignment after a second round.
    Before the second round, each member has revoked the partitions that the first round did not assign to it, and has
    rejoined.
    """
    answer: dict[str, object] = {"id": scenario.scenario_id, "assignment": assignment_as_json(assignment)}
    cooperative = CooperativeStickyAssignor()
    if scenario.strategy == cooperative.name:
        second = cooperative.assign(group_after_rejoin(scenario.group, assignment))
        answer["rebalance_needed"] = rebalance_needed(scenario.group, assignment)
        answer["assignment_after_second_round"] = assignment_as_json(second)
    return answer


def _member(fields: object) -> MemberSubscription:
    member = _require_type(fields, dict, "a member")
    if unknown := sorted(member.keys() - _MEMBER_FIELDS):
        known = ", ".join(sorted(_MEMBER_FIELDS))
        raise ScenarioError(f"a member has the unknown field {unknown[0]!r}: the fields are {known}")
    subscription_generation = member.get("subscription_generation")
    return MemberSubscription(
        member_id=_require_type(_require_field(member, "member_id"), str, "member_id"),
        topics=tuple(
            _require_type(topic, str, "a topic")
            for topic in _require_type(_require_field(member, "topics"), list, "topics")
        ),
        instance_id=_optional_text(member, "instance_id"),
        rack=_optional_text(member, "rack"),
        owned=tuple(map(_topic_partition, _require_type(member.get("owned", []), list, "owned"))),
        generation_id=_require_integer(member.get("generation", NO_GENERATION), "generation"),
        user_data_version=_require_integer(member.get("user_data_version", 1), "user_data_version"),
        subscription_generation=None
        if subscription_generation is None
        else _require_integer(subscription_generation, "subscription_generation"),
    )


def _topic_partition(fields: object) -> TopicPartition:
    pair = _require_type(fields, list, "an owned partition")
    if len(pair) != 2:
        raise ScenarioError("an owned partition must be a pair of topic and number")
    return _require_type(pair[0], str, "the topic of an owned partition"), _require_integer(
        pair[1], "the number of an owned partition"
    )


def _partition_counts(scenario: dict[str, Any]) -> dict[str, int]:
    partitions = _require_type(_require_field(scenario, "partitions"), dict, "partitions")
    counts = {
        topic: _require_integer(count, f"the partition count of {topic!r}") for topic, count in partitions.items()
    }
    if sum(counts.values()) > MAX_PARTITIONS:
        raise ScenarioError(f"more than {MAX_PARTITIONS} partitions")
    return counts


def _racks(fields: object) -> dict[str, ReplicaRacks]:
    if fields is None:
        return {}
    return {
        topic: tuple(map(_replica_racks, _require_type(partitions, list, f"the racks of {topic!r}")))
        for topic, partitions in _require_type(fields, dict, "racks").items()
    }


def _lag_records(fields: object) -> dict[TopicPartition, int]:
    """Read ``{topic: [lag in records, one per partition]}``. The value null means an unknown lag."""
    if fields is None:
        return {}
    return {
        (topic, number): _require_integer(lag, f"the lag of {topic!r}")
        for topic, lags in _require_type(fields, dict, "lag_records").items()
        for number, lag in enumerate(_require_type(lags, list, f"the lags of {topic!r}"))
        if lag is not None
    }


def _replica_racks(fields: object) -> tuple[str | None, ...]:
    replicas = _require_type(fields, list, "the racks of a partition")
    return tuple(None if rack is None else _require_type(rack, str, "the rack of a replica") for rack in replicas)


def _require_field(fields: dict[str, Any], name: str) -> object:
    if name not in fields:
        raise ScenarioError(f"{name} is missing")
    return fields[name]


def _optional_text(fields: dict[str, Any], name: str) -> str | None:
    found = fields.get(name)
    return None if found is None else _require_type(found, str, name)


def _require_type(value: object, kind: type[T], name: str) -> T:
    if not isinstance(value, kind):
        raise ScenarioError(f"{name} must be {_JSON_NAMES[kind]}, not {_JSON_NAMES.get(type(value), 'null')}")
    return value


def _require_integer(value: object, name: str) -> int:
    if isinstance(value, bool):  # bool is a subclass of int in Python
        raise ScenarioError(f"{name} must be a whole number, not true or false")
    return _require_type(value, int, name)


_JSON_NAMES: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    int: "a whole number",
    float: "a fraction",
    bool: "true or false",
}
