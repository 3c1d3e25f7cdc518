"""Tests of requests about groups, with a real broker of the current version."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ACL, ACLOperation, ACLPermissionType, NewTopic, ResourcePattern, ResourceType
from kafka.structs import OffsetAndMetadata

from streaming.config.settings import KafkaSettings
from streaming.embedded import EmbeddedBroker
from streaming.group.listing import (
    CLUSTER_NOT_DESCRIBABLE,
    DescribedGroup,
    GroupNotFound,
    ListedGroup,
    ListingGap,
    Unanswered,
    held_partitions,
)
from streaming.sampling.connection import Connection
from streaming.sampling.groups import Groups

NOW_MS = 1_700_000_000_000
WAIT_SECONDS = 30.0


@pytest.fixture
def connection(broker: EmbeddedBroker) -> Iterator[Connection]:
    with closing(Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 15)) as connected:
        yield connected


@pytest.fixture
def groups(connection: Connection) -> Groups:
    return Groups(connection, lambda: NOW_MS)


@pytest.fixture
def name(connection: Connection) -> str:
    """Create a topic of four partitions and return its unique name, which is also used for a group."""
    unique = f"g{uuid.uuid4().hex[:8]}"
    connection.admin.create_topics([NewTopic(unique, 4, 1)])
    return unique


@contextmanager
def members(broker: EmbeddedBroker, name: str, protocol: str, instance_ids: tuple[str, ...]) -> Iterator[None]:
    """Run static members of a group that consume the topic of the same name, each in a thread."""
    stop = threading.Event()

    def consume(instance_id: str) -> None:
        consumer = Consumer(
            {
                "bootstrap.servers": broker.bootstrap_servers,
                "group.id": name,
                "group.protocol": protocol,
                "group.instance.id": instance_id,
                "client.id": f"client-{instance_id}",
            }
        )
        consumer.subscribe([name])
        while not stop.is_set():
            consumer.poll(0.1)
        consumer.close()

    threads = [threading.Thread(target=consume, args=(instance_id,)) for instance_id in instance_ids]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def commit(broker: EmbeddedBroker, group_id: str, offsets: Mapping[tuple[str, int], OffsetAndMetadata]) -> None:
    """Commit as a consumer that uses `assign`. This creates a group without members."""
    with closing(KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=group_id)) as consumer:
        consumer.assign([TopicPartition(*at) for at in offsets])
        consumer.commit({TopicPartition(*at): committed for at, committed in offsets.items()})


def wait_for_members(groups: Groups, name: str, group_type: str, count: int) -> DescribedGroup:
    """Wait until the group is stable with `count` members, and return its description."""
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        described = groups.describe_groups({name: group_type})[name]
        if isinstance(described, DescribedGroup) and described.state == "Stable" and len(described.members) == count:
            return described
        assert time.monotonic() < deadline, described
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.parametrize(("group_type", "strategy"), [("classic", "range"), ("consumer", "uniform")])
def test_members_of_both_protocols_are_described_with_their_partitions(
    broker: EmbeddedBroker, groups: Groups, name: str, group_type: str, strategy: str
):
    """Classic and KIP-848 groups have the same form, and each partition has exactly one owner."""
    with members(broker, name, group_type, ("a", "b")):
        described = wait_for_members(groups, name, group_type, 2)
        assert groups.list_groups().groups[name] == ListedGroup(group_type, "consumer", "Stable", 1)
    assert (described.group_type, described.protocol_type, described.protocol) == (group_type, "consumer", strategy)
    assert (described.group_epoch is None) is (group_type == "classic")
    assert {(member.group_instance_id, member.client_id) for member in described.members} == {
        ("a", "client-a"),
        ("b", "client-b"),
    }
    held = [held_partitions(described, member) or () for member in described.members]
    assert sorted(map(len, held)) == [2, 2]
    assert sorted(sum(held, ())) == [(name, partition) for partition in range(4)]


@pytest.mark.slow
def test_a_group_requested_with_the_wrong_type_is_still_described(broker: EmbeddedBroker, groups: Groups, name: str):
    """KIP-848 can change the type of a running group. GroupNotFound for the old type must not count as deleted."""
    with members(broker, name, "consumer", ("a",)):
        wait_for_members(groups, name, "consumer", 1)
        for requested_type in ("classic", "share", "streams", None):
            described = groups.describe_groups({name: requested_type})[name]
            assert isinstance(described, DescribedGroup)
            assert described.group_type == "consumer"


@pytest.mark.slow
def test_a_group_that_only_commits_is_listed_and_a_deleted_group_is_proven_deleted(
    broker: EmbeddedBroker, connection: Connection, groups: Groups, name: str
):
    """GroupNotFound means that the coordinator denied the group in every request that this broker supports."""
    commit(broker, name, {(name, 3): OffsetAndMetadata(7, "note", 5), (name, 0): OffsetAndMetadata(9, "", -1)})
    listing = groups.list_groups()
    assert listing.groups[name] == ListedGroup("classic", "", "Empty", 1)
    assert (listing.is_complete, listing.sampled_at_ms) == (True, NOW_MS)
    assert groups.group_offsets([name]) == {name: {(name, 3): 7, (name, 0): 9}}
    connection.admin.delete_groups([name])
    assert groups.describe_groups({name: "classic", f"{name}-never": None}) == {
        name: GroupNotFound(),
        f"{name}-never": GroupNotFound(),
    }
    assert groups.group_offsets([name]) == {name: {}}
    assert name not in groups.list_groups().groups


@pytest.mark.slow
def test_more_groups_than_fit_into_one_request_are_all_answered(broker: EmbeddedBroker, groups: Groups, name: str):
    """One request has at most 500 groups."""
    ids = [f"{name}-{number:03}" for number in range(501)]
    commit(broker, ids[500], {(name, 0): OffsetAndMetadata(1, "", -1)})
    offsets = groups.group_offsets(ids)
    assert len(offsets) == 501
    assert [group_id for group_id, committed in offsets.items() if committed] == [ids[500]]


@pytest.mark.slow
def test_groups_that_the_monitor_may_not_describe_are_reported_as_missing(tmp_path: Path):
    """Without DESCRIBE on the cluster, ListGroups leaves out groups without an error.

    Without DESCRIBE on a group, requests about the group are refused.

    Source: `KafkaApis.handleListGroupsRequest`.
    """
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with (
        EmbeddedBroker(tmp_path / "broker", properties=properties) as broker,
        closing(Connection(KafkaSettings(bootstrap_servers=broker.bootstrap_servers), 15)) as connection,
    ):
        connection.admin.create_topics([NewTopic("t", 1, 1)])
        commit(broker, "open", {("t", 0): OffsetAndMetadata(1, "", -1)})
        commit(broker, "hidden", {("t", 0): OffsetAndMetadata(1, "", -1)})
        groups = Groups(connection, lambda: NOW_MS)
        assert groups.list_groups().is_complete
        _deny_describe(connection.admin, ResourcePattern(ResourceType.CLUSTER, "kafka-cluster"))
        _deny_describe(connection.admin, ResourcePattern(ResourceType.GROUP, "hidden"))
        until_listed = time.monotonic() + WAIT_SECONDS
        while (listing := groups.list_groups()).is_complete or "hidden" in listing.groups:
            assert time.monotonic() < until_listed
            time.sleep(0.1)
        assert (sorted(listing.groups), listing.gaps) == (["open"], (ListingGap(None, CLUSTER_NOT_DESCRIBABLE),))
        refused = Unanswered("group_authorization_failed")
        assert groups.describe_groups({"hidden": "classic"}) == {"hidden": refused}
        assert groups.group_offsets(["hidden"]) == {"hidden": refused}


def _deny_describe(admin: KafkaAdminClient, resource: ResourcePattern) -> None:
    """Allow every operation on the resource except DESCRIBE."""
    admin.create_acls(
        [
            ACL("User:*", "*", ACLOperation.ALL, ACLPermissionType.ALLOW, resource),
            ACL("User:*", "*", ACLOperation.DESCRIBE, ACLPermissionType.DENY, resource),
        ]
    )
