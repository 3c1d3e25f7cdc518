"""Makes the timeline section of a page: two pictures (wide and narrow), and a table with the same facts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from streaming.page.addresses import argument
from streaming.page.page_input import WatchedCluster
from streaming.page.timeline import words
from streaming.page.timeline.history import Span, Timeline
from streaming.page.timeline.picture import NARROW, WIDE, picture
from streaming.page.timeline.reader import TimelineReader
from streaming.page.timeline.shapes import Picture
from streaming.page.timeline.window import SPANS, span_of


@dataclass(frozen=True, slots=True)
class FactRow:
    """One row of the table with the facts of the picture. Member names in `name` and `text` are not escaped."""

    name: str
    time: str
    text: str = ""


class LegendEntry(NamedTuple):
    """One entry of the legend. `css` is the CSS class of the symbol."""

    css: str
    text: str


@dataclass(frozen=True, slots=True)
class TimelineSection:
    """Everything that the section shows. `spans` contains each value of `?span=` with its text.

    `words` is the text of the selected span, and the end of a window in the past.
    """

    span: str
    words: str
    spans: Sequence[tuple[str, str]]
    summary: Sequence[str]
    pictures: Sequence[Picture]
    facts: Sequence[FactRow]
    errors: Sequence[str]
    legend: Sequence[LegendEntry]


def timeline_section(
    timelines: TimelineReader, watched: WatchedCluster, group_id: str, query: str
) -> TimelineSection | None:
    """Return the section of a group. Return None if the group does not exist."""
    timeline = timelines.read(watched, group_id, span_of(argument(query, "span") or ""))
    return None if timeline is None else section_of(timeline)


def section_of(timeline: Timeline) -> TimelineSection:
    """Return the section of a timeline."""
    return TimelineSection(
        span=timeline.span,
        words=words.SPAN_WORDS[timeline.span] + words.before_text(timeline.window),
        spans=[(span, words.SPAN_WORDS[span]) for span in SPANS],
        summary=words.summary(timeline),
        pictures=[picture(timeline, layout) for layout in (WIDE, NARROW)],
        facts=list(_facts(timeline)),
        errors=timeline.errors,
        legend=list(_legend(timeline)),
    )


def _legend(timeline: Timeline) -> Iterator[LegendEntry]:
    marks, gaps, members = timeline.marks or (), timeline.gaps.spans, timeline.members
    if any(mark.rebalances for mark in marks):
        yield LegendEntry("tl-key-mark", "rebalance")
    if any(not mark.rebalances for mark in marks):
        yield LegendEntry("tl-key-other", "other change of the group, for example its last member left")
    if gaps:
        yield LegendEntry("tl-key-gap", "commit gap: no member committed")
        yield LegendEntry("tl-key-gap-shade", "shade in the rows below: time of a commit gap")
    held = {band.partitions for row in members.rows for band in row.bands}
    if held - {None}:
        yield LegendEntry("tl-key-shades", "number of partitions; a darker colour means more partitions")
    if None in held:
        yield LegendEntry("tl-key-unknown", "the number of partitions is unknown")
    if timeline.above_limit:
        yield LegendEntry("tl-key-above", words.above_limit_text(timeline))
    if any(point.is_bound and point.records is not None for point in timeline.lag):
        yield LegendEntry("tl-key-bound", "dashed line: the lag is at least this value")
    if timeline.silences:
        yield LegendEntry("tl-key-hatched", "hatched lag: no measurements, so the lag is unknown")
    if members.unknown:
        yield LegendEntry("tl-key-hatched", "hatched rows: the members are unknown")
    yield LegendEntry("tl-key-blank", "empty: no records of the group, so the group did not change")


def _facts(timeline: Timeline) -> Iterator[FactRow]:
    window, members = timeline.window, timeline.members
    for bars in timeline.conditions:
        for span in bars.spans:
            yield FactRow(words.name_text(bars.name), words.times(span, window), span.text)
    for mark in timeline.marks or ():
        yield FactRow(words.mark_facts(mark), words.mark_times(mark, window), mark.text)
    for gap in timeline.gaps.spans:
        yield FactRow("commit gap", words.times(gap, window), words.gap_title(gap, window))
    for row in members.rows:
        for band in row.bands:
            time = words.times(Span(band.from_ms, band.to_ms), window)
            yield FactRow(row.name, time, words.partitions(band.partitions))
    yield from (FactRow("members unknown", words.times(span, window)) for span in members.unknown)
    yield from (FactRow("highest lag", time, text) for time, text in words.lag_table(timeline))
    for span in timeline.above_limit:
        yield FactRow(words.above_limit_text(timeline), words.times(span, window))
    for span in timeline.silences:
        yield FactRow("no measurements", words.times(span, window), words.SILENCE)
