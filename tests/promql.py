"""Finds the metrics of a PromQL query, and the labels that it selects or groups by.

For `sum by (group) (rate(kafka_lag{topic!=""}[5m]))` the metrics are `{"kafka_lag"}`, the labels `{"group", "topic"}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser as promql

_VARIABLE_QUERY = re.compile(r"(?:label_values|query_result)\((.*?)(?:, ?\w+)?\)")
_METRICS_OF_OURS = ("rebalance_monitor_", "kafka_")


@dataclass(frozen=True)
class QueryNames:
    """The names of metrics and labels in a query."""

    metrics: frozenset[str]
    labels: frozenset[str]


@dataclass(frozen=True)
class Selector:
    """A selector of a query: one metric, and the labels that select its series."""

    metric: str
    labels: frozenset[str]


def selectors(query: str) -> list[Selector]:
    """Return all selectors of a query, from left to right. Raises ValueError if the query is not PromQL."""
    return [
        Selector(node.name or "", frozenset(matcher.name for matcher in node.matchers.matchers))
        for node in _nodes(query)
        if isinstance(node, promql.VectorSelector)
    ]


def grouped_by(query: str) -> frozenset[str]:
    """Return the labels by which a query groups or matches results."""
    return frozenset(label for node in _nodes(query) for label in _labels_of(node))


def result_labels(query: str) -> frozenset[str] | None:
    """Return the labels of the result's series, or None if they are those of the selected series."""
    return _result_labels(promql.parse(query))


def names_in_query(query: str) -> QueryNames:
    """Return the names in a query, or in a query of a Grafana variable with functions that are not PromQL.

    Names in strings do not count. Only the monitor's own metrics count, because Prometheus has some of its own.
    """
    variable_query = _VARIABLE_QUERY.fullmatch(query)
    query_text = variable_query[1] if variable_query else query
    found = selectors(query_text)
    metrics = frozenset(one.metric for one in found if one.metric.startswith(_METRICS_OF_OURS))
    return QueryNames(metrics, frozenset().union(grouped_by(query_text), *(one.labels for one in found)))


def _result_labels(node: promql.Expr) -> frozenset[str] | None:
    if isinstance(node, promql.AggregateExpr):
        chooses = str(node.op) in ("topk", "bottomk")
        return _result_labels(node.expr) if chooses else frozenset(node.modifier.labels if node.modifier else ())
    if isinstance(node, promql.BinaryExpr):
        return _binary_labels(node)
    if isinstance(node, promql.Call):
        return _function_labels(node)
    return _result_labels(node.expr) if isinstance(node, promql.ParenExpr) else None


def _function_labels(node: promql.Call) -> frozenset[str] | None:
    made = frozenset([node.args[1].val] if node.func.name == "label_replace" else ())
    used_up = frozenset(["le"] if node.func.name == "histogram_quantile" else ())
    labels = _union([made, *(_result_labels(argument) for argument in node.args if _has_series(argument))])
    return None if labels is None else labels - used_up


def _binary_labels(node: promql.BinaryExpr) -> frozenset[str] | None:
    if str(node.op).strip() in ("and", "unless"):
        return _result_labels(node.lhs)
    of_many = node.lhs if node.modifier and node.modifier.card == promql.VectorMatchCardinality.ManyToOne else None
    sides = (node.lhs, node.rhs) if of_many is None else (of_many,)
    return _union([_result_labels(side) for side in sides if _has_series(side)])


def _union(labels: list[frozenset[str] | None]) -> frozenset[str] | None:
    known = [one for one in labels if one is not None]
    return frozenset().union(*known) if len(known) == len(labels) else None


def _has_series(node: promql.Expr) -> bool:
    found: list[promql.Expr] = []
    promql.walk(node, found.append)
    return any(isinstance(one, promql.VectorSelector) for one in found)


def _nodes(query: str) -> list[promql.Expr]:
    found: list[promql.Expr] = []
    promql.walk(promql.parse(query), found.append)
    return found


def _labels_of(node: promql.Expr) -> Iterator[str]:
    if isinstance(node, promql.AggregateExpr) and node.modifier is not None:
        yield from node.modifier.labels
    if isinstance(node, promql.BinaryExpr) and node.modifier is not None:
        yield from node.modifier.matching.labels if node.modifier.matching else ()
        yield from node.modifier.group_labels or ()
