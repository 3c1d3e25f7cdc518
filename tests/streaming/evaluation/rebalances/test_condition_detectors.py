"""Tests of the conditions that follow from the last rebalances of a group.

Each rule has one table of cases. Each case contains the reason for its result.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances.condition_detectors import (
    DUPLICATE_CLAIMS,
    EAGER_AND_COOPERATIVE_MIXED,
    ENDLESS_COOPERATIVE_REJOIN,
    FLAPPING_MEMBER,
    REBALANCE_STORM,
    ROLLING_RESTART,
    SUBSCRIPTION_MISMATCH,
    Limits,
    conditions,
    flapping_members,
    same_until_ms,
)
from streaming.evaluation.rebalances.rebalance_summary import MemberName, RebalanceSummary
from streaming.events import GroupMetadataWritten, Position
from streaming.group.snapshot import GroupSnapshot
from tests.streaming.evaluation.rebalances.test_rebalance_history import generations, updates
from tests.streaming.groups import member, metadata

MINUTE_MS = 60_000
NOW_MS = 100 * MINUTE_MS
LIMITS = Limits()


def names(text: str, *, is_static: bool = False) -> tuple[MemberName, ...]:
    """Return members by key. The part before the dash is the program and its host."""
    return tuple(MemberName(key, key.split("-", maxsplit=1)[0], is_static) for key in text.split())


def rebalance(  # noqa: PLR0913 - the fields of a rebalance
    minute: float,
    joined: str = "",
    gone: str = "",
    rejoined: str = "",
    *,
    causes: tuple[str, ...] | None = None,
    kind: str = "rebalance",
    is_static: bool = False,
    protocol: str | None = "range",
    group_type: str = "classic",
    **more: int,
) -> RebalanceSummary:
    """Return a rebalance this number of minutes ago. By default its causes follow from the joined and left members."""
    follows = (*(["member_gone"] if gone else []), *(["member_joined"] if joined else [])) or ("unexplained",)
    came, went, back = (names(text, is_static=is_static) for text in (joined, gone, rejoined))
    return RebalanceSummary(
        timestamp_ms=int(NOW_MS - minute * MINUTE_MS),
        generation_id=0,
        kind=kind,
        causes=(follows if causes is None else causes) if kind == "rebalance" else (),
        protocol=protocol,
        members=more.pop("members", 6),
        joined=came,
        gone=went,
        rejoined=back,
        changed_members=len(came) + len(went) + len(back) + more.pop("unnamed", 0),
        group_type=group_type,
        **more,
    )


def rejoin(minute: float, key: str) -> RebalanceSummary:
    """Return a static member's rejoin in the same generation."""
    return rebalance(minute, rejoined=key, kind="static_rejoin", is_static=True)


def every_minute(count: int, start: float = 9, **more: object) -> list[RebalanceSummary]:
    """Return rebalances one minute apart, with unexplained causes."""
    return [rebalance(start - number, **more) for number in range(count)]  # type: ignore[arg-type]


FOLLOWUP = ("cooperative_followup",)


@pytest.mark.parametrize(
    ("recent", "is_active", "why"),
    [
        (every_minute(5), True, "five in ten minutes"),
        (every_minute(4), False, "four are not enough for a storm"),
        (every_minute(5, start=12), False, "two of them are more than ten minutes ago"),
        (every_minute(50, start=100), False, "an hour of rebalances, read at once, but none in the last minutes"),
        (
            [rebalance(5), rebalance(4, skipped_generations=900)],
            True,
            "joins that never synced have no record, but they count",
        ),
        (
            [rebalance(11), rebalance(4, skipped_generations=900)],
            False,
            "the times of the skipped generations are unknown: they may be before the window",
        ),
        (every_minute(9, causes=FOLLOWUP, protocol="stream"), False, "second rounds count together with their first"),
        (
            [rebalance(m, joined=f"n-{m}") for m in range(5, 0, -1)],
            True,
            "members that join one by one are a storm for the others",
        ),
        (every_minute(9, kind="static_rejoin"), False, "a static rejoin is not a rebalance"),
        ([*every_minute(9), rebalance(0.1, kind="deleted")], False, "the group is deleted"),
        ([], False, "no rebalance is remembered"),
    ],
)
def test_a_storm(recent: list[RebalanceSummary], is_active: bool, why: str) -> None:
    assert (REBALANCE_STORM in conditions(recent, NOW_MS, LIMITS)) is is_active, why


