"""Settings of single groups: the entries `[[groups]]`, and the limits that result from them.

1. An entry applies to each group whose complete id matches the regular expression `match` (RE2).
2. For each setting, the last entry that applies and has this setting wins. If there is no such entry, the default
   value applies.
3. `critical_lag_seconds` is never below `max_lag_seconds`. If an entry raises only `max_lag_seconds`, for example to
   7200, then `critical_lag_seconds` is 7200, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field

from streaming.config.section import Section
from streaming.evaluation.severity.limits import DEFAULT_LIMITS, GroupLimits, Severity

Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_CACHED_GROUPS = 100_000


def _check_pattern(pattern: str) -> str:
    from streaming.config.names import check_pattern  # noqa: PLC0415 - import pyarrow only if names are matched

    check_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_check_pattern)]
"""A regular expression (RE2) that must match the complete name."""


class GroupEntry(Section):
    """Limits and owner of the groups whose id matches `match`. A later entry has precedence over an earlier entry."""

    match: Pattern = Field(min_length=1, description="Regular expression (RE2). It must match the whole group id.")
    team: str | None = Field(None, description="Owner of the groups. Alerts have it as the label `team`.")
    max_lag_seconds: Seconds | None = Field(
        None,
        description=f"A warning fires above this lag in seconds. Default: {DEFAULT_LIMITS.max_lag_seconds}.",
    )
    critical_lag_seconds: Seconds | None = Field(
        None,
        description="A critical alert fires above this lag in seconds. If it is lower than max_lag_seconds,"
        f" max_lag_seconds is used. Default: {DEFAULT_LIMITS.critical_lag_seconds}.",
    )
    max_commit_gap_seconds: Seconds | None = Field(
        None,
        description="Longest acceptable time without commits around a rebalance, in seconds."
        f" Default: {DEFAULT_LIMITS.max_commit_gap_seconds}.",
    )
    severity: Severity | None = Field(
        None,
        description="Highest severity of an alert about the groups: critical, warning or info."
        f" Default: {DEFAULT_LIMITS.severity}.",
    )
    ignore_alerts: bool | None = Field(
        None, description="If true, no alert fires for the groups. The monitor still shows them. Default: false."
    )


class LimitSource(NamedTuple):
    """The value of one limit, and the entry that sets it. `entry` is None if the default value applies."""

    name: str
    value: Any
    entry: int | None


class LimitsByGroup:
    """The limits of every group. The results are cached, because each scrape needs the limits of every group."""

    def __init__(self, entries: Sequence[GroupEntry] = ()) -> None:
        self._entries = tuple(entries)
        self.of = lru_cache(maxsize=_CACHED_GROUPS)(self._resolve) if entries else lambda _: DEFAULT_LIMITS

    def sources(self, group_id: str) -> list[LimitSource]:
        """Return each limit of a group with the number of its entry, in the order of `GroupLimits` (rules 1 and 2)."""
        matching = [(at, entry) for at, entry in enumerate(self._entries) if _matches(entry, group_id)]
        limits = []
        for name, value in asdict(DEFAULT_LIMITS).items():
            set_by = [(at, getattr(entry, name)) for at, entry in matching if getattr(entry, name) is not None]
            limits.append(LimitSource(name, set_by[-1][1], set_by[-1][0]) if set_by else LimitSource(name, value, None))
        return limits

    def _resolve(self, group_id: str) -> GroupLimits:
        limits = GroupLimits(**{name: value for name, value, _ in self.sources(group_id)})
        return replace(limits, critical_lag_seconds=max(limits.critical_lag_seconds, limits.max_lag_seconds))


def _matches(entry: GroupEntry, group_id: str) -> bool:
    from streaming.config.names import NameFilter  # noqa: PLC0415 - import pyarrow only if names are matched

    return bool(NameFilter(entry.match).passing([group_id])[0])
