"""Hypothesis strategies for logs of several `__consumer_offsets` partitions, with valid and damaged records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import strategies as st

from streaming.protocol.primitives import uuid_text
from tests.streaming.log_records import (
    LogRecord,
    commit_key,
    commit_value,
    group_key,
    group_value,
    member_fields,
    other_group_key,
    other_group_value,
)
from tests.streaming.protocol.mutations import EDGES, mutate_record

Bytes = tuple[bytes | None, bytes | None]

GROUPS = st.sampled_from(["billing", "a", "", "Zürich", "\N{ROCKET}", "x" * 300])
METADATA = st.sampled_from(["", "m", "é" * 3, "x" * 126, "x" * 127, "x" * 128, "x" * 400])
COMMITTED = st.sampled_from([0, 1, 2**63 - 1, -1, -2, -(2**63)]) | st.integers(0, 10_000)
TOPIC_IDS = st.sampled_from([None, uuid_text(bytes(16)), uuid_text(b"\x00\x11" * 8)])


@st.composite
def commits(draw: Callable[..., Any]) -> Bytes:
    """Draw a commit of any key type and value version, or its tombstone."""
    legacy = draw(st.integers(0, 5)) == 0
    topic = draw(st.sampled_from(["orders", "t" * 249, ""]))
    key = commit_key(draw(GROUPS), topic, draw(st.integers(0, 3)), legacy=legacy)
    if draw(st.integers(0, 4)) == 0:
        return key, None
    version = 0 if legacy else draw(st.integers(0, 4))
    topic_id = draw(TOPIC_IDS) if version == 4 else None
    return key, commit_value(draw(COMMITTED), version, draw(METADATA), topic_id)


@st.composite
def membership(draw: Callable[..., Any]) -> Bytes:
    """Draw a group's metadata record of any group type, or its tombstone."""
    group = draw(GROUPS)
    kind = draw(st.sampled_from(["classic", "classic", "consumer", "share", "streams"]))
    key = group_key(group) if kind == "classic" else other_group_key(kind, group)
    if draw(st.integers(0, 3)) == 0:
        return key, None
    generation = draw(st.integers(0, 5))
    if kind != "classic":
        return key, other_group_value(kind, generation)
    members = [member_fields(f"m{number}", held={"orders": [number]}) for number in range(draw(st.integers(0, 2)))]
    if members and draw(st.integers(0, 3)) == 0:
        members[0]["subscription"] = draw(st.sampled_from([b"\xff\xff", b"\x00\x03\x7f\xff\xff\xff", b"\x00"]))
    return key, group_value(generation, members, version=draw(st.integers(0, 3)))


@st.composite
def damaged(draw: Callable[..., Any]) -> Bytes:
    """Draw a valid record that is damaged at random, truncated, or has extra bytes at its end."""
    key, value = draw(commits() | membership())
    seed, other = draw(st.integers(0, 2**32)), draw(commits())
    if draw(st.booleans()):
        return mutate_record(Random(seed), [(key, value), other])
    tail = draw(st.sampled_from(EDGES))
    if value is None or draw(st.booleans()):
        return key + tail, value
    return key, value + tail


MADE_UP: st.SearchStrategy[Bytes] = st.tuples(
    st.none() | st.binary(max_size=14) | st.binary(max_size=10).map(lambda rest: b"\x00\x01" + rest),
    st.none() | st.binary(max_size=30),
)
ANY_RECORD: st.SearchStrategy[Bytes] = st.one_of(commits(), commits(), commits(), membership(), damaged(), MADE_UP)


@st.composite
def logs(draw: Callable[..., Any], max_records: int = 40, partitions: int = 3) -> list[LogRecord]:
    """Draw the records that one task reads.

    Partitions are interleaved, in offset order, and some offsets are missing.
    """
    ends = dict.fromkeys(range(partitions), 0)
    records = []
    for key, value in draw(st.lists(ANY_RECORD, max_size=max_records)):
        offsets_topic_partition = draw(st.integers(0, partitions - 1))
        offsets_topic_offset = ends[offsets_topic_partition] + draw(st.sampled_from([0, 0, 0, 1, 5]))
        ends[offsets_topic_partition] = offsets_topic_offset + 1
        records.append(
            LogRecord(key, value, offsets_topic_partition, offsets_topic_offset, draw(st.integers(0, 10_000)))
        )
    return records


@st.composite
def pieces(draw: Callable[..., Any], records: Sequence[LogRecord], max_cuts: int = 6) -> list[list[LogRecord]]:
    """Draw a split of the records into consecutive pieces. Pieces can be empty."""
    cuts = sorted(draw(st.lists(st.integers(0, len(records)), max_size=max_cuts)))
    bounds = [0, *cuts, len(records)]
    return [list(records[start:end]) for start, end in pairwise(bounds)]
