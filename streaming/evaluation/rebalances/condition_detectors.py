"""Find the conditions that a group's last rebalances show: storms, flapping members, endless rounds and others.

The detectors evaluate the summaries of the group's last rebalances. The time of a rebalance is the time of its record.
"Now" is the time up to which the group's partition of `__consumer_offsets` has been read (`read_up_to`). The wall clock
is not used. With the wall clock, each restart of the monitor would look like a storm, because the monitor then reads
many old records in a short time. The monitor would also report silence before it has read the last records. Rules:

1. The *window* is the last `window_seconds` before now. A generation without a record is in the window if its
   neighbouring records are in the window. A deleted group has no conditions.
2. `rolling_restart`: the members are replaced in several steps. All of the following statements must be true. At least
   two members were replaced. A member was replaced if it left and a member joined, or if it rejoined with its group
   instance id. Members left or rejoined in at least two records. The replaced members were in the group before the
   window began. Each replaced member left or rejoined only once. The number of members that left and the number of
   members that joined differ by at most one, or by at most a quarter of the group. All members that joined are still in
   the group. At least two thirds of the rebalances have a member that joined, left or rejoined, or the cause
   `cooperative_followup`. The remaining rebalances can have other causes, because clients sometimes rejoin for a reason
   that no record shows. If the strategy changed within the window, the rule allows two replacements of each member,
   because an upgrade from eager to cooperative (KIP-429) needs two rolling restarts.
3. `rebalance_storm`: the window has at least `storm_rebalances` rebalances and no rolling restart. A cooperative round
   that only assigns previously withheld partitions is not counted. The *start* of a group counts as one rebalance,
   because pods that start interrupt only their own work. The start is a time span. It begins when the group is created
   or becomes empty. It ends after `stuck_after_seconds`, or when a member leaves or rejoins. A rebalance belongs to the
   start if members joined, and no member left or rejoined. Several starts of the same group can still be a storm. After
   the start, each joining member interrupts all others, so each rebalance counts. Rule 2 ignores the rebalances of the
   start, as if they were older than the window. So the monitor can recognise a rolling restart a few minutes after the
   group's start. The *end* of a group also counts as one rebalance. The end is also a time span: at most the last
   `stuck_after_seconds` before the group becomes empty. During the end, members only leave. If a group has had no
   members for longer than `stuck_after_seconds`, the condition is not active. The cause of a storm can be a different
   condition (rules 4 to 6). Then both conditions are shown, because the cause may explain only a part of the storm.
4. `flapping_member`: within the window, a member left or rejoined at least `flap_threshold` times. A leave counts only
   if the member joined earlier in the window. A rejoin always counts. A static member is identified by its group
   instance id. A member without a group instance id is identified by client id and host, because its member id changes
   at each restart. Several members can have the same client id and host. If a deployment replaces these members once,
   the condition is not active, because the replaced members joined before the window began. If a group has had no
   members for longer than `stuck_after_seconds`, the condition is not active. Shorter times without members do not end
   the condition, because the only member of a group can flap too.
5. `endless_cooperative_rejoin`: at least COOPERATIVE_ROUNDS successive generations, including the last generation, are
   within the window. Their strategy is not eager. Their only causes are `cooperative_followup` and `unexplained`: no
   member joined or left, and no subscription changed. The condition exists only for classic groups, because members of
   other groups do not rejoin.
6. `eager_and_cooperative_mixed`: the strategy of the last generation is eager, but a member claimed partitions when it
   joined. With an eager strategy, members must revoke all partitions before they join. The condition is also active if
   the strategy changed more than once within the window. An upgrade to KIP-848 ends the condition, because only classic
   groups have eager and cooperative strategies.
7. `duplicate_claims`: a record within the window shows that two members claimed the same partition for the same
   generation. `sticky` members claim only partitions that they have revoked, so their claims are not compared. An
   upgrade to KIP-848 ends the condition.
8. `subscription_mismatch`: the members have had different subscriptions for longer than `stuck_after_seconds`. During a
   deployment, subscriptions can be different for a short time. Unknown subscriptions are not compared.

The modules in `conditions/` find the conditions that the summaries do not show.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from assignors.coordinator import EAGER_STRATEGIES
from streaming.evaluation.rebalances.rebalance_summary import MemberName, RebalanceSummary
from streaming.evaluation.rebalances.rebalances import (
    BECAME_EMPTY,
    COOPERATIVE_FOLLOWUP,
    CREATED,
    DELETED,
    FIRST_SEEN,
    MEMBER_GONE,
    MEMBER_JOINED,
    REBALANCE,
    STATIC_REJOIN,
    STRATEGY_CHANGED,
    UNEXPLAINED,
)
from streaming.events import CLASSIC

ROLLING_RESTART = "rolling_restart"
REBALANCE_STORM = "rebalance_storm"
FLAPPING_MEMBER = "flapping_member"
ENDLESS_COOPERATIVE_REJOIN = "endless_cooperative_rejoin"
EAGER_AND_COOPERATIVE_MIXED = "eager_and_cooperative_mixed"
DUPLICATE_CLAIMS = "duplicate_claims"
SUBSCRIPTION_MISMATCH = "subscription_mismatch"
UNOWNED_PARTITIONS = "unowned_partitions"

HARMLESS = frozenset({ROLLING_RESTART, SUBSCRIPTION_MISMATCH})
"""Conditions that are not a problem: a normal deployment, and different subscriptions, which can last for months."""

COOPERATIVE_ROUNDS = 5
"""Minimum number of successive generations (rule 5)."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The thresholds of the conditions.

    `flap_threshold` belongs to rule 4. A small lag can remain, because no consumer receives the transaction markers at
    the end of a partition. So a lag of up to `allowed_lag` records counts as 0.
    """

    window_seconds: float = 600
    storm_rebalances: int = 5
    flap_threshold: int = 3
    stuck_after_seconds: float = 300
    allowed_lag: int = 0


def conditions(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> tuple[str, ...]:
    """Return the names of the active conditions. `recent` contains the group's last rebalances, oldest first.

    Example: five rebalances within five minutes, without a known cause.

    >>> why = ("unexplained",)
    >>> of = [RebalanceSummary(60_000 * minute, minute, "rebalance", why, "range", 3) for minute in range(5)]
    >>> conditions(of, 300_000, Limits()), conditions(of, 3_600_000, Limits())
    (('rebalance_storm',), ())
    """
    if not recent or recent[-1].kind == DELETED:
        return ()
    window = window_of(recent, read_up_to_ms, limits)
    is_rolling = is_rolling_restart(_without_starts(recent, window, limits))
    is_deserted = _is_deserted(recent, read_up_to_ms, limits)
    is_active = {
        ROLLING_RESTART: is_rolling,
        REBALANCE_STORM: _is_storm(recent, read_up_to_ms, limits) and not is_rolling and not is_deserted,
        FLAPPING_MEMBER: bool(flapping_members(window, limits.flap_threshold)) and not is_deserted,
        ENDLESS_COOPERATIVE_REJOIN: idle_cooperative_rounds(window) >= COOPERATIVE_ROUNDS,
        DUPLICATE_CLAIMS: _has_duplicate_claims(recent, window),
        **_present_conditions(recent, window, read_up_to_ms - 1000 * limits.stuck_after_seconds),
    }
    return tuple(name for name, holds in is_active.items() if holds)


def same_until_ms(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> float:
    """Return the first time at which the result of `conditions` can change without a new rebalance.

    At the returned time, a rebalance leaves the window or becomes older than `stuck_after_seconds`.
    """
    spans_ms = (1000 * limits.window_seconds, 1000 * limits.stuck_after_seconds)
    changes_ms = (rebalance.timestamp_ms + span_ms for rebalance in recent for span_ms in spans_ms)
    return min((at_ms for at_ms in changes_ms if at_ms > read_up_to_ms), default=float("inf"))


def _has_duplicate_claims(recent: Sequence[RebalanceSummary], window: Sequence[RebalanceSummary]) -> bool:
    """Return False for a KIP-848 group, because an upgrade to KIP-848 ends the condition."""
    is_classic = latest_generation(recent).group_type == CLASSIC
    return is_classic and any(rebalance.claimed_twice_partitions for rebalance in window)


def _is_deserted(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> bool:
    """Return True if the group has had no members for longer than `stuck_after_seconds` (rules 3 and 4)."""
    latest = latest_generation(recent)
    return not latest.members and latest.timestamp_ms <= read_up_to_ms - 1000 * limits.stuck_after_seconds


def _is_storm(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> bool:
    counted, skipped = counted_rebalances(recent, read_up_to_ms, limits)
    return len(counted) + skipped >= limits.storm_rebalances


def window_of(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> list[RebalanceSummary]:
    """Return the rebalances within the window (rule 1), oldest first."""
    since_ms = read_up_to_ms - 1000 * limits.window_seconds
    return list(takewhile(lambda rebalance: rebalance.timestamp_ms > since_ms, reversed(recent)))[::-1]


def counted_rebalances(
    recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits
) -> tuple[list[RebalanceSummary], int]:
    """Return the counted rebalances of the window (rule 3), and the number of generations without a record.

    The first rebalance of a start represents the whole start. The first rebalance of an end represents the whole end.
    """
    window = window_of(recent, read_up_to_ms, limits)
    outside = len(recent) - len(window)
    spans = list(zip(_starts(recent, limits), _ends(recent, limits), strict=True))[outside:]
    counted, skipped = [], 0
    for number, (rebalance, span) in enumerate(zip(window, spans, strict=True)):
        if span != (None, None):
            if span not in spans[:number]:
                counted.append(rebalance)
            continue
        if rebalance.kind == REBALANCE and rebalance.causes != (COOPERATIVE_FOLLOWUP,):
            counted.append(rebalance)
        if number and rebalance.kind in {REBALANCE, BECAME_EMPTY}:
            skipped += rebalance.skipped_generations
    return counted, skipped


def _starts(recent: Sequence[RebalanceSummary], limits: Limits) -> list[int | None]:
    """Give each start of the group a number (rule 3). Return for each rebalance the number of its start, or None.

    `_starts` evaluates all stored rebalances, including rebalances before the window. So a start does not change when
    its first rebalances leave the window.
    """
    starts: list[int | None] = []
    number, until_ms = 0, float("-inf")
    for rebalance in recent:
        is_within = rebalance.timestamp_ms <= until_ms
        starts.append(number if is_within and _has_only_joins(rebalance) else None)
        if _starts_without_members(rebalance):
            number, until_ms = number + 1, rebalance.timestamp_ms + 1000 * limits.stuck_after_seconds
        elif rebalance.gone or rebalance.rejoined:
            until_ms = float("-inf")
    return starts


def _starts_without_members(rebalance: RebalanceSummary) -> bool:
    """Return True if the group was empty before or after the rebalance. Before generation 1, a group is empty."""
    is_first = rebalance.kind == FIRST_SEEN and rebalance.generation_id <= 1
    return rebalance.members == 0 or rebalance.kind == CREATED or is_first


def _has_only_joins(rebalance: RebalanceSummary) -> bool:
    return rebalance.kind == REBALANCE and bool(rebalance.joined) and not rebalance.gone and not rebalance.rejoined


def _ends(recent: Sequence[RebalanceSummary], limits: Limits) -> list[int | None]:
    """Give each end of the group a number (rule 3). Return for each rebalance the number of its end, or None."""
    ends: list[int | None] = []
    number, since_ms = 0, float("inf")
    for rebalance in reversed(recent):
        ends.append(number if rebalance.timestamp_ms >= since_ms and _has_only_leaves(rebalance) else None)
        if not rebalance.members:
            number, since_ms = number + 1, rebalance.timestamp_ms - 1000 * limits.stuck_after_seconds
        elif not _has_only_leaves(rebalance):
            since_ms = float("inf")
    return ends[::-1]


def _without_starts(
    recent: Sequence[RebalanceSummary], window: Sequence[RebalanceSummary], limits: Limits
) -> list[RebalanceSummary]:
    of_start = _starts(recent, limits)[len(recent) - len(window) :]
    return [rebalance for rebalance, start in zip(window, of_start, strict=True) if start is None]


def _has_only_leaves(rebalance: RebalanceSummary) -> bool:
    return rebalance.kind == REBALANCE and bool(rebalance.gone) and not rebalance.joined and not rebalance.rejoined


def is_rolling_restart(window: Sequence[RebalanceSummary]) -> bool:
    """Return True if the members are being replaced in several steps (rule 2)."""
    rebalances = [rebalance for rebalance in window if rebalance.kind == REBALANCE]
    by_members = {MEMBER_GONE, MEMBER_JOINED, COOPERATIVE_FOLLOWUP}
    idle = sum(not one.rejoined and by_members.isdisjoint(one.causes or ()) for one in rebalances)
    if 3 * idle > len(rebalances) or not all(rebalance.is_whole for rebalance in window):
        return False
    is_upgrade = any(STRATEGY_CHANGED in (rebalance.causes or ()) for rebalance in window)
    if _times_replaced(window) > (2 if is_upgrade else 1):
        return False
    left, joined = _sum_of(window, "gone"), _sum_of(window, "joined")
    steps = sum(bool(rebalance.gone or rebalance.rejoined) for rebalance in window)
    members = max((rebalance.members for rebalance in window), default=0)
    return _count_replaced(window) >= 2 and steps >= 2 and abs(left - joined) <= max(1, members // 4)


def replaced_members(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> int:
    """Return the number of members that were replaced in the window (rule 2). Rebalances of starts are ignored."""
    return _count_replaced(_without_starts(recent, window_of(recent, read_up_to_ms, limits), limits))


def _count_replaced(window: Sequence[RebalanceSummary]) -> int:
    return _sum_of(window, "rejoined") + min(_sum_of(window, "gone"), _sum_of(window, "joined"))


def _sum_of(window: Iterable[RebalanceSummary], change: str) -> int:
    return sum(len(getattr(rebalance, change)) for rebalance in window)


def _times_replaced(window: Iterable[RebalanceSummary]) -> int:
    """Return the number of rounds in which members were replaced.

    If a member joined, left or rejoined in a round, the next leave or rejoin of the same member begins a new round.
    """
    times, new = 1, set[str]()
    for rebalance in window:
        left = {member.key for member in (*rebalance.gone, *rebalance.rejoined)}
        if new.intersection(left):
            times, new = times + 1, set()
        new |= left.union(member.key for member in rebalance.joined)
    return times


def flapping_members(window: Iterable[RebalanceSummary], flap_threshold: int) -> Mapping[str, int]:
    """Return the flapping members, and how often each of them left or rejoined (rule 4).

    The keys are group instance ids, or client ids with hosts.
    """
    joined: set[str] = set()
    flaps: Counter[str] = Counter()
    for rebalance in window:
        flaps.update(_display_name(member) for member in rebalance.rejoined)
        flaps.update(_display_name(member) for member in rebalance.gone if member.key in joined)
        joined.difference_update(member.key for member in rebalance.gone)
        joined.update(member.key for member in rebalance.joined)
    return {name: times for name, times in flaps.items() if times >= flap_threshold}


def _display_name(member: MemberName) -> str:
    return member.key if member.is_static else member.client


def idle_cooperative_rounds(window: Sequence[RebalanceSummary]) -> int:
    """Return how many successive generations meet rule 5, counted back from the last generation."""
    rounds = (rebalance for rebalance in reversed(window) if rebalance.kind != STATIC_REJOIN)
    return sum(1 for _ in takewhile(_is_idle_and_cooperative, rounds))


def _is_idle_and_cooperative(rebalance: RebalanceSummary) -> bool:
    is_cooperative = rebalance.protocol is not None and rebalance.protocol not in EAGER_STRATEGIES
    is_idle = rebalance.causes is not None and {COOPERATIVE_FOLLOWUP, UNEXPLAINED}.issuperset(rebalance.causes)
    return rebalance.kind == REBALANCE and rebalance.group_type == CLASSIC and is_cooperative and is_idle


def latest_generation(recent: Sequence[RebalanceSummary]) -> RebalanceSummary:
    """Return the group's last rebalance that is not the rejoin of a static member. A rejoin creates no generation."""
    return next((rebalance for rebalance in reversed(recent) if rebalance.kind != STATIC_REJOIN), recent[-1])


def _present_conditions(
    recent: Sequence[RebalanceSummary], window: Iterable[RebalanceSummary], stuck_since_ms: float
) -> Mapping[str, bool]:
    """Evaluate rules 6 and 8 for the last generation. Rejoins of static members are ignored."""
    latest = latest_generation(recent)
    different = list(takewhile(lambda rebalance: rebalance.subscriptions > 1, reversed(recent)))
    changes = sum(
        STRATEGY_CHANGED in (rebalance.causes or ()) and rebalance.group_type == CLASSIC for rebalance in window
    )
    return {
        EAGER_AND_COOPERATIVE_MIXED: latest.group_type == CLASSIC and (latest.eager_claimers > 0 or changes > 1),
        SUBSCRIPTION_MISMATCH: bool(different) and different[-1].timestamp_ms <= stuck_since_ms,
    }
