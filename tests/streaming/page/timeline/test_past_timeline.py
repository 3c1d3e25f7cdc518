"""Tests of the timeline that ends at a moment in the past, on the page of the past."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

import streaming.page.timeline.reader
from streaming.evaluation.limits import DEFAULT_LIMITS
from streaming.page.past.views import PastMoment, past_moment
from streaming.page.timeline.history import Timeline
from streaming.page.timeline.reader import TimelineReader
from streaming.page.timeline.section import section_of
from streaming.past.reader import PastReader
from streaming.state.monitor_state import MonitorState
from tests.streaming.page.scene import CLUSTER, NOW_MS
from tests.streaming.page.test_application import Seen, ask, pages_of
from tests.streaming.page.timeline.stored import ago_ms, write_condition, write_lag
from tests.streaming.page.timeline.test_reader import DAY, HOUR, Clock, read, ten_records, watched, write_all


def read_past(tables: Path, at_ms: int, span: str = "1h", limit_seconds: float | None = None) -> Timeline:
    past = PastReader(str(tables), CLUSTER).group("g", at_ms)
    assert past is not None
    limits = None if limit_seconds is None else replace(DEFAULT_LIMITS, max_lag_seconds=limit_seconds)
    return TimelineReader(str(tables), CLUSTER, Clock()).read_past(past, limits, at_ms, span)


def at(ago_seconds: float) -> PastMoment:
    return past_moment(ago_ms(ago_seconds), NOW_MS)


@pytest.mark.parametrize("ages", [(3 * HOUR, 1_800, 600), (40 * DAY,), (40 * DAY, 600)])
def test_at_the_last_moment_the_past_is_the_present(tmp_path: Path, ages: tuple[float, ...]) -> None:
    """One truth: the same tables give the same picture, whether the window ends now or at the moment that was now."""
    cluster = watched(tmp_path, *ages)
    write_all(tmp_path)
    present, past = read(tmp_path, cluster), read_past(tmp_path, NOW_MS)
    assert past.errors == ()
    assert replace(past, window=present.window, max_lag_seconds=present.max_lag_seconds) == present


def test_what_happened_after_the_moment_is_not_shown(tmp_path: Path) -> None:
    """A week later, an engineer looks at the moment of the alert again."""
    watched(tmp_path, 3 * HOUR, 1_800, 600)
    write_all(tmp_path)
    write_lag(tmp_path, "g", 1_190, 900, lambda _: 90_000)
    timeline = read_past(tmp_path, ago_ms(1_200))
    assert (timeline.window.from_ms, timeline.window.to_ms) == (ago_ms(1_200 + HOUR), ago_ms(1_200))
    assert [mark.last_ms for mark in timeline.marks or ()] == [ago_ms(1_800)]
    assert {row.name: [band.partitions for band in row.bands] for row in timeline.members.rows} == {
        "app@10.4.5.97": [4, 6],
        "app@10.4.5.98": [4, 6],
        "app@10.4.5.99": [4],
    }
    assert {point.records for point in timeline.lag} == {120}
    (storm,) = timeline.conditions
    assert (storm.spans[0].from_ms, storm.spans[0].to_ms) == (ago_ms(1_500), ago_ms(1_200))
    section = section_of(timeline)
    assert section.summary[0] == "Active at the end: rebalance storm."
    assert section.words == "last hour before 2026-11-21 22:06:40 UTC"
    shown = {getattr(shape, "text", "") for one in section.pictures for shape in one.shapes}
    assert "22:06" in shown
    assert not any("now" in one for one in [*shown, *section.summary, *(fact.time for fact in section.facts)])


def test_rows_after_the_moment_do_not_count_towards_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lag of one hour was not shown, because the tables contain the rows of a month after this hour."""
    watched(tmp_path, 9 * DAY)
    write_lag(tmp_path, "g", 8 * DAY + HOUR, 8 * DAY, ten_records)
    for days in range(7, 1, -1):
        write_lag(tmp_path, "g", days * DAY + HOUR, days * DAY, ten_records)
    monkeypatch.setattr(streaming.page.timeline.reader, "MAX_LAG_ROWS", 300)
    assert {point.records for point in read_past(tmp_path, ago_ms(8 * DAY)).lag} == {10}
    assert "The lag is not shown" in " ".join(read_past(tmp_path, ago_ms(2 * DAY), "7d").errors)


