"""Groups whose assignment the coordinator makes (KIP-848, share, streams): records replayed as it replays them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import (
    CONSUMER,
    SHARE,
    STREAMS,
    DecodeFailed,
    GroupVanished,
    LogEvent,
    Position,
    RegexResolved,
    TopicMetadata,
    TopicsNamed,
    TopicsSampled,
)
from streaming.group.modern import ModernGroup, recount_members
from streaming.group.not_known import not_known
from streaming.group.snapshot import (
    ASSIGNING,
    DEAD,
    EMPTY,
    GONE,
    RECONCILING,
    STABLE,
    UNKNOWN,
    GroupSnapshot,
    GroupTotals,
    Resume,
)
from tests.streaming.groups import (
    advanced,
    at,
    current,
    emptied,
    epoch,
    formed,
    joined,
    left,
    modern_member,
    target,
    target_epoch,
    tombstoned,
    written,
)

STATES = [
    ([joined(0), epoch(1, 1)], ASSIGNING, "epoch 1, targets still those of epoch 0"),
    ([joined(0), epoch(1, 1), target(2), target_epoch(3, 1)], RECONCILING, "targets made, nobody has any yet"),
    (formed(0), STABLE, "the one member has its target"),
    ([*formed(0, 3), current(5, number=2)], RECONCILING, "it is an epoch behind"),
    ([*formed(0, 3), current(5, number=3, state="UnrevokedPartitions")], RECONCILING, "it has to give something up"),
    ([*formed(0, 3), current(5, number=3, state="UnreleasedPartitions")], RECONCILING, "it waits for others"),
    ([*formed(0, 3), joined(5, "n"), epoch(6, 4)], ASSIGNING, "another member came"),
    ([*formed(0, 3), *left(5), epoch(8, 4)], EMPTY, "the last member left"),
    ([*formed(0, 3), tombstoned(5)], DEAD, "deleted"),
    ([epoch(0)], EMPTY, "an epoch and no members"),
    ([epoch(0), target(1)], UNKNOWN, "a target for a member that compaction took away"),
    ([epoch(0), current(1)], UNKNOWN, "the same with what it has"),
    ([epoch(0), current(1), joined(2)], ASSIGNING, "and there it is"),
    ([joined(0), target(1), current(2)], UNKNOWN, "no epoch"),
    ([*formed(0, group_type=SHARE)], STABLE, "ShareGroup: members or none, that is its state"),
    ([joined(0, group_type=SHARE), epoch(1, 1, SHARE)], STABLE, "also before it has targets"),
    ([epoch(0, 1, SHARE)], EMPTY, "a share group without members"),
    ([*formed(0, group_type=STREAMS)], UNKNOWN, "StreamsGroup: readiness of its topology is in no record"),
    ([epoch(0, 1, STREAMS)], EMPTY, "a streams group without members"),
]


@pytest.mark.parametrize(("events", "state", "why"), STATES, ids=[why for *_, why in STATES])
def test_the_state_follows_from_the_records_as_in_the_coordinator(
    events: Sequence[LogEvent], state: str, why: str
) -> None:
    """`ConsumerGroup.maybeUpdateGroupState`; what records do not tell is Unknown."""
    assert advanced(events).state == state, why


TOTALS = [
    (formed(0, 9), GroupTotals(), 9, "rule 2: what came before the first epoch is unknown"),
    ([*formed(0, 3), joined(5, "n"), epoch(6, 4)], GroupTotals(rebalances=1), 4, "rule 4: a member joined"),
    ([*formed(0, 3), *left(5), epoch(8, 4)], GroupTotals(empty_transitions=1), 4, "rule 4: the last one left"),
    ([*formed(0, 3), epoch(5, 7)], GroupTotals(rebalances=4), 7, "epochs compacted away count all the same"),
    ([*formed(0, 3), epoch(5, 2)], GroupTotals(incarnations=2), 2, "rule 5: its deletion was compacted away"),
    ([*formed(0, 3), tombstoned(5), *formed(9, 1)], GroupTotals(incarnations=2), 1, "rule 5: created anew"),
    (
        [written(0, 5), tombstoned(1), *formed(2, 5), joined(7, "n"), epoch(8, 6)],
        GroupTotals(rebalances=1),
        6,
        "rule 6: upgraded at its generation; then the member that asked for it joins",
    ),
    (
        [*formed(0, 5), tombstoned(5), written(6, 5), written(7, 6)],
        GroupTotals(rebalances=1),
        6,
        "rule 6: downgraded at its epoch; then the classic members rebalance",
    ),
    (
        [emptied(0, 5), tombstoned(1), *formed(2, 1)],
        GroupTotals(),
        1,
        "rule 6: an empty classic group is joined by a KIP-848 member and starts at epoch 1",
    ),
    (
        [epoch(0, 5), tombstoned(1), emptied(2, 0), written(3, 1)],
        GroupTotals(rebalances=1),
        1,
        "rule 6: an empty KIP-848 group is joined by a classic member",
    ),
    (
        [epoch(0, 5, STREAMS), tombstoned(1), emptied(3, 0), written(4, 1)],
        GroupTotals(rebalances=1),
        1,
        "rule 6: an empty streams group is joined by a classic member; its topology's tombstone lies between",
    ),
    (
        [epoch(0, 5, STREAMS), tombstoned(1), written(4, 6)],
        GroupTotals(incarnations=2),
        6,
        "a streams group, and another group's record between",
    ),
    (
        [written(0, 5), tombstoned(1), *formed(3, 6)],
        GroupTotals(incarnations=2),
        6,
        "not the very next record: deleted, and created anew as another type",
    ),
    ([written(0, 5), tombstoned(1), written(2, 6)], GroupTotals(incarnations=2), 6, "the same type: created anew"),
]


@pytest.mark.parametrize(("events", "totals", "generation_id", "why"), TOTALS, ids=[why for *_, why in TOTALS])
def test_epochs_count_as_generations_do(
    events: Sequence[LogEvent], totals: GroupTotals, generation_id: int, why: str
) -> None:
    snapshot = advanced(events)
    assert (snapshot.totals, snapshot.generation_id) == (totals, generation_id), why
    assert snapshot.unsettled_skips == (), "an epoch without a record was compacted away: nothing to be proven"


def test_a_static_member_that_restarts_is_the_same_member_with_another_id() -> None:
    """`replaceStaticMember`: the old id's three entries go, the new id's come, in one append and at the same epoch."""
    static = modern_member(instance_id="i")
    before = [joined(0, "old", static), epoch(1), target(2, "old"), target_epoch(3), current(4, "old")]
    after = advanced([*before, *left(5, "old"), joined(8, "new", static), target(9, "new"), current(10, "new")])
    assert after.state == STABLE
    assert after.totals == GroupTotals()
    assert after.modern is not None
    assert {member_id: one.group_instance_id for member_id, one in after.modern.members.items()} == {"new": "i"}


def test_a_deletion_of_what_was_never_known_leaves_the_group_as_it_is() -> None:
    """Compaction keeps a tombstone for a day after what it deleted is gone."""
    dead = advanced([*formed(0), tombstoned(5)])
    for deletion in left(6):
        assert advanced([deletion], dead) == msgspec.structs.replace(dead, position=deletion.position)


def test_subscriptions_are_names_and_what_expressions_stand_for() -> None:
    by_name, by_regex = modern_member(["a", "b"]), modern_member([], regex="x.*")
    events = [joined(0, "m", by_name), joined(1, "n", by_regex), epoch(2)]
    unresolved = advanced(events)
    assert unresolved.subscribed_topics() == ("a", "b")
    resolved = advanced([RegexResolved(at(3), "x.*", ("x1", "b"))], unresolved)
    assert resolved.subscribed_topics() == ("a", "b", "x1")
    assert resolved.modern is not None
    assert resolved.modern.topics_of("n") == ("b", "x1")
    assert advanced([RegexResolved(at(4), "x.*", None)], resolved).subscribed_topics() == ("a", "b")


def named(sampled_at_ms: int, **topics: str | None) -> TopicsSampled:
    """Return topics of two partitions with their ids, as the driver hands them back; None: no such topic."""
    return TopicsSampled(
        {
            topic: TopicMetadata(2 if topic_id else None, sampled_at_ms, topic_id=topic_id)
            for topic, topic_id in topics.items()
        }
    )


def names_of(snapshot: GroupSnapshot) -> dict[str, str]:
    """Return names by topic id."""
    assert snapshot.modern is not None
    return snapshot.modern.topic_names


def test_topic_ids_get_their_names_from_samples_and_from_older_coordinators_records() -> None:
    group = advanced(formed(0))
    assert group.modern is not None
    assert group.modern.unnamed_topic_ids() == {"id"}
    assert names_of(advanced([named(9, orders="id")], group)) == {"id": "orders"}
    assert names_of(advanced([TopicsNamed(at(9), {"id": "orders"})], group)) == {"id": "orders"}


def test_a_deleted_topic_keeps_its_name_and_loses_it_to_the_one_created_in_its_place() -> None:
    known = advanced([*formed(0), named(9, orders="id")])
    deleted = advanced([named(10, orders=None)], known)
    assert names_of(deleted) == {"id": "orders"}
    recreated = advanced([named(11, orders="new")], deleted)
    assert names_of(recreated) == {"new": "orders"}, "two topics of one name would be one row for two partitions"
    assert recreated.modern is not None
    assert recreated.modern.unnamed_topic_ids() == {"id"}


def test_names_of_topics_nobody_holds_or_subscribes_to_are_given_up() -> None:
    known = advanced([*formed(0), named(9, orders="id"), target(10, held=(("other", (0,)),))])
    without = advanced([current(11, held=()), target(12, held=()), named(13, orders="new")], known)
    assert names_of(without) == {"new": "orders"}


@pytest.mark.parametrize("events", [formed(0), [written(0, 3)], [epoch(0, 1, STREAMS)]])
def test_a_group_the_brokers_list_no_more_is_gone_until_a_record_tells_otherwise(events: Sequence[LogEvent]) -> None:
    """An outage longer than `delete.retention.ms` loses the tombstone: without a listing the group would live on."""
    alive = advanced(events)
    assert alive.position is not None
    last = alive.position.offsets_topic_offset
    gone = advanced([GroupVanished(last, 99_000)], alive)
    assert (gone.state, gone.totals, gone.subscribed_topics(), gone.member_count()) == (GONE, alive.totals, (), 0)
    assert gone.position == Position(0, last, 99_000), "known to be gone since the listing"
    assert advanced([GroupVanished(last - 1, 99)], alive) == alive, "rule 9: a record came after the listing"
    back = advanced([written(20, 1)], gone)
    assert (back.state, back.totals.incarnations) == (STABLE, 2)
    dead = advanced([tombstoned(20)], gone)
    assert advanced([GroupVanished(20, 99)], dead).state == DEAD


# Rule 10: read again from the start, counting from where an earlier checkpoint's tables end.


@st.composite
def logs(draw: st.DrawFn) -> list[LogEvent]:
    """Draw a group's log: classic and KIP-848 records, deletions, all in any order."""
    makers = st.sampled_from(
        [
            lambda offset, number: [written(offset, number)],
            lambda offset, number: [emptied(offset, number)],
            lambda offset, _: [tombstoned(offset)],
            formed,
            lambda offset, number: [epoch(offset, number)],
            lambda offset, _: [joined(offset, "n")],
            lambda offset, _: left(offset),
            lambda offset, number: [target(offset), target_epoch(offset + 1, number)],
            lambda offset, number: [current(offset, number=number)],
        ]
    )
    steps = draw(st.lists(st.tuples(makers, st.integers(0, 5), st.integers(0, 2)), max_size=10))
    offset, events = 0, []
    for make, number, gap in steps:
        made = make(offset + gap, number)
        events += made
        offset += gap + len(made)
    return events


