"""Settings for groups: the entries `[[groups]]`, and the limits that they set for each group.

1. An entry applies to each group whose complete id matches the regular expression `match` (RE2).
2. If several entries for a group contain the same setting, the last of these entries has precedence. A setting that no
   entry contains has its default value.
3. `critical_lag_seconds` is never below `max_lag_seconds`. If an entry raises only `max_lag_seconds`, for example to
   7200, then `critical_lag_seconds` is 7200, too.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import compress, count
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field

from streaming.config.section import Section
from streaming.config.types.durations import Seconds
from streaming.evaluation.limits import DEFAULT_LIMITS, GroupLimits, Severity

_CACHED_GROUPS = 100_000


def _check_pattern(pattern: str) -> str:
    from streaming.config.names import check_pattern  # noqa: PLC0415 - import pyarrow only if names are matched

    check_pattern(pattern)
    return pattern


Pattern = Annotated[str, AfterValidator(_check_pattern)]
"""A regular expression (RE2) that must match the complete name."""


class GroupEntry(Section):
    """Limits and team of the groups whose complete id matches `match`. Later entries override earlier entries."""

    match: Pattern = Field(
        min_length=1,
        description="Regular expression (RE2) for group ids. The expression must match the whole group id.",
    )
    team: str | None = Field(
        None, description="Team that owns the groups. Alerts contain the team in the label `team`."
    )
    max_lag_seconds: Seconds | None = Field(
        None,
        description="A warning fires if the lag in seconds is above this number. Default:"
        f" {DEFAULT_LIMITS.max_lag_seconds}.",
    )
    critical_lag_seconds: Seconds | None = Field(
        None,
        description="A critical alert fires if the lag in seconds is above this number. If this number is below"
        " max_lag_seconds, the monitor uses max_lag_seconds instead. Default:"
        f" {DEFAULT_LIMITS.critical_lag_seconds}.",
    )
    max_commit_gap_seconds: Seconds | None = Field(
        None,
        description="Longest acceptable time from the last commit before a rebalance to the first commit after the"
        " rebalance, in seconds."
        f" Default: {DEFAULT_LIMITS.max_commit_gap_seconds}.",
    )
    severity: Severity | None = Field(
        None,
        description="Highest severity that an alert about these groups can have: critical, warning or info."
        f" Default: {DEFAULT_LIMITS.severity}.",
    )
    ignore_alerts: bool | None = Field(
        None,
        description="If true, no alert fires for these groups. Pages, tables and /metrics still show these groups."
        " Default: false.",
    )


class LimitSource(NamedTuple):
    """The value of one limit, and the index of the entry with the value. `entry` is None for a default value."""

    name: str
    value: Any
    entry: int | None


class LimitsByGroup:
    """The limits of every group. The results are cached, because each scrape needs the limits of every group."""

    def __init__(self, entries: Sequence[GroupEntry] = ()) -> None:
        self._entries = tuple(entries)
        self._cached: Mapping[str, GroupLimits] = {}

    def of(self, group_id: str) -> GroupLimits:
        """Return the limits of one group."""
        return self.of_each([group_id])[group_id]

    def of_each(self, group_ids: Collection[str]) -> Mapping[str, GroupLimits]:
        """Return the limits of each group. One call for many groups is much faster than one call for each group.

        The result can contain more groups than `group_ids`.
        """
        cached = self._cached
        if missing := [group_id for group_id in group_ids if group_id not in cached]:
            cached = {**cached, **self._resolve(missing)}
            if len(cached) > _CACHED_GROUPS:
                cached = self._resolve(group_ids)
            self._cached = cached  # threads share the cache, so it is replaced and never changed
        return cached

    def sources(self, group_id: str) -> list[LimitSource]:
        """Return each limit of a group, and the index of the entry that sets the limit (rules 1 and 2)."""
        (matching,) = self._matching_entries([group_id])
        return self._sources(matching)

    def _resolve(self, group_ids: Collection[str]) -> dict[str, GroupLimits]:
        matching = self._matching_entries(group_ids)
        limits = {entries: self._combine(entries) for entries in set(matching)}
        return {group_id: limits[entries] for group_id, entries in zip(group_ids, matching, strict=True)}

    def _matching_entries(self, group_ids: Collection[str]) -> list[tuple[int, ...]]:
        from streaming.config.names import NameFilter  # noqa: PLC0415 - import pyarrow only if names are matched

        names = list(group_ids)
        if not self._entries:
            return [()] * len(names)
        applies = (NameFilter(entry.match).passing(names).tolist() for entry in self._entries)
        return [tuple(compress(count(), of_group)) for of_group in zip(*applies, strict=True)]

    def _sources(self, matching: Sequence[int]) -> list[LimitSource]:
        limits = []
        for name, default in asdict(DEFAULT_LIMITS).items():
            by_entries = (LimitSource(name, getattr(self._entries[at], name), at) for at in reversed(matching))
            by_default = LimitSource(name, default, None)
            limits.append(next((one for one in by_entries if one.value is not None), by_default))
        return limits

    def _combine(self, matching: Sequence[int]) -> GroupLimits:
        limits = GroupLimits(**{name: value for name, value, _ in self._sources(matching)})
        return replace(limits, critical_lag_seconds=max(limits.critical_lag_seconds, limits.max_lag_seconds))
