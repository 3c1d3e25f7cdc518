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
    """A kind of page. `parts` are the long lists in the result of `detail`: the page shows 50 rows of each."""

    kind: str
    address: Callable[[str], str]
    detail: Callable[[WatchedCluster, str], Any]
    parts: tuple[str, ...]


_PLACES = {
    TOPIC_PAGE: _Place("topic", topic_address, topic_detail, ("groups", "partitions")),
    HOST_PAGE: _Place("host", host_address, host_detail, ("members",)),
}


def answer_place(site: Site, path: str, query: str) -> Answer | None:
    """Answer a request about a topic or a host. Return None if the request is for a different address."""
    prefix = next((prefix for prefix in _PLACES if path.startswith(prefix)), None)
    if prefix is None:
        return None
    place, name = _PLACES[prefix], addressed_name(path.removeprefix(prefix), query, "name")
    found = find_in_clusters(site.select_clusters(query), name, place.detail)
    address = Address(place.address(name or "").partition("?")[0], query)
    if isinstance(found, Refusal):
        return site.refuse(found, place.kind, name, address)
    pages: dict[str, Any] = {
        part: page_of(getattr(found.detail, part), address, f"{part}_from", part) for part in place.parts
    }
    return site.page(f"{place.kind}.html", [found.watched], detail=found.detail, address=address, **pages)
