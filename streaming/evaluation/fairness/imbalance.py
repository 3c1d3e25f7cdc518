"""Measure how evenly the work is shared. Work is the number of partitions, the lag or the throughput.

The monitor compares members with each other, client hosts with each other, and the subscribers of each topic.
`assignors/fairness/evenness.py` defines the measures. Example: 5 members share 7 partitions, so the mean is 1.4. If the
members have 3, 1, 1, 1 and 1 partitions, max/mean is 2.14, and there is one excess partition. If the members have 2, 2,
1, 1 and 1 partitions, max/mean is 1.43. In the second example, there is no excess partition, because the busiest member
has at least two partitions in every assignment. Rules:

1. If the work of at least one partition is unknown, the imbalance is unknown, and all its numbers are None.
   `unknown_reason` is the reason for unknown work, and `unknown_partitions` is the number of partitions with unknown
   work. A partition with unknown work does not affect the imbalances of other topics.
2. Hosts are evaluated only if the host of every member is known.
3. The score compares the distribution with the fairest possible distribution:

   - Partitions: the fairest distribution is the distribution of the fairest valid assignment.
   - Lag and throughput: the fairest distribution is only an estimate, because the exact computation takes too long. The
     estimate assigns the partitions with the most work first.
   - Hosts: each host counts like a single member with the subscriptions of all members on the host.
   - The subscribers of a topic: the score depends only on the partitions of this topic.

4. If there is no score, `score_reason` contains one of these reasons:

   - `metadata_missing`: the partition count of a topic is unknown.
   - `metadata_changed`: the leader possibly used a different partition count of a topic (`sampled_topics`).
   - `law_broken`: a partition has two owners although the strategy does not permit this, a partition does not exist, an
     owner is not a member, or an owner does not subscribe to the topic.
   - `partitions_shared`: a partition has two owners, and the strategy permits this.
   - `partitions_unassigned`: partitions have no owner, for example between two cooperative rounds. Topics in which all
     partitions have owners still have scores.
   - `subscriptions_too_many`: the members have too many different subscriptions, so the fairest assignment is unknown.
   - `member_subscription`, `resolved_regex`, `topic_names`: the subscription of a member or the name of a topic is
     unknown.
   - `kafka_streams`: the leader divides tasks, not partitions.
   - `copartitioned`: Faust or Goka assigns the same partition numbers of several topics to one member.

5. If the assignment of a member is unknown, all imbalances are unknown. `unknown_reason` is `member_assignment` or
   `target_assignment`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import msgspec

from assignors import GroupSpec, TopicPartition
from assignors.fairness.evenness import evenness, score
from assignors.fairness.fairest import TooManySubscriptionsError, even_sizes, fairest_sizes
from assignors.fairness.heaviest_first import heaviest_first_loads, heaviest_first_within
from streaming.evaluation.fairness.participants import Participants, SharedWork, divide

PARTITIONS = "partitions"
LAG = "lag"
THROUGHPUT = "throughput"
"""Kinds of work. `throughput` is in records per second. It is the growth of the end offsets."""

Weights = Mapping[TopicPartition, float | None]
"""The work of each partition, in the unit of the measure. None means unknown."""


class Imbalance(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """The distribution of one kind of work among one kind of participants. Amounts have the unit of `measure`.

    `busiest` is the name of the participant with the most work. If several participants have the most work, `busiest`
    is the first of them in sorted order. `idle` is the number of participants without a partition.
    `idle_in_any_assignment` is the number of participants that would be idle even in the fairest assignment. Both are
    None for the measures lag and throughput. `excess` is `largest` minus the largest amount in the fairest
    distribution, but at least 0. Ratios are None if there is no work (`total` is 0).
    """

    measure: str
    scope: str
    topic: str | None = None
    unknown_reason: str = ""
    unknown_partitions: int = 0
    participants: int | None = None
    total: float | None = None
    largest: float | None = None
    smallest: float | None = None
    busiest: str | None = None
    idle: int | None = None
    max_to_mean_ratio: float | None = None
    coefficient_of_variation: float | None = None
    gini: float | None = None
    score_reason: str = ""
    score: float | None = None
    excess: float | None = None
    idle_in_any_assignment: int | None = None

    @property
    def avoidable_idle(self) -> int | None:
        """Avoidable idle participants: `idle` minus `idle_in_any_assignment`, but at least 0. None if unknown."""
        if self.idle is None or self.idle_in_any_assignment is None:
            return None
        return max(0, self.idle - self.idle_in_any_assignment)


@dataclass(frozen=True, slots=True)
class Division:
    """The partitions that an assignment gives to each participant. All measures use the same `Division`."""

    partitions: tuple[TopicPartition, ...] = ()
    participants: tuple[Participants, ...] = ()

    def amounts(self, weights: Weights) -> tuple[float | None, ...]:
        """Return the work of each partition in `partitions`, or None if `weights` does not contain the partition."""
        return tuple(map(weights.get, self.partitions))

    def imbalance(
        self, measure: str = PARTITIONS, amounts: Sequence[float | None] | None = None
    ) -> tuple[Imbalance, ...]:
        """Measure how evenly members, hosts, and the subscribers of each topic share one kind of work.

        The results have this order: members, hosts, topics by name. `amounts` contains the work of each partition in
        `partitions`, in the unit of `measure`. For the measure `partitions`, `amounts` is None.

        Raises ValueError if an amount is negative or not finite.

        >>> from assignors import GroupAssignment, GroupSpec, MemberSubscription
        >>> spec = GroupSpec((MemberSubscription("A", ("t",)), MemberSubscription("B", ("t",))), {"t": 3})
        >>> held = GroupAssignment({"A": (("t", 0), ("t", 1)), "B": (("t", 2),)})
        >>> division = divide_work(SharedWork(spec, held, {"A": "/10.0.0.1", "B": "/10.0.0.1"}))
        >>> [(one.scope, one.largest, one.score, one.excess) for one in division.imbalance()]
        [('member', 2, 100.0, 0), ('host', 3, 100.0, 0), ('topic', 2, 100.0, 0)]
        >>> lag = division.amounts({("t", 0): 40, ("t", 1): 50, ("t", 2): 10})
        >>> [(one.scope, one.largest, one.score, one.excess) for one in division.imbalance(LAG, lag)]
        [('member', 90, 20.0, 40), ('host', 100, 100.0, 0), ('topic', 90, 20.0, 40)]
        """
        if amounts is not None and any(amount is not None and not 0 <= amount < inf for amount in amounts):
            raise ValueError(f"{measure} of a partition is negative or not finite")
        return tuple(_measure(measure, participants, self.partitions, amounts) for participants in self.participants)


def divide_work(shared: SharedWork) -> Division:
    """Find the partitions that an assignment gives to each participant."""
    return Division(*divide(shared))


def _measure(
    measure: str, participants: Participants, partitions: Sequence[TopicPartition], work: Sequence[float | None] | None
) -> Imbalance:
    indexes = participants.partition_indexes
    amounts = [1] * len(indexes) if work is None else [work[index] for index in indexes]
    known = [amount for amount in amounts if amount is not None]
    unknown_partitions = len(amounts) - len(known)
    if participants.unknown_reason or unknown_partitions:
        return Imbalance(
            measure=measure,
            scope=participants.scope,
            topic=participants.topic,
            unknown_reason=participants.unknown_reason or f"{measure}_unknown",
            unknown_partitions=unknown_partitions,
        )
    loads: list[float] = [0] * participants.count
    for owner, amount in zip(participants.owner_indexes, known, strict=True):
        loads[owner] += amount
    measures, counts_partitions = evenness(loads), work is None
    fairest, score_reason = _fairest_loads(participants, partitions, known, counts_partitions=counts_partitions)
    return Imbalance(
        measure=measure,
        scope=participants.scope,
        topic=participants.topic,
        participants=measures.shares,
        total=measures.total,
        largest=measures.largest,
        smallest=measures.smallest,
        busiest=participants.names[loads.index(measures.largest)] if measures.largest else None,
        idle=measures.idle if counts_partitions else None,
        max_to_mean_ratio=measures.max_to_mean_ratio,
        coefficient_of_variation=measures.coefficient_of_variation,
        gini=measures.gini,
        score_reason=score_reason,
        score=None if fairest is None else score(loads, fairest),
        excess=None if fairest is None else max(0, measures.largest - max(fairest)),
        idle_in_any_assignment=fairest.count(0) if fairest is not None and counts_partitions else None,
    )


def _fairest_loads(
    participants: Participants, partitions: Sequence[TopicPartition], work: Sequence[float], *, counts_partitions: bool
) -> tuple[tuple[float, ...] | None, str]:
    """Return the loads of the fairest distribution in ascending order (rule 3) or None, and `score_reason`."""
    if participants.score_reason:
        return None, participants.score_reason
    if (equal := participants.equal_participants) is not None:
        loads: tuple[float, ...] = ()
        if equal:
            loads = even_sizes(len(work), equal) if counts_partitions else heaviest_first_within(work, equal)
        return (*[0] * (participants.count - equal), *loads), ""
    spec = participants.spec or GroupSpec((), {})
    if not counts_partitions:
        of_participants = (partitions[index] for index in participants.partition_indexes)
        return heaviest_first_loads(spec, dict(zip(of_participants, work, strict=True))), ""
    try:
        return fairest_sizes(spec), ""
    except TooManySubscriptionsError:
        return None, "subscriptions_too_many"
