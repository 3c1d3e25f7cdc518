"""Actual against expected: which partitions are elsewhere than the strategy would have them.

Rules, first that applies:

1. No strategy of ours by that name, or one whose answer is not unique: `not_evaluated`.
2. A subscribed topic's partition count is not known: `unknown`, reason `metadata_missing`.
3. Every partition is where the strategy puts it: `match`, whoever computed it.
4. Some topic has more partitions now than anybody was given, the missing ones are its last, and the count was sampled
   after the record: it grew since. `unknown`, reason `metadata_changed`.
5. `drift`, with each partition's actual and expected owner.

Strategies other than the group's own are compared too, so that one can see what they would do: `same` or `differs`.
"""

from __future__ import annotations

import msgspec

from assignors import GroupAssignment, GroupSpec, PartitionAssignor, TopicPartition
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.group_spec import Owners, unknown_topics

MATCH = "match"
"""The group's own strategy: every partition is where it belongs."""
DRIFT = "drift"
UNKNOWN = "unknown"
SAME = "same"
DIFFERS = "differs"
"""Verdicts on other strategies than the group's own: what they would do is no judgement of what the leader did."""
NOT_EVALUATED = "not_evaluated"

EXACT_STRATEGIES = frozenset({"range", "roundrobin"})
"""Strategies with one right answer. The others have many; equality with ours proves them right, difference nothing."""


class MisplacedPartition(msgspec.Struct, frozen=True):
    """A partition that is not where the strategy puts it. No owner at all is an empty tuple or None."""

    topic: str
    partition: int
    actual_members: tuple[str, ...]
    expected_member: str | None


class StrategyDrift(msgspec.Struct, frozen=True):
    """One strategy's expectation against the actual assignment; `misplaced` is listed for the group's own strategy."""

    strategy: str
    is_group_strategy: bool
    verdict: str
    reason: str = ""
    drift_partitions: int | None = None
    misplaced: tuple[MisplacedPartition, ...] = ()


def strategy_drift(
    snapshot: GroupSnapshot, spec: GroupSpec, owners: Owners, assignor: PartitionAssignor, *, is_group_strategy: bool
) -> StrategyDrift:
    """Judge the actual owners by one strategy. Raises whatever the assignor raises: built-in ones never do."""
    strategy = assignor.name
    if unknown_topics(snapshot):
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, "metadata_missing")
    misplaced = _misplaced(owners, assignor.assign(spec))
    listed = misplaced if is_group_strategy else ()
    verdict, reason = _verdict(snapshot, spec, owners, strategy, misplaced)
    if not is_group_strategy and verdict != UNKNOWN:
        verdict, reason = (DIFFERS if misplaced else SAME), ""
    counted = None if verdict == UNKNOWN else len(misplaced)
    return StrategyDrift(strategy, is_group_strategy, verdict, reason, counted, listed)


def _verdict(
    snapshot: GroupSnapshot, spec: GroupSpec, owners: Owners, strategy: str, misplaced: tuple[MisplacedPartition, ...]
) -> tuple[str, str]:
    if not misplaced:
        return MATCH, ""
    if _grown_since(snapshot, spec, owners):
        return UNKNOWN, "metadata_changed"
    if strategy not in EXACT_STRATEGIES:
        return NOT_EVALUATED, "answer_not_unique"
    return DRIFT, ""


def _misplaced(owners: Owners, expected: GroupAssignment) -> tuple[MisplacedPartition, ...]:
    wanted = {
        topic_partition: member_id
        for member_id, topic_partitions in expected.members.items()
        for topic_partition in topic_partitions
    }
    everywhere = sorted(set(owners) | set(wanted))
    return tuple(
        MisplacedPartition(topic_partition[0], topic_partition[1], actual, expected_member)
        for topic_partition in everywhere
        if (actual := owners.get(topic_partition, ())) != _as_owners(expected_member := wanted.get(topic_partition))
    )


def _as_owners(member_id: str | None) -> tuple[str, ...]:
    return () if member_id is None else (member_id,)


def _grown_since(snapshot: GroupSnapshot, spec: GroupSpec, owners: Owners) -> bool:
    return any(_has_grown(snapshot, topic, count, owners) for topic, count in spec.partitions.items())


def _has_grown(snapshot: GroupSnapshot, topic: str, partitions: int, owners: Owners) -> bool:
    if snapshot.position is None or snapshot.topics[topic].sampled_at_ms <= snapshot.position.timestamp_ms:
        return False
    held = [partition for partition in range(partitions) if _is_held(owners, (topic, partition))]
    return len(held) < partitions and held == list(range(len(held))) and bool(held)


def _is_held(owners: Owners, topic_partition: TopicPartition) -> bool:
    return topic_partition in owners
