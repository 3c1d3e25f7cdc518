"""The story of a group: its rebalances one after the other, counted, and the last of them in brief.

What is counted are totals since the group was first seen, kept with the group, so that a batch that is run again counts
nothing twice. `told_up_to` (in `told_in_partition`) makes that so for a log that is read again from its start as well:
the rebalances up to there are rows of an earlier checkpoint's table, and the totals its last row's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

from streaming.evaluation.rebalances.brief import RebalanceInBrief, in_brief
from streaming.evaluation.rebalances.detectors import Limits, conditions
from streaming.evaluation.rebalances.rebalances import REBALANCE, Rebalance, Standing, rebalance_between, standing_after
from streaming.events import Position
from streaming.group.snapshot import GroupSnapshot
from streaming.group.topic_names import with_names

KEPT_REBALANCES = 64
"""Rebalances of a group that are remembered in brief: what the detectors look back on."""

UNKNOWN_CAUSE = "unknown"
NECESSARY, NEEDLESS, UNKNOWN_NEED = "true", "false", "unknown"
"""Moves that had to be; that did not; of which it is not known, as the fewest are not."""


class RebalanceTotals(msgspec.Struct, frozen=True):
    """Absolute counts since the group was first seen: rebalances by primary cause, moved partitions by need.

    Only rebalances that were read are counted here: of a skipped generation nobody knows cause or moves.
    """

    rebalances_by_cause: dict[str, int] = {}
    moved_partitions: dict[str, int] = {}


class Story(msgspec.Struct, frozen=True):
    """What is kept of a group's rebalances."""

    standing: Standing | None = None
    totals: RebalanceTotals = RebalanceTotals()
    recent: tuple[RebalanceInBrief, ...] = ()
    told_up_to: int = -1
    told_in_partition: int | None = None

    def is_new(self, position: Position) -> bool:
        """Whether the rebalance at a position is not counted yet. Offsets of two partitions have no order.

        None is the partition of whatever is read: an earlier version of the monitor did not store it.
        """
        is_same_partition = self.told_in_partition in {None, position.kafka_partition}
        return not is_same_partition or position.kafka_offset > self.told_up_to


class ToldRebalance(msgspec.Struct, frozen=True):
    """A rebalance, with the totals and conditions as of it, as its row has them."""

    rebalance: Rebalance
    totals: RebalanceTotals
    conditions: tuple[str, ...] = ()


def continued(
    story: Story,
    present: GroupSnapshot,
    history: Iterable[GroupSnapshot],
    present_after: GroupSnapshot,
    limits: Limits,
) -> tuple[Story, tuple[ToldRebalance, ...]]:
    """Go on with the story through what is told of the group now; `present` is the group before, and after.

    The same records make the same rebalances in however many turns they come.

    >>> continued(Story(), GroupSnapshot("g"), [], GroupSnapshot("g"), Limits())[1]
    ()
    """
    told: list[ToldRebalance] = []
    standing = _whole(story.standing, present)
    for snapshot in history:
        standing = _in_names_of(standing, snapshot)
        before = standing.snapshot if standing else None
        rebalance = rebalance_between(standing, before, snapshot)
        standing = standing_after(standing, before, snapshot, rebalance)
        if rebalance is None:
            continue
        story = msgspec.structs.replace(story, recent=(*story.recent, in_brief(rebalance))[-KEPT_REBALANCES:])
        if story.is_new(rebalance.position):
            story = msgspec.structs.replace(story, totals=_counted(story.totals, rebalance))
            holding = conditions(story.recent, rebalance.position.timestamp_ms, limits)
            told.append(ToldRebalance(rebalance, story.totals, holding))
    return msgspec.structs.replace(story, standing=_kept(standing, present_after)), tuple(told)


def _in_names_of(standing: Standing | None, snapshot: GroupSnapshot) -> Standing | None:
    """The standing with topics named as in the snapshot: an id of then may have a name now, and is no new topic."""
    if standing is None or snapshot.modern is None or standing.snapshot is None:
        return standing
    names = snapshot.modern.topic_names
    unowned = tuple((names.get(topic, topic), partition) for topic, partition in standing.unowned)
    return msgspec.structs.replace(standing, snapshot=with_names(standing.snapshot, names), unowned=unowned)


def _kept(standing: Standing | None, present: GroupSnapshot) -> Standing | None:
    """The standing as it is stored: of a classic group, its present is that, and need not be kept twice."""
    known = standing.snapshot if standing else None
    if standing is None or known is None:
        return standing
    if known.classic is not None and known.classic == present.classic and known.position == present.position:
        return msgspec.structs.replace(standing, snapshot=None)
    return msgspec.structs.replace(standing, snapshot=_without_detail(known))


def _without_detail(snapshot: GroupSnapshot) -> GroupSnapshot:
    """What a later comparison needs: members and what they shall have."""
    modern = snapshot.modern and msgspec.structs.replace(snapshot.modern, currents={})
    return msgspec.structs.replace(snapshot, modern=modern, topics={}, unsettled_skips=(), resume=None)


def _whole(standing: Standing | None, present: GroupSnapshot) -> Standing | None:
    if standing is None or standing.snapshot is not None:
        return standing
    return msgspec.structs.replace(standing, snapshot=present)


def _counted(totals: RebalanceTotals, rebalance: Rebalance) -> RebalanceTotals:
    if rebalance.kind != REBALANCE:
        return totals
    by_cause = Counter(totals.rebalances_by_cause)
    by_cause[rebalance.primary_cause or UNKNOWN_CAUSE] += 1
    moved = Counter(totals.moved_partitions)
    moved.update(moves_by_need(rebalance))
    return RebalanceTotals(dict(by_cause), dict(moved))


def moves_by_need(rebalance: Rebalance) -> Mapping[str, int]:
    """Moved partitions: how many had to, how many did not, or that this is not known."""
    handed_over = rebalance.hand_over
    if not handed_over.moved_partitions:
        return {}
    if handed_over.fewest_moves is None:
        return {UNKNOWN_NEED: handed_over.moved_partitions}
    beyond = handed_over.moved_partitions - handed_over.fewest_moves
    need = {NECESSARY: handed_over.fewest_moves, NEEDLESS if handed_over.is_exact else UNKNOWN_NEED: beyond}
    return {which: partitions for which, partitions in need.items() if partitions}
