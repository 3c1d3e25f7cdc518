"""Lists the unknown facts about a group. Each fact has a name in tables and dashboards, for example `leader`.

When the monitor reads the log, a fact is unknown if its record is undecodable, or if compaction removed its record. In
the polling mode (`source.kind = "admin-api"`), a fact is unknown if no coordinator returns it. The value of an unknown
fact is None. Exception: if a count is not known exactly, its value is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from streaming.events import CLASSIC
from streaming.group.modern import (
    GROUP_EPOCH,
    MEMBER_METADATA,
    RESOLVED_REGEX,
    TARGET_ASSIGNMENT,
    UNREADABLE_RECORD,
    ModernGroup,
)
from streaming.group.snapshot import REBALANCING, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

MEMBER_SUBSCRIPTION: Final = "member_subscription"
MEMBER_ASSIGNMENT: Final = "member_assignment"
"""The bytes of a classic member cannot be decoded. The values of the group's other members are known."""

TOPIC_NAMES: Final = "topic_names"
"""Some topics are shown by id. They were deleted before their names were known, or too many rows waited for names."""

GENERATION_ID: Final = "generation_id"
LEADER: Final = "leader"
REBALANCES_BETWEEN_POLLS: Final = "rebalances_between_polls"
REBALANCES_FAILED: Final = "rebalances_failed"
SYNC_TIME: Final = "sync_time"
PENDING_REVOCATION: Final = "pending_revocation"
COMMIT_TIME: Final = "commit_time"
TRANSACTIONS: Final = "transactions"
HIDDEN_GROUPS: Final = "hidden_groups"

_HIDES_MEMBERS: Final = frozenset({GROUP_EPOCH, MEMBER_METADATA, UNREADABLE_RECORD})

_POLLED_CLASSIC: Final = (GENERATION_ID, LEADER, REBALANCES_BETWEEN_POLLS, REBALANCES_FAILED, SYNC_TIME)
_POLLED_MODERN: Final = (PENDING_REVOCATION,)

POLLED: Final = (*_POLLED_CLASSIC, *_POLLED_MODERN, COMMIT_TIME, TRANSACTIONS)
"""All facts that the polling mode does not provide. The commit time is replaced by the time of the poll."""


def not_known(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Return the unknown facts about this group. The result is empty if all facts are known."""
    if group := snapshot.modern:
        missing = (*group.not_known(), *((TOPIC_NAMES,) if group.unnamed_topic_ids() else ()))
    else:  # a classic group is Unknown only if its last record is undecodable
        is_unreadable = snapshot.group_type == CLASSIC and snapshot.state == UNKNOWN
        missing = (*((UNREADABLE_RECORD,) if is_unreadable else ()), *unknown_bytes(snapshot))
    if not snapshot.is_polled:
        return missing
    return (*missing, *(_POLLED_CLASSIC if snapshot.group_type == CLASSIC else _POLLED_MODERN))


def hides_members(names: Iterable[str]) -> bool:
    """Return True if members can be missing in the group's records. `names` is the result of `not_known`.

    >>> hides_members(["topic_names"]), hides_members(["topic_names", "member_metadata"])
    (False, True)
    """
    return not _HIDES_MEMBERS.isdisjoint(names)


def unknown_inputs(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Return the unknown facts about subscriptions and assignments. If there is one, no evaluation is possible."""
    group = snapshot.modern
    if group is None:
        return unknown_bytes(snapshot)
    has_targets = group.targets.keys() >= group.members.keys()
    return (
        *((RESOLVED_REGEX,) if hides_regex_topics(snapshot, group) else ()),
        *(() if has_targets else (TARGET_ASSIGNMENT,)),
        *((TOPIC_NAMES,) if group.unnamed_target_ids() else ()),
    )


def hides_regex_topics(snapshot: GroupSnapshot, group: ModernGroup) -> bool:
    """Return True if the coordinator may know the topics of a regular expression, but the monitor does not.

    In the log, an expression that the coordinator has not resolved yet has no topics. In the polling mode, the topics
    of every expression are unknown, because responses never contain these topics.
    """
    return bool(group.subscribed_regexes()) if snapshot.is_polled else not group.regexes_are_unresolved_yet()


def unknown_bytes(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Return the unknown facts about the members of a classic group: MEMBER_SUBSCRIPTION, MEMBER_ASSIGNMENT.

    The bytes of other protocol types have different formats. During a rebalance, the coordinator returns no bytes.
    So in both cases, the result is empty.
    """
    group = snapshot.classic
    if group is None or group.protocol_type != CONSUMER_PROTOCOL_TYPE or snapshot.state in REBALANCING:
        return ()
    return (
        *((MEMBER_SUBSCRIPTION,) if any(member.subscription is None for member in group.members) else ()),
        *((MEMBER_ASSIGNMENT,) if any(member.assignment is None for member in group.members) else ()),
    )
