"""Selects the clusters of a request.

1. If the monitor watches one cluster, `?cluster=` is not necessary. If the request contains an unknown name, no cluster
   is selected.
2. If the monitor watches several clusters, `?cluster=` selects one cluster. Without `?cluster=`, the overview shows all
   clusters, and the page of a group shows the cluster that has this group.
3. If several clusters have a group with the same id, the request must select one of these clusters. While a cluster is
   catching up, the monitor does not know all its groups. So if no cluster has the requested group, the response is
   "catching up" instead of "no such group".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from streaming.page.incidents.reader import IncidentReader
from streaming.page.overview import Overview, overview
from streaming.page.rebalances import RebalanceReader
from streaming.page.timeline.reader import TimelineReader
from streaming.page.watched import CATCHING_UP, WatchedCluster
from streaming.state.monitor_view import MonitorView


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
            if last is not None and last[0] is watched.view and last[1] == watched.is_fresh:
                return last[2]
            new = overview(watched)
            self._last = (watched.view, watched.is_fresh, new)
            return new


def select_clusters(clusters: Sequence[ClusterView], name: str) -> Sequence[ClusterView]:
    """Return the cluster with this name, or all clusters if the name is empty (rules 1 and 2)."""
    return [one for one in clusters if name in {"", one.cluster}]


def clusters_with_group(clusters: Sequence[ClusterView], group_id: str) -> Sequence[ClusterView]:
    """Return the clusters that have the group (rules 2 and 3).

    If no cluster has the group, return the clusters that are still catching up. If the monitor watches only one
    cluster, always return this cluster.
    """
    if len(clusters) == 1:
        return clusters
    watched = [(one, one.watch()) for one in clusters]
    with_group = [one for one, current in watched if group_id in current.reports]
    return with_group or [one for one, current in watched if current.phase == CATCHING_UP]
