"""Reads the values of each group from the monitor's /metrics, and the causes of lag from its API.

A missing value is None, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True)
class GroupFigures:
    """The values of one group. None means unknown, or that the metric has no series for this group.

    `drift_partitions` is the number of partitions whose owner breaks a rule of the group's own strategy. `cause`
    describes the cause of the lag in a sentence.
    """

    group_id: str
    strategy: str | None = None
    state: str | None = None
    members: float | None = None
    idle_members: float | None = None
    generation: float | None = None
    rebalances: float | None = None
    max_partitions: float | None = None
    excess_partitions: float | None = None
    drift_partitions: float | None = None
    lag: float | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Figures:
    """The values of one scrape. `groups` maps group ids to values. `ready` is True if the monitor is ready.

    `mean_batch_seconds` is the mean duration of all batches.
    """

    ready: bool = False
    mean_batch_seconds: float | None = None
    groups: Mapping[str, GroupFigures] = field(default_factory=dict)


_METRIC_OF_FIELD = {
    "members": "rebalance_monitor_group_members",
    "idle_members": "rebalance_monitor_idle_members",
    "generation": "rebalance_monitor_group_generation",
    "rebalances": "rebalance_monitor_rebalances_total",
    "max_partitions": "rebalance_monitor_member_partitions_max",
    "excess_partitions": "rebalance_monitor_excess_partitions",
    "lag": "rebalance_monitor_group_lag",
}
_STATE = "rebalance_monitor_group_info"
_DRIFT = "rebalance_monitor_drift_partitions"

Series = Mapping[tuple[str, ...], float]


def read_figures(exposition: str, listed_groups: str) -> Figures:
    """Parse a scrape in Prometheus' text format, and the API's list of groups. Ignore other metrics and fields.

    Example: `read_figures('rebalance_monitor_group_lag{cluster="c",group="g"} 7', "{}").groups["g"].lag` is 7.
    """
    series: dict[str, dict[tuple[str, ...], float]] = {}
    protocols_and_states: dict[str, tuple[str, str]] = {}
    for family in text_string_to_metric_families(exposition):
        for sample in family.samples:
            key = tuple(sample.labels[name] for name in ("group", "strategy") if name in sample.labels)
            series.setdefault(sample.name, {})[key] = sample.value
            if sample.name == _STATE:
                protocols_and_states[key[0]] = sample.labels["protocol"], sample.labels["state"]
    measured = {key[0] for metric in _METRIC_OF_FIELD.values() for key in series.get(metric, ())}
    group_ids = sorted(measured | set(protocols_and_states))
    causes = _causes(listed_groups)
    return Figures(
        ready=series.get("rebalance_monitor_ready", {}).get(()) == 1,
        mean_batch_seconds=_mean(series, "rebalance_monitor_batch_duration_seconds"),
        groups={
            group_id: _group_figures(
                group_id, series, *protocols_and_states.get(group_id, ("", "")), causes.get(group_id)
            )
            for group_id in group_ids
        },
    )


def _causes(listed_groups: str) -> Mapping[str, str]:
    groups = json.loads(listed_groups).get("groups", ())  # before the monitor is ready, there is no list
    return {group["group_id"]: group["cause"]["text"] for group in groups if group["cause"] is not None}


def _mean(series: Mapping[str, Series], histogram: str) -> float | None:
    total, count = (series.get(f"{histogram}_{part}", {}).get(()) for part in ("sum", "count"))
    return None if total is None or not count else total / count


def _group_figures(
    group_id: str, series: Mapping[str, Series], strategy: str, state: str, cause: str | None
) -> GroupFigures:
    values = {name: series.get(metric, {}).get((group_id,)) for name, metric in _METRIC_OF_FIELD.items()}
    drift = series.get(_DRIFT, {}).get((group_id, strategy))
    return GroupFigures(group_id, strategy or None, state or None, **values, drift_partitions=drift, cause=cause)
