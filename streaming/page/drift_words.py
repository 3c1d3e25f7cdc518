"""Describes in words how the actual assignment differs from the expected assignment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from streaming.evaluation.assignment import drift as verdicts
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.evaluation.assignment.rule_words import in_a_sentence
from streaming.group.printable import in_ranges

_WORDS = {
    verdicts.MATCH: "every partition has the owner that {strategy} assigns",
    verdicts.EQUIVALENT: "{strategy} allows several assignments, and the actual assignment follows all its rules",
    verdicts.WITHHELD: "first round of a cooperative rebalance: partitions that get a new owner have no owner yet",
    verdicts.DIFFERS_FROM_JAVA: "the assignment breaks no rule, but Java's {strategy} computes a different assignment",
    verdicts.UNKNOWN: "unknown",
    verdicts.REBALANCING: "the coordinator is still computing the assignment",
    verdicts.NOT_EVALUATED: "not evaluated",
    verdicts.SAME: "{strategy} would compute the same assignment",
    verdicts.DIFFERS: "{strategy} would assign {partitions} to a different member",
}


def verdict_in_words(drift: StrategyDrift) -> str:
    """Describe the verdict for one strategy in a sentence.

    >>> verdict_in_words(StrategyDrift("range", True, "drift", "", 2, (), ("unassigned",)))
    '2 partitions have the wrong owner by the rules of range: a partition of a subscribed topic has no owner'
    >>> verdict_in_words(StrategyDrift("sticky", False, "unknown", "metadata_missing"))
    'unknown: metadata missing'
    """
    count = drift.drift_partitions
    partitions = "an unknown number of partitions" if count is None else f"{count} partition{'' if count == 1 else 's'}"
    if drift.verdict == verdicts.DRIFT:
        text = f"{partitions} {'has' if count == 1 else 'have'} the wrong owner by the rules of {drift.strategy}"
        reason = "; ".join(in_a_sentence(rule) for rule in drift.violations)
    else:
        text = _WORDS.get(drift.verdict, drift.verdict).format(strategy=drift.strategy, partitions=partitions)
        reason = drift.reason
    return f"{text}: {reason.replace('_', ' ')}" if reason else text


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Partitions of one topic (`numbers`, as ranges) with the same wrong owners and the same expected owner."""

    topic: str
    numbers: str
    actual: tuple[str, ...]
    expected: str | None


def misplaced_in_short(drift: StrategyDrift, names: Mapping[str, str]) -> tuple[Misplaced, ...]:
    """Combine the misplaced partitions with the same topic and owners. `names` maps member ids to names, if known.

    >>> from streaming.evaluation.assignment.drift import MisplacedPartition
    >>> both = tuple(MisplacedPartition("t", number, ("a",), "b") for number in (0, 1))
    >>> misplaced_in_short(StrategyDrift("range", True, "drift", misplaced=both), {"a": "pod-0"})
    (Misplaced(topic='t', numbers='0-1', actual=('pod-0',), expected='b'),)
    """
    numbers: dict[tuple[str, tuple[str, ...], str | None], list[int]] = defaultdict(list)
    for one in drift.misplaced:
        numbers[one.topic, one.actual_members, one.expected_member].append(one.partition)
    return tuple(
        Misplaced(
            topic,
            in_ranges(sorted(of_topic)),
            tuple(names.get(member, member) for member in actual),
            None if expected is None else names.get(expected, expected),
        )
        for (topic, actual, expected), of_topic in numbers.items()
    )
