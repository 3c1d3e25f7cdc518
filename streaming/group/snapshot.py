"""One group as far as the log tells."""

from __future__ import annotations

import msgspec

from streaming.events import Position, TopicMetadata
from streaming.protocol.classic import GroupMetadata

STABLE = "Stable"
EMPTY = "Empty"
DEAD = "Dead"
SEEN = "Seen"
"""State of a group whose type is recognised but whose membership is not read yet."""


class Skip(msgspec.Struct, frozen=True):
    """Generation numbers that no record carries, between two records of the group.

    After a join that never synced there is no record for its number; compaction takes records away too. Which of the
    two it was can be told only by whether every offset of `after_offset`..`before_offset` was read.
    """

    after_offset: int
    before_offset: int
    generations: int


class GroupTotals(msgspec.Struct, frozen=True):
    """Absolute counts since the group was first seen. They never fall, not even when the group is created anew.

    `rebalances` is the generation difference without the transitions to Empty; `rebalances_failed` are those of them
    that were joined and never synced, as far as an uncompacted log proves it.
    """

    rebalances: int = 0
    rebalances_failed: int = 0
    empty_transitions: int = 0
    incarnations: int = 1


class GroupSnapshot(msgspec.Struct, frozen=True):
    """Everything the monitor remembers of a group between two batches."""

    group_id: str
    group_type: str = "classic"
    state: str = DEAD
    position: Position | None = None
    generation_id: int = -1
    metadata: GroupMetadata | None = None
    totals: GroupTotals = GroupTotals()
    unsettled_skips: tuple[Skip, ...] = ()
    topics: dict[str, TopicMetadata] = {}

    def subscribed_topics(self) -> tuple[str, ...]:
        """The topics any member subscribes to, sorted."""
        if self.metadata is None:
            return ()
        subscriptions = (member.subscription for member in self.metadata.members)
        return tuple(sorted({topic for subscription in subscriptions if subscription for topic in subscription.topics}))
