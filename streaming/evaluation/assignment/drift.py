"""Actual against expected: does the group have what its strategy promises, and if not, what is wrong.

The leader's decision is replayed from its recorded inputs. Rules for the group's own strategy, first that applies:

1. No strategy of ours by that name, or Kafka Streams: `not_evaluated`, or `drift` if a common law is broken
   (`rule_violations`).
2. A subscribed topic's partition count is not known: `unknown`, reason `metadata_missing`. So it is where `drift` would
   rest on a sample older than the record, which the record contradicts (`sampled_topics`). A member's subscription or
   assignment could not be read: `unknown`, `member_subscription` or `member_assignment`. Of a KIP-848 member nobody
   tells the target (`target_assignment`), the topics of its regular expression (`resolved_regex`; no answer of a
   coordinator does), or the name of a topic in its target, which was deleted (`topic_names`): `unknown`, too.
3. Every partition is where the replay puts it: `match`, whoever computed it. Java's range has two replays if there are
   racks: with them (since 3.5), and without.
4. A topic's count was sampled after the record, and it either has fewer partitions than were assigned (deleted, or
   created anew), or more of which the last were assigned to nobody (grown): the leader knew another. `unknown`,
   reason `metadata_changed`.
5. A law is broken (`assignors.fairness.invariants`): `drift`, with the laws, and for each partition whose owner breaks
   a rule its actual and expected owner. Balance is evaluated by what the leader's library promises (`leader`); if the
   library is not known, only the laws that all libraries keep are evaluated.
6. Cooperative, and what is assigned to nobody is what somebody has to give up first: `withheld` (KIP-429, round one).
7. The strategy has one right answer, and the leader's library is known to compute it: `drift`, law `replay_differs`.
   A user's own strategy is its own library.
8. The answer is one of many, and as even as promised: `equivalent`. Sticky strategies have many right answers, and so
   has kafka-go, which deals partitions in the order in which the broker lists them.
9. `differs_from_java`: lawful for what it is.

Judged are present owners. A partition that moved without need has a lawful owner now: it counts in the rebalance that
moved it (`movement`), never here.

Strategies other than the group's own are compared too, so that one can see what they would do: `same` or `differs`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from assignors import BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec, PartitionAssignor, TopicPartition
from assignors.fairness.balance_rules import BALANCE_RULES
from assignors.fairness.invariants import STICKY_STRATEGIES, Rule, Violation, violations
from assignors.racks import member_rack
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs
from streaming.evaluation.assignment.common_rules import ONE_OWNER_STRATEGIES
from streaming.evaluation.assignment.group_spec import Owners
from streaming.evaluation.assignment.leader import BROKER, JAVA, KAFKA_GO, LIBRDKAFKA, Leader, promised_balance
from streaming.evaluation.assignment.repair import repaired
from streaming.group.not_known import TOPIC_NAMES

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
"""Verdicts on other strategies than the group's own: what they would do is no evaluation of what the leader did."""
NOT_EVALUATED = "not_evaluated"

REPLAY_DIFFERS = "replay_differs"
"""Named among the laws where none of `invariants` is broken and the leader's program answers differently."""

EXACT_STRATEGIES = frozenset({"range", "roundrobin"})
"""Strategies with one right answer, which depends on the library's order of members. The others have many."""

METADATA_MISSING = "metadata_missing"

_COOPERATIVE = "cooperative-sticky"

_BROKEN_WHATEVER_THE_TOPICS = frozenset(
    rule.value for rule in (Rule.UNKNOWN_MEMBER, Rule.NOT_SUBSCRIBED, Rule.ASSIGNED_TWICE, Rule.HANDED_OVER_EARLY)
)
"""Laws that a record alone shows to be broken. All others go by the number of partitions a topic has."""


class MisplacedPartition(msgspec.Struct, frozen=True):
    """A partition whose owner breaks a rule of the strategy. No owner at all is an empty tuple or None."""

    topic: str
    partition: int
    actual_members: tuple[str, ...]
    expected_member: str | None


