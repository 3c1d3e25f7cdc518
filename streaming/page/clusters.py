"""Selects the clusters of a request.

1. If the monitor watches one cluster, `?cluster=` is not necessary. If the request contains an unknown name, no cluster
   is selected.
2. If the monitor watches several clusters, `?cluster=` selects one cluster. Without `?cluster=`, the overview shows all
   clusters. The page of a group shows the cluster that has the group.
3. If several clusters have a group with the same id, the request must select a cluster. While a cluster is catching up,
   the monitor does not know all its groups. So the monitor does not search this cluster. If none of the other clusters
   has the requested group, the response is "catching up" instead of "no such group". Topics and client hosts follow the
   same rules as groups.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from streaming.page.incidents.reader import IncidentReader
from streaming.page.overview import Overview, overview
from streaming.page.page_input import CATCHING_UP, WatchedCluster
from streaming.page.rebalances import RebalanceReader
from streaming.page.timeline.reader import TimelineReader
from streaming.state.monitor_view import MonitorView

NO_CLUSTER, SEVERAL, NONE = "no_cluster", "several", "none"

_Detail = TypeVar("_Detail")


class ClusterView:
    """One cluster of the monitor, with a cached overview. `watch` returns the present state of the cluster."""

    def __init__(self, cluster: str, watch: Callable[[], WatchedCluster], rebalances: RebalanceReader) -> None:
        self.cluster = cluster
        self.watch = watch
        self.rebalances = rebalances
        self.incidents = IncidentReader(rebalances.root, cluster, rebalances.monotonic_seconds)
        self.timelines = TimelineReader(rebalances.root, cluster, rebalances.monotonic_seconds)
        self._last: tuple[MonitorView, bool, Overview] | None = None
        self._lock = threading.Lock()

    def overview(self, watched: WatchedCluster) -> Overview:
        """Return all groups. The overview is computed once per monitor view, and cached for all requests."""
        with self._lock:
            last = self._last
            if last is None or last[0] is not watched.view or last[1] != watched.is_fresh:
                last = self._last = (watched.view, watched.is_fresh, overview(watched))
            return last[2]


@dataclass(frozen=True, slots=True)
class Found(Generic[_Detail]):
    """The cluster that has the requested group, topic or client host, and the values that the response shows."""

    view: ClusterView
    watched: WatchedCluster
    detail: _Detail


@dataclass(frozen=True, slots=True)
class Refusal:
    """The reason why not exactly one cluster was found: NO_CLUSTER, CATCHING_UP, SEVERAL or NONE.

    `clusters` are the clusters that the response describes.
    """

    reason: str
    clusters: Sequence[WatchedCluster]


def find_in_clusters(
    clusters: Sequence[ClusterView], name: str | None, detail_of: Callable[[WatchedCluster, str], _Detail | None]
) -> Found[_Detail] | Refusal:
    """Find the cluster that has a group, a topic or a client host (rules 1 to 3).

    `clusters` are the selected clusters. `name` is None if the address contains no valid name. `detail_of` returns None
    if the cluster has no group, topic or host with this name.
    """
    watched = [(one, one.watch()) for one in clusters]
    found = [
        Found(one, current, detail)
        for one, current in watched
        if name is not None and current.phase != CATCHING_UP and (detail := detail_of(current, name)) is not None
    ]
    if len(found) == 1:
        return found[0]
    if found:
        return Refusal(SEVERAL, [one.watched for one in found])
    selected = [current for _, current in watched]
    waiting = [one for one in selected if one.phase == CATCHING_UP]
    if waiting and name is not None:
        return Refusal(CATCHING_UP, waiting)
    return Refusal(NONE if selected else NO_CLUSTER, selected)
