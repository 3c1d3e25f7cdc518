"""Tests of the metrics of owners: busiest member, unowned partitions, time of the assignment, worst partition."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pytest

from streaming.config.names import NameFilter
from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.facts import Membership
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag_evaluation import LagEvaluation
from streaming.evaluation.limits import GroupLimits
from streaming.evaluation.report import GroupReport
from streaming.prometheus.families.owners import lag_causes, worst_partitions
from streaming.prometheus.lines import Sample
from streaming.state.monitor_state import MonitorState
from tests.streaming.groups import emptied, member, written
from tests.streaming.lags import evaluated_lag
from tests.streaming.prometheus.families.test_imbalance import SKEWED, known, record, spread
from tests.streaming.prometheus.test_metrics import monitor_state_of, named, sample_of, scraped

BUSIEST = "rebalance_monitor_busiest_member"


def test_the_busiest_member_is_identified_by_client_host_and_instance_id() -> None:
    """Rule 1: the member has three of seven partitions, and two would be fair.

    The member id is not a label, because it changes at every start of the client.
    """
    series = scraped(monitor_state_of([spread([0, 1, 2], [3], [4], [5], [6])]))
    assert named(series, BUSIEST) == {"client_host=/127.0.0.1,client_id=client-c0,group=g,group_instance_id=": 3}
    assert not [labels for name, labels in series if name == BUSIEST and "c0" in dict(labels).values()]


@pytest.mark.parametrize(
    ("group", "why"),
    [
        (spread([0, 1], [2, 3], [4], [5], [6]), "with 7 partitions and 5 members, one member must have two"),
        (
            record(written(5, 3, [member("a", {"orders": [0, 1]}), member("b")])),
            "the topic's partition count is unknown",
        ),
        (record(written(5, 3), emptied(6, 4)), "the group has no members"),
    ],
)
def test_without_excess_partitions_there_is_no_busiest_member(group: GroupState, why: str) -> None:
    """Tests rule 1."""
    assert named(scraped(monitor_state_of([group])), BUSIEST) == {}, why


def test_of_several_equally_busy_members_one_has_a_series() -> None:
    """Rule 2: one series per group, whatever its size."""
    series = scraped(monitor_state_of([SKEWED]))
    assert list(named(series, BUSIEST).values()) == [3]


def test_a_static_busiest_member_has_its_instance_id_as_label() -> None:
    members = [member("a", {"orders": [0, 1, 2]}, instance_id="pod-7"), member("b", {}, instance_id="pod-8")]
    series = scraped(monitor_state_of([record(written(5, 3, members), known(orders=3))]))
    (labels,) = named(series, BUSIEST)
    assert labels.endswith("group_instance_id=pod-7")


def test_partitions_without_an_owner_are_counted_and_a_group_with_all_owners_has_no_series() -> None:
    """`orders-2` lost its owner. Healthy groups need no series, because the alert compares with 0."""
    all_three = written(5, 3, [member("a", {"orders": [0, 1, 2]})])
    complete = record(all_three, known(orders=3))
    group = record(all_three, written(6, 4, [member("b", {"orders": [0, 1]})]), known(orders=3))
    unowned = "rebalance_monitor_unowned_partitions"
    assert named(scraped(monitor_state_of([group])), unowned) == {"group=g": 1}
    assert named(scraped(monitor_state_of([complete])), unowned) == {}
    assert named(scraped(monitor_state_of([record(written(5, 3), emptied(6, 4))])), unowned) == {}


@pytest.mark.parametrize(
    ("group", "is_shown", "why"),
    [
        (spread([0, 1, 2], [3], [4], [5], [6]), True, "the busiest member has had too many partitions since this time"),
        (
            record(written(5, 3, [member("a", {"orders": [0, 2]}), member("b", {"orders": [1]})]), known(orders=3)),
            True,
            "the owners have differed from range since this time, although no assignment is fairer",
        ),
        (
            record(written(5, 3, [member("a", {"orders": [0, 1]}), member("b", {"orders": [2]})]), known(orders=3)),
            False,
            "rule 4: an assignment without drift and without excess partitions needs no series",
        ),
    ],
)
def test_the_time_of_an_assignment_is_shown_if_its_drift_or_excess_is_of_interest(
    group: GroupState, is_shown: bool, why: str
) -> None:
    """It is the time of the record."""
    assert group.evaluation is not None
    timestamps = named(scraped(monitor_state_of([group])), "rebalance_monitor_assignment_timestamp_seconds")
    assert timestamps == ({"group=g": group.evaluation.position.timestamp_ms / 1000} if is_shown else {}), why


LATE = 700.0
ONE_OWNER = record(written(5, 3, [member("a", {"orders": [0]}, instance_id="pod-0"), member("b", {})]))


def worst_partition(seconds: Sequence[float], limit: float, topics: str) -> list[Sample]:
    """Return the series of a group whose partitions of `orders` have these lags in seconds."""
    state = MonitorState(lambda ids: dict.fromkeys(ids, GroupLimits(max_lag_seconds=limit)))
    state.put_batch([ONE_OWNER], [])
    state.put_health(ready=True, was_ready=True)
    lags = {"group_id": ["g"] * len(seconds), "topic": ["orders"] * len(seconds), "partition": range(len(seconds))}
    lag = evaluated_lag(
        pa.table({**lags, "committed_offset": [90] * len(seconds), "commit_timestamp_ms": [1] * len(seconds)}),
        sample_of(),
    )
    at = lag.partitions.column_names.index("lag_seconds")
    late = LagEvaluation(lag.report, lag.partitions.set_column(at, "lag_seconds", pa.array(seconds)))
    reports = state.reports(state.view(), is_fresh=True).recorded.values()
    return worst_partitions(reports, late.groups, NameFilter(allow=topics))


@pytest.mark.parametrize(
    ("seconds", "limit", "topics", "labels", "why"),
    [
        ([LATE, 650.0], 600, ".*", ("0", "client-a", "/127.0.0.1", "pod-0"), "its owner is known"),
        ([LATE, 800.0], 600, ".*", ("1", "", "", ""), "it has no owner"),
        ([LATE, 650.0], 900, ".*", None, "the lag is not above the group's limit"),
        ([600.0, 1.0], 600, ".*", None, "the lag equals the limit"),
        ([LATE, 650.0], 600, "payments", None, "the settings do not select the topic"),
        ([0.0, 0.0], 0, ".*", None, "nothing waits"),
    ],
)
def test_the_worst_partition_of_a_late_group_names_its_owner(
    seconds: Sequence[float], limit: float, topics: str, labels: tuple[str, ...] | None, why: str
) -> None:
    """Rule 4: an alert on lag names the client and the host that the engineer on call must check."""
    expected = [] if labels is None else [Sample(("g", "orders", *labels), 1)]
    assert worst_partition(seconds, limit, topics) == expected, why


@pytest.mark.parametrize(
    ("cause", "name"),
    [
        (Cause("unknown", "open_transaction"), "open_transaction"),
        (Cause("unknown", "no_rule"), "unknown"),
        (Cause("stopped", "no_members"), "no_members"),
        (Cause("stopped", "no_commits"), "stopped"),
    ],
)
def test_the_cause_of_lag_has_the_name_that_incidents_use(cause: Cause, name: str) -> None:
    """A slow partition caused the lag, and a healthy partition had an open transaction.

    The metric did not contain the cause `open_transaction`, so the alert guessed: "abort the transaction".
    """
    report = GroupReport("g", Membership("classic"), cause=cause)
    assert lag_causes([report], NameFilter()) == [Sample(("g", name, "", "", "", ""), 1)]
