"""The values of a timeline, and the pure functions that make them from rows of the tables.

1. **Rebalances.** The window has `COLUMNS` columns. All rows of `rebalances` whose time is in the same column share one
   mark. A mark counts rebalances and other changes (for example `became_empty`) separately. An upgrade or a downgrade
   of the protocol also writes a tombstone. The mark does not count this tombstone.
2. **Commit gaps.** A gap starts at `last_commit_time`. If no commit followed the rebalance, the picture shows only the
   part of the gap before the rebalance. If a gap ended after the window, its end is unknown. `Gaps.unknown` counts all
   other gaps with an unknown start or duration. If two gaps overlap, touch or share a column, the picture shows one
   span.
3. **Conditions.** A row about the end of a condition also contains the start time. If a condition is known to be active
   at the end of the window, its bar lasts until the end of the window. For any other condition without a row about its
   end, the end is unknown. The end is also unknown if the row about the end is the first measurement after a period
   without measurements (rule 4), because the condition can have ended at any time in this period. If the end of a
   condition is unknown, its bar ends at the last measurement before the end.
4. **Proof of measurements.** Each row of `group_lag` proves a measurement at the time of the row. The picture marks
   each period without a row if the period is longer than `streaming/past/silence.py` allows. Even in such a period,
   rebalances, members and commit gaps are complete (`silence.py`, rule 3).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, NamedTuple

from streaming.combine.gaps import NO_COMMIT_AFTER
from streaming.evaluation.rebalances.rebalances import DELETED, DOWNGRADED, REBALANCE, UPGRADED
from streaming.page.timeline.window import Window
from streaming.past.silence import silence_limit_ms

CAUSE_UNKNOWN: Final = "cause unknown"


class Change(NamedTuple):
    """One row of `rebalances`. `cause` is None if it is unknown. Each row has a different `position`."""

    at_ms: int
    position: tuple[int, int]
    kind: str
    cause: str | None


@dataclass(frozen=True, slots=True)
class Mark:
    """The changes in one column of time. `text` describes the last change. Member names in it are not escaped.

    `causes` contains the number of rebalances by cause. `others` contains the number of all other changes by kind.
    """

    first_ms: int
    last_ms: int
    rebalances: int
    causes: Mapping[str, int]
    others: Mapping[str, int]
    text: str = ""


class Gap(NamedTuple):
    """One row of `commit_gaps`. `from_ms` is None if the last commit before the rebalance is unknown."""

    rebalance_ms: int
    from_ms: int | None
    duration_ms: int | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Span:
    """A period with a text. `count` is the number of gaps or conditions that this span combines.

    If `is_end_known` is False, the period possibly lasted longer.
    """

    from_ms: int
    to_ms: int
    text: str = ""
    is_end_known: bool = True
    count: int = 1


@dataclass(frozen=True, slots=True)
class ConditionBars:
    """One condition: its name and the times at which it was active."""

    name: str
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Gaps:
    """The commit gaps. `unknown` is the number of gaps that are not shown because of unknown times (rule 2).

    If `is_bound` is True, the longest gap lasted at least `longest_ms`.
    """

    spans: tuple[Span, ...] = ()
    longest_ms: int = 0
    unknown: int = 0
    is_bound: bool = False


class ConditionRow(NamedTuple):
    """One row of `group_conditions`."""

    name: str
    active: bool
    since_ms: int
    sampled_ms: int
    detail: str


class LagPoint(NamedTuple):
    """The highest lag of the group in an interval. None means unknown.

    If `is_bound` is True, the lag is at least `records`. `at_ms` is the first time of the highest lag in the interval.
    If `records` is None, `at_ms` has no meaning.
    """

    from_ms: int
    to_ms: int
    records: int | None
    is_bound: bool = False
    at_ms: int = 0


class Holding(NamedTuple):
    """The number of partitions of one member. None means unknown."""

    member_id: str
    name: str
    host: str
    partitions: int | None


class Generation(NamedTuple):
    """The members of the group from the time `at_ms` on. None means unknown. A deleted group has no members."""

    at_ms: int
    members: tuple[Holding, ...] | None


@dataclass(frozen=True, slots=True)
class Band:
    """A period in which the number of partitions in one row does not change. None means unknown."""

    from_ms: int
    to_ms: int
    partitions: int | None


@dataclass(frozen=True, slots=True)
class MemberRow:
    """One row of the picture: one member, all members of one client host, or all other members."""

    name: str
    bands: tuple[Band, ...]


@dataclass(frozen=True, slots=True)
class MemberRows:
    """The rows of the members, and the periods in which the members are unknown.

    If `is_by_member` is False, each row shows the members of one or more hosts.
    """

    rows: tuple[MemberRow, ...] = ()
    unknown: tuple[Span, ...] = ()
    is_by_member: bool = True


@dataclass(frozen=True, slots=True)
class Timeline:
    """Everything that the tables prove about a group in a window. `errors` are the reasons why parts are missing.

    `marks` is None if the rebalances are unknown. `last_lag` is the lag at the end of the window. `above_limit`
    contains the periods in which the lag was above `max_lag_seconds`, or nothing if the limit is unknown. `measured_ms`
    is the time of the last measurement in the window.
    """

    span: str
    window: Window
    marks: tuple[Mark, ...] | None = ()
    gaps: Gaps = field(default_factory=Gaps)
    conditions: tuple[ConditionBars, ...] = ()
    members: MemberRows = field(default_factory=MemberRows)
    lag: tuple[LagPoint, ...] = ()
    last_lag: LagPoint | None = None
    silences: tuple[Span, ...] = ()
    above_limit: tuple[Span, ...] = ()
    max_lag_seconds: float | None = None
    measured_ms: int | None = None
    errors: tuple[str, ...] = ()


def marks(changes: Iterable[Change], window: Window) -> Sequence[tuple[Mark, Change]]:
    """Return the marks, each with its last change (rule 1)."""
    columns = window.by_column(list(changes), lambda change: change.at_ms)
    return [(_mark(column), max(column, key=lambda change: (change.at_ms, change.position))) for column in columns]


def _mark(column: Sequence[Change]) -> Mark:
    kinds = Counter(change.kind for change in column)
    rebalances = kinds.pop(REBALANCE, 0)
    kinds[DELETED] = max(0, kinds[DELETED] - kinds[UPGRADED] - kinds[DOWNGRADED])
    causes = Counter(change.cause or CAUSE_UNKNOWN for change in column if change.kind == REBALANCE)
    return Mark(
        first_ms=column[0].at_ms,
        last_ms=column[-1].at_ms,
        rebalances=rebalances,
        causes=dict(causes.most_common()),
        others={kind: count for kind, count in kinds.items() if count},
    )


def gaps_between(gaps: Iterable[Gap], window: Window) -> Gaps:
    """Return the commit gaps of the window (rule 2)."""
    spans, unknown = [], 0
    for gap in gaps:
        if gap.from_ms is not None and gap.duration_ms is not None:
            end_ms = gap.from_ms + gap.duration_ms
            spans.append(Span(gap.from_ms, min(end_ms, window.to_ms), is_end_known=end_ms <= window.to_ms))
        elif gap.from_ms is not None and gap.reason == NO_COMMIT_AFTER:
            spans.append(Span(gap.from_ms, max(gap.from_ms, gap.rebalance_ms), is_end_known=False))
        else:
            unknown += window.contains(gap.rebalance_ms)
    shown = [one for one in spans if one.to_ms >= window.from_ms and one.from_ms <= window.to_ms]
    longest = max(shown, key=lambda one: one.to_ms - one.from_ms, default=Span(0, 0))
    return Gaps(merge(shown, window), longest.to_ms - longest.from_ms, unknown, is_bound=not longest.is_end_known)


def merge(spans: Iterable[Span], window: Window) -> tuple[Span, ...]:
    """Clip the spans to the window, and merge spans that overlap, touch or share a column.

    >>> merge([Span(0, 10), Span(5, 20), Span(50_000, 50_100), Span(-9, -5)], Window(0, 72_000))[0]
    Span(from_ms=0, to_ms=20, text='', is_end_known=True, count=2)
    """
    merged: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.from_ms, span.to_ms)):
        if span.to_ms < window.from_ms or span.from_ms > window.to_ms:
            continue
        clipped = Span(window.clip(span.from_ms), window.clip(span.to_ms), span.text, span.is_end_known, span.count)
        if merged and window.column(clipped.from_ms) <= window.column(merged[-1].to_ms):
            first = merged.pop()
            last = max((first, clipped), key=lambda span: span.to_ms)
            clipped = Span(first.from_ms, last.to_ms, span.text, last.is_end_known, first.count + span.count)
        merged.append(clipped)
    return tuple(merged)


def condition_bars(
    rows: Iterable[ConditionRow],
    active: Collection[tuple[str, int, str]],
    proved_until_ms: int,
    silences: Sequence[Span],
    window: Window,
) -> tuple[ConditionBars, ...]:
    """Return the conditions, sorted by their first start (rule 3).

    `active` contains the name, the start and the text of each condition that is active at the end of the window.
    `silences` contains the periods without measurements.
    """
    ends: dict[tuple[str, int], tuple[int | None, str]] = {}
    for row in sorted(rows, key=lambda row: (row.sampled_ms, not row.active)):
        ends[row.name, row.since_ms] = (None if row.active else row.sampled_ms, row.detail)
    for name, since_ms, detail in active:
        ends[name, since_ms] = (window.to_ms, detail)
    spans: dict[str, list[Span]] = {}
    for (name, since_ms), (end_ms, detail) in ends.items():
        silence = next((one for one in silences if end_ms and one.from_ms < end_ms <= one.to_ms < window.to_ms), None)
        if end_ms is None or silence is not None:
            last_ms = proved_until_ms if silence is None else silence.from_ms
            span = Span(since_ms, max(since_ms, last_ms), detail, is_end_known=False)
        else:
            span = Span(since_ms, end_ms, detail)
        spans.setdefault(name, []).append(span)
    bars = [ConditionBars(name, merge(of_name, window)) for name, of_name in spans.items()]
    return tuple(sorted((bar for bar in bars if bar.spans), key=lambda bar: (bar.spans[0].from_ms, bar.name)))


def silences(measured_ms: Sequence[int], window: Window) -> tuple[Span, ...]:
    """Return the periods without measurements (rule 4). `measured_ms` is sorted and can start before the window."""
    limit_ms = silence_limit_ms(measured_ms)
    before = measured_ms[0] if measured_ms and measured_ms[0] < window.from_ms else window.from_ms - limit_ms
    edges = [before, *measured_ms, window.to_ms]
    return tuple(
        Span(window.clip(first), second)
        for first, second in pairwise(edges)
        if second - first > limit_ms and second > window.from_ms
    )
