"""Answers requests about incidents: `/incidents`, `/incidents/<id>`, and the same addresses of the API.

If the group in `?group=` has exactly one open incident, `/incidents` redirects to the incident. If the monitor does not
find an incident, the status is 404. But if the monitor cannot read the table, the status is 503, because the table
possibly contains the incident.
"""

from __future__ import annotations

from collections.abc import Sequence

from streaming.page.addresses import Address, argument, optional_argument
from streaming.page.api.as_json import monitor_json, monitors_json
from streaming.page.finding.paging import page_of
from streaming.page.incidents.as_json import incident_json, incidents_json
from streaming.page.incidents.listing import (
    FoundIncident,
    IncidentListing,
    find_incident,
    lag_at_last_sample,
    list_incidents,
)
from streaming.page.page_input import WatchedCluster
from streaming.page.routes.answers import FOUND, NOT_FOUND, TEXT, UNAVAILABLE, Answer, Site, document, error

_PAGE, _API = "/incidents", "/api/v1/incidents"


class IncidentPages:
    """Answers requests for pages and JSON documents of incidents."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def answer(self, path: str, query: str) -> Answer | None:
        """Answer a request about incidents. Return None if the request is for a different address."""
        if path == _PAGE:
            return self._list_page(query)
        if path == _API:
            return self._list_document(query)
        if path.startswith(f"{_PAGE}/"):
            return self._page(path.removeprefix(f"{_PAGE}/"), query)
        if path.startswith(f"{_API}/"):
            return self._document(path.removeprefix(f"{_API}/"))
        return None

    def _list(self, query: str) -> tuple[Sequence[WatchedCluster], IncidentListing, str | None]:
        clusters = [(one.watch(), one.incidents) for one in self._site.select_clusters(query)]
        group_id = optional_argument(query, "group")
        return [watched for watched, _ in clusters], list_incidents(clusters, group_id), group_id

    def _list_page(self, query: str) -> Answer:
        watched, listing, group_id = self._list(query)
        if not watched:
            return self._site.no_such_cluster()
        if group_id is not None and len(listing.open) == 1:
            address = f"{_PAGE}/{listing.open[0].incident.incident_id}"
            return Answer(b"", TEXT, FOUND, headers=(("Location", address),))
        return self._site.page(
            "incidents.html",
            watched,
            listing=listing,
            group_id=group_id,
            selected_cluster=argument(query, "cluster"),
            address=Address(_PAGE, query),
        )

    def _list_document(self, query: str) -> Answer:
        watched, listing, _ = self._list(query)
        if not watched:
            return error([], "no such cluster", NOT_FOUND)
        return document({**monitors_json(watched), **incidents_json(listing)})

    def _find(self, incident_id: str) -> tuple[Sequence[WatchedCluster], FoundIncident]:
        clusters = [(one.watch(), one.incidents) for one in self._site.clusters]
        return [watched for watched, _ in clusters], find_incident(clusters, incident_id)

    def _page(self, incident_id: str, query: str) -> Answer:
        clusters, (found, reason) = self._find(incident_id)
        if found is None:
            return self._site.page("no_incident.html", clusters, UNAVAILABLE if reason else NOT_FOUND, reason=reason)
        watched, entry = found
        incident = entry.incident
        address = Address(f"{_PAGE}/{incident.incident_id}", query)
        return self._site.page(
            "incident.html",
            [watched],
            entry=entry,
            address=address,
            lag=lag_at_last_sample(watched, incident),
            groups=page_of(incident.groups, address, "groups_from", "groups"),
            evidence=page_of(incident.evidence, address, "evidence_from", "evidence"),
        )

    def _document(self, incident_id: str) -> Answer:
        clusters, (found, reason) = self._find(incident_id)
        if found is None:
            return error(clusters, reason or "no such incident", UNAVAILABLE if reason else NOT_FOUND)
        watched, entry = found
        return document({**monitor_json(watched), **incident_json(entry)})
