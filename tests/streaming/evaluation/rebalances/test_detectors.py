"""Conditions that the last rebalances show together: one table a rule, each row says why."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from assignors import assignor_named
from streaming.evaluation.group_update import GroupState, apply_batch
from streaming.evaluation.rebalances.detectors import (
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
    """Return members by key; what stands before a dash is the program and host they run on."""
    return tuple(MemberName(key, key.split("-", maxsplit=1)[0], is_static) for key in text.split())


def rebalance(  # noqa: PLR0913 - what a rebalance can be
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
    """Return a rebalance so many minutes before now; causes follow from who came and went unless given."""
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
    """Return a static member's rejoin, at the same generation."""
    return rebalance(minute, rejoined=key, kind="static_rejoin", is_static=True)


def every_minute(count: int, start: float = 9, **more: object) -> list[RebalanceSummary]:
    """Return rebalances a minute apart that nobody's coming or going explains."""
    return [rebalance(start - number, **more) for number in range(count)]  # type: ignore[arg-type]


FOLLOWUP = ("cooperative_followup",)


@pytest.mark.parametrize(
    ("recent", "is_active", "why"),
    [
        (every_minute(5), True, "five in ten minutes"),
        (every_minute(4), False, "four are restless, no storm"),
        (every_minute(5, start=12), False, "two of them are more than ten minutes ago"),
        (every_minute(50, start=100), False, "an hour of them, read at once, and quiet for long: none is now"),
        ([rebalance(5), rebalance(4, skipped_generations=900)], True, "joins that never synced have no record"),
        ([rebalance(11), rebalance(4, skipped_generations=900)], False, "nobody knows when those were: before, maybe"),
        (every_minute(9, causes=FOLLOWUP, protocol="stream"), False, "second rounds count with their first"),
        (
            [rebalance(m, joined=f"n-{m}") for m in range(5, 0, -1)],
            True,
            "who joins one by one is a storm to the others",
        ),
        (every_minute(9, kind="static_rejoin"), False, "a static rejoin is no rebalance"),
        ([*every_minute(9), rebalance(0.1, kind="deleted")], False, "the group is no more"),
        ([], False, "nothing is remembered"),
    ],
)
def test_a_storm(recent: list[RebalanceSummary], is_active: bool, why: str) -> None:
    assert (REBALANCE_STORM in conditions(recent, NOW_MS, LIMITS)) is is_active, why


def started(minutes: int, kind: str = "created", generation_id: int = 0, **more: int) -> list[RebalanceSummary]:
    """Return a group's start so many minutes ago: it has its first member, and nine come within the minute after."""
    first = replace(rebalance(minutes, kind=kind, **more), generation_id=generation_id)
    return [first, *(rebalance(minutes - number / 10, joined=f"pod-{number}") for number in range(1, 10))]


@pytest.mark.parametrize(
    ("recent", "storms", "why"),
    [
        (started(2), False, "ten pods come up within a minute: a deployment, and nobody's work is stopped"),
        (started(2, "first_seen", 1), False, "the first generation of a group that nobody saw before"),
        (started(2, "became_empty", 80, members=0), False, "all had gone, and come back"),
        (started(2, "first_seen", 0, members=0), False, "it only committed until now"),
        (started(2, "first_seen", 57), True, "first seen in the middle of its life: they come to others"),
        (started(9)[:1] + started(2)[1:], True, "it has worked for minutes when they come"),
        (started(10.4), False, "the start itself is out of the window, and was one all the same"),
        (
            [*started(3), *every_minute(3, start=1.8)],
            False,
            "it counts as one, and three that nobody explains as three",
        ),
        ([*started(3), *(rebalance(1 - n / 10) for n in range(4))], True, "and four as four"),
        (
            [one for minute in (9, 7, 5, 3, 1) for one in started(minute, "became_empty", members=0)],
            True,
            "all go, and start again, five times: it crashes",
        ),
        (
            [*started(3), *(rebalance(1 - number / 10, gone=f"pod-{number}") for number in range(1, 5))],
            True,
            "four that came with the start go again, and nobody comes for them",
        ),
        (
            [*started(4)[:3], rebalance(3.7, gone="pod-1"), *started(3)[1:6]],
            True,
            "with the first that goes the start is over: who comes then stops the others",
        ),
        (
            [*started(3), rebalance(1.9, joined="pod-a", skipped_generations=9)],
            False,
            "who joins before the last join was synced skips a generation",
        ),
    ],
)
def test_a_group_that_starts_is_no_storm(recent: list[RebalanceSummary], storms: bool, why: str) -> None:
    """Rule 3: a deployment that scales up from nothing must not page anybody."""
    assert (REBALANCE_STORM in conditions(recent, NOW_MS, LIMITS)) is storms, why


