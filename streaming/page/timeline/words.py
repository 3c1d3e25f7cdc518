"""Makes the texts of a timeline, for example the summary and the titles of the shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from streaming.evaluation.phrases import counted, in_words
from streaming.page.rendering import duration, utc_text
from streaming.page.timeline.history import LagPoint, Mark, Span, Timeline
from streaming.page.timeline.window import Window, moment, time_ticks

SPAN_WORDS: Final = {"1h": "last hour", "6h": "last 6 hours", "24h": "last 24 hours", "7d": "last 7 days"}
SILENCE: Final = "The tables contain no measurements from this time. The usual reason is that the monitor did not run."
_LAG_ROWS: Final = 13


def name_text(name: str) -> str:
    """Return the name of a cause, kind or condition as words."""
    return name.replace("_", " ")


def before_text(window: Window) -> str:
    """Return a text about the end of a window in the past. The result is empty if the window ends now.

    >>> before_text(Window(0, 3_600_000, ends_now=False)), before_text(Window(0, 3_600_000))
    (' before 1970-01-01 01:00:00 UTC', '')
    """
    return "" if window.ends_now else f" before {utc_text(window.to_ms)}"


def causes(by_cause: Mapping[str, int]) -> str:
    """Return the causes with the number of changes for each cause. A single cause has no number.

    >>> causes({"member_gone": 2, "member_joined": 1}), causes({"member_gone": 5})
    ('member gone: 2, member joined: 1', 'member gone')
    """
    if len(by_cause) == 1:
        return name_text(next(iter(by_cause)))
    return ", ".join(f"{name_text(cause)}: {count:,}" for cause, count in by_cause.items())


def summary(timeline: Timeline) -> Sequence[str]:
    """Return sentences about conditions, lag, rebalances, commit gaps and measurements."""
    return [*_conditions(timeline), *_lag(timeline), *_rebalances(timeline), *_gaps(timeline), *_silences(timeline)]


def _rebalances(timeline: Timeline) -> Iterator[str]:
    by_cause: Counter[str] = Counter()
    if timeline.marks is None:
        yield "The rebalances are unknown."
        return
    for mark in timeline.marks:
        by_cause.update(mark.causes)
    total = sum(by_cause.values())
    ordered = dict(by_cause.most_common())
    yield f"{counted(total, 'rebalance')} ({causes(ordered)})." if total else "No rebalance."


def _conditions(timeline: Timeline) -> Iterator[str]:
    last = {name_text(bars.name): bars.spans[-1] for bars in timeline.conditions}
    resumed_ms = {one.from_ms for one in timeline.silences if one.to_ms < timeline.window.to_ms}
    unknown = [name for name, span in last.items() if not span.is_end_known and span.to_ms not in resumed_ms]
    active = [name for name, span in last.items() if span.is_end_known and span.to_ms == timeline.window.to_ms]
    ended = [name for name in last if name not in {*unknown, *active}]
    now = "now" if timeline.window.ends_now else "at the end"
    for phrase, names in ((f"Active {now}", active), ("Possibly still active", unknown), ("Ended", ended)):
        if names:
            yield f"{phrase}: {', '.join(names)}."


def _gaps(timeline: Timeline) -> Iterator[str]:
    gaps = timeline.gaps
    if gaps.spans:
        count = sum(gap.count for gap in gaps.spans)
        longest = f"{'at least ' if gaps.is_bound else ''}{duration(gaps.longest_ms / 1000)}"
        yield f"{counted(count, 'commit gap')}. The longest took {longest}."
    if gaps.unknown:
        yield f"The duration of {counted(gaps.unknown, 'commit gap')} is unknown."


def _lag(timeline: Timeline) -> Iterator[str]:
    known = [point for point in timeline.lag if point.records is not None]
    if not known:
        yield "The lag is unknown."
        return
    highest = max(known, key=lambda point: point.records or 0)
    last = "unknown" if timeline.last_lag is None else lag_text(timeline.last_lag)
    yield f"Highest lag: {lag_text(highest)} (at {moment(highest.at_ms, timeline.window)}). Last lag: {last}."
    if timeline.above_limit:
        yield f"For {duration(_total_ms(timeline.above_limit) / 1000)}, the {above_limit_text(timeline)}."


def _silences(timeline: Timeline) -> Iterator[str]:
    if timeline.silences:
        yield f"No measurements for {duration(_total_ms(timeline.silences) / 1000)}."
    if timeline.measured_ms is not None:
        yield f"Last measurement: {moment(timeline.measured_ms, timeline.window)} UTC."


def _total_ms(spans: Sequence[Span]) -> int:
    return sum(span.to_ms - span.from_ms for span in spans)


def above_limit_text(timeline: Timeline) -> str:
    """Return words that describe the periods above the limit of the group."""
    return f"lag was above the limit of {in_words(1000 * (timeline.max_lag_seconds or 0))}"


def lag_text(point: LagPoint) -> str:
    """Return the lag with its unit.

    >>> lag_text(LagPoint(0, 1, 1_200)), lag_text(LagPoint(0, 1, 1, True)), lag_text(LagPoint(0, 1, None))
    ('1,200 records', 'at least 1 record', 'unknown')
    """
    if point.records is None:
        return "unknown"
    return f"{'at least ' if point.is_bound else ''}{counted(point.records, 'record')}"


def mark_facts(mark: Mark) -> str:
    """Return the number of rebalances, their causes, and the other changes.

    >>> mark_facts(Mark(0, 9, 2, {"member_gone": 2}, {"became_empty": 1}))
    '2 rebalances (member gone), became empty'
    """
    parts = [f"{counted(mark.rebalances, 'rebalance')} ({causes(mark.causes)})"] if mark.rebalances else []
    return ", ".join([*parts, *([causes(mark.others)] if mark.others else [])])


def mark_title(mark: Mark, window: Window) -> str:
    """Return the title of a mark: its time, its facts, and the last change as a sentence."""
    changes = mark.rebalances + sum(mark.others.values())
    text = f"{'' if changes == 1 else 'The last change: '}{mark.text}" if mark.text else ""
    return ". ".join(part for part in (f"{mark_times(mark, window)}: {mark_facts(mark)}", text) if part)


def mark_times(mark: Mark, window: Window) -> str:
    """Return the time of a mark's only change, or the times of its first and last change."""
    first, last = moment(mark.first_ms, window), moment(mark.last_ms, window)
    return first if first == last else f"{first} to {last}"


