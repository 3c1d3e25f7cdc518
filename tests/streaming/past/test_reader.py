"""Tests of what the tables hold as of a moment, with tables as the monitor writes them."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streaming.delta.cells import timestamp_ms
from streaming.delta.rows import arrow_table
from streaming.delta.stored_table import NoTableError
from streaming.delta.tables import GROUP_GENERATIONS, PARTITIONED_BY
from streaming.delta.tables.lag import END_REASONS
from streaming.evaluation.facts import UNKNOWN_TYPE
from streaming.past.coverage import Coverage
from streaming.past.moments import Generation
from streaming.past.reader import PastReader
from streaming.past.silence import Measurement
from tests.streaming.groups import emptied, member, tombstoned, written
from tests.streaming.page.scene import HOSTILE_NAMES
from tests.streaming.past.history import (
    CLUSTER,
    lag_row,
    rows_of_life,
    write_condition,
    write_lag,
    write_life,
    write_rows,
    write_status,
)

A, B = member("a", {"orders": [0, 1]}), member("b", {"orders": [2, 3]})
GREEDY = member("a", {"orders": [0, 1, 2, 3]})
LIFE = [written(10, 1, [A, B]), written(20, 2, [GREEDY]), emptied(30, 3), tombstoned(40)]
"""Times are in seconds: two members, one member, no member, deleted."""
DAY_MS = 86_400_000


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the tables of the group `g` with the life above, and of the group `other`, which never changes."""
    folder = tmp_path_factory.mktemp("tables")
    write_life(folder, LIFE)
    write_life(folder, LIFE[:1], "other")
    return folder


@pytest.mark.parametrize(
    ("at_seconds", "state", "generation", "members"),
    [
        (10, "Stable", 1, ["a", "b"]),  # exactly at a row: the row counts
        (19.999, "Stable", 1, ["a", "b"]),  # between two rows: the earlier row counts
        (20, "Stable", 2, ["a"]),
        (30, "Empty", 3, []),  # no members is known, not unknown
        (40, "Dead", 3, []),  # the tombstone
        (9_999_999, "Dead", 3, []),  # after the last row: the present
    ],
)
def test_a_group_is_shown_as_its_last_row_before_the_moment(
    tables: Path, at_seconds: float, state: str, generation: int, members: list[str]
) -> None:
    past = PastReader(str(tables), CLUSTER).group("g", int(at_seconds * 1000))
    assert past is not None
    membership = past.report.membership
    assert (membership.state, membership.generation_id, membership.members) == (state, generation, len(members))
    assert [one.member_id for one in past.report.members.each] == members


def test_before_its_first_row_a_group_is_unknown_and_not_a_group_without_members(tables: Path) -> None:
    """The maintenance deletes old rows. So the absence of a row proves nothing."""
    reader = PastReader(str(tables), CLUSTER)
    assert reader.group("g", 9_999) is None
    assert reader.group("never-existed", 50_000) is None
    assert reader.groups(9_999) == []


def test_the_verdict_and_the_owners_belong_to_the_generation(tables: Path) -> None:
    """Generation 2 has one member that owns everything. Generation 3 has no members, so it has no verdict."""
    reader = PastReader(str(tables), CLUSTER)
    first, empty = reader.group("g", 10_000), reader.group("g", 30_000)
    assert first is not None
    assert empty is not None
    assert first.report.assignment.verdict == "match"
    assert first.report.members.expected_partitions == {"a": 2, "b": 2}
    assert first.report.members.owners["orders", 2].member_id == "b"
    assert empty.report.assignment.drifts == ()
    assert empty.report.fairness.partitions is None


def test_without_a_generation_id_a_verdict_belongs_to_its_record(tmp_path: Path) -> None:
    """With the source admin-api, classic groups have no generation id. The group is empty, so it has no verdict."""
    rows = rows_of_life([LIFE[0], written(20, 2, [GREEDY, member("b")]), emptied(30, 3)], "g")
    write_rows(tmp_path, {table: [{**row, "generation_id": None} for row in each] for table, each in rows.items()})
    reader = PastReader(str(tmp_path), CLUSTER)
    for at_ms, verdict, partitions in ((10_000, "match", 2), (20_000, "drift", 4), (30_000, None, None)):
        past = reader.group("g", at_ms)
        assert past is not None
        for report in (past.report, *reader.groups(at_ms)):
            assert report.assignment.verdict == verdict
            largest = report.fairness.partitions.largest if report.fairness.partitions else None
            assert largest == partitions


