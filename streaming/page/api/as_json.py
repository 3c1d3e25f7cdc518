r"""Converts reports and incidents to JSON.

The name of a field contains the unit of its value. Null means unknown. Times are milliseconds since 1970 (UTC).
`streaming/page/API.md` describes every field. Names from Kafka and from clients are not changed. Characters that are
not ASCII are escaped, including lone surrogates (`\ud800`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import FairnessReport
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember
from streaming.page.group import GroupDetail, MemberFacts
from streaming.page.incidents.listing import IncidentEntry, IncidentListing
from streaming.page.last_rebalances import LastRebalances
from streaming.page.overview import OverviewEntry
from streaming.page.page_input import WatchedCluster
from streaming.page.what_if import WhatIfAnswers


def encode(document: Mapping[str, Any]) -> bytes:
    """Return the document as JSON in ASCII."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False).encode()


def monitor_json(watched: WatchedCluster) -> dict[str, Any]:
    """Return the fields that describe the state of the monitor for one cluster, for example the phase."""
    sample = watched.view.sample
    return {
        "cluster": watched.cluster,
        "phase": watched.phase,
        "source": watched.view.health.source,
        "now_ms": watched.now_ms,
        "sampled_at_ms": sample.sampled_at_ms if sample else None,
        "records_behind": watched.records_behind(),
    }


def monitors_json(clusters: Sequence[WatchedCluster]) -> dict[str, Any]:
    """Return the fields that describe the monitor's state for several clusters (`OneOrSeveralClusters`)."""
    each = [monitor_json(watched) for watched in clusters]
    return {**(each[0] if len(each) == 1 else {}), "clusters": each}


def groups_json(
    clusters: Sequence[WatchedCluster], groups: Iterable[OverviewEntry], total_groups: int
) -> dict[str, Any]:
    """Return the document of a list of groups. `total_groups` counts all groups that match the search."""
    listed = [{"cluster": one.cluster, **summary_json(one.group)} for one in groups]
    return {**monitors_json(clusters), "total_groups": total_groups, "groups": listed}


def group_json(
    watched: WatchedCluster, detail: GroupDetail, rebalances: LastRebalances, what_if: WhatIfAnswers
) -> dict[str, Any]:
    """Return the document of one group."""
    group = detail.group
    return {
        **monitor_json(watched),
        **summary_json(group),
        "record_timestamp_ms": group.membership.record_timestamp_ms,
        "worst_partition": _worst_partition(group),
        "assigned_by": group.assignment.assigned_by,
        "members": [_member(one) for one in detail.members],
        "strategies": [drift_json(drift) for drift in group.assignment.drifts],
        "partitions": [asdict(one) for one in detail.partitions],
        "topic_loads": [asdict(one) for one in group.topic_loads],
        "work": [asdict(one) for one in detail.work],
        "member_work": [asdict(one) for one in group.work.members] if group.work else None,
        "host_work": [asdict(one) for one in group.work.hosts] if group.work else None,
        "commit_gaps": asdict(detail.commit_gaps) if detail.commit_gaps else None,
        "rebalances": [asdict(one) for one in rebalances.lines],
        "rebalances_error": rebalances.error,
        "what_if": [asdict(one) for one in what_if.changes],
        "what_if_error": what_if.error,
    }


def summary_json(group: GroupReport) -> dict[str, Any]:
    """Return the fields that the list of groups and the document of one group have in common."""
    membership, assignment, lag = group.membership, group.assignment, group.lag
    own = assignment.own
    return {
        "group_id": group.group_id,
        "group_type": membership.group_type,
        "state": membership.state,
        "generation_id": membership.generation_id,
        "protocol_type": membership.protocol_type,
        "protocol": membership.protocol,
        "protocol_source": membership.protocol_source,
        "member_count": membership.members,
        "coordinator": membership.coordinator,
        "leader": _leader(group.members.leader),
        "session_timeouts_ms": list(group.members.session_timeouts_ms),
        "rebalance_timeouts_ms": list(group.members.rebalance_timeouts_ms),
        "verdict": assignment.verdict,
        "verdict_reason": (own.reason or None) if own else None,
        "drift_partitions": assignment.drift_partitions,
        "shares": _shares(group.fairness),
        "violations": list(own.violations) if own else [],
        "owned_twice_partitions": assignment.owned_twice_partitions,
        "not_subscribed_partitions": assignment.not_subscribed_partitions,
        "unowned_partitions": assignment.unowned_partitions,
        "unowned_records": group.unowned_records,
        "conditions": [condition_json(one) for one in group.conditions],
        "lag": lag.records,
        "lag_unknown": list(lag.unknown),
        "lag_seconds": lag.seconds,
        "lag_seconds_is_bound": lag.seconds_is_bound,
        "status": lag.status,
        "records_lost": lag.records_lost,
        "seconds_until_lost": lag.seconds_until_lost,
        "last_commit_ms": lag.last_commit_ms,
        "consumed_records_per_second": lag.consumed_records_per_second,
        "produced_records_per_second": lag.produced_records_per_second,
        "catch_up_seconds": lag.catch_up_seconds,
        "offsets_expire_ms": lag.offsets_expire_ms,
        "rebalances_total": group.rebalances.total,
        "not_known": list(group.not_known),
        "cause": _cause(group.cause),
        "incident_id": group.incident_id,
        "troubles": [asdict(trouble) for trouble in group.troubles],
    }


