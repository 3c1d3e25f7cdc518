"""Tests of the next offset of a group if the log has markers, holes or an open transaction at its commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.lag import LAG_SCHEMA, MAYBE_ONLY_MARKERS, ClusterSample, lag_report
from streaming.evaluation.lag.lag_evaluation import RetentionInputs, evaluate_lag
from streaming.evaluation.lag.lag_seconds import END_OFFSET_POINTS
from streaming.evaluation.lag.next_offsets import (
    DOUBTED_AFTER_MS,
    FETCHES_PER_SAMPLE,
    FEW_OFFSETS,
    REFUSED_FOR_MS,
    FetchFailure,
    FetchResult,
    NextOffsets,
    TailFetch,
    UnmovedCommits,
    rows_behind,
    rows_with_lag,
    rows_without_proof,
    topic_partitions,
)
from streaming.evaluation.lag.retention.lost_records import LOG_START_POINTS, Losses, losses
from streaming.evaluation.lag.status import BLOCKED_RULE, MARKERS_RULE, Status, is_suspect
from streaming.evaluation.lag.stored.commit_windows import CommitWindows
from streaming.evaluation.lag.stored.sampled_offsets import SampledOffsets
from streaming.protocol.record_batches import Tail

SECOND_MS = 1_000


@dataclass
class Log:
    """One topic partition. `records` are the offsets with a record. All other offsets are markers.

    If `is_compacted` is True, all other offsets are holes.
    """

    end: int = 0
    start: int = 0
    records: set[int] = field(default_factory=set)
    last_stable: int | None = None
    is_readable: bool = True
    aborted: set[int] = field(default_factory=set)
    is_compacted: bool = False
    offsets_per_fetch: int = 1_000_000
    fails: bool = False

    def abort(self, transactions: int, records: int = 1) -> None:
        """Append aborted transactions, each with its records and one marker."""
        for _ in range(transactions):
            self.aborted |= set(range(self.end, self.end + records))
            self.write(records, markers=1)

    def write(self, records: int, markers: int = 0) -> None:
        """Append records, then markers."""
        self.records |= set(range(self.end, self.end + records))
        self.end += records + markers

    def fetch(self, fetch: TailFetch) -> FetchResult:
        """Return the result of a fetch."""
        if not self.is_readable:
            return FetchFailure.REFUSED
        if self.fails or fetch.from_offset < self.start:
            return FetchFailure.FAILED
        last = min(
            self.end if self.last_stable is None else self.last_stable, fetch.from_offset + self.offsets_per_fetch
        )
        later = sorted(offset for offset in self.records if fetch.from_offset <= offset < last)
        committed = [offset for offset in later if offset not in self.aborted]
        read_to = committed[0] if committed else last
        markers = 0 if self.is_compacted else sum(at not in self.records for at in range(fetch.from_offset, read_to))
        is_transactional = markers > 0 or any(offset in self.aborted for offset in later)
        if not committed:
            return Tail(min(later, default=last), False, last, is_transactional)
        return Tail(later[0], True, committed[0], is_transactional)


class Watch:
    """A group on one partition, sampled every five seconds as in `LagWatch`."""

    def __init__(self, log: Log) -> None:
        self.log, self.now_ms, self.fetches = log, 0, 0
        self._ends, self._starts = SampledOffsets(END_OFFSET_POINTS), SampledOffsets(LOG_START_POINTS)
        self._windows, self._unmoved, self._next = CommitWindows(), UnmovedCommits(), NextOffsets()
        self._is_suspect = np.array([False])
        self._losses: Losses = {}
        self._commits = 0
        self.committed = 0

    def commit(self, offset: int) -> None:
        """Read a commit at the present time."""
        self.committed, self._commits = offset, self._commits + 1
        one = (np.array([number]) for number in (0, offset, self.now_ms, self._commits))
        self._windows.put(*one)

    def restart(self, *, has_stored_tails: bool = True) -> None:
        """Restart the monitor. Without stored tails, the file with the samples was lost."""
        self._next = NextOffsets(self._next.stored() if has_stored_tails else None)
        self._unmoved = UnmovedCommits()

    def sample(self, seconds: int = 5, *, has_leader: bool = True) -> dict[str, Any]:
        """Advance the time and return the evaluated row."""
        self.now_ms += seconds * SECOND_MS
        log, at = self.log, ("orders", 0)
        ends, starts = ({at: log.end}, {at: log.start}) if has_leader else ({}, {})
        self._next.forget_topics(topic for topic, _ in self._ends.add(ends, self.now_ms))
        self._starts.add(starts, self.now_ms)
        columns = [["g"], ["orders"], [0], [self.committed], [self.now_ms]]
        commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
        report = lag_report(commits, ClusterSample(self.now_ms, {}, ends, starts))
        unmoved = self._unmoved.for_ms(np.array([0]), np.array([self.committed]), self.now_ms)
        behind = rows_with_lag(report, unmoved, self._is_suspect)
        asked = np.union1d(behind, rows_without_proof(report, self._next.topics_without_proof))
        stable = {of: log.last_stable for of in topic_partitions(report, asked) if log.last_stable is not None}
        self._next.add_stable_offsets(stable, ends)
        rows = rows_behind(report, behind, unmoved, stable)
        fetches = self._next.due_fetches(report, rows, self.now_ms, ["orders"] if log.is_compacted else [])
        self.fetches += len(fetches)
        self._next.add_results({fetch: log.fetch(fetch) for fetch in fetches}, self.now_ms)
        report = self._next.apply(report, rows)
        if report.partitions["lag"][0].is_valid:
            next_offset = report.partitions["next_offset"].to_numpy()
            self._windows.observe(np.array([0]), np.array([self._commits]), next_offset, np.array([log.end]))
        windows = self._windows.as_of(np.array([0]), np.array([self._commits]))
        retained = RetentionInputs(self._losses)
        evaluated = evaluate_lag(report, self._ends, self._starts, windows, pa.array([self.now_ms]), retained=retained)
        self._losses = losses(evaluated.partitions, self._losses)
        self._is_suspect = is_suspect(evaluated.partitions)
        (row,) = evaluated.partitions.to_pylist()
        return dict(row)


def idle_after_a_transaction(*, is_readable: bool = True) -> Watch:
    """Return a group that committed after a transaction's last record and before its marker."""
    watch = Watch(Log(is_readable=is_readable))
    for _ in range(10):
        watch.log.write(records=4, markers=1)
        watch.commit(watch.log.end - 1)
        watch.sample(1)
    return watch


