"""Tests of consumer groups of Kafka 3.7 (early access of KIP-848). Their records are refused and never misread.

Kafka 3.7 wrote other fields with the same version 0 (for client-side assignors), as its schemas warned. No later
Kafka reads them either. A broker of version 3.7.2 wrote these bytes for a Java consumer of a topic with three
partitions.
"""

from __future__ import annotations

import pytest

from streaming.protocol import UndecodableRecord, decode

_GROUP = "000467383438"
_MEMBER = _GROUP + "0016734e434d33795765546236457144794461766b5f3151"
_TOPIC_ID = "0400912cb09541b993faf6ade5bf3bb8"

_REFUSED = {
    # Version 3.7 has an epoch before the topics. Its first byte is read as a null array.
    "PartitionMetadata": (
        "0004" + _GROUP,
        f"0000 00000000 02 {_TOPIC_ID} 0274 00000003 01 00 00",
        "null_field at value.topics",
    ),
    # Version 3.7 has the assignors at the start of the tagged fields.
    "MemberMetadata": (
        "0005" + _MEMBER,
        "0000 0000 03 6331 0b 2f3132372e302e302e31 02 0274 01 000493e0 00 01 00",
        "truncated at value.taggedFields",
    ),
    # Version 3.7 has an error code before the partitions.
    "TargetAssignmentMember": (
        "0007" + _MEMBER,
        f"0000 00 02 {_TOPIC_ID} 04 00000000 00000001 00000002 00 0000 01 00",
        "null_field at value.topicPartitions",
    ),
    # Version 3.7 has the target's epoch before the state.
    "CurrentMemberAssignment": (
        "0008" + _MEMBER,
        f"0000 00000001 00000000 00000001 02 {_TOPIC_ID} 04 00000000 00000001 00000002 00 01 01 00 0000 01 00",
        "null_field at value.assignedPartitions",
    ),
}


@pytest.mark.parametrize(("key", "value", "refusal"), _REFUSED.values(), ids=_REFUSED)
def test_a_record_with_members_or_partitions_is_refused(key: str, value: str, refusal: str):
    with pytest.raises(UndecodableRecord, match=f"^{refusal}$"):
        decode(bytes.fromhex(key), bytes.fromhex(value))


@pytest.mark.parametrize(("key_type", "field"), [("0003", "epoch"), ("0006", "assignmentEpoch")])
def test_an_epoch_has_the_same_layout_in_all_versions(key_type: str, field: str):
    record = decode(bytes.fromhex(key_type + _GROUP), bytes.fromhex("0000 00000002 00"))
    assert record.value == {field: 2}


def test_a_tombstone_needs_no_layout():
    record = decode(bytes.fromhex("0005" + _MEMBER), None)
    assert record.key == {"groupId": "g848", "memberId": "sNCM3yWeTb6EqDyDavk_1Q"}
