r"""The same values as JSON: names carry units, null is unknown, times are milliseconds since 1970 (UTC).

API.md beside this names every field. Names that others chose are as they are: a lone surrogate is written `\ud800`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import msgspec

from streaming.evaluation.severity.summary import GroupSummary
from streaming.evaluation.severity.trouble import Trouble
from streaming.page.group import GroupDetail
from streaming.page.overview import Listed
from streaming.page.rebalances import LastRebalances
from streaming.page.watched import Watched
from streaming.page.what_if import Answers


def encoded(document: Mapping[str, Any]) -> bytes:
    """The document in ASCII."""
    return json.dumps(document, ensure_ascii=True, allow_nan=False).encode()


def monitor_json(watched: Watched) -> dict[str, Any]:
    """What every answer on one cluster begins with: as of when, and how far that can be trusted."""
    sample = watched.present.sample
    return {
        "cluster": watched.cluster,
        "phase": watched.phase,
        "source": watched.present.health.source,
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
    listed = [{"cluster": one.cluster, **_summary(one.group), "troubles": _troubles(one.troubles)} for one in groups]
    return {**monitors_json(clusters), "total_groups": total_groups, "groups": listed}


def group_json(watched: Watched, detail: GroupDetail, rebalances: LastRebalances, what_if: Answers) -> dict[str, Any]:
    """One group in full."""
    lag = [asdict(one) for one in detail.partitions]
    return {
        **monitor_json(watched),
        **_summary(detail.group),
        "troubles": _troubles(detail.troubles),
        "record_timestamp_ms": detail.record_timestamp_ms,
        "assigned_by": detail.assigned_by,
        "members_in_full": [_member(msgspec.structs.asdict(member)) for member in detail.members],
        "strategies": [_drift(msgspec.structs.asdict(drift)) for drift in detail.drifts],
        "partitions": lag,
        "work": [asdict(one) for one in detail.work],
        "commit_gaps": asdict(detail.commit_gaps) if detail.commit_gaps else None,
        "rebalances": [asdict(one) for one in rebalances.told],
        "rebalances_why_not": rebalances.why_not,
        "what_if": [asdict(one) for one in what_if.changes],
        "what_if_why_not": what_if.why_not,
    }


def _summary(group: GroupSummary) -> dict[str, Any]:
    return asdict(group)


def _troubles(found: Iterable[Trouble]) -> list[dict[str, Any]]:
    return [asdict(trouble) for trouble in found]


def _member(member: dict[str, Any]) -> dict[str, Any]:
    return {**member, **{name: _named(member[name]) for name in ("owned", "assigned", "target", "pending_revocation")}}


def _named(partitions: Iterable[tuple[str, int]] | None) -> list[dict[str, Any]] | None:
    return None if partitions is None else [{"topic": topic, "partition": number} for topic, number in partitions]


def _drift(drift: dict[str, Any]) -> dict[str, Any]:
    return {**drift, "misplaced": [msgspec.structs.asdict(one) for one in drift["misplaced"]]}
