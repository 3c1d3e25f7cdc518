"""Answers requests about one topic (`/topics/<name>`) or one client host (`/hosts/<name>`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from streaming.page.addresses import HOST_PAGE, TOPIC_PAGE, Address, addressed_name, host_address, topic_address
from streaming.page.finding.host import host_detail
from streaming.page.finding.paging import page_of
from streaming.page.finding.topic import topic_detail
from streaming.page.routes.answers import CHOICES, NOT_FOUND, Answer, Site
from streaming.page.watched import CATCHING_UP, WatchedCluster


@dataclass(frozen=True, slots=True)
class _Place:
    """A kind of page: topic or client host.

    `parts` are the names of the long lists in the detail. The response shows only one part of each list (`page_of`).
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
        """Answer a request about a topic or a host. Return None for other addresses."""
        for prefix, place in _PLACES.items():
            if path.startswith(prefix):
                return self._page(place, addressed_name(path.removeprefix(prefix), query, "name"), query)
        return None

    def _page(self, place: _Place, name: str | None, query: str) -> Answer:
        """Select the cluster by rules 1 to 3 of `clusters`."""
        clusters = [one.watch() for one in self._site.select_clusters(query)]
        if not clusters:
            return self._site.no_such_cluster()
        details = [] if name is None else [(one, place.detail(one, name)) for one in clusters]
        found = [(one, detail) for one, detail in details if detail is not None]
        if not found or name is None:
            if not found and (waiting := [one for one in clusters if one.phase == CATCHING_UP]):
                return self._site.page("catching_up.html", waiting)
            return self._site.page("no_such.html", clusters, NOT_FOUND, kind=place.kind, name=name)
        address = Address(place.address(name).partition("?")[0], query)
        if len(found) > 1:
            with_name = [one for one, _ in found]
            return self._site.page(
                "which_cluster.html", with_name, CHOICES, kind=place.kind, name=name, address=address
            )
        watched, detail = found[0]
        pages: dict[str, Any] = {
            part: page_of(getattr(detail, part), address, f"{part}_from", part) for part in place.parts
        }
        return self._site.page(f"{place.kind}.html", [watched], detail=detail, **pages)
