"""Computes the values that a page about the past shows in addition to the report of the group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from assignors import TopicPartition
from streaming.delta.cells import timestamp_ms
from streaming.evaluation.assignment.member_shares import lag_of
from streaming.evaluation.rebalances.member_changes import GONE, JOINED, REJOINED, RESUBSCRIBED, MemberChange
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember, TopicPartitions, member_name
from streaming.group.printable import by_topic
from streaming.page.rendering import utc_text
from streaming.past.coverage import Coverage
from streaming.past.moments import format_moment
from streaming.past.report import Findings, PastGroup
from streaming.past.silence import Measurement

HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class PastMoment:
    """The moment that `?at=` selects, and the moments one hour before and after it.

    `later` is None if it is in the future.
    """

    at_ms: int
    text: str
    earlier: str
    later: str | None


def past_moment(at_ms: int, now_ms: int) -> PastMoment:
    """Return the moment, and the moments one hour before and after it.

    >>> past_moment(1795385040000, 1795385040001)
    PastMoment(at_ms=1795385040000, text='2026-11-22T22:04', earlier='2026-11-22T21:04', later=None)
    """
    later_ms = at_ms + HOUR_MS
    return PastMoment(
        at_ms,
        format_moment(at_ms),
        format_moment(max(0, at_ms - HOUR_MS)),
        format_moment(later_ms) if later_ms <= now_ms else None,
    )


@dataclass(frozen=True, slots=True)
class CoveredCluster:
    """The times that the tables cover for one cluster.

    `refusal` is set if the tables do not cover the requested moments. `measurement` is the last measurement before the
    moment of `?at=`. It is None if `refusal` is set, or if the request has no `?at=`.
    """

    cluster: str
    coverage: Coverage
    refusal: str | None = None
    measurement: Measurement | None = None

    @property
    def gap_text(self) -> str | None:
        """The warning of `measurement_gap`, or None."""
        return None if self.measurement is None else measurement_gap(self.measurement)


def measurement_gap(measurement: Measurement) -> str | None:
    """Return a warning if the last measurement before the moment is missing or too old. Otherwise, return None.

    >>> print(measurement_gap(Measurement()))
    The tables have no measurement before this time. So lag, status, conditions, causes and incidents are unknown.
    """
    if measurement.is_recent:
        return None
    last = "The tables have no measurement before this time"
    if measurement.last_ms is not None:
        last = f"The last measurement before this time is from {utc_text(measurement.last_ms)}"
    return f"{last}. So lag, status, conditions, causes and incidents are unknown."


def last_findings(past: PastGroup) -> Sequence[str]:
    """Describe the conditions and the cause of lag at the last measurement. Empty if the measurement is recent."""
    last = past.last_findings or Findings()
    sentences = [
        f"{one.name.replace('_', ' ')} since {utc_text(one.since_ms)}{f': {one.detail}' if one.detail else ''}"
        for one in last.conditions
    ]
    if last.cause is not None:
        since = utc_text(timestamp_ms(last.cause["since_time"]))
        sentences.append(f"cause of the lag since {since}: {last.cause['text'] or ''}")
    return sentences


@dataclass(frozen=True, slots=True)
class PastMember:
    """One member at the moment that `?at=` selects. `topics` lists each topic with its partition numbers as ranges.

    None means unknown. `partitions` counts the partitions that the leader or the coordinator assigned to the member.
    `expected` counts the partitions that the group's strategy assigns to the member.
    """

    member: GroupMember
    partitions: int | None
    expected: int | None
    topics: Sequence[tuple[str, str]] | None
    lag: int | None


def past_members(group: GroupReport, lag: Mapping[TopicPartition, int | None]) -> Sequence[PastMember]:
    """Return the members, the busiest first. Equally busy members are sorted by name."""
    expected = group.members.expected_partitions
    each = [
        PastMember(
            member=member,
            partitions=None if member.target is None else len(member.target),
            expected=None if expected is None else expected.get(member.member_id, 0),
            topics=_by_topic(member.target),
            lag=lag_of(member.held, lag),
        )
        for member in group.members.each
    ]
    return sorted(each, key=lambda one: (-(one.partitions or 0), one.member.name, one.member.member_id))


@dataclass(frozen=True, slots=True)
class PastChange:
    """The change of one member between two generations. `lost` and `gained` are None if unknown."""

    name: str
    member_id: str
    what: str
    lost: Sequence[tuple[str, str]] | None
    gained: Sequence[tuple[str, str]] | None


_CHANGES = {GONE: "left", JOINED: "joined", REJOINED: "new member id", RESUBSCRIBED: "changed its subscription"}


def past_changes(changes: Iterable[MemberChange]) -> Sequence[PastChange]:
    """Describe how each member changed. Members that left come first, then members that joined."""
    rank = {GONE: 0, JOINED: 1}
    ordered = sorted(changes, key=lambda one: (min((rank.get(kind, 2) for kind in one.changes), default=2), one.key))
    return [
        PastChange(
            name=member_name(one.client_id, one.client_host, one.group_instance_id),
            member_id=one.member_id,
            what=", ".join(_CHANGES.get(kind, kind) for kind in one.changes) or "stayed",
            lost=_by_topic(one.revoked),
            gained=_by_topic(one.assigned),
        )
        for one in ordered
    ]


def _by_topic(partitions: TopicPartitions | None) -> Sequence[tuple[str, str]] | None:
    return None if partitions is None else by_topic(partitions)


def covered(clusters: Iterable[CoveredCluster]) -> Sequence[CoveredCluster]:
    """Return the clusters whose tables cover the requested moments."""
    return [one for one in clusters if one.refusal is None]
