"""Tests on captured records of every client library.

The leader's library must be recognised, and its assignments must not drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby

import pytest

from assignors import AS_JAVA_LEADER
from streaming.evaluation.assignment.drift import DIFFERS_FROM_JAVA, DRIFT, EQUIVALENT, MATCH, NOT_EVALUATED, WITHHELD
from streaming.evaluation.assignment.leader import UNKNOWN_LEADER, leader_of
from streaming.evaluation.assignment.sampled_topics import METADATA_MAX_AGE_MS
from streaming.evaluation.snapshot_evaluation import Evaluation, evaluate_snapshot
from streaming.events import GroupMetadataWritten, Position, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol import RecordType, decode
from streaming.protocol.classic import ClassicMember, GroupMetadata, group_metadata
from tests.streaming.groups import advanced
from tests.streaming.protocol.memberships import Membership, memberships

GROUPS = {
    group: lines
    for group, of in groupby(memberships(), key=lambda line: line.group)
    if (lines := list(of))[0].group_type == "classic"
}
STRATEGIES = [AS_JAVA_LEADER[name] for name in ("range", "roundrobin", "sticky", "cooperative-sticky")]
ALIKE = frozenset({"aiokafka", "java-2.3", "kafka-python", "librdkafka"})
"""Libraries with versions that write the same bytes. Only the default client id identifies them."""


def written(line: Membership) -> tuple[GroupMetadata, int]:
    """Return the group's last record and its time."""
    (found,) = [record for record in line.records if decode(record.key, None).key_type == RecordType.GROUP_METADATA]
    return group_metadata(decode(found.key, found.value)), found.timestamp_ms


def evaluated(line: Membership) -> Evaluation:
    """Return the verdicts. The partition counts are the same after the record and long before it."""
    metadata, timestamp_ms = written(line)
    topics = {
        topic: TopicMetadata(count, timestamp_ms + 1, since_ms=timestamp_ms - 2 * METADATA_MAX_AGE_MS)
        for topic, count in line.partitions.items()
    }
    events = [GroupMetadataWritten(Position(0, 1, timestamp_ms), metadata), TopicsSampled(topics)]
    found = evaluate_snapshot(advanced(events, GroupSnapshot(line.group)), STRATEGIES)
    assert found is not None
    return found


def leaders_library(line: Membership, metadata: GroupMetadata) -> str | None:
    """Return the real leader's library, or None if Kafka described the group after its leader had left."""
    return next((member.library for member in line.members if member.member_id == metadata.leader), None)


def renamed(metadata: GroupMetadata) -> GroupMetadata:
    """Return the group with custom client ids."""
    names: Mapping[str, str] = {member.member_id: f"payments-{at}" for at, member in enumerate(metadata.members)}

    def with_name(member: ClassicMember) -> ClassicMember:
        return replace(member, member_id=names[member.member_id], client_id="payments")

    return replace(
        metadata,
        members=tuple(with_name(member) for member in metadata.members),
        leader=names.get(metadata.leader or ""),
    )


@pytest.mark.parametrize("group", GROUPS)
def test_the_leaders_library_is_named_exactly_or_among_libraries_that_write_the_same_bytes(group: str) -> None:
    """Before, aiokafka, KafkaJS and Java 2.3 were named kafka-python."""
    for line in GROUPS[group]:
        metadata, _ = written(line)
        library = leaders_library(line, metadata)
        if library is None:
            continue
        expected = "java-2.3" if "java-2.3" in group else library
        anonymous = leader_of(renamed(metadata))
        if anonymous.implementation == UNKNOWN_LEADER:
            assert expected in anonymous.candidates
            assert set(anonymous.candidates) <= ALIKE, line.step
        else:
            assert anonymous.implementation == expected, line.step
        named = leader_of(metadata).implementation
        assert named in ({UNKNOWN_LEADER} if expected == "java-2.3" else {library}), line.step


STATIC_OTHERWISE = {
    "java-2.3.1-range-static": {DIFFERS_FROM_JAVA},  # sorted by member id, instance ids ignored
    "kafka-python-3.0.12-range-static": {DRIFT},  # ignores some static members; see the last test in this file
}
"""Groups of static and dynamic members. Their leader sorts the members in a different order than Java since 2.4."""


@pytest.mark.parametrize("group", GROUPS)
def test_an_assignment_by_the_librarys_own_rules_is_not_drift(group: str) -> None:
    """Before, kafka-go groups were unbalanced by Java's rules, and most aiokafka joins gave misplaced partitions."""
    for line in GROUPS[group]:
        (own,) = [drift for drift in evaluated(line).drifts if drift.is_group_strategy]
        if own.verdict == DRIFT and "kafkajs" in group:
            continue
        lawful = {MATCH, EQUIVALENT, WITHHELD, NOT_EVALUATED, *STATIC_OTHERWISE.get(group, ())}
        assert own.verdict in lawful, (line.step, own)
        assert (own.verdict == NOT_EVALUATED) == (line.assignor in {"RoundRobinAssigner", "faust", "rack-affinity"})


def test_a_leader_that_ignores_subscriptions_breaks_common_rules() -> None:
    """KafkaJS does this when a member with other topics joins. Before, the monitor did not notice it."""
    own = {
        line.step: drift
        for line in GROUPS["kafkajs-2.2.4-roundrobin"]
        for drift in evaluated(line).drifts
        if drift.is_group_strategy
    }
    assert [step for step, drift in own.items() if drift.verdict == DRIFT] == [
        "a fourth joined with other topics",
        "a topic grew",
        "one was killed",
    ]
    assert own["a fourth joined with other topics"].violations == ("not_subscribed", "unassigned")


def test_a_leader_that_ignores_static_members_shares_a_topic_unequally() -> None:
    """kafka-python 3.0.12 `range` keeps only those static members that are adjacent in its list."""
    own = {
        line.step: drift
        for line in GROUPS["kafka-python-3.0.12-range-static"]
        for drift in evaluated(line).drifts
        if drift.is_group_strategy
    }
    assert {step: drift.violations for step, drift in own.items() if drift.verdict == DRIFT} == {
        "a fourth joined with other topics": ("unbalanced",),
        "a topic grew": ("unbalanced",),
        "one was killed": ("unbalanced",),
    }