def ended(minutes: float, pods: int = 10) -> list[RebalanceSummary]:
    """Return a group's end: its members leave a second after each other, the last so many minutes ago."""
    one_by_one = [rebalance(minutes + n / 60, gone=f"pod-{n}") for n in range(pods - 1, 0, -1)]
    return [*one_by_one, rebalance(minutes, gone="pod-0", kind="became_empty", members=0)]


@pytest.mark.parametrize(
    ("recent", "storms", "why"),
    [
        (ended(1), False, "ten members shut down within ten seconds: nobody is left to be disturbed"),
        (ended(1)[:-1], True, "nine of ten have gone, and the last one works"),
        ([*every_minute(5), *ended(1)], True, "it stormed before somebody shut it down a minute ago"),
        ([*every_minute(5), *ended(4)], True, "and four minutes ago"),
        ([*every_minute(5), *ended(5)], False, "it has had nobody for a round"),
        (
            [one for minute in (8, 6, 4) for one in [*started(minute + 1), *ended(minute)]],
            True,
            "it starts and ends three times: it crashes",
        ),
        (
            [*[rebalance(9 - n / 4, gone=f"pod-{n}") for n in range(9)], *ended(1, 1)],
            True,
            "they went long before it was empty: a collapse",
        ),
    ],
)
def test_a_group_that_ends_is_no_storm(recent: list[RebalanceSummary], storms: bool, why: str) -> None:
    """Rule 3: a scale-down to nothing paged, and the group had nobody any more."""
    assert (REBALANCE_STORM in conditions(recent, NOW_MS, LIMITS)) is storms, why


@given(st.integers(2, 60), st.integers(0, 20 * MINUTE_MS))
def test_a_start_is_no_storm_at_any_time_it_is_looked_at(pods: int, later_ms: int) -> None:
    """Rule: as the window slides over a start, what was not counted is not counted any more either."""
    recent = [rebalance(0, kind="created"), *(rebalance(-n / 20, joined=f"pod-{n}") for n in range(pods))]
    assert conditions(recent, NOW_MS + later_ms, LIMITS) == ()


def replaced(*keys: str) -> list[RebalanceSummary]:
    """Return the rebalances of a rolling restart: each goes, and another comes half a minute later."""
    steps = [(9 - number, key) for number, key in enumerate(keys)]
    return [one for m, key in steps for one in (rebalance(m, gone=key), rebalance(m - 0.5, joined=f"{key}'"))]


def bounced_twice(changed: tuple[str, ...] = ("strategy_changed",), *, static: bool = False) -> list[RebalanceSummary]:
    """Return the rebalances of a double bounce: all are replaced, then all once more. Halfway the strategy changes."""
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
        (replaced("a-1", "b-1", "c-1"), True, False, "three, each replaced once: six rebalances and no storm"),
        (replaced("a-1", "a-2", "a-3"), True, False, "on one host, of one client id: told apart by member id"),
        (replaced("a-1", "b-1", "c-1")[:-1], True, False, "the last has not come back yet"),
        (replaced("a-1", "b-1"), True, False, "two are enough to call it so"),
        (replaced("a-1"), False, False, "one restart is one restart"),
        ([*replaced("a-1", "b-1", "c-1"), rebalance(1, gone="a-1'")], False, True, "the new one is gone already"),
        (
            [*replaced("a-1", "b-1", "c-1"), rebalance(1)],
            True,
            False,
            "a leader joined once more than need be",
        ),
        ([*replaced("a-1", "b-1"), rebalance(3), rebalance(2), rebalance(1)], False, True, "too many nobody explains"),
        ([rejoin(m, f"pod-{m}") for m in range(5, 0, -1)], True, False, "static members, each rejoined once"),
        ([rejoin(3, "pod-1"), rejoin(2, "pod-1")], False, False, "one of them twice"),
        ([rebalance(m, gone=f"{m}-1") for m in range(8, 1, -1)], False, True, "all go, nobody comes: a collapse"),
        (
            [rebalance(9, joined="x-1 y-1"), rebalance(8, gone="a-1"), rebalance(7, gone="b-1")],
            True,
            False,
            "the new ones come first: a surge",
        ),
        (
            [
                rebalance(9 - m, gone=f"{m}-1", joined=f"{m}-2", causes=("strategy_changed", "member_gone"))
                for m in range(6)
            ],
            True,
            False,
            "with another strategy: the causes' precedence does not hide the members",
        ),
        ([*replaced("a-1", "b-1", "c-1"), rebalance(1, gone="z-1", unnamed=9)], False, True, "not all are named"),
        (
            [
                rebalance(9.9, kind="first_seen", members=0),
                rebalance(9.8, joined="a-1 b-1 c-1"),
                *replaced("a-1", "b-1", "c-1"),
            ],
            True,
            False,
            "it was started just before: its members count as there before",
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
        (bounced_twice(), True, False, "from eager to cooperative: two rolling restarts, one after the other"),
        (bounced_twice(static=True), True, False, "of static members, too"),
        (bounced_twice(changed=()), False, True, "without another strategy it is two restarts of everything"),
        (bounced_twice()[:-1] + replaced("a-1''")[:1], False, True, "a third restart belongs to no upgrade"),
    ],
)
def test_a_rolling_restart_is_told_from_a_storm(
    recent: list[RebalanceSummary], rolls: bool, storms: bool, why: str
) -> None:
    found = conditions(recent, NOW_MS, LIMITS)
    assert (ROLLING_RESTART in found, REBALANCE_STORM in found) == (rolls, storms), why


