"""Tests that the layouts equal the official message definitions of Kafka 4.2.0, field by field."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.protocol import RecordType
from streaming.protocol.layouts import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION, RECORD_LAYOUTS
from streaming.protocol.primitives import ZERO_UUID
from streaming.protocol.schema import ArrayOf, Field, Message, Struct
from tests.streaming.protocol.records import golden_lines

OFFICIAL: dict[str, dict[str, Any]] = {facts["name"]: facts for facts in golden_lines("schemas")}
OURS: dict[str, Message] = {
    message.name: message
    for message in (
        *(layout.key for layout in RECORD_LAYOUTS),
        *(layout.value for layout in RECORD_LAYOUTS),
        CONSUMER_PROTOCOL_SUBSCRIPTION,
        CONSUMER_PROTOCOL_ASSIGNMENT,
    )
}


def _versions(text: str, highest: int) -> range:
    """Return the versions in a definition: ``3``, ``0-4``, ``4+`` or ``none``."""
    if text == "none":
        return range(0)
    first, _, last = text.removesuffix("+").partition("-")
    return range(int(first), (highest if text.endswith("+") else int(last or first)) + 1)


def _official_field(facts: dict[str, Any], highest: int) -> dict[str, Any]:
    name, is_array, element = facts["name"], facts["type"].startswith("[]"), facts["type"].removeprefix("[]")
    nested = [_official_field(one, highest) for one in facts.get("fields", ())]
    tagged = "tag" in facts
    return {
        "name": name[0].lower() + name[1:],
        "type": (is_array, nested or element),
        # The last tagged field of StreamsGroupMetadataValue has only tagged versions.
        "versions": _versions(facts["versions"] if "versions" in facts else facts["taggedVersions"], highest),
        "nullable": bool(_versions(facts.get("nullableVersions", "none"), highest)),
        "tag": facts.get("tag"),
        "default": facts.get("default") if tagged else None,
    }


def _our_type(layout: object, highest: int, since: int) -> tuple[bool, Any]:
    if isinstance(layout, ArrayOf):
        return True, _our_type(layout.element, highest, since)[1]
    if isinstance(layout, Struct):
        return False, [_our_field(field, highest, since) for field in layout.fields]
    return False, layout


def _our_field(field: Field, highest: int, parent_since: int = 0) -> dict[str, Any]:
    since = max(field.since, parent_since)  # the definitions repeat a struct's first version at each of its fields
    return {
        "name": field.name,
        "type": _our_type(field.type, highest, since),
        "versions": range(since, min(field.until, highest) + 1),
        "nullable": field.nullable,
        "tag": field.tag,
        # The definitions have no default for the type's zero value, and null for an empty list or struct.
        "default": None if field.default in (ZERO_UUID, ()) else field.default,
    }


@pytest.mark.parametrize("name", sorted(OFFICIAL))
def test_a_layout_has_the_official_fields_in_the_official_order(name: str) -> None:
    official, ours = OFFICIAL[name], OURS[name]
    highest = _versions(official["validVersions"], 0)[-1]
    assert ours.highest_version == highest
    assert [_our_field(field, highest) for field in ours.fields] == [
        _official_field(facts, highest) for facts in official["fields"]
    ]


@pytest.mark.parametrize("name", sorted(OFFICIAL))
def test_a_layout_is_flexible_from_the_same_version_as_the_official_one(name: str) -> None:
    official, ours = OFFICIAL[name], OURS[name]
    versions = range(ours.highest_version + 1)
    flexible = [version for version in versions if version >= ours.flexible_since]
    assert flexible == list(_versions(official["flexibleVersions"], ours.highest_version))


def test_there_is_a_layout_for_every_official_record_and_no_other() -> None:
    numbers = {name.removesuffix("Key"): facts["keyType"] for name, facts in OFFICIAL.items() if name.endswith("Key")}
    assert {layout.name: layout.key_type for layout in RECORD_LAYOUTS} == numbers


def test_every_record_type_has_a_name_in_the_enumeration() -> None:
    assert {layout.key_type for layout in RECORD_LAYOUTS} == {int(record_type) for record_type in RecordType}


def test_tagged_fields_come_last_so_that_they_come_last_in_kafkas_json() -> None:
    def structs(fields: tuple[Field, ...]) -> list[tuple[Field, ...]]:
        inner = [field.type.element if isinstance(field.type, ArrayOf) else field.type for field in fields]
        return [fields, *(one for layout in inner if isinstance(layout, Struct) for one in structs(layout.fields))]

    for message in OURS.values():
        for fields in structs(message.fields):
            assert list(fields) == sorted(fields, key=lambda field: field.tag is not None)