def started_group(minutes: int, kind: str = "created", generation_id: int = 0, **more: int) -> list[RebalanceSummary]:
    """Return a group's start this number of minutes ago: one member, and nine more within the next minute."""
    first = replace(rebalance(minutes, kind=kind, **more), generation_id=generation_id)
    return [first, *(rebalance(minutes - number / 10, joined=f"pod-{number}") for number in range(1, 10))]


@pytest.mark.parametrize(
    ("recent", "storms", "why"),
    [
        (started_group(2), False, "ten pods start within a minute: a deployment, and no member is disturbed"),
        (started_group(2, "first_seen", 1), False, "the first generation of a group that was unknown before"),
        (started_group(2, "became_empty", 80, members=0), False, "all members had left, and they return"),
        (started_group(2, "first_seen", 0, members=0), False, "the group only committed until now"),
        (
            started_group(2, "first_seen", 57),
            True,
            "first seen with a higher generation: the new members disturb others",
        ),
        (
            started_group(9)[:1] + started_group(2)[1:],
            True,
            "the group has worked for minutes when the new members join",
        ),
        (started_group(10.4), False, "the start itself is before the window, but it still counts as a start"),
        (
            [*started_group(3), *every_minute(3, start=1.8)],
            False,
            "the start counts as one, and three unexplained rebalances as three",
        ),
        (
            [*started_group(3), *(rebalance(1 - n / 10) for n in range(4))],
            True,
            "the start counts as one, and four unexplained rebalances as four",
        ),
        (
            [one for minute in (9, 7, 5, 3, 1) for one in started_group(minute, "became_empty", members=0)],
            True,
            "all members leave and start again, five times: the program crashes",
        ),
        (
            [*started_group(3), *(rebalance(1 - number / 10, gone=f"pod-{number}") for number in range(1, 5))],
            True,
            "four members of the start leave again without a replacement",
        ),
        (
            [*started_group(4)[:3], rebalance(3.7, gone="pod-1"), *started_group(3)[1:6]],
            True,
            "the first member that leaves ends the start: later joins disturb the others",
        ),
        (
            [*started_group(3), rebalance(1.9, joined="pod-a", skipped_generations=9)],
            False,
            "a member that joins before the last join was synced skips a generation",
        ),
    ],
)
def test_a_start_of_a_group_is_not_a_storm(recent: list[RebalanceSummary], storms: bool, why: str) -> None:
    """Rule 3: scaling up from zero must not alert."""
    assert (REBALANCE_STORM in conditions(recent, NOW_MS, LIMITS)) is storms, why


def ended_group(minutes: float, pods: int = 10) -> list[RebalanceSummary]:
    """Return a group's end: members leave one second apart, and the last leaves this number of minutes ago."""
    one_by_one = [rebalance(minutes + n / 60, gone=f"pod-{n}") for n in range(pods - 1, 0, -1)]
    return [*one_by_one, rebalance(minutes, gone="pod-0", kind="became_empty", members=0)]