def restarts(times: int, program: str = "pod", start: float = 9) -> list[RebalanceSummary]:
    """Return the comings and goings of one program that is started again and again, a new member id each time."""
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
        (restarts(3), ("pod",), "came and went three times, by client id and host"),
        (restarts(2), (), "twice"),
        ([*restarts(2), rebalance(3, joined="pod-9")], (), "the third time it stays"),
        (restarts(3, start=12), (), "one of them is too long ago"),
        ([*restarts(2), *restarts(2, "other", 6)], (), "two programs, twice each"),
        (replaced("a-1", "a-2", "a-3", "a-4"), (), "a rolling restart of four on one host: none that came went"),
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
            "a static member away for longer than its session, again and again",
        ),
    ],
)
def test_a_flapping_member(recent: list[RebalanceSummary], flapping: tuple[str, ...], why: str) -> None:
    assert (FLAPPING_MEMBER in conditions(recent, NOW_MS, LIMITS)) is bool(flapping), why
    in_window = [one for one in recent if one.timestamp_ms > NOW_MS - 10 * MINUTE_MS]
    assert flapping_members(in_window, LIMITS.flap_threshold) == flapping


COOPERATIVE = {"protocol": "cooperative-sticky"}


@pytest.mark.parametrize(
    ("recent", "is_active", "why"),
    [
        (every_minute(5, **COOPERATIVE), True, "franz-go 995: they rejoin and nobody knows why"),
        (every_minute(5, causes=FOLLOWUP, **COOPERATIVE), True, "something is handed over for ever"),
        (every_minute(4, **COOPERATIVE), False, "four"),
        (every_minute(5), False, "an eager strategy: a storm, and not that one"),
        (every_minute(5, protocol=None), False, "no strategy told"),
        ([*every_minute(5, **COOPERATIVE), rebalance(1, joined="a", **COOPERATIVE)], False, "somebody came"),
        ([rebalance(9.5, joined="a", **COOPERATIVE), *every_minute(5, **COOPERATIVE)], True, "that was before"),
        (
            [*every_minute(3, **COOPERATIVE), rejoin(6.5, "i"), *every_minute(2, 6, **COOPERATIVE)],
            True,
            "a rejoin between",
        ),
        (every_minute(5, start=13, **COOPERATIVE), False, "they are too long ago"),
        (every_minute(5, protocol="uniform", group_type="consumer"), False, "members of KIP-848 do not rejoin"),
        (every_minute(5, causes=None, kind="first_seen"), False, "no rebalances"),
    ],
)
def test_endless_cooperative_rejoins(recent: list[RebalanceSummary], is_active: bool, why: str) -> None:
    assert (ENDLESS_COOPERATIVE_REJOIN in conditions(recent, NOW_MS, LIMITS)) is is_active, why


CHANGED = ("strategy_changed",)


