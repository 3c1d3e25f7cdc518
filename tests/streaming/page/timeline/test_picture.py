"""Property tests of the picture: everything is inside, nothing is lost, and a storm does not make the page slow."""

from __future__ import annotations

import doctest
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streaming.evaluation.rebalances.rebalances import BECAME_EMPTY, DELETED, REBALANCE, UPGRADED
from streaming.page.timeline import history, lag_line, shapes, words
from streaming.page.timeline import member_rows as rows_of_members
from streaming.page.timeline import window as time_range
from streaming.page.timeline.history import (
    Change,
    ConditionBars,
    Gap,
    Generation,
    Holding,
    LagPoint,
    Span,
    Timeline,
    gaps_between,
    marks,
    merge,
)
from streaming.page.timeline.member_rows import member_rows
from streaming.page.timeline.picture import NARROW, WIDE, Layout, picture
from streaming.page.timeline.section import section_of
from streaming.page.timeline.shapes import CHARACTER_WIDTH, Line, Picture, Rect, Text
from streaming.page.timeline.window import COLUMNS, HOUR_MS, SPANS, Window, time_ticks

END_MS = 1_795_300_000_000
HOUR = Window(END_MS - HOUR_MS, END_MS)
NAMES = st.text(max_size=60)

windows = st.sampled_from([Window(END_MS - span_ms, END_MS) for span_ms in SPANS.values()])


def times(window: Window, outside_ms: int = 0) -> st.SearchStrategy[int]:
    return st.integers(window.from_ms - outside_ms, window.to_ms + outside_ms)


def spans(window: Window) -> st.SearchStrategy[Span]:
    pairs = st.tuples(times(window, HOUR_MS), times(window, HOUR_MS), st.booleans())
    return pairs.map(lambda pair: Span(min(pair[:2]), max(pair[:2]), "text", is_end_known=pair[2]))


def changes(window: Window) -> st.SearchStrategy[list[Change]]:
    kinds = st.sampled_from([REBALANCE, REBALANCE, BECAME_EMPTY, DELETED, UPGRADED])
    causes = st.sampled_from(["member_gone", "member_joined", None])
    rows = st.tuples(times(window, HOUR_MS), kinds, causes)
    return st.lists(rows, max_size=60).map(
        lambda rows: [Change(at_ms, (0, number), kind, cause) for number, (at_ms, kind, cause) in enumerate(rows)]
    )


