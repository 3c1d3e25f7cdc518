"""Tests that undecodable bytes of one member make only dependent results unknown. Unknown never means empty."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from assignors import assignor_named
from streaming.evaluation.assignment.drift import UNKNOWN
from streaming.evaluation.assignment.leader import Leader
from streaming.evaluation.evaluate import RecordedGroup, evaluate
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.lag.unsubscribed import ReadTopics, read_topics
from streaming.evaluation.rebalances.condition_detectors import SUBSCRIPTION_MISMATCH, Limits, conditions
from streaming.evaluation.rebalances.rebalances import Rebalance
from streaming.evaluation.snapshot_evaluation import Evaluation, evaluate_snapshot
from streaming.group.not_known import not_known
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import NOTHING_ASSIGNED, ClassicMember, Subscription
from tests.streaming.groups import advanced, member, sampled, written

ASSIGNMENT, SUBSCRIPTION = "member_assignment", "member_subscription"
STRATEGIES = (assignor_named("range"), assignor_named("roundrobin"))


def owner(member_id: str, *held: int) -> ClassicMember:
    """Return a member that owns these partitions of `orders`."""
    return member(member_id, {"orders": held})


def without(what: str, one: ClassicMember) -> ClassicMember:
    """Return the member with its subscription or assignment unknown."""
    return replace(one, assignment=None) if what == ASSIGNMENT else replace(one, subscription=None)


def evaluated(*members: ClassicMember) -> Evaluation:
    """Return the verdicts for a group whose topic has four partitions."""
    found = evaluate_snapshot(advanced([written(10, 3, members), sampled(11_000, orders=4)]), STRATEGIES)
    assert found is not None
    return found


def last_rebalance(before: list[ClassicMember], after: list[ClassicMember]) -> tuple[Rebalance, GroupState]:
    """Return the rebalance between two generations, and the stored state."""
    update = apply_batch(GroupState(GroupSnapshot("g")), [written(10, 3, before), written(11, 4, after)], STRATEGIES)
    return update.rebalances[-1].rebalance, update.record


@pytest.mark.parametrize("what", [ASSIGNMENT, SUBSCRIPTION])
def test_the_group_is_stable_with_all_members_and_names_the_unknown_part(what: str) -> None:
    """Before, the bytes of one member made the whole group Unknown, without members."""
    group = advanced([written(10, 3, [owner("a", 0, 1), without(what, owner("b", 2, 3))])])
    assert (group.state, group.member_count(), group.generation_id) == ("Stable", 2, 3)
    assert not_known(group) == (what,)


@pytest.mark.parametrize("what", [ASSIGNMENT, SUBSCRIPTION])
def test_the_verdict_is_unknown_with_a_reason_and_final(what: str) -> None:
    """Before, undecodable bytes counted as empty, so partitions with a possible owner were unassigned."""
    found = evaluated(owner("a", 0, 1), without(what, owner("b", 2, 3)))
    assert {(drift.verdict, drift.reason) for drift in found.drifts} == {(UNKNOWN, what)}
    assert {drift.drift_partitions for drift in found.drifts} == {None}
    assert found.is_complete
    assert what in found.not_known


def test_the_imbalance_is_unknown_with_an_unknown_assignment() -> None:
    """A member with an unknown assignment does not own 0 partitions."""
    found = evaluated(owner("a", 0, 1), without(ASSIGNMENT, owner("b", 2, 3)))
    assert {one.unknown_reason for one in found.imbalances} == {ASSIGNMENT}
    assert {one.total for one in found.imbalances} == {None}


def test_with_an_unknown_subscription_only_the_score_is_unknown() -> None:
    """The owners are known, but the fairest assignment depends on the subscriptions."""
    found = evaluated(owner("a", 0, 1, 2), without(SUBSCRIPTION, owner("b", 3)))
    by_member = found.imbalances[0]
    assert (by_member.largest, by_member.smallest) == (3, 1)
    assert (by_member.score, by_member.score_reason) == (None, SUBSCRIPTION)


def test_partitions_of_a_member_with_unknown_subscription_exist() -> None:
    """Before, its topics were not sampled, so each of its partitions was an `unknown_partition`."""
    group = advanced([written(10, 3, [without(SUBSCRIPTION, owner("a", 0, 1))])])
    assert group.subscribed_topics() == ("orders",)
    evaluation = evaluated(without(SUBSCRIPTION, owner("a", 0, 1, 2, 3)))
    assert {drift.violations for drift in evaluation.drifts} == {()}


def test_two_owners_among_the_other_members_are_reported() -> None:
    """Before, the unknown bytes of a third member hid them. Without such a violation, the result is still unknown."""
    twice = [owner("a", 0, 1), owner("b", 1, 2), without(ASSIGNMENT, owner("c"))]
    update = apply_batch(GroupState(GroupSnapshot("g")), [written(10, 3, twice)], STRATEGIES)
    shown = evaluate(RecordedGroup("g", update.record, state="Stable"))
    assignment = shown.assignment
    assert (assignment.owned_twice_partitions, assignment.not_subscribed_partitions, assignment.unowned_partitions) == (
        1,
        None,
        None,
    )
    assert [trouble.word for trouble in shown.troubles] == ["two owners"]


def test_proven_causes_stay() -> None:
    """Joined and left members are known without the bytes of a third member."""
    unknown = without(ASSIGNMENT, without(SUBSCRIPTION, owner("b", 2, 3)))
    found, record = last_rebalance([owner("a", 0, 1), owner("b", 2, 3)], [owner("a", 0, 1), unknown, owner("c")])
    assert found.causes == ("member_joined",)
    assert found.not_known == (SUBSCRIPTION, ASSIGNMENT)
    assert (found.movement.moved_partitions, found.movement.fewest_moves) == (None, None)
    assert found.movement.unowned == ()
    assert [change.key for change in found.changes] == ["c"], "b's present partitions are unknown, so b lost nothing"
    assert record.unowned_partitions() is None


def test_a_cause_that_may_be_in_the_unknown_bytes_is_unknown_and_not_unexplained() -> None:
    """The member may have changed its subscription."""
    before = [owner("a", 0, 1), owner("b", 2, 3)]
    found, _ = last_rebalance(before, [owner("a", 0, 1), without(SUBSCRIPTION, owner("b", 2, 3))])
    assert found.causes is None
    assert found.primary_cause is None


@pytest.mark.parametrize(
    ("members", "subscriptions", "why"),
    [
        ([owner("a"), without(SUBSCRIPTION, owner("b"))], 1, "the other member may subscribe to the same topics"),
        ([without(SUBSCRIPTION, owner("a")), without(SUBSCRIPTION, owner("b"))], None, "all are unknown"),
        (
            [owner("a"), member("b", topics=["sales"]), without(SUBSCRIPTION, owner("c"))],
            2,
            "two subscriptions certainly differ",
        ),
    ],
)
def test_an_unknown_subscription_is_not_a_different_subscription(
    members: list[ClassicMember], subscriptions: int | None, why: str
) -> None:
    """Before, it counted as a subscription of its own. So `subscription_mismatch` was active without a mismatch."""
    found, record = last_rebalance([owner("a")], members)
    assert found.claims.subscriptions == subscriptions, why
    is_active = SUBSCRIPTION_MISMATCH in conditions(record.rebalance_history.recent, 3_600_000, Limits())
    assert is_active == (subscriptions == 2), why


def test_moves_are_known_one_generation_after_the_bytes_are_known() -> None:
    """The previous owners are unknown, so the moves are unknown. One rebalance later they are known."""
    unknown = [owner("a", 0, 1), without(ASSIGNMENT, owner("b", 2, 3))]
    found, _ = last_rebalance(unknown, [owner("a", 0, 1), owner("b", 2, 3)])
    assert found.movement.moved_partitions is None
    again, _ = last_rebalance([owner("a", 0, 1), owner("b", 2, 3)], [owner("a", 0, 2), owner("b", 1, 3)])
    assert again.movement.moved_partitions == 2


def test_a_topic_that_the_group_left_is_removed_although_one_member_has_no_assignment() -> None:
    """Before, an empty assignment counted as undecodable, so the lag of an unread topic grew without end."""
    nothing = replace(owner("b"), assignment=NOTHING_ASSIGNED)
    group = advanced([written(10, 3, [owner("a", 0, 1), nothing])])
    assert read_topics(group) == ReadTopics("Stable", frozenset({"orders"}))
    unknown = advanced([written(10, 3, [owner("a", 0, 1), without(ASSIGNMENT, owner("b"))])])
    assert read_topics(unknown) == ReadTopics("Stable", None)


def test_a_member_without_an_assignment_in_the_record_owns_nothing_and_the_verdict_is_known() -> None:
    """sarama, kafka-go and KafkaJS write no assignment for a member without partitions."""
    found = evaluated(owner("a", 0, 1, 2, 3), replace(owner("b"), assignment=NOTHING_ASSIGNED))
    (own,) = [drift for drift in found.drifts if drift.is_group_strategy]
    assert own.verdict == "drift"
    assert found.imbalances[0].smallest == 0


def test_a_member_stored_before_these_fields_existed_is_read() -> None:
    """A checkpoint outlives the program: a new field has a default, which old bytes decode to."""
    subscription = {"version": 3, "topics": ["t"], "user_data": None, "owned": [], "generation_id": -1, "rack_id": None}
    stored = msgspec.msgpack.encode(subscription)
    assert msgspec.msgpack.decode(stored, type=Subscription) == Subscription(3, ("t",), None, (), -1, None)
    leader = msgspec.msgpack.encode({"implementation": "java", "evidence": ["seen"]})
    assert msgspec.msgpack.decode(leader, type=Leader) == Leader("java", ("seen",))
