"""The clusters that pages show, and which of them is meant.

1. One cluster alone need not be named; a name that is none of ours is nobody's.
2. Of several, `?cluster=` names one. Without it an overview is of all, and a group is of the cluster that has it.
3. A group that several clusters have is nobody's until one is named. Where none has it and some log is not read yet, it
   may be there: the answer is unknown, not "no such group".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from streaming.page.overview import Overview, overview
from streaming.page.rebalances import RebalanceReader
from streaming.page.watched import CATCHING_UP, Watched
from streaming.state.monitor_view import MonitorView


class ClusterView:
    """One cluster: its present, and its overview, which is made once for one present."""

    def __init__(self, cluster: str, watch: Callable[[], Watched], rebalances: RebalanceReader) -> None:
        self.cluster = cluster
        self.watch = watch
        self.rebalances = rebalances
        self._last: tuple[MonitorView, bool, Overview] | None = None
        self._making = threading.Lock()

    def overview(self, watched: Watched) -> Overview:
        """All its groups. Many who look cost no more than one."""
        with self._making:
            last = self._last
            if last is not None and last[0] is watched.view and last[1] == watched.is_fresh:
                return last[2]
            made = overview(watched)
            self._last = (watched.view, watched.is_fresh, made)
            return made


def meant(clusters: Sequence[ClusterView], named: str) -> Sequence[ClusterView]:
    """Rules 1 and 2: those an address is about; none where the name is nobody's."""
    return [one for one in clusters if named in {"", one.cluster}]


def holders(clusters: Sequence[ClusterView], group_id: str) -> Sequence[ClusterView]:
    """Rules 2 and 3: the clusters that have the group; where none has, those that cannot tell yet."""
    if len(clusters) == 1:
        return clusters
    watched = [(one, one.watch()) for one in clusters]
    having = [one for one, now in watched if group_id in now.reports]
    return having or [one for one, now in watched if now.phase == CATCHING_UP]