def test_a_drift_in_the_past_has_its_misplaced_partitions(tmp_path: Path) -> None:
    """One of two members has everything. `range` gives each of them two partitions."""
    write_life(tmp_path, [written(10, 1, [GREEDY, member("b")])])
    past = PastReader(str(tmp_path), CLUSTER).group("g", 10_000)
    assert past is not None
    assert (past.report.assignment.verdict, past.report.assignment.drift_partitions) == ("drift", 2)
    assert past.report.members.expected_partitions == {"a": 2, "b": 2}
    assert {trouble.rule for trouble in past.report.troubles} == {2, 6, 7}


def test_the_list_has_each_group_that_existed_with_the_same_facts_as_the_single_group(tables: Path) -> None:
    reader = PastReader(str(tables), CLUSTER)
    assert sorted(one.group_id for one in reader.groups(20_000)) == ["g", "other"]
    assert [one.group_id for one in reader.groups(40_000)] == ["other"], "g was deleted"
    for at_ms in (10_000, 20_000, 30_000):
        for listed in reader.groups(at_ms):
            single = reader.group(listed.group_id, at_ms)
            assert single is not None
            assert listed.membership == single.report.membership
            assert listed.assignment.verdict == single.report.assignment.verdict
            assert listed.fairness == single.report.fairness
            assert listed.troubles == single.report.troubles


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (DAY_MS + 4_999, None),  # before the first row: unknown
        (DAY_MS + 5_000, (7, 3.0)),  # exactly at the row
        (DAY_MS + 34_999, (7, 3.0)),  # no measurement since the row: nobody knows whether the record still waits
        (DAY_MS + 35_000, (7, 33.0)),  # measured without a new row: the same record still waited
        (DAY_MS + 65_000, (7, 33.0)),  # the value at the last measurement
        (DAY_MS + 100_000, (0, 0.0)),  # caught up
        (DAY_MS + 200_000, (0, 0.0)),  # without a lag, nothing grows older
        (2 * DAY_MS + 1_000, (0, 0.0)),  # after midnight, before the first write of the date
        (3 * DAY_MS, None),  # the monitor wrote nothing for a whole date
    ],
)
def test_the_lag_is_that_of_the_last_row_of_this_date_or_the_date_before(
    tmp_path: Path, at_ms: int, expected: tuple[int, float] | None
) -> None:
    write_life(tmp_path, LIFE[:1])
    write_lag(tmp_path, lag_row(DAY_MS + 5_000, 7, seconds=3.0), lag_row(DAY_MS + 100_000, 0, seconds=0.0))
    for measured_ms in (DAY_MS + 35_000, 2 * DAY_MS - 9_000):  # the monitor measured until midnight
        write_lag(tmp_path, lag_row(measured_ms, 0, group_id="other"))
    past = PastReader(str(tmp_path), CLUSTER).group("g", at_ms)
    assert past is not None
    lag = past.report.lag
    assert (None if lag.records is None else (lag.records, lag.seconds)) == expected
    assert len(past.partitions) == (expected is not None)


@pytest.mark.parametrize(
    ("at_ms", "lag", "seconds", "status", "reasons"),
    [
        (5 * 60_000, 7, 3.0, "OK", []),
        (8 * 60_000, 7, 3.0, "OK", []),  # three minutes after the last measurement: not too old
        (8 * 60_000 + 1, None, None, None, ["not_measured"]),
        (DAY_MS - 61 * 60_000, None, None, None, ["not_measured"]),
        (DAY_MS - 3_600_000, 0, 0.0, "OK", []),  # measured again
    ],
)
def test_the_lag_is_unknown_while_the_monitor_did_not_run(  # noqa: PLR0913, PLR0917 - the columns of the table
    tmp_path: Path, at_ms: int, lag: int | None, seconds: float | None, status: str | None, reasons: list[str]
) -> None:
    """The monitor ran at 00:05 and at 23:00. At 22:59, the lag was 7, and the age of its record was 22 hours."""
    write_life(tmp_path, LIFE[:1])
    write_lag(tmp_path, lag_row(5 * 60_000, 7, seconds=3.0), lag_row(DAY_MS - 3_600_000, 0, seconds=0.0))
    write_status(tmp_path, 5 * 60_000, "OK")
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("g", at_ms)
    assert past is not None
    for report in (past.report, *reader.groups(at_ms)):
        assert (report.lag.records, report.lag.seconds, report.lag.status) == (lag, seconds, status)
        assert list(report.lag.unknown) == reasons
    (partition,) = past.partitions
    assert (partition.lag, partition.lag_seconds, partition.status) == (lag, seconds, status)
    assert (partition.committed_offset is None, partition.unknown_reason) == (lag is None, (reasons or [None])[0])


