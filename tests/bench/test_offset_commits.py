"""Tests that OffsetCommit bytes agree with a client library, and that every error code is reported."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.protocol.consumer import OffsetCommitRequest, OffsetCommitResponse

from tests.bench.offset_commits import commit_error_codes, commit_request

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


def _answer(correlation_id: int, topic: str, codes: list[int]) -> bytes:
    partition = OffsetCommitResponse.OffsetCommitResponseTopic.OffsetCommitResponsePartition
    rows = [partition(partition_index=number, error_code=code) for number, code in enumerate(codes)]
    topics = [OffsetCommitResponse.OffsetCommitResponseTopic(name=topic, partitions=rows)]
    encoded: bytes = OffsetCommitResponse(topics=topics).encode(version=2)
    return struct.pack(">i", correlation_id) + encoded


@given(st.integers(0, 2**31 - 1), NAMES, NAMES, st.integers(1, 60), st.integers(0, 2**63 - 1))
def test_a_request_is_read_back_by_a_client_library(
    correlation_id: int, group_id: str, topic: str, partitions: int, committed_offset: int
) -> None:
    """kafka-python generates its reader from Kafka's OffsetCommitRequest.json. The version is 2."""
    framed = commit_request(correlation_id, group_id, topic, partitions, committed_offset)
    size, api_key, version, correlation = struct.unpack_from(">ihhi", framed)
    (client_id_bytes,) = struct.unpack_from(">h", framed, 12)
    assert (size, api_key, version, correlation) == (len(framed) - 4, 8, 2, correlation_id)
    request = OffsetCommitRequest.decode(framed[14 + client_id_bytes :], version=2)
    assert (request.group_id, request.member_id, request.generation_id_or_member_epoch) == (group_id, "", -1)
    (of_topic,) = request.topics
    assert of_topic.name == topic
    rows = [(row.partition_index, row.committed_offset, row.committed_metadata) for row in of_topic.partitions]
    assert rows == [(number, committed_offset, "") for number in range(partitions)]


@given(st.lists(st.sampled_from([0, 0, 0, 14, 16, 25]), min_size=1, max_size=60))
def test_the_error_code_of_every_partition_is_reported(codes: list[int]) -> None:
    answer = _answer(7, "orders", codes)
    assert commit_error_codes(answer, 7, "orders", len(codes)) == sorted(set(codes) - {0})


@pytest.mark.parametrize(
    ("correlation_id", "topic", "partitions", "why"),
    [
        (8, "orders", 3, "the response to a different request"),
        (7, "other", 3, "the response for a different topic"),
        (7, "orders", 4, "a partition is missing in the response"),
        (7, "orders", 2, "the response has a partition too many"),
    ],
)
def test_a_response_that_does_not_fit_its_request_is_rejected(
    correlation_id: int, topic: str, partitions: int, why: str
) -> None:
    with pytest.raises(ValueError, match="not the response"):
        assert commit_error_codes(_answer(7, "orders", [0, 0, 0]), correlation_id, topic, partitions), why
