"""One group as far as the log tells, whatever protocol its members speak."""

from __future__ import annotations

import msgspec

from streaming.events import CLASSIC, CONSUMER, POLLED_PARTITION, SHARE, STREAMS, Position, TopicMetadata
from streaming.group.modern import ModernGroup
from streaming.protocol.classic import ClassicMember, GroupMetadata

STABLE = "Stable"
EMPTY = "Empty"
ASSIGNING = "Assigning"
RECONCILING = "Reconciling"
PREPARING_REBALANCE = "PreparingRebalance"
COMPLETING_REBALANCE = "CompletingRebalance"
"""States of a classic group between two generations: no record tells them, a coordinator that is asked does."""

DEAD = "Dead"
GONE = "Gone"
"""Gone, and no record says so: the brokers do not list the group any more. Its tombstone expired before it was read."""
UNKNOWN = "Unknown"
"""What was read does not tell the state: records are missing, or the group's type keeps part of the state elsewhere."""

OVER = frozenset({DEAD, GONE})
"""States of a group that exists no more."""

REBALANCING = frozenset({PREPARING_REBALANCE, COMPLETING_REBALANCE})
"""States of a classic group whose members have no assignment at the moment."""


RECORDS, BROKER = "records", "broker"
"""Who named a group's strategy: the records of its members, or only the coordinator that was asked."""

_PROTOCOL_TYPES = {CONSUMER: "consumer", SHARE: "share", STREAMS: "streams"}
"""As ListGroups answers (`ConsumerGroup.PROTOCOL_TYPE` and its like)."""


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

    `rebalances` is the difference of generations or epochs without the transitions to Empty; `rebalances_failed` are
    those of them that were joined and never synced, as far as an uncompacted log proves it.
    """

    rebalances: int = 0
    rebalances_failed: int = 0
    empty_transitions: int = 0
    incarnations: int = 1


class Resume(msgspec.Struct, frozen=True):
    """Where an earlier checkpoint's tables leave a group: what was counted up to the record at `offsets_topic_offset`.

    The log is read again from its start for what members said; what it counts up to there was counted before. An
    earlier version of the monitor did not store `offsets_topic_partition`: None is the partition of whatever is read.
    """

    offsets_topic_offset: int
    group_type: str
    state: str
    generation_id: int | None
    totals: GroupTotals
    offsets_topic_partition: int | None = None

    def is_before(self, position: Position) -> bool:
        """Whether the record at a position came later. Offsets of two partitions have no order.

        A group is read from a different partition only after it moved there (`combine.own_partitions`).
        """
        is_same_partition = self.offsets_topic_partition in {None, position.offsets_topic_partition}
        return not is_same_partition or position.offsets_topic_offset > self.offsets_topic_offset


class GroupSnapshot(msgspec.Struct, frozen=True):
    """Everything the monitor remembers of a group between two batches.

    `generation_id` is the generation of a classic group, the group epoch of all others; None where nobody told.
    Of `classic` and `modern` at most one is there: what the members of a living group said and were given. `resume` is
    there as long as the log is read again. `is_carried_over` says that the group came to its type by upgrade or
    downgrade.
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
        """Whether the group exists no more."""
        return self.state in OVER

    @property
    def is_polled(self) -> bool:
        """Whether it is known from a coordinator's answers, not from the log."""
        return self.position is not None and self.position.offsets_topic_partition == POLLED_PARTITION

    @property
    def protocol_type(self) -> str | None:
        """What the members divide among them: `consumer` for partitions of topics, else as they gave it (`connect`)."""
        if self.classic is not None:
            return self.classic.protocol_type
        return None if self.modern is None else _PROTOCOL_TYPES.get(self.group_type)

    @property
    def protocol(self) -> str | None:
        """The name of the strategy: the leader's, or the server assignor that most members name.

        If no member names one, it is the assignor that the coordinator reported. None where nobody named one.
        """
        if self.classic is not None:
            return self.classic.protocol
        return None if self.modern is None else self.modern.server_assignor()

    @property
    def protocol_source(self) -> str | None:
        """RECORDS or BROKER, by who named the strategy; None where the strategy is unknown."""
        if self.protocol is None:
            return None
        is_reported = self.is_polled or (self.modern is not None and not self.modern.names_assignor())
        return BROKER if is_reported else RECORDS

    def member_count(self) -> int:
        """How many members the group has, as far as records tell."""
        if self.modern is not None:
            return len(self.modern.members)
        return len(self.classic.members) if self.classic is not None else 0

    def subscribed_topics(self) -> tuple[str, ...]:
        """The topics any member subscribes to, sorted; those of a regular expression as the coordinator resolved it.

        Of a member whose subscription is unknown: the topics it was assigned.
        """
        if self.modern is not None:
            return self.modern.subscribed_topics()
        if self.classic is None:
            return ()
        return tuple(sorted({topic for member in self.classic.members for topic in known_topics(member)}))


def known_topics(member: ClassicMember) -> tuple[str, ...]:
    """The topics a classic member subscribes to; where that is unknown, those it was assigned partitions of.

    So their partition counts are known, and a partition that exists is not called unknown.
    """
    if member.subscription is not None:
        return member.subscription.topics
    held = member.assignment.partitions if member.assignment else ()
    return tuple(dict.fromkeys(topic for topic, _ in held))