def test_a_partition_whose_offset_was_deleted_is_gone_on_the_next_date(tmp_path: Path) -> None:
    """The first write of a date contains all partitions. So a partition without a row on this date no longer exists."""
    write_life(tmp_path, LIFE[:1])
    write_lag(
        tmp_path,
        lag_row(DAY_MS, 7),
        lag_row(DAY_MS, 9, partition=1),
        lag_row(2 * DAY_MS + 5_000, 7, partition=1),
    )
    reader = PastReader(str(tmp_path), CLUSTER)
    for at_ms, partitions in ((2 * DAY_MS + 4_999, [0, 1]), (2 * DAY_MS + 5_000, [1])):
        past = reader.group("g", at_ms)
        assert past is not None
        assert sorted(one.partition for one in past.partitions) == partitions


@pytest.mark.parametrize("reason", sorted(END_REASONS))
def test_a_partition_is_gone_after_its_end_row(tmp_path: Path, reason: str) -> None:
    """An offset expired at noon, and a group that only commits was deleted. Until midnight, both kept their lag."""
    write_life(tmp_path, LIFE[:1])
    write_lag(
        tmp_path,
        *(lag_row(DAY_MS, 7, partition=number) for number in (0, 1)),
        lag_row(DAY_MS, 7, group_id="flink"),
        lag_row(DAY_MS + 60_000, None, reason=reason),
        lag_row(DAY_MS + 60_000, None, reason=reason, group_id="flink"),
    )
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("g", DAY_MS + 60_000)
    assert past is not None
    assert [(one.partition, one.lag) for one in past.partitions] == [(1, 7)]
    assert past.report.lag.records == 7
    assert reader.group("flink", DAY_MS + 60_000) is None
    assert {one.group_id: one.lag.records for one in reader.groups(DAY_MS + 60_000)} == {"g": 7}
    before = reader.group("flink", DAY_MS + 59_999)
    assert before is not None
    assert before.report.lag.records == 7


def test_the_lag_of_a_group_is_unknown_if_that_of_one_partition_is_unknown(tmp_path: Path) -> None:
    write_life(tmp_path, LIFE[:1])
    write_lag(tmp_path, lag_row(11_000, 7), lag_row(11_000, None, partition=1, reason="no_end_offset"))
    write_status(tmp_path, 11_000, "STALL", lost=3)
    past = PastReader(str(tmp_path), CLUSTER).group("g", 12_000)
    assert past is not None
    assert (past.report.lag.records, past.report.lag.unknown) == (None, ["no_end_offset"])
    assert (past.report.lag.status, past.report.lag.records_lost) == ("STALL", 3)
    assert [(one.partition, one.lag, one.status) for one in past.partitions] == [(1, None, None), (0, 7, "STALL")]
    assert past.report.lag.consumed_records_per_second is None
    assert past.report.lag.last_commit_ms is None, "a commit of the same offset writes no row"


def test_a_group_that_only_commits_has_a_lag_but_unknown_members(tmp_path: Path) -> None:
    """`assign()` writes no group metadata, so no row contains the state. The trouble was "state unknown"."""
    write_life(tmp_path, LIFE[:1], "other")
    write_lag(tmp_path, lag_row(11_000, 7, group_id="flink"))
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("flink", 12_000)
    assert past is not None
    assert (past.report.membership.group_type, past.report.membership.members) == (UNKNOWN_TYPE, None)
    assert past.report.lag.records == 7
    assert past.report.troubles == ()
    assert {one.group_id: one.lag.records for one in reader.groups(12_000)} == {"other": None, "flink": 7}
    assert not any(one.troubles for one in reader.groups(12_000))


