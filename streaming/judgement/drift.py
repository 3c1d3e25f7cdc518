"""Actual against expected: does the group have what its strategy promises, and if not, what is wrong.

The leader's decision is replayed from its recorded inputs. Rules for the group's own strategy, first that applies:

1. No strategy of ours by that name, or Kafka Streams: `not_evaluated`.
2. A subscribed topic's partition count is not known: `unknown`, reason `metadata_missing`.
3. Every partition is where the replay puts it: `match`, whoever computed it.
4. A topic's count was sampled after the record, and it either has fewer partitions than were assigned (deleted, or
   created anew), or more of which the last were assigned to nobody (grown): the leader knew another. `unknown`,
   reason `metadata_changed`.
5. A law is broken (`assignors.invariants`): `drift`, with the laws, and each partition's actual and expected owner.
6. Cooperative, and what is assigned to nobody is what somebody has to give up first: `withheld` (KIP-429, round one).
7. The strategy has many right answers, and this one is as even and moves as little as the replay: `equivalent`.
8. The leader's program is one whose answer the replay is, to the last tie: `drift`, law `replay_differs`. A user's own
   strategy is its own program.
9. `differs_from_java`: lawful for what it is, and the leader is not shown to be Java.

Strategies other than the group's own are compared too, so that one can see what they would do: `same` or `differs`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from assignors import BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec, PartitionAssignor, TopicPartition
from assignors.invariants import violations
from assignors.measures import effective_owners
from streaming.group.snapshot import GroupSnapshot
from streaming.judgement.group_spec import Owners, unknown_topics
from streaming.judgement.leader import JAVA, LIBRDKAFKA

MATCH = "match"
"""The group's own strategy: every partition is where it belongs."""
DRIFT = "drift"
EQUIVALENT = "equivalent"
DIFFERS_FROM_JAVA = "differs_from_java"
WITHHELD = "withheld"
UNKNOWN = "unknown"
SAME = "same"
DIFFERS = "differs"
"""Verdicts on other strategies than the group's own: what they would do is no judgement of what the leader did."""
NOT_EVALUATED = "not_evaluated"

REPLAY_DIFFERS = "replay_differs"
"""Named among the laws where none of `assignors.invariants` is broken and the leader's program answers differently."""

EXACT_STRATEGIES = frozenset({"range", "roundrobin"})
"""Strategies with one right answer; librdkafka computes them as Java does. The others have many."""

_COOPERATIVE = "cooperative-sticky"


class MisplacedPartition(msgspec.Struct, frozen=True):
    """A partition that is not where the strategy puts it. No owner at all is an empty tuple or None."""

    topic: str
    partition: int
    actual_members: tuple[str, ...]
    expected_member: str | None


class StrategyDrift(msgspec.Struct, frozen=True):
    """One strategy's expectation against the actual assignment.

    `misplaced` is listed where the verdict is `drift`, `laws` are the names of the broken ones. `drift_partitions` is
    None where the difference proves nothing wrong, 0 where every difference is lawful.
    """

    strategy: str
    is_group_strategy: bool
    verdict: str
    reason: str = ""
    drift_partitions: int | None = None
    misplaced: tuple[MisplacedPartition, ...] = ()
    laws: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """What one generation's record gives to every strategy alike: its inputs, its owners, and what is doubtful of them.

    `owners` are those that the assignment names; `implementation` is the leader's (`judgement.leader`).
    """

    spec: GroupSpec
    owners: Owners
    implementation: str
    unknown_topics: tuple[str, ...]
    changed_topics: tuple[str, ...]

    def assignment(self) -> GroupAssignment:
        """The owners as an assignment: every member of the group, and who else was named."""
        held: dict[str, list[TopicPartition]] = {member.member_id: [] for member in self.spec.members}
        for topic_partition, member_ids in sorted(self.owners.items()):
            for member_id in member_ids:
                held.setdefault(member_id, []).append(topic_partition)
        return GroupAssignment({member_id: tuple(partitions) for member_id, partitions in held.items()})


def recorded(snapshot: GroupSnapshot, spec: GroupSpec, owners: Owners, implementation: str) -> Recorded:
    """What every strategy is judged by; found once for all of them."""
    unknown = unknown_topics(snapshot)
    changed = () if unknown else changed_topics(snapshot, owners)
    return Recorded(spec, owners, implementation, unknown, changed)


