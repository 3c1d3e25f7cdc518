"""What brokers say of groups when asked, as values: lists of groups, descriptions, committed offsets.

An answer of this kind is younger than the log and poorer: it has no generation, no history, no time of its own. What a
broker did not say is None or `Unanswered`; only its own word that there is no such group is `GroupNotFound`.

Example: a listing with a gap proves nothing about the groups it lacks.

>>> GroupListing(0, {}, gaps=(ListingGap(2, "coordinator_load_in_progress"),)).is_complete
False
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streaming.events import CLASSIC, CONSUMER, SHARE, STREAMS
from streaming.group.snapshot import REBALANCING, STABLE, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, decode_assignment, topic_partitions
from streaming.protocol.errors import UndecodableRecord

GROUP_TYPES: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)
"""In the order in which Kafka learned them."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group as its coordinator lists it.

    `group_type` is None from brokers before 3.8 (ListGroups before version 5), `state` from brokers before 2.6 (before
    version 4, KIP-518). `protocol_type` is empty for a group that only commits. `coordinator` is the broker's id.
    """

    group_type: str | None
    protocol_type: str
    state: str | None
    coordinator: int


@dataclass(frozen=True, slots=True)
class ListingGap:
    """Why groups may be missing: a broker (None: the whole cluster) and the reason in one word."""

    broker_id: int | None
    reason: str


CLUSTER_NOT_DESCRIBABLE: Final = "cluster_describe_not_authorized"
"""Without DESCRIBE on the cluster a broker lists only groups we have DESCRIBE on, and does not say so."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    """Every group that some broker listed, and why others may be missing.

    Even a complete listing is no proof that a group is gone: brokers are asked one by one, and a group whose
    coordinator moves meanwhile is on neither list. Describe it: only `GroupNotFound` is proof.
    """

    sampled_at_ms: int
    groups: Mapping[str, ListedGroup]
    gaps: tuple[ListingGap, ...] = ()

    @property
    def is_complete(self) -> bool:
        """Whether every broker answered without an error and none had reason to hide groups from us."""
        return not self.gaps


def rebalancing_since_ms(known: Mapping[str, int], listing: GroupListing | None) -> Mapping[str, int]:
    """Since when each group has been in the middle of a rebalance in every listing.

    The registry removes a group from `known` when a record shows the end of its rebalance.

    >>> twice = {"g": ListedGroup("classic", "consumer", "PreparingRebalance", 1)}
    >>> rebalancing_since_ms({"g": 5}, GroupListing(9, twice)), rebalancing_since_ms({}, GroupListing(9, twice))
    ({'g': 5}, {'g': 9})
    """
    if listing is None:
        return {}
    return {
        group_id: known.get(group_id, listing.sampled_at_ms)
        for group_id, listed in listing.groups.items()
        if listed.state in REBALANCING
    }


def shown_state(snapshot: GroupSnapshot, listing: GroupListing | None) -> str:
    """The group's state as its records tell it; a listing's where it is younger and they cannot.

    Records never tell a rebalance of a classic group in progress, nor the state of a streams group that has members.
    """
    position = snapshot.position
    listed = listing.groups.get(snapshot.group_id) if listing else None
    if listed is None or listing is None or listed.state is None:
        return snapshot.state
    if position is not None and position.timestamp_ms > listing.sampled_at_ms:
        return snapshot.state
    is_reported_by_listing = listed.state in REBALANCING or (
        snapshot.group_type == STREAMS and snapshot.state == UNKNOWN
    )
    return listed.state if is_reported_by_listing else snapshot.state


@dataclass(frozen=True, slots=True)
class GroupNotFound:
    """The coordinator said that it has no such group, of any type that it knows."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """No answer: `reason` is Kafka's error in lower case (`group_authorization_failed`, `request_timed_out`)."""

    reason: str


@dataclass(frozen=True, slots=True)
class HeldTopic:
    """Partitions of one topic in a current or target assignment; `topic_id` as Kafka prints it."""

    topic_id: str
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeldTask:
    """Partitions of one subtopology that a member of a streams group works on."""

    subtopology_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """A member as its group's coordinator describes it; None where its group's type has no such thing.

    Classic: `subscription` and `assignment` are the bytes the protocol type defines, empty unless the group is Stable.
    Consumer and share: `subscribed_topics`, `held` and (consumer) `subscribed_regex` and `target`, `member_epoch`
    (-2: a static member that left for a while). Streams: `active_tasks`.
    """

    member_id: str
    client_id: str
    client_host: str
    group_instance_id: str | None = None
    subscription: bytes | None = None
    assignment: bytes | None = None
    rack_id: str | None = None
    member_epoch: int | None = None
    subscribed_topics: tuple[str, ...] | None = None
    subscribed_regex: str | None = None
    held: tuple[HeldTopic, ...] | None = None
    target: tuple[HeldTopic, ...] | None = None
    active_tasks: tuple[HeldTask, ...] | None = None


@dataclass(frozen=True, slots=True)
class DescribedGroup:
    """A group as its coordinator describes it.

    `protocol` is the strategy: a classic group's chosen protocol (None unless Stable), a consumer or share group's
    assignor. `group_epoch` and `assignment_epoch` are None for classic groups: their generation is not told.
    """

    group_type: str
    state: str
    protocol_type: str
    protocol: str | None
    members: tuple[DescribedMember, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


Description = DescribedGroup | GroupNotFound | Unanswered


@dataclass(frozen=True, slots=True)
class CommittedOffset:
    """What a group committed for one partition; the leader epoch is None where the committer named none."""

    offset: int
    leader_epoch: int | None
    metadata: str


OffsetsByPartition = Mapping[tuple[str, int], CommittedOffset]
"""By (topic, partition). A partition without a commit is absent."""


def held_partitions(group: DescribedGroup, member: DescribedMember) -> tuple[tuple[str, int], ...] | None:
    """The (topic, partition) pairs a member holds now, sorted; None where that is not told.

    It is not for a classic group that is not Stable, nor for one of another protocol type than `consumer` (Kafka
    Connect: its bytes are its own), nor for streams groups, which hold tasks.
    """
    if member.held is not None:
        return tuple(sorted((held.topic, partition) for held in member.held for partition in held.partitions))
    if group.group_type != CLASSIC or group.state != STABLE or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    if not member.assignment:  # the leader named every member but this one
        return ()
    try:
        _, fields = decode_assignment(member.assignment)
    except UndecodableRecord:
        return None
    return tuple(sorted(topic_partitions(fields["assignedPartitions"])))
