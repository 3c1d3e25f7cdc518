"""Computes the maximum flow with the lowest cost through a network, for ``fairest.py`` and ``fewest_moves.py``.

The algorithm is primal-dual (Ford and Fulkerson 1957; Ahuja, Magnanti and Orlin, *Network Flows*, 1993, section 9.8).
In each step, the algorithm finds the paths from source to sink with the lowest cost per unit. Then the algorithm sends
as many units as possible over these paths (blocking flows, Dinic 1970). The algorithm repeats both steps until no path
has free capacity. Costs and capacities are whole numbers, so the flow through each arc is a whole number, too.
"""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush

UNREACHED = 1 << 62
"""The distance of a node that cannot be reached. This number is far larger than the sum of all costs."""


class FlowNetwork:
    """A directed network. Add all arcs, and then call ``fill`` to send the flow.

    Two paths lead from node 0 to node 3. The path through node 1 costs 0 and can carry 2 units. The path through node 2
    costs 1 per unit and can carry 3 units:

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
        self._room: list[int] = []  # free capacity; the reverse arc (arc ^ 1) has the flow
        self._cost: list[int] = []
        self._price = [0] * nodes
        self._distance = [0] * nodes

    def add_arc(self, tail: int, head: int, capacity: int, cost: int = 0) -> None:
        """Add an arc for at most ``capacity`` units. Each unit costs ``cost``. Capacity and cost must be 0 or more."""
        for start, end, room, price in ((tail, head, capacity, cost), (head, tail, 0, -cost)):
            self._arcs_of[start].append(len(self._head))
            self._head.append(end)
            self._room.append(room)
            self._cost.append(price)

    def fill(self, source: int, sink: int) -> tuple[int, int]:
        """Send as many units as possible from ``source`` to ``sink`` at the lowest cost. Returns (units, cost)."""
        units = cost = 0
        while self._reprice(source, sink):
            while level := self._levels(source, sink):
                sent = self._block(source, sink, level)
                units += sent
                cost += sent * (self._price[sink] - self._price[source])
        return units, cost

    def is_source_side(self, node: int) -> bool:
        """Return whether ``node`` is on the source's side of the minimum cut.

        If several cuts are minimum cuts, the function uses the cut nearest to the source. Call ``fill`` first.
        """
        return self._distance[node] < UNREACHED

    def _reprice(self, source: int, sink: int) -> bool:
        """Update the prices of all nodes. After the update, all arcs of the cheapest paths have the reduced cost 0.

        Returns False if no path to the sink has free capacity.
        """
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
            # Nodes further away than the sink get the sink's distance. So no free arc has a negative reduced cost.
            self._price = [price + min(near, distance[sink]) for price, near in zip(self._price, distance, strict=True)]
            return True
        return False

    def _is_free(self, node: int, arc: int) -> bool:
        return self._room[arc] > 0 and self._price[node] + self._cost[arc] == self._price[self._head[arc]]

    def _levels(self, source: int, sink: int) -> list[int]:
        """For each node, return the number of arcs on the shortest free path from ``source``.

        The list is empty if no free path leads to ``sink``. Each arc of a free path has free capacity and the reduced
        cost 0.
        """
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
        """Send units along all shortest free paths until each path has a full arc. Returns the number of sent units."""
        sent, node, path = 0, source, list[int]()
        tried = [0] * len(self._arcs_of)
        while True:
            if node == sink:
                units, full = self._send(path)
                sent += units
                node = self._head[path[full] ^ 1]
                del path[full:]
            elif (step := self._step(node, tried, level)) is not None:
                path.append(step)
                node = self._head[step]
            elif path:
                level[node] = -1  # a dead end, so no other path tries this node
                node = self._head[path.pop() ^ 1]
            else:
                return sent

    def _step(self, node: int, tried: list[int], level: list[int]) -> int | None:
        """Return the next usable arc from ``node`` towards the sink, or None if all arcs of ``node`` were tried."""
        arcs = self._arcs_of[node]
        while tried[node] < len(arcs):
            arc = arcs[tried[node]]
            if level[self._head[arc]] == level[node] + 1 and self._is_free(node, arc):
                return arc
            tried[node] += 1
        return None

    def _send(self, path: list[int]) -> tuple[int, int]:
        """Fill ``path`` with units. Returns the number of sent units and the position of the first full arc."""
        units = min(self._room[arc] for arc in path)
        for arc in path:
            self._room[arc] -= units
            self._room[arc ^ 1] += units
        return units, next(position for position, arc in enumerate(path) if not self._room[arc])
