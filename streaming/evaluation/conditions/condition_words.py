"""What a person is told of a condition that holds: who, how often, for how long. English, on one line.

Names are as the group's members gave them: whoever prints them makes them safe first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from streaming.evaluation.phrases import counted, in_words, members_named
from streaming.evaluation.rebalances import detectors
from streaming.evaluation.rebalances.detectors import Limits, counted_rebalances, flaps_of, latest_generation, window_of
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.evaluation.rebalances.rebalances import STRATEGY_CHANGED


def words_for(condition: str, recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    """Words for a condition of `detectors.conditions` that holds now.

    >>> of = [RebalanceSummary(60_000 * minute, minute, "rebalance", (), "range", 3) for minute in range(5)]
    >>> words_for(detectors.REBALANCE_STORM, of, 300_000, Limits())
    '5 rebalances in 10 minutes'
    """
    return _WORDS[condition](recent, now_ms, limits)


def _storm(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    causes = Counter(one.causes[0] for one in window_of(recent, now_ms, limits) if one.causes)
    text = f"{counted(counted_rebalances(recent, now_ms, limits), 'rebalance')} {_within(limits)}"
    if not causes:
        return text
    cause, times = causes.most_common(1)[0]
    return f"{text}, {times} of them: {cause.replace('_', ' ')}"


def _rolling(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    window = window_of(recent, now_ms, limits)
    replaced = sum(len(one.gone) + len(one.rejoined) for one in window)
    return f"{counted(replaced, 'member')} replaced one after the other {_within(limits)}"


def _flapping(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    times = {
        name: ended
        for name, ended in flaps_of(window_of(recent, now_ms, limits)).items()
        if ended >= limits.flap_threshold
    }
    verbs = ("joins", "goes") if len(times) == 1 else ("join", "go")
    most = f"{'' if len(times) == 1 else 'up to '}{max(times.values())} times"
    return f"{members_named(times)} {verbs[0]} and {verbs[1]} again: {most} {_within(limits)}"


def _endless(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    rounds = detectors.idle_cooperative_rounds(window_of(recent, now_ms, limits))
    return f"{rounds} cooperative rounds in a row in which nobody came, went or changed anything"


def _mixed(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    latest = latest_generation(recent)
    if latest.eager_claimers:
        claim = "claims" if latest.eager_claimers == 1 else "claim"
        strategy = latest.protocol or "unknown"
        return f"{counted(latest.eager_claimers, 'member')} {claim} to keep partitions under the eager {strategy}"
    changes = sum(STRATEGY_CHANGED in (one.causes or ()) for one in window_of(recent, now_ms, limits))
    return f"the strategy changed {changes} times {_within(limits)}"


def _claimed_twice(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    most = max(one.claimed_twice_partitions for one in window_of(recent, now_ms, limits))
    return f"two members claimed to own the same {'partition' if most == 1 else f'{most} partitions'}"


def _mismatch(recent: Sequence[RebalanceSummary], now_ms: int, _limits: Limits) -> str:
    different = list(takewhile(lambda one: one.subscriptions > 1, reversed(recent)))
    lasts_ms = now_ms - different[-1].timestamp_ms
    return f"members subscribe to {recent[-1].subscriptions} different sets of topics for {in_words(lasts_ms)}"


def _within(limits: Limits) -> str:
    return f"in {in_words(1000 * limits.window_seconds)}"


_WORDS: Mapping[str, Callable[[Sequence[RebalanceSummary], int, Limits], str]] = {
    detectors.ROLLING_RESTART: _rolling,
    detectors.REBALANCE_STORM: _storm,
    detectors.FLAPPING_MEMBER: _flapping,
    detectors.ENDLESS_COOPERATIVE_REJOIN: _endless,
    detectors.EAGER_AND_COOPERATIVE_MIXED: _mixed,
    detectors.DUPLICATE_CLAIMS: _claimed_twice,
    detectors.SUBSCRIPTION_MISMATCH: _mismatch,
}
