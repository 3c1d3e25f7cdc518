"""Compare the actual assignment with the result of a strategy, and find the rules that the assignment breaks.

The monitor *replays* the leader's computation: the monitor computes the assignment again from the recorded inputs. For
the group's own strategy, the first rule that applies determines the verdict:

1. For Kafka Streams and for strategies that the monitor does not implement, only the common rules are checked
   (`common_rules`). The same is true after a downgrade (`snapshot_evaluation`, rule 5). If the assignment breaks a
   common rule, the verdict is `drift`. If the assignment breaks no common rule, the verdict is `not_evaluated`.
2. The verdict is `unknown` if an input is missing. The reason names the missing input:

   - `metadata_missing`: the partition count of a subscribed topic is unknown. If an outdated sample may cause a wrong
     `drift`, the verdict is also `unknown` with this reason. An outdated sample is older than the record and
     contradicts the record (`sampled_topics`). Rule 7 uses the same reason for racks.
   - `member_subscription`, `member_assignment`: the subscription or the assignment of a member cannot be decoded.
   - `target_assignment`: no record has the target of a KIP-848 member.
   - `resolved_regex`: the topics of a KIP-848 member's regular expression are unknown. Coordinators never return the
     topics of a regular expression.
   - `topic_names`: the target of a KIP-848 member contains the id of a deleted topic, so the name is unknown.
   - `too_many_records`: a batch contains many newer records of the group (`apply_batch`).

3. The verdict is `match` if every partition has the owner that the replay computes. Rule 3 applies to all client
   libraries. If a Java leader uses `range` and racks are known, the monitor accepts two results: with racks (Java 3.5
   and later) and without racks.
4. The verdict is `unknown` for the reason `metadata_changed` if the leader possibly used a partition count that differs
   from the sampled count. This is possible in two cases. First case: the leader assigned a partition that the sample
   does not contain, because the topic was deleted. Second case: only the partitions with the highest numbers have no
   owner, because they are new. Rule 4 does not apply if the leader certainly knew the sampled count (`sampled_topics`).
5. The verdict is `drift` if the assignment breaks a rule (`assignors.fairness.invariants`). The verdict names the
   broken rules. For each partition whose owner breaks a rule, the verdict names the actual owner and the expected
   owner. For a partition that was handed over early, the expected owner is the previous owner if this member still has
   the partition. Otherwise, the partition has no expected owner, because the previous owner must revoke the partition
   first. Java leaders from 2.8.1 to 3.4.0 hand over partitions early if the previous owner missed a rebalance
   (KAFKA-14639). This is also drift. The balance rule depends on the leader's library (`leader`). If the library is
   unknown, the monitor checks only the rules that all libraries follow.
6. The verdict is `withheld` in the first round of a cooperative rebalance (KIP-429). In the first round, partitions
   without an owner are normal, because members must revoke these partitions first.
7. The verdict is `drift` with the violation `replay_differs` if the strategy has exactly one correct result. A user's
   own strategy has one correct result. `range` and `roundrobin` have one correct result if the library of the leader is
   Java. If the library is librdkafka, they have one correct result only without racks, and only if librdkafka's
   comparisons of the members do not contradict each other (`assignors.ordering`). Exception: if the strategy can
   use racks and a member has a rack, the leader possibly used racks that differ from the sampled racks
   (`sampled_topics`, rules 6 and 7). Then the verdict is `unknown`. The reason is `metadata_missing` until the racks
   were sampled after the record, and then `metadata_changed`. The exception does not apply to `roundrobin`, which uses
   no racks.
8. The verdict is `equivalent` if the strategy has many correct results, and the actual assignment follows the balance
   rule. Sticky strategies and the strategies of kafka-go have many correct results. The result of a kafka-go strategy
   depends on the order of the partitions in the broker's response.
9. The verdict is `differs_from_java` if no earlier rule applies.

The verdict depends only on the present owners. An unnecessary move of a partition does not change the verdict.
`partition_movement` counts the unnecessary moves of each rebalance.

The assignment is also compared with the strategies that the group does not use. For a strategy that the group does not
use, the verdict is `same` or `differs`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import replace

from assignors import BUILT_IN, AssignorFailedError, GroupAssignment, GroupSpec, PartitionAssignor, TopicPartition
from assignors.fairness.balance_rules import BALANCE_RULES
from assignors.fairness.invariants import STICKY_STRATEGIES, Rule, Violation, violations
from assignors.ordering import has_one_order_in_librdkafka
from assignors.racks import member_rack
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs, Owners
from streaming.evaluation.assignment.common_rules import ONE_OWNER_STRATEGIES
from streaming.evaluation.assignment.leader import BROKER, JAVA, KAFKA_GO, LIBRDKAFKA, Leader, promised_balance
from streaming.evaluation.assignment.repair import repair_assignment
from streaming.evaluation.assignment.sampled_topics import METADATA_CHANGED, METADATA_MISSING
from streaming.group.not_known import TOPIC_NAMES

MATCH = "match"
DRIFT = "drift"
EQUIVALENT = "equivalent"
DIFFERS_FROM_JAVA = "differs_from_java"
WITHHELD = "withheld"
UNKNOWN = "unknown"
REBALANCING = "rebalancing"
"""Verdict: the present generation or epoch has no assignment yet."""
SAME = "same"
DIFFERS = "differs"
"""`same` and `differs` are the verdicts for strategies that the group does not use."""
NOT_EVALUATED = "not_evaluated"

REPLAY_DIFFERS = "replay_differs"
"""Name of a violation: no rule of `invariants` is broken, but the leader's library computes a different assignment."""

