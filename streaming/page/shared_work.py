"""Describes how members and hosts share a group's work, and summarizes the commit gaps of the group.

1. The partition counts come from the last evaluated record of the group. Lag and throughput are the last values that
   the monitor measured for the current assignment. The page shows lag and throughput only while the last sample is
   fresh.
2. If the lag or throughput of one partition is unknown, all values of the row are unknown (`unknown_reason`).
3. The busiest member has the same name as in the heat map.
4. The summary contains all known commit gaps since the monitor first saw the group. If the monitor knows no commit gap,
   the page shows no summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.combine.gaps import GAP_BUCKETS_SECONDS, GapTotals
from streaming.evaluation.fairness.imbalance import Imbalance
from streaming.evaluation.fairness.participants import HOST
from streaming.evaluation.report import GroupReport

LONG_GAP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class WorkShare:
    """The distribution of one kind of work (`measure`) over members or hosts (`scope`). None means unknown.

    The unit of `total`, `largest` and `smallest` is partitions, records (for lag) or records per second (for
    throughput). `busiest` is the member or host with the largest amount. `score` is 100 if no valid assignment is
    fairer. If there is no score, `score_reason` is set. If the values are unknown, `unknown_reason` is set.
    `unknown_partitions` is the number of partitions with an unknown value.
    """

    measure: str
    scope: str
    participants: int | None
    total: float | None
    largest: float | None
    smallest: float | None
    busiest: str | None
    max_to_mean_ratio: float | None
    score: float | None
    score_reason: str | None
    unknown_reason: str | None
    unknown_partitions: int


@dataclass(frozen=True, slots=True)
class CommitGaps:
    """The number of known commit gaps, their total duration, and the number of gaps longer than `long_seconds`."""

    gaps: int
    total_ms: int
    long_gaps: int
    long_seconds: int


def work_shares(group: GroupReport) -> tuple[WorkShare, ...]:
    """Return one entry for each pair of `measure` and `scope`. Empty if the monitor evaluated no assignment."""
    names = {member_id: member.name for member_id, member in group.members.by_id.items()}
    return tuple(_work_share(one, names) for one in group.fairness.work)


def _work_share(one: Imbalance, names: Mapping[str, str]) -> WorkShare:
    busiest = one.busiest if one.scope == HOST or one.busiest is None else names.get(one.busiest, one.busiest)
    return WorkShare(
        measure=one.measure,
        scope=one.scope,
        participants=one.participants,
        total=one.total,
        largest=one.largest,
        smallest=one.smallest,
        busiest=busiest,
        max_to_mean_ratio=one.max_to_mean_ratio,
        score=one.score,
        score_reason=one.score_reason or None,
        unknown_reason=one.unknown_reason or None,
        unknown_partitions=one.unknown_partitions,
    )


def commit_gaps(totals: GapTotals | None) -> CommitGaps | None:
    """Return the summary of a group's commit gaps. Return None if no gap is known.

    >>> commit_gaps(GapTotals((3, 0, 0, 1, 0, 0, 0, 0, 0, 1, 0), 700_000))
    CommitGaps(gaps=5, total_ms=700000, long_gaps=1, long_seconds=60)
    >>> commit_gaps(GapTotals()) is None
    True
    """
    if totals is None or not sum(totals.buckets):
        return None
    longer = GAP_BUCKETS_SECONDS.index(LONG_GAP_SECONDS) + 1
    return CommitGaps(sum(totals.buckets), totals.sum_ms, sum(totals.buckets[longer:]), LONG_GAP_SECONDS)
