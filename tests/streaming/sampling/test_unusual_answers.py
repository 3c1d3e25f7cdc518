"""Tests of answers about groups from old or loading brokers, and about other group types."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.errors import IncompatibleBrokerVersion, KafkaConnectionError
from kafka.protocol.admin import DescribeClusterResponse, DescribeGroupsResponse, ListGroupsResponse
from kafka.protocol.consumer import OffsetFetchResponse
from kafka.protocol.metadata import FindCoordinatorResponse

from streaming.group.listing import (
    GROUP_TYPE_NOT_KNOWN,
    UNSUPPORTED_VERSION,
    DescribedGroup,
    DescribedMember,
    GroupNotFound,
    HeldTask,
    HeldTopic,
    ListedGroup,
    ListingGap,
    Unanswered,
)
from streaming.protocol.primitives import uuid_text
from streaming.sampling.connection import Message
from streaming.sampling.groups import Groups
from streaming.sampling.messages import ShareGroupDescribeResponse, StreamsGroupDescribeResponse

NOW_MS = 1_700_000_000_000


class Cluster:
    """A connection with simulated answers. Real brokers cannot be made to load or move groups on demand.

    Each answer is encoded and decoded by the client in the given version.
    """

    def __init__(self, broker_ids: Sequence[int], answer: Callable[[int | None, Message], Message]) -> None:
        self._broker_ids = broker_ids
        self._answer = answer
        self.asked: list[tuple[int | None, str]] = []

    def broker_ids(self) -> Sequence[int]:
        """Return the ids of the brokers."""
        return self._broker_ids

    def ask_each(self, requests: Sequence[tuple[int | None, Message]]) -> list[Message]:
        """Answer each request, and record the broker that it was sent to."""
        self.asked += [(broker_id, request.name) for broker_id, request in requests]
        return [self._answer(broker_id, request) for broker_id, request in requests]


def groups_of(cluster: Cluster) -> Groups:
    """Return a client for group requests to this cluster."""
    return Groups(cluster, lambda: NOW_MS)  # type: ignore[arg-type]


def encode_and_decode(response: Message, version: int) -> Message:
    """Return a response after encoding and decoding in a version."""
    return type(response).decode(bytes(response.encode(version=version)), version=version)


def list_response(*groups: tuple[str, ...], version: int = 5, error_code: int = 0) -> Message:
    """Return an answer to ListGroups."""
    names = ("group_id", "protocol_type", "group_state", "group_type")
    rows = [ListGroupsResponse.ListedGroup(**dict(zip(names, group, strict=False))) for group in groups]
    return encode_and_decode(ListGroupsResponse(throttle_time_ms=0, error_code=error_code, groups=rows), version)


ALL_PERMISSIONS = encode_and_decode(
    DescribeClusterResponse(
        throttle_time_ms=0,
        error_code=0,
        error_message=None,
        cluster_id="c",
        controller_id=1,
        brokers=[],
        authorized_operations={8},
    ),
    0,
)


def test_a_loading_or_unreachable_broker_makes_the_listing_incomplete_and_hides_no_other_broker():
    """During the restart of one of three brokers, a third of the groups must not look deleted."""
    answers = {
        1: list_response(("a", "consumer", "Stable", "Classic")),
        2: list_response(error_code=14),
        3: KafkaConnectionError("away"),
        None: ALL_PERMISSIONS,
    }
    listing = groups_of(Cluster([1, 2, 3], lambda broker_id, _: answers[broker_id])).list_groups()
    assert listing.groups == {"a": ListedGroup("classic", "consumer", "Stable", 1)}
    assert listing.gaps == (ListingGap(2, "coordinator_load_in_progress"), ListingGap(3, "KafkaConnectionError"))
    assert not listing.is_complete


@pytest.mark.parametrize(
    ("version", "state", "group_type", "why"),
    [
        (0, None, None, "Kafka 0.9"),
        (3, None, None, "Kafka 2.4"),
        (4, "Stable", None, "KIP-518, Kafka 2.6"),
        (5, "Stable", "classic", "KIP-848, Kafka 3.8"),
    ],
)
def test_what_an_older_broker_does_not_list_is_none(version: int, state: str | None, group_type: str | None, why: str):
    """Rule 2: the type is unknown and not guessed, although old brokers have only classic groups."""
    given = ("a", "consumer", "Stable", "Classic")[: 2 + (version >= 4) + (version >= 5)]
    answers = {1: list_response(given, version=version), None: IncompatibleBrokerVersion("DescribeCluster")}
    listing = groups_of(Cluster([1], lambda broker_id, _: answers[broker_id])).list_groups()
    assert listing.groups == {"a": ListedGroup(group_type, "consumer", state, 1)}, why
    assert listing.is_complete


def coordinator_response(group_id: str, broker_id: int) -> Message:
    """Return an answer to FindCoordinator."""
    row = FindCoordinatorResponse.Coordinator(
        key=group_id, node_id=broker_id, host="h", port=9, error_code=0, error_message=None
    )
    return encode_and_decode(FindCoordinatorResponse(throttle_time_ms=0, coordinators=[row]), 4)


def describe_response(group_id: str, error_code: int = 0, state: str = "Empty", version: int = 6) -> Message:
    """Return an answer to DescribeGroups."""
    row = DescribeGroupsResponse.DescribedGroup(
        error_code=error_code,
        group_id=group_id,
        group_state=state,
        protocol_type="consumer",
        protocol_data="",
        members=[],
        authorized_operations=None,
    )
    return encode_and_decode(DescribeGroupsResponse(throttle_time_ms=0, groups=[row]), version)


def test_a_group_whose_coordinator_moved_is_requested_from_the_new_coordinator():
    """NOT_COORDINATOR proves nothing about the group."""

    def answer(broker_id: int | None, request: Message) -> Message:
        if request.name == "ListGroupsRequest":
            return list_response(("a", "consumer", "Empty", "Classic"))
        if request.name == "DescribeGroupsRequest":
            return describe_response("a", error_code=16) if broker_id == 1 else describe_response("a")
        return coordinator_response("a", 2) if request.name == "FindCoordinatorRequest" else ALL_PERMISSIONS

    cluster = Cluster([1], answer)
    groups = groups_of(cluster)
    groups.list_groups()
    assert groups.describe_groups({"a": "classic"}) == {"a": DescribedGroup("classic", "Empty", "consumer", None, ())}
    assert cluster.asked[-3:] == [
        (1, "DescribeGroupsRequest"),
        (None, "FindCoordinatorRequest"),
        (2, "DescribeGroupsRequest"),
    ]


@given(st.integers(-1, 130).filter(lambda code: code not in (0, 69)))
def test_only_group_id_not_found_proves_that_a_group_is_deleted(error_code: int):
    """After an authorization failure, a loading coordinator or a timeout, the group must not count as deleted."""

    def answer(_: int | None, request: Message) -> Message:
        if request.name == "FindCoordinatorRequest":
            return coordinator_response("a", 1)
        return describe_response("a", error_code=error_code)

    assert isinstance(groups_of(Cluster([1], answer)).describe_groups({"a": "classic"})["a"], Unanswered)


@pytest.mark.parametrize(
    ("answers", "verdict", "why"),
    [
        ({"Describe": "dead"}, GroupNotFound(), "Kafka 2.x and 3.x: DescribeGroups returns Dead for a missing group"),
        ({"Describe": "dead", "Consumer": "denied"}, GroupNotFound(), "Kafka 3.7: both requests deny the group"),
        (
            {"Describe": "dead", "Consumer": "refused"},
            Unanswered("group_authorization_failed"),
            "one of the two requests was not answered",
        ),
    ],
)
def test_a_group_is_deleted_if_every_request_that_the_broker_supports_denies_it(
    answers: Mapping[str, str], verdict: object, why: str
):
    """Brokers before 3.7 support one request, brokers before 4.1 two."""

    def answer(_: int | None, request: Message) -> Message:
        if request.name == "FindCoordinatorRequest":
            return coordinator_response("a", 1)
        kind = answers.get(request.name.removesuffix("GroupDescribeRequest").removesuffix("GroupsRequest"))
        if kind is None:
            return IncompatibleBrokerVersion(request.name)
        return {"dead": describe_response("a", state="Dead", version=5), "denied": describe_response("a", 69)}.get(
            kind, describe_response("a", 30)
        )

    assert groups_of(Cluster([1], answer)).describe_groups({"a": "classic"})["a"] == verdict, why


def test_unknown_and_unsupported_group_types_are_reported_as_such():
    """Rule 2: a group that cannot be described is neither described nor proven deleted."""

    def answer(_: int | None, request: Message) -> Message:
        return (
            coordinator_response("a", 1)
            if request.name == "FindCoordinatorRequest"
            else IncompatibleBrokerVersion("old")
        )

    groups = groups_of(Cluster([1], answer))
    assert groups.describe_groups({"a": "newest"}) == {"a": GROUP_TYPE_NOT_KNOWN}
    assert groups.describe_groups({"a": "streams"}) == {"a": UNSUPPORTED_VERSION}


def offsets_response(group_id: str, error_code: int, partition_error_code: int = 0) -> Message:
    """Return an answer to OffsetFetch for several groups. The second of two partitions has no commit."""
    answer = OffsetFetchResponse.OffsetFetchResponseGroup
    topics = answer.OffsetFetchResponseTopics
    rows = [
        topics.OffsetFetchResponsePartitions(
            partition_index=partition,
            committed_offset=offset,
            committed_leader_epoch=-1,
            metadata=None,
            error_code=partition_error_code,
        )
        for partition, offset in ((0, 5), (1, -1))
    ]
    group = answer(group_id=group_id, topics=[topics(name="t", partitions=rows)], error_code=error_code)
    return encode_and_decode(OffsetFetchResponse(throttle_time_ms=0, groups=[group]), 8)


@pytest.mark.parametrize(
    ("error_code", "partition_error_code", "expected"),
    [
        (0, 0, {("t", 0): 5}),
        (14, 0, Unanswered("coordinator_load_in_progress")),
        (0, 29, Unanswered("topic_authorization_failed")),
    ],
)
def test_offsets_of_a_group_are_returned_completely_or_not_at_all(
    error_code: int, partition_error_code: int, expected: object
):
    """A missing commit would look deleted. Kafka returns -1 for a partition without a commit."""

    def answer(_: int | None, request: Message) -> Message:
        is_find = request.name == "FindCoordinatorRequest"
        return coordinator_response("a", 1) if is_find else offsets_response("a", error_code, partition_error_code)

    assert groups_of(Cluster([1], answer)).group_offsets(["a"]) == {"a": expected}


def test_an_old_broker_gets_one_request_per_group():
    """Before 3.0, OffsetFetch and FindCoordinator accept only one group (KIP-709, KIP-699)."""

    def answer(_: int | None, request: Message) -> Message:
        if request._min_version in {4, 8}:
            return IncompatibleBrokerVersion("2.8")
        if request.name == "FindCoordinatorRequest":
            return encode_and_decode(
                FindCoordinatorResponse(
                    throttle_time_ms=0, error_code=0, error_message=None, node_id=1, host="h", port=9
                ),
                3,
            )
        topic, partition = OffsetFetchResponse.OffsetFetchResponseTopic, "OffsetFetchResponsePartition"
        row = getattr(topic, partition)(
            partition_index=0, committed_offset=5, committed_leader_epoch=2, metadata="", error_code=0
        )
        topics = [topic(name=request.group_id, partitions=[row])]
        return encode_and_decode(OffsetFetchResponse(throttle_time_ms=0, topics=topics, error_code=0), 7)

    offsets = groups_of(Cluster([1], answer)).group_offsets(["a", "b"])
    assert offsets == {group_id: {(group_id, 0): 5} for group_id in ("a", "b")}


TOPIC_ID = uuid.UUID(int=7)


def test_a_share_group_is_described_with_the_partitions_of_its_members():
    """KIP-932: several members may have the same partition."""
    group = ShareGroupDescribeResponse.DescribedGroup
    topics = group.Member.Assignment.TopicPartitions(topic_id=TOPIC_ID, topic_name="t", partitions=[1, 0])
    member = group.Member(
        member_id="m",
        rack_id="r",
        member_epoch=3,
        client_id="c",
        client_host="/h",
        subscribed_topic_names=["t"],
        assignment=group.Member.Assignment(topic_partitions=[topics]),
    )
    row = group(
        error_code=0,
        group_id="a",
        group_state="Stable",
        group_epoch=4,
        assignment_epoch=3,
        assignor_name="simple",
        members=[member],
    )
    response = encode_and_decode(ShareGroupDescribeResponse(throttle_time_ms=0, groups=[row]), 1)
    held = (HeldTopic(uuid_text(TOPIC_ID.bytes), "t", (0, 1)),)
    expected = DescribedMember("m", "c", "/h", rack_id="r", member_epoch=3, subscribed_topics=("t",), held=held)
    assert _described_as(response, "share") == DescribedGroup("share", "Stable", "share", "simple", (expected,), 4, 3)


def test_a_streams_group_is_described_with_its_active_tasks():
    """KIP-1071: the assignment consists of tasks of subtopologies. They are not converted to partitions."""
    group = StreamsGroupDescribeResponse.DescribedGroup
    member_class = group.Member
    tasks = member_class.Assignment.TaskIds(subtopology_id="0", partitions=[2, 1])
    none = member_class.Assignment(active_tasks=[], standby_tasks=[], warmup_tasks=[])
    member = member_class(
        member_id="m",
        member_epoch=2,
        client_id="c",
        client_host="/h",
        topology_epoch=0,
        process_id="p",
        client_tags=[],
        task_offsets=[],
        task_end_offsets=[],
        assignment=member_class.Assignment(active_tasks=[tasks], standby_tasks=[tasks], warmup_tasks=[]),
        target_assignment=none,
        is_classic=False,
    )
    row = group(error_code=0, group_id="a", group_state="Stable", group_epoch=2, assignment_epoch=2, members=[member])
    response = encode_and_decode(StreamsGroupDescribeResponse(throttle_time_ms=0, groups=[row]), 0)
    expected = DescribedMember("m", "c", "/h", member_epoch=2, active_tasks=(HeldTask("0", (1, 2)),))
    assert _described_as(response, "streams") == DescribedGroup("streams", "Stable", "streams", None, (expected,), 2, 2)


def _described_as(response: Message, group_type: str) -> object:
    def answer(_: int | None, request: Message) -> Message:
        return coordinator_response("a", 1) if request.name == "FindCoordinatorRequest" else response

    return groups_of(Cluster([1], answer)).describe_groups({"a": group_type})["a"]
