"""How fairly one generation's work is shared, and why not.

Rules:

1. Judged is the decision: what a leader assigned, what a KIP-848 coordinator wants its members to have.
2. Classic Kafka Streams divides tasks, not partitions: there are numbers and no score (`kafka_streams`).
3. A topic skew (`assignors.what_if.topic_skew`) is looked for where the group's score is known and not 100, and every
   topic is shared evenly by itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from assignors.what_if.topic_skew import TopicSkew, topic_skew
from streaming.evaluation.assignment.assignment_inputs import AssignmentInputs
from streaming.evaluation.assignment.common_rules import has_one_owner
from streaming.evaluation.fairness.imbalance import MEMBER, TOPIC, Imbalance, SharedWork
from streaming.group.modern import RESOLVED_REGEX, TARGET_ASSIGNMENT
from streaming.group.not_known import MEMBER_ASSIGNMENT, MEMBER_SUBSCRIPTION, TOPIC_NAMES
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.consumer_protocol import KAFKA_STREAMS_PROTOCOL

MOST_NAMED = 10
_HIDES_WHO_HAS_WHAT = (MEMBER_ASSIGNMENT, TARGET_ASSIGNMENT)
_HIDES_WHAT_IS_FAIR = (MEMBER_SUBSCRIPTION, RESOLVED_REGEX, TOPIC_NAMES)


def shared_work(snapshot: GroupSnapshot, known: AssignmentInputs) -> SharedWork:
    """A generation's work as it is shared out; `known` is what `assignment_inputs` found in the snapshot."""
    classic, modern = snapshot.classic, snapshot.modern
    hosts = {member.member_id: member.client_host for member in classic.members} if classic else {}
    if modern is not None:
        hosts = {member_id: member.client_host for member_id, member in modern.members.items()}
    return SharedWork(
        known.spec,
        known.assignment,
        hosts,
        known.unknown_topics,
        known.changed_topics,
        not_scored=_not_scored(snapshot, known),
        unknown_reason=_first(_HIDES_WHO_HAS_WHAT, known),
        has_one_owner=has_one_owner(snapshot),
    )


def _not_scored(snapshot: GroupSnapshot, known: AssignmentInputs) -> str:
    if snapshot.classic is not None and snapshot.classic.protocol == KAFKA_STREAMS_PROTOCOL:
        return "kafka_streams"
    return _first(_HIDES_WHAT_IS_FAIR, known)


def _first(reasons: Iterable[str], known: AssignmentInputs) -> str:
    return next((reason for reason in reasons if reason in known.unknown_inputs), "")


def among_members(imbalances: Iterable[Imbalance], measure: str) -> Imbalance | None:
    """How the whole group shares one kind of work; None where that was not evaluated."""
    return next((one for one in imbalances if (one.measure, one.scope) == (measure, MEMBER)), None)


def named_skew(shared: SharedWork, imbalances: Iterable[Imbalance]) -> TopicSkew | None:
    """The topic skew, its first ten members named; None where there is none. `imbalances` are those of partitions."""
    if any(one.scope == MEMBER and (one.score is None or one.score == 100) for one in imbalances):
        return None
    if any(one.scope == TOPIC and (one.largest or 0) - (one.smallest or 0) > 1 for one in imbalances):
        return None
    found = topic_skew(shared.spec, shared.assignment)
    return found and replace(found, members=found.members[:MOST_NAMED])