@st.composite
def timelines(draw: st.DrawFn) -> Timeline:
    """Return any timeline: the picture must not depend on how likely its values are."""
    window = draw(windows)
    holdings = st.builds(Holding, NAMES, NAMES, NAMES, st.none() | st.integers(0, 5_000))
    members = st.none() | st.lists(holdings, max_size=30).map(tuple)
    generations = st.lists(st.builds(Generation, times(window, HOUR_MS), members), max_size=12)
    edges = [window.from_ms + window.span_ms * number // 240 for number in range(241)]
    records = draw(st.lists(st.none() | st.integers(0, 10**12), min_size=240, max_size=240))
    is_bound = draw(st.booleans())
    bars = st.builds(ConditionBars, NAMES, st.lists(spans(window), max_size=9).map(lambda found: merge(found, window)))
    gaps = st.builds(
        Gap, times(window, HOUR_MS), st.none() | times(window, HOUR_MS), st.none() | st.integers(0, HOUR_MS), st.none()
    )
    return Timeline(
        span="1h",
        window=window,
        marks=tuple(mark for mark, _ in marks(draw(changes(window)), window)),
        gaps=gaps_between(draw(st.lists(gaps, max_size=9)), window),
        conditions=tuple(bar for bar in draw(st.lists(bars, max_size=4)) if bar.spans),
        members=member_rows(sorted(draw(generations), key=lambda one: one.at_ms), window),
        lag=tuple(
            LagPoint(start, end, lag, is_bound) for start, end, lag in zip(edges, edges[1:], records, strict=False)
        ),
        silences=merge(draw(st.lists(spans(window), max_size=3)), window),
        above_limit=merge(draw(st.lists(spans(window), max_size=3)), window),
        max_lag_seconds=600,
        measured_ms=draw(st.none() | times(window)),
    )


@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=["wide", "narrow"])
@settings(max_examples=60, deadline=None)
@given(timeline=timelines())
def test_all_shapes_are_inside_the_picture(layout: Layout, timeline: Timeline) -> None:
    """A shape outside of the view box is invisible, so a fact would be missing without any sign."""
    drawn = picture(timeline, layout)
    for shape in drawn.shapes:
        if isinstance(shape, Rect):
            assert shape.width > 0
            assert -0.01 <= shape.x <= shape.x + shape.width <= drawn.width + 0.01
            assert 0 <= shape.y <= shape.y + shape.height <= drawn.height
        elif isinstance(shape, Line):
            assert len(shape.points) >= 2
            assert all(-0.01 <= x <= drawn.width + 0.01 and -0.01 <= y <= drawn.height for x, y in shape.points)
        else:
            assert 0 <= shape.x <= drawn.width
            assert 0 <= shape.y <= drawn.height


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_each_rebalance_of_the_window_is_in_exactly_one_mark(data: st.DataObject) -> None:
    """Ten rebalances in one pixel are still ten rebalances."""
    window = data.draw(windows)
    rows = data.draw(changes(window))
    found = [mark for mark, _ in marks(rows, window)]
    inside = [row for row in rows if window.contains(row.at_ms) and row.kind == REBALANCE]
    assert sum(mark.rebalances for mark in found) == len(inside)
    assert sum(sum(mark.causes.values()) for mark in found) == len(inside)
    for row in inside:
        assert sum(mark.first_ms <= row.at_ms <= mark.last_ms for mark in found) == 1
    lines = lines_of(picture(Timeline("1h", window, marks=tuple(found)), WIDE), "tl-mark")
    assert len(lines) == len(found) <= COLUMNS


@settings(max_examples=40, deadline=None)
@given(timeline=timelines())
def test_shapes_are_in_the_order_of_time(timeline: Timeline) -> None:
    """Time runs to the right: of two marks, the later one is never further left."""
    for css in ("tl-mark", "tl-lag"):
        xs = [line.points[0][0] for line in lines_of(picture(timeline, WIDE), css)]
        assert xs == sorted(xs)
    for row in timeline.members.rows:
        edges = [edge for band in row.bands for edge in (band.from_ms, band.to_ms)]
        assert edges == sorted(edges)


@settings(max_examples=40, deadline=None)
@given(timeline=timelines())
def test_the_line_of_the_lag_exists_exactly_where_the_lag_is_known(timeline: Timeline) -> None:
    """Law 1 of the project: unknown is never 0. A gap in the values is a gap in the line."""
    drawn = lines_of(picture(timeline, WIDE), "tl-lag")
    known = sum(point.to_ms - point.from_ms for point in timeline.lag if point.records is not None)
    width = sum(line.points[-1][0] - line.points[0][0] for line in drawn)
    expected = (WIDE.width - WIDE.label_width) * known / timeline.window.span_ms
    assert width == pytest.approx(expected, abs=0.01)


@settings(max_examples=40, deadline=None)
@given(timeline=timelines())
def test_the_table_contains_each_fact_of_the_picture(timeline: Timeline) -> None:
    """WCAG 1.1.1: a screen reader gets the same facts from the table."""
    facts = Counter(fact.name for fact in section_of(timeline).facts)
    bands = sum(len(row.bands) for row in timeline.members.rows)
    bars = sum(len(one.spans) for one in timeline.conditions)
    other = (
        len(timeline.marks or ()) + len(timeline.gaps.spans) + len(timeline.members.unknown) + len(timeline.silences)
    )
    assert facts.total() - facts["highest lag"] >= bands + bars + other
    assert facts["highest lag"] >= 1


