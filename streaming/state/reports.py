"""Compute the report of every group (`evaluation.evaluate`) from a view.

1. Until the monitor has read the log to its end for the first time, there are no reports.
2. If the last sample is too old, all values from samples are unknown, for example lag and status. The reason for the
   unknown lag is NO_FRESH_SAMPLE. For every group, this reason counts as a trouble (`severity.trouble`). The report
   still contains the id of the open incident and the committed topics. Groups without members that only commit offsets
   still have a report.
3. While the cluster is not ready, the monitor possibly does not know the latest commits. So values that depend on
   commits are unknown, with the reason LOG_NOT_READ. The report still contains the group's state in the listing, the
   coordinator, and the conditions of the last sample at which the cluster was ready.
4. A deleted group has a report only while it still has committed offsets.
5. The part of a report that comes from records is cached until its inputs change. The part that comes from a sample is
   added when a caller requests the report. Most scrapes request only the reports of groups with an active condition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from assignors.coordinator import coordinator_partition
from streaming.evaluation.evaluate import RecordedGroup, SampleValues, evaluate, with_sample
from streaming.evaluation.facts import NO_LEADER, GroupLag
from streaming.evaluation.incidents.incident import incident_by_group
from streaming.evaluation.lag.group_lags import GROUP_LAGS_SCHEMA
from streaming.evaluation.lag.lag import LOG_NOT_READ, NO_FRESH_SAMPLE
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.limits import LimitsOf, default_limits
from streaming.evaluation.rebalances.failed_rebalances import decide_skips
from streaming.evaluation.report import GroupReport
from streaming.group.listing import shown_state
from streaming.state.monitor_view import MonitorView

_NOTHING_DECIDED = dict[tuple[str, int], bool]()


def _shown_sample(view: MonitorView, *, is_fresh: bool) -> tuple[MonitorView, GroupLag]:
    """Return a view with only the known values of the last sample, and the lag of all groups without a lag in the view.

    Rules 2 and 3 define both values.
    """
    if not is_fresh:
        return MonitorView(incidents=view.incidents), GroupLag(unknown=(NO_FRESH_SAMPLE,))
    if not view.health.ready:
        known = replace(view, lag=None, work={}, unowned={}, explained_lags={})
        return known, GroupLag(unknown=(LOG_NOT_READ,))
    return view, GroupLag()


def _coordinators(shown: MonitorView) -> Callable[[str], int | None]:
    """Return a function that maps a group id to its coordinator's broker id, to NO_LEADER, or to None if unknown.

    When a broker restarts, a partition has no leader for some seconds. So in a ready cluster, the result for such a
    partition is None, not NO_LEADER.
    """
    sample = shown.sample
    if sample is None or not sample.offsets_topic_partitions:
        return lambda _: None
    leaders, partitions = sample.offsets_topic_leaders, sample.offsets_topic_partitions
    without_leader = None if shown.health.ready else NO_LEADER
    return lambda group_id: leaders.get(coordinator_partition(group_id, partitions), without_leader)


@dataclass(eq=False, repr=False)
class Reports(Mapping[str, GroupReport]):
    """The reports of all groups, sorted by group id.

    `recorded` contains the reports without the values from the sample. `_shown` contains the known values of the last
    sample. `_other_lag` is the lag of all groups that have no lag in `_shown`. `_commits` contains the commits at the
    last sample, even if the sample is old.
    """

    recorded: Mapping[str, GroupReport]
    _shown: MonitorView
    _other_lag: GroupLag
    _commits: LagEvaluation | None
    _whole: dict[str, GroupReport] = field(default_factory=dict)

    @cached_property
    def with_findings(self) -> Sequence[str]:
        """The sorted ids of the groups with a condition, an unowned partition or a cause of lag."""
        shown = self._shown
        found = shown.conditions.keys() | shown.unowned.keys() | shown.explained_lags.keys()
        return sorted(found & self.recorded.keys())

    @cached_property
    def _lags(self) -> Mapping[str, GroupLag]:
        """Lag of every group. All columns are converted in one step, which is fast."""
        lag = self._shown.lag
        if lag is None:
            return {}
        ids, *columns = (lag.groups[name].to_pylist() for name in GROUP_LAGS_SCHEMA.names)
        return dict(zip(ids, map(GroupLag, *columns), strict=True))

    @cached_property
    def _incident_ids(self) -> Mapping[str, str]:
        shown = incident_by_group(self._shown.incidents)
        return {group_id: one.incident_id for group_id, one in shown.items()}

    def __getitem__(self, group_id: str) -> GroupReport:
        """Return the report of a group, with the values from the sample."""
        whole = self._whole.get(group_id)
        if whole is None:
            shown, unowned = self._shown, self._shown.unowned.get(group_id)
            explained, lag, commits = shown.explained_lags.get(group_id), shown.lag, self._commits
            sampled = SampleValues(
                self._lags.get(group_id, self._other_lag),
                shown.conditions.get(group_id, ()),
                unowned.records() if unowned else None,
                explained.work if explained else None,
                explained.cause if explained else None,
                lag.topic_loads_by_group.get(group_id, ()) if lag else (),
                self._incident_ids.get(group_id),
                commits.topics_by_group.get(group_id, ()) if commits else (),
            )
            whole = self._whole[group_id] = with_sample(self.recorded[group_id], sampled)
        return whole

    def __iter__(self) -> Iterator[str]:
        """Iterate over the sorted group ids."""
        return iter(self.recorded)

    def __len__(self) -> int:
        """Return the number of groups."""
        return len(self.recorded)


class ReportCache:
    """The reports of one cluster. The next view reuses unchanged reports. One thread at a time uses a `ReportCache`."""

    def __init__(self, limits_of: LimitsOf = default_limits) -> None:
        self._limits_of = limits_of
        self._reports_by_group: Mapping[str, tuple[RecordedGroup, GroupReport]] = {}
        self._last: tuple[MonitorView, bool, Reports] | None = None

    def reports(self, view: MonitorView, *, is_fresh: bool) -> Reports:
        """Return the reports of all groups. Empty until the monitor has read the log to its end once (rule 1)."""
        last = self._last
        if last is not None and last[0] is view and last[1] == is_fresh:
            return last[2]
        shown, other_lag = _shown_sample(view, is_fresh=is_fresh)
        known, self._reports_by_group = self._reports_by_group, {}
        if view.health.was_ready:
            self._reports_by_group = {
                one.group_id: _kept_or_new(known.get(one.group_id), one) for one in self._recorded(view, shown)
            }
        recorded = {group_id: report for group_id, (_, report) in self._reports_by_group.items()}
        reports = Reports(recorded, shown, other_lag, view.lag)
        self._last = (view, is_fresh, reports)
        return reports

    def _recorded(self, view: MonitorView, shown: MonitorView) -> Iterator[RecordedGroup]:
        """Yield the inputs of each group's report, sorted by group id (rules 2 and 4)."""
        is_blocked, gap_totals = view.blocked_groups(), view.gap_totals
        listing, coordinator_of = shown.listing, _coordinators(shown)
        committing = frozenset[str]() if view.lag is None else view.lag.group_ids
        group_ids = sorted(committing.union(view.groups))
        limits = self._limits_of(group_ids)
        for group_id in group_ids:
            record = view.groups.get(group_id)
            if record is None or record.snapshot.is_over:
                if group_id in committing:
                    listed = listing.groups.get(group_id) if listing else None
                    yield RecordedGroup(
                        group_id,
                        None,
                        is_blocked(group_id),
                        listed=listed,
                        limits=limits[group_id],
                        coordinator=coordinator_of(group_id),
                    )
                continue
            snapshot, evaluation, shares = record.snapshot, record.evaluation, shown.work.get(group_id)
            unowned = view.unowned.get(group_id)
            is_current = shares and evaluation and shares.position == evaluation.position
            yield RecordedGroup(
                group_id,
                record,
                is_blocked(group_id),
                shown_state(snapshot, listing),
                None,
                shown.rebalancing_since_ms.get(group_id),
                shares.imbalances if shares and is_current else (),
                gap_totals.get(group_id),
                decide_skips(view.decided_skips, [snapshot], {}) if snapshot.unsettled_skips else _NOTHING_DECIDED,
                limits[group_id],
                coordinator_of(group_id),
                unowned.lasting if unowned else (),
            )


def _kept_or_new(
    known: tuple[RecordedGroup, GroupReport] | None, recorded: RecordedGroup
) -> tuple[RecordedGroup, GroupReport]:
    """Reuse the report if its inputs are unchanged. A new `record` object is a change, even if it is equal."""
    if known is None or known[0].record is not recorded.record or known[0] != recorded:
        return recorded, evaluate(recorded)
    return known
