"""Tests of the expected partitions of members, which are shown only if they are known."""

from __future__ import annotations

import doctest

import pytest

import streaming.page.drift_words
from streaming.evaluation.assignment import drift as verdicts
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.assignment.member_shares import expected_partitions
from streaming.evaluation.evaluate import RecordedGroup, evaluate
from streaming.group.members import members
from streaming.page.drift_words import misplaced_in_short, verdict_in_words
from tests.streaming.page.scene import Member, generation, record_of

TOPICS = ("orders", "payments")


def test_expected_counts_are_those_of_the_strategy_itself() -> None:
    """One member has all 24 partitions. Range would assign eight to each of the three members."""
    everything = {"orders": range(12), "payments": range(12)}
    of = [Member("m-a", TOPICS, held=everything), Member("m-b", TOPICS, held={}), Member("m-c", TOPICS, held={})]
    record = record_of("g", [generation(1, 60, "range", of)])
    drift = evaluate(RecordedGroup("g", record)).assignment.own
    assert drift is not None
    assert drift.verdict == verdicts.DRIFT
    expected = expected_partitions(members(record.snapshot), drift)
    assert expected is not None
    assert sorted(expected.values()) == [8, 8, 8]
    assert (
        sum(
            len(range(int(a), int(b) + 1)) for a, b in (one.numbers.split("-") for one in misplaced_in_short(drift, {}))
        )
        == 16
    )


VERDICTS = (
    verdicts.MATCH,
    verdicts.DRIFT,
    verdicts.EQUIVALENT,
    verdicts.DIFFERS_FROM_JAVA,
    verdicts.WITHHELD,
    verdicts.UNKNOWN,
    verdicts.SAME,
    verdicts.DIFFERS,
    verdicts.NOT_EVALUATED,
)


@pytest.mark.parametrize("verdict", VERDICTS)
def test_every_verdict_has_its_own_sentence(verdict: str) -> None:
    text = verdict_in_words(StrategyDrift("sticky", True, verdict, "", 1))
    assert text not in VERDICTS or text == "unknown"
    assert not set(text) & set("_{}")


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.page.drift_words).failed == 0
