"""Who holds how much of which topic: members down, topics across.

1. What counts is what a member shall have once the group is reconciled: what its leader or coordinator decided. Until
   then (KIP-848) the partitions that it still gets and still gives up stand beside it, counted and by number. They are
   different partitions, so a member that swaps one for one does not look as if nothing changed.
2. The busiest member comes first, of equally busy ones the first by name. The widest topic comes first.
3. `level` is 0 for nothing and 1 to 5 for a fifth of the map's fullest cell each.
4. A member or topic too many is counted, not shown.
5. A member that does not subscribe to a topic has no cell there, unless it was given partitions of it all the same.
   Nor has a member whose partitions are unknown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from assignors import TopicPartition
from streaming.evaluation.assignment.member_shares import lag_of
from streaming.group.members import GroupMember, TopicPartitions
from streaming.group.printable import in_ranges

MOST_MEMBERS = 100
MOST_TOPICS = 24
LEVELS = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """One member's partitions of one topic: how many and which; then those it gets and gives up until it has them.

    Partitions are in ranges. Where no record tells what the member has, it gets and gives up nothing.
    """

    partitions: int
    numbers: str
    level: int
    gets: int = 0
    gets_numbers: str = ""
    gives_up: int = 0
    gives_up_numbers: str = ""


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One member; `cells` are by topic, None where it does not subscribe. `expected` and `lag` None where unknown.

    `beside` tells members of one name apart: how its member id ends, or a static member's host. `partitions` is None
    if no record holds the member's assignment.
    """

    member_id: str
    name: str
    is_static: bool
    beside: str
    partitions: int | None
    expected: int | None
    lag: int | None
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """`topics` are names with the partitions held of them; `left_out_*` count what is not shown."""

    topics: tuple[tuple[str, int], ...]
    rows: tuple[MemberRow, ...]
    left_out_members: int
    left_out_topics: int

    @property
    def is_reconciling(self) -> bool:
        """Whether some member still gets or gives up partitions."""
        return any(cell.gets or cell.gives_up for row in self.rows for cell in row.cells if cell)


def heat_map(
    members: Sequence[GroupMember],
    expected: Mapping[str, int] | None = None,
    lag: Mapping[TopicPartition, int | None] | None = None,
) -> HeatMap:
    """Lay out a group. `expected` is the number of partitions each member should have, `lag` that of partitions.

    >>> member = GroupMember("m-1", None, "app", "/h", None, ("t",), None, None, None, (("t", 0),), (("t", 0),), ())
    >>> row = heat_map([member], lag={("t", 0): 7}).rows[0]
    >>> row.name, row.partitions, row.lag, row.cells[0].numbers, row.cells[0].level
    ('app@h', 1, 7, '0', 5)
    """
    held = Counter(topic for member in members for topic, _ in member.target or ())
    subscribed = Counter({topic: 0 for member in members for topic in member.subscribed_topics or ()})
    topics = sorted({**subscribed, **held}, key=lambda topic: (-held[topic], topic))
    shown = topics[:MOST_TOPICS]
    fullest = max(
        (max(Counter(topic for topic, _ in member.target or ()).values(), default=0) for member in members), default=0
    )
    in_order = sorted(members, key=lambda member: (-len(member.target or ()), member.name))
    return HeatMap(
        topics=tuple((topic, held[topic]) for topic in shown),
        rows=tuple(_row(member, shown, fullest, expected, lag or {}) for member in in_order[:MOST_MEMBERS]),
        left_out_members=max(0, len(members) - MOST_MEMBERS),
        left_out_topics=len(topics) - len(shown),
    )


def _row(
    member: GroupMember,
    topics: Sequence[str],
    fullest: int,
    expected: Mapping[str, int] | None,
    lag: Mapping[TopicPartition, int | None],
) -> MemberRow:
    shall, has = _by_topic(member.target or ()), _by_topic(member.assigned or ())
    subscribed = {*(member.subscribed_topics or ()), *shall, *has}
    return MemberRow(
        member_id=member.member_id,
        name=member.name,
        is_static=member.group_instance_id is not None,
        beside=f"…{member.member_id[-7:]}" if member.group_instance_id is None else member.client_host,
        partitions=None if member.target is None else len(member.target),
        expected=None if expected is None else expected.get(member.member_id, 0),
        lag=lag_of(member.assigned, lag),
        cells=tuple(
            _cell(shall[topic], has[topic], fullest, should_report=member.assigned is not None)
            if topic in subscribed and (member.target, member.assigned) != (None, None)
            else None
            for topic in topics
        ),
    )


def _by_topic(partitions: TopicPartitions) -> Mapping[str, list[int]]:
    by_topic: dict[str, list[int]] = defaultdict(list)
    for topic, number in partitions:
        by_topic[topic].append(number)
    return by_topic


def _cell(shall: Sequence[int], has: Sequence[int], fullest: int, *, should_report: bool) -> Cell:
    level = ceil(LEVELS * len(shall) / fullest) if fullest else 0
    gets, gives_up = (set(shall) - set(has), set(has) - set(shall)) if should_report else (set[int](), set[int]())
    return Cell(
        partitions=len(shall),
        numbers=in_ranges(sorted(shall)),
        level=level,
        gets=len(gets),
        gets_numbers=in_ranges(sorted(gets)),
        gives_up=len(gives_up),
        gives_up_numbers=in_ranges(sorted(gives_up)),
    )