class StrategyDrift(msgspec.Struct, frozen=True):
    """One strategy's expectation against the actual assignment.

    `misplaced` is listed where the verdict is `drift`, `violations` are the names of the broken ones.
    `drift_partitions` is None where the difference proves nothing wrong, 0 where every difference is lawful.
    """

    strategy: str
    is_group_strategy: bool
    verdict: str
    reason: str = ""
    drift_partitions: int | None = None
    misplaced: tuple[MisplacedPartition, ...] = ()
    violations: tuple[str, ...] = ()


def strategy_drift(
    known: AssignmentInputs, assignor: PartitionAssignor, leader: Leader, *, is_group_strategy: bool
) -> StrategyDrift:
    """Judge the actual owners by one strategy, and by what the leader's library makes of it.

    A user's strategy that fails is reported for the group, no more.
    """
    strategy = assignor.name
    missing = (*((METADATA_MISSING,) if known.unknown_topics else ()), *known.unknown_inputs)
    if missing:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, missing[0])
    try:
        expected = assignor.assign(known.spec)
    except AssignorFailedError as failure:
        return StrategyDrift(strategy, is_group_strategy, NOT_EVALUATED, f"assignor_{failure.reason}")
    elsewhere = _elsewhere(known.owners, _wanted_owners(expected))
    if is_group_strategy and elsewhere and _is_javas_answer_without_racks(known, assignor, leader):
        elsewhere = set()
    if elsewhere and known.changed_topics:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, "metadata_changed")
    if not is_group_strategy:
        return StrategyDrift(strategy, False, DIFFERS if elsewhere else SAME, "", len(elsewhere))
    if not elsewhere:
        return StrategyDrift(strategy, True, MATCH, "", 0)
    return _if_not_stale(known, _evaluated(known, strategy, leader, expected))


def not_evaluated(known: AssignmentInputs, strategy: str, reason: str) -> StrategyDrift:
    """Judge by the common laws alone (rule 1): what a member claims and nobody gets may be withheld."""
    claimed = {at for member in known.spec.members for at in member.owned}
    is_open = known.unknown_inputs or known.unknown_topics or known.changed_topics or known.stale_topics
    broken = {
        Rule.NOT_SUBSCRIBED: TOPIC_NAMES not in known.unknown_inputs,
        Rule.ASSIGNED_TWICE: strategy in ONE_OWNER_STRATEGIES,
        Rule.UNASSIGNED: not is_open,
    }
    found = [
        one
        for one in violations(known.spec, known.assignment)
        if broken.get(one.rule) and not (one.rule is Rule.UNASSIGNED and one.partition in claimed)
    ]
    if not found:
        return StrategyDrift(strategy, True, NOT_EVALUATED, reason)
    return replace(_drift(known, strategy, found, {}, is_exact=False), reason=reason)


def _if_not_stale(known: AssignmentInputs, found: StrategyDrift) -> StrategyDrift:
    """The verdict, where it does not rest on an older sample that the record contradicts (rule 2)."""
    is_proven = found.verdict != DRIFT or not _BROKEN_WHATEVER_THE_TOPICS.isdisjoint(found.violations)
    return (
        found if is_proven or not known.stale_topics else StrategyDrift(found.strategy, True, UNKNOWN, METADATA_MISSING)
    )


def _evaluated(known: AssignmentInputs, strategy: str, leader: Leader, expected: GroupAssignment) -> StrategyDrift:
    """Rules 5 to 9."""
    is_exact = _answers_as_replayed(known, strategy, leader)
    balance = promised_balance(leader, strategy)
    found = _violations(known, strategy, balance)
    if found:
        right = expected if is_exact or leader.implementation == BROKER else repaired(known, balance)
        return _drift(known, strategy, found, _wanted_owners(right), is_exact=is_exact)
    if strategy == _COOPERATIVE and _leaves_something(known, known.assignment):
        return StrategyDrift(strategy, True, WITHHELD, "", 0)
    if is_exact:
        return _drift(known, strategy, (), _wanted_owners(expected), is_exact=True)
    is_even = strategy in STICKY_STRATEGIES and not any(BALANCE_RULES[strategy](known.spec, known.assignment))
    if is_even or (leader.implementation == KAFKA_GO and balance is not None):
        return StrategyDrift(strategy, True, EQUIVALENT, "", 0)
    return StrategyDrift(strategy, True, DIFFERS_FROM_JAVA, f"leader_{leader.implementation}")


