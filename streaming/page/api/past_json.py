"""Makes the JSON documents about groups in the past.

In documents about the past and about the present, equal field names have the same meaning (API.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import msgspec

from streaming.delta.cells import timestamp_ms
from streaming.evaluation.facts import Membership
from streaming.page.api.as_json import condition_json, drift_json, member_json, partitions_json, summary_json
from streaming.page.group import leader_first
from streaming.page.overview import OverviewEntry
from streaming.page.past.views import CoveredCluster
from streaming.page.rebalance_rows import rebalances_of
from streaming.past.comparison import Comparison
from streaming.past.report import NOT_STORED, Findings, PastGroup
from streaming.past.rows import Row


def past_json(at_ms: int | None, clusters: Sequence[CoveredCluster]) -> dict[str, Any]:
    """Return the fields that all documents about the past have in common."""
    each = [
        {
            "cluster": one.cluster,
            "first_row_ms": one.coverage.first_ms,
            "last_row_ms": one.coverage.last_ms,
            "is_measured": None if one.measurement is None else one.measurement.is_recent,
            "last_measured_ms": None if one.measurement is None else one.measurement.last_ms,
            "error": one.refusal,
        }
        for one in clusters
    ]
    return {"at_ms": at_ms, "clusters": each, "not_stored": list(NOT_STORED)}


def past_groups_json(
    at_ms: int,
    clusters: Sequence[CoveredCluster],
    groups: Iterable[OverviewEntry],
    total_groups: int,
    causes: Mapping[tuple[str, str], Row],
) -> dict[str, Any]:
    """Return the document of the groups at the time `at_ms`. The keys of `causes` are pairs of cluster and group id."""
    listed = []
    for one in groups:
        cause = _cause(causes.get((one.cluster, one.group.group_id)))
        listed.append({"cluster": one.cluster, **summary_json(one.group), "cause": cause})
    return {**past_json(at_ms, clusters), "total_groups": total_groups, "groups": listed}


def past_group_json(at_ms: int, cluster: CoveredCluster, past: PastGroup) -> dict[str, Any]:
    """Return the document of one group at the time `at_ms`."""
    group = past.report
    return {
        **past_json(at_ms, [replace(cluster, measurement=past.measurement)]),
        "cluster": cluster.cluster,
        **summary_json(group),
        "cause": _cause(past.findings.cause),
        "last_findings": None if past.last_findings is None else _findings(past.last_findings),
        "record_timestamp_ms": group.membership.record_timestamp_ms,
        "assigned_by": group.assignment.assigned_by,
        "members": [member_json(member) for member in leader_first(group.members)],
        "strategies": [drift_json(drift) for drift in group.assignment.drifts],
        "partitions": [asdict(one) for one in past.partitions],
        "rebalances": [asdict(one) for one in rebalances_of(past.rebalances)],
    }


def comparison_json(cluster: CoveredCluster, group_id: str, comparison: Comparison) -> dict[str, Any]:
    """Return the document that compares two generations."""
    return {
        **past_json(None, [cluster]),
        "cluster": cluster.cluster,
        "group_id": group_id,
        "before": _generation(comparison.before),
        "after": _generation(comparison.after),
        "moved_partitions": comparison.moved_partitions,
        "fewest_moves": comparison.fewest_moves,
        "fewest_is_exact": comparison.is_exact if comparison.fewest_moves is not None else None,
        "changes": [
            {
                **change,
                "changes": list(change["changes"]),
                "revoked": partitions_json(change["revoked"]),
                "assigned": partitions_json(change["assigned"]),
            }
            for change in map(msgspec.structs.asdict, comparison.changes)
        ],
        "rebalances": [asdict(one) for one in rebalances_of(comparison.rebalances)],
        "has_more_rebalances": comparison.has_more_rebalances,
    }


def _generation(generation: Membership) -> Mapping[str, Any]:
    return {
        "generation_id": generation.generation_id,
        "record_timestamp_ms": generation.record_timestamp_ms,
        "state": generation.state,
        "protocol": generation.protocol,
        "member_count": generation.members,
    }


def _findings(findings: Findings) -> Mapping[str, Any]:
    return {
        "conditions": [condition_json(one) for one in findings.conditions],
        "cause": _cause(findings.cause),
        "incident_id": findings.incident.incident_id if findings.incident else None,
    }


def _cause(row: Row | None) -> Mapping[str, Any] | None:
    if row is None:
        return None
    names = ("cause", "text", "reason", "topic", "partition", "member", "client_id", "client_host")
    return {**{name: row[name] for name in names}, "since_ms": timestamp_ms(row["since_time"])}
