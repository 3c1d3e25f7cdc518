"""Actual against expected: which partitions are elsewhere than the strategy would have them.

Rules, first that applies:

1. No strategy of ours by that name: `not_evaluated`.
2. A subscribed topic's partition count is not known: `unknown`, reason `metadata_missing`.
3. Every partition is where the strategy puts it: `match`, whoever computed it.
4. A topic's count was sampled after the record, and it either has fewer partitions than were assigned (deleted, or
   created anew), or more of which the last were assigned to nobody (grown): the leader knew another. `unknown`,
   reason `metadata_changed`.
5. The strategy has more than one right answer: `not_evaluated`. A difference from ours proves nothing; none is counted.
6. `drift`, with each partition's actual and expected owner.

Strategies other than the group's own are compared too, so that one can see what they would do: `same` or `differs`.
"""

from __future__ import annotations

import msgspec

from assignors import AssignorFailedError, GroupAssignment, GroupSpec, PartitionAssignor
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
    """Judge the actual owners by one strategy. A user's strategy that fails is reported for the group, no more."""
    strategy = assignor.name
    if unknown_topics(snapshot):
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, "metadata_missing")
    try:
        misplaced = _misplaced(owners, assignor.assign(spec))
    except AssignorFailedError as failure:
        return StrategyDrift(strategy, is_group_strategy, NOT_EVALUATED, f"assignor_{failure.reason}")
    verdict, reason = _verdict(snapshot, owners, strategy, misplaced)
    if not is_group_strategy and verdict != UNKNOWN:
        verdict, reason = (DIFFERS if misplaced else SAME), ""
    if verdict in (UNKNOWN, NOT_EVALUATED):
        return StrategyDrift(strategy, is_group_strategy, verdict, reason)
    listed = misplaced if is_group_strategy else ()
    return StrategyDrift(strategy, is_group_strategy, verdict, reason, len(misplaced), listed)


def _verdict(
    snapshot: GroupSnapshot, owners: Owners, strategy: str, misplaced: tuple[MisplacedPartition, ...]
) -> tuple[str, str]:
    if not misplaced:
        return MATCH, ""
    if any(_has_changed(snapshot, topic, owners) for topic in snapshot.subscribed_topics()):
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


def _has_changed(snapshot: GroupSnapshot, topic: str, owners: Owners) -> bool:
    """Whether a topic's count, sampled after the record, shows that the leader knew another one."""
    sampled = snapshot.topics[topic]
    if snapshot.position is None or sampled.sampled_at_ms <= snapshot.position.timestamp_ms:
        return False
    partitions = sampled.partitions or 0
    held = sorted(partition for held_topic, partition in owners if held_topic == topic)
    has_shrunk = bool(held) and held[-1] >= partitions
    has_grown = 0 < len(held) < partitions and held == list(range(len(held)))
    return has_shrunk or has_grown
