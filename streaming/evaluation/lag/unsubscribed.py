"""Partitions a group has left: their commits stay in the log for a week, and their lag grows for ever.

A partition is left out only when the group is stable without it. Rules, first that applies:

1. Nothing is known of the group's members (it uses `assign`, or its records are of a type not read): it stays.
2. The group is not Stable: it stays. An Empty group is just when lag is looked at (kafka-lag-exporter issues 63, 290);
   during a rebalance nobody knows who will read what.
3. A member's subscription could not be read: it stays. It may be in there.
4. A member subscribes to the topic, or is assigned a partition of it: it stays.
5. The partition is left out.

Burrow reports such topics for ever (issues 14, 504, 854). klag asks the same question as here, by configuration (92).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from streaming.group.members import GroupMember, TopicPartitions, members
from streaming.group.snapshot import STABLE, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE


@dataclass(frozen=True, slots=True)
class ReadTopics:
    """What a group reads: its state, and the topics its members subscribe to or are assigned; None where unreadable."""

    state: str
    topics: frozenset[str] | None


def read_topics(snapshot: GroupSnapshot) -> ReadTopics:
    """What a group of consumers reads, from its records: what members subscribe to, have, shall have or give up.

    None where that is not all: a subscription or assignment that could not be read, a regular expression that was not
    resolved, a topic that is known by its id alone.
    """
    read = members(snapshot)
    if snapshot.protocol_type != CONSUMER_PROTOCOL_TYPE or _hides_topics(snapshot):
        return ReadTopics(snapshot.state, None)
    if any(member.subscribed_topics is None or member.assigned is None for member in read):
        return ReadTopics(snapshot.state, None)
    held = {topic for member in read for topic, _ in _partitions(member)}
    return ReadTopics(snapshot.state, frozenset({*snapshot.subscribed_topics(), *held}))


def _hides_topics(snapshot: GroupSnapshot) -> bool:
    group = snapshot.modern
    if group is None:
        return False
    asked = {member.subscribed_regex for member in group.members.values() if member.subscribed_regex}
    return bool(group.unnamed_topic_ids()) or not asked <= group.regexes.keys()


def _partitions(member: GroupMember) -> TopicPartitions:
    return (*(member.assigned or ()), *(member.target or ()), *(member.pending_revocation or ()))


def is_unsubscribed(commits: pa.Table, groups: Mapping[str, ReadTopics]) -> pa.Array:
    """Whether each commit (columns group_id, topic) is of a partition its group has left; groups by group id.

    >>> commits = pa.table({"group_id": ["g", "g", "empty"], "topic": ["orders", "old", "old"]})
    >>> orders = frozenset({"orders"})
    >>> is_unsubscribed(commits, {"g": ReadTopics("Stable", orders), "empty": ReadTopics("Empty", orders)}).to_pylist()
    [False, True, False]
    """
    group_ids = commits["group_id"].combine_chunks().dictionary_encode()
    topics = commits["topic"].combine_chunks().dictionary_encode()
    # Groups and topics are few, their partitions are many: one number a pair, each pair evaluated once.
    pairs = pc.add(
        pc.multiply(group_ids.indices.cast(pa.int64()), len(topics.dictionary)), topics.indices.cast(pa.int64())
    ).dictionary_encode()
    group_names, topic_names = group_ids.dictionary.to_pylist(), topics.dictionary.to_pylist()
    evaluated = [
        _has_left(groups.get(group_names[pair // len(topic_names)]), topic_names[pair % len(topic_names)])
        for pair in pairs.dictionary.to_pylist()
    ]
    return pa.array(evaluated, pa.bool_()).take(pairs.indices)


def _has_left(group: ReadTopics | None, topic: str) -> bool:
    return group is not None and group.state == STABLE and group.topics is not None and topic not in group.topics
