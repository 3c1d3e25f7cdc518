"""Records that each client library wrote into `__consumer_offsets`, and the description by Kafka's Admin at that time.

`clients/README.md` describes how the file was made.
"""

from __future__ import annotations

import base64
import gzip
import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "clients" / "memberships.jsonl.gz"


@dataclass(frozen=True)
class DescribedMember:
    """A member as Kafka's Admin described it, with the library and topics that the capturing program knows.

    Attributes:
        topics: None if Kafka described a member that the capturing program had already stopped.

    """

    member_id: str
    client_id: str
    instance_id: str | None
    library: str
    version: str
    topics: tuple[str, ...] | None
    assignment: frozenset[tuple[str, int]]


@dataclass(frozen=True)
class CapturedRecord:
    """A record of the group that is not a commit."""

    timestamp_ms: int
    key: bytes
    value: bytes


@dataclass(frozen=True)
class Membership:
    """A group at one moment.

    Attributes:
        partitions: the existing topics of the group, with their partition counts.
        broken_law: the broken rule if the library's assignment is wrong, otherwise None.
        records: the latest record of each key, in log order.

    """

    group: str
    strategy: str
    step: str
    partitions: dict[str, int]
    broken_law: str | None
    group_type: str
    state: str
    assignor: str | None
    members: tuple[DescribedMember, ...]
    records: tuple[CapturedRecord, ...]


@cache
def memberships() -> tuple[Membership, ...]:
    """Return every line of the file."""
    with gzip.open(PATH, "rt", encoding="utf-8") as lines:
        return tuple(_membership(json.loads(line)) for line in lines)


def _membership(line: dict[str, Any]) -> Membership:
    members = tuple(_member(member) for member in line.pop("members"))
    records = tuple(
        CapturedRecord(record["timestamp_ms"], base64.b64decode(record["key"]), base64.b64decode(record["value"]))
        for record in line.pop("records")
    )
    return Membership(**line, members=members, records=records)


def _member(member: dict[str, Any]) -> DescribedMember:
    topics = member.pop("topics")
    assignment = frozenset((topic, partition) for topic, partition in member.pop("assignment"))
    return DescribedMember(**member, topics=topics and tuple(topics), assignment=assignment)
