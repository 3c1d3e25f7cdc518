"""Actual against expected: does the group have what its strategy promises, and if not, what is wrong.

The leader's decision is replayed from its recorded inputs. Rules for the group's own strategy, first that applies:

1. No strategy of ours by that name, or Kafka Streams: `not_evaluated`.
2. A member's subscription or assignment could not be read: `unknown`, reason `member_subscription` or
   `member_assignment`. A subscribed topic's partition count is not known: `unknown`, reason `metadata_missing`. The
   same where `drift` would rest on a sample older than the record, which the record contradicts (`sampled_topics`).
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

import msgspec

from assignors import BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec, PartitionAssignor, TopicPartition
from assignors.invariants import Law, violations
from assignors.measures import effective_owners
from streaming.judgement.group_spec import Owners
from streaming.judgement.leader import JAVA, LIBRDKAFKA
from streaming.judgement.recorded import Recorded

MATCH = "match"
"""The group's own strategy: every partition is where it belongs."""
DRIFT = "drift"
EQUIVALENT = "equivalent"
DIFFERS_FROM_JAVA = "differs_from_java"
WITHHELD = "withheld"
UNKNOWN = "unknown"
REBALANCING = "rebalancing"
"""There is no assignment of this epoch yet."""
SAME = "same"
DIFFERS = "differs"
"""Verdicts on other strategies than the group's own: what they would do is no judgement of what the leader did."""
NOT_EVALUATED = "not_evaluated"

REPLAY_DIFFERS = "replay_differs"
"""Named among the laws where none of `assignors.invariants` is broken and the leader's program answers differently."""

EXACT_STRATEGIES = frozenset({"range", "roundrobin"})
"""Strategies with one right answer; librdkafka computes them as Java does. The others have many."""

METADATA_MISSING = "metadata_missing"

_COOPERATIVE = "cooperative-sticky"

_BROKEN_WHATEVER_THE_TOPICS = frozenset(
    law.value for law in (Law.UNKNOWN_MEMBER, Law.NOT_SUBSCRIBED, Law.ASSIGNED_TWICE, Law.HANDED_OVER_EARLY)
)
"""Laws that a record alone shows to be broken. All others go by the number of partitions a topic has."""


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


def strategy_drift(
    known: Recorded, assignor: PartitionAssignor, implementation: str, *, is_group_strategy: bool
) -> StrategyDrift:
    """Judge the actual owners by one strategy; `implementation` is the leader's (`judgement.leader`).

    A user's strategy that fails is reported for the group, no more.
    """
    strategy = assignor.name
    missing = (*known.unknown_bytes, *((METADATA_MISSING,) if known.unknown_topics else ()))
    if missing:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, missing[0])
    try:
        expected = assignor.assign(known.spec)
    except AssignorFailedError as failure:
        return StrategyDrift(strategy, is_group_strategy, NOT_EVALUATED, f"assignor_{failure.reason}")
    wanted = _wanted_owners(expected)
    elsewhere = _elsewhere(known.owners, wanted)
    if elsewhere and known.changed_topics:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, "metadata_changed")
    if not is_group_strategy:
        return StrategyDrift(strategy, False, DIFFERS if elsewhere else SAME, "", len(elsewhere))
    if not elsewhere:
        return StrategyDrift(strategy, True, MATCH, "", 0)
    misplaced = tuple(
        MisplacedPartition(*at, known.owners.get(at, ()), next(iter(wanted.get(at, ())), None))
        for at in sorted(elsewhere)
    )
    return _if_not_stale(known, _judged(known, strategy, implementation, expected, misplaced))


def _if_not_stale(known: Recorded, found: StrategyDrift) -> StrategyDrift:
    """The verdict, where it does not rest on an older sample that the record contradicts (rule 2)."""
    is_proven = found.verdict != DRIFT or not _BROKEN_WHATEVER_THE_TOPICS.isdisjoint(found.laws)
    return (
        found if is_proven or not known.stale_topics else StrategyDrift(found.strategy, True, UNKNOWN, METADATA_MISSING)
    )


def _judged(
    known: Recorded,
    strategy: str,
    implementation: str,
    expected: GroupAssignment,
    misplaced: tuple[MisplacedPartition, ...],
) -> StrategyDrift:
    """Rules 5 to 9."""
    actual = known.assignment
    laws = sorted({violation.law.value for violation in violations(known.spec, actual, strategy)})
    if laws:
        return StrategyDrift(strategy, True, DRIFT, "", len(misplaced), misplaced, tuple(laws))
    if strategy == _COOPERATIVE and _leaves_something(known, actual):
        return StrategyDrift(strategy, True, WITHHELD, "", 0)
    if strategy not in EXACT_STRATEGIES and strategy in BUILT_IN and _is_as_good(known.spec, actual, expected):
        return StrategyDrift(strategy, True, EQUIVALENT, "", 0)
    if _answers_as_replayed(implementation, strategy):
        return StrategyDrift(strategy, True, DRIFT, "", len(misplaced), misplaced, (REPLAY_DIFFERS,))
    return StrategyDrift(strategy, True, DIFFERS_FROM_JAVA, f"leader_{implementation}")


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


def _wanted_owners(expected: GroupAssignment) -> Owners:
    return {at: owner for member_id, held in expected.members.items() for owner in [(member_id,)] for at in held}


def _elsewhere(owners: Owners, wanted: Owners) -> set[TopicPartition]:
    """Partitions whose owners differ. Most are where they belong, so whole items are compared first."""
    return {at for at, _ in owners.items() ^ wanted.items()}
