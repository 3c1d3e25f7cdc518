"""What a query in PromQL mentions, as far as a test must know: metrics, and the labels it selects or groups by.

Example: `mentioned('sum by (group) (rate(kafka_lag{topic!=""}[5m]))')` is `{"kafka_lag"}` and `{"group", "topic"}`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|`[^`]*`')
_GROUPING = re.compile(r"\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)")
_MATCHERS = re.compile(r"\{([^}]*)\}")
_METRIC = re.compile(r"\b(?:rebalance_monitor|kafka)_[a-z0-9_]+\b")


@dataclass(frozen=True)
class Mentioned:
    """Names in a query."""

    metrics: frozenset[str]
    labels: frozenset[str]


def mentioned(query: str) -> Mentioned:
    """Read a query; what stands in strings is no name."""
    bare = _STRING.sub('""', query)
    grouped = [label for group in _GROUPING.findall(bare) for label in re.findall(r"\w+", group)]
    selected = [
        label for matchers in _MATCHERS.findall(bare) for label in re.findall(r"(\w+)\s*(?:=|!=|=~|!~)", matchers)
    ]
    without_labels = _MATCHERS.sub("", _GROUPING.sub("", bare))
    return Mentioned(frozenset(_METRIC.findall(without_labels)), frozenset([*grouped, *selected]))