EXACT_STRATEGIES = frozenset({"range", "roundrobin"})
"""Strategies with exactly one correct result for each order of the members. The order depends on the library."""

TOO_MANY_RECORDS = "too_many_records"

_COOPERATIVE = "cooperative-sticky"
_WITHOUT_RACKS = "roundrobin"

_PROVEN_BY_RECORD = frozenset(
    rule.value for rule in (Rule.UNKNOWN_MEMBER, Rule.NOT_SUBSCRIBED, Rule.ASSIGNED_TWICE, Rule.HANDED_OVER_EARLY)
)
"""The record alone can prove a violation of these rules. All other rules depend on the partition counts of topics."""


class MisplacedPartition(msgspec.Struct, frozen=True):
    """A partition whose owner breaks a rule of the strategy.

    `expected_member` is None if no member should own the partition, or if the previous owner must revoke it first.
    """

    topic: str
    partition: int
    actual_members: tuple[str, ...]
    expected_member: str | None


class StrategyDrift(msgspec.Struct, frozen=True):
    """The result of the comparison of the actual assignment with one strategy.

    `misplaced` and `violations` (the names of the broken rules) are set only for the verdict `drift`.
    `drift_partitions` is the number of misplaced partitions, or None if unknown. It is 0 for the verdicts `match`,
    `equivalent` and `withheld`.
    """

    strategy: str
    is_group_strategy: bool
    verdict: str
    reason: str = ""
    drift_partitions: int | None = None
    misplaced: tuple[MisplacedPartition, ...] = ()
    violations: tuple[str, ...] = ()

    @property
    def is_evaluated(self) -> bool:
        """False if the verdict is `not_evaluated`."""
        return self.verdict != NOT_EVALUATED


def strategy_drift(
    inputs: AssignmentInputs, assignor: PartitionAssignor, leader: Leader, *, is_group_strategy: bool
) -> StrategyDrift:
    """Compare the actual owners with the owners that the leader's library computes with one strategy.

    If a user's strategy fails, the verdict is `not_evaluated`, and the reason names the failure.
    """
    strategy = assignor.name
    missing = (*((METADATA_MISSING,) if inputs.unknown_topics else ()), *inputs.unknown_inputs)
    if missing:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, missing[0])
    try:
        expected = assignor.assign(inputs.spec)
    except AssignorFailedError as failure:
        return StrategyDrift(strategy, is_group_strategy, NOT_EVALUATED, f"assignor_{failure.reason}")
    differing = _differing_partitions(inputs.owners, _expected_owners(expected))
    if is_group_strategy and differing and _matches_java_without_racks(inputs, assignor, leader):
        differing = set()
    if differing and inputs.changed_topics:
        return StrategyDrift(strategy, is_group_strategy, UNKNOWN, METADATA_CHANGED)
    if not is_group_strategy:
        return StrategyDrift(strategy, False, DIFFERS if differing else SAME, "", len(differing))
    if not differing:
        return StrategyDrift(strategy, True, MATCH, "", 0)
    drift = _evaluate_own_strategy(inputs, strategy, leader, expected)
    is_proven = drift.verdict != DRIFT or not _PROVEN_BY_RECORD.isdisjoint(drift.violations)
    is_outdated = inputs.stale_topics and not is_proven
    return StrategyDrift(strategy, True, UNKNOWN, METADATA_MISSING) if is_outdated else drift


def evaluate_common_rules(inputs: AssignmentInputs, strategy: str, reason: str) -> StrategyDrift:
    """Check only the common rules (rule 1).

    If a member did not revoke an unassigned partition before it joined, the partition may be withheld. Then the
    partition does not break the rule `unassigned`.
    """
    is_uncertain = inputs.unknown_inputs or inputs.unknown_topics or inputs.changed_topics or inputs.stale_topics
    checked = {
        Rule.NOT_SUBSCRIBED: TOPIC_NAMES not in inputs.unknown_inputs,
        Rule.ASSIGNED_TWICE: strategy in ONE_OWNER_STRATEGIES,
        Rule.UNASSIGNED: not is_uncertain,
    }
    broken = [
        one
        for one in violations(inputs.spec, inputs.assignment)
        if checked.get(one.rule) and not (one.rule is Rule.UNASSIGNED and one.partition in inputs.not_revoked)
    ]
    if not broken:
        return StrategyDrift(strategy, True, NOT_EVALUATED, reason)
    return replace(_drift(inputs, strategy, broken, {}, is_exact=False), reason=reason)


