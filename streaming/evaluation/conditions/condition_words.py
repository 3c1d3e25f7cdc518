"""Describe an active condition to a user on one line: the members, the counts and the duration.

The text contains member names exactly as the members sent them. Every caller must escape the text before printing.

A group state keeps only the last KEPT_REBALANCES rebalances. If all of them are in the window, older rebalances can be
in the window, too. Then the counts can be too low, so the text contains `at least` or `in the last N rebalances`
(`_is_cut`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile

from streaming.evaluation.phrases import counted, in_words, members_named
from streaming.evaluation.rebalances import condition_detectors
from streaming.evaluation.rebalances.condition_detectors import (
    Limits,
    counted_rebalances,
    flapping_members,
    latest_generation,
    window_of,
)
from streaming.evaluation.rebalances.rebalance_history import KEPT_REBALANCES
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from streaming.evaluation.rebalances.rebalances import STRATEGY_CHANGED, UNEXPLAINED


def describe_condition(condition: str, recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    """Describe an active condition that `condition_detectors.conditions` has found.

    >>> of = [RebalanceSummary(60_000 * minute, minute, "rebalance", (), "range", 3) for minute in range(5)]
    >>> describe_condition(condition_detectors.REBALANCE_STORM, of, 300_000, Limits())
    '5 rebalances in 10 minutes'
    """
    return _WORDS[condition](recent, now_ms, limits)


def _storm(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    rebalances, skipped = counted_rebalances(recent, now_ms, limits)
    causes = Counter(rebalance.causes[0] for rebalance in rebalances if rebalance.causes)
    at_least = "at least " if _is_cut(recent, now_ms, limits) else ""
    text = f"{at_least}{counted(len(rebalances) + skipped, 'rebalance')} in {_window(limits)}"
    if not causes:
        return text
    cause, times = causes.most_common(1)[0]
    if cause == UNEXPLAINED:
        return f"{text}; __consumer_offsets shows no cause for {at_least}{times} of them"
    return f"{text}; most common cause: {cause.replace('_', ' ')} ({at_least}{counted(times, 'time')})"


def _rolling(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    replaced = condition_detectors.replaced_members(recent, now_ms, limits)
    return f"{counted(replaced, 'member')} were replaced in several steps {_within(recent, now_ms, limits)}"


def _flapping(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    flaps = flapping_members(window_of(recent, now_ms, limits), limits.flap_threshold)
    most = f"{'' if len(flaps) == 1 else 'up to '}{max(flaps.values())} times"
    return f"{members_named(flaps)} left or rejoined {most} {_within(recent, now_ms, limits)}"


def _endless(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    rounds = condition_detectors.idle_cooperative_rounds(window_of(recent, now_ms, limits))
    return f"{rounds} cooperative rounds in a row, but no member and no subscription changed"


def _mixed(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    latest = latest_generation(recent)
    if latest.eager_claimers:
        keep = "wants" if latest.eager_claimers == 1 else "want"
        strategy = latest.protocol or "unknown"
        members = counted(latest.eager_claimers, "member")
        return f"{members} {keep} to keep partitions, but {strategy} is an eager strategy"
    changes = sum(STRATEGY_CHANGED in (rebalance.causes or ()) for rebalance in window_of(recent, now_ms, limits))
    return f"the strategy changed {changes} times {_within(recent, now_ms, limits)}"


def _duplicate_claims(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    most = max(rebalance.claimed_twice_partitions for rebalance in window_of(recent, now_ms, limits))
    return f"two members claimed the same {'partition' if most == 1 else f'{most} partitions'}"


def _mismatch(recent: Sequence[RebalanceSummary], now_ms: int, _limits: Limits) -> str:
    different = list(takewhile(lambda rebalance: rebalance.subscriptions > 1, reversed(recent)))
    lasts_ms = now_ms - different[-1].timestamp_ms
    return f"members have subscribed to {recent[-1].subscriptions} different sets of topics for {in_words(lasts_ms)}"


def _within(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> str:
    if _is_cut(recent, now_ms, limits):
        return f"in the last {KEPT_REBALANCES} rebalances"
    return f"in {_window(limits)}"


def _window(limits: Limits) -> str:
    return in_words(1000 * limits.window_seconds)


def _is_cut(recent: Sequence[RebalanceSummary], now_ms: int, limits: Limits) -> bool:
    """Return True if the window can contain rebalances that the group state no longer has."""
    return len(recent) >= KEPT_REBALANCES == len(window_of(recent, now_ms, limits))


_WORDS: Mapping[str, Callable[[Sequence[RebalanceSummary], int, Limits], str]] = {
    condition_detectors.ROLLING_RESTART: _rolling,
    condition_detectors.REBALANCE_STORM: _storm,
    condition_detectors.FLAPPING_MEMBER: _flapping,
    condition_detectors.ENDLESS_COOPERATIVE_REJOIN: _endless,
    condition_detectors.EAGER_AND_COOPERATIVE_MIXED: _mixed,
    condition_detectors.DUPLICATE_CLAIMS: _duplicate_claims,
    condition_detectors.SUBSCRIPTION_MISMATCH: _mismatch,
}
