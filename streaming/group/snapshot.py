"""Defines the state of one group, for all group protocols."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from streaming.events import CLASSIC, CONSUMER, POLLED_PARTITION, SHARE, STREAMS, Position, TopicMetadata
from streaming.group.modern import ModernGroup
from streaming.protocol.classic import ClassicMember, GroupMetadata
from streaming.protocol.modern import ModernMember

STABLE = "Stable"
EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
PREPARING_REBALANCE = "PreparingRebalance"
COMPLETING_REBALANCE = "CompletingRebalance"
"""States of a classic group during a rebalance. Only a coordinator's response shows these states."""

DEAD = "Dead"
GONE = "Gone"
"""The group does not exist any more. The monitor did not read its tombstone, because compaction had removed it."""
UNKNOWN = "Unknown"
"""The records do not show the state: some are missing, or records of this group type do not contain the whole state."""

OVER = frozenset({DEAD, GONE})
"""States of a group that does not exist any more."""

REBALANCING = frozenset({PREPARING_REBALANCE, COMPLETING_REBALANCE})
"""States of a classic group whose members have no assignment now."""

RECORDS, BROKER = "records", "broker"
"""The source of the name of a group's strategy: the group's records, or only a response of the coordinator."""

_PROTOCOL_TYPES = {CONSUMER: "consumer", SHARE: "share", STREAMS: "streams"}
"""Maps a group type to its protocol type in ListGroups (`PROTOCOL_TYPE` in Kafka's class for the group type)."""


class Skip(msgspec.Struct, frozen=True):
    """Generation numbers without a record, between two records of the group.

    Either members joined but never synced, or compaction removed the records. If the monitor read every offset from
    `after_offset` to `before_offset`, compaction is not the cause.
    """

    after_offset: int
    before_offset: int
    generations: int


class GroupTotals(msgspec.Struct, frozen=True):
    """Total counts since the monitor first saw the group. They never decrease, even if the group is created again.

    Attributes:
        rebalances: for a classic group, the sum of all increases of the generation, minus the transitions to Empty. For
            any other group, the number of new assignments.
        rebalances_failed: number of rebalances in which members joined but never synced. A rebalance is counted only if
            the log proves that it failed.
        empty_transitions: number of times that the group lost its last member.
        incarnations: number of times that the group was created.

    """

    rebalances: int = 0
    rebalances_failed: int = 0
    empty_transitions: int = 0
    incarnations: int = 1


class Resume(msgspec.Struct, frozen=True):
    """The last row that was written for a group with an earlier checkpoint, and the counts in this row.

    The monitor reads the log again to find the members, but does not count again the records that this row already
    counts. `offsets_topic_partition` is None if an earlier version of the monitor wrote the row.
    """

    offsets_topic_offset: int
    group_type: str
    state: str
    generation_id: int | None
    totals: GroupTotals
    offsets_topic_partition: int | None = None

    def is_before(self, position: Position) -> bool:
        """Return True if the record at the given position is later than the record of the row.

        A record in a different partition is later, because the group has moved there (`combine.own_partitions`).
        """
        is_same_partition = self.offsets_topic_partition in {None, position.offsets_topic_partition}
        return not is_same_partition or position.offsets_topic_offset > self.offsets_topic_offset


class GroupSnapshot(msgspec.Struct, frozen=True):
    """The stored state of one group.

    Attributes:
        generation_id: the generation of a classic group, or the group epoch of any other group. None if unknown.
        classic, modern: the members. One of the two is None. If the group does not exist, both are None.
        resume: the last row of an earlier checkpoint. None after the monitor has read the log again up to this row.
        is_carried_over: True if the group got its type by an upgrade or downgrade of the protocol.

    """

    group_id: str
    group_type: str = CLASSIC
    state: str = DEAD
    position: Position | None = None
    generation_id: int | None = None
    classic: GroupMetadata | None = None
    modern: ModernGroup | None = None
    totals: GroupTotals = GroupTotals()
    unsettled_skips: tuple[Skip, ...] = ()
    topics: dict[str, TopicMetadata] = {}
    resume: Resume | None = None
    is_carried_over: bool = False

    @property
    def is_over(self) -> bool:
        """True if the group does not exist any more."""
        return self.state in OVER

    @property
    def is_polled(self) -> bool:
        """True if the state is from a coordinator's responses and not from the log."""
        return self.position is not None and self.position.offsets_topic_partition == POLLED_PARTITION

    @property
    def protocol_type(self) -> str | None:
        """The protocol type: `consumer` if members share the partitions of topics, `connect` for Kafka Connect, ..."""
        if self.classic is not None:
            return self.classic.protocol_type
        return None if self.modern is None else _PROTOCOL_TYPES.get(self.group_type)

    @property
    def protocol(self) -> str | None:
        """The name of the strategy, or None if unknown.

        This is the chosen protocol of a classic group, or `ModernGroup.server_assignor` of any other group.
        """
        if self.classic is not None:
            return self.classic.protocol
        return None if self.modern is None else self.modern.server_assignor()

    @property
    def protocol_source(self) -> str | None:
        """The source of `protocol`: RECORDS or BROKER. None if the strategy is unknown."""
        if self.protocol is None:
            return None
        is_reported = self.is_polled or (self.modern is not None and not self.modern.names_assignor())
        return BROKER if is_reported else RECORDS

    def stored_members(self) -> Collection[ClassicMember | ModernMember]:
        """Return the members that the records show. `group.members` converts the members of all types to one type."""
        if self.modern is not None:
            return self.modern.members.values()
        return self.classic.members if self.classic is not None else ()

    def member_count(self) -> int:
        """Return the number of members that the records show."""
        return len(self.stored_members())

    def subscribed_topics(self) -> tuple[str, ...]:
        """Return the sorted topics to which at least one member subscribes (see `known_topics`).

        The result includes the topics that the coordinator found for regular expressions.
        """
        if self.modern is not None:
            return self.modern.subscribed_topics()
        if self.classic is None:
            return ()
        return tuple(sorted({topic for member in self.classic.members for topic in known_topics(member)}))

    def topics_to_sample(self) -> tuple[str, ...]:
        """Return the topics whose metadata the state needs.

        If the group is Empty or rebalancing, the result contains the earlier topics, because the next members probably
        subscribe to the same topics.
        """
        return self.subscribed_topics() or tuple(sorted(self.topics))


def known_topics(member: ClassicMember) -> tuple[str, ...]:
    """Return the topics to which a classic member subscribes. If they are unknown, return its assigned topics.

    So the monitor also requests the partition counts of assigned topics.
    """
    if member.subscription is not None:
        return member.subscription.topics
    held = member.assignment.partitions if member.assignment else ()
    return tuple(dict.fromkeys(topic for topic, _ in held))
