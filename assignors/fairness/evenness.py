"""Measures that show how evenly work is shared. Work can be partitions, lag or throughput.

``loads`` contains one amount of work per member (or host), in any unit. The measures are:

1. ``largest``, ``smallest`` and ``total`` have the unit of the loads. The mean is ``total`` divided by ``shares``, the
   number of loads.
2. ``max_to_mean_ratio`` is the largest load divided by the mean. The ratio is 1 if all loads are equal, and n if one of
   n members has all work. ``max_to_mean_ratio`` is only for display, because it does not show whether a better
   assignment exists. For example, with 7 partitions and 5 members, the ratio is always 1.43 or more.
3. ``coefficient_of_variation`` is the population standard deviation divided by the mean. The coefficient is 0 if all
   loads are equal.
4. ``gini`` is the mean difference between two loads, divided by twice the mean load (Gini 1912). ``gini`` is 0 for
   equal loads, and (n - 1) / n if one of n members has all work.
5. ``surplus`` compares the loads with the fairest possible loads. Sort the list of loads and the list of fairest loads,
   the largest load first. For every k, subtract the sum of the first k fairest loads from the sum of the first k loads.
   The largest difference is the surplus. The surplus is 0 if the loads are at least as even as the fairest loads
   (majorisation; Marshall, Olkin and Arnold, *Inequalities*, 2011). If the loads are partition counts and all
   subscriptions are equal, the surplus is the minimum number of moves to the fairest assignment.
6. ``score`` = 100 x (1 - surplus / (total - largest fairest load)). The score is 100 if no assignment is fairer, or if
   there is no work. The score is 0 if one member has all work and a fairer assignment exists.

If the total is 0, ``max_to_mean_ratio``, ``coefficient_of_variation`` and ``gini`` are None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import fsum, isfinite, sqrt
from operator import mul, sub

ROUNDING = 1e-9
"""A surplus below this fraction of the total is a rounding error and counts as 0."""


@dataclass(frozen=True, slots=True)
class Evenness:
    """The measures 1 to 4 of this module, which need only the loads. ``idle`` is the number of loads that are 0."""

    shares: int
    total: float
    largest: float
    smallest: float
    idle: int
    max_to_mean_ratio: float | None
    coefficient_of_variation: float | None
    gini: float | None


def evenness(loads: Sequence[float]) -> Evenness:
    """Compute the measures 1 to 4.

    Raises ValueError if ``loads`` is empty, or if a load is negative or not finite.

    >>> evenness([3, 1, 1, 1, 1]).max_to_mean_ratio, round(evenness([3, 1, 1, 1, 1]).gini, 3)
    (2.142857142857143, 0.229)
    >>> evenness([0, 0]).gini is None
    True
    """
    total = sum(loads)
    if not loads or min(loads) < 0 or not isfinite(total):
        raise ValueError("loads must be one or more finite numbers that are not negative")
    largest = max(loads)
    return Evenness(
        shares=len(loads),
        total=total,
        largest=largest,
        smallest=min(loads),
        idle=loads.count(0),
        max_to_mean_ratio=largest * len(loads) / total if total else None,
        coefficient_of_variation=_coefficient_of_variation(loads, total) if total else None,
        gini=_gini(loads, total) if total else None,
    )


def surplus(loads: Sequence[float], fairest: Sequence[float]) -> float:
    """Return the surplus of ``loads`` over ``fairest`` (measure 5), in the unit of the loads. Never negative.

    >>> surplus([3, 1, 1, 1, 1], fairest=[2, 2, 1, 1, 1]), surplus([7, 0, 0, 0, 0], fairest=[2, 2, 1, 1, 1])
    (1, 5)
    >>> surplus([2, 2, 2, 1, 0], fairest=[2, 2, 1, 1, 1])
    1
    """
    if len(loads) != len(fairest):
        raise ValueError(f"{len(loads)} loads cannot be compared with {len(fairest)}")
    gaps = map(sub, _busiest_first(loads), _busiest_first(fairest))
    widest = max(accumulate(gaps), default=0)
    return widest if widest > ROUNDING * sum(loads) else 0


def score(loads: Sequence[float], fairest: Sequence[float]) -> float:
    """Return the score of ``loads`` (measure 6), from 0 (one member has everything) to 100 (as fair as ``fairest``).

    Raises ValueError if the totals of ``loads`` and ``fairest`` differ.

    >>> score([2, 1, 2, 1, 1], fairest=[1, 1, 1, 2, 2]), score([3, 1, 1, 1, 1], fairest=[1, 1, 1, 2, 2])
    (100.0, 80.0)
    >>> score([7, 0, 0, 0, 0], fairest=[1, 1, 1, 2, 2]), score([5], fairest=[5])
    (0.0, 100.0)
    """
    total = sum(loads)
    if abs(total - sum(fairest)) > ROUNDING * total:
        raise ValueError(f"the totals of the loads differ: {total} and {sum(fairest)}")
    excess, room = surplus(loads, fairest), total - max(fairest)
    return 100 * max(0, room - excess) / room if excess else 100.0


def _busiest_first(loads: Sequence[float]) -> list[float]:
    return sorted(loads, reverse=True)


def _coefficient_of_variation(loads: Sequence[float], total: float) -> float:
    """Compute measure 3. First divide every load by the total, because the mean of tiny loads can be rounded to 0."""
    deviations = [load / total * len(loads) - 1 for load in loads]
    return sqrt(fsum(map(mul, deviations, deviations)) / len(loads))


def _gini(loads: Sequence[float], total: float) -> float:
    """Compute measure 4.

    In the sum of all differences, each load has a factor. The factor depends only on the load's position in the
    sorted list.
    """
    ranks = range(1 - len(loads), len(loads), 2)
    differences: float = sum(map(mul, ranks, sorted(loads)))
    return differences / (len(loads) * total)
