"""Collects the values on the page of a client host: the members on the host, and their partitions.

1. The client host of a member comes from the last record of its group.
2. The lag of a member is the sum of the lags of its partitions at the last sample. The sum is unknown if one of the
   lags is unknown, or if the last sample is stale. The lag of a partition without a committed offset is unknown.
3. If an open transaction blocks a group, the partitions of its members are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from assignors import TopicPartition
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember, host_name
from streaming.group.printable import by_topic
from streaming.page.page_input import WatchedCluster


@dataclass(frozen=True, slots=True)
class MemberOnHost:
    """One member on the host. `topics` lists the owned partitions: each topic with its partition numbers as ranges.

    `partitions` is None if the assignment of the member is unknown.
    """

    group: GroupReport
    member: GroupMember
    partitions: int | None
    topics: tuple[tuple[str, str], ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class HostDetail:
    """All members on a host. The members of the worst group come first.

    `partitions` and `lag` are sums over all members on the host. A sum is None if the value of at least one member is
    unknown.
    """

    host: str
    members: tuple[MemberOnHost, ...]
    groups: int
    partitions: int | None
    lag: int | None


def host_detail(watched: WatchedCluster, host: str) -> HostDetail | None:
    """Return the details of a host. Return None if no member of a group is on the host."""
    reports = sorted((one for one in watched.reports.values() if host in one.members.hosts), key=lambda one: one.place)
    members = tuple(_members(watched, reports, host))
    if not members:
        return None
    return HostDetail(
        host, members, len(reports), _sum(one.partitions for one in members), _sum(one.lag for one in members)
    )


def _members(watched: WatchedCluster, reports: Iterable[GroupReport], host: str) -> Iterator[MemberOnHost]:
    lags = watched.lag.by_partition if watched.lag else {}
    for report in reports:
        lag_of: Mapping[TopicPartition, int | None] = {} if report.is_blocked else lags.get(report.group_id, {})
        for member in report.members.each:
            if host_name(member.client_host) == host:
                assigned = None if report.is_blocked else member.assigned
                yield MemberOnHost(
                    report,
                    member,
                    None if assigned is None else len(assigned),
                    by_topic(assigned or ()),
                    None if assigned is None else _sum(lag_of.get(one) for one in assigned),
                )


def _sum(values: Iterable[int | None]) -> int | None:
    total = 0
    for value in values:
        if value is None:
            return None
        total += value
    return total