def test_a_group_that_ended_has_no_lag_although_its_last_rows_show_one(tmp_path: Path) -> None:
    write_life(tmp_path, LIFE)
    write_lag(tmp_path, lag_row(35_000, 7))
    past = PastReader(str(tmp_path), CLUSTER).group("g", 50_000)
    assert past is not None
    assert (past.partitions, past.report.lag.records) == ((), None)
    assert PastReader(str(tmp_path), CLUSTER).groups(50_000) == []


def test_a_client_that_commits_after_its_group_was_deleted_is_shown_as_a_group_that_only_commits(
    tmp_path: Path,
) -> None:
    """Kafka deleted an inactive group, and Flink started again: `assign()` writes no record of the group.

    Pages of the past said for 90 days that the group did not exist, although `group_lag` had its lag.
    """
    write_life(tmp_path, LIFE)
    write_lag(tmp_path, lag_row(60_000, 7))
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("g", 61_000)
    assert past is not None
    assert (past.report.membership.group_type, past.report.lag.records) == (UNKNOWN_TYPE, 7)
    assert len(past.partitions) == 1
    assert {one.group_id: one.lag.records for one in reader.groups(61_000)} == {"g": 7}
    assert reader.groups(50_000) == []


def test_a_condition_is_active_from_its_start_to_its_end(tmp_path: Path) -> None:
    write_life(tmp_path, LIFE[:1])
    write_lag(tmp_path, lag_row(11_000, 0))
    write_condition(tmp_path, 12_000, "rebalance_storm", active=True)
    write_condition(tmp_path, 15_000, "rebalance_storm", active=False)
    write_condition(tmp_path, 15_000, "flapping_member", active=False)
    write_condition(tmp_path, 15_000, "flapping_member", active=True)  # a start is later than an end at one sample
    reader = PastReader(str(tmp_path), CLUSTER)
    found = {}
    for at_ms in (11_999, 12_000, 14_999, 15_000):
        past = reader.group("g", at_ms)
        assert past is not None
        found[at_ms] = [one.name for one in past.report.conditions]
        assert [[one.name for one in report.conditions] for report in reader.groups(at_ms)] == [found[at_ms]]
    assert found == {
        11_999: [],
        12_000: ["rebalance_storm"],
        14_999: ["rebalance_storm"],
        15_000: ["flapping_member"],
    }


@pytest.mark.parametrize(
    ("at_ms", "expected"),
    [
        (DAY_MS - 1, Measurement()),
        (DAY_MS, Measurement(DAY_MS, is_recent=True)),
        (DAY_MS + 180_000, Measurement(DAY_MS, is_recent=True)),
        (DAY_MS + 180_001, Measurement(DAY_MS)),
        (DAY_MS + 3 * 3_600_000, Measurement(DAY_MS)),  # longer ago than the look-back
        (4 * DAY_MS + 4_999, Measurement(DAY_MS)),  # the row of this date is later
        (4 * DAY_MS + 5_000, Measurement(4 * DAY_MS + 5_000, is_recent=True)),
    ],
)
def test_the_last_measurement_is_found_no_matter_how_old_it_is(
    tmp_path: Path, at_ms: int, expected: Measurement
) -> None:
    write_life(tmp_path, LIFE[:1])
    assert PastReader(str(tmp_path), CLUSTER).measurement(at_ms) == Measurement(), "there is no table of lag"
    write_lag(tmp_path, lag_row(DAY_MS, 7), lag_row(4 * DAY_MS + 5_000, 7), lag_row(at_ms, 7, cluster="us"))
    assert PastReader(str(tmp_path), CLUSTER).measurement(at_ms) == expected


