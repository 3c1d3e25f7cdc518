"""Tests of KIP-848 members that do not reach their targets: start time and allowed time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from streaming.evaluation.conditions.reconciliation import LaggingMember, allowed_ms, lagging_members, stuck_members
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import SHARE, STREAMS, GroupEvent
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.groups import (
    SECOND_MS,
    advanced,
    current,
    epoch,
    formed,
    joined,
    left,
    modern_member,
    target,
    target_epoch,
)

UNREVOKED, UNRELEASED = "UnrevokedPartitions", "UnreleasedPartitions"
GROWN = [*formed(0), joined(5, "n"), epoch(6, 4), target(7, "n", ()), target_epoch(8, 4)]
"""`m` is reconciled at epoch 3. `n` joins, and epoch 4 starts without an answer. The last record is at second 8."""


def since(events: Sequence[GroupEvent], known: GroupSnapshot | None = None) -> dict[str, int]:
    """Return the start time of each lagging member in seconds, evaluated after `known` and after the events."""
    before = lagging_members(known, {}) if known else {}
    lagging = lagging_members(advanced(events, known), before)
    return {member_id: lag.since_ms // SECOND_MS for member_id, lag in lagging.items()}


@pytest.mark.parametrize(
    ("events", "lagging", "why"),
    [
        (formed(0), {}, "the only member has its target"),
        (GROWN, {"m": 8}, "m has not reached epoch 4; n has no current assignment yet, so it is not reported"),
        ([*GROWN, current(9, number=4)], {}, "m has reached epoch 4"),
        ([*GROWN, current(9, number=4, state=UNREVOKED)], {"m": 9}, "the member was asked to revoke a partition"),
        ([*GROWN, current(9, "n", (), 4, UNRELEASED)], {"m": 9, "n": 9}, "n waits for m, so both lag"),
        ([*GROWN, current(9, number=-2)], {}, "a static member that is away: its session timeout counts"),
        (
            [*GROWN, current(9, number=-2), current(10, "n", (), 4, UNRELEASED)],
            {"n": 10},
            "n does not wait for a partition of the static member that is away",
        ),
        ([*GROWN, current(9, number=4, state="Unknown")], {}, "an unknown state of a newer Kafka is ignored"),
        (
            [*formed(0, group_type=SHARE), epoch(5, 4, SHARE), target_epoch(6, 4, SHARE)],
            {},
            "share groups are not evaluated",
        ),
        (
            [*formed(0, group_type=STREAMS), epoch(5, 4, STREAMS), target_epoch(6, 4, STREAMS)],
            {"m": 6},
            "a streams group (KIP-1071)",
        ),
    ],
)
def test_members_that_lag_their_target(events: Sequence[GroupEvent], lagging: dict[str, int], why: str) -> None:
    """Rules 15 and 17."""
    assert since(events) == lagging, why


HALF = (("id", (1,)),)
AWAY = [
    *formed(0),
    joined(5, "n"),
    epoch(6, 4),
    target(7, held=(("id", (0,)),)),
    target(8, "n", HALF),
    target_epoch(9, 4),
]
"""`n` joins and must get partition 1 from `m`. `m` is a static member that leaves for a restart."""
AWAY_STREAMS = [
    *formed(0, group_type=STREAMS),
    joined(5, "n", group_type=STREAMS),
    epoch(6, 4, STREAMS),
    target_epoch(9, 4, STREAMS),
]


@pytest.mark.parametrize(
    ("events", "lagging", "why"),
    [
        ([*AWAY, current(10, number=-2), current(11, "n", (), 4, UNRELEASED)], {}, "n waits for partition 1 of m"),
        (
            [*AWAY, current(10, number=-2), current(11, "n", (), 4, UNRELEASED), *left(70)],
            {"n": 72},
            "m was removed: the time of n starts",
        ),
        (
            [*AWAY, current(10, number=-2), current(11, "n", HALF, 3, UNREVOKED)],
            {"n": 11},
            "n must revoke its own partitions first",
        ),
        (
            [*AWAY, current(10, held=(("id", (0,)),), number=-2), current(11, "n", (), 4, UNRELEASED)],
            {"n": 11},
            "m has released partition 1",
        ),
        (
            [*AWAY, current(10, number=4, state=UNREVOKED), current(11, "n", (), 4, UNRELEASED)],
            {"m": 11, "n": 11},
            "m is not away, so both are evaluated",
        ),
        (
            [
                *AWAY_STREAMS,
                current(10, held=(), number=-2, group_type=STREAMS),
                current(11, "n", (), 4, "UnreleasedTasks", STREAMS),
            ],
            {},
            "the records of a streams group do not show for which tasks n waits",
        ),
    ],
)
def test_members_that_wait_for_a_static_member_that_is_away(
    events: Sequence[GroupEvent], lagging: dict[str, int], why: str
) -> None:
    """Rule 17. Before, these members got `stuck_reconciliation` after their rebalance timeout.

    The coordinator reserves the partitions until the session timeout, which can be longer.
    """
    assert since(events) == lagging, why


@pytest.mark.parametrize(
    ("later", "lagging", "why"),
    [
        ([joined(20, "o")], {"m": 8}, "records of other members change nothing"),
        (
            [epoch(20, 5), target(21, "m", ()), target_epoch(22, 5)],
            {"m": 8},
            "a new target changes nothing: the member has not moved",
        ),
        ([current(20, number=4, state=UNREVOKED)], {"m": 20}, "the member has moved: its time starts again"),
        ([current(20, number=4)], {}, "the member has reached its target"),
    ],
)
def test_the_start_time_of_a_lagging_member(later: Sequence[GroupEvent], lagging: dict[str, int], why: str) -> None:
    """Rule 15: the start time is the time of the first evaluation in this state."""
    assert since(later, advanced(GROWN)) == lagging, why


def test_a_member_is_stuck_once_its_own_rebalance_timeout_is_over() -> None:
    """Rule 16: the members of a group can have different timeouts."""
    slow = replace(modern_member(), rebalance_timeout_ms=600_000)
    group = advanced([*GROWN, joined(9, "o", slow), current(10, "o", (), 3)]).modern
    assert group is not None
    lagging = {name: LaggingMember(group.currents["m"], 8_000) for name in ("m", "o")}
    at = {minutes: set(stuck_members(group, lagging, 8_000 + minutes * 60_000, Limits())) for minutes in (5, 6, 10, 11)}
    assert at == {5: set(), 6: {"m"}, 10: {"m"}, 11: {"m", "o"}}


@pytest.mark.parametrize(
    ("reported_ms", "allowed", "why"),
    [
        (600_000, 600_000, "the member's own timeout"),
        (None, 300_000, "a polled coordinator does not report it: the limit for any rebalance applies"),
        (-1, 300_000, "the member never sent a timeout"),
    ],
)
def test_the_allowed_time_of_a_member(reported_ms: int | None, allowed: int, why: str) -> None:
    assert allowed_ms(replace(modern_member(), rebalance_timeout_ms=reported_ms), Limits()) == allowed, why
