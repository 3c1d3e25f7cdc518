"""Synthetic groups: the records that the coordinator would write for 10,000 groups. Pure.

50,000 real members cannot run on the machine of the measured process. So the benchmark creates their records and writes
them in place of the coordinator.

Rules:

1. Every group has ten partitions. Three of four groups subscribe to one topic with ten partitions. Every fourth group
   subscribes to five topics with two partitions each. `range` assigns all of these to the first two members.
2. A group starts at generation 1 with five members. At each even generation a new member has joined. At the next odd
   generation this member has left. `range` assigns the partitions as a Java leader does.
3. Rebalance number k is a rebalance of group k modulo the number of groups. So no group rebalances a second time before
   every group has rebalanced once.
4. Commits visit all partitions of all groups in turn. Before each round, every partition of every topic grows by one
   record. So the lag per partition is one record after the group's commits in this round, and two before them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from assignors import AS_JAVA_LEADER, GroupSpec, MemberSubscription, TopicPartition
from streaming.protocol.layouts import (
    CONSUMER_PROTOCOL_ASSIGNMENT,
    CONSUMER_PROTOCOL_SUBSCRIPTION,
    GROUP_METADATA,
    OFFSET_COMMIT,
)
from tests.bench.encoder import record_key, record_value, versioned

MEMBERS, PARTITIONS = 5, 10
FIRST_GENERATION = 1
FIRST_OFFSET = 1
"""Committed offset of every partition before the first round."""
BEHIND_RECORDS = 1

_SKEWED_EVERY = 4
_WIDE = {f"bench-wide-{number}": PARTITIONS for number in range(10)}
_NARROW = {f"bench-narrow-{number}": 2 for number in range(10)}
_NARROW_TOPICS = 5
_VERSION = 3
_SESSION_MS = 24 * 3_600_000
"""Session timeout of the members. No member sends heartbeats, and the broker must not remove them during the run."""
_SYNC_MS = 40

KeyAndValue = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class NextGeneration:
    """The number of a group, and its next generation."""

    number: int
    generation_id: int


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """The records written up to `at_ms` (milliseconds since the epoch), and the delay of the load in seconds."""

    at_ms: int
    commits: int
    rebalances: int
    late_seconds: float


@dataclass(frozen=True, slots=True)
class SyntheticGroups:
    """A number of synthetic groups. Example: `SyntheticGroups(10_000).commit_keys` is 100,000."""

    groups: int = 10_000

    @property
    def topics(self) -> Mapping[str, int]:
        """Return the number of partitions of each topic."""
        return {**_WIDE, **_NARROW}

    @property
    def commit_keys(self) -> int:
        """Return the number of partitions of all groups together."""
        return self.groups * PARTITIONS

    def group_id(self, number: int) -> str:
        """Return the id of a group.

        >>> SyntheticGroups().group_id(7)
        'bench-synthetic-00007'
        """
        return f"bench-synthetic-{number:05}"

    def is_skewed(self, number: int) -> bool:
        """Return whether `range` leaves members of this group idle (rule 1)."""
        return number % _SKEWED_EVERY == _SKEWED_EVERY - 1

    def subscription(self, number: int) -> tuple[str, ...]:
        """Return the topics of a group (rule 1)."""
        if not self.is_skewed(number):
            return (f"bench-wide-{number % len(_WIDE)}",)
        first = number // _SKEWED_EVERY % 2 * _NARROW_TOPICS
        return tuple(f"bench-narrow-{first + place}" for place in range(_NARROW_TOPICS))

    def partitions(self, number: int) -> Iterator[TopicPartition]:
        """Yield the partitions of a group, in the order of its commits."""
        for topic in self.subscription(number):
            yield from ((topic, partition) for partition in range(self.topics[topic]))

    def rebalance(self, k: int) -> NextGeneration:
        """Return rebalance number `k`, starting at 0 (rule 3).

        >>> SyntheticGroups(100).rebalance(250)
        NextGeneration(number=50, generation_id=4)
        """
        return NextGeneration(k % self.groups, FIRST_GENERATION + 1 + k // self.groups)

    def last_generation(self, number: int, rebalances: int) -> int:
        """Return the generation of a group after `rebalances` rebalances of all groups together.

        >>> SyntheticGroups(100).last_generation(50, 250), SyntheticGroups(100).last_generation(49, 250)
        (3, 4)
        """
        return FIRST_GENERATION + rebalances // self.groups + (number < rebalances % self.groups)

    def generation(self, number: int, generation_id: int, written_ms: int) -> KeyAndValue:
        """Return the record of a generation, as the coordinator writes it after it received the leader's assignment."""
        group_id, topics = self.group_id(number), self.subscription(number)
        member_ids = _member_ids(group_id, generation_id)
        spec = GroupSpec(
            tuple(MemberSubscription(member_id, topics) for member_id in member_ids),
            {topic: self.topics[topic] for topic in topics},
        )
        assigned = AS_JAVA_LEADER["range"].assign(spec).members
        value = record_value(
            GROUP_METADATA,
            _VERSION,
            protocolType="consumer",
            generation=generation_id,
            protocol="range",
            leader=member_ids[0],
            currentStateTimestamp=written_ms - _SYNC_MS,
            members=[_member(member_id, topics, assigned[member_id]) for member_id in member_ids],
        )
        return record_key(GROUP_METADATA, group=group_id), value

    def commit_key(self, number: int, partition: TopicPartition) -> bytes:
        """Return the key of a group's commits of a partition."""
        topic, index = partition
        return record_key(OFFSET_COMMIT, group=self.group_id(number), topic=topic, partition=index)

    def lag(self, number: int, commits: int) -> int:
        """Return the lag of a group in records after `commits` commits of all groups together (rule 4).

        >>> SyntheticGroups(10).lag(0, 100), SyntheticGroups(10).lag(0, 101), SyntheticGroups(10).lag(9, 101)
        (10, 19, 20)
        """
        first, in_round = number * PARTITIONS, commits % self.commit_keys
        committed = min(PARTITIONS, max(0, in_round - first)) if in_round else PARTITIONS
        return PARTITIONS * BEHIND_RECORDS + PARTITIONS - committed


