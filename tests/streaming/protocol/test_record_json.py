"""Tests of a record as one JSON object: Kafka's format, and the decoded bytes of the consumer protocol."""

from __future__ import annotations

from typing import Any

import pytest

from streaming.protocol.layouts import CONSUMER_GROUP_MEMBER_METADATA, GROUP_METADATA
from streaming.protocol.record_json import render_record
from tests.bench.encoder import encode
from tests.streaming.protocol.agreement import as_json
from tests.streaming.protocol.records import golden_lines, raw_record

GROUP_KEY = bytes.fromhex("0002 0001 67")
MEMBER_KEY = bytes.fromhex("0005 0001 67 0001 6d")
SUBSCRIPTION = bytes.fromhex("0000 00000001 0001 74 ffffffff")
ASSIGNMENT = bytes.fromhex("0001 00000001 0001 74 00000001 00000002 ffffffff")
CLAIM = bytes.fromhex("00000001 0001 74 00000001 00000003 00000007")


def _group(protocol: str = "range", protocol_type: str = "consumer", **changes: bytes) -> dict[str, Any]:
    member = {
        "memberId": "m",
        "clientId": "c",
        "clientHost": "h",
        "sessionTimeout": 1,
        "subscription": SUBSCRIPTION,
        "assignment": ASSIGNMENT,
    }
    fields = {
        "protocolType": protocol_type,
        "generation": 1,
        "protocol": protocol,
        "leader": "m",
        "members": [{**member, **changes}],
    }
    return render_record(GROUP_KEY, b"\x00\x00" + encode(GROUP_METADATA.value, 0, fields))


def _only_member(answer: dict[str, Any]) -> dict[str, Any]:
    (member,) = answer["decoded"]["members"]
    return dict(member)


def test_record_key_and_value_equal_the_output_of_kafkas_converters() -> None:
    """The test uses the golden records. Refused embedded bytes do not hide the record."""
    for line in golden_lines("records"):
        if "key" not in line["input"]:
            continue
        answer = as_json(render_record(*raw_record(line["input"])))
        answer.pop("decoded", None)
        assert "error" in answer if "refused" in line["kafka"] else answer == line["kafka"]


def test_a_members_subscription_and_assignment_are_in_the_field_decoded() -> None:
    assert _only_member(_group()) == {
        "memberId": "m",
        "subscription": {"version": 0, "topics": ["t"], "userData": None},
        "assignment": {
            "version": 1,
            "assignedPartitions": [{"topic": "t", "partitions": [2]}],
            "userData": None,
        },
    }


def test_an_assignment_that_ends_before_the_user_data_is_decoded() -> None:
    """The leaders of pykafka and @platformatic/kafka omit the user data. Before, the output showed an error."""
    assert _only_member(_group(assignment=ASSIGNMENT[:-4]))["assignment"] == {
        "version": 1,
        "assignedPartitions": [{"topic": "t", "partitions": [2]}],
    }


def test_empty_bytes_are_decoded_as_null() -> None:
    member = _only_member(_group(subscription=b"", assignment=b""))
    assert (member["subscription"], member["assignment"]) == (None, None)


def test_refused_bytes_are_shown_as_an_error() -> None:
    """The record is complete and Kafka prints it, so it is shown. Only the member's part is an error."""
    answer = _group(assignment=b"\x00")
    assert answer["record"] == "GroupMetadata"
    assert _only_member(answer)["assignment"] == {"error": "truncated", "field": "version"}
    assert _only_member(answer)["subscription"]["topics"] == ["t"]


def test_the_bytes_of_other_protocol_types_are_not_decoded() -> None:
    assert "decoded" not in _group(protocol_type="connect")


@pytest.mark.parametrize(
    ("claim", "partitions", "generation", "why"),
    [
        (CLAIM, (("t", 3),), 7, "version 1"),
        (CLAIM[:-4], (("t", 3),), None, "version 0"),
        (b"\x00\x01" + CLAIM, (("t", 3),), 7, "the format of kafka-python"),
        (bytes.fromhex("00000000 00000007"), (), 7, "an empty claim of Java: before, its generation was null"),
    ],
)
def test_a_sticky_members_claim_is_decoded(
    claim: bytes, partitions: tuple[tuple[str, int], ...], generation: int | None, why: str
) -> None:
    subscription = SUBSCRIPTION[:-4] + len(claim).to_bytes(4, "big") + claim
    member = _only_member(_group("sticky", subscription=subscription))
    expected = {"partitions": partitions, "generation": generation}
    assert member["subscription"]["stickyUserData"] == expected, why
    assert "stickyUserData" not in _only_member(_group("range", subscription=subscription))["subscription"]


def test_the_protocols_of_a_classic_member_in_a_consumer_group_are_decoded() -> None:
    """KIP-848: the record of a member with the classic protocol contains its subscriptions."""
    fields = {
        "instanceId": None,
        "rackId": None,
        "clientId": "c",
        "clientHost": "h",
        "subscribedTopicNames": ["t"],
        "subscribedTopicRegex": None,
        "rebalanceTimeoutMs": 1,
        "serverAssignor": None,
    }
    classic = {"sessionTimeoutMs": 5, "supportedProtocols": [{"name": "range", "metadata": SUBSCRIPTION}]}
    layout = CONSUMER_GROUP_MEMBER_METADATA.value
    answer = render_record(MEMBER_KEY, b"\x00\x00" + encode(layout, 0, {**fields, "classicMemberMetadata": classic}))
    expected = {"name": "range", "metadata": {"version": 0, "topics": ["t"], "userData": None}}
    assert answer["decoded"] == {"supportedProtocols": [expected]}
    ordinary = render_record(MEMBER_KEY, b"\x00\x00" + encode(layout, 0, {**fields, "classicMemberMetadata": None}))
    assert "decoded" not in ordinary
