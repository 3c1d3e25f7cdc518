"""Name the cause of a group's lag. The first rule that applies determines the cause.

A group has a cause only if at least one of its partitions is late (`lateness.py`). All rates are averages over five
minutes (`evaluation.lag.rates`). Rules 2 to 9 ignore late partitions that are blocked by an open transaction.

1. `unknown` (`open_transaction`): an open transaction blocks every late partition.
2. `rebalancing`: the *lost time* explains the lag. Lost time is the time without commits around rebalances, minus the
   time in which the group had no members (`late_group.py`, rule 4). The *window* is the time since records began to
   wait, but at most WINDOW_MS (`late_group.py`, rule 2). The rule applies in three cases. Case a: the lost time is at
   least half of the window. Case b: two statements are true. The lost time is at least EXPLAINING_SHARE of the window.
   In the rest of the window, the group consumed the late partitions at least as fast as producers wrote to them. Case
   c: the window contains at least MIN_REBALANCES rebalances, and the group had no commit in the last STOPPED_MS.
3. `stopped`: the rule applies in three cases. Case a (`no_members`): all members have left, and the group had no commit
   in the last STOPPED_MS. Case b (`no_owner`): no late partition has an owner. Case c: all late partitions have the
   status STOP or STALL, and no other partition had a commit in the last STOPPED_MS. A partition with the status STOP
   had no commit in this time either (`status.py`, rule 2). In case c, the reason is `no_members` if the group has no
   members and each late partition has the status STOP. Otherwise, the reason is `no_commits`. For a group that only
   commits offsets (`assign()` in the Java client), case a does not apply. Such a group never has members, and it may
   commit only every few minutes. So case a would apply by mistake.
4. `unknown` (`owners_unknown`, `rates_unknown`): the owner or a rate of a partition is unknown. Rules 5 to 9 compare
   rates of members, so all owners and rates must be known.
5. `unknown` (`catching_up`): the group consumes the late partitions faster than producers write to them. So the cause
   of the lag has already ended. If the speed of a partition is known (`lateness.py`, rule 5), its consume rate is the
   speed times its produce rate. `unknown` (`rates_unknown`): the group had no members for at least EXPLAINING_SHARE of
   the last WINDOW_MS. The rates also contain this time, so they do not show what the members can consume.
6. `hot_partition`: the produce rate of one late partition is too high for any member. The produce rate of the hot
   partition exceeds its owner's capacity (`capacity.py`) and each member's consume rate. The produce rate is also at
   least HOT_FACTOR times the mean produce rate of the other partitions of the same topic. The rule does not compare
   partitions of different topics, because a quiet topic would make each partition of a busy topic hot. A topic with a
   single partition has no hot partition.
7. `assignment`: a different assignment would help. The produce rate of a late member's partitions exceeds the member's
   capacity. In the fairest assignment, every member could process the produce rate of the busiest member. Unknown
   capacities are ignored.
8. `slow_member`, `slow_host`: only one member has late partitions (`slow_member`), or only members on one host have
   late partitions (`slow_host`). There are other members that receive records, are not late, and do not run on the slow
   host. The rule compares the average rates of the late members with the average rates of the other members. The late
   members receive at most SIMILAR_INPUT times as many records as the other members. The consume rate of the late
   members is below their produce rate. The consume rate of the late members is also below SLOW_SHARE times the consume
   rate of the other members. The rule does not apply if a late partition has no owner.
9. `under_provisioned`: each member that receives records has a late partition, and consumes fewer records than its
   partitions receive. Blocked partitions do not count.
10. `unknown` (`no_rule`): no other rule applies.

The result does not depend on the order of members or partitions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import fsum
from typing import Final

from streaming.evaluation.causes.cause import (
    ASSIGNMENT,
    CATCHING_UP,
    HOT_PARTITION,
    NO_COMMITS,
    NO_MEMBERS,
    NO_OWNER,
    NO_RULE,
    OPEN_TRANSACTION,
    OWNERS_UNKNOWN,
    RATES_UNKNOWN,
    REBALANCING,
    SLOW_HOST,
    SLOW_MEMBER,
    STOPPED,
    UNDER_PROVISIONED,
    UNKNOWN,
    Cause,
)
from streaming.evaluation.causes.member_work import GroupWork, PartitionWork, Work, total
from streaming.evaluation.lag.rates import MIN_GAIN
from streaming.evaluation.lag.status import MIN_SILENCE_MS

WINDOW_MS = 300_000
STOPPED_MS = MIN_SILENCE_MS
EXPLAINING_SHARE = 0.2
MIN_REBALANCES = 3
HOT_FACTOR = 2.0
SIMILAR_INPUT = 1.5
SLOW_SHARE = 0.9
_STUCK = ("STOP", "STALL")


@dataclass(frozen=True)
class LagFacts:
    """The inputs of the rules at one sample. None means unknown.

    `partitions` are the committed partitions of the group. `work` is None if an owner is unknown, or if the group only
    commits offsets.
    `fair_records_per_second` is the produce rate that the busiest member would have in the fairest assignment.
    `rebalances` and `lost_ms` cover the window of rule 2. `without_members_ms` covers the last WINDOW_MS.
    """

    sampled_at_ms: int
    partitions: tuple[PartitionWork, ...]
    work: GroupWork | None = None
    member_count: int | None = None
    fair_records_per_second: float | None = None
    window_ms: int = 0
    lost_ms: int = 0
    rebalances: int = 0
    without_members_ms: int = 0


_Rule = Callable[[LagFacts, Sequence[PartitionWork]], "Cause | None"]


def cause_of_lag(facts: LagFacts) -> Cause | None:
    """Return the cause of the lag, or None if no partition is late."""
    late = sorted(one for one in facts.partitions if one.is_late)
    if not late:
        return None
    readable = [one for one in late if not one.is_blocked]
    if not readable:
        return Cause(UNKNOWN, OPEN_TRANSACTION)
    causes = (rule(facts, readable) for rule in _RULES)
    return next((cause for cause in causes if cause is not None), Cause(UNKNOWN, NO_RULE))


def _rebalancing(facts: LagFacts, late: Sequence[PartitionWork]) -> Cause | None:
    if facts.window_ms <= 0:
        return None
    lost_share = min(1.0, facts.lost_ms / facts.window_ms)
    is_interrupted = facts.rebalances >= MIN_REBALANCES and not _has_recent_commit(facts, facts.partitions)
    if not (lost_share >= 0.5 or is_interrupted or _explains_lag(lost_share, late)):
        return None
    return Cause(
        REBALANCING,
        window_seconds=facts.window_ms / 1000,
        lost_seconds=lost_share * facts.window_ms / 1000,
        rebalances=facts.rebalances,
    )


def _explains_lag(lost_share: float, late: Sequence[PartitionWork]) -> bool:
    """Return True if the lost time explains the lag (rule 2, case b)."""
    consumed, produced = _rates(late)
    if lost_share < EXPLAINING_SHARE or consumed is None or produced is None:
        return False
    return consumed / (1 - lost_share) >= produced


def _stopped(facts: LagFacts, late: Sequence[PartitionWork]) -> Cause | None:
    is_empty = facts.member_count == 0
    if is_empty and facts.work is not None and not _has_recent_commit(facts, facts.partitions):
        return Cause(STOPPED, NO_MEMBERS)
    if facts.work is not None and facts.work.members and not any(one.member_id for one in late):
        return Cause(STOPPED, NO_OWNER, topic=late[0].topic, partition=late[0].partition)
    others = [one for one in facts.partitions if not one.is_late]
    if all(one.status in _STUCK for one in late) and not _has_recent_commit(facts, others):
        is_stalled = any(one.status == "STALL" for one in late)
        return Cause(STOPPED, NO_MEMBERS if is_empty and not is_stalled else NO_COMMITS)
    return None


def _has_recent_commit(facts: LagFacts, partitions: Sequence[PartitionWork]) -> bool:
    return any(facts.sampled_at_ms - one.last_commit_ms < STOPPED_MS for one in partitions)


def _inputs_unknown(facts: LagFacts, _: Sequence[PartitionWork]) -> Cause | None:
    if facts.work is None or not facts.work.members:
        return Cause(UNKNOWN, OWNERS_UNKNOWN)
    if any(None in {one.consumed_records_per_second, one.produced_records_per_second} for one in facts.work.members):
        return Cause(UNKNOWN, RATES_UNKNOWN)
    return None


def _catching_up(_: LagFacts, late: Sequence[PartitionWork]) -> Cause | None:
    consumed, produced = total(_recent_rate(one) for one in late), _rates(late)[1]
    if consumed is None or produced is None or consumed - produced <= MIN_GAIN * max(consumed, produced):
        return None
    return Cause(UNKNOWN, CATCHING_UP)


def _recent_rate(one: PartitionWork) -> float | None:
    if one.speed is None or one.produced_records_per_second is None:
        return one.consumed_records_per_second
    return one.speed * one.produced_records_per_second


def _rates_contain_outage(facts: LagFacts, _: Sequence[PartitionWork]) -> Cause | None:
    had_outage = facts.without_members_ms >= EXPLAINING_SHARE * WINDOW_MS
    return Cause(UNKNOWN, RATES_UNKNOWN) if had_outage else None


def _hot_partition(facts: LagFacts, late: Sequence[PartitionWork]) -> Cause | None:
    members = {one.member_id: one for one in _members(facts)}
    best = max((one.consumed_records_per_second or 0.0 for one in members.values()), default=0.0)
    of_topic = defaultdict[str, list[float]](list)
    for one in facts.partitions:
        of_topic[one.topic].append(one.produced_records_per_second or 0.0)
    totals = {topic: (len(rates) - 1, fsum(rates)) for topic, rates in of_topic.items()}
    for one in sorted(late, key=lambda each: (-(each.produced_records_per_second or 0), each.key)):
        owner, produced = members.get(one.member_id), one.produced_records_per_second or 0.0
        others, topic = totals[one.topic]
        is_hot = others > 0 and produced > best and produced * others >= HOT_FACTOR * (topic - produced)
        if owner is not None and is_hot and _is_overloaded(owner, produced):
            cause = Cause(
                HOT_PARTITION,
                topic=one.topic,
                partition=one.partition,
                produced_records_per_second=one.produced_records_per_second,
                capacity_records_per_second=owner.capacity_records_per_second,
            )
            return _of_member(cause, owner)
    return None


def _assignment(facts: LagFacts, late: Sequence[PartitionWork]) -> Cause | None:
    fair = facts.fair_records_per_second
    known = [one.capacity_records_per_second for one in _members(facts) if one.capacity_records_per_second is not None]
    overloaded = [
        one for one in _owners(late, _members(facts)) if _is_overloaded(one, one.produced_records_per_second or 0.0)
    ]
    if fair is None or not overloaded or fair >= min(known):
        return None
    busiest = min(overloaded, key=lambda one: (-(one.produced_records_per_second or 0), one.name, one.member_id))
    cause = Cause(
        ASSIGNMENT,
        produced_records_per_second=busiest.produced_records_per_second,
        capacity_records_per_second=busiest.capacity_records_per_second,
        fair_records_per_second=fair,
    )
    return _of_member(cause, busiest)


def _is_overloaded(one: Work, produced_records_per_second: float) -> bool:
    capacity = one.capacity_records_per_second
    return capacity is not None and produced_records_per_second > capacity


def _slow(facts: LagFacts, late_partitions: Sequence[PartitionWork]) -> Cause | None:
    with_input = _with_input(facts)
    late_ids = {one.member_id for one in late_partitions}
    late = [one for one in with_input if one.member_id in late_ids]
    others = [one for one in with_input if one.member_id not in late_ids]
    hosts = {one.client_host for one in late}
    is_one_host = len(hosts) == 1 and not any(one.client_host in hosts for one in others)
    if late_ids != {one.member_id for one in late}:
        return None
    if not late or not others or (len(late) > 1 and not is_one_host):
        return None
    produced, consumed = _mean_rates(late)
    others_produced, others_consumed = _mean_rates(others)
    if produced > SIMILAR_INPUT * others_produced or consumed >= min(produced, SLOW_SHARE * others_consumed):
        return None
    cause = Cause(
        SLOW_MEMBER if len(late) == 1 else SLOW_HOST,
        client_host=late[0].client_host,
        produced_records_per_second=produced,
        consumed_records_per_second=consumed,
        others_consumed_records_per_second=others_consumed,
    )
    return _of_member(cause, late[0]) if len(late) == 1 else cause


def _under_provisioned(facts: LagFacts, late: Sequence[PartitionWork]) -> Cause | None:
    with_input = _with_input(facts)
    of_members = defaultdict[str, list[PartitionWork]](list)
    for one in facts.partitions:
        if not one.is_blocked:
            of_members[one.member_id].append(one)
    readable = [of_members[one.member_id] for one in with_input]
    all_fall_behind = all((consumed or 0.0) < (produced or 0.0) for consumed, produced in map(_rates, readable))
    if not with_input or _owners(late, with_input) != with_input or not all_fall_behind:
        return None
    consumed, produced = _rates([row for rows in readable for row in rows])
    return Cause(
        UNDER_PROVISIONED,
        produced_records_per_second=produced,
        consumed_records_per_second=consumed,
        capacity_records_per_second=total(one.capacity_records_per_second for one in with_input),
    )


def _owners(late: Sequence[PartitionWork], members: Sequence[Work]) -> Sequence[Work]:
    member_ids = {one.member_id for one in late}
    return [one for one in members if one.member_id in member_ids]


def _members(facts: LagFacts) -> Sequence[Work]:
    return facts.work.members if facts.work else ()


def _with_input(facts: LagFacts) -> Sequence[Work]:
    return [one for one in _members(facts) if one.produced_records_per_second]


def _rates(partitions: Sequence[PartitionWork]) -> tuple[float | None, float | None]:
    consumed = total(one.consumed_records_per_second for one in partitions)
    return consumed, total(one.produced_records_per_second for one in partitions)


def _mean_rates(works: Sequence[Work]) -> tuple[float, float]:
    """Return the mean produce rate and the mean consume rate. All rates are known, because rule 4 came first."""
    produced = fsum(one.produced_records_per_second or 0.0 for one in works)
    return produced / len(works), fsum(one.consumed_records_per_second or 0.0 for one in works) / len(works)


def _of_member(cause: Cause, member: Work) -> Cause:
    return replace(cause, member=member.name, client_id=member.client_id, client_host=member.client_host)


_RULES: Final[tuple[_Rule, ...]] = (
    _rebalancing,
    _stopped,
    _inputs_unknown,
    _catching_up,
    _rates_contain_outage,
    _hot_partition,
    _assignment,
    _slow,
    _under_provisioned,
)
