"""One member whose bytes nobody could read costs what needs them and nothing else; "unknown" is never "nothing"."""

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
from streaming.evaluation.rebalances.rebalances import Rebalance
from streaming.evaluation.snapshot_evaluation import Evaluation, evaluate_snapshot
from streaming.group.not_known import not_known
from streaming.group.snapshot import GroupSnapshot
from streaming.protocol.classic import NOTHING_ASSIGNED, ClassicMember, Subscription
from tests.streaming.groups import advanced, member, sampled, written

ASSIGNMENT, SUBSCRIPTION = "member_assignment", "member_subscription"
STRATEGIES = (assignor_named("range"), assignor_named("roundrobin"))


def holds(member_id: str, *held: int) -> ClassicMember:
    """Return a member that holds these partitions of `orders`."""
    return member(member_id, {"orders": held})


def without(what: str, one: ClassicMember) -> ClassicMember:
    """Return the member with its subscription or assignment unknown."""
    return replace(one, assignment=None) if what == ASSIGNMENT else replace(one, subscription=None)


def evaluated(*members: ClassicMember) -> Evaluation:
    """Return the verdicts on a group whose topic has four partitions."""
    found = evaluate_snapshot(advanced([written(10, 3, members), sampled(11_000, orders=4)]), STRATEGIES)
    assert found is not None
    return found


def last_rebalance(before: list[ClassicMember], after: list[ClassicMember]) -> tuple[Rebalance, GroupState]:
    """Return what happened between two generations, and what is kept of the group."""
    update = apply_batch(GroupState(GroupSnapshot("g")), [written(10, 3, before), written(11, 4, after)], STRATEGIES)
    return update.rebalances[-1].rebalance, update.record


@pytest.mark.parametrize("what", [ASSIGNMENT, SUBSCRIPTION])
def test_the_group_is_stable_with_all_its_members_and_names_what_is_unknown(what: str) -> None:
    """The whole group was Unknown, without members, for one member's bytes."""
    group = advanced([written(10, 3, [holds("a", 0, 1), without(what, holds("b", 2, 3))])])
    assert (group.state, group.member_count(), group.generation_id) == ("Stable", 2, 3)
    assert not_known(group) == (what,)


@pytest.mark.parametrize("what", [ASSIGNMENT, SUBSCRIPTION])
def test_the_verdict_is_unknown_by_name_and_final(what: str) -> None:
    """Unknown bytes were read as no bytes: partitions that somebody may hold were called unassigned."""
    found = evaluated(holds("a", 0, 1), without(what, holds("b", 2, 3)))
    assert {(drift.verdict, drift.reason) for drift in found.drifts} == {(UNKNOWN, what)}
    assert {drift.drift_partitions for drift in found.drifts} == {None}
    assert found.is_complete
    assert what in found.not_known


def test_how_even_the_work_is_shared_is_unknown_where_some_of_it_is() -> None:
    """A member whose assignment is unknown does not hold 0 partitions."""
    found = evaluated(holds("a", 0, 1), without(ASSIGNMENT, holds("b", 2, 3)))
    assert {one.unknown_reason for one in found.imbalances} == {ASSIGNMENT}
    assert {one.total for one in found.imbalances} == {None}


def test_numbers_stay_and_the_score_is_unknown_where_a_subscription_is() -> None:
    """Who holds what is known; what is the fairest division hangs on who subscribes to what."""
    found = evaluated(holds("a", 0, 1, 2), without(SUBSCRIPTION, holds("b", 3)))
    by_member = found.imbalances[0]
    assert (by_member.largest, by_member.smallest) == (3, 1)
    assert (by_member.score, by_member.score_reason) == (None, SUBSCRIPTION)


def test_partitions_of_a_member_without_a_subscription_are_real_ones() -> None:
    """Its topics were not sampled, so each partition it held was an `unknown_partition`."""
    group = advanced([written(10, 3, [without(SUBSCRIPTION, holds("a", 0, 1))])])
    assert group.subscribed_topics() == ("orders",)
    evaluation = evaluated(without(SUBSCRIPTION, holds("a", 0, 1, 2, 3)))
    assert {drift.violations for drift in evaluation.drifts} == {()}


