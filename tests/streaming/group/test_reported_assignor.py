"""Tests of rule 13 of `advance`: the assignor that a coordinator reports, because no record contains it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.events import AssignorReported, GroupEvent, LogEvent
from streaming.group.modern import ModernGroup
from streaming.group.snapshot import BROKER, RECORDS
from tests.streaming.group.test_modern import logs
from tests.streaming.groups import advanced, epoch, formed, joined, left, modern_member, tombstoned, written

UNIFORM = AssignorReported(3, "uniform")
NAMES_RANGE = modern_member(server_assignor="range")


@pytest.mark.parametrize(
    ("events", "protocol", "source", "why"),
    [
        (formed(0), None, None, "no member names an assignor, and no coordinator was asked"),
        ([*formed(0), UNIFORM], "uniform", BROKER, "the coordinator reports it"),
        (
            [*formed(0), AssignorReported(4, "uniform")],
            None,
            None,
            "the report is about an epoch that was not read yet",
        ),
        (
            [*formed(0), AssignorReported(2, "uniform")],
            None,
            None,
            "the report is about an earlier epoch: a member may have named the assignor",
        ),
        ([*formed(0), UNIFORM, epoch(5, 4)], "uniform", BROKER, "the default stays for later epochs"),
        ([*formed(0), UNIFORM, AssignorReported(3, "range")], "range", BROKER, "a different one after a restart"),
        (
            [*formed(0), UNIFORM, joined(5, "n", NAMES_RANGE)],
            "range",
            RECORDS,
            "a member that names an assignor overrides it",
        ),
        (
            [joined(0, "m", NAMES_RANGE), epoch(1), UNIFORM],
            "range",
            RECORDS,
            "the report came after the member's record",
        ),
        (
            [*formed(0), UNIFORM, joined(5, "n", NAMES_RANGE), *left(6, "n")],
            None,
            None,
            "the report may have been the name that this member gave",
        ),
        ([*formed(0), UNIFORM, joined(5, "n")], "uniform", BROKER, "a member that names no assignor changes nothing"),
        ([*formed(0), UNIFORM, tombstoned(5)], None, None, "the group is deleted"),
        ([*formed(0), UNIFORM, tombstoned(5), *formed(7)], None, None, "the group is deleted and recreated"),
        ([written(0, 3)], "range", RECORDS, "a classic group's record contains it"),
        ([written(0, 3), UNIFORM], "range", RECORDS, "a downgrade happened before the report"),
    ],
)
def test_a_reported_assignor_counts_if_no_member_names_one(
    events: Sequence[GroupEvent], protocol: str | None, source: str | None, why: str
) -> None:
    """Rule 13 of `advance`: no record contains the first of `group.consumer.assignors`."""
    snapshot = advanced(events)
    assert (snapshot.protocol, snapshot.protocol_source) == (protocol, source), why


@given(logs(), st.lists(st.tuples(st.integers(0, 20), st.integers(0, 5)), max_size=4))
def test_a_report_changes_nothing_but_the_assignor(events: list[LogEvent], reports: list[tuple[int, int]]) -> None:
    """State, totals and entries follow only from records, for any time of the report."""
    with_reports: list[GroupEvent] = [*events]
    for place, number in reports:
        with_reports.insert(place, AssignorReported(number, "uniform"))
    reported, unasked = advanced(with_reports), advanced(events)
    modern = reported.modern and msgspec.structs.replace(reported.modern, assignor=None)
    assert msgspec.structs.replace(reported, modern=modern) == unasked


@pytest.mark.parametrize(
    ("wishes", "assignor", "why"),
    [
        ([None, None], "uniform", "no vote: the reported assignor"),
        ([None, "range"], "range", "a vote overrides the report"),
        (["uniform", "range"], None, "a tie also overrides it: the coordinator can use any of them"),
    ],
)
def test_votes_override_a_report(wishes: list[str | None], assignor: str | None, why: str) -> None:
    members = {str(number): modern_member(server_assignor=wish) for number, wish in enumerate(wishes)}
    assert ModernGroup(members=members, assignor="uniform").server_assignor() == assignor, why
