"""Conditions of a group that its last rebalances show together: storms, flapping members, endless rounds and the like.

Judged from what is remembered of a group's rebalances in brief, on the records' own times. Now is the time up to which
the group's partition of `__consumer_offsets` has been read (`read_up_to`), not the clock on the wall: a backlog of an
hour that is read at once is no storm now, and what was not read yet is not taken for quiet. Rules:

1. The *window* are the last `window_seconds` before now. A generation that no record carries lies in it if the records
   before and after it do. A group that was deleted has no conditions.
2. `rolling_restart`: members are replaced one after the other. At least two went that were there before the window, or
   rejoined under their instance id, each once; as many came, give or take a quarter of the group (or one), and none of
   them went. At least two of three rebalances are somebody's coming or going: clients of real groups rejoin now and
   then for no reason that a record tells. If the strategy changed within the window, members may be replaced twice:
   the upgrade from eager to cooperative (KIP-429) takes two rolling restarts.
3. `rebalance_storm`: at least `storm_rebalances` rebalances in the window, and it is no rolling restart. Rounds in
   which cooperative members only hand over what the round before withheld are not counted. The *start* of a group
   counts as one: the rebalances in which members only come, for `stuck_after_seconds` after it had nobody or until
   somebody goes. Ten pods that come up one after the other stop nobody's work but their own; a group that starts again
   and again is a storm still. In a group that works already each that comes stops all others: that is counted. Who came
   with the start was there before (rule 2): a deployment may be rolled minutes after. The *end* of a group counts as
   one, too: the rebalances in which members only go, for `stuck_after_seconds` before it has nobody. A group that has
   nobody for longer than `stuck_after_seconds` has no storm. A storm is told beside what may be its reason (rules 4 to
   6): the reason may explain a part of it only.
4. `flapping_member`: a member came and went within the window, or rejoined, `flap_threshold` times. It is the same by
   instance id, or else by client id and host: a process that is started again and again has a new member id each time.
   Many members on one host of one client id are no reason: only who came within the window can flap.
5. `endless_cooperative_rejoin`: the last `cooperative_rounds` or more generations, all within the window, of a strategy
   that is not eager, in which nobody came, went, or changed anything. Only members of classic groups rejoin.
6. `eager_and_cooperative_mixed`: in the last generation a member claims partitions although the strategy is eager; or
   the strategy changed more than once within the window: there and back. Only classic groups know the difference: a
   group that is upgraded to KIP-848 leaves the condition behind.
7. `duplicate_claims`: within the window two members joined with a claim to the same partition, of the same generation.
8. `subscription_mismatch`: members subscribe to different topics for longer than `stuck_after_seconds`: a deployment
   takes as long.

Rule 9, `unowned_partitions`, needs samples of topics: see `unowned.py`. What no record tells follows from silence and
listings (`silence.py`) and from members' way to their targets (`reconciliation.py`); the words for each condition are
in `condition_words.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile

from streaming.evaluation.rebalances.partition_movement import EAGER_STRATEGIES
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


@dataclass(frozen=True, slots=True)
class Limits:
    """From when on something is a condition. `flap_threshold` are comings that ended, `cooperative_rounds` generations.

    A lag of up to `allowed_lag` records is none: where records end in markers of transactions nobody reads them.
    """

    window_seconds: float = 600
    storm_rebalances: int = 5
    flap_threshold: int = 3
    cooperative_rounds: int = 5
    stuck_after_seconds: float = 300
    allowed_lag: int = 0


def conditions(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> tuple[str, ...]:
    """Name what is the matter with a group now; `recent` are its last rebalances, oldest first.

    Five rebalances within five minutes, and nobody knows why:

    >>> why = ("unexplained",)
    >>> of = [RebalanceSummary(60_000 * minute, minute, "rebalance", why, "range", 3) for minute in range(5)]
    >>> conditions(of, 300_000, Limits()), conditions(of, 3_600_000, Limits())
    (('rebalance_storm',), ())
    """
    if not recent or recent[-1].kind == DELETED:
        return ()
    window = window_of(recent, read_up_to_ms, limits)
    is_rolling = is_rolling_restart(_without_starts(recent, window, limits))
    found = {
        ROLLING_RESTART: is_rolling,
        REBALANCE_STORM: _storms(recent, read_up_to_ms, limits) and not is_rolling,
        FLAPPING_MEMBER: bool(flapping_members(window, limits.flap_threshold)),
        ENDLESS_COOPERATIVE_REJOIN: idle_cooperative_rounds(window) >= limits.cooperative_rounds,
        DUPLICATE_CLAIMS: any(one.claimed_twice_partitions for one in window),
        **_present_conditions(recent, window, read_up_to_ms - 1000 * limits.stuck_after_seconds),
    }
    return tuple(name for name, is_active in found.items() if is_active)


def same_until_ms(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> float:
    """The first moment after now at which `conditions` may be others without another rebalance.

    Time alone changes them only where a rebalance leaves the window, or is a round ago.
    """
    spans_ms = (1000 * limits.window_seconds, 1000 * limits.stuck_after_seconds)
    changes_ms = (one.timestamp_ms + span_ms for one in recent for span_ms in spans_ms)
    return min((at_ms for at_ms in changes_ms if at_ms > read_up_to_ms), default=float("inf"))


def _storms(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> bool:
    latest = latest_generation(recent)
    is_deserted = not latest.members and latest.timestamp_ms <= read_up_to_ms - 1000 * limits.stuck_after_seconds
    return not is_deserted and counted_rebalances(recent, read_up_to_ms, limits) >= limits.storm_rebalances


def window_of(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> list[RebalanceSummary]:
    """The rebalances within the window (rule 1), oldest first."""
    since_ms = read_up_to_ms - 1000 * limits.window_seconds
    return list(takewhile(lambda one: one.timestamp_ms > since_ms, reversed(recent)))[::-1]


def counted_rebalances(recent: Sequence[RebalanceSummary], read_up_to_ms: int, limits: Limits) -> int:
    """Count the rebalances of the window as rule 3 does: those seen, and those skipped between two that were."""
    window = window_of(recent, read_up_to_ms, limits)
    outside = len(recent) - len(window)
    of_start, of_end = _starts(recent, limits)[outside:], _ends(recent, limits)[outside:]
    as_one = len({*of_start} - {None}) + len({*of_end} - {None})
    others = [(number, one) for number, one in enumerate(window) if of_start[number] is of_end[number] is None]
    seen = sum(one.kind == REBALANCE and one.causes != (COOPERATIVE_FOLLOWUP,) for _, one in others)
    skipping = (one for number, one in others if number and one.kind in {REBALANCE, BECAME_EMPTY})
    return as_one + seen + sum(one.skipped_generations for one in skipping)


def _starts(recent: Sequence[RebalanceSummary], limits: Limits) -> list[int | None]:
    """For each rebalance the number of the start it belongs to (rule 3), None where it belongs to none.

    All that is remembered is looked at, and not the window alone: a start stays one while the window slides over it.
    """
    found: list[int | None] = []
    number, until_ms = 0, float("-inf")
    for one in recent:
        is_within = one.timestamp_ms <= until_ms
        found.append(number if is_within and _only_comes(one) else None)
        if _starts_from_nobody(one):
            number, until_ms = number + 1, one.timestamp_ms + 1000 * limits.stuck_after_seconds
        elif one.gone or one.rejoined:
            until_ms = float("-inf")
    return found


def _ends(recent: Sequence[RebalanceSummary], limits: Limits) -> list[int | None]:
    """For each rebalance the number of the end it belongs to (rule 3), None where it belongs to none."""
    found: list[int | None] = []
    number, since_ms = 0, float("inf")
    for one in reversed(recent):
        found.append(number if one.timestamp_ms >= since_ms and _only_goes(one) else None)
        if not one.members:
            number, since_ms = number + 1, one.timestamp_ms - 1000 * limits.stuck_after_seconds
        elif not _only_goes(one):
            since_ms = float("inf")
    return found[::-1]


def _without_starts(
    recent: Sequence[RebalanceSummary], window: Sequence[RebalanceSummary], limits: Limits
) -> list[RebalanceSummary]:
    of_start = _starts(recent, limits)[len(recent) - len(window) :]
    return [one for one, start in zip(window, of_start, strict=True) if start is None]


def _starts_from_nobody(one: RebalanceSummary) -> bool:
    """Whether the group has nobody now, or had nobody just before. Generation 1 is a new group's first."""
    is_first = one.kind == FIRST_SEEN and one.generation_id <= 1
    return one.members == 0 or one.kind == CREATED or is_first


