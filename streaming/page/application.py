"""Serves the pages and the JSON API as a WSGI application.

1. `/` lists groups (`finding.search`), at most `?limit=` of them. `/groups/<id>` shows one group, and `?span=` sets the
   length of its timeline. `/api/v1/groups`, `/api/v1/groups/<id>` and `/api/v1/events` return JSON. The modules in
   `routes` answer all other addresses. `?cluster=` selects one of several clusters (`clusters`). If several clusters
   have the group and `?cluster=` is missing, the response is 300 with a list of clusters.
2. The application answers only GET. The server converts HEAD to GET. For other methods, the status is 405. For unknown
   addresses, the status is 404. `/-/healthy` returns the status 200 while the process can answer requests.
3. After a start, the monitor reads `__consumer_offsets` to its end. While the monitor is catching up, pages show only
   the progress, and the API returns the status 503.
4. Browsers may store only the files in `assets`: the headers of all other responses forbid storage. The headers also
   allow browsers to load and run only what our pages need. The server adds further headers (`http/exchange.py`, rule
   2).
5. `/-/ready` returns 200 if the metric `rebalance_monitor_ready` is 1, or else 503. With several clusters, one ready
   cluster is enough for 200, because after a 503, Kubernetes sends no requests to the monitor. Then the pages of the
   ready clusters would also be unavailable. With `?cluster=`, `/-/ready` checks only one cluster. The response contains
   no names.
6. `?at=`, `?from=` and `?to=` ask about the past (`routes.past`).
7. The API refuses unknown parameters and invalid values (`api.parameters`). The pages ignore them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from streaming.config.links import LinkSettings
from streaming.delta.commit_order import GoneError
from streaming.delta.stored_table import NoTableError, TableReadError
from streaming.http.compression import compress_gzip
from streaming.http.exchange import Environ, StartResponse
from streaming.http.negotiation import accepts_gzip
from streaming.page.addresses import (
    GROUP_API,
    GROUP_PAGE,
    MAX_LISTED,
    MAX_PARAMETERS,
    Address,
    addressed_name,
    group_address,
    is_readable,
)
from streaming.page.api.as_json import group_json, groups_json
from streaming.page.api.documents import DEFAULT_EVENTS, MAX_EVENTS
from streaming.page.api.event_reader import EventReader
from streaming.page.api.events import BadSinceError
from streaming.page.api.openapi import ADDRESS as OPENAPI_DOCUMENT
from streaming.page.api.openapi import openapi_document
from streaming.page.api.parameters import parameter_refusal
from streaming.page.clusters import ClusterView, Refusal, find_in_clusters
from streaming.page.finding.paging import page_of
from streaming.page.finding.search import SORTS, search_of
from streaming.page.group import group_detail
from streaming.page.incidents.listing import open_incidents
from streaming.page.overview import DEFAULT_ROWS, Overview, merge_overviews
from streaming.page.page_input import CATCHING_UP, READY, WatchedCluster
from streaming.page.rendering import asset
from streaming.page.routes.answers import (
    BAD_REQUEST,
    GONE,
    NOT_FOUND,
    OK,
    TEXT,
    UNAVAILABLE,
    Answer,
    Site,
    catching_up,
    document,
    error,
    refuse_group,
)
from streaming.page.routes.incidents import answer_incidents
from streaming.page.routes.past import PastPages
from streaming.page.routes.places import answer_place
from streaming.page.timeline.section import timeline_section
from streaming.page.what_if import compute_what_if

_GZIP_FROM_BYTES = 1000
_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_ASSETS = {"/style.css": "text/css", "/icon.svg": "image/svg+xml"}


class Pages:
    """Answers all addresses of the port except `/metrics`.

    `strategies` are the strategies in the what-if tables. `events` is None if the monitor has no tables.
    """

    def __init__(
        self,
        clusters: Sequence[ClusterView],
        strategies: Sequence[str],
        links: LinkSettings | None = None,
        events: EventReader | None = None,
    ) -> None:
        self._site = Site(clusters, links or LinkSettings())
        self._strategies = strategies
        self._events = events
        self._past = PastPages(self._site)
        self._handlers: Mapping[str, Callable[[str], Answer]] = {
            "/": self._overview_page,
            "/api/v1/groups": self._groups_api,
            "/api/v1/events": self._events_api,
            OPENAPI_DOCUMENT: lambda _: document(openapi_document()),
            "/-/healthy": lambda _: Answer(b"Healthy\n", TEXT),
            "/-/ready": self._ready,
            **{path: _asset(path.removeprefix("/"), content_type) for path, content_type in _ASSETS.items()},
        }

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request (PEP 3333)."""
        answer = self._answer(environ)
        body, headers = answer.body, [("Content-Type", answer.content_type), ("Cache-Control", answer.cache)]
        headers += [("Content-Security-Policy", _POLICY), *answer.headers]
        if len(body) >= _GZIP_FROM_BYTES:
            headers.append(("Vary", "Accept-Encoding"))
            if accepts_gzip(environ.get("HTTP_ACCEPT_ENCODING", "")):
                body = compress_gzip([body])
                headers.append(("Content-Encoding", "gzip"))
        start_response(answer.status, headers)
        return [body]

    def _answer(self, environ: Environ) -> Answer:
        if environ["REQUEST_METHOD"] != "GET":
            return Answer(b"GET or HEAD\n", TEXT, "405 Method Not Allowed", headers=(("Allow", "GET, HEAD"),))
        path: str = environ["PATH_INFO"]
        query = environ.get("QUERY_STRING", "")
        if (refused := _refuse_query(path, query)) is not None:
            return refused
        if (past := self._past.answer(path, query)) is not None:
            return past
        if path in self._handlers:
            return self._handlers[path](query)
        for prefix, answer_group in ((GROUP_PAGE, self._group_page), (GROUP_API, self._group_api)):
            if path.startswith(prefix):
                group_id = addressed_name(path.removeprefix(prefix), query)
                return answer_group(group_id, self._site.select_clusters(query), query)
        found = answer_place(self._site, path, query) or answer_incidents(self._site, path, query)
        return found or Answer(b"Not Found\n", TEXT, NOT_FOUND)

    def _ready(self, query: str) -> Answer:
        watched = [one.watch() for one in self._site.select_clusters(query)]
        ready = sum(one.phase == READY for one in watched)
        if not watched:
            return Answer(b"No such cluster\n", TEXT, NOT_FOUND)
        if len(watched) > 1:
            text = f"{ready} of {len(watched)} clusters are ready"
        else:
            text = "Ready" if ready else f"Not ready: {watched[0].why_not_ready}"
        return Answer(f"{text}\n".encode(), TEXT, OK if ready else UNAVAILABLE)

    def _list_groups(self, query: str) -> tuple[Sequence[WatchedCluster], Overview]:
        clusters = [(one, one.watch()) for one in self._site.select_clusters(query)]
        overviews = [one.overview(watched) for one, watched in clusters]
        return [watched for _, watched in clusters], merge_overviews(overviews or [Overview((), 0)])

    def _overview_page(self, query: str) -> Answer:
        address = Address("/", query)
        clusters, overview = self._list_groups(query)
        if not clusters:
            return self._site.no_such_cluster()
        if _are_catching_up(clusters):
            return self._site.page("catching_up.html", clusters)
        search = search_of(address)
        matches = overview.find(search)
        return self._site.page(
            "overview.html",
            clusters,
            overview=overview,
            matches=matches,
            rows=matches[: address.whole_number("limit", DEFAULT_ROWS, MAX_LISTED)],
            search=search,
            sorts=SORTS,
            address=address,
            selected_cluster=address.argument("cluster"),
            incidents=open_incidents(clusters),
        )

    def _groups_api(self, query: str) -> Answer:
        address = Address("/", query)
        clusters, overview = self._list_groups(query)
        if not clusters:
            return error(clusters, "no such cluster", NOT_FOUND)
        if _are_catching_up(clusters):
            return catching_up(clusters)
        matches = overview.find(search_of(address))
        rows = matches[: address.whole_number("limit", MAX_LISTED, MAX_LISTED)]
        return document(groups_json(clusters, rows, len(matches)))

    def _events_api(self, query: str) -> Answer:
        address, clusters = Address("/", query), {one.cluster for one in self._site.select_clusters(query)}
        if self._events is None or not clusters:
            return document({"error": "no such cluster"}, NOT_FOUND)
        limit = address.whole_number("limit", DEFAULT_EVENTS, MAX_EVENTS)
        try:
            return document(self._events.read(address.argument("since"), limit, clusters))
        except BadSinceError as failure:
            return document({"error": str(failure)}, BAD_REQUEST)
        except GoneError as failure:
            return document({"error": f"the cursor is no longer valid ({failure}): use a time as `since`"}, GONE)
        except (NoTableError, TableReadError) as failure:
            return document({"error": f"the tables cannot be read now ({failure})"}, UNAVAILABLE)

    def _group_page(self, group_id: str | None, clusters: Sequence[ClusterView], query: str) -> Answer:
        found = find_in_clusters(clusters, group_id, group_detail)
        address = Address(group_address(group_id or "").partition("?")[0], query)
        if isinstance(found, Refusal):
            return self._site.refuse(found, "group", group_id, address)
        detail, group = found.detail, found.detail.group
        record = found.watched.view.groups.get(group.group_id)
        return self._site.page(
            "group.html",
            [found.watched],
            detail=detail,
            group=group,
            address=address,
            members=page_of(detail.members, address, "members_from", "members"),
            partitions=page_of(detail.partitions, address, "partitions_from", "lag"),
            timeline=timeline_section(found.view.timelines, found.watched, group.group_id, query),
            rebalances=found.view.rebalances.last(record),
            what_if=compute_what_if(group, record, self._strategies, detail.produce_rates),
        )

    def _group_api(self, group_id: str | None, clusters: Sequence[ClusterView], _query: str) -> Answer:
        found = find_in_clusters(clusters, group_id, group_detail)
        if isinstance(found, Refusal):
            return refuse_group(found)
        detail, record = found.detail, found.watched.view.groups.get(found.detail.group.group_id)
        rebalances = found.view.rebalances.last(record)
        what_if = compute_what_if(detail.group, record, self._strategies, detail.produce_rates)
        return document(group_json(found.watched, detail, rebalances, what_if))


def _are_catching_up(clusters: Sequence[WatchedCluster]) -> bool:
    """Return True if all clusters are still catching up, so the monitor cannot list groups yet."""
    return all(one.phase == CATCHING_UP for one in clusters)


def _refuse_query(path: str, query: str) -> Answer | None:
    """Return the response to a query that the address does not allow, or None (rule 7). Probes allow every query."""
    if not is_readable(query) and not path.startswith("/-/"):
        text: str | None = f"the address has more than {MAX_PARAMETERS} parameters, or text that is not UTF-8"
    else:
        text = parameter_refusal(path, query)
    if text is None:
        return None
    return error((), text, BAD_REQUEST) if path.startswith("/api/") else Answer(f"{text}\n".encode(), TEXT, BAD_REQUEST)


def _asset(name: str, content_type: str) -> Callable[[str], Answer]:
    body = asset(name)
    return lambda _: Answer(body, content_type, cache="max-age=86400")
