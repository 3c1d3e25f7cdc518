"""What each alert fires on and what it does not: every story is run by promtool, on the rules as they are delivered."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.dashboards.assignment_stories import ASSIGNMENTS
from tests.dashboards.calm_stories import CALM
from tests.dashboards.monitor_stories import MONITOR_STORIES
from tests.dashboards.progress_stories import PROGRESS, RETENTION
from tests.dashboards.rebalance_stories import REBALANCES
from tests.dashboards.rules import ALERTS, Story, told

STORIES = (*ASSIGNMENTS, *REBALANCES, *PROGRESS, *RETENTION, *MONITOR_STORIES)


def _title(story: Story) -> str:
    return f"{story.alert}: {story.why}"


@pytest.mark.parametrize("story", STORIES, ids=_title)
def test_an_alert_fires_when_it_should_and_not_when_it_should_not(story: Story, tmp_path: Path) -> None:
    assert told(story, tmp_path) == ""


@pytest.mark.parametrize("story", CALM, ids=_title)
def test_nobody_is_told_of_what_is_as_it_should_be(story: Story, tmp_path: Path) -> None:
    """Who is paged for a deployment stops reading pages: here no alert at all may fire."""
    assert told(story, tmp_path) == ""


@pytest.mark.parametrize("alert", sorted({rule["alert"] for rule in ALERTS}))
def test_of_every_alert_there_is_a_story_in_which_it_fires_one_in_which_it_does_not_and_one_of_its_words(
    alert: str,
) -> None:
    of_alert = [story for story in STORIES if story.alert == alert]
    severities = {rule["labels"]["severity"] for rule in ALERTS if rule["alert"] == alert}
    assert {story.severity for story in of_alert} == {*severities, None}
    assert [story for story in of_alert if story.says]
