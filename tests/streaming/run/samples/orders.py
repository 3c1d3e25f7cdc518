"""A group whose commits and rebalances a test writes, with one sample every five seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from streaming.combine.gaps import ALL_COMMITTED, CommitGap, GapTotals, add_to_totals
from streaming.combine.partition_state import GapsClosed
from streaming.delta.stored import stored_rows
from streaming.delta.tables import LAG_CAUSES
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.fairness.imbalance import THROUGHPUT, Imbalance
from streaming.evaluation.fairness.participants import MEMBER
from streaming.events import GroupMetadataWritten, Position
from streaming.protocol.classic import ClassicMember
from streaming.state.monitor_view import WorkShares
from tests.streaming.groups import member, metadata
from tests.streaming.run.samples.test_conditions import SHARED, START_MS, Monitor

STEP_SECONDS = 5


def holding(*assigned: Sequence[int]) -> list[ClassicMember]:
    """Return the members a, b, ... with these partitions of the topic `orders`."""
    return [
        member(name, {"orders": numbers} if numbers else {}, ("orders",))
        for name, numbers in zip("abcd", assigned, strict=False)
    ]


class Orders:
    """A group that reads the topic `orders`. By default, two members have one partition each.

    All rates are in records per second of one partition.
    """

    def __init__(self, monitor: Monitor, members: Sequence[ClassicMember] = SHARED) -> None:
        self.monitor, self.members, self.generation = monitor, members, 0
        self.numbers = sorted(number for one in members if one.assignment for _, number in one.assignment.partitions)
        self.committed = [0.0] * len(self.numbers)
        monitor.cluster.partitions = len(self.numbers)
        monitor.cluster.end_offsets |= {("orders", number): 0 for number in self.numbers}
        self.rebalance()

    def rebalance(self, members: Sequence[ClassicMember] | None = None, seconds_without_commits: int = 0) -> None:
        """Write a generation, by default with the same members. Its commit gap closed before the next sample."""
        self.members = self.members if members is None else members
        self.generation += 1
        position = Position(0, self.generation, self.monitor.cluster.now_ms)
        self.monitor.write(GroupMetadataWritten(position, metadata(self.generation, self.members)))
        self.close_gap(seconds_without_commits)

    def close_gap(self, seconds: int, seconds_ago: int = 0) -> None:
        """Close a commit gap that ended `seconds_ago`."""
        gap_ms, end_ms = 1000 * seconds, self.monitor.cluster.now_ms - 1000 * seconds_ago
        position = Position(0, self.generation, end_ms)
        known = (gap_ms, None, None, None, None, 0, None, 0, ALL_COMMITTED, end_ms - gap_ms)
        gap = CommitGap("g", position, self.generation, *known)
        totals = self.monitor.monitor_state.view().gap_totals.get("g", GapTotals())
        self.monitor.monitor_state.put_gap_totals([GapsClosed((gap,), {"g": add_to_totals(totals, gap)})])

    def run(self, seconds: int, produced: Sequence[float], consumed: Sequence[float], every: int = 5) -> None:
        """Take a sample every STEP_SECONDS.

        Every `every` seconds, each partition whose consume rate is not 0 has a commit.
        """
        cluster = self.monitor.cluster
        for _ in range(seconds // STEP_SECONDS):
            cluster.now_ms += 1000 * STEP_SECONDS
            for number in self.numbers:
                end = cluster.end_offsets["orders", number] + int(produced[number] * STEP_SECONDS)
                cluster.end_offsets["orders", number] = end
                self.committed[number] = min(end, self.committed[number] + consumed[number] * STEP_SECONDS)
            if (cluster.now_ms - START_MS) // 1000 % every == 0:
                self.monitor.commit(
                    **{f"p{number}": int(self.committed[number]) for number in self.numbers if consumed[number]}
                )
            self.monitor.sampler.take_sample()

    def put_fair_rate(self, largest: float, fair: float) -> None:
        """Store the measured shares of work for the present assignment."""
        shares = Imbalance(measure=THROUGHPUT, scope=MEMBER, largest=largest, excess=largest - fair)
        evaluation = self.monitor.records["g"].evaluation
        assert evaluation is not None
        self.monitor.monitor_state.put_work({"g": WorkShares(evaluation.position, (shares,))})

    def cause(self) -> Cause | None:
        """Return the cause in the report of the group."""
        monitor_state = self.monitor.monitor_state
        return monitor_state.reports(monitor_state.view(), is_fresh=True)["g"].cause

    def kind(self) -> str | None:
        """Return the kind of the cause."""
        cause = self.cause()
        return cause and cause.kind

    def seconds_until_named(self, produced: Sequence[float], consumed: Sequence[float]) -> tuple[str, int]:
        """Return the first known cause, and the seconds until it is named."""
        for at in range(1, 61):
            self.run(STEP_SECONDS, produced, consumed)
            if self.kind() not in {None, "unknown"}:
                return str(self.kind()), at * STEP_SECONDS
        return "none", 300

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the table."""
        return list(stored_rows(str(self.monitor.root / "tables"), LAG_CAUSES))

    def changes(self) -> list[tuple[str, bool]]:
        """Return the rows of the table as (cause, is active)."""
        return [(row["cause"], row["active"]) for row in self.rows()]
