"""Tests flows against the capacity of cuts, and against all other flows of small networks."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from assignors.fairness.flow_network import FlowNetwork

NODES = 5
SOURCE, SINK = 0, NODES - 1
ARCS = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1), st.integers(0, 2), st.integers(0, 2)), max_size=7
)
Arcs = list[tuple[int, int, int, int]]


def fill_network(arcs: Arcs) -> tuple[FlowNetwork, int, int]:
    network = FlowNetwork(NODES)
    for arc in arcs:
        network.add_arc(*arc)
    return (network, *network.fill(SOURCE, SINK))


@given(ARCS)
def test_no_other_flow_is_larger_or_as_large_and_cheaper(arcs: Arcs):
    """Checks the definition of a minimum-cost maximum flow with all flows (at most 3 to the power of 7)."""
    _, units, cost = fill_network(arcs)
    best = (0, 0)
    for flow in product(*(range(capacity + 1) for _, _, capacity, _ in arcs)):
        balance = [0] * NODES
        for (tail, head, _, _), sent in zip(arcs, flow, strict=True):
            balance[tail] -= sent
            balance[head] += sent
        if not any(balance[1:SINK]) and balance[SINK] >= 0:
            spent = sum(price * sent for (_, _, _, price), sent in zip(arcs, flow, strict=True))
            best = max(best, (balance[SINK], -spent))
    assert (units, -cost) == best


@given(ARCS)
def test_the_source_side_is_a_minimum_cut(arcs: Arcs):
    """Max-flow min-cut (Ford and Fulkerson 1956): the arcs out of the source's side have the capacity of the flow."""
    network, units, _ = fill_network(arcs)
    side = [network.is_source_side(node) for node in range(NODES)]
    assert side[SOURCE]
    assert not side[SINK]
    assert sum(capacity for tail, head, capacity, _ in arcs if side[tail] and not side[head]) == units


def test_an_expensive_path_is_used_when_the_cheap_one_is_full():
    """A unit that was already sent is rerouted if this is cheaper: 0-1-2-3 is replaced by 0-1-3 and 0-2-3."""
    network = FlowNetwork(4)
    for arc in [(0, 1, 1, 0), (1, 2, 1, 0), (2, 3, 1, 0), (0, 2, 1, 1), (1, 3, 1, 1)]:
        network.add_arc(*arc)
    assert network.fill(0, 3) == (2, 2)
