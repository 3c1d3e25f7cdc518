"""Collect the inputs of a group's what-if. The page and the advice use the same inputs.

1. Nothing is computed if an open transaction blocks the group, or if a partition count, a subscription or an assignment
   is unknown. Nothing is computed if the group is not evaluated. Examples are Kafka Connect groups, share groups and
   groups without members. Nothing is computed for Kafka Streams, Faust and Goka, because a fairer assignment can be
   invalid for them.
2. Nothing is computed for a group with more than `MAX_PARTITIONS` partitions or more than `MAX_MEMBERS` members.
3. The produce rate of a partition comes from the rows of the group's lag (`evaluation.lag.rates`). If the group has not
   committed an offset of a partition, the rate of the partition is unknown. Exception: the rate of an empty partition
   is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from assignors import GroupSpec, TopicPartition
from streaming.evaluation.assignment.assignment_inputs import assignment_inputs
from streaming.evaluation.assignment.sampled_topics import unknown_topics
from streaming.evaluation.lag.lag import ClusterSample
from streaming.group.members import GroupMember
from streaming.group.not_known import unknown_inputs
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.consumer_protocol import COPARTITIONING_PROTOCOLS

NO_ASSIGNMENT = "the group has no assignment that can be evaluated"
UNKNOWN_MEMBER = "the subscription or assignment of a member is unknown"
"""Reasons why nothing is computed (rule 1)."""

MAX_PARTITIONS = 500
MAX_MEMBERS = 100


class WhatIfInputs(NamedTuple):
    """The members and topics of a group, and the target owner of each partition."""

    spec: GroupSpec
    owners: Mapping[TopicPartition, str]

    @property
    def is_too_large(self) -> bool:
        """True if the group is too large for the driver (rule 2)."""
        return len(self.owners) > MAX_PARTITIONS or len(self.spec.members) > MAX_MEMBERS


def what_if_refusal(snapshot: GroupSnapshot | None, *, is_blocked: bool, is_evaluated: bool) -> str | None:
    """Return the reason why nothing is computed (rule 1), or None if a what-if is possible."""
    if is_blocked:
        return "an open transaction blocks the latest records of the group"
    if snapshot is None or not is_evaluated or snapshot.protocol in COPARTITIONING_PROTOCOLS:
        return NO_ASSIGNMENT
    if missing := unknown_topics(snapshot):
        return f"the partition count of these topics is unknown: {', '.join(missing[:3])}"
    if unknown_inputs(snapshot):
        return UNKNOWN_MEMBER
    return None


def what_if_inputs(snapshot: GroupSnapshot) -> WhatIfInputs:
    """Return the inputs of all strategies for the present group. `alternatives.py` uses the same inputs."""
    inputs = assignment_inputs(snapshot)
    return WhatIfInputs(inputs.spec, inputs.first_owners)


def group_produce_rates(
    rows: Iterable[Mapping[str, Any]], members: Iterable[GroupMember], sample: ClusterSample
) -> Mapping[TopicPartition, float]:
    """Return the known produce rates of the group's partitions (rule 3), in records per second.

    `rows` are the rows of the group's committed partitions (`LagEvaluation.rows_of`).

    >>> names = ("topic", "partition", "produced_records_per_second")
    >>> rows = [dict(zip(names, row, strict=True)) for row in (("t", 0, 5.0), ("t", 1, None))]
    >>> group_produce_rates(rows, (), ClusterSample(0))
    {('t', 0): 5.0}
    """
    committed = {(row["topic"], row["partition"]): row["produced_records_per_second"] for row in rows}
    owned = {partition for member in members for partition in member.target or ()}
    empty = {partition: 0.0 for partition in sorted(owned - committed.keys()) if sample.is_empty(partition)}
    return {**empty, **{partition: rate for partition, rate in committed.items() if rate is not None}}