def test_the_times_above_the_limit_are_shown_only_if_the_limit_is_known(tmp_path: Path) -> None:
    """The settings of the monitor contain no limit of a group that no longer exists."""
    watched(tmp_path, 3 * HOUR)
    write_lag(tmp_path, "g", 2 * HOUR, 0, ten_records)
    assert read_past(tmp_path, NOW_MS).above_limit == ()
    assert read_past(tmp_path, NOW_MS).max_lag_seconds is None
    assert read_past(tmp_path, NOW_MS, limit_seconds=30.0).max_lag_seconds == 30.0


def test_without_measurements_at_the_moment_the_end_of_the_lag_and_of_conditions_is_unknown(tmp_path: Path) -> None:
    watched(tmp_path, 3 * HOUR)
    write_lag(tmp_path, "g", 2 * HOUR, 1_800, ten_records)
    write_condition(tmp_path, "g", "rebalance_storm", 2_400)
    timeline = read_past(tmp_path, ago_ms(600))
    assert timeline.lag[-1].records is None
    assert timeline.measured_ms == ago_ms(1_800)
    assert "Possibly still active: rebalance storm." in section_of(timeline).summary


@pytest.mark.parametrize("stopped_ago", [1_800, 5_000])
def test_a_condition_that_started_before_the_window_is_shown_until_the_last_measurement(
    tmp_path: Path, stopped_ago: int
) -> None:
    """The group was silent for 90 minutes. Then the monitor stopped, and the last hour showed no condition."""
    watched(tmp_path, 3 * HOUR)
    write_lag(tmp_path, "g", 2 * HOUR, stopped_ago, ten_records)
    write_condition(tmp_path, "g", "silent_group", 2 * HOUR)
    timeline = read_past(tmp_path, ago_ms(600))
    found = [(span.from_ms, span.to_ms, span.is_end_known) for bars in timeline.conditions for span in bars.spans]
    is_in_window = ago_ms(stopped_ago) > timeline.window.from_ms
    assert found == ([(timeline.window.from_ms, ago_ms(stopped_ago), False)] if is_in_window else [])


def test_a_group_that_no_longer_exists_has_a_page_of_the_past_with_its_timeline(tmp_path: Path) -> None:
    """The group was deleted, and its page has the status 404. The incident is a week ago."""
    watched(tmp_path, 3 * HOUR, 1_800)
    write_all(tmp_path)
    monitor_state = MonitorState()
    monitor_state.put_health(ready=True, was_ready=True)
    pages, moment = pages_of(monitor_state, tmp_path), at(1_200).text
    missing = ask(pages, "/groups/g")
    assert missing.status == "404 Not Found"
    (link,) = [link for link in Seen(missing.text).links if "at=" in link]
    assert ask(pages, link).status == "200 OK"
    answer = ask(pages, f"/groups/g?at={quote(moment)}&span=6h")
    seen = Seen(answer.text)
    assert answer.status == "200 OK"
    assert "Timeline of the last 6 hours before 2026-11-21 22:06:40 UTC" in seen.text
    for span in ("1h", "6h", "24h", "7d"):
        assert f"/groups/g?at={quote(moment)}&span={span}#timeline" in seen.links
    assert f"/groups/g?span=6h&at={quote(at(1_200).earlier)}" in seen.links, "an hour earlier, with the same span"


def test_links_keep_the_id_of_the_group(tmp_path: Path) -> None:
    watched(tmp_path, 3 * HOUR, group_id="a/../b")
    pages = pages_of(MonitorState(), tmp_path)
    links = Seen(ask(pages, f"/groups/a%2F..%2Fb?at={quote(at(1_200).text)}").text).links
    assert f"/groups/a%2F..%2Fb?at={quote(at(1_200).text)}&span=7d#timeline" in links
