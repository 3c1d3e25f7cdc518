"""Tests of polls and the known state: rows make the state equal to the poll, and a repeated poll gives no rows."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from assignors import assignor_named
from streaming.combine.combiner import GROUP_KIND, StateRow
from streaming.combine.commits import COMMIT_SCHEMA
from streaming.combine.partition_state import (
    PartitionBatch,
    PartitionSnapshot,
    advance_partition,
    decode_partition_event,
    table_of,
)
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.events import POLLED_PARTITION, LogEvent, decode_event
from streaming.group.listing import Description, GroupNotFound, Unanswered
from streaming.group.snapshot import GroupSnapshot
from streaming.polled.differences import (
    NUMBERS_PER_MS,
    POLLED_PARTITIONS,
    KnownState,
    commits_by_group,
    differences,
    polled_partition,
)
from streaming.polled.poll import Poll
from streaming.state.committed_offsets import CommittedOffsets
from tests.streaming.polled.answers import START_MS, classic, classic_member, modern, modern_member, polled

STRATEGIES = (assignor_named("range"),)
LOADING = Unanswered("coordinator_load_in_progress")
GROUP_IDS = ("g", "h", "ü")

DESCRIPTIONS: st.SearchStrategy[Description] = st.sampled_from(
    [
        classic(),
        classic(classic_member("a", [0, 1])),
        classic(classic_member("a", [0]), classic_member("b", [1])),
        classic(classic_member("a"), state="PreparingRebalance"),
        modern(3, modern_member("a", [0], epoch=3, target=[0])),
        modern(4, modern_member("a", [0], epoch=4, target=[0, 1]), state="Reconciling"),
        modern(5, state="Empty"),
        GroupNotFound(),
        LOADING,
    ]
)
OFFSETS = st.one_of(
    st.just(LOADING),
    st.dictionaries(st.tuples(st.sampled_from(["t", "u"]), st.integers(0, 1)), st.integers(0, 2), max_size=3),
)


@st.composite
def polls(draw: st.DrawFn) -> Poll:
    """Draw a poll. Offsets are requested only for listed groups, so not for deleted groups."""
    groups = draw(st.dictionaries(st.sampled_from(GROUP_IDS), DESCRIPTIONS))
    offsets = {
        group_id: draw(OFFSETS)
        for group_id, description in groups.items()
        if not isinstance(description, GroupNotFound)
    }
    return polled(groups, offsets)


class State:
    """The query's state and the committed offsets after each batch."""

    def __init__(self) -> None:
        self.records: dict[str, GroupState] = {}
        self.partition_states: dict[int, PartitionSnapshot] = {}
        self.committed_offsets = CommittedOffsets()
        self.rows_reported = 0

    def known(self) -> KnownState:
        """Return the known state that the poller reads."""
        polled_state = self.partition_states.get(POLLED_PARTITION, PartitionSnapshot(POLLED_PARTITION))
        groups = {group_id: record.snapshot for group_id, record in self.records.items()}
        return KnownState(groups, commits_by_group(self.committed_offsets.view().commits), polled_state.last_offset)

    def take(self, rows: tuple[StateRow, ...]) -> None:
        """Run a batch."""
        for kind, state_key, payload in rows:
            if kind == GROUP_KIND:
                record = self.records.get(state_key, GroupState(GroupSnapshot(state_key)))
                update = apply_batch(record, [decode_event(payload)], STRATEGIES)
                self.records[state_key] = update.record
                self.rows_reported += len(update.history)
            else:
                event = decode_partition_event(payload)
                assert isinstance(event, PartitionBatch)
                known = self.partition_states.get(
                    event.offsets_topic_partition, PartitionSnapshot(event.offsets_topic_partition)
                )
                self.partition_states[event.offsets_topic_partition] = advance_partition(known, event)[0]
                self.committed_offsets.apply(table_of(event.commits, COMMIT_SCHEMA))


