"""Tests of the metrics of the busiest member, of unowned partitions, and of the age of the assignment."""

from __future__ import annotations

import pytest

from streaming.evaluation.group_update import GroupState
from tests.streaming.groups import emptied, member, written
from tests.streaming.prometheus.families.test_imbalance import SKEWED, known, record, spread
from tests.streaming.prometheus.test_metrics import monitor_state_of, named, scraped

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