def test_a_commit_before_the_marker_of_a_transaction_has_no_lag():
    """Before (defect 2), such a group was always one record late, its seconds grew, and KafkaGroupLagging fired."""
    watch = idle_after_a_transaction()
    for _ in range(100):
        row = watch.sample()
        assert (row["lag"], row["lag_seconds"], row["lag_seconds_kind"]) == (0, 0.0, "exact")
        assert Status(row["status"]) is Status.OK
        assert row["unknown_reason"] is None
    assert watch.fetches <= 2, "one fetch in all, not one per sample"


def test_retention_that_removes_only_a_marker_loses_no_record():
    """Before (defect 2), the log start moved past the marker, records_lost was 1, and KafkaRecordsLost fired."""
    watch = idle_after_a_transaction()
    watch.sample()
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] == 0
    watch.log.write(records=5)
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] is None, "offsets 50 to 54 were never fetched: few offsets, so unknown"
    watch.log.write(records=FEW_OFFSETS)
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] is None, "the topic has transactions, and all of them may be aborted"


def test_records_that_a_fetch_found_are_lost_if_retention_deletes_them():
    """Rule 1 of `lost_records.py`. The loss is known although the topic has transactions."""
    watch = idle_after_a_transaction()
    watch.log.write(records=500)
    assert watch.sample()["record_offset"] == 50
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] == 500, "from the first record: the marker before it is no loss"


