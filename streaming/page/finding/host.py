"""Collects the values on the page of a client host: the members on the host, and their partitions.

1. The client host of a member comes from the last record of its group.
2. The lag of a member is the sum of the lags of its partitions at the last sample. The sum is unknown if one of the
   lags is unknown, or if the last sample is stale. The lag of a partition without a committed offset is unknown.
3. If an open transaction blocks a group, the partitions of its members are unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streaming.evaluation.assignment.member_shares import lag_of
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember, host_name
from streaming.group.printable import by_topic
from streaming.page.finding.topic import total
from streaming.page.page_input import WatchedCluster


@dataclass(frozen=True, slots=True)
class MemberOnHost:
    """One member on the host. `topics` lists each topic with its owned partitions as ranges. None means unknown."""

    group: GroupReport
    member: GroupMember
    partitions: int | None
    topics: tuple[tuple[str, str], ...]
    lag: int | None


@dataclass(frozen=True, slots=True)
class HostDetail:
    """All members on a host, first those of the worst group. A sum is None if the value of one member is unknown."""

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
    partitions, lag = total(one.partitions for one in members), total(one.lag for one in members)
    return HostDetail(host, members, len(reports), partitions, lag)


def _members(watched: WatchedCluster, reports: Iterable[GroupReport], host: str) -> Iterator[MemberOnHost]:
    lags = watched.lag.by_partition if watched.lag else {}
    for report in reports:
        for member in report.members.each:
            if host_name(member.client_host) == host:
                held = None if report.is_blocked else member.held
                yield MemberOnHost(
                    report,
                    member,
                    None if held is None else len(held),
                    by_topic(held or ()),
                    lag_of(held, lags.get(report.group_id, {})),
                )
