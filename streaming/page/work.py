"""How a group's work is shared among its members and their hosts, and how long rebalances kept it from committing.

1. Partitions are told as the last evaluated record shares them. Lag and throughput are told as of the sample that they
   were measured at: of the assignment that stands, and as long as samples are fresh.
2. Work that is not known of every partition is unknown as a whole; `unknown_reason` says why.
3. Who has most is called as in the map of members and topics.
4. Commit gaps are those that are known, since the group was first seen. Where none is, nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.combine.gaps import GAP_BUCKETS_SECONDS, GapTotals
from streaming.evaluation.fairness.imbalance import HOST, Imbalance
from streaming.evaluation.report import GroupReport

LONG_GAP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class SharedOut:
    """One kind of work among members or hosts, in the unit of `measure`: partitions, records, records per second.

    `busiest` is who has `largest`. `score` is 100 where no valid assignment is fairer; `score_reason` says why there is
    none. None is unknown; `unknown_reason` says why, and of how many partitions.
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
    """Known gaps: how many, milliseconds in all, and how many were longer than `long_seconds`."""

    gaps: int
    total_ms: int
    long_gaps: int
    long_seconds: int


def shared_out(group: GroupReport) -> tuple[SharedOut, ...]:
    """Each kind of work, by measure and scope; nothing where no assignment was evaluated."""
    names = {member_id: member.name for member_id, member in group.members.by_id.items()}
    return tuple(_shared_out(one, names) for one in group.fairness.work)


def _shared_out(one: Imbalance, names: Mapping[str, str]) -> SharedOut:
    busiest = one.busiest if one.scope == HOST or one.busiest is None else names.get(one.busiest, one.busiest)
    return SharedOut(
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
    """A group's gaps in all; None where none is known.

    >>> commit_gaps(GapTotals((3, 1, 0, 0, 1, 0), 700_000))
    CommitGaps(gaps=5, total_ms=700000, long_gaps=1, long_seconds=60)
    >>> commit_gaps(GapTotals()) is None
    True
    """
    if totals is None or not sum(totals.buckets):
        return None
    longer = GAP_BUCKETS_SECONDS.index(LONG_GAP_SECONDS) + 1
    return CommitGaps(sum(totals.buckets), totals.sum_ms, sum(totals.buckets[longer:]), LONG_GAP_SECONDS)
