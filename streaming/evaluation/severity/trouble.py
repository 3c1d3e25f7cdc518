"""Find the troubles of a group, and its rank among all groups.

Each rule that applies adds a trouble to the group. The first rule that applies determines the rank of the group:

1. A condition is active, or the group has members and no coordinator. Two conditions do not count, because they are
   harmless: `rolling_restart` is a normal deployment, and `subscription_mismatch` can last for months.
2. The assignment violates a rule: a partition has two owners, the owner does not subscribe to the topic, or the verdict
   is `drift`. Each violated rule is one trouble.
3. Partitions have no owner, so no member reads the partitions. If the condition `unowned_partitions` is active, only
   rule 1 applies.
4. Retention has deleted unread records, or is expected to delete unread records within an hour. The rule also applies
   if the brokers will delete committed offsets of an empty group within a day.
5. The status is REWIND, STALL or STOP.
6. Members are idle, and a different member has two or more partitions. If the number of avoidable idle members is
   known, only avoidable idle members count.
7. The busiest member has more partitions than the busiest member of the fairest assignment. If topic skew is the cause,
   the name of the trouble is `topic skew`.
8. The work of the group is uneven (`evaluation/fairness/fairness.py`, rule 4).
9. The rule applies in two cases. Case a: an open transaction blocks every late partition, and the lag is above
   `max_lag_seconds`. Case b: the status is WARN, and the lag in seconds is unknown or at least BEHIND_SECONDS. So new
   groups and groups with a small constant lag do not get this trouble. If an open transaction blocks a partition, case
   b also requires a cause of lag. Without this requirement, the lag in seconds could be the lag of the blocked
   partition.
10. The state or the lag of the group is unknown. Without a fresh sample, the conditions are also unknown. In a report
    of the past, the state does not count if no table row contains the state. The state of a streams group does not
    count if its members are known, because no record contains the state of a streams group with members.

If the first rule is the same for two groups, the group with more troubles comes first. Then the higher lag in seconds
decides, then the higher lag in records, then the group id. Groups without a trouble come last. An unknown lag counts as
lower than all known lags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assignors.fairness.invariants import Rule
from streaming.evaluation.assignment.drift import DRIFT
from streaming.evaluation.assignment.rule_words import in_a_sentence, short_word
from streaming.evaluation.causes.cause import OPEN_TRANSACTION
from streaming.evaluation.facts import NO_LEADER, UNKNOWN_TYPE, GroupFacts
from streaming.evaluation.lag.lag import LOG_NOT_READ, NO_FRESH_SAMPLE
from streaming.evaluation.lag.status import Status
from streaming.evaluation.phrases import counted, in_words
from streaming.evaluation.rebalances.condition_detectors import HARMLESS, UNOWNED_PARTITIONS
from streaming.events import STREAMS
from streaming.group.snapshot import UNKNOWN

SOON_LOST_SECONDS = 3600
SOON_EXPIRED_SECONDS = 24 * 3600
BEHIND_SECONDS = 30
_STATUS_WORDS = {
    Status.REWIND.name: ("rewound", "rewound: the committed offset of a partition decreased (REWIND)"),
    Status.STALL.name: ("stalled", "stalled: a partition gets the same committed offset again and again (STALL)"),
    Status.STOP.name: ("stopped", "stopped: a partition no longer gets commits, and records wait (STOP)"),
}
UNKNOWN_RULE = 10
_NO_TROUBLE = 11


@dataclass(frozen=True, slots=True)
class Trouble:
    """One trouble of a group. `word` is a short name from a fixed set. `since_ms` is None if unknown."""

    rule: int
    word: str
    text: str
    since_ms: int | None = None


def troubles(group: GroupFacts) -> tuple[Trouble, ...]:
    """Return all troubles of a group, sorted from worst to least severe."""
    return tuple(trouble for rule in _RULES for trouble in rule(group))


Place = tuple[int, int, float, int, str]
"""The sort key of a group: rule number, number of troubles, lag in seconds, lag in records, group id.

