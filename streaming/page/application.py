"""Serves the pages and the JSON API as a WSGI application.

1. `/` lists groups. `?q=` selects the groups whose id contains a text. `?limit=` sets the maximum number of rows.
   `/groups/<id>` shows one group. `/api/v1/groups` and `/api/v1/groups/<id>` return the same content as JSON.
   `?cluster=` selects one of several clusters (`clusters`). If a request needs `?cluster=` but does not contain it, the
   response has the status 300 and lists the clusters. `/-/healthy` returns the status 200 as long as the process can
   answer requests.
2. The application answers only GET. The server answers HEAD. For other methods, the status is 405. For other addresses,
   the status is 404.
3. Until the monitor has read the log to its end for the first time, pages show only the progress, and the API returns
   the status 503.
4. The headers of every response forbid the browser to store the response, except for the files in `assets`. The headers
   also forbid the browser to load or run anything that our pages do not need.
5. `/-/ready` returns 200 if the metric `rebalance_monitor_ready` is 1. Otherwise, it returns 503. If the monitor
   watches several clusters, one ready cluster is enough for 200. Otherwise, one failed cluster would make the readiness
   probe fail. Then Kubernetes would send no requests to the monitor, not even for the other clusters. With `?cluster=`,
   `/-/ready` checks only one cluster. The response does not contain names of groups or clusters.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.http.exchange import Environ, Headers, StartResponse
from streaming.http.negotiation import accepts_gzip
from streaming.page.addresses import GROUP_API, GROUP_PAGE, addressed_group, argument
from streaming.page.as_json import encode, group_json, groups_json, monitors_json
from streaming.page.clusters import ClusterView, clusters_with_group, select_clusters
from streaming.page.group import group_detail
from streaming.page.overview import DEFAULT_ROWS, Overview, OverviewEntry, merge_overviews
from streaming.page.rendering import asset, page
from streaming.page.watched import CATCHING_UP, NOT_READY, READY, STALE, WatchedCluster
from streaming.page.what_if import compute_what_if

MAX_LISTED = 20_000
"""Maximum number of groups in one response."""
_GZIP_LEVEL, _GZIP_FROM_BYTES = 1, 1000
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ALWAYS: Headers = [
    ("Content-Security-Policy", _POLICY),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
]
_ASSETS = {"/style.css": ("style.css", "text/css"), "/icon.svg": ("icon.svg", "image/svg+xml")}
_HTML, _JSON, _TEXT = "text/html; charset=utf-8", "application/json", "text/plain; charset=utf-8"
_OK, _NOT_FOUND, _UNAVAILABLE = "200 OK", "404 Not Found", "503 Service Unavailable"
_CHOICES = "300 Multiple Choices"
_PHASE_WORDS = {
    CATCHING_UP: "catching up",
    STALE: "the last sample of the brokers is too old",
    NOT_READY: "cannot read the log or reach the brokers",
}


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    content_type: str
    status: str = _OK
    cache: str = "no-store"
    headers: tuple[tuple[str, str], ...] = ()


class Pages:
    """The application for all addresses of the port except `/metrics`. The what-if table shows `strategies`."""

    def __init__(self, clusters: Sequence[ClusterView], strategies: Sequence[str]) -> None:
        self._clusters = clusters
        self._strategies = strategies
        self._handlers: Mapping[str, Callable[[Environ], _Answer]] = {
            "/": self._overview_page,
            "/api/v1/groups": self._groups_api,
            "/-/healthy": lambda _: _Answer(b"Healthy\n", _TEXT),
            "/-/ready": self._ready,
            **{address: _asset(*asset) for address, asset in _ASSETS.items()},
        }

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        answer = self._answer(environ)
        body, headers = answer.body, [("Content-Type", answer.content_type), ("Cache-Control", answer.cache)]
        headers += [*_ALWAYS, *answer.headers]
        if len(body) >= _GZIP_FROM_BYTES:
            headers.append(("Vary", "Accept-Encoding"))
            if accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
                body = gzip.compress(body, _GZIP_LEVEL)
                headers.append(("Content-Encoding", "gzip"))
        start_response(answer.status, headers)
        return [body]

    def _answer(self, environ: Environ) -> _Answer:
        if environ["REQUEST_METHOD"] != "GET":
            return _Answer(b"GET or HEAD\n", _TEXT, "405 Method Not Allowed", headers=(("Allow", "GET, HEAD"),))
        path: str = environ["PATH_INFO"]
        if path in self._handlers:
            return self._handlers[path](environ)
        for prefix, answer in ((GROUP_PAGE, self._group_page), (GROUP_API, self._group_api)):
            if path.startswith(prefix):
                query = environ.get("QUERY_STRING", "")
                return answer(addressed_group(path.removeprefix(prefix), query), self._select_clusters(query))
        return _Answer(b"Not Found\n", _TEXT, _NOT_FOUND)

    def _select_clusters(self, query: str) -> Sequence[ClusterView]:
        return select_clusters(self._clusters, argument(query, "cluster"))

    def _ready(self, environ: Environ) -> _Answer:
        """Answer `/-/ready` (rule 5)."""
        phases = [one.watch().phase for one in self._select_clusters(environ.get("QUERY_STRING", ""))]
        ready = phases.count(READY)
        if not phases:
            return _Answer(b"No such cluster\n", _TEXT, _NOT_FOUND)
        if len(phases) > 1:
            text = f"{ready} of {len(phases)} clusters are ready"
        else:
            text = "Ready" if ready else f"Not ready: {_PHASE_WORDS[phases[0]]}"
        return _Answer(f"{text}\n".encode(), _TEXT, _OK if ready else _UNAVAILABLE)

    def _list_groups(self, environ: Environ) -> _Listing:
        query = environ.get("QUERY_STRING", "")
        clusters = [(one, one.watch()) for one in self._select_clusters(query)]
        overview = merge_overviews([one.overview(watched) for one, watched in clusters] or [Overview((), 0)])
        return _Listing([watched for _, watched in clusters], overview, overview.filter_ids(argument(query, "q")))

    def _overview_page(self, environ: Environ) -> _Answer:
        listing, query = self._list_groups(environ), environ.get("QUERY_STRING", "")
        if not listing.clusters:
            return self._no_such_cluster()
        if listing.is_catching_up:
            return self._page("catching_up.html", listing.clusters)
        return self._page(
            "overview.html",
            listing.clusters,
            overview=listing.overview,
            matches=listing.matches,
            rows=listing.matches[: _limit(query, DEFAULT_ROWS)],
            search=argument(query, "q"),
            selected_cluster=argument(query, "cluster"),
        )

    def _groups_api(self, environ: Environ) -> _Answer:
        listing, query = self._list_groups(environ), environ.get("QUERY_STRING", "")
        if not listing.clusters:
            return _error(listing.clusters, "no such cluster", _NOT_FOUND)
        if listing.is_catching_up:
            return _catching_up(listing.clusters)
        rows = listing.matches[: _limit(query, MAX_LISTED)]
        return _Answer(encode(groups_json(listing.clusters, rows, len(listing.matches))), _JSON)

    def _group_page(self, group_id: str | None, clusters: Sequence[ClusterView]) -> _Answer:
        if not clusters:
            return self._no_such_cluster()
        candidates = () if group_id is None else clusters_with_group(clusters, group_id)
        watched = [one.watch() for one in candidates]
        if watched and all(one.phase == CATCHING_UP for one in watched):
            return self._page("catching_up.html", watched)
        if len(candidates) > 1:
            return self._page("which_cluster.html", watched, _CHOICES, group_id=group_id)
        detail = group_detail(watched[0], group_id) if watched and group_id is not None else None
        if detail is None:
            shown = watched or [one.watch() for one in clusters]
            return self._page("no_group.html", shown, _NOT_FOUND, group_id=group_id)
        record = watched[0].view.groups.get(detail.group.group_id)
        return self._page(
            "group.html",
            watched,
            detail=detail,
            group=detail.group,
            rebalances=candidates[0].rebalances.last(record),
            what_if=compute_what_if(detail.group, record, self._strategies),
        )

    def _group_api(self, group_id: str | None, clusters: Sequence[ClusterView]) -> _Answer:
        if not clusters:
            return _error([], "no such cluster", _NOT_FOUND)
        candidates = () if group_id is None else clusters_with_group(clusters, group_id)
        watched = [one.watch() for one in candidates]
        if watched and all(one.phase == CATCHING_UP for one in watched):
            return _catching_up(watched)
        if len(candidates) > 1:
            return _error(watched, "several clusters have a group with this id: select one with ?cluster=", _CHOICES)
        detail = group_detail(watched[0], group_id) if watched and group_id is not None else None
        if detail is None:
            return _error(watched or [one.watch() for one in clusters], "no such group", _NOT_FOUND)
        record = watched[0].view.groups.get(detail.group.group_id)
        rebalances = candidates[0].rebalances.last(record)
        what_if = compute_what_if(detail.group, record, self._strategies)
        return _Answer(encode(group_json(watched[0], detail, rebalances, what_if)), _JSON)

    def _no_such_cluster(self) -> _Answer:
        return self._page("no_cluster.html", [one.watch() for one in self._clusters], _NOT_FOUND)

    def _page(self, template: str, clusters: Sequence[WatchedCluster], status: str = _OK, **values: Any) -> _Answer:  # noqa: ANN401 - templates accept all types
        several = len(self._clusters) > 1
        return _Answer(page(template, clusters=clusters, several=several, **values), _HTML, status)


@dataclass(frozen=True, slots=True)
class _Listing:
    """The groups of the selected clusters. `matches` are the groups whose id contains the search text."""

    clusters: Sequence[WatchedCluster]
    overview: Overview
    matches: Sequence[OverviewEntry]

    @property
    def is_catching_up(self) -> bool:
        """True if all clusters are still catching up. Then no groups can be shown yet."""
        return all(one.phase == CATCHING_UP for one in self.clusters)


def _error(clusters: Sequence[WatchedCluster], error: str, status: str, *headers: tuple[str, str]) -> _Answer:
    return _Answer(encode({**monitors_json(clusters), "error": error}), _JSON, status, headers=headers)


def _catching_up(clusters: Sequence[WatchedCluster]) -> _Answer:
    return _error(clusters, "the monitor is reading the log for the first time", _UNAVAILABLE, ("Retry-After", "5"))


def _limit(query: str, default: int) -> int:
    """Return the requested number of rows, at most MAX_LISTED. If no number is requested, return the default."""
    given = argument(query, "limit")
    return min(int(given), MAX_LISTED) if given.isascii() and given.isdecimal() and len(given) < 9 else default


def _asset(name: str, content_type: str) -> Callable[[Environ], _Answer]:
    body = asset(name)
    return lambda _: _Answer(body, content_type, cache="max-age=86400")
