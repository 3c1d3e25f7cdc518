"""Facts about late groups, for tests of the cause of lag."""

from __future__ import annotations

from typing import NamedTuple

from streaming.evaluation.causes.cause_of_lag import LagFacts
from streaming.evaluation.causes.member_work import PartitionWork, group_work
from streaming.group.members import GroupMember

NOW_MS = 10_000_000
OTHER_MS = NOW_MS - 120_000
"""A commit at this time is too old to prove progress."""


class Flow(NamedTuple):
    """One partition: its produce rate and its consume rate in records per second."""

    produced: float | None = 100.0
    consumed: float | None = 100.0
    is_late: bool = False
    status: str | None = "OK"
    last_commit_ms: int = NOW_MS - 1_000
    is_blocked: bool = False
    speed: float | None = None


class Owner(NamedTuple):
    """A member, its partitions, its host and its known capacity."""

    name: str
    flows: tuple[Flow, ...]
    host: str = ""
    capacity: float | None = None


def late(produced: float | None, consumed: float | None, **changes: object) -> Flow:
    """Return a late partition."""
    return Flow(produced, consumed, is_late=True)._replace(**changes)  # type: ignore[arg-type]


def in_time(produced: float | None, consumed: float | None = None) -> Flow:
    """Return a partition that is not late. By default, the group consumes what producers write."""
    return Flow(produced, produced if consumed is None else consumed)


def stuck(status: str = "STOP") -> Flow:
    """Return a late partition whose committed offset does not advance."""
    return late(100.0, 0.0, status=status, last_commit_ms=OTHER_MS)


def group_member(name: str, host: str, assigned: tuple[tuple[str, int], ...] | None) -> GroupMember:
    """Return a member with these partitions. Its member id has the same order as its name."""
    unknown = dict.fromkeys(("rack_id", "subscribed_topics", "subscribed_regex", "member_epoch", "owned", "target"))
    return GroupMember(
        member_id=f"id-{name}",
        group_instance_id=name,
        client_id="app",
        client_host=host or f"/host-of-{name}",
        assigned=assigned,
        pending_revocation=(),
        **unknown,  # type: ignore[arg-type]
    )


def facts(*owners: Owner, unowned: tuple[Flow, ...] = (), are_owners_known: bool = True, **changes: object) -> LagFacts:
    """Return the facts about a group. Its partitions belong to one topic, and are numbered in the given order."""
    partitions: list[PartitionWork] = []
    members, capacities = [], {}
    for owner in (*owners, Owner("", unowned)):
        numbers = range(len(partitions), len(partitions) + len(owner.flows))
        member = group_member(owner.name, owner.host, tuple(("orders", number) for number in numbers))
        partitions += [
            PartitionWork(
                "orders",
                number,
                lag=500 if flow.is_late else 5,
                produced_records_per_second=flow.produced,
                consumed_records_per_second=flow.consumed,
                status=flow.status,
                last_commit_ms=flow.last_commit_ms,
                is_late=flow.is_late,
                speed=flow.speed,
                is_blocked=flow.is_blocked,
                member_id=member.member_id if owner.name and are_owners_known else "",
            )
            for number, flow in zip(numbers, owner.flows, strict=True)
        ]
        if owner.name:
            members.append(member)
            if owner.capacity is not None:
                capacities[member.member_id] = owner.capacity
    work = group_work(members, partitions, capacities=capacities) if are_owners_known else None
    given = {"work": work, "member_count": len(owners), "window_ms": 300_000, **changes}
    return LagFacts(NOW_MS, tuple(partitions), **given)  # type: ignore[arg-type]
