"""What each alert fires on and what it does not: every story is run by promtool, on the rules as they are delivered."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from tests.dashboards.assignment_stories import ASSIGNMENTS
from tests.dashboards.calm_stories import CALM
from tests.dashboards.monitor_stories import MONITOR_STORIES
from tests.dashboards.progress_stories import PROGRESS, RETENTION
from tests.dashboards.rebalance_stories import REBALANCES
from tests.dashboards.rules import ALERTS, EXTERNAL_LABELS, Story, reported

STORIES = (*ASSIGNMENTS, *REBALANCES, *PROGRESS, *RETENTION, *MONITOR_STORIES)
OF_WORDS = tuple({story.alert: story for story in STORIES if story.says}.values())
"""One an alert."""


def _title(story: Story) -> str:
    return f"{story.alert}: {story.why}"


@pytest.mark.parametrize("story", STORIES, ids=_title)
def test_an_alert_fires_when_it_should_and_not_when_it_should_not(story: Story, tmp_path: Path) -> None:
    assert reported(story, tmp_path) == ""


@pytest.mark.parametrize("story", CALM, ids=_title)
def test_nobody_is_told_of_what_is_as_it_should_be(story: Story, tmp_path: Path) -> None:
    """Who is paged for a deployment stops reading pages: here no alert at all may fire."""
    assert reported(story, tmp_path) == ""


@pytest.mark.parametrize(
    "unset",
    [
        pytest.param({"rebalance_monitor_runbook_url"}, id="Grafana has the runbook, too"),
        pytest.param({"rebalance_monitor_runbook_url", "grafana_url"}, id="no address is known, the file has a name"),
    ],
)
@pytest.mark.parametrize("story", OF_WORDS, ids=lambda story: story.alert)
def test_without_an_address_of_its_own_the_runbook_is_where_it_is_known_to_be(
    story: Story, unset: Collection[str], tmp_path: Path
) -> None:
    """Whoever is paged is led to the alert's own panel of Grafana. Where Grafana is only a label knows."""
    known = {name: url for name, url in EXTERNAL_LABELS.items() if name not in unset}
    assert reported(replace(story, external_labels=known), tmp_path) == ""


@pytest.mark.parametrize("alert", sorted({rule["alert"] for rule in ALERTS}))
def test_of_every_alert_there_is_a_story_in_which_it_fires_one_in_which_it_does_not_and_one_of_its_words(
    alert: str,
) -> None:
    of_alert = [story for story in STORIES if story.alert == alert]
    severities = {rule["labels"]["severity"] for rule in ALERTS if rule["alert"] == alert}
    assert {story.severity for story in of_alert} == {*severities, None}
    assert [story for story in of_alert if story.says]