def commit_value(committed_offset: int, now_ms: int) -> bytes:
    """Return the value of an offset commit."""
    return record_value(
        OFFSET_COMMIT, _VERSION, offset=committed_offset, leaderEpoch=-1, metadata="", commitTimestamp=now_ms
    )


def _member_ids(group_id: str, generation_id: int) -> list[str]:
    """Return member ids of client id and UUID, as brokers create them. Each joining member has a new id (rule 2)."""
    staying = [
        f"{group_id}-{place}-{uuid.uuid5(uuid.NAMESPACE_OID, f'{group_id}/{place}')}" for place in range(MEMBERS)
    ]
    if (generation_id - FIRST_GENERATION) % 2 == 0:
        return staying
    return [*staying, f"{group_id}-new-{uuid.uuid5(uuid.NAMESPACE_OID, f'{group_id}/new/{generation_id}')}"]


def _member(member_id: str, topics: tuple[str, ...], assigned: tuple[TopicPartition, ...]) -> Mapping[str, Any]:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in assigned:
        by_topic.setdefault(topic, []).append(partition)
    subscription: dict[str, Any] = {
        "topics": topics,
        "userData": None,
        "ownedPartitions": [],
        "generationId": -1,
        "rackId": None,
    }
    assignment = {
        "assignedPartitions": [{"topic": topic, "partitions": held} for topic, held in by_topic.items()],
        "userData": None,
    }
    return {
        "memberId": member_id,
        "groupInstanceId": None,
        "clientId": member_id[:-37],
        "clientHost": "/10.0.0.1",
        "rebalanceTimeout": 300_000,
        "sessionTimeout": _SESSION_MS,
        "subscription": versioned(CONSUMER_PROTOCOL_SUBSCRIPTION, _VERSION, subscription),
        "assignment": versioned(CONSUMER_PROTOCOL_ASSIGNMENT, _VERSION, assignment),
    }
