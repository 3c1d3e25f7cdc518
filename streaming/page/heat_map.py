"""Makes the heat map of a group: rows for members, columns for topics, and partition counts as cells.

1. A cell shows how many partitions the leader or coordinator assigned to the member (target partitions). During a
   reconciliation (KIP-848), the cell also lists the partitions that the member must receive or release.
2. The busiest member comes first. Equally busy members are sorted by name. The topic with the most partitions comes
   first.
3. `level` is 0 for a cell without partitions. All other cells have a level from 1 to 5, in proportion to their
   partition count.
4. The page shows at most `MAX_MEMBERS` members and `MAX_TOPICS` topics. For the others, it shows only their number.
5. A member has a cell for each subscribed topic, for each topic with assigned partitions, and for each topic of which
   it must release partitions. A member whose partitions are unknown has no cells.
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

MAX_MEMBERS = 100
MAX_TOPICS = 24
LEVELS = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """One member's partitions of one topic: their count, and their numbers as ranges.

    `gets` and `gives_up` count the partitions that the member has not received or not released yet. Both are 0 if the
    member's present partitions are unknown.
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
    """One member. `cells` has one entry per topic, which is None if the member has no cell (rule 5).

    `disambiguation` distinguishes members with the same name: the client host of a static member, or the end of the
    member id. `partitions` is None if no record contains the assignment. `expected` and `lag` are None if they are
    unknown.
    """

    member_id: str
    name: str
    is_static: bool
    disambiguation: str
    partitions: int | None
    expected: int | None
    lag: int | None
    cells: tuple[Cell | None, ...]


@dataclass(frozen=True, slots=True)
class HeatMap:
    """The heat map of a group. `topics` contains each topic with the number of its assigned partitions.

    A partition that several members share counts once in `topics` (in a share group, for example).
    `left_out_members` and `left_out_topics` count the members and topics of rule 4.
    """

    topics: tuple[tuple[str, int], ...]
    rows: tuple[MemberRow, ...]
    left_out_members: int
    left_out_topics: int

    @property
    def is_reconciling(self) -> bool:
        """True if at least one member still has to receive or release partitions."""
        return any(cell.gets or cell.gives_up for row in self.rows for cell in row.cells if cell)


def heat_map(
    members: Sequence[GroupMember],
    expected: Mapping[str, int] | None = None,
    lag: Mapping[TopicPartition, int | None] | None = None,
) -> HeatMap:
    """Make the heat map.

    `expected` maps each member id to the number of partitions that the member should have. `lag` maps each partition
    to its lag, in records.

    >>> member = GroupMember("m-1", None, "app", "/h", None, ("t",), None, None, None, (("t", 0),), (("t", 0),), ())
    >>> row = heat_map([member], lag={("t", 0): 7}).rows[0]
    >>> row.name, row.partitions, row.lag, row.cells[0].numbers, row.cells[0].level
    ('app@h', 1, 7, '0', 5)
    """
    assigned = Counter(topic for topic, _ in {partition for member in members for partition in member.target or ()})
    subscribed = {topic: 0 for member in members for topic in member.subscribed_topics or ()}
    present = {topic: 0 for member in members for topic, _ in member.held or ()}
    topics = sorted({**subscribed, **present, **assigned}, key=lambda topic: (-assigned[topic], topic))
    shown = topics[:MAX_TOPICS]
    cells = Counter((member.member_id, topic) for member in members for topic, _ in member.target or ())
    fullest = max(cells.values(), default=0)
    in_order = sorted(members, key=lambda member: (-len(member.target or ()), member.name))
    return HeatMap(
        topics=tuple((topic, assigned[topic]) for topic in shown),
        rows=tuple(_row(member, shown, fullest, expected, lag or {}) for member in in_order[:MAX_MEMBERS]),
        left_out_members=max(0, len(members) - MAX_MEMBERS),
        left_out_topics=len(topics) - len(shown),
    )


def _row(
    member: GroupMember,
    topics: Sequence[str],
    fullest: int,
    expected: Mapping[str, int] | None,
    lag: Mapping[TopicPartition, int | None],
) -> MemberRow:
    target, current, held = (_by_topic(one or ()) for one in (member.target, member.assigned, member.held))
    subscribed = {*(member.subscribed_topics or ()), *target, *held}
    return MemberRow(
        member_id=member.member_id,
        name=member.name,
        is_static=member.group_instance_id is not None,
        disambiguation=f"…{member.member_id[-7:]}" if member.group_instance_id is None else member.client_host,
        partitions=None if member.target is None else len(member.target),
        expected=None if expected is None else expected.get(member.member_id, 0),
        lag=lag_of(member.held, lag),
        cells=tuple(
            _cell(target[topic], current[topic], held[topic], fullest, is_current_known=member.assigned is not None)
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


def _cell(
    target: Sequence[int], current: Sequence[int], held: Sequence[int], fullest: int, *, is_current_known: bool
) -> Cell:
    gets = set(target) - set(current) if is_current_known else set[int]()
    gives_up = set(held) - set(target) if is_current_known else set[int]()
    return Cell(
        partitions=len(target),
        numbers=in_ranges(sorted(target)),
        level=ceil(LEVELS * len(target) / fullest) if fullest else 0,
        gets=len(gets),
        gets_numbers=in_ranges(sorted(gets)),
        gives_up=len(gives_up),
        gives_up_numbers=in_ranges(sorted(gives_up)),
    )
