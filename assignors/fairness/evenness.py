"""Measures of how evenly work is shared, for any kind of work (partitions, lag, throughput).

``loads`` are the amounts of work, one per member (or host), in any unit. The measures:

1. ``largest``, ``smallest``, ``total``: in the unit of the loads. The mean is ``total`` divided by ``shares``.
2. ``max_to_mean_ratio``: 1 if all loads are equal, n if one of n members has everything. Only for display. It does not
   show if a better assignment exists. For example, 7 partitions over 5 members always give 1.43 or more.
3. ``coefficient_of_variation``: the standard deviation divided by the mean. It is the deviation of these loads, not of
   a sample. 0 if all loads are equal.
4. ``gini``: the mean difference between two loads divided by twice the mean (Gini 1912). 0 if all loads are equal,
   (n - 1) / n if one member has everything.
5. ``surplus``: the excess of the busiest members over the fairest possible loads. For every k, the sum of the k largest
   loads is compared with the sum of the k largest of the fairest loads. The largest difference is the surplus. It is 0
   exactly if the fairest loads are better by no measure of inequality (majorisation; Marshall, Olkin and Arnold,
   *Inequalities*, 2011). In partitions it is the minimum number of moves that make the group that fair, if all members
   have equal subscriptions.
6. ``score`` = 100 x (1 - surplus / (total - largest of the fairest)). 100 if no assignment is fairer. 0 if one member
   has everything but does not need to. Also 100 if there is nothing to share.

If the total is 0, the ratios 2, 3 and 4 have no value. They are None, not 0 and not infinite.
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
"""Surplus below this fraction of the total counts as 0, because it comes from rounding."""


@dataclass(frozen=True, slots=True)
class Evenness:
    """The measures 1 to 4 above, which need only the loads. ``idle`` is the number of loads that are 0."""

    shares: int
    total: float
    largest: float
    smallest: float
    idle: int
    max_to_mean_ratio: float | None
    coefficient_of_variation: float | None
    gini: float | None


def evenness(loads: Sequence[float]) -> Evenness:
    """Compute the measures of one or more loads. Raises ValueError if a load is negative or not finite.

    >>> evenness([3, 1, 1, 1, 1]).max_to_mean_ratio, round(evenness([3, 1, 1, 1, 1]).gini, 3)
    (2.142857142857143, 0.229)
    >>> evenness([0, 0]).gini is None
    True
    """
    total = sum(loads)
    if not loads or min(loads) < 0 or not isfinite(total):
        raise ValueError("loads must be one or more finite numbers, none of them negative")
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
    """Return the surplus of ``loads`` over ``fairest`` (measure 5), in their unit. It is never negative.

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
    """Divide every load by the mean first. The mean of very small loads would be rounded to 0."""
    deviations = [load / total * len(loads) - 1 for load in loads]
    return sqrt(fsum(map(mul, deviations, deviations)) / len(loads))


def _gini(loads: Sequence[float], total: float) -> float:
    """Compute the differences of all pairs from the sorted list: each load is weighted by its rank."""
    ranks = range(1 - len(loads), len(loads), 2)
    differences: float = sum(map(mul, ranks, sorted(loads)))
    return differences / (len(loads) * total)
