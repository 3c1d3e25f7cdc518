"""Defines the types of the brokers' responses about groups: listings, descriptions and committed offsets.

A response shows the current state of a group, but no history, no timestamp, and no generation of a classic group. A
value that the broker did not return is None. A group that is missing in an incomplete listing can still exist:

>>> GroupListing(0, {}, gaps=(ListingGap(2, "coordinator_load_in_progress"),)).is_complete
False
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from streaming.events import CLASSIC, CONSUMER, SHARE, STREAMS
from streaming.group.snapshot import ASSIGNING, DEAD, EMPTY, REBALANCING, RECONCILING, STABLE, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE, read_assignment, topic_partitions
from streaming.protocol.errors import UndecodableRecord

GROUP_TYPES: Final = (CLASSIC, CONSUMER, SHARE, STREAMS)
"""All group types, in the order in which Kafka introduced them."""

GROUP_STATES: Final = (STABLE, EMPTY, *sorted(REBALANCING), ASSIGNING, RECONCILING, "NotReady", DEAD)
"""All states that a coordinator can return."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    """A group in the listing of its coordinator. `coordinator` is a broker id.

    `group_type` is None before Kafka 3.8 (ListGroups 5). `state` is None before Kafka 2.6 (ListGroups 4, KIP-518).
    `protocol_type` is empty for a group that only commits offsets.
    """

    group_type: str | None
    protocol_type: str
    state: str | None
    coordinator: int

    @property
    def member_count(self) -> int | None:
        """0 if the group is empty. Otherwise None, because a listing does not contain members."""
        return 0 if self.state == EMPTY else None


@dataclass(frozen=True, slots=True)
class ListingGap:
    """A reason why groups can be missing in a listing. If `broker_id` is None, the reason affects the whole cluster."""

    broker_id: int | None
    reason: str


CLUSTER_NOT_DESCRIBABLE: Final = "cluster_describe_not_authorized"
"""A reason of a ListingGap. If the monitor may not DESCRIBE the cluster, brokers omit groups, but return no error."""


@dataclass(frozen=True, slots=True)
class GroupListing:
    """All groups that the brokers listed, and the reasons why other groups can be missing.

    Only `GroupNotFound` proves that a group is gone. If the coordinator of a group changes between two requests, the
    group may be in no broker's list.
    """

    sampled_at_ms: int
    groups: Mapping[str, ListedGroup]
    gaps: tuple[ListingGap, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True if every broker answered without an error, and the monitor has permission to see all groups."""
        return not self.gaps


def rebalancing_since_ms(
    known: Mapping[str, int], listing: GroupListing | None, clock_step_ms: int = 0
) -> Mapping[str, int]:
    """For each group in a rebalance, return the time of the first listing that showed the rebalance.

    `known` is the result for the previous listing. `MonitorState` removes a group from `known` when a record shows the
    end of the group's rebalance. If the listing is absent, or if it is incomplete and omits a group, the rebalance may
    continue. Then the known time stays. `clock_step_ms` is the step of the cluster's time since the previous listing.
    The step is added to the known times, so that the duration of a rebalance stays correct.

    >>> twice = {"g": ListedGroup("classic", "consumer", "PreparingRebalance", 1)}
    >>> rebalancing_since_ms({"g": 5}, GroupListing(9, twice)), rebalancing_since_ms({}, GroupListing(9, twice))
    ({'g': 5}, {'g': 9})
    """
    known = {group_id: since_ms + clock_step_ms for group_id, since_ms in known.items()}
    if listing is None:
        return known
    omitted = {} if listing.is_complete else {one: known[one] for one in known.keys() - listing.groups.keys()}
    rebalancing = (group_id for group_id, listed in listing.groups.items() if listed.state in REBALANCING)
    return {**omitted, **{group_id: known.get(group_id, listing.sampled_at_ms) for group_id in rebalancing}}


def shown_state(snapshot: GroupSnapshot, listing: GroupListing | None) -> str:
    """Return the group's state, from its records or from a listing that is not older than its last record.

    Only two states come from the listing, because they are not in the records: a rebalance of a classic group, and the
    state of a streams group with members.
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
    """For each group type that it supports, the coordinator reported that the group does not exist."""


@dataclass(frozen=True, slots=True)
class Unanswered:
    """The request failed. `reason` is Kafka's lower-case error name, for example `group_authorization_failed`."""

    reason: str


UNSUPPORTED_VERSION: Final = Unanswered("unsupported_version")
"""The broker does not support the request, for example the description of a share group on Kafka 4.0."""
GROUP_TYPE_NOT_KNOWN: Final = Unanswered("group_type_not_known")
"""The monitor does not know the type of the group, so it cannot choose the request."""


@dataclass(frozen=True, slots=True)
class HeldTopic:
    """The partitions of one topic in a current or target assignment. `topic_id` has Kafka's text format."""

    topic_id: str
    topic: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeldTask:
    """The partitions of one subtopology that a member of a streams group processes."""

    subtopology_id: str
    partitions: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescribedMember:
    """The coordinator's description of one member. Values that the group type does not have are None.

    Attributes:
        subscription, assignment: classic groups only. Bytes in the format of the protocol type, empty if the group is
            not Stable.
        member_epoch: -2 for a static member that left temporarily.
        subscribed_topics, held: consumer and share groups only.
        subscribed_regex, target: consumer groups only.
        active_tasks: streams groups only.

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
    """The coordinator's description of one group. Both epochs are None for classic groups.

    `protocol` is the name of the strategy, or None if a classic group is not Stable. For a consumer or share group, it
    is the assignor.
    """

    group_type: str
    state: str
    protocol_type: str
    protocol: str | None
    members: tuple[DescribedMember, ...]
    group_epoch: int | None = None
    assignment_epoch: int | None = None


Description = DescribedGroup | GroupNotFound | Unanswered

OffsetsByPartition = Mapping[tuple[str, int], int]
"""Maps (topic, partition) to the committed offset. Partitions without a commit are not in this mapping."""


def held_partitions(group: DescribedGroup, member: DescribedMember) -> tuple[tuple[str, int], ...] | None:
    """Return the partitions that a member owns now, as sorted (topic, partition) pairs. None if unknown.

    In a classic group, the partitions are known only if the group is Stable and has the protocol type `consumer`. In a
    streams group, the partitions are always unknown, because its members own tasks.
    """
    if member.held is not None:
        return tuple(sorted((held.topic, partition) for held in member.held for partition in held.partitions))
    if group.group_type != CLASSIC or group.state != STABLE or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return None
    if not member.assignment:  # the leader left this member out of the assignment
        return ()
    try:
        _, fields = read_assignment(member.assignment)
    except UndecodableRecord:
        return None
    return tuple(sorted(topic_partitions(fields["assignedPartitions"])))
