"""Converts the values of a timeline to the shapes of a picture.

1. Time runs to the right. From top to bottom, the rows are: conditions, rebalances, commit gaps, members, lag, and the
   time axis.
2. All shapes are inside the view box. The code can only estimate the width of text. Therefore, the browser cuts off
   texts at the edge of the view box, and row names at the start of the bars.
3. There are two layouts. `WIDE` has names on the left side. `NARROW` is for phones and has names above the rows.
4. A mark is one vertical line from its text to the lag curve. The line is behind the bands of the members, so it does
   not divide a band. The text of a mark is the cause or the number of rebalances. Marks that are close together share
   one text. If there is no space for the text, only the title of the mark contains it.
5. A member's band is darker if the member has more partitions.
6. A line shows the lag. The line has a gap where the lag is unknown. Where the lag is a lower bound, the line is
   dashed. Periods with a lag above the limit have a red background. Times without measurements are hatched.
7. Empty space in a row means that nothing changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import ceil
from typing import Final

from streaming.evaluation.phrases import counted
from streaming.group.printable import printable
from streaming.page.heat_map import LEVELS
from streaming.page.rendering import whole
from streaming.page.timeline import words
from streaming.page.timeline.history import LagPoint, Mark, MemberRow, Span, Timeline
from streaming.page.timeline.shapes import Line, Picture, Rect, Shape, Text, shorten, text_width
from streaming.page.timeline.window import clock, moment, nice_limit, tick_text, time_ticks

_ROW_GAP: Final = 4.0
_LABEL_HEIGHT: Final = 15.0
_MIN_WIDTH: Final = 2.0
_AXIS_HEIGHT: Final = 18.0
_CLUSTER_WIDTH: Final = 40.0


@dataclass(frozen=True, slots=True)
class Layout:
    """The sizes of a picture. If `label_width` is 0, names are above the rows."""

    name: str
    width: float
    label_width: float
    row_height: float
    lag_height: float
    ticks: int


WIDE: Final = Layout("wide", 1000, 180, 19, 96, 10)
NARROW: Final = Layout("narrow", 360, 0, 15, 80, 5)


def picture(timeline: Timeline, layout: Layout) -> Picture:
    """Return the picture of the timeline."""
    return _Drawing(timeline, layout).draw()


@dataclass
class _Drawing:
    timeline: Timeline
    layout: Layout
    below: list[Shape] = field(default_factory=list)
    """Shapes behind the rows: hatched times, commit gaps and rebalances."""
    rows: list[Shape] = field(default_factory=list)
    y: float = 0.0

    def draw(self) -> Picture:
        self._conditions()
        self._rebalances_and_gaps()
        self._members()
        lag_from = self._lag()
        self._through_everything(lag_from)
        self._time_axis()
        layout = self.layout
        return Picture(layout.name, layout.width, self.y, layout.label_width, (*self.below, *self.rows))

    def x(self, at_ms: float) -> float:
        window, left = self.timeline.window, self.layout.label_width
        return left + (self.layout.width - left) * (at_ms - window.from_ms) / window.span_ms

    def _row(self, name: str, css: str = "tl-name") -> float:
        """Add the name of a row, and return the vertical position of the row's content."""
        top, layout = self.y, self.layout
        shown = shorten(printable(name), layout.label_width - 8 if layout.label_width else layout.width)
        if layout.label_width:
            self.rows.append(Text(0, top + layout.row_height - 5, shown, css, title=name))
        else:
            self.rows.append(Text(0, top + 11, shown, css, title=name))
            top += _LABEL_HEIGHT
        self.y = top + layout.row_height + _ROW_GAP
        return top

    def _placeholder(self, top: float, *, is_unknown: bool) -> None:
        text = "unknown" if is_unknown else "none"
        self.rows.append(Text(self.layout.label_width + 4, top + self.layout.row_height - 5, text, "tl-faint"))

    def _box(self, span: Span, top: float, height: float, css: str, title: str) -> Rect:
        left = min(self.x(span.from_ms), self.layout.width - _MIN_WIDTH)
        return Rect(left, top, max(_MIN_WIDTH, self.x(span.to_ms) - left), height, css, title)

    def _text_in(self, box: Rect, text: str, css: str) -> Iterator[Text]:
        if text_width(text) + 2 <= box.width:
            yield Text(box.x + box.width / 2, box.y + box.height - 4.5, text, css, "middle", box.title)

    def _conditions(self) -> None:
        window = self.timeline.window
        for bars in self.timeline.conditions:
            top = self._row(words.name_text(bars.name), "tl-name tl-bad")
            for span in bars.spans:
                title = f"{words.name_text(bars.name)}, {words.times(span, window)}. {span.text}"
                css = "tl-condition" if span.is_end_known else "tl-condition tl-open"
                box = self._box(span, top, self.layout.row_height, css, title)
                self.rows += [box, *self._text_in(box, words.condition_text(span, window), "tl-in-condition")]

    def _rebalances_and_gaps(self) -> None:
        timeline = self.timeline
        top = self._row("rebalances")
        if not timeline.marks:
            self._placeholder(top, is_unknown=timeline.marks is None)
        self.rows += _mark_texts(timeline.marks or (), self, top + self.layout.row_height - 5)
        self._marks_from = top
        self._gaps_from = self.y
        if timeline.gaps.spans:
            top = self._row("commit gaps", "tl-name tl-warn")
            for gap in timeline.gaps.spans:
                box = self._box(gap, top, self.layout.row_height, "tl-gap", words.gap_title(gap, timeline.window))
                self.rows += [box, *self._text_in(box, words.gap_text(gap), "tl-in-gap")]

    def _members(self) -> None:
        members, top = self.timeline.members, self.y
        self._heading(f"partitions of each {'member' if members.is_by_member else 'host'}")
        most = max((band.partitions or 0 for row in members.rows for band in row.bands), default=0)
        for row in members.rows:
            self._member(row, most)
        if not members.rows:
            self._placeholder(self._row("members"), is_unknown=bool(members.unknown))
        for span in members.unknown:
            title = f"Members unknown: {words.times(span, self.timeline.window)}"
            self.below.append(self._box(span, top, self.y - top, "tl-hatched", title))

    def _member(self, row: MemberRow, most: int) -> None:
        top = self._row(row.name)
        for band in row.bands:
            span = Span(band.from_ms, band.to_ms)
            title = f"{row.name}: {words.partitions(band.partitions)}, {words.times(span, self.timeline.window)}"
            level = ceil(LEVELS * (band.partitions or 0) / most) if most else 0
            css = "tl-unknown" if band.partitions is None else f"tl-{level}"
            box = self._box(span, top, self.layout.row_height, css, title)
            text = "?" if band.partitions is None else str(band.partitions)
            self.rows += [box, *self._text_in(box, text, f"tl-in {css}-ink")]

    def _lag(self) -> float:
        """Draw the lag, and return the vertical position of its upper end."""
        self._heading("lag, in records")
        top, height, layout = self.y + 4, self.layout.lag_height, self.layout
        points = self.timeline.lag
        highest = max((point.records for point in points if point.records is not None), default=None)
        limit = nice_limit(highest or 0)
        left, bottom = layout.label_width, top + height
        for value, y in ((limit, top), (0, bottom)):
            self.rows.append(Line(((left, y), (layout.width, y)), "tl-grid"))
            at = (left - 8, y + 4, "end") if left else (0.0, y + (11 if value else -4), "start")
            if highest is not None:
                self.rows.append(Text(at[0], at[1], whole(value), "tl-faint", at[2]))
        if highest is None:
            self.rows.append(Text((left + layout.width) / 2, top + height / 2, "unknown", "tl-faint", "middle"))
        for span in self.timeline.above_limit:
            title = f"{words.above_limit_text(self.timeline)}: {words.times(span, self.timeline.window)}"
            self.below.append(self._box(span, top, height, "tl-above", title))
        self.rows += [
            Line(tuple((self.x(at_ms), bottom - height * records / limit) for at_ms, records in run), css)
            for run, css in _lag_runs(points)
        ]
        self.rows += self._peak(points, limit, bottom)
        self.y = bottom + 4
        return top

    def _peak(self, points: Sequence[LagPoint], limit: int, bottom: float) -> Iterator[Text]:
        known = [(point.records, point) for point in points if point.records]
        if known:
            records, point = max(known, key=lambda pair: pair[0])
            text = ("≥ " if point.is_bound else "") + whole(records)
            half = text_width(text) / 2
            x = (self.x(point.from_ms) + self.x(point.to_ms)) / 2
            x = min(
                max(x, self.layout.label_width + half + (0 if self.layout.label_width else 60)),
                self.layout.width - half,
            )
            y = bottom - self.layout.lag_height * records / limit
            yield Text(x, y + 14 if y - 4 < bottom - self.layout.lag_height + 8 else y - 4, text, "tl-peak", "middle")

    def _through_everything(self, lag_from: float) -> None:
        timeline, bottom = self.timeline, self.y - 4
        for span in timeline.silences:
            title = f"{words.SILENCE} {words.times(span, timeline.window)}"
            self.below.append(self._box(span, lag_from, bottom - lag_from, "tl-hatched", title))
        for gap in timeline.gaps.spans:
            height = bottom - self._gaps_from
            self.below.append(
                self._box(gap, self._gaps_from, height, "tl-gap-shade", words.gap_title(gap, timeline.window))
            )
        for mark in timeline.marks or ():
            x = self.x(mark.last_ms)
            css = "tl-mark" if mark.rebalances else "tl-mark tl-other"
            self.below.append(Line(((x, self._marks_from), (x, bottom)), css, words.mark_title(mark, timeline.window)))

    def _heading(self, text: str) -> None:
        self.y += 4
        self.rows.append(Text(0, self.y + 11, text, "tl-faint"))
        self.y += _LABEL_HEIGHT + 2

    def _time_axis(self) -> None:
        left, right, baseline = self.layout.label_width, self.layout.width, self.y + 12
        for at_ms in time_ticks(self.timeline.window, self.layout.ticks):
            x, text = self.x(at_ms), tick_text(at_ms)
            half = text_width(text) / 2
            self.below.append(Line(((x, 0), (x, self.y)), "tl-grid"))
            if left + half <= x <= right - half - (80 if left else 30):
                self.rows.append(Text(x, baseline, text, "tl-faint", "middle"))
        window = self.timeline.window
        now = ["now"] if window.ends_now else []
        end = ", ".join([*now, clock(window.to_ms)] if left or not now else now)
        self.rows.append(Text(right, baseline, end, "tl-faint", "end", moment(window.to_ms, window)))
        if left:
            self.rows.append(Text(0, baseline, "UTC", "tl-faint"))
        self.y += _AXIS_HEIGHT