def condition_json(condition: Condition) -> dict[str, Any]:
    """Return the fields of a condition."""
    return {"condition": condition.name, "since_ms": condition.since_ms, "detail": condition.detail}


def _cause(cause: Cause | None) -> dict[str, Any] | None:
    if cause is None:
        return None
    fields = asdict(cause)
    return {"cause": fields.pop("kind"), "text": cause.text, **fields}


def _leader(leader: GroupMember | None) -> dict[str, Any] | None:
    names = ("member_id", "group_instance_id", "client_id", "client_host")
    return None if leader is None else {name: getattr(leader, name) for name in names}


def _worst_partition(group: GroupReport) -> dict[str, Any] | None:
    if group.lag.worst is None:
        return None
    topic, partition = group.lag.worst
    owner = group.members.owners.get((topic, partition))
    return {
        "topic": topic,
        "partition": partition,
        "owner_client_id": owner.client_id if owner else None,
        "owner_client_host": owner.client_host if owner else None,
        "owner_group_instance_id": owner.group_instance_id if owner else None,
    }


def _shares(fairness: FairnessReport) -> dict[str, Any]:
    total = fairness.partitions
    return {
        "assigned_partitions": _whole(total.total) if total else None,
        "max_partitions": _whole(total.largest) if total else None,
        "min_partitions": _whole(total.smallest) if total else None,
        "idle_members": total.idle if total else None,
        "idle_in_any_assignment": total.idle_in_any_assignment if total else None,
        "excess_partitions": _whole(total.excess) if total else None,
        "max_to_mean_ratio": total.max_to_mean_ratio if total else None,
        "score": total.score if total else None,
        "skewed_topics": fairness.skewed_topics,
        "remedy": fairness.remedy,
    }


def _whole(amount: float | None) -> int | None:
    return None if amount is None else int(amount)


def _member(facts: MemberFacts) -> dict[str, Any]:
    return {
        **member_json(facts.member),
        "is_leader": facts.is_leader,
        "client_library": facts.library.name if facts.library else None,
        "client_library_evidence": facts.library.evidence if facts.library else None,
    }


def member_json(member: GroupMember) -> dict[str, Any]:
    """Return the fields of a member."""
    fields = ("owned", "assigned", "target", "pending_revocation")
    return {**msgspec.structs.asdict(member), **{name: partitions_json(getattr(member, name)) for name in fields}}


def partitions_json(partitions: Iterable[tuple[str, int]] | None) -> list[dict[str, Any]] | None:
    """Return one object for each partition, or None if the partitions are unknown."""
    return None if partitions is None else [{"topic": topic, "partition": number} for topic, number in partitions]


def drift_json(drift: StrategyDrift) -> dict[str, Any]:
    """Return the fields that describe the verdict for one strategy."""
    misplaced = [msgspec.structs.asdict(one) for one in drift.misplaced]
    return {**msgspec.structs.asdict(drift), "misplaced": misplaced}


def incidents_json(listing: IncidentListing) -> dict[str, Any]:
    """Return the part of the JSON document that describes a list of incidents."""
    return {
        "total_incidents": listing.total,
        "incidents": [_incident_summary(one) for one in listing.entries],
        "incidents_error": listing.error,
    }


def incident_json(entry: IncidentEntry) -> dict[str, Any]:
    """Return the part of the JSON document that describes one incident, with its evidence."""
    return {**_incident_summary(entry), "evidence": [asdict(one) for one in entry.incident.evidence]}


def _incident_summary(entry: IncidentEntry) -> dict[str, Any]:
    incident = entry.incident
    active_groups = list(incident.active_groups) if incident.is_open else []
    return {
        "incident_id": incident.incident_id,
        "cluster": incident.cluster,
        "is_open": entry.is_open,
        "since_ms": incident.since_ms,
        "quiet_since_ms": incident.quiet_since_ms if entry.is_current else None,
        "end_ms": incident.end_ms,
        "merged_into": incident.merged_into,
        "cause": entry.cause,
        "runbook_section": entry.runbook_section,
        "story": entry.story._asdict(),
        "links": [link._asdict() for link in incident.links],
        "group_count": incident.group_count,
        "groups": list(incident.groups),
        "active_groups": active_groups if entry.is_current else None,
    }