def _violations(known: AssignmentInputs, strategy: str, balance: str | None) -> Sequence[Violation]:
    """What present owners break. `balance` is the strategy whose balance law is promised, None where none is known."""
    found = [one for one in violations(known.spec, known.assignment, strategy) if one.rule is not Rule.MOVED_NEEDLESSLY]
    if balance == strategy:
        return found
    found = [one for one in found if one.rule is not Rule.UNBALANCED]
    if found or balance is None:
        return found
    return [Violation(Rule.UNBALANCED, detail) for detail in BALANCE_RULES[balance](known.spec, known.assignment)]


def _drift(
    known: AssignmentInputs, strategy: str, found: Sequence[Violation], wanted: Owners, *, is_exact: bool
) -> StrategyDrift:
    """The verdict with every partition whose owner breaks a rule; `wanted` is the nearest lawful assignment.

    With one right answer each partition has one right owner; else only what breaks a law is misplaced.
    """
    violations = {one.rule for one in found}
    at_fault = {one.partition for one in found if one.partition is not None}
    if is_exact or Rule.UNBALANCED in violations:
        at_fault |= _elsewhere(known.owners, wanted)
    misplaced = tuple(
        MisplacedPartition(*at, known.owners.get(at, ()), next(iter(wanted.get(at, ())), None))
        for at in sorted(at_fault)
    )
    names = tuple(sorted(rule.value for rule in violations)) or (REPLAY_DIFFERS,)
    return StrategyDrift(strategy, True, DRIFT, "", len(misplaced), misplaced, names)


def _answers_as_replayed(known: AssignmentInputs, strategy: str, leader: Leader) -> bool:
    """Whether the replay is the one right answer of whoever led. librdkafka weighs racks otherwise than Java."""
    if strategy not in BUILT_IN:
        return True
    if strategy not in EXACT_STRATEGIES:
        return False
    return leader.implementation == JAVA or (leader.implementation == LIBRDKAFKA and not _has_racks(known))


def _is_javas_answer_without_racks(known: AssignmentInputs, assignor: PartitionAssignor, leader: Leader) -> bool:
    """Java clients send their rack since 3.4 and weigh it since 3.5 (KIP-881). No record says which one led."""
    if leader.implementation != JAVA or assignor.name != "range" or not _has_racks(known):
        return False
    plain = assignor.assign(GroupSpec(known.spec.members, known.spec.partitions))
    return not _elsewhere(known.owners, _wanted_owners(plain))


def _has_racks(known: AssignmentInputs) -> bool:
    return bool(known.spec.racks) and any(map(member_rack, known.spec.members))


def _leaves_something(known: AssignmentInputs, actual: GroupAssignment) -> bool:
    """Whether somebody has to give up a partition that nobody gets yet."""
    given = {topic_partition for held in actual.members.values() for topic_partition in held}
    owned = {topic_partition for member in known.spec.members for topic_partition in member.owned}
    return any(known.spec.exists(topic_partition) for topic_partition in owned - given)


def _wanted_owners(expected: GroupAssignment) -> Owners:
    return {at: owner for member_id, held in expected.members.items() for owner in [(member_id,)] for at in held}


def _elsewhere(owners: Owners, wanted: Owners) -> set[TopicPartition]:
    """Partitions whose owners differ. Most are where they belong, so whole items are compared first."""
    return {at for at, _ in owners.items() ^ wanted.items()}