@pytest.mark.parametrize(
    ("recent", "storms", "why"),
    [
        (ended_group(1), False, "ten members stop within ten seconds: no member is disturbed"),
        (ended_group(1)[:-1], True, "nine of ten members have left, and the last one works"),
        ([*every_minute(5), *ended_group(1)], True, "a storm, and the group was stopped a minute ago"),
        ([*every_minute(5), *ended_group(4)], True, "a storm, and the group was stopped four minutes ago"),
        ([*every_minute(5), *ended_group(5)], False, "the group has had no members for five minutes"),
        (
            [one for minute in (8, 6, 4) for one in [*started_group(minute + 1), *ended_group(minute)]],
            True,
            "the group starts and ends three times: the program crashes",
        ),
        (
            [*[rebalance(9 - n / 4, gone=f"pod-{n}") for n in range(9)], *ended_group(1, 1)],
            True,
            "the members left long before the group was empty: a collapse",
        ),
    ],
)
def test_an_end_of_a_group_is_not_a_storm(recent: list[RebalanceSummary], storms: bool, why: str) -> None:
    """Rule 3: before, scaling down to zero alerted although the group had no members any more."""
    assert (REBALANCE_STORM in conditions(recent, NOW_MS, LIMITS)) is storms, why


@given(st.integers(2, 60), st.integers(0, 20 * MINUTE_MS))
def test_a_start_is_not_a_storm_at_any_later_time(pods: int, later_ms: int) -> None:
    """While the window moves over a start, joins that did not count never start to count."""
    recent = [rebalance(0, kind="created"), *(rebalance(-n / 20, joined=f"pod-{n}") for n in range(pods))]
    assert conditions(recent, NOW_MS + later_ms, LIMITS) == ()


def replaced(*keys: str) -> list[RebalanceSummary]:
    """Return the rebalances of a rolling restart: a member leaves, and its replacement joins half a minute later."""
    steps = [(9 - number, key) for number, key in enumerate(keys)]
    return [one for m, key in steps for one in (rebalance(m, gone=key), rebalance(m - 0.5, joined=f"{key}'"))]


def double_bounce(changed: tuple[str, ...] = ("strategy_changed",), *, static: bool = False) -> list[RebalanceSummary]:
    """Return the rebalances of two rolling restarts of all members. The strategy changes between the two."""
    if static:
        steps = [rejoin(9 - number, key) for number, key in enumerate("abcabc")]
    else:
        first, second = replaced("a-1", "b-1", "c-1"), replaced("a-1'", "b-1'", "c-1'")
        steps = [*first, *(replace(one, timestamp_ms=one.timestamp_ms + 3 * MINUTE_MS) for one in second)]
    half = len(steps) // 2
    causes = (*changed, *(() if static else ("member_gone",)))
    return [*steps[:half], replace(steps[half], kind="rebalance", causes=causes), *steps[half + 1 :]]


