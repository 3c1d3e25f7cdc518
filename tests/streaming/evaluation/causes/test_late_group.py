"""A late group from sample to sample: when it is late, what its members can do, and how their work is shared."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest

from streaming.evaluation.causes.late_group import ExplainedLag, LateGroup, SampledGroup, follow
from streaming.evaluation.causes.member_work import PartitionWork, Work, group_work
from streaming.group.members import GroupMember
from tests.streaming.evaluation.causes.late_groups import NOW_MS, group_member

ORDERS = ("orders", 0), ("orders", 1)
A, B = group_member("a", "/h1", ORDERS[:1]), group_member("b", "/h2", ORDERS[1:])


def row(number: int, produced: float = 100.0, consumed: float = 80.0, **changes: object) -> PartitionWork:
    """Return one partition with lag."""
    found = PartitionWork("orders", number, 500, produced, consumed, "OK", NOW_MS, member_id=f"id-{'ab'[number]}")
    return found._replace(**changes)  # type: ignore[arg-type]


SAMPLED = SampledGroup(NOW_MS, (row(0), row(1)), dict.fromkeys(ORDERS, 40.0), members=(A, B), member_count=2)


def followed(*samples: SampledGroup) -> tuple[LateGroup, ExplainedLag | None]:
    """Follow a group through samples every 30 seconds."""
    known, explained = None, None
    for at, sampled in enumerate(samples):
        known, explained = follow(known, replace(sampled, sampled_at_ms=NOW_MS + 30_000 * at))
    assert known is not None
    return known, explained


def explained_after(*samples: SampledGroup) -> ExplainedLag:
    _, explained = followed(*samples)
    assert explained is not None
    return explained


IN_TIME = replace(SAMPLED, behind={})


def test_the_work_of_a_member_includes_the_partitions_that_it_must_still_revoke() -> None:
    """KIP-848: the member owns such a partition until it has revoked it. Before, the work had no owner."""
    revoking = msgspec.structs.replace(A, pending_revocation=ORDERS[1:])
    work = group_work([revoking], [row(0), row(1)])
    assert work is not None
    assert [(one.name, one.partitions, one.lag) for one in work.members] == [("a", 2, 1000)]


def test_the_work_is_unknown_if_the_owner_of_a_committed_partition_is_hidden() -> None:
    """Polling mode: no response shows the member that must revoke orders-1. Before, the partition had no owner."""
    waiting = msgspec.structs.replace(B, assigned=(), target=ORDERS[1:], pending_revocation=None)
    assert group_work([A, waiting], [row(0), row(1)]) is None
    assert group_work([A, waiting], [row(0)]) is not None


@pytest.mark.parametrize(
    ("samples", "has_cause", "why"),
    [
        ([SAMPLED] * 2, False, "two samples in 30 seconds"),
        ([SAMPLED] * 3, True, "three samples in 60 seconds"),
        (
            [SAMPLED, IN_TIME, SAMPLED, SAMPLED],
            False,
            "a sample in time starts the count again",
        ),
        ([SAMPLED, SAMPLED, SAMPLED, IN_TIME], False, "the group has caught up"),
        (
            [replace(IN_TIME, stopped=frozenset(ORDERS[:1]))],
            True,
            "the status STOP is based on the commits of more than a minute",
        ),
        (
            [replace(SAMPLED, behind={ORDERS[at % 2]: 40.0}) for at in range(5)],
            False,
            "two partitions take turns, and neither is late for a minute",
        ),
    ],
)
def test_a_group_has_a_cause_after_a_minute_behind(samples: list[SampledGroup], has_cause: bool, why: str) -> None:
    """Rules 3 and 4 of `lateness.py`. Law: a healthy group has no cause."""
    assert (followed(*samples)[1] is not None) == has_cause, why


def capacity_of_a(*samples: SampledGroup) -> float | None:
    work = explained_after(*samples).work
    assert work is not None
    return next(one for one in work.members if one.name == "a").capacity_records_per_second


def with_a(**changes: object) -> SampledGroup:
    """Return the group with a changed partition of member `a`."""
    return replace(SAMPLED, partitions=(row(0, **changes), row(1)))  # type: ignore[arg-type]


MOVED = replace(SAMPLED, members=(group_member("a", "/h1", ()), group_member("b", "/h2", ORDERS)))

SLOWING = [with_a(consumed=max(20.0, 100.0 - 8 * at)) for at in range(15)]
"""The member slows down from 100 to 20 records/s, and a sample is taken every 30 seconds."""


@pytest.mark.parametrize(
    ("samples", "expected", "why"),
    [
        ([SAMPLED] * 3, 80.0, "known as soon as the group is late: it was behind at three samples"),
        ([with_a(consumed=None), SAMPLED, SAMPLED], None, "only two samples have a known rate"),
        (
            [*[SAMPLED] * 3, with_a(consumed=120.0), SAMPLED],
            80.0,
            "the latest rate: a maximum would keep a time that has ended",
        ),
        (SLOWING[:9], None, "rule 3: the average over five minutes still contains the healthy time"),
        (SLOWING, 20.0, "rule 3: the rate stopped falling"),
        (SLOWING[::-1], 100.0, "rule 3: a rate that rises is a proof of at least this capacity"),
        (
            [with_a(consumed=80.0 * max(0, 10 - at)) for at in range(20)],
            None,
            "rule 4: the member has stopped, and nobody knows what it could consume",
        ),
        ([with_a(lag=0), SAMPLED, SAMPLED], None, "a member without lag consumes what producers write, and no more"),
        ([*[SAMPLED] * 5, with_a(lag=0, consumed=900.0)], 80.0, "a rate without lag is no proof of a capacity"),
        ([*[SAMPLED] * 5, MOVED, SAMPLED], None, "its partitions changed, and records of other topics may cost more"),
        ([*[SAMPLED] * 5, replace(SAMPLED, members=(B,)), SAMPLED], None, "it left the group and came back"),
    ],
)
def test_the_capacity_of_a_member_is_its_latest_rate_while_it_was_busy(
    samples: list[SampledGroup], expected: float | None, why: str
) -> None:
    """Rules 1 to 5 of `capacity.py`. The capacity decides between causes, and the advice divides by it."""
    assert capacity_of_a(*samples) == expected, why


def test_a_partition_without_input_does_not_make_a_member_idle() -> None:
    """Rule 1 of `capacity.py`: an empty partition has no lag, so it says nothing about the capacity."""
    quiet = replace(
        SAMPLED,
        members=(group_member("a", "/h1", ORDERS), B),
        partitions=(row(0), row(1, produced=0.0, consumed=0.0, lag=0, member_id="id-a")),
        behind={ORDERS[0]: 40.0},
    )
    assert capacity_of_a(*[quiet] * 5) == 80.0


def test_rebalances_before_the_group_was_late_do_not_count() -> None:
    """Rule 2 of `late_group.py`: the window begins when the group is first behind. Totals never decrease."""
    lost_times = [(NOW_MS + second * 1000, NOW_MS + (second + 20) * 1000) for second in range(-300, 90, 30)]
    samples = [replace(SAMPLED, rebalances=90 + at, lost_times=lost_times) for at in range(4)]
    cause = explained_after(*samples).cause
    assert (cause.kind, cause.rebalances, cause.lost_seconds, cause.window_seconds) == ("rebalancing", 3, 60, 90)


def test_the_time_without_members_is_not_lost_to_a_rebalance() -> None:
    """Rule 4 of `late_group.py`. An outage of 130 s looked like a rebalance of 130 s when the application came back."""
    after_outage = replace(SAMPLED, lost_times=[(NOW_MS + 85_000, NOW_MS + 90_000)], rebalances=1)
    samples = [SAMPLED, SAMPLED, SAMPLED, after_outage]
    assert explained_after(*samples).cause.kind == "under_provisioned"
    samples[3] = replace(after_outage, without_members_ms=130_000)
    assert explained_after(*samples).cause.reason == "rates_unknown", "the rates contain the outage"
    samples[3] = replace(after_outage, lost_times=[(NOW_MS - 40_000, NOW_MS + 90_000)])
    assert explained_after(*samples).cause.lost_seconds == 90, "the group had members for the whole time"


def test_the_window_is_at_most_five_minutes() -> None:
    """A rebalance storm that ended ten minutes ago does not explain the lag of now."""
    storm = (NOW_MS, NOW_MS + 330_000)
    samples = [replace(SAMPLED, lost_times=[storm] if at > 10 else []) for at in range(31)]
    assert explained_after(*samples[:15]).cause.kind == "rebalancing"
    assert explained_after(*samples).cause.kind == "under_provisioned"
    assert len(followed(*samples)[0].totals) == 11


def shares(works: tuple[Work, ...]) -> list[tuple[object, ...]]:
    return [
        (one.name, one.members, one.partitions, one.lag, one.produced_records_per_second, one.produced_share)
        for one in works
    ]


def test_work_is_summed_by_member_and_by_host_and_the_shares_add_up_to_one() -> None:
    """Rules 1 and 3 of `member_work.py`. Example of the review: two partitions each, 800 and 20 records/s."""
    partitions = [row(number, produced) for number, produced in enumerate((400.0, 400.0))]
    partitions += [PartitionWork("clicks", number, 5, 10.0, 10.0) for number in range(2)]
    members = [group_member("a", "/h1", ORDERS), group_member("b", "/h1", (("clicks", 0), ("clicks", 1)))]
    work = group_work([*members, group_member("idle", "/h2", ())], partitions)
    assert work is not None
    assert shares(work.members) == [
        ("a", 1, 2, 1000, 800.0, pytest.approx(800 / 820)),
        ("b", 1, 2, 10, 20.0, pytest.approx(20 / 820)),
        ("idle", 1, 0, 0, 0, 0),
    ]
    assert shares(work.hosts) == [("h1", 2, 4, 1010, 820.0, 1.0), ("h2", 1, 0, 0, 0, 0)]


@pytest.mark.parametrize(
    ("member", "rows", "empty", "expected", "why"),
    [
        (A, [row(0)], [], (500, 100.0, 80.0), "all values are known"),
        (A, [row(0, lag=None)], [], (None, 100.0, 80.0), "rule 2: one unknown lag"),
        (A, [], [], (None, None, None), "rule 2: the group never committed this partition"),
        (A, [], ORDERS, (0, 0, 0), "rule 2: an empty partition has no records to read"),
    ],
)
def test_the_work_of_a_member_is_unknown_if_one_value_is_unknown(
    member: GroupMember, rows: list[PartitionWork], empty: list[tuple[str, int]], expected: tuple[object, ...], why: str
) -> None:
    """Unknown is a value. A sum without the unknown part would be too small."""
    work = group_work([member], rows, empty)
    assert work is not None
    (one,) = work.members
    assert (one.lag, one.produced_records_per_second, one.consumed_records_per_second) == expected, why


def test_the_work_is_unknown_if_the_assignment_of_a_member_is_unknown() -> None:
    """Rule 4 of `member_work.py`: the member may own any partition, so nobody knows the share of the others."""
    assert group_work([A, group_member("b", "/h2", None)], [row(0)]) is None


def test_hosts_are_unknown_if_the_host_of_a_member_is_unknown() -> None:
    """The shares of the known hosts would be too large."""
    work = group_work([A, msgspec.structs.replace(B, client_host="")], [row(0), row(1)])
    assert work is not None
    assert work.hosts == ()
