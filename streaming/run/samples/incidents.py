"""Update the incidents of a cluster once per sample.

The evidence comes from the monitor state. Open incidents are read from the table at the first sample, so they survive a
restart. At later samples, they come from memory, so a failed write to the table does not end an incident.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import pyarrow.compute as pc

from assignors.coordinator import coordinator_partition
from streaming.delta.on_disk import DeltaTables
from streaming.evaluation.causes.cause import OPEN_TRANSACTION, UNKNOWN
from streaming.evaluation.conditions.missing_topics import SUBSCRIBED_TOPIC_MISSING, missing_topics_now
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.incidents.coordinators import CoordinatorHistory
from streaming.evaluation.incidents.evidence import (
    CONDITION,
    LAG,
    LAG_ABOVE_LIMIT,
    LAG_CAUSE,
    LOSS,
    NO_COORDINATOR,
    RECORDS_LOST,
    REWOUND,
    UNKNOWN_COORDINATOR,
    Coordinator,
    Evidence,
    EvidenceKey,
    GroupSurroundings,
    evidence_of,
    facts_of_late_group,
    has_lag_ended,
)
from streaming.evaluation.incidents.incident import START_WINDOW_MS, Incident
from streaming.evaluation.incidents.same_cause import MIN_COORDINATOR_GROUPS, Population, shared_hosts
from streaming.evaluation.incidents.tracker import SampledEvidence, advance_incidents
from streaming.evaluation.lag.lag import PARTITION_DELETED, TOPIC_DELETED, ClusterSample
from streaming.evaluation.rebalances.condition_detectors import UNOWNED_PARTITIONS
from streaming.evaluation.report import GroupReport
from streaming.run.samples.conditions import GroupConditions
from streaming.run.samples.incident_writer import IncidentWriter
from streaming.run.samples.lag.lag_causes import LagCauses
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import MonitorView
from streaming.state.reports import Reports

_OF_DELETED_PARTITIONS = frozenset({TOPIC_DELETED, PARTITION_DELETED})


class Incidents:
    """The incidents of one cluster. Only the sampler's thread calls the methods."""

    def __init__(self, cluster: str, monitor_state: MonitorState, tables: DeltaTables) -> None:
        self._cluster = cluster
        self._monitor_state = monitor_state
        self._coordinators = CoordinatorHistory()
        self._writer = IncidentWriter(cluster, tables)
        self._open: Sequence[Incident] = ()
        self._is_restored = False

    def after_sample(
        self, sample: ClusterSample, conditions: GroupConditions, lag_causes: LagCauses, *, is_ready: bool
    ) -> None:
        """Update the incidents. Conditions and causes of lag must already be in the monitor state.

        In a cluster that is not ready, only a missing coordinator is known (rule 3 of `evaluation.incidents`).
        """
        if not self._is_restored:
            self._open, self._is_restored = self._writer.restore(), True
        if sample.offsets_topic_partitions:
            self._coordinators = self._coordinators.after_sample(sample.offsets_topic_leaders, sample.sampled_at_ms)
        view = self._monitor_state.view()
        reports = self._monitor_state.reports(view, is_fresh=True)
        hidden = {
            *(EvidenceKey(CONDITION, name, group_id) for group_id, name in conditions.hidden),
            *(EvidenceKey(LAG_CAUSE, name, group_id) for group_id, name in lag_causes.hidden),
        }
        sampled = self._sampled_evidence(view, reports, sample, hidden)
        sampled = sampled if is_ready else self._only_coordinators(sampled)
        update = advance_incidents(self._open, sampled)
        self._open = update.open
        if update.open != view.incidents:  # otherwise, the reports of this view stay in the cache for the next scrape
            self._monitor_state.put_incidents(update.open)
        self._writer.write(update, sample.sampled_at_ms)

    def _sampled_evidence(
        self, view: MonitorView, reports: Reports, sample: ClusterSample, hidden: Collection[EvidenceKey]
    ) -> SampledEvidence:
        coordinator_of, topics_with_losses = self._coordinator_of(sample), _topics_with_losses(view)
        active = [
            one
            for group_id in sorted(
                {*_groups_with_evidence(view, reports), *self._groups_without_coordinator(reports, sample)}
            )
            for one in evidence_of(
                reports[group_id],
                _surroundings(group_id, view, sample, coordinator_of(group_id), topics_with_losses.get(group_id, ())),
                sample.sampled_at_ms,
            )
        ]
        held = [one for incident in self._open for one in incident.evidence]
        known_groups = {one.group_id for one in (*held, *active)}
        unknown = {
            *(key for key in hidden if _may_have_evidence(reports.recorded.get(key.group_id))),
            *_unknown_lags({one.group_id for one in held}, reports),
            *_unknown_coordinators(held, sample),
        }
        needs_coordinators = len(known_groups) >= MIN_COORDINATOR_GROUPS
        population = _population(view, coordinator_of if needs_coordinators else None, shared_hosts([*held, *active]))
        return SampledEvidence(self._cluster, sample.sampled_at_ms, active, unknown, population)

    def _only_coordinators(self, sampled: SampledEvidence) -> SampledEvidence:
        """Keep only the evidence about missing coordinators. All other evidence counts as unknown."""
        held = {one.key for incident in self._open for one in incident.evidence if one.name != NO_COORDINATOR}
        unknown_coordinators = {key for key in sampled.unknown if key.name == NO_COORDINATOR}
        active = [one for one in sampled.active if one.name == NO_COORDINATOR]
        return replace(sampled, active=active, unknown=frozenset(held | unknown_coordinators))

    def _groups_without_coordinator(self, reports: Reports, sample: ClusterSample) -> Sequence[str]:
        leaderless, partitions = self._coordinators.leaderless, sample.offsets_topic_partitions
        if not leaderless or not partitions:
            return ()
        return [group_id for group_id in reports.recorded if coordinator_partition(group_id, partitions) in leaderless]

    def _coordinator_of(self, sample: ClusterSample) -> Callable[[str], Coordinator]:
        partitions, coordinators = sample.offsets_topic_partitions, self._coordinators
        if not partitions:
            return lambda _: UNKNOWN_COORDINATOR
        return lambda group_id: coordinators.coordinator(coordinator_partition(group_id, partitions))