@given(logs(), st.data())
def test_a_rebuilt_group_ends_as_the_one_that_was_never_interrupted(
    events: list[LogEvent], data: st.DataObject
) -> None:
    """`rebuild` starts a new checkpoint over old tables: members are read again, and nothing is counted twice."""
    uninterrupted = advanced(events)
    until = data.draw(st.integers(0, len(events)))
    then = advanced(events[:until])
    if then.position is None:
        return
    resume = Resume(then.position.offsets_topic_offset, then.group_type, then.state, then.generation_id, then.totals)
    rebuilt = advanced(events, GroupSnapshot("g", totals=then.totals, resume=resume))
    assert msgspec.structs.replace(rebuilt, resume=None, unsettled_skips=()) == msgspec.structs.replace(
        uninterrupted, unsettled_skips=()
    )


@given(logs(), st.data())
def test_where_compaction_left_nothing_the_tables_word_stands(events: list[LogEvent], data: st.DataObject) -> None:
    until = data.draw(st.integers(1, len(events))) if events else 0
    then = advanced(events[:until])
    if then.position is None:
        return
    resume = Resume(then.position.offsets_topic_offset, then.group_type, then.state, then.generation_id, then.totals)
    rebuilt = advanced([tombstoned(500)], GroupSnapshot("g", totals=then.totals, resume=resume))
    assert (rebuilt.state, rebuilt.totals, rebuilt.generation_id) == (DEAD, then.totals, then.generation_id)


