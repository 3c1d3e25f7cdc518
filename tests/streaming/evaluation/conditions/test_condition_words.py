"""Tests that the sentence of each condition is understandable without a manual."""

from __future__ import annotations

import pytest

from streaming.evaluation.conditions.condition_words import describe_condition
from streaming.evaluation.rebalances import condition_detectors
from streaming.evaluation.rebalances.rebalance_history import KEPT_REBALANCES
from streaming.evaluation.rebalances.rebalance_summary import RebalanceSummary
from tests.streaming.evaluation.rebalances.test_condition_detectors import (
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
        (
            condition_detectors.REBALANCE_STORM,
            every_minute(6),
            "6 rebalances in 10 minutes; __consumer_offsets shows no cause for 6 of them",
        ),
        (
            condition_detectors.REBALANCE_STORM,
            [rebalance(3, gone="a-1"), rebalance(2, gone="b-1", skipped_generations=7), rebalance(1)],
            "10 rebalances in 10 minutes; most common cause: member gone (2 times)",
        ),
        (
            condition_detectors.REBALANCE_STORM,
            # Two starts, each with three members that join within 18 s. This was "member joined (6 times)" of 2.
            [
                change
                for minute in (8, 4)
                for change in (
                    rebalance(minute, gone="a-1", kind="became_empty", members=0),
                    *(rebalance(minute - n / 10, joined=f"m-{n}") for n in (1, 2, 3)),
                )
            ],
            "2 rebalances in 10 minutes; most common cause: member joined (2 times)",
        ),
        (
            condition_detectors.REBALANCE_STORM,
            [rebalance(3), *(rebalance(2, causes=(), skipped_generations=1) for _ in range(3))][1:],
            "5 rebalances in 10 minutes",
        ),
        (
            condition_detectors.REBALANCE_STORM,
            # A state keeps 64 rebalances. The table had 108 rows for this window, but the text counted 64 as a fact.
            [rebalance(minute / 10, gone="a-1") for minute in range(KEPT_REBALANCES, 0, -1)],
            "at least 64 rebalances in 10 minutes; most common cause: member gone (at least 64 times)",
        ),
        (
            condition_detectors.FLAPPING_MEMBER,
            [rejoin(minute / 10, "i1") for minute in range(KEPT_REBALANCES, 0, -1)],
            "member i1 left or rejoined 64 times in the last 64 rebalances",
        ),
        (
            condition_detectors.REBALANCE_STORM,
            [rebalance(60), *(rebalance(minute / 10, gone="a-1") for minute in range(KEPT_REBALANCES - 1, 0, -1))],
            "63 rebalances in 10 minutes; most common cause: member gone (63 times)",
        ),
        (
            condition_detectors.ROLLING_RESTART,
            replaced("a-1", "b-1", "c-1"),
            "3 members were replaced in several steps in 10 minutes",
        ),
        (condition_detectors.FLAPPING_MEMBER, restarts(4), "member pod left or rejoined 4 times in 10 minutes"),
        (
            condition_detectors.FLAPPING_MEMBER,
            [rejoin(m, "i1") for m in (3, 2, 1)],
            "member i1 left or rejoined 3 times in 10 minutes",
        ),
        (
            condition_detectors.FLAPPING_MEMBER,
            [rejoin(m - n / 10, f"pod-{n}") for m in (5, 4, 3) for n in range(5)],
            "members pod-0, pod-1, pod-2 and 2 more left or rejoined up to 3 times in 10 minutes",
        ),
        (
            condition_detectors.ENDLESS_COOPERATIVE_REJOIN,
            every_minute(7, **COOPERATIVE),
            "7 cooperative rounds in a row, but no member and no subscription changed",
        ),
        (
            condition_detectors.EAGER_AND_COOPERATIVE_MIXED,
            [rebalance(60, eager_claimers=1)],
            "1 member wants to keep partitions, but range is an eager strategy",
        ),
        (
            condition_detectors.EAGER_AND_COOPERATIVE_MIXED,
            [rebalance(3, causes=CHANGED), rebalance(2, causes=CHANGED)],
            "the strategy changed 2 times in 10 minutes",
        ),
        (
            condition_detectors.DUPLICATE_CLAIMS,
            [rebalance(5, claimed_twice_partitions=1)],
            "two members claimed the same partition",
        ),
        (
            condition_detectors.SUBSCRIPTION_MISMATCH,
            [rebalance(60, subscriptions=2), rebalance(4, subscriptions=3)],
            "members have subscribed to 3 different sets of topics for 1 hour",
        ),
    ],
)
def test_words(condition: str, recent: list[RebalanceSummary], words: str) -> None:
    """Each sentence names the member or cause, and the count or duration."""
    assert describe_condition(condition, recent, NOW_MS, LIMITS) == words
