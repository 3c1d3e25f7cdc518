"""Collects what the page of a topic shows: groups, owners of partitions, and rates.

1. A group reads a topic if a member subscribes to the topic, if a member owns a partition of the topic, or if the group
   has committed offsets for the topic (`GroupReport.topics`).
2. The partition count comes from the last sample. If the last sample is stale, all values from samples are unknown, and
   the page shows only the partitions with an owner.
3. The monitor measures the produce rate of a partition only if a group has committed offsets for the partition. The
   rate is unknown if an open transaction blocks all groups with committed offsets for the partition. The load of the
   topic and its hottest partition come from `evaluation.lag.topic_loads`.
4. If an open transaction blocks a group, the owners of its partitions and its lag are unknown.
5. A partition has no owner in a group only if the owners of all partitions are known (`are_owners_known`). They are
   unknown for streams groups (KIP-1071), because the records contain tasks. A partition can have several owners in a
   group: the members of a share group read a partition together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from assignors import TopicPartition
from streaming.evaluation.lag.topic_loads import TopicLoad
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember
from streaming.page.page_input import WatchedCluster

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TopicGroup:
    """One group that reads the topic. The numbers include only partitions of the topic. None means unknown.

    `lag` is None if a partition has an unknown lag, or if no partition has a committed offset.
    """

    group: GroupReport
    owned_partitions: int | None
    lag: int | None
    consumed_records_per_second: float | None


@dataclass(frozen=True, slots=True)
class PartitionOwner:
    """The owner of a partition in one group. `members` is the number of owners. `member` is None if it is not 1."""

    group_id: str
    member: GroupMember | None
    members: int


@dataclass(frozen=True, slots=True)
class TopicPartitionRow:
    """One partition. `owners` has one entry for each group in which the owner is known, or known to be missing."""

    partition: int
    end_offset: int | None
    produced_records_per_second: float | None
    owners: tuple[PartitionOwner, ...]


@dataclass(frozen=True, slots=True)
class TopicDetail:
    """Everything that the page of a topic shows. `groups` are sorted by trouble. None means unknown.

    `partition_count` is None if the last sample is stale. The produce rate is None if the rate of one partition is
    unknown.
    """

    topic: str
    partition_count: int | None
    produced_records_per_second: float | None
    load: TopicLoad | None
    groups: tuple[TopicGroup, ...]
    partitions: tuple[TopicPartitionRow, ...]


class _GroupOwners(NamedTuple):
    """The owners of the topic's partitions in one group. If `is_complete` is False, partitions can have more owners."""

    by_partition: Mapping[int, Sequence[GroupMember]]
    is_complete: bool


def topic_detail(watched: WatchedCluster, topic: str) -> TopicDetail | None:
    """Return the details of a topic. Return None if no group reads the topic and no fresh sample contains it."""
    sample = watched.view.sample if watched.is_fresh else None
    lag = watched.lag
    reports = sorted((one for one in watched.reports.values() if topic in one.topics), key=lambda one: one.place)
    sampled = sample.topics.get(topic) if sample else None
    if not reports and sampled is None:
        return None
    rows = lag.rows_of_topic(topic) if lag else ()
    readable = [report for report in reports if not report.is_blocked]
    owners = {
        report.group_id: _GroupOwners(_owners(report.members.each, topic), report.are_owners_known)
        for report in readable
        if report.members.snapshot
    }
    count = sampled.partitions if sampled else None
    ends = sample.end_offsets if sample else {}
    load = lag.topic_loads.get(topic) if lag else None
    partitions = tuple(_partitions(topic, range(count or 0), ends, owners, rows))
    rates = [one.produced_records_per_second for one in partitions]
    produced = load.produced_records_per_second if load else total(rates)
    return TopicDetail(topic, count, produced, load, tuple(_topic_groups(reports, owners, rows)), partitions)


def _owners(members: Iterable[GroupMember], topic: str) -> Mapping[int, Sequence[GroupMember]]:
    owners = defaultdict[int, list[GroupMember]](list)
    for member in members:
        for name, number in member.held or ():
            if name == topic:
                owners[number].append(member)
    return owners


def _topic_groups(
    reports: Iterable[GroupReport], owners: Mapping[str, _GroupOwners], rows: Sequence[Row]
) -> Iterable[TopicGroup]:
    rows_by_group: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        rows_by_group[row["group_id"]].append(row)
    for report in reports:
        own, committed = owners.get(report.group_id), [] if report.is_blocked else rows_by_group[report.group_id]
        yield TopicGroup(
            report,
            len(own.by_partition) if own is not None and own.is_complete else None,
            total(row["lag"] for row in committed),
            total(row["consumed_records_per_second"] for row in committed),
        )


def total(values: Iterable[Any]) -> Any:  # noqa: ANN401 - int or float
    """Return the sum, or None if a value is unknown or if there are no values."""
    each = [*values]
    return None if not each or None in each else sum(each)


def _partitions(
    topic: str,
    numbers: Iterable[int],
    ends: Mapping[TopicPartition, int],
    owners: Mapping[str, _GroupOwners],
    rows: Iterable[Row],
) -> Iterable[TopicPartitionRow]:
    known = (row for row in rows if row["produced_records_per_second"] is not None)
    rates = {row["partition"]: row["produced_records_per_second"] for row in known}
    for number in sorted({*numbers, *(owned for of_group in owners.values() for owned in of_group.by_partition)}):
        yield TopicPartitionRow(
            number,
            ends.get((topic, number)),
            rates.get(number),
            tuple(_partition_owners(number, owners)),
        )


def _partition_owners(number: int, owners: Mapping[str, _GroupOwners]) -> Iterable[PartitionOwner]:
    for group_id, of_group in owners.items():
        members = of_group.by_partition.get(number, ())
        if members or of_group.is_complete:
            yield PartitionOwner(group_id, members[0] if len(members) == 1 else None, len(members))
