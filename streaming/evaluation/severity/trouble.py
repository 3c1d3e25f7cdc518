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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from assignors.fairness.invariants import Law
from streaming.evaluation.assignment.drift import DRIFT
from streaming.evaluation.assignment.law_words import in_a_sentence, short_word
from streaming.evaluation.lag.status import Status
from streaming.evaluation.rebalances.detectors import ROLLING_RESTART, UNOWNED_PARTITIONS
from streaming.evaluation.severity.summary import GroupSummary
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


def troubles(group: GroupSummary) -> tuple[Trouble, ...]:
    """Everything that is wrong, the worst first.

    >>> troubles(GroupSummary("g", "classic", "Stable", drift_partitions=2, verdict="drift", protocol="range", lag=0))
    (Trouble(rule=2, word='drift', text='2 partitions are not where range puts them', since_ms=None),)
    """
    return tuple(trouble for rule in _RULES for trouble in rule(group))


Place = tuple[int, int, float, int, str]
"""Where a group stands among all, the least first. Example: `(2, -1, -30.0, -500, "orders")`."""


def by_trouble(groups: Iterable[GroupSummary]) -> list[tuple[GroupSummary, tuple[Trouble, ...]]]:
    """Groups with their troubles, the one to look at first first."""
    found = [(group, troubles(group)) for group in groups]
    return sorted(found, key=lambda pair: place(*pair))


def place(group: GroupSummary, found: tuple[Trouble, ...]) -> Place:
    """Where a group stands for what was found wrong with it."""
    seconds = -1.0 if group.lag_seconds is None else group.lag_seconds
    records = -1 if group.lag is None else group.lag
    return (found[0].rule if found else _NO_TROUBLE, -len(found), -seconds, -records, group.group_id)


def _conditions(group: GroupSummary) -> Iterator[Trouble]:
    for held in group.conditions:
        if held.condition != ROLLING_RESTART:
            name = held.condition.replace("_", " ")
            yield Trouble(1, name, f"{name}: {held.detail}" if held.detail else name, held.since_ms)


def _laws(group: GroupSummary) -> Iterator[Trouble]:
    for law, partitions, what in (
        (Law.ASSIGNED_TWICE.value, group.owned_twice_partitions, "with two owners, which both process the records"),
        (Law.NOT_SUBSCRIBED.value, group.not_subscribed_partitions, "with an owner that does not subscribe to it"),
    ):
        if partitions:
            yield Trouble(2, short_word(law), f"{_counted(partitions, 'partition')} {what}")


def _drift(group: GroupSummary) -> Iterator[Trouble]:
    if group.verdict != DRIFT or not group.drift_partitions:
        return
    are = "partition is" if group.drift_partitions == 1 else "partitions are"
    text = f"{group.drift_partitions} {are} not where {group.protocol or 'its strategy'} puts them"
    common = {trouble.word for trouble in _laws(group)}
    words = [(short_word(law), in_a_sentence(law)) for law in group.laws if short_word(law) not in common]
    yield from (Trouble(2, f"drift: {word}", f"{sentence}: {text}") for word, sentence in words)
    if not words and not common:
        yield Trouble(2, "drift", text)


def _unowned(group: GroupSummary) -> Iterator[Trouble]:
    if group.unowned_partitions and not any(held.condition == UNOWNED_PARTITIONS for held in group.conditions):
        wait = "" if group.unowned_records is None else f", where {_counted(group.unowned_records, 'record')} wait"
        yield Trouble(3, "unowned", f"{_counted(group.unowned_partitions, 'partition')} without an owner{wait}")


def _loss(group: GroupSummary) -> Iterator[Trouble]:
    if group.records_lost:
        yield Trouble(4, "records lost", f"{_counted(group.records_lost, 'record')} lost to retention")
    elif group.seconds_until_lost is not None and group.seconds_until_lost < SOON_LOST_SECONDS:
        yield Trouble(4, "losing soon", f"retention takes unread records in {group.seconds_until_lost:.0f} s")


def _standing(group: GroupSummary) -> Iterator[Trouble]:
    if group.status in _STANDING:
        yield Trouble(5, group.status, _STANDING[group.status])


def _idle(group: GroupSummary) -> Iterator[Trouble]:
    shares = group.shares
    if not shares.idle_members or (shares.max_partitions or 0) < 2:
        return
    idle = shares.idle_members - (shares.idle_in_any_assignment or 0)
    if idle > 0:
        yield Trouble(6, "idle", f"{_counted(idle, 'idle member')} while another has {shares.max_partitions}")


def _excess(group: GroupSummary) -> Iterator[Trouble]:
    shares = group.shares
    if not shares.excess_partitions:
        return
    text = f"the busiest member has {_counted(shares.excess_partitions, 'partition')} more than need be"
    if not shares.skewed_topics:
        yield Trouble(7, "uneven", text)
        return
    remedy = f"; {shares.remedy} would end that" if shares.remedy else ""
    skew = f"the same members have the one more of {_counted(shares.skewed_topics, 'topic')}"
    yield Trouble(7, "topic skew", f"{text}: {skew}{remedy}")


def _slow(group: GroupSummary) -> Iterator[Trouble]:
    if group.status == Status.WARN.name and (group.lag_seconds is None or group.lag_seconds >= BEHIND_SECONDS):
        yield Trouble(8, "WARN", "WARN: slower than its producers")


def _unknown(group: GroupSummary) -> Iterator[Trouble]:
    if group.state == UNKNOWN:
        why = ", ".join(group.not_known).replace("_", " ")
        yield Trouble(9, "unknown", f"state unknown: {why}" if why else "state unknown")
    elif group.lag_unknown:
        yield Trouble(9, "lag unknown", f"lag unknown: {', '.join(group.lag_unknown).replace('_', ' ')}")


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


_RULES: tuple[Callable[[GroupSummary], Iterator[Trouble]], ...] = (
    _conditions,
    _laws,
    _drift,
    _unowned,
    _loss,
    _standing,
    _idle,
    _excess,
    _slow,
    _unknown,
)
