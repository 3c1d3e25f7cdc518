"""Describe the fairness of an assignment in a few words."""

from __future__ import annotations

from collections.abc import Iterator

from assignors import GroupAssignment, GroupSpec
from assignors.what_if.topic_skew import TopicSkew
from streaming.evaluation.fairness.fairness import among_members, named_skew
from streaming.evaluation.fairness.imbalance import PARTITIONS, Imbalance, divide_work
from streaming.evaluation.fairness.participants import SharedWork

FAIR = "fair"


def fairness_problems(total: Imbalance, skewed_topics: int) -> Iterator[str]:
    """Describe in a few words each fairness problem that a different valid assignment avoids.

    >>> total = Imbalance(measure="partitions", scope="member", score=50, excess=2)
    >>> for line in fairness_problems(total, skewed_topics=4):
    ...     print(line)
    the busiest member has 2 partitions too many
    topic skew: some members have one extra partition in each of 4 topics
    """
    if total.excess:
        noun = "partition" if total.excess == 1 else "partitions"
        yield f"the busiest member has {total.excess:.0f} {noun} too many"
    avoidable = (total.idle or 0) - (total.idle_in_any_assignment or 0)
    if avoidable > 0 and total.score is not None:
        yield f"{avoidable} {'member is' if avoidable == 1 else 'members are'} idle without need"
    if skewed_topics:
        yield f"topic skew: some members have one extra partition in each of {skewed_topics} topics"


def evaluate_fairness(spec: GroupSpec, assignment: GroupAssignment) -> tuple[Imbalance | None, TopicSkew | None]:
    """Return the imbalance of the members' partitions, and the topic skew (None if there is no topic skew).

    For a group without members, both values are None.
    """
    shared = SharedWork(spec, assignment, {})
    imbalances = divide_work(shared).imbalance()
    return among_members(imbalances, PARTITIONS), named_skew(shared, imbalances) if imbalances else None


def fairness_summary(total: Imbalance | None, skew: TopicSkew | None) -> str | None:
    """Describe the fairness in a few words for a table cell. Return None if the fairness is unknown."""
    if total is None or total.score is None:
        return None
    problems = list(fairness_problems(total, skew.topics if skew else 0))
    return "; ".join(problems) or (FAIR if total.score == 100 else "uneven")
