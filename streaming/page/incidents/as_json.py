"""Converts incidents to JSON. API.md describes the fields."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from streaming.page.incidents.listing import IncidentEntry, IncidentListing


def incidents_json(listing: IncidentListing) -> dict[str, Any]:
    """Return the part of the JSON document that describes a list of incidents."""
    return {
        "total_incidents": listing.total,
        "incidents": [_summary(one) for one in listing.entries],
        "incidents_error": listing.error,
    }


def incident_json(entry: IncidentEntry) -> dict[str, Any]:
    """Return the part of the JSON document that describes one incident, with its evidence."""
    return {**_summary(entry), "evidence": [asdict(one) for one in entry.incident.evidence]}


def _active_groups(entry: IncidentEntry) -> list[str] | None:
    """Return the groups that the incident affects now, or None if they are unknown.

    The result is empty if the incident has ended or has merged into a different incident.
    """
    if not entry.is_current:
        return None
    return list(entry.incident.active_groups) if entry.incident.is_open else []


def _summary(entry: IncidentEntry) -> dict[str, Any]:
    incident = entry.incident
    return {
        "incident_id": incident.incident_id,
        "cluster": incident.cluster,
        "is_open": entry.is_open,
        "since_ms": incident.since_ms,
        "quiet_since_ms": incident.quiet_since_ms if entry.is_current else None,
        "end_ms": incident.end_ms,
        "merged_into": incident.merged_into,
        "cause": entry.cause,
        "runbook_section": entry.runbook_section,
        "story": entry.story._asdict(),
        "links": [link._asdict() for link in incident.links],
        "group_count": incident.group_count,
        "groups": list(incident.groups),
        "active_groups": _active_groups(entry),
    }
