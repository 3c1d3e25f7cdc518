"""Whose program made the assignment: told from the shape of the bytes, for users name their clients as they like.

Only the leader's matters; what it serialised is every member's assignment. Seen in records of real clients (the table
of `tests/streaming/judgement/test_leader.py`):

| leader | assignment bytes | its own subscription bytes |
|---|---|---|
| Java 2.4 and later | the version of its subscriptions, user data null | version 1 to 3, user data null unless sticky |
| librdkafka | version 0, user data there, be it empty | version 3 (before 2.3: 0 or 1), user data there |
| kafka-python | version 0 or 1, the same as its subscriptions, user data there | version 0 or 1, user data there |

Anything else is unknown: other programs exist, and none is guessed.
"""

from __future__ import annotations

import msgspec

from streaming.protocol.classic import ClassicMember, GroupMetadata

JAVA = "java"
LIBRDKAFKA = "librdkafka"
KAFKA_PYTHON = "kafka-python"
UNKNOWN_LEADER = "unknown"

_OLDEST_JAVA_VERSION = 1
"""Before 2.4 Java wrote version 0 with null user data; so do others."""


class Leader(msgspec.Struct, frozen=True):
    """The leader's implementation and what it was told from, in words for a person."""

    implementation: str
    evidence: tuple[str, ...]


def leader_of(metadata: GroupMetadata) -> Leader:
    """Tell who assigned. Unknown where the leader is not among the members or nobody was given bytes."""
    leader = next((member for member in metadata.members if member.member_id == metadata.leader), None)
    shapes = {
        (member.assignment.version, member.assignment.user_data is None)
        for member in metadata.members
        if member.assignment is not None and member.assignment.version is not None
    }
    if leader is None or leader.subscription is None or len(shapes) != 1:
        return Leader(UNKNOWN_LEADER, ())
    ((assignment_version, is_null),) = shapes
    evidence = (
        _shape("assignments", assignment_version, is_null=is_null),
        _shape("leader's subscription", leader.subscription.version, is_null=leader.subscription.user_data is None),
    )
    return Leader(_implementation(leader, assignment_version, user_data_is_null=is_null), evidence)


def _shape(what: str, version: int, *, is_null: bool) -> str:
    return f"{what}: version {version}, user data {'null' if is_null else 'not null'}"


def _implementation(leader: ClassicMember, assignment_version: int, *, user_data_is_null: bool) -> str:
    if leader.subscription is None:
        return UNKNOWN_LEADER
    version = leader.subscription.version
    if user_data_is_null:
        return JAVA if assignment_version == version >= _OLDEST_JAVA_VERSION else UNKNOWN_LEADER
    if leader.subscription.user_data is None:
        return UNKNOWN_LEADER
    if assignment_version == 0 and (version > 1 or leader.member_id.startswith("rdkafka-")):
        return LIBRDKAFKA
    return KAFKA_PYTHON if assignment_version == version <= 1 else UNKNOWN_LEADER
