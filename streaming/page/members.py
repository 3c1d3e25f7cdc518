"""Collects what a group's page shows about each member: client, library and timeouts. Marks the leader."""

from __future__ import annotations

from dataclasses import dataclass

from streaming.evaluation.assignment.member_library import MemberLibrary, member_library
from streaming.evaluation.report import GroupReport
from streaming.group.members import GroupMember


@dataclass(frozen=True, slots=True)
class MemberFacts:
    """One member. `library` is None if it is unknown. `is_leader` is None in a classic group with an unknown leader."""

    member: GroupMember
    library: MemberLibrary | None
    is_leader: bool | None


def member_facts(group: GroupReport) -> tuple[MemberFacts, ...]:
    """Return the members of a group, the leader first, then sorted by name."""
    leader, assigned_by = group.members.leader, group.assignment.assigned_by
    is_leader_known = leader is not None or group.membership.group_type != "classic"
    facts = (
        MemberFacts(
            member,
            member_library(group.group_id, member, leader, assigned_by),
            leader is not None and leader.member_id == member.member_id if is_leader_known else None,
        )
        for member in group.members.each
    )
    return tuple(sorted(facts, key=lambda one: (not one.is_leader, one.member.name, one.member.member_id)))
