"""Tests for the own partition of a group, computed one by one and in bulk."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from assignors.coordinator import coordinator_partition
from streaming.combine.own_partitions import OwnPartitions
from streaming.protocol import decode
from tests.streaming.log_records import commit_key

GROUP_BYTES = st.one_of(
    st.text(max_size=12).map(lambda name: name.encode("utf-8", "replace")),
    st.binary(max_size=12),
    st.sampled_from([b"", b"g" * 32_767, "ø".encode() * 9_000, b"\xed\xa0\x80", b"polygenelubricants"]),
)


def key_of(group: bytes) -> bytes:
    """Return the commit key of a group whose name can be any bytes."""
    return b"\x00\x01" + len(group).to_bytes(2, "big") + group + b"\x00\x01t\x00\x00\x00\x00"


@given(st.lists(GROUP_BYTES, min_size=1, max_size=6), st.sampled_from([1, 3, 50, 120]))
def test_every_group_gets_in_bulk_the_partition_that_kafka_computes(groups: list[bytes], count: int) -> None:
    """`GroupCoordinatorService.partitionFor` hashes UTF-16. Java decides how malformed UTF-8 is decoded.

    The hash of "polygenelubricants" is the smallest integer, and `Utils.abs` maps it to 0.
    """
    own = OwnPartitions((count,))
    names = [decode(key_of(group), None).key["group"] for group in groups]
    rows = [(at, partition) for at in range(len(groups)) for partition in {0, own.home(names[at]), count - 1}]
    code, partitions = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    found = own.own_rows(pa.array([key_of(group) for group in groups], pa.binary()), code, partitions)
    assert found.tolist() == [coordinator_partition(names[at], count) == partition for at, partition in rows]
    assert found.tolist() == [own.is_own(names[at], partition) for at, partition in rows]


@pytest.mark.parametrize(
    ("counts", "partition", "is_own", "why"),
    [
        ((50,), 12, True, "Kafka computes partition 12 for my-group"),
        ((50,), 42, False, "another group's"),
        ((50, 60), 12, True, "brokers that have not restarted still write to the partition of the old count"),
        ((50, 60), 42, True, "the partition of the current count"),
        ((60,), 12, False, "the earlier count of 50 is unknown"),
        ((), 99, True, "no count is known"),
    ],
)
def test_a_partition_is_own_for_any_count_that_was_seen(
    counts: tuple[int, ...], partition: int, is_own: bool, why: str
) -> None:
    own = OwnPartitions(counts)
    assert own.is_own("my-group", partition) is is_own, why
    keys = pa.array([commit_key("my-group")], pa.binary())
    assert own.own_rows(keys, np.zeros(1, np.int64), np.array([partition])).tolist() == [is_own], why