def _only_comes(one: RebalanceSummary) -> bool:
    return one.kind == REBALANCE and bool(one.joined) and not one.gone and not one.rejoined


def _only_goes(one: RebalanceSummary) -> bool:
    return one.kind == REBALANCE and bool(one.gone) and not one.joined and not one.rejoined


def is_rolling_restart(window: Sequence[RebalanceSummary]) -> bool:
    """Whether the members are being replaced one after the other (rule 2)."""
    rebalances = [one for one in window if one.kind == REBALANCE]
    idle = sum(not _is_a_members_doing(one) for one in rebalances)
    if 3 * idle > len(rebalances) or not all(one.is_whole for one in window):
        return False
    is_upgrade = any(STRATEGY_CHANGED in (one.causes or ()) for one in window)
    if _times_replaced(window) > (2 if is_upgrade else 1):
        return False
    went, joined = sum(len(one.gone) for one in window), sum(len(one.joined) for one in window)
    rejoined = sum(len(one.rejoined) for one in window)
    members = max((one.members for one in window), default=0)
    is_even = abs(went - joined) <= max(1, members // 4) and (joined > 0 or rejoined > 0)
    return went + rejoined >= 2 and is_even


def _times_replaced(window: Iterable[RebalanceSummary]) -> int:
    """How often the members are replaced: once more whenever one goes that came or was replaced since the last time."""
    times, new = 1, set[str]()
    for one in window:
        left = {member.key for member in (*one.gone, *one.rejoined)}
        if new.intersection(left):
            times, new = times + 1, set()
        new |= left.union(member.key for member in one.joined)
    return times


def _is_a_members_doing(one: RebalanceSummary) -> bool:
    of_members = {MEMBER_GONE, MEMBER_JOINED, COOPERATIVE_FOLLOWUP}
    return bool(one.rejoined) or (one.causes is not None and not of_members.isdisjoint(one.causes))


def flapping_members(window: Iterable[RebalanceSummary], flap_threshold: int) -> tuple[str, ...]:
    """Members that came and went again `flap_threshold` times (rule 4): instance ids, or client id and host."""
    return tuple(sorted(name for name, times in flaps_of(window).items() if times >= flap_threshold))


def flaps_of(window: Iterable[RebalanceSummary]) -> Counter[str]:
    """How often each member came and went again, or rejoined."""
    came: set[str] = set()
    ended: Counter[str] = Counter()
    for one in window:
        ended.update(_shown(member) for member in one.rejoined)
        ended.update(_shown(member) for member in one.gone if member.key in came)
        came.difference_update(member.key for member in one.gone)
        came.update(member.key for member in one.joined)
    return ended


def _shown(member: MemberName) -> str:
    return member.key if member.is_static else member.client


def idle_cooperative_rounds(window: Sequence[RebalanceSummary]) -> int:
    """How many generations in a row nobody came, went or changed anything in (rule 5)."""
    rounds = (one for one in reversed(window) if one.kind != STATIC_REJOIN)
    return sum(1 for _ in takewhile(_is_idle_and_cooperative, rounds))


def _is_idle_and_cooperative(one: RebalanceSummary) -> bool:
    is_cooperative = one.protocol is not None and one.protocol not in EAGER_STRATEGIES
    is_idle = one.causes is not None and {COOPERATIVE_FOLLOWUP, UNEXPLAINED}.issuperset(one.causes)
    return one.kind == REBALANCE and one.group_type == CLASSIC and is_cooperative and is_idle


def _present_conditions(
    recent: Sequence[RebalanceSummary], window: Iterable[RebalanceSummary], a_round_ago_ms: float
) -> Mapping[str, bool]:
    """What the last generation leaves the group in; rejoins of static members leave it as it is."""
    latest = latest_generation(recent)
    different = list(takewhile(lambda one: one.subscriptions > 1, reversed(recent)))
    changes = sum(STRATEGY_CHANGED in (one.causes or ()) and one.group_type == CLASSIC for one in window)
    return {
        EAGER_AND_COOPERATIVE_MIXED: latest.group_type == CLASSIC and (latest.eager_claimers > 0 or changes > 1),
        SUBSCRIPTION_MISMATCH: bool(different) and different[-1].timestamp_ms <= a_round_ago_ms,
    }


def latest_generation(recent: Sequence[RebalanceSummary]) -> RebalanceSummary:
    """The last of a group's rebalances that made a generation: a static member's rejoin makes none."""
    return next((one for one in reversed(recent) if one.kind != STATIC_REJOIN), recent[-1])
