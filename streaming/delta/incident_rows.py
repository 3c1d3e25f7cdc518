"""Converts incidents to rows of the table `incidents`, and rows to incidents. All functions are pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from streaming.delta.cells import Row, timestamp_ms, utc
from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.incidents.incident import Incident, Link
from streaming.evaluation.incidents.incident_cause import incident_cause
from streaming.evaluation.incidents.story import ADVICE


def incident_row(sampled_at_ms: int, incident: Incident, story: Sequence[str], *, is_repeated: bool = False) -> Row:
    """Return the row of an incident that opened, changed or ended.

    If `is_repeated` is True, the row repeats an unchanged incident on a new date.
    """
    sampled_time, kind = utc(sampled_at_ms), incident_cause(incident).kind
    return {
        "cluster": incident.cluster,
        "date": sampled_time.date(),
        "sampled_time": sampled_time,
        "incident_id": incident.incident_id,
        "active": incident.is_open,
        "is_repeated": is_repeated,
        "since_time": utc(incident.since_ms),
        "quiet_since_time": _time(incident.quiet_since_ms),
        "end_time": _time(incident.end_ms),
        "merged_into": incident.merged_into,
        "cause": kind,
        "runbook_section": ADVICE[kind].runbook_section,
        "story": [_storable(sentence) for sentence in story],
        "links": [{"kind": link.kind, "value": _storable(link.value)} for link in incident.links],
        "groups": [_storable(group_id) for group_id in incident.groups],
        "group_count": incident.group_count,
        "evidence": [_evidence_cells(one) for one in incident.evidence],
    }


def restore_incident(row: Mapping[str, Any]) -> Incident:
    """Return the incident that a row describes. If the row has no column `evidence`, the incident has no evidence."""
    return Incident(
        incident_id=row["incident_id"],
        cluster=row["cluster"],
        since_ms=timestamp_ms(row["since_time"]),
        evidence=tuple(_restore_evidence(cells) for cells in row.get("evidence", ())),
        groups=tuple(row["groups"]),
        links=tuple(Link(link["kind"], link["value"]) for link in row["links"]),
        quiet_since_ms=_milliseconds(row["quiet_since_time"]),
        end_ms=_milliseconds(row["end_time"]),
        merged_into=row["merged_into"],
    )


def _evidence_cells(one: Evidence) -> Row:
    return {
        "source": one.source,
        "name": one.name,
        "group_id": _storable(one.group_id),
        "text": _storable(one.text),
        "since_time": utc(one.since_ms),
        "until_time": _time(one.until_ms),
        "coordinator": one.coordinator,
        "is_coordinator_gone": one.is_coordinator_gone,
        "client_hosts": [_storable(host) for host in one.client_hosts],
        "topics": [_storable(topic) for topic in one.topics],
    }


def _restore_evidence(cells: Row) -> Evidence:
    return Evidence(
        source=cells["source"],
        name=cells["name"],
        group_id=cells["group_id"],
        text=cells["text"],
        since_ms=timestamp_ms(cells["since_time"]),
        until_ms=_milliseconds(cells["until_time"]),
        coordinator=cells["coordinator"],
        is_coordinator_gone=cells["is_coordinator_gone"],
        client_hosts=tuple(cells["client_hosts"]),
        topics=tuple(cells["topics"]),
    )


def _time(timestamp_ms: int | None) -> datetime | None:
    return None if timestamp_ms is None else utc(timestamp_ms)


def _milliseconds(time: datetime | None) -> int | None:
    return None if time is None else timestamp_ms(time)


def _storable(text: str) -> str:
    r"""Replace lone surrogates, which Arrow cannot store.

    >>> _storable("a\ud800"), _storable("Zürich 🚀")
    ('a?', 'Zürich 🚀')
    """
    return text.encode("utf-8", "replace").decode()
