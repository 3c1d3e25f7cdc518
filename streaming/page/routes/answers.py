"""Makes the responses of the pages and of the JSON API."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.config.links import LinkSettings
from streaming.page.addresses import Address, argument
from streaming.page.api.as_json import encode, monitors_json
from streaming.page.clusters import NO_CLUSTER, NONE, SEVERAL, ClusterView, Refusal
from streaming.page.page_input import CATCHING_UP, WatchedCluster
from streaming.page.rendering import page

HTML, JSON, TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
OK, CHOICES, FOUND = "200 OK", "300 Multiple Choices", "302 Found"
BAD_REQUEST, NOT_FOUND, GONE, UNAVAILABLE = "400 Bad Request", "404 Not Found", "410 Gone", "503 Service Unavailable"


@dataclass(frozen=True, slots=True)
class Answer:
    """A response without the headers that every response has."""

    body: bytes
    content_type: str
    status: str = OK
    cache: str = "no-store"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Site:
    """The clusters of the monitor, and the addresses of other systems to which pages link."""

    clusters: Sequence[ClusterView]
    links: LinkSettings

    def select_clusters(self, query: str) -> Sequence[ClusterView]:
        """Return the clusters that `?cluster=` selects (`clusters`, rules 1 and 2)."""
        name = argument(query, "cluster")
        return [one for one in self.clusters if not name or name == one.cluster]

    def page(self, template: str, clusters: Sequence[WatchedCluster], status: str = OK, **values: Any) -> Answer:  # noqa: ANN401 - templates accept all types
        """Return a page. `clusters` are the clusters that the page shows."""
        several = len(self.clusters) > 1
        return Answer(page(template, clusters=clusters, several=several, links=self.links, **values), HTML, status)

    def no_such_cluster(self) -> Answer:
        """Return the page for an unknown cluster."""
        return self.page("no_cluster.html", [one.watch() for one in self.clusters], NOT_FOUND)

    def refuse(self, refusal: Refusal, kind: str, name: str | None, address: Address) -> Answer:
        """Return the page for a `Refusal`: the search for a group, topic or host did not find exactly one cluster."""
        if refusal.reason == NO_CLUSTER:
            return self.no_such_cluster()
        template, status = {
            CATCHING_UP: ("catching_up.html", OK),
            SEVERAL: ("which_cluster.html", CHOICES),
            NONE: ("no_group.html" if kind == "group" else "no_such.html", NOT_FOUND),
        }[refusal.reason]
        return self.page(template, refusal.clusters, status, kind=kind, name=name, address=address)


def document(fields: Mapping[str, Any], status: str = OK, *headers: tuple[str, str]) -> Answer:
    """Return a JSON document."""
    return Answer(encode(fields), JSON, status, headers=headers)


def error(clusters: Sequence[WatchedCluster], text: str, status: str, *headers: tuple[str, str]) -> Answer:
    """Return a JSON document with an error."""
    return document({**monitors_json(clusters), "error": text}, status, *headers)


def refuse_group(refusal: Refusal) -> Answer:
    """Return the JSON document for a `Refusal`: the search for a group did not find exactly one cluster."""
    if refusal.reason == CATCHING_UP:
        return catching_up(refusal.clusters)
    text, status = {
        NO_CLUSTER: ("no such cluster", NOT_FOUND),
        SEVERAL: ("several clusters have a group with this id: select one with ?cluster=", CHOICES),
        NONE: ("no such group", NOT_FOUND),
    }[refusal.reason]
    return error(refusal.clusters, text, status)


def catching_up(clusters: Sequence[WatchedCluster]) -> Answer:
    """Return the JSON document for clusters that are catching up. The error is the reason of the first cluster."""
    return error(clusters, clusters[0].why_not_ready, UNAVAILABLE, ("Retry-After", "5"))