def test_a_storm_of_seven_days_needs_at_most_some_hundreds_of_shapes() -> None:
    """A rebalance every minute for seven days: 10,080 rebalances of twelve members that always change."""
    week = Window(END_MS - SPANS["7d"], END_MS)
    minutes = range(week.from_ms, week.to_ms, 60_000)
    rows = [Change(at_ms, (0, number), REBALANCE, "member_gone") for number, at_ms in enumerate(minutes)]
    generations = [
        Generation(at_ms, tuple(Holding(f"{pod}", f"pod-{pod}", "/h", (number * 7 + pod) % 9) for pod in range(12)))
        for number, at_ms in enumerate(minutes)
    ]
    shown = [column[-1] for column in week.by_column(generations, lambda one: one.at_ms)]  # as `GroupTables` reads them
    timeline = Timeline(
        "7d", week, marks=tuple(mark for mark, _ in marks(rows, week)), members=member_rows(shown, week)
    )
    drawn = picture(timeline, WIDE)
    assert sum(mark.rebalances for mark in timeline.marks or ()) == 10_080
    assert len([shape for shape in drawn.shapes if not isinstance(shape, Text)]) < 1_000
    assert "10080 rebalances" in texts_of(drawn) or "member gone (10080)" in texts_of(drawn)


def test_a_single_rebalance_shows_its_cause_and_a_cluster_shows_its_number() -> None:
    """The on-call review: an engineer must see the cause without the pointer, on a phone."""
    alone = Change(HOUR.from_ms + 600_000, (0, 1), REBALANCE, "member_gone")
    cluster = [Change(END_MS - 1_200_000 + 50_000 * number, (0, 2 + number), REBALANCE, None) for number in range(5)]
    for layout in (WIDE, NARROW):
        found = tuple(mark for mark, _ in marks([alone, *cluster], HOUR))
        shown = texts_of(picture(Timeline("1h", HOUR, marks=found), layout))
        assert "member gone" in shown
        assert any(text in shown for text in ("cause unknown (5)", "5"))


def test_names_are_shortened_in_the_picture_and_complete_in_its_title() -> None:
    name = "a-very-long-client-id-of-a-service-in-production@ip-10-20-30-40.eu-central-1.compute.internal"
    generations = [Generation(HOUR.from_ms, (Holding("m", name, "/h", 3),))]
    drawn = picture(Timeline("1h", HOUR, members=member_rows(generations, HOUR)), NARROW)
    (label,) = [shape for shape in drawn.shapes if isinstance(shape, Text) and shape.title == name]
    assert label.text.startswith("a-very-long")
    assert label.text.endswith("compute.internal")
    assert len(label.text) < len(name)


