"""The pages as a WSGI application: from an address to a status, headers and a body.

1. `/` lists groups (`?q=` names some, `?limit=` more), `/groups/<id>` shows one; `/api/v1/groups` and
   `/api/v1/groups/<id>` are the same as JSON. `/-/healthy` says 200 as long as anybody answers; `/-/ready` says 200 or
   503, as the metric `rebalance_monitor_ready`.
2. Only GET is answered (and HEAD, by the server); other methods are 405, other addresses 404.
3. Before the log was read to its end once, pages say how far that is, and the API answers 503.
4. Every answer forbids the browser whatever our pages do not need, and to keep it.
5. The overview is made once for one present: many who look cost no more than one.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.exposition import gzip_accepted

from streaming.page.addresses import GROUP_API, GROUP_PAGE, addressed_group, argument
from streaming.page.as_json import encoded, group_json, groups_json, monitor_json
from streaming.page.group import group_detail
from streaming.page.overview import MOST_ROWS, Overview, overview
from streaming.page.rebalances import RebalanceReader
from streaming.page.rendering import asset, page
from streaming.page.watched import CATCHING_UP, READY, Watched
from streaming.page.what_if import answers
from streaming.sinks.http import Environ, Headers, StartResponse
from streaming.sinks.registry import Present

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


@dataclass(frozen=True, slots=True)
class _Answer:
    body: bytes
    content_type: str
    status: str = _OK
    cache: str = "no-store"
    headers: tuple[tuple[str, str], ...] = ()


class Pages:
    """Everything on the port but `/metrics`; `strategies` are those of the what-if table."""

    def __init__(self, watch: Callable[[], Watched], rebalances: RebalanceReader, strategies: Sequence[str]) -> None:
        self._watch = watch
        self._rebalances = rebalances
        self._strategies = strategies
        self._last: tuple[Present, bool, Overview] | None = None
        self._making = threading.Lock()
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
        if len(body) >= _GZIP_FROM_BYTES and gzip_accepted(environ.get("HTTP_ACCEPT_ENCODING", "")):
            body = gzip.compress(body, _GZIP_LEVEL)
            headers += [("Content-Encoding", "gzip"), ("Vary", "Accept-Encoding")]
        start_response(answer.status, headers)
        return [body]

    def _answer(self, environ: Environ) -> _Answer:
        if environ["REQUEST_METHOD"] != "GET":
            return _Answer(b"GET or HEAD\n", _TEXT, "405 Method Not Allowed", headers=(("Allow", "GET, HEAD"),))
        path: str = environ["PATH_INFO"]
        if path in self._exact:
            return self._exact[path](environ)
        if path.startswith(GROUP_PAGE):
            return self._group_page(addressed_group(path.removeprefix(GROUP_PAGE), environ.get("QUERY_STRING", "")))
        if path.startswith(GROUP_API):
            return self._group_api(addressed_group(path.removeprefix(GROUP_API), environ.get("QUERY_STRING", "")))
        return _Answer(b"Not Found\n", _TEXT, _NOT_FOUND)

    def _ready(self, _: Environ) -> _Answer:
        phase = self._watch().phase
        if phase == READY:
            return _Answer(b"Ready\n", _TEXT)
        return _Answer(f"Not ready: {phase.replace('_', ' ')}\n".encode(), _TEXT, _UNAVAILABLE)

    def _overview(self, watched: Watched) -> Overview:
        with self._making:
            last = self._last
            if last is not None and last[0] is watched.present and last[1] == watched.is_fresh:
                return last[2]
            made = overview(watched)
            self._last = (watched.present, watched.is_fresh, made)
            return made

    def _overview_page(self, environ: Environ) -> _Answer:
        watched, query = self._watch(), environ.get("QUERY_STRING", "")
        if watched.phase == CATCHING_UP:
            return _Answer(page("catching_up.html", watched=watched), _HTML)
        listed, wanted = self._overview(watched), argument(query, "q")
        found = listed.named(wanted)
        rows = found[: _limit(query, MOST_ROWS)]
        return _Answer(
            page("overview.html", watched=watched, overview=listed, found=found, rows=rows, wanted=wanted), _HTML
        )

    def _groups_api(self, environ: Environ) -> _Answer:
        watched, query = self._watch(), environ.get("QUERY_STRING", "")
        if watched.phase == CATCHING_UP:
            return _catching_up(watched)
        found = self._overview(watched).named(argument(query, "q"))
        return _Answer(encoded(groups_json(watched, found[: _limit(query, MOST_LISTED)], len(found))), _JSON)

    def _group_page(self, group_id: str | None) -> _Answer:
        watched = self._watch()
        if watched.phase == CATCHING_UP:
            return _Answer(page("catching_up.html", watched=watched), _HTML)
        detail = None if group_id is None else group_detail(watched, group_id)
        if detail is None:
            return _Answer(page("no_group.html", watched=watched, group_id=group_id), _HTML, _NOT_FOUND)
        record = watched.present.groups[detail.group.group_id]
        return _Answer(
            page(
                "group.html",
                watched=watched,
                detail=detail,
                group=detail.group,
                rebalances=self._rebalances.last(record),
                what_if=answers(record, self._strategies),
            ),
            _HTML,
        )

    def _group_api(self, group_id: str | None) -> _Answer:
        watched = self._watch()
        if watched.phase == CATCHING_UP:
            return _catching_up(watched)
        detail = None if group_id is None else group_detail(watched, group_id)
        if detail is None:
            return _Answer(encoded({**monitor_json(watched), "error": "no such group"}), _JSON, _NOT_FOUND)
        record = watched.present.groups[detail.group.group_id]
        told, computed = self._rebalances.last(record), answers(record, self._strategies)
        return _Answer(encoded(group_json(watched, detail, told, computed)), _JSON)


def _catching_up(watched: Watched) -> _Answer:
    body = encoded({**monitor_json(watched), "error": "catching up with the log"})
    return _Answer(body, _JSON, _UNAVAILABLE, headers=(("Retry-After", "5"),))


def _limit(query: str, most: int) -> int:
    """The number of rows asked for, or so many as is good."""
    given = argument(query, "limit")
    return min(int(given), MOST_LISTED) if given.isascii() and given.isdecimal() and len(given) < 9 else most


def _asset(name: str, content_type: str) -> Callable[[Environ], _Answer]:
    body = asset(name)
    return lambda _: _Answer(body, content_type, cache="max-age=86400")