The number of troubles and both lags are negated, so the worst group has the lowest key. Example:
`(2, -1, -30.0, -500, "orders")`.
"""


def place(group: GroupFacts, group_troubles: tuple[Trouble, ...]) -> Place:
    """Return the sort key of a group. `group_troubles` are its troubles."""
    seconds = -1.0 if group.lag.seconds is None else group.lag.seconds
    records = -1 if group.lag.records is None else group.lag.records
    rule = group_troubles[0].rule if group_troubles else _NO_TROUBLE
    return rule, -len(group_troubles), -seconds, -records, group.group_id


def _conditions(group: GroupFacts) -> Iterator[Trouble]:
    if group.membership.coordinator == NO_LEADER and group.membership.members:
        text = "no coordinator: no member can commit, because the group's partition of __consumer_offsets has no leader"
        yield Trouble(1, "no coordinator", text)
    for condition in group.conditions:
        if condition.name not in HARMLESS:
            name = condition.name.replace("_", " ")
            yield Trouble(1, name, f"{name}: {condition.detail}" if condition.detail else name, condition.since_ms)


def _violations(group: GroupFacts) -> Iterator[Trouble]:
    twice, foreign = group.assignment.owned_twice_partitions, group.assignment.not_subscribed_partitions
    for rule, partitions, what in (
        (Rule.ASSIGNED_TWICE.value, twice, "with two owners, which both process the records"),
        (Rule.NOT_SUBSCRIBED.value, foreign, "with an owner that does not subscribe to the topic"),
    ):
        if partitions:
            yield Trouble(2, short_word(rule), f"{counted(partitions, 'partition')} {what}")


def _drift(group: GroupFacts) -> Iterator[Trouble]:
    own = group.assignment.own
    if own is None or own.verdict != DRIFT or not own.drift_partitions:
        return
    are = "is" if own.drift_partitions == 1 else "are"
    strategy = group.membership.protocol or "the strategy"
    text = f"{counted(own.drift_partitions, 'partition')} {are} not assigned as {strategy} requires"
    common = {trouble.word for trouble in _violations(group)}
    words = [(short_word(rule), in_a_sentence(rule)) for rule in own.violations if short_word(rule) not in common]
    yield from (Trouble(2, f"drift: {word}", f"{sentence}: {text}") for word, sentence in words)
    if not words and not common:
        yield Trouble(2, "drift", text)


def _unowned(group: GroupFacts) -> Iterator[Trouble]:
    partitions, records = group.assignment.unowned_partitions, group.unowned_records
    if partitions and not any(condition.name == UNOWNED_PARTITIONS for condition in group.conditions):
        wait = "" if records is None else f", where {counted(records, 'record')} wait"
        yield Trouble(3, "unowned", f"{counted(partitions, 'partition')} without an owner{wait}")


def _loss(group: GroupFacts) -> Iterator[Trouble]:
    lost, seconds = group.lag.records_lost, group.lag.seconds_until_lost
    if lost:
        yield Trouble(4, "records lost", f"{counted(lost, 'record')} lost to retention")
    elif seconds is not None and seconds < SOON_LOST_SECONDS:
        yield Trouble(4, "losing soon", f"retention will delete unread records in {seconds:.0f} s")
    expiry = group.lag.seconds_until_expiry
    if expiry is not None and expiry < SOON_EXPIRED_SECONDS:
        when = f"in {in_words(int(1000 * expiry))}" if expiry else "now"
        yield Trouble(4, "offsets expire", f"no members, so the brokers can delete the committed offsets {when}")


def _bad_status(group: GroupFacts) -> Iterator[Trouble]:
    if group.lag.status == Status.STOP.name and group.membership.members == 0:
        yield Trouble(5, "no members", "no members: nobody commits, and records wait (STOP)")
    elif group.lag.status in _STATUS_WORDS:
        yield Trouble(5, *_STATUS_WORDS[group.lag.status])


def _idle(group: GroupFacts) -> Iterator[Trouble]:
    shares = group.fairness.partitions
    if shares is None or (shares.largest or 0) < 2:
        return
    idle = shares.idle if shares.avoidable_idle is None else shares.avoidable_idle
    if idle:
        text = f"{counted(idle, 'idle member')} while a different member has {shares.largest:.0f} partitions"
        yield Trouble(6, "idle", text)


def _excess(group: GroupFacts) -> Iterator[Trouble]:
    fairness, shares = group.fairness, group.fairness.partitions
    if shares is None or not shares.excess:
        return
    text = f"the busiest member has {counted(int(shares.excess), 'partition')} more than necessary"
    if not fairness.skewed_topics:
        yield Trouble(7, "uneven", text)
        return
    remedy = f"; the strategy {fairness.remedy} would prevent this" if fairness.remedy else ""
    skew = f"some members have one extra partition in each of {counted(fairness.skewed_topics, 'topic')}"
    yield Trouble(7, "topic skew", f"{text}: {skew}{remedy}")


def _uneven_work(group: GroupFacts) -> Iterator[Trouble]:
    work = group.fairness.uneven_work
    if work is None or work.largest is None or work.excess is None:
        return
    text = f"the partitions of the busiest member receive {work.largest:,.0f} records/s"
    fair = f"in the fairest assignment, the busiest member would receive {work.largest - work.excess:,.0f} records/s"
    yield Trouble(8, "uneven work", f"{text}; {fair}")


def _slow(group: GroupFacts) -> Iterator[Trouble]:
    lag, cause = group.lag, group.cause
    if group.is_above_limit and cause is not None and cause.reason == OPEN_TRANSACTION:
        text = "open transaction: an open transaction of a producer blocks every late partition"
        yield Trouble(9, "open transaction", text, cause.since_ms)
        return
    is_slow = lag.status == Status.WARN.name and (lag.seconds is None or lag.seconds >= BEHIND_SECONDS)
    if is_slow and not (lag.blocked_partitions and cause is None):
        yield Trouble(9, "too slow", "too slow: the group reads more slowly than producers write (WARN)")


def _unknown(group: GroupFacts) -> Iterator[Trouble]:
    membership = group.membership
    is_never_recorded = membership.group_type == STREAMS and membership.members is not None
    if membership.state == UNKNOWN and membership.group_type != UNKNOWN_TYPE and not is_never_recorded:
        why = ", ".join(group.not_known).replace("_", " ")
        yield Trouble(UNKNOWN_RULE, "unknown", f"state unknown: {why}" if why else "state unknown")
    elif NO_FRESH_SAMPLE in group.lag.unknown:
        yield Trouble(UNKNOWN_RULE, "unknown", "lag and conditions unknown: the last sample of the brokers is too old")
    elif LOG_NOT_READ in group.lag.unknown:
        yield Trouble(UNKNOWN_RULE, "lag unknown", "lag unknown: the monitor has not read all of __consumer_offsets")
    elif group.lag.unknown:
        yield Trouble(UNKNOWN_RULE, "lag unknown", f"lag unknown: {', '.join(group.lag.unknown).replace('_', ' ')}")


_RULES: tuple[Callable[[GroupFacts], Iterator[Trouble]], ...] = (
    _conditions,
    _violations,
    _drift,
    _unowned,
    _loss,
    _bad_status,
    _idle,
    _excess,
    _uneven_work,
    _slow,
    _unknown,
)
