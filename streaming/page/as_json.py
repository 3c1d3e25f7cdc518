r"""The same values as JSON: names carry units, null is unknown, times are milliseconds since 1970 (UTC).

API.md beside this names every field. Names that others chose are as they are: a lone surrogate is written `\ud800`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from streaming.evaluation.facts import FairnessReport
from streaming.evaluation.report import GroupReport
from streaming.page.group import GroupDetail
from streaming.page.last_rebalances import LastRebalances
from streaming.page.overview import Listed
from streaming.page.watched import Watched
from streaming.page.what_if import Answers


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document in ASCII."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False).encode()


def monitor_json(watched: Watched) -> dict[str, Any]:
    """What every answer on one cluster begins with: as of when, and how far that can be trusted."""
    sample = watched.view.sample
    return {
        "cluster": watched.cluster,
        "phase": watched.phase,
        "source": watched.view.health.source,
        "now_ms": watched.now_ms,
        "sampled_at_ms": sample.sampled_at_ms if sample else None,
        "records_behind": watched.records_behind(),
    }


def monitors_json(clusters: Sequence[Watched]) -> dict[str, Any]:
    """What an answer on any number of clusters begins with; of one it says it as it always did, too."""
    each = [monitor_json(watched) for watched in clusters]
    return {**(each[0] if len(each) == 1 else {}), "clusters": each}


def groups_json(clusters: Sequence[Watched], groups: Iterable[Listed], total_groups: int) -> dict[str, Any]:
    """Groups sorted by trouble; `total_groups` counts those that were left out, too."""
    listed = [{"cluster": one.cluster, **_summary(one.group)} for one in groups]
    return {**monitors_json(clusters), "total_groups": total_groups, "groups": listed}


def group_json(watched: Watched, detail: GroupDetail, rebalances: LastRebalances, what_if: Answers) -> dict[str, Any]:
    """One group in full."""
    group = detail.group
    return {
        **monitor_json(watched),
        **_summary(group),
        "record_timestamp_ms": group.membership.record_timestamp_ms,
        "assigned_by": group.assignment.assigned_by,
        "members": [_member(msgspec.structs.asdict(member)) for member in group.members.each],
        "strategies": [_drift(msgspec.structs.asdict(drift)) for drift in group.assignment.drifts],
        "partitions": [asdict(one) for one in detail.partitions],
        "work": [asdict(one) for one in detail.work],
        "commit_gaps": asdict(detail.commit_gaps) if detail.commit_gaps else None,
        "rebalances": [asdict(one) for one in rebalances.reported],
        "rebalances_error": rebalances.why_not,
        "what_if": [asdict(one) for one in what_if.changes],
        "what_if_error": what_if.why_not,
    }


def _summary(group: GroupReport) -> dict[str, Any]:
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
        "verdict": assignment.verdict,
        "verdict_reason": (own.reason or None) if own else None,
        "drift_partitions": assignment.drift_partitions,
        "shares": _shares(group.fairness),
        "violations": list(own.violations) if own else [],
        "owned_twice_partitions": assignment.owned_twice_partitions,
        "not_subscribed_partitions": assignment.not_subscribed_partitions,
        "unowned_partitions": assignment.unowned_partitions,
        "unowned_records": group.unowned_records,
        "conditions": [
            {"condition": held.name, "since_ms": held.since_ms, "detail": held.detail} for held in group.conditions
        ],
        "lag": lag.records,
        "lag_unknown": list(lag.unknown),
        "lag_seconds": lag.seconds,
        "lag_seconds_is_bound": lag.seconds_is_bound,
        "status": lag.status,
        "records_lost": lag.records_lost,
        "seconds_until_lost": lag.seconds_until_lost,
        "rebalances_total": group.rebalances.total,
        "not_known": list(group.not_known),
        "troubles": [asdict(trouble) for trouble in group.troubles],
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


def _member(member: dict[str, Any]) -> dict[str, Any]:
    return {**member, **{name: _named(member[name]) for name in ("owned", "assigned", "target", "pending_revocation")}}


def _named(partitions: Iterable[tuple[str, int]] | None) -> list[dict[str, Any]] | None:
    return None if partitions is None else [{"topic": topic, "partition": number} for topic, number in partitions]


def _drift(drift: dict[str, Any]) -> dict[str, Any]:
    return {**drift, "misplaced": [msgspec.structs.asdict(one) for one in drift["misplaced"]]}
