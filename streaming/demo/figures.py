"""Reads the state of the monitor and the values of each group from the monitor's API.

A missing value is None, never 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class GroupFigures:
    """The values of one group. None means unknown.

    `drift_partitions` is the number of partitions whose owner breaks a rule of the group's strategy. `cause` describes
    the cause of the lag in a sentence.
    """

    group_id: str
    strategy: str | None = None
    state: str | None = None
    members: int | None = None
    idle_members: int | None = None
    generation: int | None = None
    rebalances: int | None = None
    max_partitions: int | None = None
    excess_partitions: int | None = None
    drift_partitions: int | None = None
    lag: int | None = None
    cause: str | None = None


@dataclass(frozen=True)
class Figures:
    """The values of one response. `groups` maps group ids to values. `ready` is True if the monitor is ready."""

    ready: bool = False
    groups: Mapping[str, GroupFigures] = field(default_factory=dict)


def read_figures(listed_groups: str) -> Figures:
    """Parse the response to `/api/v1/groups`. While the monitor catches up, the response contains no groups.

    >>> read_figures('{"error": "the monitor is still reading", "phase": "catching_up"}')
    Figures(ready=False, groups={})
    """
    document = json.loads(listed_groups)
    return Figures(
        ready=document.get("phase") == "ready",
        groups={group["group_id"]: _group_figures(group) for group in document.get("groups", ())},
    )


def _group_figures(group: Mapping[str, Any]) -> GroupFigures:
    shares, cause = group["shares"], group["cause"]
    return GroupFigures(
        group["group_id"],
        strategy=group["protocol"] or None,
        state=group["state"],
        members=group["member_count"],
        idle_members=shares["idle_members"],
        generation=group["generation_id"],
        rebalances=group["rebalances_total"],
        max_partitions=shares["max_partitions"],
        excess_partitions=shares["excess_partitions"],
        drift_partitions=group["drift_partitions"],
        lag=group["lag"],
        cause=None if cause is None else cause["text"],
    )
