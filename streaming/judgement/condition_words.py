"""What a person is told of a condition that holds: who, how often, for how long. English, on one line.

Names are as the group's members gave them: whoever prints them makes them safe first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile

from streaming.judgement import detectors
from streaming.judgement.brief import RebalanceInBrief
from streaming.judgement.detectors import Limits, counted_rebalances, flaps_of, latest_generation, window_of
from streaming.judgement.rebalances import STRATEGY_CHANGED

MOST_NAMED = 3


def told(condition: str, recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    """Words for a condition of `detectors.conditions` that holds now.

    >>> of = [RebalanceInBrief(60_000 * minute, minute, "rebalance", (), "range", 3) for minute in range(5)]
    >>> told(detectors.REBALANCE_STORM, of, 300_000, Limits())
    '5 rebalances in 10 minutes'
    """
    return _WORDS[condition](recent, now_ms, limits)


def in_words(milliseconds: float) -> str:
    """A span of time in the unit that fits.

    >>> in_words(45_000), in_words(60_000), in_words(5_400_000), in_words(7_200_000)
    ('45 seconds', '1 minute', '90 minutes', '2 hours')
    """
    seconds = max(0, round(milliseconds / 1000))
    for unit, of_unit in (("hour", 3600), ("minute", 60)):
        if seconds >= 2 * of_unit or seconds == of_unit:
            return counted(seconds // of_unit, unit)
    return counted(seconds, "second")


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "member"), counted(2, "member")
    ('1 member', '2 members')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def named(names: Iterable[str]) -> str:
    """The first few names, and how many more.

    >>> named(["d", "b", "a", "c", "e"])
    'a, b, c and 2 more'
    """
    in_order = sorted(names)
    more = len(in_order) - MOST_NAMED
    return ", ".join(in_order[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def members_named(names: Iterable[str]) -> str:
    """Members by name, with the noun before them."""
    known = list(names)
    return f"member{'' if len(known) == 1 else 's'} {named(known)}"


def _storm(recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    causes = Counter(one.causes[0] for one in window_of(recent, now_ms, limits) if one.causes)
    text = f"{counted(counted_rebalances(recent, now_ms, limits), 'rebalance')} {_within(limits)}"
    if not causes:
        return text
    cause, times = causes.most_common(1)[0]
    return f"{text}, {times} of them: {cause.replace('_', ' ')}"


def _rolling(recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    window = window_of(recent, now_ms, limits)
    replaced = sum(len(one.gone) + len(one.rejoined) for one in window)
    return f"{counted(replaced, 'member')} replaced one after the other {_within(limits)}"


def _flapping(recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    times = {
        name: ended for name, ended in flaps_of(window_of(recent, now_ms, limits)).items() if ended >= limits.flaps
    }
    verbs = ("joins", "goes") if len(times) == 1 else ("join", "go")
    most = f"{'' if len(times) == 1 else 'up to '}{max(times.values())} times"
    return f"{members_named(times)} {verbs[0]} and {verbs[1]} again: {most} {_within(limits)}"


def _endless(recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    rounds = detectors.idle_cooperative_rounds(window_of(recent, now_ms, limits))
    return f"{rounds} cooperative rounds in a row in which nobody came, went or changed anything"


def _mixed(recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    latest = latest_generation(recent)
    if latest.eager_claimers:
        claim = "claims" if latest.eager_claimers == 1 else "claim"
        strategy = latest.protocol or "unknown"
        return f"{counted(latest.eager_claimers, 'member')} {claim} to keep partitions under the eager {strategy}"
    changes = sum(STRATEGY_CHANGED in (one.causes or ()) for one in window_of(recent, now_ms, limits))
    return f"the strategy changed {changes} times {_within(limits)}"


def _claimed_twice(recent: Sequence[RebalanceInBrief], now_ms: int, limits: Limits) -> str:
    most = max(one.claimed_twice_partitions for one in window_of(recent, now_ms, limits))
    return f"two members claimed to own the same {'partition' if most == 1 else f'{most} partitions'}"


def _mismatch(recent: Sequence[RebalanceInBrief], now_ms: int, _limits: Limits) -> str:
    different = list(takewhile(lambda one: one.subscriptions > 1, reversed(recent)))
    lasts_ms = now_ms - different[-1].timestamp_ms
    return f"members subscribe to {recent[-1].subscriptions} different sets of topics for {in_words(lasts_ms)}"


def _within(limits: Limits) -> str:
    return f"in {in_words(1000 * limits.window_seconds)}"


_WORDS: Mapping[str, Callable[[Sequence[RebalanceInBrief], int, Limits], str]] = {
    detectors.ROLLING_RESTART: _rolling,
    detectors.REBALANCE_STORM: _storm,
    detectors.FLAPPING_MEMBER: _flapping,
    detectors.ENDLESS_COOPERATIVE_REJOIN: _endless,
    detectors.EAGER_AND_COOPERATIVE_MIXED: _mixed,
    detectors.DUPLICATE_CLAIMS: _claimed_twice,
    detectors.SUBSCRIPTION_MISMATCH: _mismatch,
}
