"""Rank the groups by severity, with a stable order.

`/metrics` shows the first groups in full (`prometheus.series_limit`). Rules:

1. The place of a group follows from its troubles (`trouble`).
2. A group that was shown in full is *held*: its worst place stays valid for up to ten minutes. So `/metrics` does not
   hide and show a group again and again while its trouble comes and goes. Also, the end of a trouble is visible.
3. If the clock is set back, the group is no longer held. The ten minutes are not extended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.evaluation.severity.trouble import Place

HELD_MS = 600_000
"""Maximum time in milliseconds for which the worst place of a group stays valid."""


@dataclass(frozen=True, slots=True)
class RankEntry:
    """The place of a group, and the time since which the group has this place."""

    place: Place
    since_ms: int


def rank_entries(places: Mapping[str, Place], held: Mapping[str, RankEntry], now_ms: int) -> Mapping[str, RankEntry]:
    """Return the entry of every group, the worst group first. `held`: the entries of groups that were shown in full.

    >>> calm, behind, other = (10, 0, -0.0, 0, "a"), (8, -1, -40.0, -9, "a"), (8, -1, -35.0, -9, "b")
    >>> list(rank_entries({"a": calm, "b": other}, {"a": RankEntry(behind, 1_000)}, 2_000))
    ['a', 'b']
    >>> list(rank_entries({"a": calm, "b": other}, {"a": RankEntry(behind, 1_000)}, 1_001 + HELD_MS))
    ['b', 'a']
    """
    entries = {group_id: _rank_entry(place, held.get(group_id), now_ms) for group_id, place in places.items()}
    return dict(sorted(entries.items(), key=lambda entry: entry[1].place))


def _rank_entry(place: Place, held: RankEntry | None, now_ms: int) -> RankEntry:
    """Apply rules 2 and 3."""
    if held is not None and held.place < place and 0 <= now_ms - held.since_ms <= HELD_MS:
        return held
    return RankEntry(place, now_ms)
