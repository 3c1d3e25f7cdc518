"""Answers requests about one topic (`/topics/<name>`) or one client host (`/hosts/<name>`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streaming.page.addresses import HOST_PAGE, TOPIC_PAGE, Address, addressed_name, host_address, topic_address
from streaming.page.clusters import Refusal, find_in_clusters
from streaming.page.finding.host import host_detail
from streaming.page.finding.paging import page_of
from streaming.page.finding.topic import topic_detail
from streaming.page.page_input import WatchedCluster
from streaming.page.routes.answers import Answer, Site


@dataclass(frozen=True, slots=True)
class _Place:
    """A kind of page: topic or client host.

    `parts` are the names of the long lists in the result of `detail`. The response shows one page of each list
    (`page_of`).
    """

    kind: str
    address: Callable[[str], str]
    detail: Callable[[WatchedCluster, str], Any]
    parts: tuple[str, ...]


_PLACES = {
    TOPIC_PAGE: _Place("topic", topic_address, topic_detail, ("groups", "partitions")),
    HOST_PAGE: _Place("host", host_address, host_detail, ("members",)),
}


class PlacePages:
    """Answers requests for the pages of topics and client hosts."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def answer(self, path: str, query: str) -> Answer | None:
        """Answer a request about a topic or a host. Return None if the request is for a different address."""
        for prefix, place in _PLACES.items():
            if path.startswith(prefix):
                return self._page(place, addressed_name(path.removeprefix(prefix), query, "name"), query)
        return None

    def _page(self, place: _Place, name: str | None, query: str) -> Answer:
        found = find_in_clusters(self._site.select_clusters(query), name, place.detail)
        address = Address(place.address(name or "").partition("?")[0], query)
        if isinstance(found, Refusal):
            return self._site.refuse(found, place.kind, name, address)
        pages: dict[str, Any] = {
            part: page_of(getattr(found.detail, part), address, f"{part}_from", part) for part in place.parts
        }
        return self._site.page(f"{place.kind}.html", [found.watched], detail=found.detail, address=address, **pages)