@given(logs())
def test_any_log_of_any_types_keeps_the_entries_of_one_life_only(events: list[LogEvent]) -> None:
    """Laws: a dead group has no members; strays are those that have something and never described themselves."""
    for end in range(len(events) + 1):
        snapshot = advanced(events[:end])
        if snapshot.is_over:
            assert (snapshot.classic, snapshot.modern) == (None, None)
        if (modern := snapshot.modern) is not None:
            assert snapshot.group_type == CONSUMER
            assert modern.strays == {*modern.targets, *modern.currents} - modern.members.keys()
            assert modern == recount_members(modern), "counted along the way is as counted at the end"


def test_a_rebalance_of_a_thousand_members_looks_at_each_record_once() -> None:
    """3,000 records of one rebalance; were each to look at every member, it would be three million looks."""
    ids = [f"{number:04}" for number in range(1_000)]
    offsets = iter(range(10_000))
    joins = [joined(next(offsets), member_id) for member_id in ids]
    records = chain(
        joins,
        [epoch(next(offsets), 3)],
        [target(next(offsets), member_id) for member_id in ids],
        [target_epoch(next(offsets), 3)],
        [current(next(offsets), member_id) for member_id in ids],
    )
    snapshot = advanced(records)
    assert (snapshot.state, snapshot.member_count()) == (STABLE, 1_000)
    assert snapshot.modern is not None
    assert snapshot.modern.not_known() == ()


