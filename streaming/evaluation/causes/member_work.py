"""Compute the work of each member and of each client host of a group: lag, produce rate and consume rate.

1. The work of a member is the sum of the work of its partitions. The partitions include those that the member must
   still revoke. The work of a host is the sum of the work of its members. The rates come from `evaluation.lag.rates`
   and are averages over five minutes.
2. If the value of one partition is unknown, the sum is unknown. If the group has no committed offset of a partition,
   the lag and the rates of the partition are unknown. Exception: the lag and the rates of a partition without records
   are 0.
3. A share is the value of one member or host, divided by the sum of the values of all members. The sum does not
   include partitions without an owner. If the sum is unknown or 0, all shares are unknown.
4. If the assignment of one member is unknown, the work of the group is unknown. The work is also unknown if the group
   has committed offsets of a partition whose owner is hidden (`partitions_with_hidden_owner`). If the host of one
   member is unknown, the work of the hosts is unknown.
5. The capacity of a member comes from `capacity.py`. Hosts have no capacity.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from assignors import TopicPartition
from streaming.group.members import GroupMember, host_name, partitions_with_hidden_owner

Amount = TypeVar("Amount", int, float)


class PartitionWork(NamedTuple):
    """The work of one partition with a committed offset, at one sample. None means unknown.

    `member_id` is the owner, or empty if the partition has no owner or an unknown owner. `lateness.py` defines
    `is_late` and `speed`. `is_blocked` is True if the oldest unread record belongs to an open transaction.
    """

    topic: str
    partition: int
    lag: int | None = None
    produced_records_per_second: float | None = None
    consumed_records_per_second: float | None = None
    status: str | None = None
    last_commit_ms: int = 0
    is_late: bool = False
    speed: float | None = None
    is_blocked: bool = False
    member_id: str = ""

    @property
    def key(self) -> TopicPartition:
        """The topic and the number of the partition."""
        return self.topic, self.partition


@dataclass(frozen=True, slots=True)
class Work:
    """The work of one member or of one host. None means unknown. A host has no `member_id` and no `client_id`."""

    name: str
    client_host: str
    client_id: str = ""
    member_id: str = ""
    members: int = 1
    partitions: int = 0
    late_partitions: int = 0
    lag: int | None = None
    produced_records_per_second: float | None = None
    consumed_records_per_second: float | None = None
    lag_share: float | None = None
    produced_share: float | None = None
    consumed_share: float | None = None
    capacity_records_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class GroupWork:
    """The work of all members and of all hosts, both sorted by produce rate in descending order."""

    members: tuple[Work, ...] = ()
    hosts: tuple[Work, ...] = ()


def group_work(
    members: Sequence[GroupMember],
    partitions: Iterable[PartitionWork],
    empty: Container[TopicPartition] = frozenset(),
    capacities: Mapping[str, float] | None = None,
) -> GroupWork | None:
    """Return the work of each member and host, or None if an owner is unknown (rule 4).

    `empty` contains the partitions without records. `capacities` contains the known capacities by member id.
    """
    by_key = {one.key: one for one in partitions}
    is_hidden = not partitions_with_hidden_owner(members).isdisjoint(by_key)
    if is_hidden or any(member.assigned is None for member in members):
        return None
    of_members = [_of_member(member, by_key, empty, (capacities or {}).get(member.member_id)) for member in members]
    of_hosts = defaultdict[str, list[Work]](list)
    for one in of_members:
        of_hosts[one.client_host].append(one)
    hosts = [] if "" in of_hosts else [_of_host(host, of_host) for host, of_host in of_hosts.items()]
    return GroupWork(_with_shares(of_members), _with_shares(hosts))


def _of_member(
    member: GroupMember,
    by_key: Mapping[TopicPartition, PartitionWork],
    empty: Container[TopicPartition],
    capacity: float | None,
) -> Work:
    keys = set(member.held or ())
    rows = [by_key[key] for key in sorted(keys) if key in by_key]
    is_complete = all(key in by_key or key in empty for key in keys)
    return Work(
        name=member.name,
        client_host=member.client_host,
        client_id=member.client_id,
        member_id=member.member_id,
        partitions=len(keys),
        late_partitions=sum(row.is_late for row in rows),
        lag=total(row.lag for row in rows) if is_complete else None,
        produced_records_per_second=total(row.produced_records_per_second for row in rows) if is_complete else None,
        consumed_records_per_second=total(row.consumed_records_per_second for row in rows) if is_complete else None,
        capacity_records_per_second=capacity,
    )


def _of_host(host: str, members: Sequence[Work]) -> Work:
    return Work(
        name=host_name(host),
        client_host=host,
        members=len(members),
        partitions=sum(one.partitions for one in members),
        late_partitions=sum(one.late_partitions for one in members),
        lag=total(one.lag for one in members),
        produced_records_per_second=total(one.produced_records_per_second for one in members),
        consumed_records_per_second=total(one.consumed_records_per_second for one in members),
    )


def _with_shares(works: Iterable[Work]) -> tuple[Work, ...]:
    works = sorted(works, key=lambda one: (-(one.produced_records_per_second or 0), one.name, one.member_id))
    lag = total(one.lag for one in works)
    produced = total(one.produced_records_per_second for one in works)
    consumed = total(one.consumed_records_per_second for one in works)
    return tuple(
        replace(
            one,
            lag_share=_share(one.lag, lag),
            produced_share=_share(one.produced_records_per_second, produced),
            consumed_share=_share(one.consumed_records_per_second, consumed),
        )
        for one in works
    )


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


def total(amounts: Iterable[Amount | None]) -> Amount | None:
    """Return the sum, or None if one amount is unknown (rule 2).

    >>> total([1, 2]), total([1, None]), total([])
    (3, None, 0)
    """
    known = [*amounts]
    return None if None in known else sum(known)  # type: ignore[arg-type]
