"""What a query in PromQL mentions, as far as a test must know: metrics, and the labels it selects or groups by.

Example: `mentioned('sum by (group) (rate(kafka_lag{topic!=""}[5m]))')` is `{"kafka_lag"}` and `{"group", "topic"}`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as promql

_METRICS_OF_OURS = ("rebalance_monitor_", "kafka_")


@dataclass(frozen=True)
class Mentioned:
    """Names in a query."""

    metrics: frozenset[str]
    labels: frozenset[str]


@dataclass(frozen=True)
class Selector:
    """What a query asks the database for: one metric, and labels to choose its series by."""

    metric: str
    labels: frozenset[str]


def selectors(query: str) -> list[Selector]:
    """Every selector of a query, from left to right. Raises ValueError where the query is no PromQL."""
    return [
        Selector(node.name or "", frozenset(matcher.name for matcher in node.matchers.matchers))
        for node in _nodes(query)
        if isinstance(node, promql.VectorSelector)
    ]


def grouped_by(query: str) -> frozenset[str]:
    """Labels that results are grouped or matched by."""
    return frozenset(label for node in _nodes(query) for label in _labels_of(node))


def mentioned(query: str) -> Mentioned:
    """Read a query; what stands in strings is no name. Metrics of ours only: Prometheus has some of its own."""
    found = selectors(query)
    metrics = frozenset(one.metric for one in found if one.metric.startswith(_METRICS_OF_OURS))
    return Mentioned(metrics, frozenset().union(grouped_by(query), *(one.labels for one in found)))


def _nodes(query: str) -> list[promql.Expr]:
    found: list[promql.Expr] = []
    promql.walk(promql.parse(query), lambda node: found.append(node))
    return found


def _labels_of(node: promql.Expr) -> Iterator[str]:
    if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
        yield from node.modifier.labels
    if isinstance(node, promql.BinaryExpr) and node.modifier is not None:
        yield from node.modifier.matching.labels if node.modifier.matching else ()
        yield from node.modifier.group_labels or ()