def test_two_owners_among_the_other_members_are_shown() -> None:
    """The unread bytes of a third member made it unknown; that no law is broken is unknown still."""
    twice = [holds("a", 0, 1), holds("b", 1, 2), without(ASSIGNMENT, holds("c"))]
    update = apply_batch(GroupState(GroupSnapshot("g")), [written(10, 3, twice)], STRATEGIES)
    shown = evaluate(RecordedGroup("g", update.record, state="Stable"))
    violations = shown.assignment
    assert (violations.owned_twice_partitions, violations.not_subscribed_partitions, violations.unowned_partitions) == (
        1,
        None,
        None,
    )
    assert [trouble.word for trouble in shown.troubles] == ["two owners"]


def test_causes_that_are_proven_stay() -> None:
    """Who came and who went does not need the bytes of a third member."""
    unknown = without(ASSIGNMENT, without(SUBSCRIPTION, holds("b", 2, 3)))
    found, record = last_rebalance([holds("a", 0, 1), holds("b", 2, 3)], [holds("a", 0, 1), unknown, holds("c")])
    assert found.causes == ("member_joined",)
    assert found.not_known == (SUBSCRIPTION, ASSIGNMENT)
    assert (found.movement.moved_partitions, found.movement.fewest_moves) == (None, None)
    assert found.movement.unowned == ()
    assert [change.key for change in found.changes] == ["c"], "what b has now is unknown, so it lost nothing"
    assert record.unowned_partitions() is None


def test_a_cause_that_may_be_in_the_unread_bytes_is_unknown_and_not_unexplained() -> None:
    """The member may have changed its subscription: nobody knows."""
    before = [holds("a", 0, 1), holds("b", 2, 3)]
    found, _ = last_rebalance(before, [holds("a", 0, 1), without(SUBSCRIPTION, holds("b", 2, 3))])
    assert found.causes is None
    assert found.primary_cause is None


def test_moves_are_known_again_one_generation_after_the_bytes_are() -> None:
    """What somebody had before is unknown, so how much moved is too; one rebalance later it is known."""
    unknown = [holds("a", 0, 1), without(ASSIGNMENT, holds("b", 2, 3))]
    found, _ = last_rebalance(unknown, [holds("a", 0, 1), holds("b", 2, 3)])
    assert found.movement.moved_partitions is None
    again, _ = last_rebalance([holds("a", 0, 1), holds("b", 2, 3)], [holds("a", 0, 2), holds("b", 1, 3)])
    assert again.movement.moved_partitions == 2


def test_a_topic_that_the_group_left_leaves_although_one_member_was_given_nothing() -> None:
    """An assignment of no bytes was "not read", so the lag of a topic that nobody reads grew for ever."""
    nothing = replace(holds("b"), assignment=NOTHING_ASSIGNED)
    group = advanced([written(10, 3, [holds("a", 0, 1), nothing])])
    assert read_topics(group) == ReadTopics("Stable", frozenset({"orders"}))
    unknown = advanced([written(10, 3, [holds("a", 0, 1), without(ASSIGNMENT, holds("b"))])])
    assert read_topics(unknown) == ReadTopics("Stable", None)


def test_a_member_that_the_leader_left_out_has_nothing_and_the_verdict_is_known() -> None:
    """sarama, kafka-go and KafkaJS write no assignment for a member that gets nothing."""
    found = evaluated(holds("a", 0, 1, 2, 3), replace(holds("b"), assignment=NOTHING_ASSIGNED))
    (own,) = [drift for drift in found.drifts if drift.is_group_strategy]
    assert own.verdict == "drift"
    assert found.imbalances[0].smallest == 0


def test_a_member_stored_before_these_fields_were_there_is_read() -> None:
    """A checkpoint outlives the program: a field more has a default that old bytes decode to."""
    subscription = {"version": 3, "topics": ["t"], "user_data": None, "owned": [], "generation_id": -1, "rack_id": None}
    stored = msgspec.msgpack.encode(subscription)
    assert msgspec.msgpack.decode(stored, type=Subscription) == Subscription(3, ("t",), None, (), -1, None)
    leader = msgspec.msgpack.encode({"implementation": "java", "evidence": ["seen"]})
    assert msgspec.msgpack.decode(leader, type=Leader) == Leader("java", ("seen",))