@pytest.mark.parametrize(
    ("recent", "is_active", "why"),
    [
        ([rebalance(60, eager_claimers=1)], True, "a cooperative client in an eager group, for as long as it is so"),
        ([rebalance(60, eager_claimers=1), rebalance(50)], False, "it is so no more"),
        ([rebalance(60, eager_claimers=1), rejoin(50, "i")], True, "a rejoin changes nothing of it"),
        ([rebalance(3, causes=CHANGED), rebalance(2, causes=CHANGED)], True, "there and back within minutes"),
        ([rebalance(3, causes=CHANGED)], False, "once: a migration"),
        ([rebalance(60, causes=CHANGED), rebalance(2, causes=CHANGED)], False, "an hour apart: two migrations"),
        (
            [rebalance(m, causes=CHANGED, group_type="consumer") for m in (3, 2)],
            False,
            "the coordinator's assignor: nobody gives up partitions for it",
        ),
        (
            [*(rebalance(m, causes=CHANGED) for m in (3, 2)), rebalance(1, kind="upgraded", group_type="consumer")],
            False,
            "it was upgraded to KIP-848 since",
        ),
    ],
)
def test_eager_and_cooperative_mixed(recent: list[RebalanceSummary], is_active: bool, why: str) -> None:
    assert (EAGER_AND_COOPERATIVE_MIXED in conditions(recent, NOW_MS, LIMITS)) is is_active, why


@pytest.mark.parametrize(
    ("recent", "found", "why"),
    [
        ([rebalance(5, claimed_twice_partitions=1)], {DUPLICATE_CLAIMS}, "two members claim one partition"),
        ([rebalance(11, claimed_twice_partitions=1)], set(), "the generation gave it to one of them, long ago"),
        ([rebalance(6, subscriptions=2)], {SUBSCRIPTION_MISMATCH}, "different topics, for longer than a deployment"),
        ([rebalance(4, subscriptions=2)], set(), "a deployment goes on"),
        ([rebalance(6, subscriptions=2), rebalance(4, subscriptions=3)], {SUBSCRIPTION_MISMATCH}, "since the first"),
        ([rebalance(6, subscriptions=2), rebalance(4, subscriptions=1)], set(), "it is over"),
    ],
)
def test_what_the_last_generations_leave_behind(recent: list[RebalanceSummary], found: set[str], why: str) -> None:
    watched = {DUPLICATE_CLAIMS, SUBSCRIPTION_MISMATCH}
    assert watched.intersection(conditions(recent, NOW_MS, LIMITS)) == found, why


def test_a_backlog_of_an_hour_that_arrives_in_one_batch_is_no_storm_now() -> None:
    """Rule: windows end where the log was read, on the records' own times, however they arrive."""
    hour = [
        GroupMetadataWritten(Position(0, minute, minute * MINUTE_MS), metadata(minute, [member("m", {"orders": [0]})]))
        for minute in range(60)
    ]
    update = apply_batch(GroupState(GroupSnapshot("g")), hour, [assignor_named("range")])
    recent = update.record.rebalance_history.recent
    assert conditions(recent, 59 * MINUTE_MS, LIMITS) == (REBALANCE_STORM,), "as of its end it was one"
    assert conditions(recent, 119 * MINUTE_MS, LIMITS) == (), "an hour later it is none"
    rows = [reported.conditions for reported in update.rebalances]
    assert rows == [()] * 5 + [(REBALANCE_STORM,)] * 55, "its rows say so as of their own time"


@given(generations(), st.integers(0, 10**6), st.integers(0, 10**6))
def test_time_alone_changes_conditions_only_where_it_is_said_to(
    events: list[object], then_ms: int, for_ms: int
) -> None:
    """Rule: who remembers a verdict until `same_until_ms` says what a fresh look says."""
    recent = updates([events])[-1].record.rebalance_history.recent  # type: ignore[list-item]
    until_ms = same_until_ms(recent, then_ms, LIMITS)
    assert until_ms > then_ms
    later_ms = min(then_ms + for_ms, int(min(until_ms, 10**9)) - 1)
    assert conditions(recent, later_ms, LIMITS) == conditions(recent, then_ms, LIMITS)


@given(generations(), st.integers(0, 10**6))
def test_conditions_are_the_same_whatever_the_batches(events: list[object], read_up_to_ms: int) -> None:
    at_once = updates([events])[-1].record.rebalance_history.recent  # type: ignore[list-item]
    one_by_one = updates([[event] for event in events])[-1].record.rebalance_history.recent  # type: ignore[list-item]
    assert conditions(at_once, read_up_to_ms, LIMITS) == conditions(one_by_one, read_up_to_ms, LIMITS)
