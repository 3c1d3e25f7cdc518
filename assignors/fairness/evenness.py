"""How evenly work is shared: one set of measures, whatever the work (partitions, lag, throughput) and whoever has it.

``loads`` are the amounts of work, one for each member (or host), in any unit. The measures:

1. ``largest``, ``smallest``, ``total``: in the unit of the loads. The mean is ``total`` by ``shares``.
2. ``max_to_mean_ratio``: 1 is even, n is everything on one of n. For display: it cannot tell a gap that no assignment
   closes (7 partitions over 5 members: 1.43) from one that some does.
3. ``coefficient_of_variation``: standard deviation (of these loads, not of a sample) by mean. 0 is even.
4. ``gini``: the mean difference between two loads by twice the mean (Gini 1912). 0 is even, (n - 1) / n all on one.
5. ``surplus``: what the busiest have too much, against the fairest loads that can be reached. For every k the k
   busiest are compared with the k busiest there; the widest gap counts. 0 exactly if no measure of inequality is better
   there (majorisation; Marshall, Olkin and Arnold, *Inequalities*, 2011). In partitions it is the fewest that would
   have to change hands for the group to be that fair, if all members subscribe to the same.
6. ``score`` = 100 x (1 - surplus / (total - largest of the fairest)): 100 is as fair as can be reached, 0 everything on
   one who need not have it. 100 too where nothing is to be shared.

Where the total is 0 the ratios 2, 3 and 4 have no value: None, neither 0 nor infinite.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from math import fsum, isfinite, sqrt
from operator import mul, sub
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

ROUNDING = 1e-9
"""A surplus of less than that part of the total is the sum of fractions that have no exact form, not unfairness."""


@dataclass(frozen=True, slots=True)
class Evenness:
    """The measures that the loads alone tell (1 to 4 above). ``idle`` counts who has nothing."""

    shares: int
    total: float
    largest: float
    smallest: float
    idle: int
    max_to_mean_ratio: float | None
    coefficient_of_variation: float | None
    gini: float | None


def evenness(loads: Sequence[float]) -> Evenness:
    """Measure loads: at least one, each finite and not negative (ValueError).

    >>> evenness([3, 1, 1, 1, 1]).max_to_mean_ratio, round(evenness([3, 1, 1, 1, 1]).gini, 3)
    (2.142857142857143, 0.229)
    >>> evenness([0, 0]).gini is None
    True
    """
    total = sum(loads)
    if not loads or min(loads) < 0 or not isfinite(total):
        raise ValueError("loads are one or more finite amounts, none negative")
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
    """Measure what the busiest of ``loads`` have beyond the busiest of ``fairest``, in their unit; never negative.

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
    """Score loads from 0 (everything on one) to 100 (as fair as ``fairest``, or fairer).

    Both must share out the same: ValueError if their totals differ.

    >>> score([2, 1, 2, 1, 1], fairest=[1, 1, 1, 2, 2]), score([3, 1, 1, 1, 1], fairest=[1, 1, 1, 2, 2])
    (100.0, 80.0)
    >>> score([7, 0, 0, 0, 0], fairest=[1, 1, 1, 2, 2]), score([5], fairest=[5])
    (0.0, 100.0)
    """
    total = sum(loads)
    if abs(total - sum(fairest)) > ROUNDING * total:
        raise ValueError(f"{total} cannot be compared with {sum(fairest)}: something is shared out in one of them only")
    too_much, room = surplus(loads, fairest), total - max(fairest)
    return 100 * max(0, room - too_much) / room if too_much else 100.0


def _busiest_first(loads: Sequence[float]) -> list[float]:
    return sorted(loads, reverse=True)


def _coefficient_of_variation(loads: Sequence[float], total: float) -> float:
    """In shares of the mean throughout: a mean of the smallest loads there are would be rounded to 0."""
    apart = [load / total * len(loads) - 1 for load in loads]
    return sqrt(fsum(map(mul, apart, apart)) / len(loads))


def _gini(loads: Sequence[float], total: float) -> float:
    """Sum up the differences between all pairs from the sorted list: each load counts by how many are below it."""
    ranks = range(1 - len(loads), len(loads), 2)
    differences: float = sum(map(mul, ranks, sorted(loads)))
    return differences / (len(loads) * total)