def test_a_busy_transactional_group_is_not_slower_than_its_producers():
    """Its lag is 1 at each sample and never lower. By the lag alone the status would be WARN."""
    watch = Watch(Log())
    for _ in range(30):
        watch.log.write(records=4, markers=1)
        watch.commit(watch.log.end - 1)
        row = watch.sample(1)
        assert row["status"] in {None, Status.OK}
        assert row["lag"] in {0, 1}
    assert Status(row["status"]) is Status.OK


def test_without_read_permission_the_lag_is_unknown():
    """READ on users' topics is optional."""
    watch = idle_after_a_transaction(is_readable=False)
    for _ in range(1 + DOUBTED_AFTER_MS // 5_000):
        row = watch.sample()
        assert row["status"] in {None, Status.OK}
    assert (row["lag"], row["unknown_reason"]) == (None, MAYBE_ONLY_MARKERS)
    assert (row["lag_seconds"], row["lag_seconds_kind"], row["status"]) == (None, "unknown", None)
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] is None
    assert watch.fetches == 1, "a topic without permission is not fetched at each sample"
    watch.sample(REFUSED_FOR_MS // SECOND_MS)
    watch.log.start = 0
    watch.sample()
    assert watch.fetches == 2


@pytest.mark.parametrize("is_readable", [True, False])
def test_a_group_that_leaves_records_unread_is_late(is_readable: bool):
    """Real silence is found: with READ from the first record on, without READ from FEW_OFFSETS on."""
    watch = Watch(Log(is_readable=is_readable))
    watch.log.write(records=20)
    for offset in range(10):
        watch.log.write(records=1)
        watch.commit(offset)
        watch.sample(1)
    for _ in range(30):
        row = watch.sample()
    assert (row["lag"], Status(row["status"])) == (21, Status.STOP)
    assert row["lag_seconds"] > 100


def test_one_waiting_record_is_found_by_a_fetch():
    watch = idle_after_a_transaction()
    watch.sample()
    watch.log.write(records=1)
    for _ in range(25):
        row = watch.sample()
    assert row["lag"] == 1
    assert row["lag_seconds"] > 100
    assert Status(row["status"]) is Status.STOP
    watch.commit(watch.log.end)
    assert watch.sample()["lag"] == 0


def test_holes_at_the_end_of_a_compacted_topic_are_not_lag():
    """Compaction removed the last 300 records, which the group had not read."""
    log = Log(end=1_000, records=set(range(700)), is_compacted=True)
    watch = Watch(log)
    watch.commit(700)
    watch.sample()
    assert watch.sample()["lag"] == 0
    log.write(records=2)
    assert watch.sample()["lag"] == 2


def test_records_of_only_an_aborted_transaction_are_unknown():
    """read_committed consumers skip them, other consumers read them. No record shows the isolation level."""
    watch = idle_after_a_transaction()
    watch.sample()
    first = watch.log.end
    watch.log.write(records=50, markers=1)
    watch.log.aborted = set(range(first, first + 50))
    for _ in range(20):
        row = watch.sample()
    assert (row["lag"], row["unknown_reason"], row["status"]) == (None, MAYBE_ONLY_MARKERS, None)
    watch.log.write(records=1)
    for _ in range(20):
        row = watch.sample()
    assert (row["lag"], Status(row["status"])) == (52, Status.STOP), "a record that all consumers read is waiting"


def idle_before_aborted_records(transactions: int, records: int, *, is_readable: bool = True) -> Watch:
    """Return a group that has read everything. Then aborted transactions follow."""
    watch = idle_after_a_transaction(is_readable=is_readable)
    watch.sample()
    watch.log.abort(transactions, records)
    return watch


@pytest.mark.parametrize("offsets_per_fetch", [100, 1_000_000])
def test_many_aborted_records_are_never_lag(offsets_per_fetch: int):
    """Before, the monitor did not fetch more than 1,000 offsets before the end. So 5,000 aborted records were lag."""
    watch = idle_before_aborted_records(1, 5_000)
    watch.log.offsets_per_fetch = offsets_per_fetch
    for seconds in range(5, 400, 5):
        row = watch.sample()
        assert row["status"] in {None, Status.OK}
        assert seconds <= 30 or (row["lag"], row["unknown_reason"]) == (None, MAYBE_ONLY_MARKERS)
    assert watch.fetches <= 5_000 / offsets_per_fetch + 4
    watch.log.write(records=1)
    watch.sample()
    row = watch.sample()
    assert (row["lag"], row["record_offset"]) == (5_002, watch.log.end - 1), "a record that all consumers read"


@pytest.mark.parametrize("is_deleted_while_away", [True, False])
def test_deleted_aborted_records_are_not_lost_and_not_lag_after_a_restart(is_deleted_while_away: bool):
    """Before, the results of fetches were not stored. After a restart, lag and `records_lost` were 501."""
    watch = idle_before_aborted_records(1, 500)
    for _ in range(10):
        row = watch.sample()
    assert (row["lag"], row["records_lost"]) == (None, None)
    if is_deleted_while_away:
        watch.log.start = watch.log.end
    watch.restart()
    for _ in range(10):
        row = watch.sample()
    watch.log.start = watch.log.end
    for _ in range(10):
        row = watch.sample()
        assert (row["records_lost"], Status(row["status"])) == (None, Status.OK)
    assert (row["lag"], row["unknown_reason"]) == (0, None), "the log is empty"


def test_a_sample_without_a_leader_does_not_remove_the_results():
    """Before, one such sample removed the results of all fetches. If retention deleted the records, they were lost."""
    watch = idle_before_aborted_records(1, 500)
    watch.sample()
    watch.sample(has_leader=False)
    watch.log.start = watch.log.end
    for _ in range(10):
        row = watch.sample()
        assert row["records_lost"] is None
    assert row["lag"] == 0


def test_a_topic_that_was_created_again_has_no_results():
    watch = idle_before_aborted_records(1, 500)
    watch.sample()
    watch.log = Log()
    watch.log.write(records=100)
    for _ in range(10):
        row = watch.sample()
    assert (row["lag"], row["has_transactions"], row["record_offset"]) == (51, False, 49)


def test_records_after_the_log_start_are_read_if_earlier_ones_were_deleted():
    """Before, there was no fetch if the log start was above the commit. So waiting records were never found."""
    watch = idle_before_aborted_records(1, 500)
    watch.sample()
    watch.log.abort(1, 500)
    watch.log.start = watch.log.end - 300
    for _ in range(10):
        row = watch.sample()
    assert (row["lag"], row["records_lost"]) == (None, None)
    watch.log.write(records=3)
    watch.sample()
    row = watch.sample()
    assert (row["record_offset"], row["records_lost"]) == (watch.log.end - 3, None), "before them, nothing is proven"
    assert row["lag"] == watch.log.end - watch.log.start


@pytest.mark.parametrize("is_readable", [True, False])
def test_deleted_records_are_lost_and_no_record_waits(is_readable: bool):
    """Retention deleted all 130 unread records. Until the next commit, the status was STOP, and the lag grew."""
    watch = Watch(Log(is_readable=is_readable))
    watch.log.write(records=150)
    watch.commit(20)
    for _ in range(100):
        row = watch.sample()
    assert (row["lag"], Status(row["status"]), row["records_lost"]) == (130, Status.STOP, 0)
    watch.log.start = 138
    row = watch.sample()
    assert (row["lag"], Status(row["status"]), row["records_lost"]) == (12, Status.STOP, 118)
    watch.log.start = watch.log.end
    for _ in range(100):
        row = watch.sample()
        assert (row["lag"], row["lag_seconds"], Status(row["status"])) == (0, 0.0, Status.OK)
        assert (row["records_lost"], row["seconds_until_lost"]) == (130, 0.0)


def test_a_new_record_after_deleted_records_is_late_only_after_some_time():
    """Rule 2 of `status.py`: the group had no record to read, so the new record does not show that it has stopped."""
    watch = Watch(Log())
    watch.log.write(records=150)
    watch.commit(20)
    for start in (0, 150):
        watch.log.start = start
        for _ in range(100):
            watch.sample()
    watch.log.write(records=1)
    statuses = []
    for seconds in range(0, 150, 5):
        row = watch.sample()
        assert (row["lag"], row["records_lost"]) == (1, 130)
        assert row["lag_seconds"] <= seconds + 5
        statuses.append(Status(row["status"]))
    assert (statuses[0], statuses[-1]) == (Status.OK, Status.STOP)


@pytest.mark.parametrize("records", [FEW_OFFSETS + 1, 300, 5_000])
@pytest.mark.parametrize("is_readable", [True, False])
def test_a_backlog_without_transactions_is_never_unknown(records: int, is_readable: bool):
    """Rule 4. The opposite fault: a stopped group must be found, also without READ."""
    watch = Watch(Log(is_readable=is_readable))
    watch.log.write(records=20)
    for _ in range(10):
        watch.commit(watch.log.end)
        watch.sample(1)
    watch.log.write(records)
    for _ in range(60):
        row = watch.sample()
        assert row["lag"] == records
    assert Status(row["status"]) is Status.STOP
    watch.restart(has_stored_tails=False)
    for _ in range(60):
        assert watch.sample()["lag"] == records
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] == records