def _unknown_coordinators(held: Iterable[Evidence], sample: ClusterSample) -> Iterator[EvidenceKey]:
    """Yield the key of NO_COORDINATOR evidence if the group's partition has no leader. Such evidence does not end."""
    for one in held:
        partition = coordinator_partition(one.group_id, max(1, sample.offsets_topic_partitions))
        if one.name == NO_COORDINATOR and partition not in sample.offsets_topic_leaders:
            yield one.key


def _may_have_evidence(report: GroupReport | None) -> bool:
    return report is not None and not report.limits.ignore_alerts


def _unknown_lags(group_ids: Collection[str], reports: Reports) -> Iterator[EvidenceKey]:
    """Yield the keys of all unknown evidence about lag. If evidence is unknown, it neither starts nor ends (rule 3).

    If the lag of one partition is unknown, the evidence may still be active. Deleted partitions are ignored, because
    the commits of a deleted partition remain until they expire.
    """
    for group_id in group_ids & reports.recorded.keys():
        report = reports[group_id]
        is_unknown = report.is_blocked or not _OF_DELETED_PARTITIONS.issuperset(report.lag.unknown)
        if not _may_have_evidence(report):
            continue
        if is_unknown:
            yield EvidenceKey(LOSS, RECORDS_LOST, group_id)
            yield from (EvidenceKey(LAG, name, group_id) for name in (LAG_ABOVE_LIMIT, REWOUND))
            yield from (EvidenceKey(LAG_CAUSE, name, group_id) for name in (UNKNOWN, OPEN_TRANSACTION))
        elif not has_lag_ended(report):
            yield from (EvidenceKey(source, name, group_id) for source, name, *_ in facts_of_late_group(report, 0))


def _groups_with_evidence(view: MonitorView, reports: Reports) -> Collection[str]:
    found = {*reports.with_findings}
    if view.lag is not None:
        columns = (view.lag.groups[name].to_pylist() for name in ("group_id", "records_lost", "lag_seconds"))
        for group_id, records_lost, seconds in zip(*columns, strict=True):
            report = reports.recorded.get(group_id)
            if report is not None and (records_lost or (seconds or 0) > report.limits.max_lag_seconds):
                found.add(group_id)
    return found


def _topics_with_losses(view: MonitorView) -> Mapping[str, Collection[str]]:
    topics = defaultdict[str, set[str]](set)
    if view.lag is not None:
        partitions = view.lag.partitions
        losing = partitions.select(["group_id", "topic"]).filter(pc.greater(partitions["records_lost"], 0))
        for group_id, topic in zip(*(column.to_pylist() for column in losing.columns), strict=True):
            topics[group_id].add(topic)
    return topics


def _surroundings(
    group_id: str, view: MonitorView, sample: ClusterSample, coordinator: Coordinator, with_losses: Collection[str]
) -> GroupSurroundings:
    record = view.groups.get(group_id)
    recent = record.rebalance_history.recent if record else ()
    since_ms = sample.sampled_at_ms - START_WINDOW_MS
    return GroupSurroundings(
        coordinator,
        [rebalance for rebalance in recent if rebalance.timestamp_ms > since_ms],
        {**_topics_by_name(group_id, record, view, sample), RECORDS_LOST: with_losses},
    )


def _topics_by_name(
    group_id: str, record: GroupState | None, view: MonitorView, sample: ClusterSample
) -> Mapping[str, Collection[str]]:
    """Return the affected topics by the name of the condition."""
    topics: dict[str, Collection[str]] = {}
    if group_id in view.unowned:
        topics[UNOWNED_PARTITIONS] = {one.topic for one in view.unowned[group_id].waiting}
    if record is not None and any(one.name == SUBSCRIBED_TOPIC_MISSING for one in view.conditions.get(group_id, ())):
        missing = missing_topics_now({group_id: record}, sample).get(group_id)
        topics[SUBSCRIBED_TOPIC_MISSING] = missing.since_ms.keys() if missing else ()
    return topics


def _population(
    view: MonitorView, coordinator_of: Callable[[str], Coordinator] | None, hosts: Collection[str]
) -> Population:
    """Return the groups that have members. If `coordinator_of` is None, return no groups by coordinator."""
    if coordinator_of is None and not hosts:
        return Population()
    by_coordinator, by_host = defaultdict[int, set[str]](set), defaultdict[str, set[str]](set)
    groups = set()
    for group_id, record in view.groups.items():
        if record.snapshot.is_over or not record.snapshot.member_count():
            continue
        groups.add(group_id)
        broker_id = coordinator_of(group_id).broker_id if coordinator_of else None
        if broker_id is not None:
            by_coordinator[broker_id].add(group_id)
        if hosts:
            client_hosts = {member.client_host for member in record.snapshot.stored_members()}
            for host in client_hosts.intersection(hosts):
                by_host[host].add(group_id)
    return Population(
        frozenset(groups),
        {broker_id: frozenset(of_broker) for broker_id, of_broker in by_coordinator.items()},
        {host: frozenset(on_host) for host, on_host in by_host.items()},
    )
