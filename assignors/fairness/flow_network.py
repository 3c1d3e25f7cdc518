"""Cheapest largest flow through a network: what "the fairest possible" and "the fewest moves" come down to.

Primal-dual (Ford and Fulkerson 1957; Ahuja, Magnanti and Orlin, *Network Flows*, 1993, section 9.8): find the cheapest
way for one more unit, then send all that goes at this price by blocking flows (Dinic 1970), until nothing more gets
through. Costs and capacities are whole numbers, so the flow is, too. Where nothing costs, this is Dinic's algorithm.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

UNREACHED = 1 << 62
"""Further away than any node: the sum of all costs is far smaller."""


class FlowNetwork:
    """A directed network that is filled with arcs once, and then with flow.

    Two ways from 0 to 3, one of which costs; the cheap one takes only 2 of the 5:

    >>> network = FlowNetwork(4)
    >>> for tail, head, capacity, cost in [(0, 1, 2, 0), (1, 3, 9, 0), (0, 2, 9, 1), (2, 3, 3, 0)]:
    ...     network.add_arc(tail, head, capacity, cost)
    >>> network.fill(0, 3)
    (5, 3)
    >>> [network.is_source_side(node) for node in range(4)]
    [True, False, True, False]
    """

    def __init__(self, nodes: int) -> None:
        self._arcs_of: list[list[int]] = [[] for _ in range(nodes)]
        self._head: list[int] = []
        self._room: list[int] = []  # what still fits; the arc back (its number with the last bit turned) holds the flow
        self._cost: list[int] = []
        self._price = [0] * nodes
        self._distance = [0] * nodes

    def add_arc(self, tail: int, head: int, capacity: int, cost: int = 0) -> None:
        """Add an arc for at most ``capacity`` units at ``cost`` each; neither is negative."""
        for start, end, room, price in ((tail, head, capacity, cost), (head, tail, 0, -cost)):
            self._arcs_of[start].append(len(self._head))
            self._head.append(end)
            self._room.append(room)
            self._cost.append(price)

    def fill(self, source: int, sink: int) -> tuple[int, int]:
        """Send as much as fits from ``source`` to ``sink``, as cheaply as that can be. Returns (units, cost)."""
        units = cost = 0
        while self._reprice(source, sink):
            while level := self._levels(source, sink):
                sent = self._block(source, sink, level)
                units += sent
                cost += sent * (self._price[sink] - self._price[source])
        return units, cost

    def is_source_side(self, node: int) -> bool:
        """Tell, after ``fill``, whether ``node`` is on the source's side of the smallest cut nearest to the source."""
        return self._distance[node] < UNREACHED

    def _reprice(self, source: int, sink: int) -> bool:
        """Set prices so that just the cheapest ways from ``source`` cost nothing beyond them; False if none is left."""
        distance = self._distance = [UNREACHED] * len(self._arcs_of)
        distance[source] = 0
        nearest = [(0, source)]
        while nearest:
            near, node = heappop(nearest)
            if near > distance[node]:
                continue
            for arc in self._arcs_of[node]:
                if self._room[arc]:
                    further = near + self._cost[arc] + self._price[node] - self._price[self._head[arc]]
                    if further < distance[self._head[arc]]:
                        distance[self._head[arc]] = further
                        heappush(nearest, (further, self._head[arc]))
        if distance[sink] < UNREACHED:
            # Nodes beyond the sink share its distance: that keeps every arc with room from costing less than nothing.
            self._price = [price + min(near, distance[sink]) for price, near in zip(self._price, distance, strict=True)]
            return True
        return False

    def _is_free(self, node: int, arc: int) -> bool:
        return self._room[arc] > 0 and self._price[node] + self._cost[arc] == self._price[self._head[arc]]

    def _levels(self, source: int, sink: int) -> list[int]:
        """Count each node's steps from ``source`` over free arcs; empty where they don't reach ``sink``."""
        level = [-1] * len(self._arcs_of)
        level[source] = 0
        waiting = deque([source])
        while waiting and level[sink] < 0:
            node = waiting.popleft()
            for arc in self._arcs_of[node]:
                if level[self._head[arc]] < 0 and self._is_free(node, arc):
                    level[self._head[arc]] = level[node] + 1
                    waiting.append(self._head[arc])
        return level if level[sink] >= 0 else []

    def _block(self, source: int, sink: int, level: list[int]) -> int:
        """Send along the shortest free ways until each has a full arc. Returns the units sent."""
        sent, node, way = 0, source, list[int]()
        tried = [0] * len(self._arcs_of)
        while True:
            if node == sink:
                units, full = self._send(way)
                sent += units
                node = self._head[way[full] ^ 1]
                del way[full:]
            elif (step := self._step(node, tried, level)) is not None:
                way.append(step)
                node = self._head[step]
            elif way:
                level[node] = -1  # a dead end: no other way needs to try it
                node = self._head[way.pop() ^ 1]
            else:
                return sent

    def _step(self, node: int, tried: list[int], level: list[int]) -> int | None:
        """Find the first arc from ``node`` that still leads on; those before it never will again in this round."""
        arcs = self._arcs_of[node]
        while tried[node] < len(arcs):
            arc = arcs[tried[node]]
            if self._leads_on(node, arc, level):
                return arc
            tried[node] += 1
        return None

    def _leads_on(self, node: int, arc: int, level: list[int]) -> bool:
        return level[self._head[arc]] == level[node] + 1 and self._is_free(node, arc)

    def _send(self, way: list[int]) -> tuple[int, int]:
        """Send what fits along ``way``. Returns the units, and where along it the first full arc is."""
        units = min(self._room[arc] for arc in way)
        for arc in way:
            self._room[arc] -= units
            self._room[arc ^ 1] += units
        return units, next(position for position, arc in enumerate(way) if not self._room[arc])
