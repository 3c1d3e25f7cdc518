"""Compare two generations of a group: find the changed members, and count the moved partitions.

1. `before` is the earlier row of `group_generations`, and `after` is the later row. There can be other generations
   between `before` and `after`.
2. Changed members and moved partitions are defined as for a rebalance (`evaluation/rebalances/rebalances.py`, rules 4
   and 7). A member that left and joined again between the two generations is not a changed member.
3. The number of moves is known only for consumer groups, because each of their partitions has one owner. The number is
   also unknown if information is missing in `before` or `after` (`not_known`).
4. A partition without an owner in `before` or in `after` did not move: it was gained or lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from streaming.evaluation.facts import Membership
from streaming.evaluation.rebalances.member_changes import MemberChange, member_changes
from streaming.evaluation.rebalances.partition_movement import count_moves_between, is_all_known, targets_by_member
from streaming.events import CLASSIC, CONSUMER
from streaming.group.members import GroupMember
from streaming.group.snapshot import OVER
from streaming.past.rows import Row, group_members, membership
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two generations of a group, and the difference between them.

    `is_exact` is False if `fewest_moves` is only a lower bound. `rebalances` contains the last rows of the table
    `rebalances` between the two generations, the newest first. Each row includes its commit gaps (`with_commit_gaps`).
    """

    before: Membership
    after: Membership
    changes: tuple[MemberChange, ...]
    moved_partitions: int | None
    fewest_moves: int | None
    is_exact: bool
    rebalances: Sequence[Row]
    has_more_rebalances: bool = False


def compare(before: Row, after: Row, rebalances: Sequence[Row], *, has_more_rebalances: bool = False) -> Comparison:
    """Compare two rows of `group_generations`."""
    then, now = group_members(before), group_members(after)
    moved, fewest, is_exact = _moves(before, after, then, now)
    return Comparison(
        before=membership(before, len(then)),
        after=membership(after, len(now)),
        changes=member_changes(then, now),
        moved_partitions=moved,
        fewest_moves=fewest,
        is_exact=is_exact,
        rebalances=rebalances,
        has_more_rebalances=has_more_rebalances,
    )


def _moves(
    before: Row, after: Row, then: tuple[GroupMember, ...], now: tuple[GroupMember, ...]
) -> tuple[int | None, int | None, bool]:
    if not (_has_owners(before) and _has_owners(after) and is_all_known((*then, *now))):
        return None, None, False
    held_before, held_now = targets_by_member(then), targets_by_member(now)
    subscribed = {topic for member in now for topic in member.subscribed_topics or ()}
    had = {at for at in chain.from_iterable(held_before.values()) if at[0] in subscribed}
    is_whole = had.issubset(chain.from_iterable(held_now.values()))
    return count_moves_between(held_before, held_now, now, after["protocol"], is_whole=is_whole)


def _has_owners(row: Row) -> bool:
    if row["not_known"] or row["group_type"] not in {CLASSIC, CONSUMER}:
        return False
    return row["state"] in OVER or not row["members"] or row["protocol_type"] == CONSUMER_PROTOCOL_TYPE
