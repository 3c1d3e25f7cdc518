"""Tests of the user data of sticky members, in Java's two versions and in kafka-python's format."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.protocol import decode
from streaming.protocol.classic import group_metadata
from streaming.protocol.consumer_protocol import kafka_python_sticky_user_data, sticky_user_data
from streaming.protocol.layouts import STICKY_USER_DATA
from tests.bench.encoder import encode
from tests.streaming.protocol.records import sample_records

TOPICS = st.lists(
    st.fixed_dictionaries(
        {"topic": st.text(max_size=5), "partitions": st.lists(st.integers(0, 2**31 - 1), max_size=3)}
    ),
    max_size=3,
)


@given(TOPICS, st.integers(-1, 2**31 - 1))
def test_version_1_has_the_owned_partitions_and_their_generation(topics: list[dict[str, Any]], generation: int) -> None:
    owned, found = sticky_user_data(
        encode(STICKY_USER_DATA, 1, {"previousAssignment": topics, "generation": generation})
    )
    assert found == generation
    assert list(owned) == list(dict.fromkeys((one["topic"], at) for one in topics for at in one["partitions"]))


@given(TOPICS)
def test_version_0_has_no_generation(topics: list[dict[str, Any]]) -> None:
    owned, generation = sticky_user_data(encode(STICKY_USER_DATA, 0, {"previousAssignment": topics}))
    assert generation is None
    assert set(owned) == {(one["topic"], partition) for one in topics for partition in one["partitions"]}


@given(st.binary(max_size=60))
def test_user_data_of_any_bytes_never_raises(user_data: bytes) -> None:
    """The assignor ignores a claim that it cannot read, and so does the monitor."""
    owned, generation = sticky_user_data(user_data)
    assert generation is None or isinstance(generation, int)
    assert isinstance(owned, tuple)


@pytest.mark.parametrize("user_data", [None, b""])
def test_no_user_data_gives_no_claim_and_no_generation(user_data: bytes | None) -> None:
    assert sticky_user_data(user_data) == ((), None)
    assert kafka_python_sticky_user_data(user_data) is None


def test_a_claim_written_by_kafka_python_is_read_only_in_its_own_format() -> None:
    """kafka-python 3 writes a version before the claim.

    A Java leader ignores such a claim, a kafka-python leader reads it.
    """
    user_data = bytes.fromhex("0001 00000001 0001 74 00000002 00000001 00000002 00000007")
    assert kafka_python_sticky_user_data(user_data) == ((("t", 1), ("t", 2)), 7)
    assert sticky_user_data(user_data) == ((), -1)


def test_the_sticky_claims_in_the_real_sample_are_in_kafka_pythons_format_and_contain_subscribed_topics() -> None:
    """The ``real-kp-sticky-*`` groups are kafka-python's.

    Each claim is from an earlier generation than the record's.
    """
    claims = 0
    for record in (decode(key, value) for key, value in sample_records()):
        if record.name != "GroupMetadata" or record.value is None or record.value["protocol"] != "sticky":
            continue
        group = group_metadata(record)
        for subscription in filter(None, [member.subscription for member in group.members]):
            claim = kafka_python_sticky_user_data(subscription.user_data)
            if claim is not None:
                owned, generation = claim
                assert {topic for topic, _ in owned} <= set(subscription.topics)
                assert generation is not None
                assert generation < group.generation_id
                claims += 1
    assert claims > 10


@given(TOPICS, st.integers(-1, 2**31 - 1), st.sampled_from([0, 1]))
def test_javas_format_is_never_read_as_kafka_pythons(
    topics: list[dict[str, Any]], generation: int, version: int
) -> None:
    """kafka-python reads the first half of Java's array length as the version, and the rest is invalid."""
    java = encode(STICKY_USER_DATA, version, {"previousAssignment": topics, "generation": generation})
    as_kafka_python = kafka_python_sticky_user_data(java)
    assert as_kafka_python is None or not topics
