"""Builds reports of groups from table rows, for a past moment. Reports of the current state have the same type.

A value that no table stores is None or empty, which means unknown (`NOT_STORED`). Troubles ignore unknown values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from streaming.delta.cells import timestamp_ms
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import (
    UNKNOWN_TYPE,
    AssignmentReport,
    FairnessReport,
    GroupLag,
    Membership,
    RebalanceReport,
)
from streaming.evaluation.incidents.incident import Incident
from streaming.evaluation.report import GroupReport
from streaming.group.not_known import hides_members
from streaming.group.snapshot import OVER
from streaming.past.partition import PastPartition
from streaming.past.rows import (
    Row,
    StoredMembers,
    condition,
    drifts,
    group_members,
    imbalance,
    is_of_generation,
    membership,
)
from streaming.past.silence import Measurement

NOT_STORED = (
    "coordinator",
    "type and state of a group that only commits offsets",
    "timeouts and client library of each member",
    "number of partitions without an owner or with two owners",
    "time of the last commit",
    "consume and produce rates",
    "time until records are lost or offsets expire",
    "uneven work",
    "what-if",
)
"""Values that a report of the current state contains, but that the tables do not contain for every moment."""


@dataclass(frozen=True, slots=True)
class GroupRows:
    """The last row of `group_generations`, and the rows of the last evaluated record if it has the same generation."""

    generation: Row | None
    drifts: Sequence[Row]
    imbalances: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Findings:
    """The active conditions, the active cause of lag (a row of `lag_causes`), and the oldest open incident."""

    conditions: tuple[Condition, ...] = ()
    cause: Row | None = None
    incident: Incident | None = None


@dataclass(frozen=True, slots=True)
class PastGroup:
    """One group at a past moment. `rebalances` are rows with their commit gaps, the newest first.

    If the last measurement before this moment is too old, `findings` is empty (unknown), and `last_findings` contains
    the findings at the last measurement. Otherwise, `last_findings` is None.
    """

    report: GroupReport
    partitions: tuple[PastPartition, ...]
    rebalances: Sequence[Row]
    measurement: Measurement
    findings: Findings
    last_findings: Findings | None


def past_report(group_id: str, rows: GroupRows, lag: GroupLag | None, findings: Findings) -> GroupReport:
    """Return the report of one group with its members."""
    stored = group_members(rows.generation) if rows.generation else ()
    report = _report(group_id, rows, len(stored), lag, findings)
    leader_id = rows.generation["leader"] if rows.generation else None
    return replace(report, members=StoredMembers(own=report.assignment.own, stored=stored, leader_id=leader_id))


def past_reports(  # noqa: PLR0913 - one argument for each table
    *,
    generations: Iterable[Row],
    rebalances: Iterable[Row],
    drifts: Iterable[Row],
    imbalances: Iterable[Row],
    conditions: Iterable[Row],
    lags: Mapping[str, GroupLag],
    incidents: Mapping[str, Incident],
) -> Sequence[GroupReport]:
    """Return the reports of all groups that have not ended. The reports contain no members.

    Only `conditions` can contain several rows per group.
    """
    last = {row["group_id"]: row for row in generations}
    counts = {row["group_id"]: row["members"] for row in rebalances}
    verdicts = {row["group_id"]: row for row in drifts}
    shares = {row["group_id"]: row for row in imbalances}
    active: dict[str, list[Condition]] = defaultdict(list)
    for row in conditions:
        active[row["group_id"]].append(condition(row))
    alive = [group_id for group_id, row in last.items() if row["state"] not in OVER]
    return [
        _report(
            group_id,
            GroupRows(
                last.get(group_id),
                _of_generation(verdicts.get(group_id), last.get(group_id)),
                _of_generation(shares.get(group_id), last.get(group_id)),
            ),
            counts.get(group_id),
            lags.get(group_id),
            Findings(tuple(active[group_id]), incident=incidents.get(group_id)),
        )
        for group_id in (*alive, *sorted(lags.keys() - last.keys()))
    ]


def _of_generation(row: Row | None, generation: Row | None) -> Sequence[Row]:
    return [row] if row is not None and generation is not None and is_of_generation(row, generation) else ()


def _report(
    group_id: str, rows: GroupRows, members: int | None, lag: GroupLag | None, findings: Findings
) -> GroupReport:
    """Return the report without the members. `members` is their number."""
    generation = rows.generation
    is_over = generation is not None and generation["state"] in OVER
    return GroupReport(
        group_id=group_id,
        membership=_membership(generation, members),
        assignment=AssignmentReport(
            drifts=drifts(rows.drifts),
            assigned_by=rows.drifts[0]["assigned_by"] if rows.drifts else None,
            assigned_at_ms=timestamp_ms(rows.drifts[0]["record_time"]) if rows.drifts else None,
        ),
        fairness=_fairness(rows.imbalances),
        rebalances=RebalanceReport(total=generation["rebalances_total"] if generation else None),
        not_known=tuple(generation["not_known"] or ()) if generation else (),
        lag=GroupLag() if lag is None or is_over else lag,
        conditions=findings.conditions,
        incident_id=findings.incident.incident_id if findings.incident else None,
    )


def _membership(generation: Row | None, members: int | None) -> Membership:
    if generation is None:
        return Membership(UNKNOWN_TYPE)
    return membership(generation, None if hides_members(generation["not_known"] or ()) else members)


def _fairness(rows: Sequence[Row]) -> FairnessReport:
    skew = rows[0]["topic_skew"] if rows else None
    return FairnessReport(
        work=tuple(imbalance(row) for row in rows),
        skewed_topics=skew["topics"] if skew else 0,
        skew_partitions=skew["surplus_partitions"] if skew else None,
    )