@pytest.mark.parametrize(
    ("recent", "rolls", "storms", "why"),
    [
        (replaced("a-1", "b-1", "c-1"), True, False, "three members, each replaced once: six rebalances and no storm"),
        (replaced("a-1", "a-2", "a-3"), True, False, "on one host, with one client id: only the member ids differ"),
        (replaced("a-1", "b-1", "c-1")[:-1], True, False, "the last member has not returned yet"),
        (replaced("a-1", "b-1"), True, False, "two replaced members are enough"),
        (replaced("a-1"), False, False, "one restart is not a rolling restart"),
        (
            [rejoin(3, "s-1"), rebalance(1, gone="s-2", is_static=True)],
            False,
            False,
            "one static member restarted, and one was stopped: only one member was replaced",
        ),
        (
            [rebalance(3, gone="a-1 b-1"), rebalance(2.9, joined="a-2 b-2")],
            False,
            False,
            "a rebalance timeout removed two members together, and they came back together",
        ),
        (
            [rebalance(m, gone=f"{m}-1 {m}-2", joined=f"{m}-3 {m}-4") for m in (5, 3)],
            True,
            False,
            "two members in each step (maxUnavailable of Kubernetes)",
        ),
        ([*replaced("a-1", "b-1", "c-1"), rebalance(1, gone="a-1'")], False, True, "the new member has already left"),
        (
            [*replaced("a-1", "b-1", "c-1"), rebalance(1)],
            True,
            False,
            "one additional join of the leader",
        ),
        (
            [*replaced("a-1", "b-1"), rebalance(3), rebalance(2), rebalance(1)],
            False,
            True,
            "too many unexplained rebalances",
        ),
        ([rejoin(m, f"pod-{m}") for m in range(5, 0, -1)], True, False, "static members, each rejoined once"),
        ([rejoin(3, "pod-1"), rejoin(2, "pod-1")], False, False, "one of the static members rejoined twice"),
        (
            [rebalance(m, gone=f"{m}-1") for m in range(8, 1, -1)],
            False,
            True,
            "all members leave and none joins: a collapse",
        ),
        (
            [rebalance(9, joined="x-1 y-1"), rebalance(8, gone="a-1"), rebalance(7, gone="b-1")],
            True,
            False,
            "the new members join first (surge)",
        ),
        (
            [
                rebalance(9 - m, gone=f"{m}-1", joined=f"{m}-2", causes=("strategy_changed", "member_gone"))
                for m in range(6)
            ],
            True,
            False,
            "the strategy changes too: the precedence of causes does not hide the members",
        ),
        (
            [*replaced("a-1", "b-1", "c-1"), rebalance(1, gone="z-1", unnamed=9)],
            False,
            True,
            "not all members are named",
        ),
        (
            [
                rebalance(9.9, kind="first_seen", members=0),
                rebalance(9.8, joined="a-1 b-1 c-1"),
                *replaced("a-1", "b-1", "c-1"),
            ],
            True,
            False,
            "the group was started just before: its members count as existing before",
        ),
        (
            [
                one
                for m in (9, 7, 5)
                for one in (rebalance(m, gone=f"{m}-1", joined=f"{m}-2"), rebalance(m - 1, causes=FOLLOWUP))
            ],
            True,
            False,
            "cooperative members, two rounds each",
        ),
        (double_bounce(), True, False, "from eager to cooperative: two consecutive rolling restarts"),
        (double_bounce(static=True), True, False, "the same with static members"),
        (double_bounce(changed=()), False, True, "without a strategy change it is two restarts of all members"),
        (double_bounce()[:-1] + replaced("a-1''")[:1], False, True, "a third restart is not part of the upgrade"),
    ],
)
def test_a_rolling_restart_is_distinguished_from_a_storm(
    recent: list[RebalanceSummary], rolls: bool, storms: bool, why: str
) -> None:
    found = conditions(recent, NOW_MS, LIMITS)
    assert (ROLLING_RESTART in found, REBALANCE_STORM in found) == (rolls, storms), why


def restarts(times: int, program: str = "pod", start: float = 9) -> list[RebalanceSummary]:
    """Return joins and leaves of one program that restarts repeatedly, each time with a new member id."""
    return [
        one
        for number in range(times)
        for one in (
            rebalance(start - number, joined=f"{program}-{number}"),
            rebalance(start - number - 0.5, gone=f"{program}-{number}"),
        )
    ]


@pytest.mark.parametrize(
    ("recent", "flapping", "why"),
    [
        (restarts(3), ("pod",), "joined and left three times, by client id and host"),
        (restarts(2), (), "twice"),
        ([*restarts(2), rebalance(3, joined="pod-9")], (), "after the third join it stays"),
        (restarts(3, start=12), (), "one of the restarts is too long ago"),
        ([*restarts(2), *restarts(2, "other", 6)], (), "two programs, twice each"),
        (
            replaced("a-1", "a-2", "a-3", "a-4"),
            (),
            "a rolling restart of four members on one host: no new member leaves",
        ),
        (
            [rejoin(m, "pod-1") for m in (3, 2, 1)],
            ("pod-1",),
            "librdkafka 3437: an instance id with changing member ids",
        ),
        ([rejoin(m, f"pod-{m}") for m in (3, 2, 1)], (), "three instances, once each"),
        (
            [
                one
                for m in (9, 7, 5, 3)
                for one in (rebalance(m, gone="i", is_static=True), rebalance(m - 1, joined="i", is_static=True))
            ],
            ("i",),
            "a static member is repeatedly away for longer than its session timeout",
        ),
    ],
)
def test_a_flapping_member(recent: list[RebalanceSummary], flapping: tuple[str, ...], why: str) -> None:
    assert (FLAPPING_MEMBER in conditions(recent, NOW_MS, LIMITS)) is bool(flapping), why
    in_window = [one for one in recent if one.timestamp_ms > NOW_MS - 10 * MINUTE_MS]
    assert tuple(sorted(flapping_members(in_window, LIMITS.flap_threshold))) == flapping


