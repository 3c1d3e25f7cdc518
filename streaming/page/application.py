"""The pages as a WSGI application: from an address to a status, headers and a body.

1. `/` lists groups (`?q=` names some, `?limit=` more), `/groups/<id>` shows one; `/api/v1/groups` and
   `/api/v1/groups/<id>` are the same as JSON. `?cluster=` names one of several (`clusters`); who leaves it out where
   one has to be named gets 300 and the choice. `/-/healthy` says 200 as long as anybody answers.
2. Only GET is answered (and HEAD, by the server); other methods are 405, other addresses 404.
3. Before the log was read to its end once, pages say how far that is, and the API answers 503.
4. Every answer forbids the browser whatever our pages do not need, and to keep it.
5. `/-/ready` says 200 or 503, as the metric `rebalance_monitor_ready`. Of several clusters one that is ready is enough,
   so that a probe takes away none for another's sake; `?cluster=` asks for one. It tells numbers, never names.
"""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streaming.http.exchange import Environ, Headers, StartResponse
from streaming.http.negotiation import accepts_gzip
from streaming.page.addresses import GROUP_API, GROUP_PAGE, addressed_group, argument
from streaming.page.as_json import encoded, group_json, groups_json, monitors_json
from streaming.page.clusters import ClusterView, holders, meant
from streaming.page.group import group_detail
from streaming.page.overview import MOST_ROWS, Listed, Overview, together
from streaming.page.rendering import asset, page
from streaming.page.watched import CATCHING_UP, READY, Watched
from streaming.page.what_if import answers

MOST_LISTED = 20_000
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


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    content_type: str
    status: str = _OK
    cache: str = "no-store"
    headers: tuple[tuple[str, str], ...] = ()


class Pages:
    """Everything on the port but `/metrics`; `strategies` are those of the what-if table."""

    def __init__(self, clusters: Sequence[ClusterView], strategies: Sequence[str]) -> None:
        self._clusters = clusters
        self._strategies = strategies
        self._exact: Mapping[str, Callable[[Environ], _Answer]] = {
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
        if path in self._exact:
            return self._exact[path](environ)
        for prefix, answer in ((GROUP_PAGE, self._group_page), (GROUP_API, self._group_api)):
            if path.startswith(prefix):
                query = environ.get("QUERY_STRING", "")
                return answer(addressed_group(path.removeprefix(prefix), query), self._meant(query))
        return _Answer(b"Not Found\n", _TEXT, _NOT_FOUND)

    def _meant(self, query: str) -> Sequence[ClusterView]:
        return meant(self._clusters, argument(query, "cluster"))

    def _ready(self, environ: Environ) -> _Answer:
        """Rule 5."""
        phases = [one.watch().phase for one in self._meant(environ.get("QUERY_STRING", ""))]
        ready = phases.count(READY)
        if not phases:
            return _Answer(b"No such cluster\n", _TEXT, _NOT_FOUND)
        if len(phases) > 1:
            said = f"{ready} of {len(phases)} clusters are ready"
        else:
            said = "Ready" if ready else f"Not ready: {phases[0].replace('_', ' ')}"
        return _Answer(f"{said}\n".encode(), _TEXT, _OK if ready else _UNAVAILABLE)

    def _listed(self, environ: Environ) -> _Listing:
        query = environ.get("QUERY_STRING", "")
        clusters = [(one, one.watch()) for one in self._meant(query)]
        overview = together([one.overview(watched) for one, watched in clusters] or [Overview((), 0)])
        return _Listing([watched for _, watched in clusters], overview, overview.named(argument(query, "q")))

    def _overview_page(self, environ: Environ) -> _Answer:
        listing, query = self._listed(environ), environ.get("QUERY_STRING", "")
        if not listing.clusters:
            return self._no_such_cluster()
        if listing.is_catching_up:
            return self._page("catching_up.html", listing.clusters)
        return self._page(
            "overview.html",
            listing.clusters,
            overview=listing.overview,
            found=listing.found,
            rows=listing.found[: _limit(query, MOST_ROWS)],
            wanted=argument(query, "q"),
            named=argument(query, "cluster"),
        )

    def _groups_api(self, environ: Environ) -> _Answer:
        listing, query = self._listed(environ), environ.get("QUERY_STRING", "")
        if not listing.clusters:
            return _error(listing.clusters, "no such cluster", _NOT_FOUND)
        if listing.is_catching_up:
            return _catching_up(listing.clusters)
        rows = listing.found[: _limit(query, MOST_LISTED)]
        return _Answer(encoded(groups_json(listing.clusters, rows, len(listing.found))), _JSON)

    def _group_page(self, group_id: str | None, clusters: Sequence[ClusterView]) -> _Answer:
        if not clusters:
            return self._no_such_cluster()
        having = () if group_id is None else holders(clusters, group_id)
        watched = [one.watch() for one in having]
        if watched and all(one.phase == CATCHING_UP for one in watched):
            return self._page("catching_up.html", watched)
        if len(having) > 1:
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
            rebalances=having[0].rebalances.last(record),
            what_if=answers(detail.group, record, self._strategies),
        )

    def _group_api(self, group_id: str | None, clusters: Sequence[ClusterView]) -> _Answer:
        if not clusters:
            return _error([], "no such cluster", _NOT_FOUND)
        having = () if group_id is None else holders(clusters, group_id)
        watched = [one.watch() for one in having]
        if watched and all(one.phase == CATCHING_UP for one in watched):
            return _catching_up(watched)
        if len(having) > 1:
            return _error(watched, "several clusters have such a group: name one by ?cluster=", _CHOICES)
        detail = group_detail(watched[0], group_id) if watched and group_id is not None else None
        if detail is None:
            return _error(watched or [one.watch() for one in clusters], "no such group", _NOT_FOUND)
        record = watched[0].view.groups.get(detail.group.group_id)
        reported, computed = having[0].rebalances.last(record), answers(detail.group, record, self._strategies)
        return _Answer(encoded(group_json(watched[0], detail, reported, computed)), _JSON)

    def _no_such_cluster(self) -> _Answer:
        return self._page("no_cluster.html", [one.watch() for one in self._clusters], _NOT_FOUND)

    def _page(self, template: str, clusters: Sequence[Watched], status: str = _OK, **values: Any) -> _Answer:  # noqa: ANN401 - whatever a template shows
        several = len(self._clusters) > 1
        return _Answer(page(template, clusters=clusters, several=several, **values), _HTML, status)


@dataclass(frozen=True, slots=True)
class _Listing:
    """Groups of some clusters; `found` are those asked for."""

    clusters: Sequence[Watched]
    overview: Overview
    found: Sequence[Listed]

    @property
    def is_catching_up(self) -> bool:
        """Whether there is nothing to show yet."""
        return all(one.phase == CATCHING_UP for one in self.clusters)


def _error(clusters: Sequence[Watched], error: str, status: str, *headers: tuple[str, str]) -> _Answer:
    return _Answer(encoded({**monitors_json(clusters), "error": error}), _JSON, status, headers=headers)


def _catching_up(clusters: Sequence[Watched]) -> _Answer:
    return _error(clusters, "catching up with the log", _UNAVAILABLE, ("Retry-After", "5"))


def _limit(query: str, most: int) -> int:
    """The number of rows asked for, or so many as is good."""
    given = argument(query, "limit")
    return min(int(given), MOST_LISTED) if given.isascii() and given.isdecimal() and len(given) < 9 else most


def _asset(name: str, content_type: str) -> Callable[[Environ], _Answer]:
    body = asset(name)
    return lambda _: _Answer(body, content_type, cache="max-age=86400")
