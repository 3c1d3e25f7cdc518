"""What a scrape says to somebody who is called: who holds too much, what nobody reads, and since when."""

from __future__ import annotations

import pytest

from streaming.evaluation.group_update import GroupState
from tests.streaming.groups import emptied, member, written
from tests.streaming.prometheus.families.test_imbalance import SKEWED, known, record, spread
from tests.streaming.prometheus.test_metrics import monitor_state_of, named, scraped

BUSIEST = "rebalance_monitor_busiest_member"


def test_who_holds_too_much_is_named_by_client_host_and_instance_id() -> None:
    """Rule 1: three of seven where two would do. The member id is no label: it is new at every start of the client."""
    series = scraped(monitor_state_of([spread([0, 1, 2], [3], [4], [5], [6])]))
    assert named(series, BUSIEST) == {"client_host=/127.0.0.1,client_id=client-c0,group=g,group_instance_id=": 3}
    assert not [labels for name, labels in series if name == BUSIEST and "c0" in dict(labels).values()]


@pytest.mark.parametrize(
    ("group", "why"),
    [
        (spread([0, 1], [2, 3], [4], [5], [6]), "7 over 5: somebody must have two"),
        (record(written(5, 3, [member("a", {"orders": [0, 1]}), member("b")])), "the topic's size is not known"),
        (record(written(5, 3), emptied(6, 4)), "nobody is left"),
    ],
)
def test_nobody_is_named_where_nobody_is_called(group: GroupState, why: str) -> None:
    """Rule 1."""
    assert named(scraped(monitor_state_of([group])), BUSIEST) == {}, why


def test_of_several_that_hold_as_many_one_is_named() -> None:
    """Rule 2: one series a group, however large the group."""
    series = scraped(monitor_state_of([SKEWED]))
    assert list(named(series, BUSIEST).values()) == [3]


def test_a_static_member_is_named_by_its_instance_id() -> None:
    members = [member("a", {"orders": [0, 1, 2]}, instance_id="pod-7"), member("b", {}, instance_id="pod-8")]
    series = scraped(monitor_state_of([record(written(5, 3, members), known(orders=3))]))
    (who,) = named(series, BUSIEST)
    assert who.endswith("group_instance_id=pod-7")


def test_partitions_without_an_owner_are_counted_and_none_is_zero() -> None:
    """Somebody had orders-2, and nobody has; of a group that left nobody subscribes to anything."""
    all_three = written(5, 3, [member("a", {"orders": [0, 1, 2]})])
    whole = record(all_three, known(orders=3))
    group = record(all_three, written(6, 4, [member("b", {"orders": [0, 1]})]), known(orders=3))
    unowned = "rebalance_monitor_unowned_partitions"
    assert named(scraped(monitor_state_of([group])), unowned) == {"group=g": 1}
    assert named(scraped(monitor_state_of([whole])), unowned) == {"group=g": 0}
    assert named(scraped(monitor_state_of([record(written(5, 3), emptied(6, 4))])), unowned) == {}


def test_an_assignment_is_as_old_as_the_record_it_is_judged_by() -> None:
    """Since when somebody holds too much: at least since then."""
    group = spread([0, 1, 2], [3], [4], [5], [6])
    assert group.evaluation is not None
    found = named(scraped(monitor_state_of([group])), "rebalance_monitor_assignment_timestamp_seconds")
    assert found == {"group=g": group.evaluation.position.timestamp_ms / 1000}
