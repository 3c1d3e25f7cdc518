"""Answers requests for events and for the OpenAPI description."""

from __future__ import annotations

from streaming.page.addresses import Address
from streaming.page.api.documents import DEFAULT_EVENTS, MAX_EVENTS
from streaming.page.api.event_reader import EventReader, GoneError, NoTableError, TableReadError
from streaming.page.api.events import BadSinceError
from streaming.page.api.openapi import ADDRESS as DESCRIPTION
from streaming.page.api.openapi import openapi_document
from streaming.page.routes.answers import BAD_REQUEST, GONE, NOT_FOUND, UNAVAILABLE, Answer, Site, document

_EVENTS = "/api/v1/events"


class Documents:
    """Answers requests for the JSON documents that have no HTML page.

    `events` is None if the monitor has no tables.
    """

    def __init__(self, site: Site, events: EventReader | None) -> None:
        self._site = site
        self._events = events

    def answer(self, path: str, query: str) -> Answer | None:
        """Answer a request for events or for the OpenAPI description.

        Return None if the request is for a different address.
        """
        if path == DESCRIPTION:
            return document(openapi_document())
        return self._read_events(Address(_EVENTS, query)) if path == _EVENTS else None

    def _read_events(self, address: Address) -> Answer:
        clusters = {one.cluster for one in self._site.select_clusters(address.query)}
        limit = address.whole_number("limit", DEFAULT_EVENTS, MAX_EVENTS)
        if self._events is None or not clusters:
            return document({"error": "no such cluster"}, NOT_FOUND)
        try:
            return document(self._events.read(address.argument("since"), limit, clusters))
        except BadSinceError as error:
            return document({"error": str(error)}, BAD_REQUEST)
        except GoneError as error:
            return document({"error": f"the cursor is no longer valid ({error}): use a time as `since`"}, GONE)
        except (NoTableError, TableReadError) as error:
            return document({"error": f"the tables cannot be read now ({error})"}, UNAVAILABLE)