@pytest.mark.parametrize("is_restarted", [True, False])
def test_without_read_permission_aborted_transactions_are_unknown_if_one_was_open_in_a_sample(is_restarted: bool):
    """Rule 6. Before, 20 aborted transactions with one record each were a lag of 41 records and the status STOP."""
    watch = idle_after_a_transaction(is_readable=False)
    watch.log.last_stable = watch.log.end
    watch.log.write(records=1)
    watch.sample()
    watch.log.last_stable = None
    watch.log.aborted.add(watch.log.end - 1)
    watch.log.write(records=0, markers=1)
    watch.log.abort(19)
    assert watch.log.end - watch.committed == 41
    if is_restarted:
        watch.restart()
    for _ in range(60):
        row = watch.sample()
        assert row["status"] in {None, Status.OK}
    assert (row["lag"], row["unknown_reason"]) == (None, MAYBE_ONLY_MARKERS)
    watch.log.start = watch.log.end
    assert watch.sample()["records_lost"] is None


def test_an_open_transaction_is_found_while_the_group_still_commits():
    """Rule 6. Without READ, the last stable offset is requested at each sample, not only if the group has stopped."""
    watch = idle_after_a_transaction(is_readable=False)
    watch.sample()
    watch.commit(watch.log.end - 3)
    watch.log.last_stable = watch.log.end
    watch.log.write(records=1)
    assert watch.sample(1)["has_transactions"]


