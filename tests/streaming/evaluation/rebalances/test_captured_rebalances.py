"""Tests on captured records of every client library: each step gets its cause, and moves are counted."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streaming.evaluation.rebalances.partition_movement import member_key
from streaming.evaluation.rebalances.rebalances import Rebalance, RebalanceBaseline, baseline_after, rebalance_between
from streaming.events import GroupMetadataWritten, Position, TopicMetadata, TopicsSampled
from streaming.group.members import members
from streaming.group.snapshot import GroupSnapshot
from tests.clients.recount import (
    FOLLOWUP,
    GROWN,
    UNEXPLAINED,
    Generation,
    Share,
    count_moves,
    proven_causes,
    withheld_partitions,
)
from tests.streaming.evaluation.assignment.test_captured_libraries import GROUPS, written
from tests.streaming.groups import advanced
from tests.streaming.protocol.memberships import Membership


def between(lines: list[Membership]) -> Iterator[tuple[Membership, GroupSnapshot, GroupSnapshot, Rebalance]]:
    """Yield each step with the group before and after it, and its rebalance. Generations in between are left out."""
    baseline: RebalanceBaseline | None = None
    before, after = None, GroupSnapshot(lines[0].group)
    for number, line in enumerate(lines, start=1):
        metadata, timestamp_ms = written(line)
        topics = {
            topic: TopicMetadata(count, timestamp_ms + 1, since_ms=timestamp_ms - 1)
            for topic, count in line.partitions.items()
        }
        before = after if baseline else None
        after = advanced(
            [GroupMetadataWritten(Position(0, number, timestamp_ms), metadata), TopicsSampled(topics)], after
        )
        found = rebalance_between(baseline, after)
        baseline = baseline_after(baseline, after, found)
        if before is not None and found is not None:
            yield line, before, after, found


def generation(snapshot: GroupSnapshot) -> Generation:
    """Return the group in the types of the independent count."""
    return Generation(
        snapshot.protocol,
        {
            member_key(member): Share(
                frozenset(member.subscribed_topics or ()), frozenset(member.target or ()), frozenset(member.owned or ())
            )
            for member in members(snapshot)
        },
    )


@pytest.mark.parametrize("group", GROUPS)
def test_a_step_has_its_real_cause_and_moves_equal_an_independent_count(group: str) -> None:
    """The scenario only adds members, removes members and adds partitions. Any other cause is false.

    A static member that returns in time makes no generation, so no cause is necessary (KIP-345).
    """
    for line, before, after, found in between(GROUPS[group]):
        if "crashed" in (line.broken_law or ""):
            return
        then, now = generation(before), generation(after)
        if before.generation_id == after.generation_id:
            assert found.kind == "static_rejoin", line.step
            assert (found.causes, then.members.keys()) == ((), now.members.keys()), line.step
            continue
        assert found.kind == "rebalance", line.step
        expected = proven_causes(then, now, ()) | ({GROWN} if line.step == "a topic grew" else set())
        assert set(found.causes or ()) - {FOLLOWUP} == (expected or {UNEXPLAINED}), line.step
        assert found.movement.withheld == tuple(sorted(withheld_partitions(then, now))), line.step
        if not found.movement.withheld:
            assert found.movement.moved_partitions == count_moves(then, now), line.step