def strategy_drift(known: Recorded, assignor: PartitionAssignor, *, is_group_strategy: bool) -> StrategyDrift:
    """Judge the actual owners by one strategy. A user's strategy that fails is reported for the group, no more."""
    strategy = assignor.name
    if known.unknown_topics:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, "metadata_missing")
    try:
        expected = assignor.assign(known.spec)
    except AssignorFailedError as failure:
        return StrategyDrift(strategy, is_group_strategy, NOT_EVALUATED, f"assignor_{failure.reason}")
    misplaced = _misplaced(known.owners, expected)
    if misplaced and known.changed_topics:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, "metadata_changed")
    if not is_group_strategy:
        return StrategyDrift(strategy, False, DIFFERS if misplaced else SAME, "", len(misplaced))
    if not misplaced:
        return StrategyDrift(strategy, True, MATCH, "", 0)
    return _judged(known, strategy, expected, misplaced)


def _judged(
    known: Recorded, strategy: str, expected: GroupAssignment, misplaced: tuple[MisplacedPartition, ...]
) -> StrategyDrift:
    """Rules 5 to 9."""
    actual = known.assignment()
    laws = sorted({violation.law.value for violation in violations(known.spec, actual, strategy)})
    if laws:
        return StrategyDrift(strategy, True, DRIFT, "", len(misplaced), misplaced, tuple(laws))
    if strategy == _COOPERATIVE and _leaves_something(known, actual):
        return StrategyDrift(strategy, True, WITHHELD, "", 0)
    if strategy not in EXACT_STRATEGIES and strategy in BUILT_IN and _is_as_good(known.spec, actual, expected):
        return StrategyDrift(strategy, True, EQUIVALENT, "", 0)
    if _answers_as_replayed(known.implementation, strategy):
        return StrategyDrift(strategy, True, DRIFT, "", len(misplaced), misplaced, (REPLAY_DIFFERS,))
    return StrategyDrift(strategy, True, DIFFERS_FROM_JAVA, f"leader_{known.implementation}")


def _answers_as_replayed(implementation: str, strategy: str) -> bool:
    if strategy not in BUILT_IN or implementation == JAVA:
        return True
    return implementation == LIBRDKAFKA and strategy in EXACT_STRATEGIES


def _leaves_something(known: Recorded, actual: GroupAssignment) -> bool:
    """Whether somebody has to give up a partition that nobody gets yet."""
    given = {topic_partition for held in actual.members.values() for topic_partition in held}
    owned = {topic_partition for member in known.spec.members for topic_partition in member.owned}
    return any(known.spec.exists(topic_partition) for topic_partition in owned - given)


def _is_as_good(spec: GroupSpec, actual: GroupAssignment, expected: GroupAssignment) -> bool:
    """Whether sorted sizes and the number of partitions that move are the same."""
    owners = effective_owners(spec)

    def outcome(assignment: GroupAssignment) -> tuple[list[int], int]:
        held = {partition: member_id for member_id, of in assignment.members.items() for partition in of}
        moved = sum(held.get(partition, member_id) != member_id for partition, member_id in owners.items())
        return sorted(map(len, assignment.members.values())), moved

    return outcome(actual) == outcome(expected)


def _misplaced(owners: Owners, expected: GroupAssignment) -> tuple[MisplacedPartition, ...]:
    wanted: Mapping[TopicPartition, str] = {
        topic_partition: member_id
        for member_id, topic_partitions in expected.members.items()
        for topic_partition in topic_partitions
    }
    elsewhere = [at for at in {*owners, *wanted} if owners.get(at, ()) != _as_owners(wanted.get(at))]
    return tuple(
        MisplacedPartition(topic, partition, owners.get((topic, partition), ()), wanted.get((topic, partition)))
        for topic, partition in sorted(elsewhere)
    )


def _as_owners(member_id: str | None) -> tuple[str, ...]:
    return () if member_id is None else (member_id,)


def changed_topics(snapshot: GroupSnapshot, owners: Owners) -> tuple[str, ...]:
    """Topics whose count, sampled after the record, shows that whoever assigned knew another one; sorted."""
    held: dict[str, list[int]] = defaultdict(list)
    for topic, partition in owners:
        held[topic].append(partition)
    return tuple(
        topic for topic in snapshot.subscribed_topics() if _has_changed(snapshot, topic, sorted(held.get(topic, ())))
    )


def _has_changed(snapshot: GroupSnapshot, topic: str, held: Sequence[int]) -> bool:
    sampled = snapshot.topics[topic]
    if snapshot.position is None:
        return False
    # A polled group's assignment is older than the poll that saw it, and nobody knows how much.
    if not snapshot.is_polled and sampled.sampled_at_ms <= snapshot.position.timestamp_ms:
        return False
    partitions = sampled.partitions or 0
    has_shrunk = bool(held) and held[-1] >= partitions
    has_grown = 0 < len(held) < partitions and list(held) == list(range(len(held)))
    return has_shrunk or has_grown