def _mark_texts(marks: Sequence[Mark], drawing: _Drawing, baseline: float) -> Iterator[Text]:
    """Yield the texts of the marks. A text is on the left of its mark if only the left has space (rule 4)."""
    clusters, free_from = _clusters(marks, drawing), drawing.layout.label_width
    starts = [drawing.x(cluster[0].last_ms) for cluster in clusters]
    for cluster, x, end in zip(clusters, starts, [*starts, drawing.layout.width][1:], strict=True):
        last_x = drawing.x(cluster[-1].last_ms)
        for text in _mark_words(_joined(cluster)):
            width = text_width(text) + 6
            title = words.mark_title(_joined(cluster), drawing.timeline.window)
            if x + width <= end:
                yield Text(x + 4, baseline, text, "tl-cause", "start", title)
                last_x = max(last_x, x + width)
                break
            if x - width >= free_from:
                yield Text(x - 4, baseline, text, "tl-cause", "end", title)
                break
        free_from = last_x


def _clusters(marks: Sequence[Mark], drawing: _Drawing) -> Sequence[Sequence[Mark]]:
    """Divide the marks into lists. The marks of one list are close together and share one text."""
    clusters: list[list[Mark]] = []
    for mark in marks:
        if clusters and drawing.x(mark.last_ms) - drawing.x(clusters[-1][-1].last_ms) < _CLUSTER_WIDTH:
            clusters[-1].append(mark)
        else:
            clusters.append([mark])
    return clusters