def test_a_group_that_has_had_no_members_for_a_long_time_has_no_flapping_member() -> None:
    """Nobody joins and leaves any more. A critical alert said "rebalances again and again" about such a group."""
    left = [*restarts(3, start=9.9), rebalance(5, gone="all", members=0)]
    assert FLAPPING_MEMBER in conditions(left, NOW_MS - 1, LIMITS), "the only member can come back"
    assert FLAPPING_MEMBER not in conditions(left, NOW_MS, LIMITS)
    assert flapping_members(left, LIMITS.flap_threshold), "the window still contains the restarts"


COOPERATIVE = {"protocol": "cooperative-sticky"}


@pytest.mark.parametrize(
    ("recent", "is_active", "why"),
    [
        (every_minute(5, **COOPERATIVE), True, "franz-go 995: members rejoin without a known cause"),
        (every_minute(5, causes=FOLLOWUP, **COOPERATIVE), True, "the cooperative rebalance never completes"),
        (every_minute(4, **COOPERATIVE), False, "four are not enough"),
        (every_minute(5), False, "an eager strategy: this is only a storm"),
        (every_minute(5, protocol=None), False, "the strategy is unknown"),
        ([*every_minute(5, **COOPERATIVE), rebalance(1, joined="a", **COOPERATIVE)], False, "a member joined"),
        (
            [rebalance(9.5, joined="a", **COOPERATIVE), *every_minute(5, **COOPERATIVE)],
            True,
            "a member joined before these rebalances",
        ),
        (
            [*every_minute(3, **COOPERATIVE), rejoin(6.5, "i"), *every_minute(2, 6, **COOPERATIVE)],
            True,
            "a static rejoin in between does not count",
        ),
        (every_minute(5, start=13, **COOPERATIVE), False, "the rebalances are too long ago"),
        (every_minute(5, protocol="uniform", group_type="consumer"), False, "members of KIP-848 groups do not rejoin"),
        (every_minute(5, causes=None, kind="first_seen"), False, "no rebalances"),
    ],
)
def test_endless_cooperative_rejoins(recent: list[RebalanceSummary], is_active: bool, why: str) -> None:
    assert (ENDLESS_COOPERATIVE_REJOIN in conditions(recent, NOW_MS, LIMITS)) is is_active, why


CHANGED = ("strategy_changed",)


@pytest.mark.parametrize(
    ("recent", "is_active", "why"),
    [
        (
            [rebalance(60, eager_claimers=1)],
            True,
            "an eager group with a cooperative client: active until this changes",
        ),
        ([rebalance(60, eager_claimers=1), rebalance(50)], False, "the client has left or changed"),
        ([rebalance(60, eager_claimers=1), rejoin(50, "i")], True, "a static rejoin does not change it"),
        ([rebalance(3, causes=CHANGED), rebalance(2, causes=CHANGED)], True, "changed and changed back within minutes"),
        ([rebalance(3, causes=CHANGED)], False, "a single change is a migration"),
        ([rebalance(60, causes=CHANGED), rebalance(2, causes=CHANGED)], False, "an hour apart: two migrations"),
        (
            [rebalance(m, causes=CHANGED, group_type="consumer") for m in (3, 2)],
            False,
            "the coordinator's assignor: no member revokes partitions for it",
        ),
        (
            [*(rebalance(m, causes=CHANGED) for m in (3, 2)), rebalance(1, kind="upgraded", group_type="consumer")],
            False,
            "the group was upgraded to KIP-848 since",
        ),
    ],
)
def test_eager_and_cooperative_mixed(recent: list[RebalanceSummary], is_active: bool, why: str) -> None:
    assert (EAGER_AND_COOPERATIVE_MIXED in conditions(recent, NOW_MS, LIMITS)) is is_active, why


