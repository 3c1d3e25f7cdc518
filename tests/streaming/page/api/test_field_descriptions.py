"""Tests that `API.md` describes every field of the API, and that generated clients get these descriptions."""

from __future__ import annotations

import re

import pytest

from streaming.page.api.events import EVENT_TYPES, EventType, _field
from streaming.page.api.field_descriptions import Section, documentation, sections_of
from streaming.page.api.openapi import openapi_document

SCHEMAS = openapi_document()["components"]["schemas"]
SECTIONS = sections_of(documentation())


def description(field: str) -> str:
    """Return the description of a field, for example `Work.members`, in the OpenAPI document."""
    schema, name = field.split(".")
    text: str = SCHEMAS[schema]["properties"][name].get("description", "")
    return text


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_field_of_a_schema_has_a_description(schema: str) -> None:
    """Somebody who reads only the OpenAPI document needs the unit and the meaning of null."""
    assert [name for name in SCHEMAS[schema]["properties"] if not description(f"{schema}.{name}")] == []


@pytest.mark.parametrize("section", SECTIONS, ids=[section.heading for section in SECTIONS])
def test_a_section_describes_fields_of_its_schemas(section: Section) -> None:
    """A program that reads a documented field which does not exist fails."""
    assert [name for name in section.schemas if name not in SCHEMAS] == []
    fields = {name: section.fields.keys() & SCHEMAS[name]["properties"].keys() for name in section.schemas}
    assert [name for name, of_schema in fields.items() if not of_schema] == []
    assert section.fields.keys() - set().union(*fields.values()) == set()


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("Condition.since_ms", "monitor first saw the condition"),
        ("StoredCause.since_ms", "first sample with this cause"),
        ("Trouble.since_ms", "start time of the condition"),
        ("Evidence.source", "`condition`, `lag_cause`"),
        ("Evidence.text", "description of the fact"),
        ("StoredCause.text", "sentence with the evidence"),
        ("Trouble.text", "the problem as a sentence"),
        ("DescribedRebalance.text", "the rebalance as a sentence"),
        ("DescribedRebalance.timestamp_ms", "time of the rebalance"),
        ("Work.members", "number of members"),
        ("Work.partitions", "number of owned partitions"),
        ("TopicLoad.partitions", "number of partitions"),
        ("ChangeOutcomes.members", "number of members after the change"),
        ("ChangeOutcomes.partitions", "number of partitions after the change"),
        ("Alternative.moved_partitions", "than in the current assignment"),
        ("Comparison.rebalances", "the last 100 rebalances"),
        ("CoveredCluster.error", "the tables contain no values"),
        ("LastFindings.incident_id", "at the last measurement"),
        ("PartitionLag.status", "status of the partition"),
        ("PastPartition.status", "status of the partition"),
        ("PastPartition.lag_seconds", "`last_measured_ms`"),
        ("StrategyDrift.verdict", "with this strategy"),
        ("PastGroupFields.leader", "in a list of groups"),
    ],
)
def test_a_field_has_the_description_of_its_own_schema(field: str, words: str) -> None:
    """Before, all schemas shared the first description of a field name.

    So a user of a generated client read that `Work.members` was "one object for each member", that `Evidence.source`
    was "`offsets-topic` or `admin-api`", and that a condition started with "the fact that opened the incident".
    """
    assert words in description(field)


def test_a_section_about_the_past_changes_only_the_schemas_of_the_past() -> None:
    """A client of the present must not read that a value is unknown because no table contains it."""
    assert "in a list of groups" not in description("GroupDocument.leader")
    assert "tables" not in description("Member.session_timeout_ms")
    assert "`last_measured_ms`" not in description("PartitionLag.lag_seconds")


def test_descriptions_contain_no_links() -> None:
    """A link to a heading of `API.md` does not work in the documentation of a generated client."""
    texts = [text for section in SECTIONS for text in section.fields.values()]
    assert [text for text in texts if "](" in text] == []
    headings = re.findall(r"^#+ (.+)", documentation(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", documentation())) - anchors == set()


@pytest.mark.parametrize("event_type", EVENT_TYPES, ids=lambda one: one.name)
def test_the_details_of_each_event_type_are_documented(event_type: EventType) -> None:
    """`details` has no schema, because its fields depend on the type. So only the documentation names the fields."""
    section = documentation().partition("### Details of an event")[2].partition("\n#")[0]
    cells = dict(re.findall(r"^\| `(\w+)` \| `\w+` \| (.+) \|$", section, re.MULTILINE))
    assert re.findall(r"`(\w+)`", cells[event_type.name]) == [_field(column) for column in event_type.details]