def times(span: Span, window: Window) -> str:
    """Return the start and the end of a span. If the span lasts until the present, its end is `now`."""
    is_now = window.ends_now and span.to_ms == window.to_ms and span.is_end_known
    end = "now" if is_now else moment(span.to_ms, window)
    return f"{moment(span.from_ms, window)} to {end}{'' if span.is_end_known else ' or later'}"


def condition_text(span: Span, window: Window) -> str:
    """Return the text in the bar of a condition: its duration, or its start if it is still active."""
    if span.count > 1:
        return f"{span.count} times"
    if span.to_ms == window.to_ms and span.from_ms > window.from_ms and span.is_end_known:
        return f"since {moment(span.from_ms, window)}"
    is_longer = span.from_ms == window.from_ms or not span.is_end_known
    return f"{'more than ' if is_longer else ''}{duration((span.to_ms - span.from_ms) / 1000)}"


def gap_text(gap: Span) -> str:
    """Return the text in the bar of a commit gap: its duration, or the number of combined gaps.

    >>> gap_text(Span(0, 34_000)), gap_text(Span(0, 34_000, count=3))
    ('34 s', '3 gaps')
    """
    return duration((gap.to_ms - gap.from_ms) / 1000) if gap.count == 1 else f"{gap.count} gaps"


def gap_title(gap: Span, window: Window) -> str:
    """Return the title of a commit gap."""
    bound = "" if gap.is_end_known else "at least "
    if gap.count > 1:
        return f"{counted(gap.count, 'commit gap')}: {times(gap, window)}"
    return f"No commit for {bound}{duration((gap.to_ms - gap.from_ms) / 1000)}: {times(gap, window)}"


def partitions(count: int | None) -> str:
    """Return the number of partitions of a band.

    >>> partitions(1), partitions(None)
    ('1 partition', 'number of partitions unknown')
    """
    return "number of partitions unknown" if count is None else counted(count, "partition")


def lag_table(timeline: Timeline) -> Sequence[tuple[str, str]]:
    """Return one row for each time range of the time axis: the time range and its highest known lag."""
    window = timeline.window
    ticks = time_ticks(window, _LAG_ROWS)
    rows = []
    for _, group in groupby(timeline.lag, key=lambda point: sum(tick <= point.from_ms for tick in ticks)):
        points = list(group)
        highest = max(points, key=lambda point: -1 if point.records is None else point.records)
        rows.append((times(Span(points[0].from_ms, points[-1].to_ms), window), lag_text(highest)))
    return rows
