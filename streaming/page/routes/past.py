"""Answers requests about the past: `?at=` on the overview and on a group, `?from=` and `?to=` on a group.

1. A request about the past has at least one of the parameters `at`, `from` and `to`. The paths are the same as for the
   present.
2. The status is 400 if a parameter is invalid, or not allowed for the address (`past.parameters`), or if the request
   filters or sorts the list by a name in `WITHOUT_PAST`. The status is 404 if the tables do not cover the moment or do
   not contain the group, and 503 if a table cannot be read. Each response shows which moments the tables cover.
3. A response about the past needs only the tables. So the monitor also answers requests about the past while it is
   catching up.
4. Only one request at a time reads the tables, because a list of all groups needs much data. Up to `MAX_WAITING_READS`
   other requests wait. All further requests receive the status 503. Clients can repeat them after `RETRY_SECONDS`.
5. If several clusters have the group, the status is 300. The client must repeat the request with `?cluster=`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from streaming.delta.stored_table import NoTableError, TableReadError
from streaming.page.addresses import MAX_LISTED, Address, addressed_name, encoded_path
from streaming.page.api.past_json import comparison_json, past_group_json, past_groups_json, past_json
from streaming.page.clusters import ClusterView
from streaming.page.drift_words import misplaced_in_short
from streaming.page.finding.search import WITHOUT_PAST, search_of
from streaming.page.overview import DEFAULT_ROWS, merge_overviews, sorted_overview
from streaming.page.past.parameters import AT, FROM, PARAMETERS, TO, group_prefix, has_past, is_answerable, refusal
from streaming.page.past.views import (
    CoveredCluster,
    covered,
    last_findings,
    past_changes,
    past_members,
    past_moment,
)
from streaming.page.rebalance_rows import rebalances_of
from streaming.page.recent_answers import ReadLimit, TooManyReadsError
from streaming.page.rendering import page
from streaming.page.routes.answers import BAD_REQUEST, CHOICES, HTML, NOT_FOUND, OK, UNAVAILABLE, Answer, Site, document
from streaming.page.timeline.section import section_of
from streaming.page.timeline.window import SPANS, span_of
from streaming.past.lag import lag_by_partition
from streaming.past.moments import Generation, parse_moment, parse_moment_or_generation
from streaming.past.reader import PastReader
from streaming.past.report import NOT_STORED, PastGroup

MAX_WAITING_READS = 3
RETRY_SECONDS = 5

_MOMENT_FORMAT = "a time in UTC such as 2026-11-22T22:04"
_Found = TypeVar("_Found")


@dataclass(frozen=True, slots=True)
class PastRequest:
    """One request about the past. `group_id` is None for the list of all groups."""

    address: Address
    is_json: bool
    is_group: bool
    group_id: str | None
    clusters: Sequence[ClusterView]
    now_ms: int


class _RefusedError(Exception):
    """Error: the request cannot be answered. `clusters` are the clusters that the response describes."""

    def __init__(self, text: str, status: str, clusters: Sequence[CoveredCluster] = ()) -> None:
        super().__init__(text)
        self.status = status
        self.clusters = clusters


class PastPages:
    """Answers requests about the past."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._limit = ReadLimit(at_once=1, waiting=MAX_WAITING_READS)

    def answer(self, path: str, query: str) -> Answer | None:
        """Answer a request about the past. Return None if the request is about the present (rule 1)."""
        address = Address(path, query)
        given = [name for name in PARAMETERS if address.argument(name)]
        if not given or not is_answerable(path):
            return None
        request = self._request(address)
        error = refusal(path, given)
        if error is not None:
            return self._refusal(request, error, BAD_REQUEST)
        if not request.clusters:
            return self._refusal(request, "no such cluster", NOT_FOUND)
        return self._read(request)

    def _read(self, request: PastRequest) -> Answer:
        try:
            with self._limit.place():
                if not request.is_group:
                    return self._list_groups(request)
                return self._compare(request) if request.address.argument(FROM) else self._show_group(request)
        except _RefusedError as refused:
            return self._refusal(request, str(refused), refused.status, refused.clusters)
        except (NoTableError, TableReadError) as error:
            return self._refusal(request, f"the tables cannot be read ({error})", UNAVAILABLE)
        except TooManyReadsError:
            text = "too many requests read the tables now: repeat the request in a few seconds"
            answer = self._refusal(request, text, UNAVAILABLE)
            return replace(answer, headers=(("Retry-After", str(RETRY_SECONDS)),))

    def _request(self, address: Address) -> PastRequest:
        path, prefix = address.path, group_prefix(address.path)
        clusters = self._site.select_clusters(address.query)
        return PastRequest(
            address=address,
            is_json=path.startswith("/api/"),
            is_group=prefix is not None,
            group_id=addressed_name(path.removeprefix(prefix), address.query) if prefix else None,
            clusters=clusters,
            now_ms=max((one.watch().now_ms for one in clusters), default=0),
        )

    def _list_groups(self, request: PastRequest) -> Answer:
        at_ms, search = _moment(request), search_of(request.address)
        unknown = [name for name in WITHOUT_PAST if name in search.filters or name == search.sort]
        if unknown:
            text = f"a list of the past cannot be filtered or sorted by {' or '.join(unknown)}"
            raise _RefusedError(f"{text}, because the list does not contain this value", BAD_REQUEST)
        clusters = _coverage(request, "this moment", at_ms)
        readers = {one.cluster: _reader(self._view(one)) for one in covered(clusters)}
        clusters = [
            replace(one, measurement=readers[one.cluster].measurement(at_ms)) if one.cluster in readers else one
            for one in clusters
        ]
        overview = merge_overviews(
            [sorted_overview(reader.groups(at_ms), cluster, is_lag_known=True) for cluster, reader in readers.items()]
        )
        causes = {
            (cluster, group_id): row
            for cluster, reader in readers.items()
            for group_id, row in reader.causes(at_ms).items()
        }
        matches = overview.find(search)
        if request.is_json:
            rows = matches[: request.address.whole_number("limit", MAX_LISTED, MAX_LISTED)]
            return document(past_groups_json(at_ms, clusters, rows, len(matches), causes))
        rows = matches[: request.address.whole_number("limit", DEFAULT_ROWS, MAX_LISTED)]
        return self._page(
            "past_overview.html",
            request,
            clusters,
            at_ms=at_ms,
            overview=overview,
            matches=matches,
            rows=rows,
            search=search,
            causes=causes,
        )

    def _show_group(self, request: PastRequest) -> Answer:
        at_ms = _moment(request)
        clusters = _coverage(request, "this moment", at_ms)
        cluster, past = self._find(clusters, request, lambda reader, group_id: reader.group(group_id, at_ms))
        if request.is_json:
            return document(past_group_json(at_ms, cluster, past))
        view, span = self._view(cluster), span_of(request.address.argument("span"))
        present = view.watch().reports.get(past.report.group_id)
        timeline = view.timelines.read_past(past, present.limits if present else None, at_ms, span)
        return self._page(
            "past_group.html",
            request,
            [replace(cluster, measurement=past.measurement)],
            at_ms=at_ms,
            from_ms=at_ms - SPANS[span],
            timeline=section_of(timeline),
            **_group_values(past),
        )

    def _compare(self, request: PastRequest) -> Answer:
        ends = [parse_moment_or_generation(request.address.argument(name)) for name in (FROM, TO)]
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            raise _RefusedError(f"`from` and `to` must be {_MOMENT_FORMAT}, or generations", BAD_REQUEST)
        moments_ms = [end for end in known if not isinstance(end, Generation)]
        clusters = _coverage(request, "`from` or `to`", *moments_ms)
        cluster, comparison = self._find(clusters, request, lambda reader, group_id: reader.compare(group_id, *known))
        if request.is_json:
            return document(comparison_json(cluster, request.group_id or "", comparison))
        return self._page(
            "past_comparison.html",
            request,
            [cluster],
            comparison=comparison,
            changes=past_changes(comparison.changes),
            rebalances=rebalances_of(comparison.rebalances),
        )

    def _find(
        self,
        clusters: Sequence[CoveredCluster],
        request: PastRequest,
        read: Callable[[PastReader, str], _Found | None],
    ) -> tuple[CoveredCluster, _Found]:
        """Return the only cluster whose tables contain the group, with the result of `read` for this cluster."""
        found: list[tuple[CoveredCluster, _Found]] = []
        if request.group_id is not None:
            read_each = [(one, read(_reader(self._view(one)), request.group_id)) for one in covered(clusters)]
            found = [(one, values) for one, values in read_each if values is not None]
        if len(found) == 1:
            return found[0]
        if found:
            text = "several clusters have a group with this id: select one with ?cluster="
            raise _RefusedError(text, CHOICES, clusters)
        text = (
            "the tables have no row of this group for this moment or generation. Either the group or the"
            "  generation did not exist, or the monitor deleted the rows because they were older than"
            " tables.retention_days"
        )
        raise _RefusedError(text, NOT_FOUND, clusters)

    def _view(self, cluster: CoveredCluster) -> ClusterView:
        return next(one for one in self._site.clusters if one.cluster == cluster.cluster)

    def _refusal(
        self, request: PastRequest, error: str, status: str, clusters: Sequence[CoveredCluster] = ()
    ) -> Answer:
        if request.is_json:
            return document({**past_json(parse_moment(request.address.argument(AT)), clusters), "error": error}, status)
        return self._page("past_refused.html", request, clusters, status, error=error)

    def _page(
        self,
        template: str,
        request: PastRequest,
        clusters: Sequence[CoveredCluster],
        http_status: str = OK,
        *,
        at_ms: int | None = None,
        **values: Any,  # noqa: ANN401 - templates accept all types
    ) -> Answer:
        several = len(self._site.clusters) > 1
        selected = clusters[0].cluster if len(clusters) == 1 else request.address.argument("cluster")
        body = page(
            template,
            clusters=clusters,
            several=several,
            links=self._site.links,
            link_cluster=(selected or None) if several else None,
            moment=None if at_ms is None else past_moment(at_ms, request.now_ms),
            not_stored=NOT_STORED,
            is_group=request.is_group,
            has_past=has_past(request.address.path),
            group_id=request.group_id,
            given={name: request.address.argument(name) for name in (*PARAMETERS, "span")},
            address=Address(encoded_path(request.address.path), request.address.query),
            **values,
        )
        return Answer(body, HTML, http_status)


