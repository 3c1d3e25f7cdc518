"""Recognise the client library of each member of a group. No record names the library of a member.

1. The leader uses the library that computed the assignment, if `leader.py` recognised this library.
2. If rule 1 does not apply, and the member has the default client id of a library, the member uses this library. For
   example, the default client id of Java's consumer is `consumer-<group id>-<number>`. Users can configure any client
   id, so rule 2 is weaker evidence than rule 1.
3. If neither rule 1 nor rule 2 applies, the library is unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from streaming.evaluation.assignment.leader import BROKER, DEFAULT_CLIENT_IDS, JAVA, UNKNOWN_LEADER
from streaming.group.members import GroupMember

ASSIGNMENT, CLIENT_ID = "assignment", "client_id"


@dataclass(frozen=True, slots=True)
class MemberLibrary:
    """The library of a member. `evidence` is `assignment` (rule 1) or `client_id` (rule 2)."""

    name: str
    evidence: str


def member_library(
    group_id: str, member: GroupMember, leader: GroupMember | None, assigned_by: str | None
) -> MemberLibrary | None:
    """Return the library of a member, or None if the library is unknown.

    `assigned_by` is the library that computed the assignment, or `broker`. Rule 1 does not apply to `broker`.
    """
    is_leader = leader is not None and leader.member_id == member.member_id
    if is_leader and assigned_by not in {None, BROKER, UNKNOWN_LEADER}:
        return MemberLibrary(str(assigned_by), ASSIGNMENT)
    with_dash = f"{member.client_id}-"
    names = [name for name, prefix in DEFAULT_CLIENT_IDS.items() if with_dash.startswith(prefix)]
    number = member.client_id.removeprefix(f"consumer-{group_id}-")
    if number != member.client_id and number.isascii() and number.isdecimal():
        names.append(JAVA)
    return MemberLibrary(names[0], CLIENT_ID) if len(names) == 1 else None
