"""Answers requests about the past: `?at=` on the overview and on a group, `?from=` and `?to=` on a group.

1. A request about the past has at least one of the parameters `at`, `from` and `to`. The paths are the same as for the
   present.
2. The status is 400 if a parameter is invalid, or not allowed for the address (`past.parameters`). The status is also
   400 if the request filters or sorts the list by a name in `WITHOUT_PAST`. The status is 404 if the tables do not
   cover the moment or do not contain the group. The status is 503 if a table cannot be read. Each response shows the
   first and the last moment that the tables cover.
3. A response about the past needs only the tables. So the monitor also answers requests about the past while it is
   catching up.
4. Only one request at a time reads the tables, because a list of all groups needs much data. Up to `MAX_WAITING_READS`
   other requests wait. All further requests receive the status 503. Clients can repeat a request after `RETRY_SECONDS`.
5. If several clusters have the group, the status is 300, and the request must contain `?cluster=`.
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
from streaming.page.timeline.section import TimelineSection, section_of
from streaming.page.timeline.window import SPANS, span_of
from streaming.past.comparison import Comparison
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

    @property
    def shown_address(self) -> Address:
        """The address of the request with a percent-encoded path, for links."""
        return Address(encoded_path(self.address.path), self.address.query)


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
            return self._refusal(request, (), error, BAD_REQUEST)
        if not request.clusters:
            return self._refusal(request, (), "no such cluster", NOT_FOUND)
        return self._read(request)

    def _read(self, request: PastRequest) -> Answer:
        try:
            with self._limit.place():
                if not request.is_group:
                    return self._list_groups(request)
                return self._compare(request) if request.address.argument(FROM) else self._show_group(request)
        except (NoTableError, TableReadError) as error:
            return self._refusal(request, (), f"the tables cannot be read ({error})", UNAVAILABLE)
        except TooManyReadsError:
            text = "too many requests read the tables now: repeat the request in a few seconds"
            refused = self._refusal(request, (), text, UNAVAILABLE)
            return replace(refused, headers=(("Retry-After", str(RETRY_SECONDS)),))

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
        at_ms = parse_moment(request.address.argument(AT))
        if at_ms is None:
            return self._refusal(request, (), f"`at` must be {_MOMENT_FORMAT}", BAD_REQUEST)
        search = search_of(request.address)
        unknown = [name for name in WITHOUT_PAST if name in search.filters or name == search.sort]
        if unknown:
            text = f"a list of the past cannot be filtered or sorted by {' or '.join(unknown)}"
            return self._refusal(request, (), f"{text}, because the list does not contain this value", BAD_REQUEST)
        clusters = self._coverage(request, at_ms)
        if not covered(clusters):
            return self._refusal(request, clusters, "the tables do not cover this moment", NOT_FOUND)
        readers = {one.cluster: _reader(self._view(one)) for one in covered(clusters)}
        clusters = [
            replace(one, measurement=readers[one.cluster].measurement(at_ms)) if one.cluster in readers else one
            for one in clusters
        ]
        overviews = [
            sorted_overview(reader.groups(at_ms), cluster, is_lag_known=True) for cluster, reader in readers.items()
        ]
        causes = {
            (cluster, group_id): row
            for cluster, reader in readers.items()
            for group_id, row in reader.causes(at_ms).items()
        }
        overview = merge_overviews(overviews)
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
        at_ms = parse_moment(request.address.argument(AT))
        if at_ms is None:
            return self._refusal(request, (), f"`at` must be {_MOMENT_FORMAT}", BAD_REQUEST)
        clusters = self._coverage(request, at_ms)
        if not covered(clusters):
            return self._refusal(request, clusters, "the tables do not cover this moment", NOT_FOUND)
        found = self._find(covered(clusters), request, lambda reader, group_id: reader.group(group_id, at_ms))
        if len(found) != 1:
            return self._refuse_none_or_several(request, clusters, found)
        cluster, past = found[0]
        if request.is_json:
            return document(past_group_json(at_ms, cluster, past))
        cluster = replace(cluster, measurement=past.measurement)
        span = span_of(request.address.argument("span"))
        return self._page(
            "past_group.html",
            request,
            [cluster],
            at_ms=at_ms,
            from_ms=at_ms - SPANS[span],
            timeline=_timeline(self._view(cluster), past, at_ms, span),
            **_group_values(past),
        )

    def _compare(self, request: PastRequest) -> Answer:
        ends = [parse_moment_or_generation(request.address.argument(name)) for name in (FROM, TO)]
        known = [end for end in ends if end is not None]
        if len(known) < len(ends):
            return self._refusal(request, (), f"`from` and `to` must be {_MOMENT_FORMAT}, or generations", BAD_REQUEST)
        clusters = self._coverage(request, *(end for end in known if not isinstance(end, Generation)))
        if not covered(clusters):
            return self._refusal(request, clusters, "the tables do not cover `from` or `to`", NOT_FOUND)
        found = self._find(covered(clusters), request, lambda reader, group_id: reader.compare(group_id, *known))
        if len(found) != 1:
            return self._refuse_none_or_several(request, clusters, found)
        cluster, comparison = found[0]
        if request.is_json:
            return document(comparison_json(cluster, request.group_id or "", comparison))
        return self._page("past_comparison.html", request, [cluster], **_comparison_values(comparison))

    def _find(
        self,
        clusters: Sequence[CoveredCluster],
        request: PastRequest,
        read: Callable[[PastReader, str], _Found | None],
    ) -> Sequence[tuple[CoveredCluster, _Found]]:
        """Return the clusters whose tables contain the group, each with the result of `read` for this cluster."""
        if request.group_id is None:
            return ()
        read_each = [(one, read(_reader(self._view(one)), request.group_id)) for one in clusters]
        return [(one, found) for one, found in read_each if found is not None]

    def _refuse_none_or_several(
        self, request: PastRequest, clusters: Sequence[CoveredCluster], found: Sequence[object]
    ) -> Answer:
        if found:
            text = "several clusters have a group with this id: select one with ?cluster="
            return self._refusal(request, clusters, text, CHOICES)
        text = (
            "the tables have no row of this group for this moment. Either the group did not exist, or the monitor"
            " deleted the rows because they were older than tables.retention_days"
        )
        return self._refusal(request, clusters, text, NOT_FOUND)

    def _view(self, cluster: CoveredCluster) -> ClusterView:
        return next(one for one in self._site.clusters if one.cluster == cluster.cluster)

    def _coverage(self, request: PastRequest, *moments_ms: int) -> Sequence[CoveredCluster]:
        return [_covered_cluster(one, request.now_ms, moments_ms) for one in request.clusters]

    def _refusal(self, request: PastRequest, clusters: Sequence[CoveredCluster], error: str, status: str) -> Answer:
        if request.is_json:
            at_ms = parse_moment(request.address.argument(AT))
            return document({**past_json(at_ms, clusters), "error": error}, status)
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
        selected = request.address.argument("cluster") if several else ""
        if several and len(clusters) == 1:
            selected = clusters[0].cluster
        body = page(
            template,
            clusters=clusters,
            several=several,
            links=self._site.links,
            link_cluster=selected or None,
            moment=None if at_ms is None else past_moment(at_ms, request.now_ms),
            not_stored=NOT_STORED,
            is_group=request.is_group,
            has_past=has_past(request.address.path),
            group_id=request.group_id,
            given={name: request.address.argument(name) for name in (*PARAMETERS, "span")},
            address=request.shown_address,
            **values,
        )
        return Answer(body, HTML, http_status)


def _reader(view: ClusterView) -> PastReader:
    return PastReader(view.rebalances.root, view.cluster)


def _covered_cluster(view: ClusterView, now_ms: int, moments_ms: Sequence[int]) -> CoveredCluster:
    coverage = _reader(view).coverage()
    return CoveredCluster(view.cluster, coverage, coverage.refusal(moments_ms, now_ms))


def _group_values(past: PastGroup) -> Mapping[str, Any]:
    group, own = past.report, past.report.assignment.own
    names = {member_id: member.name for member_id, member in group.members.by_id.items()}
    return {
        "group": group,
        "partitions": past.partitions,
        "owners": group.members.owners,
        "are_owners_known": group.membership.members is not None
        and all(member.assigned is not None for member in group.members.each),
        "members": past_members(group, lag_by_partition(past.partitions)),
        "misplaced": misplaced_in_short(own, names) if own else (),
        "rebalances": rebalances_of(past.rebalances),
        "cause": past.findings.cause,
        "last_findings": last_findings(past),
        "incident": (past.last_findings or past.findings).incident,
    }


def _timeline(view: ClusterView, past: PastGroup, at_ms: int, span: str) -> TimelineSection:
    present = view.watch().reports.get(past.report.group_id)
    return section_of(view.timelines.read_past(past, present.limits if present else None, at_ms, span))


def _comparison_values(comparison: Comparison) -> Mapping[str, Any]:
    return {
        "comparison": comparison,
        "changes": past_changes(comparison.changes),
        "rebalances": rebalances_of(comparison.rebalances),
    }