def _reader(view: ClusterView) -> PastReader:
    return PastReader(view.rebalances.root, view.cluster)


def _moment(request: PastRequest) -> int:
    at_ms = parse_moment(request.address.argument(AT))
    if at_ms is None:
        raise _RefusedError(f"`at` must be {_MOMENT_FORMAT}", BAD_REQUEST)
    return at_ms


def _coverage(request: PastRequest, what: str, *moments_ms: int) -> Sequence[CoveredCluster]:
    """Return all clusters. Raises _RefusedError if no tables cover the moments. `what` describes the moments."""
    clusters = []
    for view in request.clusters:
        coverage = _reader(view).coverage()
        clusters.append(CoveredCluster(view.cluster, coverage, coverage.refusal(moments_ms, request.now_ms)))
    if not covered(clusters):
        raise _RefusedError(f"the tables do not cover {what}", NOT_FOUND, clusters)
    return clusters


def _group_values(past: PastGroup) -> Mapping[str, Any]:
    group, own = past.report, past.report.assignment.own
    names = {member_id: member.name for member_id, member in group.members.by_id.items()}
    return {
        "group": group,
        "partitions": past.partitions,
        "owners": group.members.owners,
        "are_owners_known": group.membership.members is not None and group.members.are_owners_known,
        "members": past_members(group, lag_by_partition(past.partitions)),
        "misplaced": misplaced_in_short(own, names) if own else (),
        "rebalances": rebalances_of(past.rebalances),
        "cause": past.findings.cause,
        "last_findings": last_findings(past),
        "incident": (past.last_findings or past.findings).incident,
    }
