"""Conditions of a group that its last rebalances show together: storms, flapping members, endless rounds and the like.

Judged from what is remembered of a group's rebalances in brief, on the records' own times. Now is the time up to which
the group's partition of `__consumer_offsets` has been read (`read_up_to`), not the clock on the wall: a backlog of an
hour that is read at once is no storm now, and what was not read yet is not taken for quiet. Rules:

1. The *window* are the last `window_seconds` before now. A generation that no record carries lies in it if the records
   before and after it do. A group that was deleted has no conditions.
2. `rolling_restart`: members are replaced one after the other. At least two went that were there before the window, or
   rejoined under their instance id, each once; as many came, give or take a quarter of the group (or one), and none of
   them went; every rebalance is somebody's coming or going.
3. `rebalance_storm`: at least `storm_rebalances` rebalances in the window, and it is no rolling restart. The rounds in
   which cooperative members only hand over what the round before withheld are not counted.
4. `flapping_member`: a member came and went within the window, or rejoined, `flaps` times. It is the same by instance
   id, or else by client id and host: a process that is started again and again has a new member id each time. Many
   members on one host of one client id are no reason: only who came within the window can flap.
5. `endless_cooperative_rejoin`: the last `cooperative_rounds` or more generations, all within the window, of a strategy
   that is not eager, in which nobody came, went, or changed anything.
6. `eager_and_cooperative_mixed`: in the last generation a member claims partitions although the strategy is eager; or
   the strategy changed more than once within the window: there and back.
7. `duplicate_claims`: within the window two members joined with a claim to the same partition, of the same generation.
8. `subscription_mismatch`: members subscribe to different topics for longer than `round_seconds`: a deployment takes
   as long.
9. `unowned_partitions`: somebody's partitions are nobody's after two rebalances in a row, or for longer than
   `round_seconds`: a cooperative hand-over is one round.

What no record tells is given to `is_stuck` and `silent_static_owners`:

10. A group is stuck in a rebalance if it has members, nobody committed for longer than `round_seconds`, and end offsets
    of its partitions grow. A rebalance in progress writes no record at all.
11. A static member is silent if its partitions grow, it committed none of them for longer than
    `round_seconds`, and somebody else of the group did commit. Its instance id is fenced, or it is stuck in its work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from assignors import TopicPartition
from streaming.group.members import TopicPartitions
from streaming.judgement.brief import MemberName, RebalanceInBrief
from streaming.judgement.hand_over import EAGER_STRATEGIES
from streaming.judgement.rebalances import (
    BECAME_EMPTY,
    COOPERATIVE_FOLLOWUP,
    DELETED,
    MEMBER_GONE,
    MEMBER_JOINED,
    REBALANCE,
    STATIC_REJOIN,
    STRATEGY_CHANGED,
    UNEXPLAINED,
)

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
    """From when on something is a condition. `flaps` are comings that ended, `cooperative_rounds` generations."""

    window_seconds: float = 600
    storm_rebalances: int = 5
    flaps: int = 3
    cooperative_rounds: int = 5
    round_seconds: float = 300


def conditions(recent: Sequence[RebalanceInBrief], read_up_to_ms: int, limits: Limits) -> tuple[str, ...]:
    """Name what is the matter with a group now; `recent` are its last rebalances, oldest first.

    Five rebalances within five minutes, and nobody knows why:

    >>> why = ("unexplained",)
    >>> of = [RebalanceInBrief(60_000 * minute, minute, "rebalance", why, "range", 3) for minute in range(5)]
    >>> conditions(of, 300_000, Limits()), conditions(of, 3_600_000, Limits())
    (('rebalance_storm',), ())
    """
    if not recent or recent[-1].kind == DELETED:
        return ()
    window = _window(recent, read_up_to_ms - 1000 * limits.window_seconds)
    is_rolling = is_rolling_restart(window)
    found = {
        ROLLING_RESTART: is_rolling,
        REBALANCE_STORM: not is_rolling and _counted_rebalances(window) >= limits.storm_rebalances,
        FLAPPING_MEMBER: bool(flapping_members(window, limits.flaps)),
        ENDLESS_COOPERATIVE_REJOIN: _idle_cooperative_rounds(window) >= limits.cooperative_rounds,
        DUPLICATE_CLAIMS: any(one.claimed_twice_partitions for one in window),
        **_standing_conditions(recent, window, read_up_to_ms - 1000 * limits.round_seconds),
    }
    return tuple(name for name, holds in found.items() if holds)


def _window(recent: Sequence[RebalanceInBrief], since_ms: float) -> list[RebalanceInBrief]:
    return list(takewhile(lambda one: one.timestamp_ms > since_ms, reversed(recent)))[::-1]


def _counted_rebalances(window: Sequence[RebalanceInBrief]) -> int:
    """Count those seen, and those skipped between two that were."""
    seen = sum(one.kind == REBALANCE and one.causes != (COOPERATIVE_FOLLOWUP,) for one in window)
    return seen + sum(one.skipped_generations for _, one in pairwise(window) if one.kind in {REBALANCE, BECAME_EMPTY})


def is_rolling_restart(window: Sequence[RebalanceInBrief]) -> bool:
    """Whether the members are being replaced one after the other (rule 2)."""
    came: set[str] = set()
    replaced: Counter[str] = Counter()
    for one in window:
        if not one.is_whole or (one.kind == REBALANCE and not _is_a_members_doing(one)):
            return False
        left = [member.key for member in (*one.gone, *one.rejoined)]
        if came.intersection(left):
            return False
        replaced.update(left)
        came.update(member.key for member in one.joined)
    rejoined = sum(len(one.rejoined) for one in window)
    went, joined = replaced.total() - rejoined, sum(len(one.joined) for one in window)
    members = max((one.members for one in window), default=0)
    is_even = abs(went - joined) <= max(1, members // 4) and (joined > 0 or rejoined > 0)
    return replaced.total() >= 2 and max(replaced.values()) == 1 and is_even


def _is_a_members_doing(one: RebalanceInBrief) -> bool:
    return one.causes is not None and bool({MEMBER_GONE, MEMBER_JOINED, COOPERATIVE_FOLLOWUP}.intersection(one.causes))


def flapping_members(window: Iterable[RebalanceInBrief], flaps: int) -> tuple[str, ...]:
    """Members that came and went again `flaps` times (rule 4): instance ids, or client id and host."""
    came: set[str] = set()
    ended: Counter[str] = Counter()
    for one in window:
        ended.update(_shown(member) for member in one.rejoined)
        ended.update(_shown(member) for member in one.gone if member.key in came)
        came.difference_update(member.key for member in one.gone)
        came.update(member.key for member in one.joined)
    return tuple(sorted(name for name, times in ended.items() if times >= flaps))


def _shown(member: MemberName) -> str:
    return member.key if member.is_static else member.client


def _idle_cooperative_rounds(window: Sequence[RebalanceInBrief]) -> int:
    rounds = (one for one in reversed(window) if one.kind != STATIC_REJOIN)
    return sum(1 for _ in takewhile(_is_idle_and_cooperative, rounds))


def _is_idle_and_cooperative(one: RebalanceInBrief) -> bool:
    is_cooperative = one.protocol is not None and one.protocol not in EAGER_STRATEGIES
    is_idle = one.causes is not None and {COOPERATIVE_FOLLOWUP, UNEXPLAINED}.issuperset(one.causes)
    return one.kind == REBALANCE and is_cooperative and is_idle


def _standing_conditions(
    recent: Sequence[RebalanceInBrief], window: Iterable[RebalanceInBrief], a_round_ago_ms: float
) -> Mapping[str, bool]:
    """What the last generation leaves the group in; rejoins of static members leave it as it is."""
    latest = next((one for one in reversed(recent) if one.kind != STATIC_REJOIN), recent[-1])
    different = list(takewhile(lambda one: one.subscriptions > 1, reversed(recent)))
    changes = sum(STRATEGY_CHANGED in (one.causes or ()) for one in window)
    lasts = latest.unowned_before_partitions > 0 or latest.timestamp_ms <= a_round_ago_ms
    return {
        EAGER_AND_COOPERATIVE_MIXED: latest.eager_claimers > 0 or changes > 1,
        SUBSCRIPTION_MISMATCH: bool(different) and different[-1].timestamp_ms <= a_round_ago_ms,
        UNOWNED_PARTITIONS: latest.unowned_partitions > 0 and lasts,
    }


@dataclass(frozen=True, slots=True)
class Commits:
    """What is known of a group's commits and of its partitions, beside what records of the group tell.

    `last_commit_ms` by partition that has a commit; `growing` are those of its partitions that got records within the
    last `round_seconds`, None where end offsets are not known; `read_up_to_ms` None where the log was not read yet.
    """

    last_commit_ms: Mapping[TopicPartition, int]
    growing: frozenset[TopicPartition] | None
    read_up_to_ms: int | None


def is_stuck(members: int, commits: Commits, limits: Limits) -> bool | None:
    """Whether a group hangs in a rebalance no record tells of (rule 10); None where something is not known.

    >>> at = ("orders", 0)
    >>> is_stuck(3, Commits({at: 0}, frozenset({at}), 600_000), Limits())
    True
    >>> is_stuck(3, Commits({at: 0}, frozenset(), 600_000), Limits())
    False
    """
    if not members:
        return False
    if not commits.last_commit_ms or commits.growing is None or commits.read_up_to_ms is None:
        return None
    silent_ms = commits.read_up_to_ms - max(commits.last_commit_ms.values())
    return bool(commits.growing) and silent_ms > 1000 * limits.round_seconds


def silent_static_owners(
    owned: Mapping[str, TopicPartitions], owned_since_ms: int, commits: Commits, limits: Limits
) -> tuple[str, ...] | None:
    """Static members that own partitions and commit none of them (rule 11); None where something is not known.

    `owned` is by group instance id, since `owned_since_ms`. Of a group that is silent as a whole nobody is named.

    >>> owned = {"pod-0": (("t", 0),), "pod-1": (("t", 1),)}
    >>> commits = Commits({("t", 0): 10, ("t", 1): 900_000}, frozenset({("t", 0), ("t", 1)}), 900_000)
    >>> silent_static_owners(owned, 20, commits, Limits())
    ('pod-0',)
    """
    growing, last_commit_ms = commits.growing, commits.last_commit_ms
    if growing is None or commits.read_up_to_ms is None:
        return None
    a_round_ago_ms = commits.read_up_to_ms - 1000 * limits.round_seconds
    if owned_since_ms > a_round_ago_ms or max(last_commit_ms.values(), default=owned_since_ms) <= a_round_ago_ms:
        return ()

    def is_silent(partitions: TopicPartitions) -> bool:
        last = max((last_commit_ms.get(at, owned_since_ms) for at in partitions), default=owned_since_ms)
        return not growing.isdisjoint(partitions) and last <= a_round_ago_ms

    return tuple(sorted(instance_id for instance_id, partitions in owned.items() if is_silent(partitions)))