def _check_equal(state: State, poll: Poll) -> None:
    """Check that the state equals the poll, and that unanswered parts did not change."""
    known = state.known()
    for group_id, description in poll.descriptions.items():
        snapshot = known.groups.get(group_id)
        if isinstance(description, GroupNotFound):
            assert snapshot is None or snapshot.is_over
            assert group_id not in known.commits
        elif not isinstance(description, Unanswered):
            assert snapshot is not None
            assert (snapshot.group_type, snapshot.state) == (description.group_type, description.state)
            assert snapshot.member_count() == len(description.members)
    for group_id, answer in poll.offsets.items():
        if not isinstance(answer, Unanswered):
            assert known.commits.get(group_id, {}) == answer


@given(st.lists(polls(), max_size=6))
def test_after_its_rows_the_state_equals_the_poll_and_the_same_poll_gives_no_rows(drawn_polls: list[Poll]) -> None:
    """The whole contract of the poller includes restarts between polls, because the poller keeps no state."""
    state = State()
    last_number = -1
    for poll in drawn_polls:
        found = differences(poll, state.known())
        assert found.first_number > last_number
        state.take(found.rows)
        last_number = found.last_number if found.rows else last_number
        _check_equal(state, poll)
        assert differences(poll, state.known()).rows == ()


@given(polls())
def test_rows_that_are_applied_twice_change_nothing(poll: Poll) -> None:
    """Rule 3: an interrupted batch runs again with the same file."""
    state = State()
    rows = differences(poll, state.known()).rows
    state.take(rows)
    before, reported = state.known(), state.rows_reported
    state.take(rows)
    assert (state.known(), state.rows_reported) == (before, reported)


@given(polls())
def test_every_event_has_its_own_position(poll: Poll) -> None:
    """Tables are idempotent by position, so two groups must not share one."""
    found = differences(poll, KnownState())
    events = [decode_event(payload) for kind, _, payload in found.rows if kind == GROUP_KIND]
    positions = [event.position for event in events if isinstance(event, LogEvent)]
    assert [position.offsets_topic_offset for position in positions] == list(
        range(found.first_number, found.first_number + len(events))
    )
    assert {position.offsets_topic_partition for position in positions} <= {POLLED_PARTITION}
    assert not events or found.last_number == positions[-1].offsets_topic_offset


def test_numbers_follow_the_clock_and_are_always_above_applied_numbers() -> None:
    """They also increase after a new checkpoint without numbers, and after a clock was set back."""
    poll = polled({"g": classic()})
    assert differences(poll, KnownState()).first_number == START_MS * NUMBERS_PER_MS
    ahead = START_MS * NUMBERS_PER_MS + 7
    assert differences(poll, KnownState(last_number=ahead)).first_number == ahead + 1
    assert ahead < 2**48, "positions are packed with their partition into 64 bits"


def test_a_mark_is_a_row_without_news_that_shows_the_progress_of_polling() -> None:
    """Readiness waits until the first complete poll has passed the query, also on a cluster without groups."""
    found = differences(polled({}), KnownState(), is_marked=True)
    [(partition, state_key, payload)] = found.rows
    batch = decode_partition_event(payload)
    assert isinstance(batch, PartitionBatch)
    assert (partition, state_key, batch.last_offset) == ("partition", "-1", found.last_number)
    assert (batch.records_read, batch.commits) == ({}, b"")
    assert differences(polled({}), KnownState()).rows == ()


def test_undecodable_bytes_are_quarantined_once_with_their_group() -> None:
    """A poll every five seconds must not fill the quarantine table with the same member."""
    hostile = classic(classic_member("x", [0], subscription=b"\x00"))
    state = State()
    state.take(differences(polled({"g": hostile}), state.known()).rows)
    assert state.partition_states[POLLED_PARTITION].records_skipped == {"truncated": 1}
    assert differences(polled({"g": hostile}), state.known()).rows == ()


def test_only_partitions_with_changed_commits_have_a_row_beside_the_first() -> None:
    """A partition state is written as a whole. One changed commit must not write a million commits again."""
    offsets: Mapping[str, Mapping[tuple[str, int], int]] = {f"g{number}": {("t", 0): 1} for number in range(200)}
    state = State()
    state.take(differences(polled({}, offsets), state.known()).rows)
    assert set(state.partition_states) == {POLLED_PARTITION - number for number in range(POLLED_PARTITIONS)}
    found = differences(polled({}, {**offsets, "g7": {("t", 0): 2}}), state.known())
    assert {state_key for _, state_key, _ in found.rows} == {"-1", str(polled_partition("g7"))}
