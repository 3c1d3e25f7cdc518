"""What is wrong with a group, and which group to look at first.

Each rule that applies is a trouble; the group stands where its first one puts it:

1. A condition holds, such as a storm or a flapping member. Not `rolling_restart`: that is a deployment at work.
2. A law is broken: a common one (two owners, an owner that does not subscribe), or one of the group's own strategy
   (verdict `drift`). Each broken law is one trouble, by its name.
3. Partitions have no owner: nobody reads them. Told once: by rule 1 where the condition holds.
4. Records are lost to retention, or will be within an hour.
5. Status REWIND, STALL or STOP: thrown back, standing, silent.
6. Members are idle although another has two partitions or more; only those beyond the number that no assignment could
   employ, where that is known.
7. The busiest member has more partitions than the fairest assignment would give it; `topic skew` where that is why.
8. Status WARN, slower than its producers, and half a minute behind or more, as far as that is known: WARN alone is said
   of every group that is young, or always as far behind.
9. What is the matter cannot be told: the group's state or lag is unknown.

Of groups that stand on the same rule the one with more troubles comes first, then more lag in seconds, then in records,
then the first by id. A group without any trouble comes after all that have one. Unknown lag is less than any.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from assignors.fairness.invariants import Rule
from streaming.evaluation.assignment.drift import DRIFT
from streaming.evaluation.assignment.rule_words import in_a_sentence, short_word
from streaming.evaluation.facts import GroupFacts
from streaming.evaluation.lag.status import Status
from streaming.evaluation.rebalances.detectors import ROLLING_RESTART, UNOWNED_PARTITIONS
from streaming.group.snapshot import UNKNOWN

SOON_LOST_SECONDS = 3600
BEHIND_SECONDS = 30
_STANDING = {
    Status.REWIND.name: "REWIND: its offsets were set back",
    Status.STALL.name: "STALL: it commits and does not get on",
    Status.STOP.name: "STOP: it commits no more",
}
_NO_TROUBLE = 10


@dataclass(frozen=True, slots=True)
class Trouble:
    """One rule that applies to a group, in words. `word` is short and one of few; `since_ms` where that is known."""

    rule: int
    word: str
    text: str
    since_ms: int | None = None


def troubles(group: GroupFacts) -> tuple[Trouble, ...]:
    """Everything that is wrong, the worst first."""
    return tuple(trouble for rule in _RULES for trouble in rule(group))


Place = tuple[int, int, float, int, str]
"""Where a group stands among all, the least first. Example: `(2, -1, -30.0, -500, "orders")`."""


def place(group: GroupFacts, found: tuple[Trouble, ...]) -> Place:
    """Where a group stands for what was found wrong with it."""
    seconds = -1.0 if group.lag.seconds is None else group.lag.seconds
    records = -1 if group.lag.records is None else group.lag.records
    return (found[0].rule if found else _NO_TROUBLE, -len(found), -seconds, -records, group.group_id)


def _conditions(group: GroupFacts) -> Iterator[Trouble]:
    for held in group.conditions:
        if held.name != ROLLING_RESTART:
            name = held.name.replace("_", " ")
            yield Trouble(1, name, f"{name}: {held.detail}" if held.detail else name, held.since_ms)


def _violations(group: GroupFacts) -> Iterator[Trouble]:
    twice, foreign = group.assignment.owned_twice_partitions, group.assignment.not_subscribed_partitions
    for rule, partitions, what in (
        (Rule.ASSIGNED_TWICE.value, twice, "with two owners, which both process the records"),
        (Rule.NOT_SUBSCRIBED.value, foreign, "with an owner that does not subscribe to it"),
    ):
        if partitions:
            yield Trouble(2, short_word(rule), f"{_counted(partitions, 'partition')} {what}")


def _drift(group: GroupFacts) -> Iterator[Trouble]:
    own = group.assignment.own
    if own is None or own.verdict != DRIFT or not own.drift_partitions:
        return
    are = "partition is" if own.drift_partitions == 1 else "partitions are"
    text = f"{own.drift_partitions} {are} not where {group.membership.protocol or 'its strategy'} puts them"
    common = {trouble.word for trouble in _violations(group)}
    words = [(short_word(rule), in_a_sentence(rule)) for rule in own.violations if short_word(rule) not in common]
    yield from (Trouble(2, f"drift: {word}", f"{sentence}: {text}") for word, sentence in words)
    if not words and not common:
        yield Trouble(2, "drift", text)


def _unowned(group: GroupFacts) -> Iterator[Trouble]:
    partitions, records = group.assignment.unowned_partitions, group.unowned_records
    if partitions and not any(held.name == UNOWNED_PARTITIONS for held in group.conditions):
        wait = "" if records is None else f", where {_counted(records, 'record')} wait"
        yield Trouble(3, "unowned", f"{_counted(partitions, 'partition')} without an owner{wait}")


def _loss(group: GroupFacts) -> Iterator[Trouble]:
    lost, seconds = group.lag.records_lost, group.lag.seconds_until_lost
    if lost:
        yield Trouble(4, "records lost", f"{_counted(lost, 'record')} lost to retention")
    elif seconds is not None and seconds < SOON_LOST_SECONDS:
        yield Trouble(4, "losing soon", f"retention takes unread records in {seconds:.0f} s")


def _standing(group: GroupFacts) -> Iterator[Trouble]:
    status = group.lag.status
    if status in _STANDING:
        yield Trouble(5, status, _STANDING[status])


def _idle(group: GroupFacts) -> Iterator[Trouble]:
    shares = group.fairness.partitions
    if shares is None or (shares.largest or 0) < 2:
        return
    idle = shares.idle if shares.avoidable_idle is None else shares.avoidable_idle
    if idle:
        yield Trouble(6, "idle", f"{_counted(idle, 'idle member')} while another has {shares.largest:.0f}")


def _excess(group: GroupFacts) -> Iterator[Trouble]:
    fairness, shares = group.fairness, group.fairness.partitions
    if shares is None or not shares.excess:
        return
    text = f"the busiest member has {_counted(int(shares.excess), 'partition')} more than necessary"
    if not fairness.skewed_topics:
        yield Trouble(7, "uneven", text)
        return
    remedy = f"; {fairness.remedy} would end that" if fairness.remedy else ""
    skew = f"the same members have the extra partition of {_counted(fairness.skewed_topics, 'topic')}"
    yield Trouble(7, "topic skew", f"{text}: {skew}{remedy}")


def _slow(group: GroupFacts) -> Iterator[Trouble]:
    lag = group.lag
    if lag.status == Status.WARN.name and (lag.seconds is None or lag.seconds >= BEHIND_SECONDS):
        yield Trouble(8, "WARN", "WARN: slower than its producers")


def _unknown(group: GroupFacts) -> Iterator[Trouble]:
    if group.membership.state == UNKNOWN:
        why = ", ".join(group.not_known).replace("_", " ")
        yield Trouble(9, "unknown", f"state unknown: {why}" if why else "state unknown")
    elif group.lag.unknown:
        yield Trouble(9, "lag unknown", f"lag unknown: {', '.join(group.lag.unknown).replace('_', ' ')}")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_RULES: tuple[Callable[[GroupFacts], Iterator[Trouble]], ...] = (
    _conditions,
    _violations,
    _drift,
    _unowned,
    _loss,
    _standing,
    _idle,
    _excess,
    _slow,
    _unknown,
)
