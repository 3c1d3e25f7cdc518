"""Rank the groups by severity, in a stable order.

`/metrics` shows full detail for the first groups (`prometheus.series_limit`). Rules:

1. The place of a group is computed from its troubles (`trouble.py`).
2. A group that was shown in full detail stays at its worst place for ten minutes. During this time, the group is
   *held*. The ten minutes begin at the last evaluation in which the group had this place. So `/metrics` does not remove
   and add the series of a group each time a trouble ends and starts again. Users can also see in full detail that the
   trouble has ended.
3. If the clock is set back, no group is held any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from streaming.evaluation.severity.trouble import Place

HELD_MS = 600_000
"""Maximum time in milliseconds for which a group stays at its worst place."""


@dataclass(frozen=True, slots=True)
class RankEntry:
    """The place of a group, and the time of the last evaluation in which the group had this place."""

    place: Place
    since_ms: int


def rank_entries(places: Mapping[str, Place], held: Mapping[str, RankEntry], now_ms: int) -> Mapping[str, RankEntry]:
    """Return the entry of each group, the worst group first.

    `held` contains the entries of the groups that were shown in full detail.

    >>> calm, behind, other = (11, 0, -0.0, 0, "a"), (9, -1, -40.0, -9, "a"), (9, -1, -35.0, -9, "b")
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