@pytest.mark.parametrize(
    ("group", "missing"),
    [
        (ModernGroup(), ("group_epoch",)),
        (ModernGroup(epoch=1, strays=frozenset({"m"})), ("member_metadata",)),
        (ModernGroup(epoch=1, members={"m": modern_member()}), ("current_assignment",)),
        (
            ModernGroup(epoch=1, assignment_epoch=1, members={"m": modern_member()}),
            ("current_assignment", "target_assignment"),
        ),
        (ModernGroup(epoch=2, assignment_epoch=1), ()),
    ],
)
def test_what_is_missing_is_named(group: ModernGroup, missing: tuple[str, ...]) -> None:
    assert group.not_known() == missing


@pytest.mark.parametrize(
    ("wishes", "assignor"),
    [
        ([], None),
        ([None, None], None),
        ([None, "range"], "range"),
        (["uniform", "range", "uniform"], "uniform"),
        (["uniform", "range"], None),
    ],
)
def test_the_groups_assignor_is_the_one_most_members_ask_for(wishes: list[str | None], assignor: str | None) -> None:
    """`ModernGroup.computePreferredServerAssignor`. Of equals it may be any, so none is named."""
    members = {str(number): modern_member(server_assignor=wish) for number, wish in enumerate(wishes)}
    assert ModernGroup(members=members).server_assignor() == assignor


def test_positions_are_kept_for_records_of_members_too() -> None:
    """Rule 1 holds for every record: a batch read again adds nothing."""
    once = advanced(formed(0))
    assert advanced(formed(0), once) == once
    assert once.position == Position(0, 4, 4_000)


def unreadable(offsets_topic_offset: int, entry: str, entry_of: str = "", group_type: str = CONSUMER) -> LogEvent:
    """Return a record whose value nobody could read."""
    return DecodeFailed(at(offsets_topic_offset), group_type, entry, entry_of)


@pytest.mark.parametrize(
    ("events", "state", "why"),
    [
        ([*formed(0), unreadable(5, "current", "m")], UNKNOWN, "what the member has now nobody knows"),
        ([*formed(0), unreadable(5, "current", "m"), current(6)], STABLE, "its next one tells"),
        (
            [*formed(0), unreadable(5, "member", "n"), epoch(6, 4)],
            UNKNOWN,
            "no group without members",
        ),
        ([unreadable(0, "member", "n"), epoch(1)], UNKNOWN, "Kafka 3.7's early access: only epochs can be read"),
        (
            [*formed(0), unreadable(5, "current", "m"), *left(6), epoch(9, 4)],
            EMPTY,
            "the member is gone, all of it",
        ),
        ([*formed(0), unreadable(5, "group"), epoch(6, 5)], ASSIGNING, "the next epoch tells"),
        ([*formed(0), unreadable(5, "group"), tombstoned(6)], DEAD, "its end is its end"),
    ],
)
def test_a_record_nobody_could_read_leaves_the_state_open_until_the_next_of_its_kind(
    events: Sequence[LogEvent], state: str, why: str
) -> None:
    """Rule 2: never the last value. Members in quarantine beside a readable epoch once looked like an Empty group."""
    assert advanced(events).state == state, why


def test_a_classic_group_whose_last_record_went_to_quarantine_is_unknown_until_the_next() -> None:
    known = advanced([written(0, 4)])
    lost = advanced([unreadable(1, "group", group_type="classic")], known)
    assert (lost.state, lost.generation_id, lost.classic, lost.totals) == (UNKNOWN, None, None, known.totals)
    assert not_known(lost) == ("unreadable_record",)
    found = advanced([written(2, 9)], lost)
    assert (found.state, found.totals) == (STABLE, GroupTotals()), "how many there were in between nobody knows"
