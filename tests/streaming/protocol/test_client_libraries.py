"""Tests that records of every client library are decoded and agree with the description by Kafka's Admin."""

from __future__ import annotations

from itertools import groupby

import pytest

from streaming.protocol import DecodedRecord, RecordType, decode
from streaming.protocol.classic import Refusal, group_metadata
from tests.clients.groups import plans
from tests.streaming.protocol.memberships import Membership, memberships

_BY_GROUP = {group: list(lines) for group, lines in groupby(memberships(), key=lambda line: line.group)}


def _decoded(line: Membership, kind: RecordType) -> list[DecodedRecord]:
    decoded = [decode(record.key, record.value) for record in line.records]
    return [record for record in decoded if record.key_type == kind]


@pytest.mark.parametrize("group", [group for group, lines in _BY_GROUP.items() if lines[0].group_type == "classic"])
def test_a_classic_group_of_any_library_shows_the_members_and_assignment_that_kafka_describes(group: str):
    """Before, a group of kafka-go or Faust was invisible: its subscriptions end before a field of their version."""
    for line in _BY_GROUP[group]:
        (record,) = _decoded(line, RecordType.GROUP_METADATA)
        refusals: list[Refusal] = []
        read = group_metadata(record, refusals)
        assert refusals == [], line.step
        assert read.protocol == line.assignor, line.step
        assert {
            (
                member.member_id,
                member.client_id,
                member.group_instance_id,
                frozenset(member.assignment.partitions) if member.assignment else None,
            )
            for member in read.members
        } == {(member.member_id, member.client_id, member.instance_id, member.assignment) for member in line.members}, (
            line.step
        )
        topics = {member.member_id: member.topics for member in line.members if member.topics is not None}
        for member in read.members:
            assert member.subscription is not None
            assert sorted(member.subscription.topics) == sorted(
                topics.get(member.member_id, member.subscription.topics)
            )


@pytest.mark.parametrize("group", [group for group, lines in _BY_GROUP.items() if lines[0].group_type == "consumer"])
def test_a_consumer_group_of_any_library_shows_the_members_that_kafka_describes(group: str):
    """KIP-848: every kind of record that a coordinator writes for these clients is decoded."""
    for line in _BY_GROUP[group]:
        members = _decoded(line, RecordType.CONSUMER_GROUP_MEMBER_METADATA)
        shown = {
            (each.key["memberId"], each.value["clientId"], each.value["instanceId"]) for each in members if each.value
        }
        assert shown == {(each.member_id, each.client_id, each.instance_id) for each in line.members}, line.step
        held = {
            record.key["memberId"]: sum(len(topic["partitions"]) for topic in record.value["assignedPartitions"])
            for record in _decoded(line, RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT)
            if record.value
        }
        assert held == {member.member_id: len(member.assignment) for member in line.members}, line.step


def test_every_library_is_included_in_every_version_with_every_strategy_static_and_mixed():
    """Without a library in this list, its records would be untested."""
    assert {line.group for line in memberships()} == {plan.name for plan in plans()}
