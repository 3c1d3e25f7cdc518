"""Tests with topics that are deleted, created or recreated between two samples. The older sample gives no verdict."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from assignors import AS_JAVA_LEADER
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import GroupEvent, GroupMetadataWritten, TopicMetadata, TopicsSampled
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import IdPartitions
from tests.streaming.groups import at, epoch, joined, member, metadata, modern_member, sampled, target, target_epoch

CLASSIC = ("range", "roundrobin", "sticky", "cooperative-sticky")
STRATEGIES = [AS_JAVA_LEADER[name] for name in (*CLASSIC, "uniform", "server-range")]
TOPICS = ("gone", "kept")


def updates(batches: Sequence[Sequence[GroupEvent]]) -> list[GroupUpdate]:
    """Return the updates of consecutive batches."""
    group_updates: list[GroupUpdate] = []
    record = GroupState(GroupSnapshot("g"))
    for batch in batches:
        group_updates.append(apply_batch(record, batch, STRATEGIES))
        record = group_updates[-1].record
    return group_updates


def rows(group_updates: Sequence[GroupUpdate]) -> list[Evaluation]:
    """Return the verdicts that became rows."""
    return [evaluation for update in group_updates for evaluation in update.evaluations]


def own(evaluation: Evaluation | None) -> tuple[str, str]:
    """Return verdict and reason for the group's own strategy."""
    assert evaluation is not None
    (found,) = [drift for drift in evaluation.drifts if drift.is_group_strategy]
    return found.verdict, found.reason


def generation(offsets_topic_offset: int, strategy: str, *members: ClassicMember) -> GroupEvent:
    """Return a classic generation. Its offset is also its number."""
    return GroupMetadataWritten(at(offsets_topic_offset), metadata(offsets_topic_offset, members, protocol=strategy))


def reading_member(
    name: str, *, gone: Sequence[int] = (), kept: Sequence[int] = (), claims: bool = False
) -> ClassicMember:
    """Return a member that subscribes to both topics. With `claims` it owned two partitions of `gone` before."""
    owned = [("gone", number) for number in (0, 1)] + [("kept", number) for number in kept] if claims else []
    return member(name, {"gone": gone, "kept": kept}, TOPICS, owned=owned)


@pytest.mark.parametrize("strategy", CLASSIC)
@pytest.mark.parametrize("left", [None, 1], ids=["deleted", "recreated with one partition"])
def test_a_deleted_topic_is_not_drift(strategy: str, left: int | None) -> None:
    """A topic is deleted and the group rebalances before the next sample.

    Before, `drift` stayed until the next rebalance.

    In the older sample the topic still exists, so its partitions look unassigned. Only the later sample must decide.
    """
    group_updates = updates(
        [
            [generation(10, strategy, reading_member("a", gone=[0, 1], kept=[0]))],
            [sampled(11_000, gone=2, kept=1)],
            [
                generation(
                    20, strategy, reading_member("a", gone=range(left or 0), kept=[0], claims=strategy != "range")
                )
            ],
            [sampled(21_000, gone=left, kept=1)],
            [sampled(26_000, gone=left, kept=1)],
        ]
    )
    assert all(own(update.record.evaluation)[0] != "drift" for update in group_updates)
    assert own(group_updates[2].record.evaluation) in {("unknown", "metadata_missing"), ("withheld", "")}
    assert [own(evaluation) for evaluation in rows(group_updates)] == [("match", ""), ("match", "")], "final, once"
    assert rows(group_updates)[1].drifts[0].violations == ()


@pytest.mark.parametrize("server_assignor", ["uniform", "range"])
def test_a_deleted_topic_is_no_drift_of_a_kip_848_group(server_assignor: str) -> None:
    """The coordinator assigns the partitions, and it knows at once that the topic is gone."""

    def targets(offsets_topic_offset: int, number: int, held: IdPartitions) -> list[GroupEvent]:
        return [
            epoch(offsets_topic_offset, number),
            target(offsets_topic_offset + 1, "m", held),
            target_epoch(offsets_topic_offset + 2, number),
        ]

    def named(sampled_at_ms: int, gone: int | None) -> TopicsSampled:
        topics = {"gone": TopicMetadata(gone, sampled_at_ms, topic_id=gone and "G")}
        return TopicsSampled({**topics, "kept": TopicMetadata(1, sampled_at_ms, topic_id="K")})

    group_updates = updates(
        [
            [joined(9, "m", modern_member(TOPICS, server_assignor=server_assignor))],
            targets(10, 1, (("G", (0, 1)), ("K", (0,)))),
            [named(13_000, 2)],
            targets(20, 2, (("K", (0,)),)),
            [named(23_000, None)],
        ]
    )
    assert all(
        update.record.evaluation is None or own(update.record.evaluation)[0] != "drift" for update in group_updates
    )
    final = [own(evaluation) for evaluation in rows(group_updates) if own(evaluation)[0] != "rebalancing"]
    assert final == [("match", ""), ("match", "")]


def test_a_topic_that_was_left_out_is_drift_as_soon_as_a_later_sample_still_has_it() -> None:
    """The topic existed before the record and after it, and no member got it. This must be reported."""
    group_updates = updates(
        [
            [generation(10, "range", reading_member("a", gone=[0, 1], kept=[0]))],
            [sampled(11_000, gone=2, kept=1)],
            [generation(400, "range", reading_member("a", kept=[0]))],
            [sampled(401_000, gone=2, kept=1)],
        ]
    )
    assert [own(evaluation) for evaluation in rows(group_updates)] == [("match", ""), ("drift", "")]
    assert rows(group_updates)[1].drifts[0].violations == ("unassigned",)


def test_a_topic_that_was_created_after_the_record_is_not_drift_at_first() -> None:
    """The leader could not know the topic.

    Before, this was `drift` with rule `unassigned`, also for a topic that grew.
    """
    group_updates = updates(
        [[generation(10, "range", reading_member("a", kept=[0]))], [sampled(11_000, gone=3, kept=1)]]
    )
    assert [own(evaluation) for evaluation in rows(group_updates)] == [("unknown", "metadata_changed")]
