"""Tests with topics or racks that change between two samples. The older sample gives no verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from assignors import AS_JAVA_LEADER
from streaming.evaluation.group_update import GroupState, GroupUpdate, apply_batch
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.snapshot_evaluation import Evaluation
from streaming.events import (
    POLLED_PARTITION,
    GroupDescribed,
    GroupEvent,
    GroupMetadataWritten,
    Position,
    TopicMetadata,
    TopicsSampled,
)
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import ClassicMember
from streaming.protocol.modern import IdPartitions
from streaming.run.samples.feedback_writer import pending_by_group
from streaming.state.monitor_view import MonitorView
from tests.streaming.evaluation.assignment.test_libraries_rules import MOVED, RACKS, WithRacks
from tests.streaming.groups import (
    at,
    emptied,
    epoch,
    joined,
    member,
    metadata,
    modern_member,
    sampled,
    target,
    target_epoch,
)

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


def facts_at(sampled_at_ms: int, record: GroupState, racks: tuple[tuple[str, ...], ...]) -> Sequence[GroupEvent]:
    """Return the facts that the driver sends at a sample. `orders` has four partitions."""
    sample = ClusterSample(sampled_at_ms, {"orders": TopicMetadata(4, sampled_at_ms, racks, "id")})
    return pending_by_group(MonitorView({"g": record}), sample).get("g", ())


def after_sample(record: GroupState, sampled_at_ms: int, racks: tuple[tuple[str, ...], ...]) -> GroupState:
    """Return the state after the facts that the driver sends at a sample."""
    return apply_batch(record, facts_at(sampled_at_ms, record, racks), STRATEGIES).record


def in_racks(offsets_topic_offset: int, *held: Sequence[int]) -> GroupEvent:
    """Return a generation of `range` with the members a, b and c in the racks r1, r0 and r0."""
    names = zip("abc", held, ("r1", "r0", "r0"), strict=True)
    members = [member(name, {"orders": numbers}, rack_id=rack) for name, numbers, rack in names]
    return generation(offsets_topic_offset, "range", *members)


@pytest.mark.parametrize("racks", [RACKS, ()], ids=["brokers with racks", "brokers without racks"])
def test_members_that_return_with_racks_are_compared_after_the_racks_are_known(
    racks: tuple[tuple[str, ...], ...],
) -> None:
    """`client.rack` is set and all members restart. While no member has a rack, the state contains no racks.

    Before, the older sample without racks gave a final `drift` until the next rebalance.
    """
    plain = [member(name, {"orders": numbers}) for name, numbers in zip("abc", ([0, 1], [2], [3]), strict=True)]
    record = apply_batch(GroupState(GroupSnapshot("g")), [generation(10, "range", *plain)], STRATEGIES).record
    record = after_sample(record, 11_000, racks)
    record = after_sample(apply_batch(record, [emptied(900, 11)], STRATEGIES).record, 901_000, racks)
    held = ([0, 2], [1], [3]) if racks else ([0, 1], [3], [2])  # if the brokers have no racks, this is no range
    record = apply_batch(record, [in_racks(910, *held)], STRATEGIES).record
    assert own(record.evaluation) == ("unknown", "metadata_missing")
    record = after_sample(record, 912_000, racks)
    assert own(record.evaluation) == ("match" if racks else "drift", "")
    assert not facts_at(917_000, record, racks), "the verdict is complete, so no further sample is sent"


def test_a_rejoined_static_member_does_not_prove_which_racks_the_leader_knew() -> None:
    """The record of a rejoin is new, but its assignment is old. The racks changed between the two."""
    record = apply_batch(GroupState(GroupSnapshot("g")), [in_racks(10, [0, 2], [1], [3])], STRATEGIES).record
    record = after_sample(record, 11_000, MOVED)
    assert own(record.evaluation) == ("unknown", "metadata_changed")
    joined_again = in_racks(10, [0, 2], [1], [3])
    assert isinstance(joined_again, GroupMetadataWritten)
    again = GroupMetadataWritten(at(900), replace(joined_again.metadata, current_state_timestamp_ms=10_000))
    record = after_sample(apply_batch(record, [again], STRATEGIES).record, 901_000, MOVED)
    assert own(record.evaluation) == ("unknown", "metadata_changed")


@pytest.mark.parametrize(
    ("racks", "verdict"),
    [(RACKS, ("drift", "")), (MOVED, ("unknown", "metadata_changed"))],
    ids=["the same racks", "the racks changed shortly before the poll"],
)
def test_a_polled_assignment_of_an_own_strategy_is_compared_after_the_racks_are_sampled(
    racks: tuple[tuple[str, ...], ...], verdict: tuple[str, str]
) -> None:
    """Before, the verdict was always `unknown` with the reason `metadata_changed`, even if the racks never changed."""
    record = GroupState(GroupSnapshot("g"))
    for at_ms, held in ((10_000, ([0, 2], [1], [3])), (900_000, ([0, 1], [3], [2]))):
        written = in_racks(0, *held)
        assert isinstance(written, GroupMetadataWritten)
        classic = replace(written.metadata, generation_id=None, leader=None, protocol=WithRacks.name)
        poll = GroupDescribed(Position(POLLED_PARTITION, at_ms, at_ms), "classic", "Stable", classic=classic)
        record = apply_batch(record, [poll], [WithRacks()]).record
        assert own(record.evaluation) == ("unknown", "metadata_missing")
        sampled_racks = RACKS if at_ms == 10_000 else racks
        record = apply_batch(record, facts_at(at_ms + 1_000, record, sampled_racks), [WithRacks()]).record
    assert own(record.evaluation) == verdict
    assert not facts_at(905_000, record, racks), "the verdict is complete, so no further sample is sent"
