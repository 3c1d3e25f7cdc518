"""Makes the rows that show the partitions of the members over time.

1. Each row shows one member name (`GroupMember.name`). After a restart, a member has a new member id but the same name
   and the same row. If several members of a generation have the same name, each member id has a separate row.
2. If rule 1 gives more than `MAX_ROWS` rows, each row shows the members of one client host.
3. If there are more than `MAX_ROWS` hosts, only the hosts with the most changes have separate rows. All other hosts
   share the last row, `other members`.
4. The rows are sorted by name. The values come from the generations that `GroupTables.generations` returns.
5. Before the first known generation, and while the members are unknown, the picture shows no partitions.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from streaming.page.timeline.history import Band, Generation, Holding, MemberRow, MemberRows, Span, merge
from streaming.page.timeline.window import Window

MAX_ROWS: Final = 12
OTHER_MEMBERS: Final = "other members"
_ID_CHARACTERS: Final = 7

Held = Mapping[str, int | None]
"""The number of partitions of each row in one generation. None means unknown."""


def member_rows(generations: Sequence[Generation], window: Window) -> MemberRows:
    """Return the rows of the members. The generations are sorted by time, and can start before the window."""
    rows_of, is_by_member = _grouping(generations)
    held = [None if one.members is None else _held(one.members, rows_of) for one in generations]
    starts = [window.clip(one.at_ms) for one in generations]
    ends = [*starts, window.to_ms][1:]
    names = sorted({name for one in held for name in one or ()}, key=_natural)
    rows = tuple(MemberRow(name, _bands(name, held, list(zip(starts, ends, strict=True)))) for name in names)
    unknown = [Span(start, end) for one, start, end in zip(held, starts, ends, strict=True) if one is None]
    first_ms = starts[0] if starts else window.to_ms
    if first_ms > window.from_ms:
        unknown.append(Span(window.from_ms, first_ms))
    return MemberRows(tuple(row for row in rows if row.bands), merge(unknown, window), is_by_member=is_by_member)


def _grouping(generations: Sequence[Generation]) -> tuple[Callable[[Holding], str], bool]:
    """Return a function that maps members to row names (rules 1 to 3), and True if each row shows one member."""
    counts = [Counter(member.name for member in one.members or ()) for one in generations]
    ambiguous = {name for of_names in counts for name, count in of_names.items() if count > 1}

    def by_member(one: Holding) -> str:
        return f"{one.name} …{one.member_id[-_ID_CHARACTERS:]}" if one.name in ambiguous else one.name

    members = [member for one in generations for member in one.members or ()]
    if len({by_member(member) for member in members}) <= MAX_ROWS:
        return by_member, True
    if len({_by_host(member) for member in members}) <= MAX_ROWS:
        return _by_host, False
    own = frozenset(_most_changed_hosts(generations))
    return lambda one: _by_host(one) if _by_host(one) in own else OTHER_MEMBERS, False


def _by_host(one: Holding) -> str:
    return one.host.removeprefix("/") or "unknown host"


def _held(members: Sequence[Holding], rows_of: Callable[[Holding], str]) -> Held:
    held: dict[str, int | None] = {}
    for member in members:
        row, partitions = rows_of(member), member.partitions
        before = held.get(row, 0)
        held[row] = None if before is None or partitions is None else before + partitions
    return held


def _most_changed_hosts(generations: Sequence[Generation]) -> Sequence[str]:
    """Return the hosts whose partition counts changed most often. In a tie, the host with more partitions is first."""
    known = [_held(one.members, _by_host) for one in generations if one.members is not None]
    hosts = {host for held in known for host in held}
    changes = Counter(
        host for before, after in pairwise(known) for host in hosts if before.get(host, -1) != after.get(host, -1)
    )
    most = {host: max((held.get(host) or 0 for held in known), default=0) for host in hosts}
    return sorted(hosts, key=lambda host: (-changes[host], -most[host], _natural(host)))[: MAX_ROWS - 1]


def _bands(name: str, held: Sequence[Held | None], times: Sequence[tuple[int, int]]) -> tuple[Band, ...]:
    bands: list[Band] = []
    for one, (start, end) in zip(held, times, strict=True):
        if one is None or name not in one or start == end:
            continue
        if bands and bands[-1].to_ms == start and bands[-1].partitions == one[name]:
            bands[-1] = Band(bands[-1].from_ms, end, one[name])
        else:
            bands.append(Band(start, end, one[name]))
    return tuple(bands)


def _natural(name: str) -> tuple[bool, Sequence[tuple[bool, int, str]], str]:
    """Return a sort key that sorts names naturally: `pod-9` is before `pod-10`. `other members` is last.

    >>> sorted(["pod-10", "other members", "pod-9"], key=_natural)
    ['pod-9', 'pod-10', 'other members']
    """
    parts = [part for part in re.split(r"([0-9]{1,18})", name) if part]
    keys = [(not part.isdecimal(), int(part), "") if part.isdecimal() else (True, 0, part) for part in parts]
    return name == OTHER_MEMBERS, keys, name
