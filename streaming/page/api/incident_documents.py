"""Defines the fields of the responses about incidents (`documents`)."""

from __future__ import annotations

from typing import TypedDict

from streaming.evaluation.incidents.evidence import Evidence
from streaming.page.api.documents import Cluster, OneOrSeveralClusters


class Story(TypedDict):
    """The description of an incident in sentences."""

    what_happened: str
    since_when: str
    who: str
    how_bad: str
    what_now: str


class Link(TypedDict):
    """A coordinator, a client host or a topic that several groups of an incident have in common."""

    kind: str
    value: str


class IncidentFields(TypedDict):
    """The fields that the list of incidents and the document of one incident have in common."""

    incident_id: str
    cluster: str
    is_open: bool | None
    since_ms: int
    quiet_since_ms: int | None
    end_ms: int | None
    merged_into: str | None
    cause: str
    runbook_section: str
    story: Story
    links: list[Link]
    group_count: int
    groups: list[str]
    active_groups: list[str] | None


class IncidentList(OneOrSeveralClusters):
    """A list of incidents."""

    total_incidents: int
    incidents: list[IncidentFields]
    incidents_error: str | None


class IncidentDocument(IncidentFields, Cluster):
    """One incident, with its evidence."""

    evidence: list[Evidence]
