"""Find partitions that a group no longer reads.

If a group stops reading a partition, Kafka by default keeps the committed offset for a week. The lag of the partition
would grow during this week. So the monitor excludes the partition from the lag of the group. The first rule that
applies determines whether a partition is included or excluded:

1. If the members of the group are unknown, the partition is included. Either the group uses `assign`, or the monitor
   does not read the records of this group type.
2. If the group is Empty, the partition is included. For an Empty group, lag is especially important (kafka-lag-exporter
   issues 63, 290). Exception: the partition is excluded if the group stopped reading the topic long before it became
   Empty. Two facts prove this. First, the group was Stable without the topic for at least `STOPPED_IN_STAGES_MS`, and
   no later member read the topic. Second, the last commit for the partition is more than `STOPPED_IN_STAGES_MS` older
   than the time when the group became Empty. A shorter time proves nothing: if the members stop one after the other,
   the group is Stable without the topics of the first member.
3. If the members of a classic group rebalance, or if the state is unknown, the partition is included, because the
   subscriptions can change. A KIP-848 group has subscriptions also during a rebalance, so rules 4 to 6 apply.
4. If the subscription of a member is unreadable, the partition is included, because the subscription may contain the
   topic.
5. If a member subscribes to the topic or has a partition of the topic, the partition is included.
6. If no member reads the topic, the partition is excluded.

Burrow continues to report topics that a group no longer reads (issues 14, 504, 854). Users of klag must exclude such
topics by configuration (issue 92).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from streaming.events import Position
from streaming.group.members import members
from streaming.group.snapshot import ASSIGNING, EMPTY, RECONCILING, STABLE, UNKNOWN, GroupSnapshot
from streaming.protocol.consumer_protocol import CONSUMER_PROTOCOL_TYPE

STOPPED_IN_STAGES_MS = 600_000
"""Maximum time in which the members of a group stop one after the other (rule 2).

A crashed member leaves after its session timeout (default: 45 s). A member that hangs leaves after
`max.poll.interval.ms` (default: 5 minutes).
"""

_SHOWS_SUBSCRIPTIONS = frozenset({STABLE, ASSIGNING, RECONCILING})
_ALWAYS, _NEVER = 2**63 - 1, -(2**63)


class LastRead(msgspec.Struct, frozen=True):
    """The sorted topics that the members of a group read before the group became Empty (rule 2)."""

    topics: tuple[str, ...]
    empty_since_ms: int | None = None


def last_read_after(known: LastRead | None, before: GroupSnapshot, after: GroupSnapshot) -> LastRead | None:
    """Return the new `LastRead` after an event changed the group from `before` to `after`. None means unknown.

    If compaction has removed the records of later members, the topics of these members are missing. But their commits
    are usually not old enough for the exception in rule 2, so their partitions are included.
    """
    if after.totals.incarnations != before.totals.incarnations or after.is_over or after.state == UNKNOWN:
        return None
    if after.position is None or after.position == before.position:
        return known
    if before.state == STABLE:
        topics = _topics_of_stable(known, before, after.position)
    elif after.state == before.state:
        return known
    else:
        topics = None if known is None else known.topics
    return None if topics is None else LastRead(topics, after.position.timestamp_ms if after.state == EMPTY else None)


def _topics_of_stable(known: LastRead | None, stable: GroupSnapshot, end: Position) -> tuple[str, ...] | None:
    """Return the topics that the members read until `end`, the position of the next record.

    A group can be Stable for a short time (a KIP-848 group even between two records of one append). So if the group was
    Stable for less than `STOPPED_IN_STAGES_MS`, the result also contains the topics in `known`.
    """
    topics = read_topics(stable).topics
    if topics is None:
        return None
    if stable.position is None or end.timestamp_ms - stable.position.timestamp_ms < STOPPED_IN_STAGES_MS:
        return None if known is None else tuple(sorted(topics.union(known.topics)))
    return tuple(sorted(topics))


@dataclass(frozen=True, slots=True)
class ReadTopics:
    """The state of a group, and the topics that its members read, or have read before the group became Empty."""

    state: str
    topics: frozenset[str] | None
    empty_since_ms: int | None = None


def read_topics(snapshot: GroupSnapshot, last_read: LastRead | None = None) -> ReadTopics:
    """Return the topics of subscriptions, assignments, targets and pending revocations.

    If at least one topic is unknown, `topics` is None. For example, a subscription is unreadable, or only the id of a
    topic is known.
    """
    if snapshot.state == EMPTY:
        if last_read is None:
            return ReadTopics(EMPTY, None)
        return ReadTopics(EMPTY, frozenset(last_read.topics), last_read.empty_since_ms)
    if snapshot.protocol_type != CONSUMER_PROTOCOL_TYPE or _hides_topics(snapshot):
        return ReadTopics(snapshot.state, None)
    group = members(snapshot)
    if any(member.subscribed_topics is None or member.assigned is None for member in group):
        return ReadTopics(snapshot.state, None)
    held = [partitions for one in group for partitions in (one.assigned, one.target, one.pending_revocation)]
    assigned = {topic for partitions in held for topic, _ in partitions or ()}
    return ReadTopics(snapshot.state, frozenset({*snapshot.subscribed_topics(), *assigned}))


def _hides_topics(snapshot: GroupSnapshot) -> bool:
    group = snapshot.modern
    if group is None:
        return False
    expressions = {member.subscribed_regex for member in group.members.values() if member.subscribed_regex}
    return bool(group.unnamed_topic_ids()) or not expressions <= group.regexes.keys()


def is_unsubscribed(commits: pa.Table, groups: Mapping[str, ReadTopics]) -> pa.Array:
    """Return True for each commit whose group no longer reads its topic.

    `commits` has the columns `group_id`, `topic` and `commit_timestamp_ms`.

    >>> commits = {"group_id": ["g", "g", "empty"], "topic": ["orders", "old", "old"], "commit_timestamp_ms": [7, 7, 7]}
    >>> orders = frozenset({"orders"})
    >>> groups = {"g": ReadTopics("Stable", orders), "empty": ReadTopics("Empty", orders, empty_since_ms=9)}
    >>> is_unsubscribed(pa.table(commits), groups).to_pylist()
    [False, True, False]
    """
    group_ids = commits["group_id"].combine_chunks().dictionary_encode()
    topics = commits["topic"].combine_chunks().dictionary_encode()
    # A pair of group and topic can have many rows. So each pair gets a number, and is evaluated only once.
    first_of_group = pc.multiply(group_ids.indices.cast(pa.int64()), len(topics.dictionary))
    pairs = pc.add(first_of_group, topics.indices.cast(pa.int64())).dictionary_encode()
    group_names, topic_names = group_ids.dictionary.to_pylist(), topics.dictionary.to_pylist()
    evaluated = [
        _excluded_before_ms(groups.get(group_names[pair // len(topic_names)]), topic_names[pair % len(topic_names)])
        for pair in pairs.dictionary.to_pylist()
    ]
    before_ms = pa.array(evaluated, pa.int64()).take(pairs.indices)
    return pc.less(commits["commit_timestamp_ms"].combine_chunks(), before_ms)


def _excluded_before_ms(group: ReadTopics | None, topic: str) -> int:
    """Return a time. If a commit for the topic is older than this time, its partition is excluded."""
    if group is None or group.topics is None or topic in group.topics:
        return _NEVER
    if group.state in _SHOWS_SUBSCRIPTIONS:
        return _ALWAYS
    return _NEVER if group.empty_since_ms is None else group.empty_since_ms - STOPPED_IN_STAGES_MS
