"""What a person on call reads of a condition needs no manual."""

from __future__ import annotations

import pytest

from streaming.evaluation.conditions.condition_words import describe_condition
from streaming.evaluation.rebalances import detectors
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from tests.streaming.evaluation.rebalances.test_detectors import (
    CHANGED,
    COOPERATIVE,
    LIMITS,
    NOW_MS,
    every_minute,
    rebalance,
    rejoin,
    replaced,
    restarts,
)


@pytest.mark.parametrize(
    ("condition", "recent", "words"),
    [
        (detectors.REBALANCE_STORM, every_minute(6), "6 rebalances in 10 minutes, 6 of them: unexplained"),
        (
            detectors.REBALANCE_STORM,
            [rebalance(3, gone="a-1"), rebalance(2, gone="b-1", skipped_generations=7), rebalance(1)],
            "10 rebalances in 10 minutes, 2 of them: member gone",
        ),
        (
            detectors.REBALANCE_STORM,
            [rebalance(3), *(rebalance(2, causes=(), skipped_generations=1) for _ in range(3))][1:],
            "5 rebalances in 10 minutes",
        ),
        (
            detectors.ROLLING_RESTART,
            replaced("a-1", "b-1", "c-1"),
            "3 members replaced one after the other in 10 minutes",
        ),
        (detectors.FLAPPING_MEMBER, restarts(4), "member pod joins and goes again: 4 times in 10 minutes"),
        (
            detectors.FLAPPING_MEMBER,
            [rejoin(m - n / 10, f"pod-{n}") for m in (5, 4, 3) for n in range(5)],
            "members pod-0, pod-1, pod-2 and 2 more join and go again: up to 3 times in 10 minutes",
        ),
        (
            detectors.ENDLESS_COOPERATIVE_REJOIN,
            every_minute(7, **COOPERATIVE),
            "7 cooperative rounds in a row in which nobody came, went or changed anything",
        ),
        (
            detectors.EAGER_AND_COOPERATIVE_MIXED,
            [rebalance(60, eager_claimers=1)],
            "1 member claims to keep partitions under the eager range",
        ),
        (
            detectors.EAGER_AND_COOPERATIVE_MIXED,
            [rebalance(3, causes=CHANGED), rebalance(2, causes=CHANGED)],
            "the strategy changed 2 times in 10 minutes",
        ),
        (
            detectors.DUPLICATE_CLAIMS,
            [rebalance(5, claimed_twice_partitions=1)],
            "two members claimed to own the same partition",
        ),
        (
            detectors.SUBSCRIPTION_MISMATCH,
            [rebalance(60, subscriptions=2), rebalance(4, subscriptions=3)],
            "members subscribe to 3 different sets of topics for 1 hour",
        ),
    ],
)
def test_words(condition: str, recent: list[RebalanceSummary], words: str) -> None:
    """Each says who or what, how often or how long."""
    assert describe_condition(condition, recent, NOW_MS, LIMITS) == words
