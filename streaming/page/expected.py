"""The actual assignment against the expected one, in words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from streaming.evaluation.assignment import drift as verdicts
from streaming.evaluation.assignment.drift import StrategyDrift
from streaming.group.printable import in_ranges

_WORDS = {
    verdicts.MATCH: "every partition is where {strategy} puts it",
    verdicts.EQUIVALENT: "not what our replay of {strategy} gives, but as even",
    verdicts.WITHHELD: "first round of a cooperative rebalance: partitions that change hands are given to nobody yet",
    verdicts.DIFFERS_FROM_JAVA: "lawful, but not what Java's {strategy} gives",
    verdicts.UNKNOWN: "unknown",
    verdicts.REBALANCING: "the coordinator is still making the assignment",
    verdicts.NOT_EVALUATED: "not evaluated",
    verdicts.SAME: "{strategy} would give the same",
    verdicts.DIFFERS: "{strategy} would place {partitions} elsewhere",
}


def verdict_in_words(drift: StrategyDrift) -> str:
    """One strategy's verdict in a sentence.

    >>> verdict_in_words(StrategyDrift("range", True, "drift", "", 2, (), ("replay_differs",)))
    '2 partitions are not where range puts them: replay differs'
    >>> verdict_in_words(StrategyDrift("sticky", False, "unknown", "metadata_missing"))
    'unknown: metadata missing'
    """
    count = drift.drift_partitions
    partitions = "an unknown number of partitions" if count is None else f"{count} partition{'' if count == 1 else 's'}"
    if drift.verdict == verdicts.DRIFT:
        are = "is" if count == 1 else "are"
        text = f"{partitions} {are} not where {drift.strategy} puts {'it' if count == 1 else 'them'}"
        why = ", ".join(drift.violations)
    else:
        text = _WORDS.get(drift.verdict, drift.verdict).format(strategy=drift.strategy, partitions=partitions)
        why = drift.reason
    return f"{text}: {why.replace('_', ' ')}" if why else text


@dataclass(frozen=True, slots=True)
class Misplaced:
    """Partitions of one topic, in ranges, that are with the same members and should be with the same other."""

    topic: str
    numbers: str
    actual: tuple[str, ...]
    expected: str | None


def misplaced_in_short(drift: StrategyDrift, names: Mapping[str, str]) -> tuple[Misplaced, ...]:
    """What is elsewhere, by topic, members by their `names` where they have one.

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
