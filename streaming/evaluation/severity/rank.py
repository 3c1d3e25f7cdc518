"""Which groups are the worst, in a calm order: `/metrics` shows the first ones in full (`prometheus.series_limit`).

1. A group stands where its trouble puts it (`trouble`).
2. One that is *held*, because it was shown in full, stands where it stood at its worst, for up to ten minutes: it is
   not shown and hidden in turn for a trouble that comes and goes, and the end of a trouble is still seen.
3. A clock that was set back ends the holding rather than prolonging it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.evaluation.severity.trouble import Place

HELD_MS = 600_000


@dataclass(frozen=True, slots=True)
class RankEntry:
    """Where a group stands, and when it came to that place."""

    place: Place
    since_ms: int


def rank_entries(places: Mapping[str, Place], held: Mapping[str, RankEntry], now_ms: int) -> Mapping[str, RankEntry]:
    """Every group's standing, the worst group first; `held` are those of groups that were shown in full.

    >>> calm, behind, other = (10, 0, -0.0, 0, "a"), (8, -1, -40.0, -9, "a"), (8, -1, -35.0, -9, "b")
    >>> list(rank_entries({"a": calm, "b": other}, {"a": RankEntry(behind, 1_000)}, 2_000))
    ['a', 'b']
    >>> list(rank_entries({"a": calm, "b": other}, {"a": RankEntry(behind, 1_000)}, 1_001 + HELD_MS))
    ['b', 'a']
    """
    found = {group_id: _rank_entry(place, held.get(group_id), now_ms) for group_id, place in places.items()}
    return dict(sorted(found.items(), key=lambda one: one[1].place))


def _rank_entry(place: Place, held: RankEntry | None, now_ms: int) -> RankEntry:
    """Rules 2 and 3."""
    if held is not None and held.place < place and 0 <= now_ms - held.since_ms <= HELD_MS:
        return held
    return RankEntry(place, now_ms)