def _evaluate_own_strategy(
    inputs: AssignmentInputs, strategy: str, leader: Leader, expected: GroupAssignment
) -> StrategyDrift:
    """Return the verdict according to rules 5 to 9. `is_exact`: `expected` is the only correct result (rule 7)."""
    is_exact = strategy not in BUILT_IN
    if strategy in EXACT_STRATEGIES:
        # librdkafka and Java use racks differently. So librdkafka's result for members with racks is unknown.
        is_librdkafka = leader.implementation == LIBRDKAFKA and not _has_racks(inputs)
        is_exact = leader.implementation == JAVA or (is_librdkafka and has_one_order_in_librdkafka(inputs.spec))
    uncertain_racks = inputs.uncertain_racks if is_exact and strategy != _WITHOUT_RACKS else ""
    is_exact = is_exact and not uncertain_racks
    balance = promised_balance(leader, strategy)
    broken = _violations(inputs, strategy, balance)
    if broken:
        valid = expected if is_exact or leader.implementation == BROKER else repair_assignment(inputs, balance)
        return _drift(inputs, strategy, broken, _expected_owners(valid), is_exact=is_exact)
    claimed = (at for member in inputs.spec.members for at in member.owned)
    if strategy == _COOPERATIVE and any(inputs.spec.exists(at) for at in claimed if at not in inputs.owners):
        return StrategyDrift(strategy, True, WITHHELD, "", 0)
    if uncertain_racks:
        return StrategyDrift(strategy, True, UNKNOWN, uncertain_racks)
    if is_exact:
        return _drift(inputs, strategy, (), _expected_owners(expected), is_exact=True)
    is_even = strategy in STICKY_STRATEGIES and not any(BALANCE_RULES[strategy](inputs.spec, inputs.assignment))
    if is_even or (leader.implementation == KAFKA_GO and balance is not None):
        return StrategyDrift(strategy, True, EQUIVALENT, "", 0)
    return StrategyDrift(strategy, True, DIFFERS_FROM_JAVA, f"leader_{leader.implementation}")


def _violations(inputs: AssignmentInputs, strategy: str, balance: str | None) -> Sequence[Violation]:
    """Return the rules that the present owners break. `balance` is the result of `promised_balance`."""
    broken = violations(inputs.spec, inputs.assignment, strategy)
    if balance == strategy:
        return broken
    broken = [one for one in broken if one.rule is not Rule.UNBALANCED]
    if broken or balance is None:
        return broken
    return [Violation(Rule.UNBALANCED, detail) for detail in BALANCE_RULES[balance](inputs.spec, inputs.assignment)]


def _drift(
    inputs: AssignmentInputs, strategy: str, broken: Sequence[Violation], expected_owners: Owners, *, is_exact: bool
) -> StrategyDrift:
    """Return the verdict `drift`. `expected_owners` are the owners in the replay or in the repair (`repair`)."""
    rules = {one.rule for one in broken}
    at_fault = {one.partition for one in broken if one.partition is not None}
    if is_exact or Rule.UNBALANCED in rules:
        at_fault |= _differing_partitions(inputs.owners, expected_owners)
    early = {one.partition for one in broken if one.rule is Rule.HANDED_OVER_EARLY and one.partition is not None}
    if early:
        expected_owners = {**expected_owners, **_owners_that_claim(inputs, early)}
    misplaced = tuple(
        MisplacedPartition(*at, inputs.owners.get(at, ()), next(iter(expected_owners.get(at, ())), None))
        for at in sorted(at_fault)
    )
    names = tuple(sorted(rule.value for rule in rules)) or (REPLAY_DIFFERS,)
    return StrategyDrift(strategy, True, DRIFT, "", len(misplaced), misplaced, names)


def _owners_that_claim(inputs: AssignmentInputs, partitions: Collection[TopicPartition]) -> Owners:
    """Return the owners that may keep the partitions in this cooperative round: the owners that already had them."""
    claims = {(one.member_id, at) for one in inputs.spec.members for at in one.owned if at in partitions}
    return {at: tuple(one for one in inputs.owners[at] if (one, at) in claims) for at in partitions}


def _matches_java_without_racks(inputs: AssignmentInputs, assignor: PartitionAssignor, leader: Leader) -> bool:
    """Return True if Java's `range` without racks computes the actual owners.

    From version 3.4 on, Java clients send their rack. From version 3.5 on, Java leaders use the racks (KIP-881). No
    record shows the leader's version, so the monitor accepts both results.
    """
    if leader.implementation != JAVA or assignor.name != "range" or not _has_racks(inputs):
        return False
    without_racks = assignor.assign(GroupSpec(inputs.spec.members, inputs.spec.partitions))
    return not _differing_partitions(inputs.owners, _expected_owners(without_racks))


def _has_racks(inputs: AssignmentInputs) -> bool:
    return bool(inputs.spec.racks) and any(map(member_rack, inputs.spec.members))


def _expected_owners(expected: GroupAssignment) -> Owners:
    return {at: owner for member_id, held in expected.members.items() for owner in [(member_id,)] for at in held}


def _differing_partitions(owners: Owners, expected_owners: Owners) -> set[TopicPartition]:
    return {at for at, _ in owners.items() ^ expected_owners.items()}
