"""Estimate the capacity of each member: how many records per second the member can consume.

1. The capacity of a member is its consume rate at the latest sample at which the member was *busy*. A member is busy if
   two requirements are met. First: one of its partitions is behind or late (`lateness.py`). Second: each of its
   partitions has lag or receives no records. If a member is not busy, its consume rate only shows how much producers
   write.
2. The capacity is known only after the member was busy at MIN_SAMPLES samples. A partition needs the same number of
   samples to become late (`lateness.py`). So the capacity is usually known when the group gets a cause of lag.
3. While the consume rate of a busy member falls, its capacity is unknown. All rates are averages over five minutes. So
   when a member has become slower, its rate still includes minutes in which it was faster. The monitor compares rates
   once per COMPARE_MS. A rate *falls* if it is less than (1 - MIN_GAIN) times the rate at the previous comparison.
4. The capacity of a member that consumes nothing is unknown, because the member has probably stopped.
5. The driver forgets the capacity of a member when the member gets different partitions or leaves the group. When the
   group has read all waiting records, the driver forgets all capacities of the group.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import NamedTuple

from assignors import TopicPartition
from streaming.evaluation.causes.lateness import LATE_MS
from streaming.evaluation.causes.member_work import PartitionWork, total
from streaming.evaluation.lag.rates import MIN_GAIN
from streaming.group.members import GroupMember, TopicPartitions

MIN_SAMPLES = 3
COMPARE_MS = LATE_MS
"""Equal to LATE_MS, so the monitor has usually compared the rates (rule 3) when the group gets a cause."""


class Capacity(NamedTuple):
    """The capacity of a member: its consume rate at the latest sample at which the member was busy.

    `samples` is the number of samples at which the member was busy. `compared_records_per_second` is the rate at
    `compared_at_ms`, the time of the last comparison (rule 3).
    """

    partitions: TopicPartitions
    samples: int = 0
    records_per_second: float = 0.0
    compared_at_ms: int = 0
    compared_records_per_second: float = 0.0
    is_falling: bool = False

    def after(self, records_per_second: float, sampled_at_ms: int) -> Capacity:
        """Return the capacity, updated with a sample at which the member was busy."""
        following = self._replace(samples=self.samples + 1, records_per_second=records_per_second)
        if self.samples and 0 <= sampled_at_ms - self.compared_at_ms < COMPARE_MS:
            return following
        is_falling = records_per_second < (1 - MIN_GAIN) * self.compared_records_per_second
        return following._replace(
            compared_at_ms=sampled_at_ms, compared_records_per_second=records_per_second, is_falling=is_falling
        )


def next_capacities(
    known: Mapping[str, Capacity],
    members: Iterable[GroupMember],
    partitions: Iterable[PartitionWork],
    behind: Container[TopicPartition],
    sampled_at_ms: int,
) -> Mapping[str, Capacity]:
    """Return the capacities, updated with a sample, by member id."""
    by_key = {one.key: one for one in partitions}
    following = {}
    for member in members:
        held = member.held
        if held is None:
            continue
        capacity = known.get(member.member_id)
        if capacity is None or capacity.partitions != held:
            capacity = Capacity(held)
        rate = _rate_if_busy([by_key[key] for key in held if key in by_key], behind)
        if rate is not None:
            capacity = capacity.after(rate, sampled_at_ms)
        if capacity.samples:
            following[member.member_id] = capacity
    return following


def known_capacities(capacities: Mapping[str, Capacity]) -> Mapping[str, float]:
    """Return the known capacities in records per second, by member id (rules 2 to 4)."""
    return {
        member_id: capacity.records_per_second
        for member_id, capacity in capacities.items()
        if capacity.samples >= MIN_SAMPLES and capacity.records_per_second and not capacity.is_falling
    }


def _rate_if_busy(owned: Sequence[PartitionWork], behind: Container[TopicPartition]) -> float | None:
    if not any((one.is_late and not one.is_blocked) or one.key in behind for one in owned):
        return None
    if any(one.produced_records_per_second != 0 and not one.lag for one in owned):
        return None
    return total(one.consumed_records_per_second for one in owned)