def test_clusters_in_one_folder_are_separate(tmp_path: Path) -> None:
    write_life(tmp_path, LIFE[:1], cluster="eu")
    write_life(tmp_path, LIFE[1:2], cluster="us")
    write_lag(tmp_path, lag_row(10_500, 7, cluster="us"))
    eu, us = PastReader(str(tmp_path), "eu"), PastReader(str(tmp_path), "us")
    assert [one.membership.generation_id for one in eu.groups(99_000)] == [1]
    assert [one.membership.generation_id for one in us.groups(99_000)] == [2]
    assert eu.groups(99_000)[0].lag.records is None
    assert eu.coverage() == Coverage(10_000, 10_000)
    assert us.coverage() == Coverage(10_500, 20_000), "both tables count"
    assert PastReader(str(tmp_path), "nowhere").coverage() == Coverage()


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_found_and_change_no_query(tmp_path: Path, name: str) -> None:
    """A quote in a group id must not end the SQL string. A lone surrogate is in no table."""
    write_life(tmp_path, LIFE[:1], "victim")
    reader = PastReader(str(tmp_path), CLUSTER)
    for hostile in (name, f"' OR '1'='1{name}"):
        assert reader.group(hostile, 50_000) is None
        assert reader.compare(hostile, 1, Generation(1)) is None
        if "\ud800" not in hostile:
            write_life(tmp_path, LIFE[:1], hostile)
            found = reader.group(hostile, 50_000)
            assert found is not None
            assert found.report.group_id == hostile


def test_of_two_records_at_the_same_time_the_later_position_counts(tmp_path: Path) -> None:
    """The coordinator writes a tombstone and new records in one append, with one timestamp."""
    rows = rows_of_life(LIFE[:2], "g")[GROUP_GENERATIONS]
    same_time = [{**row, "record_time": rows[0]["record_time"]} for row in rows]
    write_rows(tmp_path, {GROUP_GENERATIONS: reversed(same_time)})
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("g", 10_000)
    assert past is not None
    assert past.report.membership.generation_id == 2
    assert [one.membership.generation_id for one in reader.groups(10_000)] == [2]


def test_tables_of_an_earlier_version_have_unknown_columns(tmp_path: Path) -> None:
    """A table without the column `protocol_source`, and a folder without the other tables."""
    rows = arrow_table(GROUP_GENERATIONS, rows_of_life(LIFE[:1], "g")[GROUP_GENERATIONS])
    older = rows.drop_columns(["protocol_source"])
    write_deltalake(str(tmp_path / GROUP_GENERATIONS.name), older, partition_by=list(PARTITIONED_BY))
    reader = PastReader(str(tmp_path), CLUSTER)
    past = reader.group("g", 10_000)
    assert past is not None
    assert (past.report.membership.protocol, past.report.membership.protocol_source) == ("range", None)
    assert (past.report.assignment.drifts, past.partitions, past.rebalances) == ((), (), [])
    assert [one.membership.protocol_source for one in reader.groups(10_000)] == [None]
    with pytest.raises(NoTableError):
        PastReader(str(tmp_path / "nowhere"), CLUSTER).groups(10_000)


_STEPS = st.lists(
    st.tuples(st.sampled_from(["g", "h", "i"]), st.integers(0, 12), st.sampled_from(["two", "one", "none", "gone"])),
    min_size=1,
    max_size=8,
)
_SECONDS = st.integers(0, 13)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=_STEPS, at_seconds=_SECONDS)
def test_every_moment_agrees_with_a_replay_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, str]], at_seconds: int
) -> None:
    """The law of the past: the state at a moment is the last row at or before it, for any order of writes."""
    folder = tmp_path_factory.mktemp("replay")
    template = dict(zip(("two", "one", "none", "gone"), _one_row_each(), strict=True))
    rows = [
        {
            **template[kind],
            "group_id": group_id,
            "record_time": template[kind]["record_time"].replace(second=second),
            "offsets_topic_offset": position,
        }
        for position, (group_id, second, kind) in enumerate(steps)
    ]
    write_rows(folder, {GROUP_GENERATIONS: rows})
    expected = {}
    for row in sorted(rows, key=lambda row: (row["record_time"], row["offsets_topic_offset"])):
        if timestamp_ms(row["record_time"]) <= at_seconds * 1000:
            expected[row["group_id"]] = (row["state"], row["offsets_topic_offset"])
    reader = PastReader(str(folder), CLUSTER)
    at_ms = at_seconds * 1000
    listed = {one.group_id: one.membership.state for one in reader.groups(at_ms)}
    assert listed == {group_id: state for group_id, (state, _) in expected.items() if state != "Dead"}
    for group_id in ("g", "h", "i"):
        past = reader.group(group_id, at_ms)
        assert (past.report.membership.state if past else None) == expected.get(group_id, (None, 0))[0]


def _one_row_each() -> list[dict[str, object]]:
    return rows_of_life(LIFE, "any")[GROUP_GENERATIONS]