@pytest.mark.parametrize("layout", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize(
    "name", ["\u200b" * 60, "a" + "\u0301" * 200, "\ud800" * 60], ids=["invisible", "marks", "surrogates"]
)
def test_a_hostile_name_is_as_short_as_any_other_name(layout: Layout, name: str) -> None:
    """A page shows 20 zero-width spaces as 120 characters, and they covered the bars of all members.

    A name of combining marks was never shortened.
    """
    generations = [Generation(HOUR.from_ms, (Holding("m", name, "/h", 3),))]
    drawn = picture(Timeline("1h", HOUR, members=member_rows(generations, HOUR)), layout)
    (label,) = [shape for shape in drawn.shapes if isinstance(shape, Text) and shape.title == name]
    assert label.text.isprintable(), "the page would replace characters, so the text would become longer"
    assert len(label.text) * CHARACTER_WIDTH <= (layout.label_width or layout.width)


@given(window=windows, most=st.integers(2, 20))
def test_the_time_axis_has_few_round_times_inside_the_window(window: Window, most: int) -> None:
    ticks = time_ticks(window, most)
    assert len(ticks) <= most
    assert all(window.contains(tick) and tick % 300_000 == 0 for tick in ticks)


def lines_of(drawn: Picture, css: str) -> list[Line]:
    return [shape for shape in drawn.shapes if isinstance(shape, Line) and shape.css.split()[0] == css]


def texts_of(drawn: Picture) -> list[str]:
    return [shape.text for shape in drawn.shapes if isinstance(shape, Text)]


SYMBOLS = {
    "tl-mark": "tl-key-mark",
    "tl-mark tl-other": "tl-key-other",
    "tl-gap": "tl-key-gap",
    "tl-gap-shade": "tl-key-gap-shade",
    "tl-above": "tl-key-above",
    "tl-unknown": "tl-key-unknown",
    "tl-lag tl-bound": "tl-key-bound",
    "tl-hatched": "tl-key-hatched",
    **{f"tl-{level}": "tl-key-shades" for level in range(6)},
}
"""The symbol in the legend for each class of shapes. Texts and the line of the lag explain themselves."""


@settings(max_examples=60, deadline=None)
@given(timeline=timelines())
def test_the_legend_explains_every_symbol_and_no_other(timeline: Timeline) -> None:
    """Somebody who was just paged does not know what a dashed line, a shade or hatching means."""
    section = section_of(timeline)
    shown = {shape.css for one in section.pictures for shape in one.shapes}
    explained = {entry.css for entry in section.legend}
    assert explained - {"tl-key-blank"} == {SYMBOLS[css] for css in shown if css in SYMBOLS}
    assert "tl-key-blank" in explained


def test_a_condition_whose_end_is_unknown_has_not_ended() -> None:
    """The monitor stopped during a storm. The summary listed this storm under "Ended"."""
    spans = {
        "rebalance_storm": Span(HOUR.from_ms, END_MS - 600_000, is_end_known=False),
        "stuck_rebalance": Span(HOUR.from_ms, END_MS, is_end_known=False),
        "silent_group": Span(HOUR.from_ms, END_MS),
        "long_commit_gap": Span(HOUR.from_ms, END_MS - 600_000),
    }
    bars = tuple(ConditionBars(name, (span,)) for name, span in spans.items())
    section = section_of(Timeline("1h", HOUR, conditions=bars))
    assert section.summary[:3] == [
        "Active now: silent group.",
        "Possibly still active: rebalance storm, stuck rebalance.",
        "Ended: long commit gap.",
    ]
    times_of = {fact.name: fact.time for fact in section.facts}
    assert times_of["stuck rebalance"] == "21:26:40 to 22:26:40 or later", "not until now"


def test_now_is_not_the_time_of_the_last_measurement() -> None:
    """The monitor stopped ten minutes ago. "Now" would suggest that its values are of this moment."""
    measured = Timeline("1h", HOUR, measured_ms=END_MS - 600_000)
    assert "Last measurement: 22:16:40 UTC." in section_of(measured).summary
    texts = {shape.text for shape in picture(measured, WIDE).shapes if isinstance(shape, Text)}
    assert "now, 22:26" in texts


def test_the_highest_lag_has_the_time_of_its_measurement() -> None:
    """The summary of seven days showed the start of an interval of 42 minutes, which was 40 minutes too early."""
    points = (LagPoint(0, END_MS - 2_520_000, 3), LagPoint(END_MS - 2_520_000, END_MS, 9, at_ms=END_MS - 120_000))
    summary = section_of(Timeline("1h", HOUR, lag=points, last_lag=LagPoint(END_MS, END_MS, 2))).summary
    assert "Highest lag: 9 records (at 22:24:40). Last lag: 2 records." in summary


@pytest.mark.parametrize("module", [history, lag_line, rows_of_members, shapes, time_range, words])
def test_the_examples_in_the_docstrings_are_correct(module: object) -> None:
    """The example of `shorten` was wrong, because nothing ran it."""
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]
