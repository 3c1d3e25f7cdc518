"""Request groups from the brokers: the list of groups, their members, and their committed offsets.

Required permissions:

- DESCRIBE on the cluster. Without DESCRIBE on the cluster, brokers list only the groups on which the monitor has
  DESCRIBE.
- DESCRIBE on the groups.
- DESCRIBE on the topics. Without DESCRIBE on a topic, brokers omit the committed offsets of the topic without an error.

CPU times of this process, with an embedded broker of Kafka 4.2: about 5 µs per listed group, 10 µs per described group
without members, and at most 6 µs per fetched offset.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence

from kafka.admin import ACLOperation
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeClusterRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from streaming.events import CLASSIC
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    GROUP_TYPE_NOT_KNOWN,
    GROUP_TYPES,
    UNSUPPORTED_VERSION,
    Description,
    GroupListing,
    GroupNotFound,
    ListedGroup,
    ListingGap,
    OffsetsByPartition,
    Unanswered,
)
from streaming.sampling.connection import BrokerRequest, Connection, Message
from streaming.sampling.coordinators import Coordinators, GroupApi, error_name, read_error_code
from streaming.sampling.descriptions import DESCRIBE_APIS


class Groups:
    """Requests about groups. Use it in one thread at a time, because `list_groups` changes the coordinators."""

    def __init__(self, connection: Connection, now_ms: Callable[[], int]) -> None:
        self._connection = connection
        self._coordinators = Coordinators(connection)
        self._now_ms = now_ms

    def list_groups(self) -> GroupListing:
        """List the groups of all brokers. Raises KafkaError if no broker answers.

        Each broker lists only the groups that it coordinates. If a broker does not answer, it is in the `gaps`.
        """
        sampled_at_ms = self._now_ms()
        broker_ids = self._connection.broker_ids()
        requests: list[BrokerRequest] = [(broker_id, ListGroupsRequest(min_version=0)) for broker_id in broker_ids]
        permissions = DescribeClusterRequest(include_cluster_authorized_operations=True)
        *answers, described_permissions = self._connection.ask_each([*requests, (None, permissions)])
        groups: dict[str, ListedGroup] = {}
        gaps = [ListingGap(None, CLUSTER_NOT_DESCRIBABLE)] if _may_not_describe_cluster(described_permissions) else []
        for broker_id, answer in zip(broker_ids, answers, strict=True):
            refused = (
                Unanswered(error_name(answer)) if isinstance(answer, KafkaError) else read_error_code(answer.error_code)
            )
            if refused is not None:
                gaps.append(ListingGap(broker_id, refused.reason))
            if not isinstance(answer, KafkaError):
                for group in answer.groups:  # fields that the broker's version does not support are None
                    groups[group.group_id] = ListedGroup(
                        group_type=group.group_type.lower() or None,
                        protocol_type=group.protocol_type,
                        state=group.group_state or None,
                        coordinator=broker_id,
                    )
        self._coordinators.use_coordinators({group_id: group.coordinator for group_id, group in groups.items()})
        return GroupListing(sampled_at_ms, groups, tuple(gaps))

    def describe_groups(self, group_types: Mapping[str, str | None]) -> Mapping[str, Description]:
        """Describe groups. `group_types` maps each group id to its type in the listing, or to None.

        A request is for one group type. If the group has a different type, the coordinator answers "not found". A group
        can change its type at any time (KIP-848). So if a group is not found, the request is sent again for every other
        group type. If the answer is "not found" for all types, the result is `GroupNotFound`.
        """
        by_type: dict[str, list[str]] = defaultdict(list)
        for group_id, listed_type in group_types.items():
            by_type[listed_type or CLASSIC].append(group_id)
        described: dict[str, Description] = {}
        for group_type, ids in by_type.items():
            described.update(self._describe(group_type, ids))
        for group_type in GROUP_TYPES:
            not_found = [
                group_id
                for group_id, answer in described.items()
                if isinstance(answer, GroupNotFound) and group_type != (group_types[group_id] or CLASSIC)
            ]
            # A broker that does not support the type has no group of this type.
            answers = self._describe(group_type, not_found) if not_found else {}
            described.update({name: answer for name, answer in answers.items() if answer != UNSUPPORTED_VERSION})
        return described

    def _describe(self, group_type: str, ids: Sequence[str]) -> Mapping[str, Description]:
        if group_type not in DESCRIBE_APIS:
            return dict.fromkeys(ids, GROUP_TYPE_NOT_KNOWN)
        return self._coordinators.ask(ids, DESCRIBE_APIS[group_type])

    def group_offsets(self, ids: Collection[str]) -> Mapping[str, OffsetsByPartition | Unanswered]:
        """Fetch all committed offsets of the groups, without pending offsets of open transactions.

        A group that does not exist has no offsets.
        """
        answers = self._coordinators.ask(list(ids), _SEVERAL_GROUPS)
        # Brokers before Kafka 3.0 accept only one group per request.
        unsupported = [group_id for group_id, answer in answers.items() if answer == UNSUPPORTED_VERSION]
        return {**answers, **self._coordinators.ask(unsupported, _ONE_GROUP)}


def _may_not_describe_cluster(answer: Message) -> bool:
    """Return True if DESCRIBE on the cluster provably is missing. Brokers before Kafka 2.8 prove nothing."""
    if isinstance(answer, KafkaError) or answer.authorized_operations is None:
        return False
    return ACLOperation.DESCRIBE not in answer.authorized_operations


def _offsets_request(ids: Sequence[str]) -> Message:
    """Use version 8: version 9 only adds a member id, and version 10 uses topic ids instead of topic names."""
    group = OffsetFetchRequest.OffsetFetchRequestGroup
    return OffsetFetchRequest(groups=[group(group_id=name, topics=None) for name in ids], min_version=8, max_version=8)


_SEVERAL_GROUPS: GroupApi[OffsetsByPartition | Unanswered] = GroupApi(
    _offsets_request,
    lambda _ids, response: {group.group_id: _read_offsets(group) for group in response.groups},
)
_ONE_GROUP: GroupApi[OffsetsByPartition | Unanswered] = GroupApi(
    lambda ids: OffsetFetchRequest(group_id=ids[0], topics=None, min_version=2, max_version=7),
    lambda ids, response: {ids[0]: _read_offsets(response)},
    groups_per_request=1,
)


def _read_offsets(group: Message) -> OffsetsByPartition | Unanswered:
    """If one partition has an error, return Unanswered: a missing partition would look like a deleted commit."""
    entries = [(topic.name, entry) for topic in group.topics for entry in topic.partitions]
    refusals = (read_error_code(code) for code in (group.error_code, *(entry.error_code for _, entry in entries)))
    if (refused := next(filter(None, refusals), None)) is not None:
        return refused
    return {
        (topic, entry.partition_index): entry.committed_offset
        for topic, entry in entries
        if entry.committed_offset >= 0
    }