def test_topics_with_transactions_are_fetched_first():
    """Rule 5: their lag is unknown until a fetch finds a record."""
    columns = [["g"] * 2, ["orders", "payments"], [0, 0], [90, 0], [0, 0]]
    commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    ends = {("orders", 0): 100, ("payments", 0): 100}
    report, unmoved, known = lag_report(commits, ClusterSample(9, {}, ends)), np.full(2, 5_000), NextOffsets()
    known.add_stable_offsets({("payments", 0): 99}, ends)
    rows = rows_behind(report, rows_with_lag(report, unmoved, unmoved < 0), unmoved, {})
    assert [fetch.topic for fetch in known.due_fetches(report, rows, 9)] == ["payments", "orders"]


def test_a_group_at_an_open_transaction_is_neither_stop_nor_ok():
    """read_committed consumers receive nothing after the last stable offset. Before, such a group was STOP."""
    watch = Watch(Log())
    for _ in range(10):
        watch.log.write(records=4)
        watch.commit(watch.log.end)
        watch.sample(1)
    watch.log.last_stable = watch.log.end
    for _ in range(60):
        watch.log.write(records=50)
        row = watch.sample()
    assert (row["status"], row["status_rule"], row["is_blocked"]) == (None, BLOCKED_RULE, True)
    assert row["lag"] == 60 * 50, "measured up to the high watermark"
    watch.log.last_stable = watch.log.end
    row = watch.sample()
    assert (Status(row["status"]), row["is_blocked"]) == (Status.STOP, False), "the transaction has ended"


