"""Tests that partitions of one topic do not cross between two members (KIP-54)."""

from __future__ import annotations

from assignors.java_hash import bucket, java_string_hash, topic_partition_hash
from assignors.sticky.movements import TopicMovements

A, B, C = range(3)


def test_without_an_opposite_movement_the_partition_itself_moves():
    """No partition can be sent back."""
    movements = TopicMovements("t")
    movements.record(1, giver=A, target=B)
    assert movements.substitute(2, giver=A, target=B) == 2
    assert movements.substitute(2, giver=B, target=C) == 2


def test_instead_of_crossing_the_earlier_partition_goes_back():
    """The balance is the same, and two partitions fewer have moved."""
    movements = TopicMovements("t")
    movements.record(1, giver=A, target=B)
    assert movements.substitute(2, giver=B, target=A) == 1


def test_a_partition_that_moved_twice_came_from_its_first_owner():
    """A movement from A to B to C counts as a movement from A to C. Back at A, the partition has not moved."""
    movements = TopicMovements("t")
    movements.record(1, giver=A, target=B)
    movements.record(1, giver=B, target=C)
    assert movements.substitute(2, giver=C, target=A) == 1
    movements.record(1, giver=C, target=A)
    assert movements.substitute(2, giver=C, target=A) == 2


def test_of_several_the_first_of_javas_hash_set_goes_back():
    """The order is by hash code, not by number. A table that has grown has a different order, which stays."""
    for count in (3, 13):
        movements = TopicMovements("orders")
        for number in range(count):
            movements.record(number, giver=A, target=B)
        topic, size = java_string_hash("orders"), 16 if count == 3 else 32
        first = min(range(count), key=lambda number: bucket(topic_partition_hash(topic, number), size))
        assert movements.substitute(99, giver=B, target=A) == first
