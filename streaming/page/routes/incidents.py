"""Answers requests about incidents: `/incidents`, `/incidents/<id>`, and the same addresses of the API.

If the group in `?group=` has exactly one open incident, `/incidents` redirects to the incident. If the monitor does not
find an incident, the status is 404. But if the monitor cannot read the table, the status is 503, because the table
possibly contains the incident.
"""

from __future__ import annotations

from collections.abc import Sequence

from streaming.page.addresses import Address, argument
from streaming.page.api.as_json import incident_json, incidents_json, monitor_json, monitors_json
from streaming.page.finding.paging import page_of
from streaming.page.incidents.listing import (
    IncidentEntry,
    IncidentListing,
    find_open_incident,
    lag_at_last_sample,
    list_incidents,
)
from streaming.page.page_input import WatchedCluster
from streaming.page.routes.answers import FOUND, NOT_FOUND, TEXT, UNAVAILABLE, Answer, Site, document, error

_PAGE, _API = "/incidents", "/api/v1/incidents"

_FoundIncident = tuple[tuple[WatchedCluster, IncidentEntry] | None, str | None]
"""The result of `_find`: the incident with its cluster, and an error.

The incident is None if the monitor did not find it. The error is the reason why a table that possibly contains the
incident could not be read.
"""


def answer_incidents(site: Site, path: str, query: str) -> Answer | None:
    """Answer a request about incidents. Return None if the request is for a different address."""
    if path == _PAGE:
        return _list_page(site, query)
    if path == _API:
        watched, listing = _list(site, query)
        if not watched:
            return error([], "no such cluster", NOT_FOUND)
        return document({**monitors_json(watched), **incidents_json(listing)})
    if path.startswith(f"{_PAGE}/"):
        return _incident_page(site, path.removeprefix(f"{_PAGE}/"), query)
    if path.startswith(f"{_API}/"):
        return _incident_document(site, path.removeprefix(f"{_API}/"))
    return None


def _list(site: Site, query: str) -> tuple[Sequence[WatchedCluster], IncidentListing]:
    clusters = [(one.watch(), one.incidents) for one in site.select_clusters(query)]
    stored = [(watched, reader.recent(watched.now_ms)) for watched, reader in clusters]
    return [watched for watched, _ in clusters], list_incidents(stored, argument(query, "group"))


def _list_page(site: Site, query: str) -> Answer:
    watched, listing = _list(site, query)
    if not watched:
        return site.no_such_cluster()
    group_id = argument(query, "group")
    if group_id is not None and len(listing.open) == 1:
        address = f"{_PAGE}/{listing.open[0].incident.incident_id}"
        return Answer(b"", TEXT, FOUND, headers=(("Location", address),))
    return site.page(
        "incidents.html",
        watched,
        listing=listing,
        group_id=group_id,
        selected_cluster=argument(query, "cluster") or "",
        address=Address(_PAGE, query),
    )


def _find(site: Site, incident_id: str) -> tuple[Sequence[WatchedCluster], _FoundIncident]:
    """Search all clusters for the incident with this id. Read the tables only if no open incident has this id."""
    clusters = [(one.watch(), one.incidents) for one in site.clusters]
    all_watched = [watched for watched, _ in clusters]
    for watched in all_watched:
        entry = find_open_incident(watched, incident_id)
        if entry is not None:
            return all_watched, ((watched, entry), None)
    reason = None
    for watched, reader in clusters:
        stored = reader.find(incident_id, watched.now_ms)
        if stored.entries:
            return all_watched, ((watched, stored.entries[0]), None)
        reason = reason or stored.error
    return all_watched, (None, reason)


def _incident_page(site: Site, incident_id: str, query: str) -> Answer:
    clusters, (found, reason) = _find(site, incident_id)
    if found is None:
        return site.page("no_incident.html", clusters, UNAVAILABLE if reason else NOT_FOUND, reason=reason)
    watched, entry = found
    incident = entry.incident
    address = Address(f"{_PAGE}/{incident.incident_id}", query)
    return site.page(
        "incident.html",
        [watched],
        entry=entry,
        address=address,
        lag=lag_at_last_sample(watched, incident),
        groups=page_of(incident.groups, address, "groups_from", "groups"),
        evidence=page_of(incident.evidence, address, "evidence_from", "evidence"),
    )


def _incident_document(site: Site, incident_id: str) -> Answer:
    clusters, (found, reason) = _find(site, incident_id)
    if found is None:
        return error(clusters, reason or "no such incident", UNAVAILABLE if reason else NOT_FOUND)
    watched, entry = found
    return document({**monitor_json(watched), **incident_json(entry)})
