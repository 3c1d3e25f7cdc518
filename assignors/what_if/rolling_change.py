"""Computes the strategy of a classic group at each step of a rolling change of ``partition.assignment.strategy``.

1. A *rolling restart* restarts the members one after the other, in the order of ``offers``. A restarted member offers
   its new list of strategies. The other members still offer their old lists of strategies.
2. The coordinator chooses the strategy, as in ``select_protocol``. Without a common strategy, the coordinator rejects
   joining members, and their consumers fail (INCONSISTENT_GROUP_PROTOCOL).
3. Each member derives its rebalance protocol from its list of strategies (``ConsumerCoordinator``). A member is
   cooperative only if all strategies in its list are cooperative. So a change from eager to cooperative needs two
   rolling restarts (KIP-429). After the first restart, all members offer the old strategy and ``cooperative-sticky``,
   and are still eager. During the second restart, eager and cooperative members use ``cooperative-sticky`` together.
4. Successive steps are merged if their strategies and their rebalance protocols are equal.

librdkafka refuses a list that contains both eager and cooperative strategies. So members with librdkafka cannot do the
two rolling restarts of KIP-429. To make librdkafka members cooperative, stop all members before you change their
strategy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from assignors.coordinator import EAGER_STRATEGIES, InconsistentGroupProtocolError, select_protocol

EAGER, COOPERATIVE, UNKNOWN = "eager", "cooperative", "unknown"
_COOPERATIVE_STRATEGIES = frozenset({"cooperative-sticky"})

Offer = tuple[str, ...]
"""The strategies that one member offers, its preferred strategy first."""


@dataclass(frozen=True, slots=True)
class Step:
    """The state of a group in which ``restarted_at_least`` to ``restarted_at_most`` members have restarted.

    ``restart`` is 0 before the first rolling restart. ``offers`` contains each distinct list of strategies.
    ``strategy`` is None if the members have no strategy in common. ``rebalance_protocols`` contains each distinct
    rebalance protocol.
    """

    restart: int
    restarted_at_least: int
    restarted_at_most: int
    offers: tuple[Offer, ...]
    strategy: str | None
    rebalance_protocols: tuple[str, ...]


def rolling_change(offers: Sequence[Sequence[Offer]]) -> list[Step]:
    """Return the steps of a rolling change.

    ``offers[0]`` contains the current list of strategies of each member. ``offers[n]`` contains these lists after
    rolling restart n.

    In the migration of KIP-429, the members become cooperative during the second rolling restart:

    >>> both = ("cooperative-sticky", "range")
    >>> steps = rolling_change([[("range",)] * 2, [both] * 2, [("cooperative-sticky",)] * 2])
    >>> for step in steps:
    ...     print(step.restart, step.restarted_at_most, step.strategy, *step.rebalance_protocols)
    0 0 range eager
    1 1 range eager
    1 2 cooperative-sticky eager
    2 1 cooperative-sticky cooperative eager
    2 2 cooperative-sticky cooperative

    Raises ValueError if the group has no members, or if two elements of ``offers`` have different lengths.
    """
    members = len(offers[0]) if offers else 0
    if not members or any(len(lists) != members for lists in offers):
        raise ValueError("each state of the group must have a list for each of its members")
    steps = [_take_step(0, 0, offers[0])]
    for restart, (before, after) in enumerate(pairwise(offers), start=1):
        single = (
            _take_step(restart, restarted, (*after[:restarted], *before[restarted:]))
            for restarted in range(1, members + 1)
        )
        steps += _merge_equal_results(single)
    return steps


def rebalance_protocol(offer: Offer) -> str:
    """Return the rebalance protocol of a member: cooperative only if all strategies in its list are cooperative.

    The result is ``unknown`` if the list contains a custom strategy, but none of Kafka's eager strategies.

    >>> rebalance_protocol(("cooperative-sticky", "range")), rebalance_protocol(("cooperative-sticky",))
    ('eager', 'cooperative')
    >>> rebalance_protocol(("my-strategy",)), rebalance_protocol(("my-strategy", "range"))
    ('unknown', 'eager')
    """
    if EAGER_STRATEGIES.intersection(offer):
        return EAGER
    return COOPERATIVE if _COOPERATIVE_STRATEGIES.issuperset(offer) else UNKNOWN


def _take_step(restart: int, restarted: int, offers: Sequence[Offer]) -> Step:
    try:
        strategy = select_protocol(offers)
    except InconsistentGroupProtocolError:
        strategy = None
    different = tuple(dict.fromkeys(offers))
    protocols = tuple(sorted(set(map(rebalance_protocol, different))))
    return Step(restart, restarted, restarted, different, strategy, protocols)


def _merge_equal_results(steps: Iterator[Step]) -> Iterator[Step]:
    for _, equal in groupby(steps, key=lambda step: (step.strategy, step.rebalance_protocols)):
        merged = list(equal)
        offers = tuple(dict.fromkeys(offer for step in merged for offer in step.offers))
        yield replace(merged[0], restarted_at_most=merged[-1].restarted_at_most, offers=offers)
