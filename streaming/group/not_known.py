"""What is left open of a group by where it is known from, in words a table or a dashboard can show.

From the log: what compaction took away, or nobody could read. From coordinators that are asked (`source.kind =
"admin-api"`): what no answer of theirs holds. A word here stands beside values that are None, or, for counts, beside a
lower bound.
"""

from __future__ import annotations

from typing import Final

from streaming.events import CLASSIC
from streaming.group.modern import RESOLVED_REGEX, TARGET_ASSIGNMENT, UNREADABLE_RECORD, ModernGroup
from streaming.group.snapshot import REBALANCING, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

MEMBER_SUBSCRIPTION: Final = "member_subscription"
MEMBER_ASSIGNMENT: Final = "member_assignment"
"""Bytes of a classic member that nobody could read. The group's other members are known."""

TOPIC_NAMES: Final = "topic_names"
"""Topics are told by id: they were deleted before their names were known, or too many rows waited for names."""

GENERATION_ID: Final = "generation_id"
LEADER: Final = "leader"
REBALANCES_BETWEEN_POLLS: Final = "rebalances_between_polls"
REBALANCES_FAILED: Final = "rebalances_failed"
SYNC_TIME: Final = "sync_time"
PENDING_REVOCATION: Final = "pending_revocation"
COMMIT_TIME: Final = "commit_time"
TRANSACTIONS: Final = "transactions"
HIDDEN_GROUPS: Final = "hidden_groups"

_POLLED_CLASSIC: Final = (GENERATION_ID, LEADER, REBALANCES_BETWEEN_POLLS, REBALANCES_FAILED, SYNC_TIME)
_POLLED_MODERN: Final = (PENDING_REVOCATION,)

POLLED: Final = (*_POLLED_CLASSIC, *_POLLED_MODERN, COMMIT_TIME, TRANSACTIONS)
"""What asking coordinators leaves open in general. A commit's time is that of the poll that saw it."""


def not_known(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """What is left open of this group; empty where nothing is missing."""
    missing = _missing_of(snapshot.modern) if snapshot.modern else (*_unreadable(snapshot), *unknown_bytes(snapshot))
    if not snapshot.is_polled:
        return missing
    return (*missing, *(_POLLED_CLASSIC if snapshot.group_type == CLASSIC else _POLLED_MODERN))


def _missing_of(group: ModernGroup) -> tuple[str, ...]:
    return (*group.not_known(), *((TOPIC_NAMES,) if group.unnamed_topic_ids() else ()))


def _unreadable(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """A classic group is Unknown only where its last record went to quarantine."""
    return (UNREADABLE_RECORD,) if snapshot.group_type == CLASSIC and snapshot.state == UNKNOWN else ()


def unknown_inputs(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """What is unknown of what members subscribe to and were given: no strategy can be held against it."""
    group = snapshot.modern
    if group is None:
        return unknown_bytes(snapshot)
    has_targets = group.targets.keys() >= group.members.keys()
    return (
        *(() if group.regexes_are_unresolved_yet() else (RESOLVED_REGEX,)),
        *(() if has_targets else (TARGET_ASSIGNMENT,)),
        *((TOPIC_NAMES,) if group.unnamed_target_ids() else ()),
    )


def unknown_bytes(snapshot: GroupSnapshot) -> tuple[str, ...]:
    """Which bytes of some member of a classic consumer group are unknown; other protocol types have bytes of their own.

    A coordinator shows no bytes of a group that rebalances: nothing about one member follows from that.
    """
    group = snapshot.classic
    if group is None or group.protocol_type != CONSUMER_PROTOCOL_TYPE or snapshot.state in REBALANCING:
        return ()
    return (
        *((MEMBER_SUBSCRIPTION,) if any(member.subscription is None for member in group.members) else ()),
        *((MEMBER_ASSIGNMENT,) if any(member.assignment is None for member in group.members) else ()),
    )