def test_a_group_before_an_open_transaction_is_evaluated_normally():
    watch = Watch(Log())
    for _ in range(10):
        watch.log.write(records=4)
        watch.commit(watch.log.end - 2)
        watch.sample(1)
    watch.log.last_stable = watch.log.end
    watch.log.write(records=50)
    for _ in range(60):
        row = watch.sample()
    assert (Status(row["status"]), row["is_blocked"]) == (Status.STOP, False)


def test_a_group_after_the_last_stable_offset_does_not_wait_for_transactions():
    watch = Watch(Log())
    for _ in range(10):
        watch.log.write(records=40)
        watch.commit(watch.log.end - 30)
        watch.sample(1)
    watch.log.last_stable = watch.committed - 1
    for _ in range(60):
        row = watch.sample()
    assert (Status(row["status"]), row["is_blocked"]) == (Status.STOP, False)


def test_markers_before_an_open_transaction_count_as_read():
    watch = idle_after_a_transaction()
    watch.log.last_stable = watch.log.end
    watch.log.write(records=50)
    for _ in range(60):
        row = watch.sample()
    assert (row["status"], row["status_rule"], row["is_blocked"]) == (None, BLOCKED_RULE, True)


def test_without_read_permission_a_lag_of_few_offsets_gives_no_bad_status():
    watch = Watch(Log(is_readable=False))
    watch.log.write(records=FEW_OFFSETS)
    for second in range(12):
        watch.commit(0)
        row = watch.sample(1)
        assert row["status"] is None or second < 2
    assert row["status_rule"] == MARKERS_RULE


def test_fetches_are_limited_and_the_nearest_to_the_end_go_first():
    """Rule 5: after an outage, 100,000 stopped partitions must not cause 100,000 requests."""
    count = 3 * FETCHES_PER_SAMPLE
    columns = [["g"] * count, ["orders"] * count, list(range(count)), list(range(count)), [0] * count]
    commits = pa.table([pa.array(column) for column in columns], names=LAG_SCHEMA.names[:5])
    report = lag_report(commits, ClusterSample(9, {}, {("orders", number): count for number in range(count)}))
    unmoved = np.full(count, 5_000)
    rows = rows_behind(report, rows_with_lag(report, unmoved, unmoved < 0), unmoved, {})
    known = NextOffsets()
    fetched: list[int] = []
    for _ in range(3):
        fetches = known.due_fetches(report, rows, 9)
        fetched += [fetch.partition for fetch in fetches]
        known.add_results(
            {fetch: Tail(fetch.from_offset, is_record=True, read_to=fetch.from_offset) for fetch in fetches}, 9
        )
    assert fetched == list(reversed(range(count)))
    assert known.due_fetches(report, rows, 9) == []


FETCHES = st.sampled_from([FetchFailure.REFUSED, FetchFailure.FAILED, None])


@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12),
    st.integers(0, 12),
    FETCHES,
    st.none() | st.integers(0, 12),
)
def test_lag_is_between_the_records_and_the_offsets_left(
    written: Sequence[tuple[bool, int]], committed: int, failure: FetchFailure | None, last_stable: int | None
):
    """Rule 6: for any log, lag is unknown, or between the number of records and of offsets after the commit."""
    log = Log()
    for is_record, count in written:
        log.write(**{"records" if is_record else "markers": count, **({} if is_record else {"records": 0})})
    committed, log.last_stable = min(committed, log.end), None if last_stable is None else min(last_stable, log.end)
    watch = Watch(log)
    watch.commit(committed)
    rows = [watch.sample() for _ in range(3)]
    left: Mapping[str, int] = {
        "records": sum(offset >= committed for offset in log.records),
        "offsets": log.end - committed,
    }
    if failure is not None:
        watch = Watch(log)
        log.is_readable = failure is not FetchFailure.REFUSED
        watch.commit(committed)
        rows += [watch.sample() for _ in range(3)]
    for row in rows:
        assert row["lag"] is None or left["records"] <= row["lag"] <= left["offsets"]
        assert row["next_offset"] >= committed
        assert (row["lag"] is None) == (row["unknown_reason"] is not None)
