"""A monitor state in which every metric has a value: the scene of the pages with some additions."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from assignors import assignor_named
from streaming.combine.gaps import GapTotals
from streaming.combine.partition_state import GapsClosed, PartitionSnapshot
from streaming.evaluation.assignment.common_rules import Unowned
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.causes.late_group import ExplainedLag
from streaming.evaluation.conditions.unowned import UnownedNow
from streaming.evaluation.fairness.imbalance import LAG, THROUGHPUT, Imbalance
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.broker_clocks import ClockOffset
from streaming.evaluation.lag.lag import LAG_SCHEMA, NO_END_OFFSET, LagReport
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.group.listing import GroupListing, ListedGroup, ListingGap
from streaming.group.snapshot import GroupSnapshot
from streaming.state.monitor_state import MonitorState
from streaming.state.monitor_view import WorkShares
from tests.streaming.groups import member, written
from tests.streaming.page.scene import NOW_MS, scene
from tests.streaming.situations import known

STALE_AFTER_MS = 60_000
HOT = TopicLoad("orders", 12, 500.0, 3, 310.0, 0.62, 7.44)
"""One of twelve partitions receives most records."""


def everything(tables: Path) -> MonitorState:
    """Return a monitor state whose scrape has every defined metric."""
    monitor_state = scene(tables).monitor_state
    partition_state = PartitionSnapshot(0, 9, -1, {"offset_commit": 7}, {"truncated": 1})
    monitor_state.put_batch([_half_owned()], [partition_state])
    monitor_state.put_gap_totals([GapsClosed((), {"billing": GapTotals((1, 0, 2, *[0] * 7, 1), 400_500)})])
    view = monitor_state.view()
    rebalancing = ListedGroup("classic", "consumer", "PreparingRebalance", 1)
    listing = GroupListing(NOW_MS - 3_000, {"billing": rebalancing}, (ListingGap(2, "coordinator_load_in_progress"),))
    assert view.sample is not None
    assert view.lag is not None
    monitor_state.put_sample(
        replace(view.sample, brokers=3, clock_offsets={1: ClockOffset(-200, 300)}),
        _with_unusual_lag(view.lag),
        listing,
    )
    evaluated = view.groups["billing"].evaluation
    assert evaluated is not None
    lag = Imbalance(measure=LAG, scope="member", score=20, max_to_mean_ratio=1.8)
    throughput = Imbalance(measure=THROUGHPUT, scope="member", largest=800, excess=390)
    monitor_state.put_work({"billing": WorkShares(evaluated.position, (lag, throughput))})
    monitor_state.put_explained_lags(
        {"billing": ExplainedLag(None, Cause("hot_partition", topic="orders", partition=0))}
    )
    unowned = UnownedNow({Unowned("orders", 2, NOW_MS - 400_000): 12})
    monitor_state.put_conditions(view.conditions, {"half-owned": unowned})
    monitor_state.put_health(not_known=("leader",), folders={"checkpoint": str(tables), "tables": str(tables)})
    monitor_state.put_batch_end(0.8, NOW_MS)
    return monitor_state


def _half_owned() -> GroupState:
    """Return a group whose only member holds two of three partitions."""
    group, strategies = GroupState(GroupSnapshot("half-owned")), [assignor_named("range")]
    for event in (written(5, 3, [member("half-owner", {"orders": [0, 1]})]), known(orders=3)):
        group = apply_batch(group, [event], strategies).record
    return group


def _with_unusual_lag(lag: LagEvaluation) -> LagEvaluation:
    """Change the lag of some partitions.

    One partition of `ledger` has no leader. Those of `reporting` are late, close to retention and blocked by an open
    transaction. `fraud-detection` catches up.
    """
    table = lag.partitions
    is_leaderless = pc.and_(pc.equal(table["group_id"], "ledger"), pc.equal(table["partition"], 0))
    is_near_retention = pc.equal(table["group_id"], "reporting")
    for name, where, value in (
        ("lag", is_leaderless, None),
        ("end_offset", is_leaderless, None),
        ("unknown_reason", is_leaderless, NO_END_OFFSET),
        ("lag_seconds", is_leaderless, None),
        ("seconds_until_lost", is_near_retention, 5_400.0),
        ("offsets_expire_ms", is_near_retention, NOW_MS + 7_200_000),
        ("records_lost", is_near_retention, 9),
        ("is_blocked", is_near_retention, True),
        ("lag_seconds", is_near_retention, 700.0),
        ("consumed_records_per_second", pc.equal(table["group_id"], "fraud-detection"), 30.0),
    ):
        field = table.schema.field(name)
        column = pc.if_else(where, pa.scalar(value, field.type), table[name])
        table = table.set_column(table.schema.get_field_index(name), field, column)
    report = LagReport(lag.report.sampled_at_ms, table.select(LAG_SCHEMA.names))
    return LagEvaluation(report, table, {HOT.topic: HOT})