def _joined(marks: Sequence[Mark]) -> Mark:
    causes, others = Counter[str](), Counter[str]()
    for mark in marks:
        causes.update(mark.causes)
        others.update(mark.others)
    rebalances = sum(mark.rebalances for mark in marks)
    return Mark(marks[0].first_ms, marks[-1].last_ms, rebalances, causes, others, marks[-1].text)


def _mark_words(mark: Mark) -> Sequence[str]:
    """Return the possible texts of a mark, the longest first.

    >>> _mark_words(Mark(0, 0, 1, {"member_gone": 1}, {})), _mark_words(Mark(0, 0, 12, {"member_gone": 12}, {}))
    (['member gone'], ['member gone (12)', '12'])
    """
    changes = {**mark.causes, **mark.others}
    if mark.rebalances + sum(mark.others.values()) == 1:
        return [words.name_text(next(iter(changes)))]
    count = str(mark.rebalances or sum(mark.others.values()))
    noun = "rebalance" if mark.rebalances else "change"
    if len(changes) == 1:
        return [f"{words.name_text(next(iter(changes)))} ({count})", count]
    return [counted(int(count), noun), count]


def _lag_runs(points: Sequence[LagPoint]) -> Iterator[tuple[Sequence[tuple[float, int]], str]]:
    """Yield the points and the CSS classes of each line that shows the lag.

    A line ends where the lag becomes unknown, and where a lower bound starts or ends.
    """
    run: list[tuple[float, int]] = []
    for before, point in pairwise([None, *points, None]):
        records = None if point is None else point.records
        if (
            before is not None
            and before.records is not None
            and (records is None or point is None or before.is_bound != point.is_bound)
        ):
            run.append((before.to_ms, before.records))
            yield run, "tl-lag tl-bound" if before.is_bound else "tl-lag"
            run = []
        if point is not None and records is not None:
            run = run or [(point.from_ms, records)]
            run.append(((point.from_ms + point.to_ms) / 2, records))
