"""Collect the inputs of `imbalance` for one generation, and find the topic skew.

Rules:

1. For a classic group, the leader's assignment is evaluated. For a KIP-848 group, the targets are evaluated.
2. The leader of a classic Kafka Streams group assigns tasks, not partitions. So the imbalance of a Kafka Streams group
   has no score (`kafka_streams`). Faust and Goka give a member the same partition numbers of several topics, even if
   this is less fair. So the imbalance of such a group has no score either (`copartitioned`).
3. A group has a topic skew only if its members share each topic evenly, and its score is below 100.
4. The work of a group is *uneven* if a different assignment could share the records much more evenly. The rule compares
   the busiest member of the actual assignment with the busiest member of the fairest assignment. The busiest member's
   produce rate must be at least UNEVEN_WORK_FACTOR times the rate in the fairest assignment. The difference between the
   two rates must be at least UNEVEN_WORK_RECORDS_PER_SECOND. A single hot partition is not uneven work, because no
   assignment can divide a partition.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assignors.what_if.topic_skew import TopicSkew, topic_skew
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs
from streaming.evaluation.assignment.common_rules import has_one_owner
from streaming.evaluation.fairness.imbalance import THROUGHPUT, Imbalance
from streaming.evaluation.fairness.participants import MEMBER, TOPIC, SharedWork
from streaming.group.modern import RESOLVED_REGEX, TARGET_ASSIGNMENT
from streaming.group.not_known import MEMBER_ASSIGNMENT, MEMBER_SUBSCRIPTION, TOPIC_NAMES
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.consumer_protocol import COPARTITIONING_PROTOCOLS, KAFKA_STREAMS_PROTOCOL

UNEVEN_WORK_FACTOR = 1.5
UNEVEN_WORK_RECORDS_PER_SECOND = 10
_MAX_MEMBERS = 10
"""A topic skew contains the names of at most this number of members."""
_HIDES_OWNERS = (MEMBER_ASSIGNMENT, TARGET_ASSIGNMENT)
_HIDES_FAIREST = (MEMBER_SUBSCRIPTION, RESOLVED_REGEX, TOPIC_NAMES)


def shared_work(snapshot: GroupSnapshot, inputs: AssignmentInputs) -> SharedWork:
    """Return the inputs of `imbalance` for one generation. `inputs` is the result of `assignment_inputs`."""
    classic, modern = snapshot.classic, snapshot.modern
    hosts = {member.member_id: member.client_host for member in classic.members} if classic else {}
    if modern is not None:
        hosts = {member_id: member.client_host for member_id, member in modern.members.items()}
    protocol = classic.protocol if classic is not None else None
    copartitioned = "kafka_streams" if protocol == KAFKA_STREAMS_PROTOCOL else "copartitioned"
    return SharedWork(
        inputs.spec,
        inputs.assignment,
        hosts,
        inputs.unknown_topics,
        inputs.changed_topics,
        not_scored=copartitioned if protocol in COPARTITIONING_PROTOCOLS else _first_unknown(_HIDES_FAIREST, inputs),
        unknown_reason=_first_unknown(_HIDES_OWNERS, inputs),
        has_one_owner=has_one_owner(snapshot),
    )


def _first_unknown(reasons: Iterable[str], inputs: AssignmentInputs) -> str:
    return next((reason for reason in reasons if reason in inputs.unknown_inputs), "")


def among_members(imbalances: Iterable[Imbalance], measure: str) -> Imbalance | None:
    """Return the imbalance of `measure` among all members of the group, or None if not evaluated."""
    return next((one for one in imbalances if (one.measure, one.scope) == (measure, MEMBER)), None)


def uneven_work(imbalances: Iterable[Imbalance]) -> Imbalance | None:
    """Return the imbalance of the produce rate among members if the work is *uneven* (rule 4), or else None.

    >>> even = Imbalance(measure=THROUGHPUT, scope=MEMBER, largest=400, excess=100)
    >>> uneven_work([even]), uneven_work([Imbalance(measure=THROUGHPUT, scope=MEMBER, largest=400, excess=200)]).excess
    (None, 200)
    """
    work = among_members(imbalances, THROUGHPUT)
    if work is None or work.largest is None or work.excess is None:
        return None
    fair = work.largest - work.excess
    is_uneven = work.excess >= UNEVEN_WORK_RECORDS_PER_SECOND and work.largest >= UNEVEN_WORK_FACTOR * fair
    return work if is_uneven else None


def named_skew(shared: SharedWork, imbalances: Iterable[Imbalance]) -> TopicSkew | None:
    """Return the topic skew (rule 3), or None. `imbalances` are the imbalances of the measure `partitions`."""
    if any(one.scope == MEMBER and (one.score is None or one.score == 100) for one in imbalances):
        return None
    if any(one.scope == TOPIC and (one.largest or 0) - (one.smallest or 0) > 1 for one in imbalances):
        return None
    skew = topic_skew(shared.spec, shared.assignment)
    return skew and replace(skew, members=skew.members[:_MAX_MEMBERS])