@pytest.mark.parametrize(
    ("recent", "found", "why"),
    [
        ([rebalance(5, claimed_twice_partitions=1)], {DUPLICATE_CLAIMS}, "two members claim one partition"),
        (
            [rebalance(11, claimed_twice_partitions=1)],
            set(),
            "the claim is too long ago, and one of them owns the partition now",
        ),
        (
            [rebalance(5, claimed_twice_partitions=1), rebalance(3, kind="upgraded", group_type="consumer")],
            set(),
            "the group was upgraded to KIP-848 since: the coordinator assigns each partition once",
        ),
        (
            [rebalance(6, subscriptions=2)],
            {SUBSCRIPTION_MISMATCH},
            "different topics, for longer than a deployment takes",
        ),
        ([rebalance(4, subscriptions=2)], set(), "a deployment is in progress"),
        (
            [rebalance(6, subscriptions=2), rebalance(4, subscriptions=3)],
            {SUBSCRIPTION_MISMATCH},
            "the time counts from the first of them",
        ),
        ([rebalance(6, subscriptions=2), rebalance(4, subscriptions=1)], set(), "the subscriptions are the same again"),
    ],
)
def test_conditions_of_the_last_generations(recent: list[RebalanceSummary], found: set[str], why: str) -> None:
    watched = {DUPLICATE_CLAIMS, SUBSCRIPTION_MISMATCH}
    assert watched.intersection(conditions(recent, NOW_MS, LIMITS)) == found, why


def test_a_backlog_of_an_hour_that_arrives_in_one_batch_is_no_storm_now() -> None:
    """Windows end at the read time of the log and use the records' times, not the arrival times."""
    hour = [
        GroupMetadataWritten(Position(0, minute, minute * MINUTE_MS), metadata(minute, [member("m", {"orders": [0]})]))
        for minute in range(60)
    ]
    update = apply_batch(GroupState(GroupSnapshot("g")), hour, [assignor_named("range")])
    recent = update.record.rebalance_history.recent
    assert conditions(recent, 59 * MINUTE_MS, LIMITS) == (REBALANCE_STORM,), "at the end of the hour it was a storm"
    assert conditions(recent, 119 * MINUTE_MS, LIMITS) == (), "an hour later it is not a storm"
    rows = [reported.conditions for reported in update.rebalances]
    assert rows == [()] * 5 + [(REBALANCE_STORM,)] * 55, "rows use the time of their own rebalance"


@given(generations(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_time_alone_changes_conditions_only_after_same_until_ms(
    events: list[object], then_ms: int, for_ms: int
) -> None:
    """A verdict that is remembered until `same_until_ms` equals a new evaluation."""
    recent = updates([events])[-1].record.rebalance_history.recent  # type: ignore[list-item]
    until_ms = same_until_ms(recent, then_ms, LIMITS)
    assert until_ms > then_ms
    later_ms = min(then_ms + for_ms, int(min(until_ms, 10**9)) - 1)
    assert conditions(recent, later_ms, LIMITS) == conditions(recent, then_ms, LIMITS)


@given(generations(), st.integers(0, 10**6))
def test_conditions_do_not_depend_on_the_split_into_batches(events: list[object], read_up_to_ms: int) -> None:
    at_once = updates([events])[-1].record.rebalance_history.recent  # type: ignore[list-item]
    one_by_one = updates([[event] for event in events])[-1].record.rebalance_history.recent  # type: ignore[list-item]
    assert conditions(at_once, read_up_to_ms, LIMITS) == conditions(one_by_one, read_up_to_ms, LIMITS)
