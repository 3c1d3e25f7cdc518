"""Tests that `dashboards/METRICS.md` agrees with the definitions."""

from __future__ import annotations

import re

from streaming.signals import SIGNALS
from tests.metrics_reference import METRICS, metrics_reference


def test_the_reference_is_generated_from_the_current_definitions() -> None:
    """Regenerate with `python -m tests.metrics_reference`."""
    assert METRICS.read_text() == metrics_reference()


def test_every_metric_has_an_entry_and_a_link_in_the_contents() -> None:
    page = metrics_reference()
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == list(SIGNALS)
    assert re.findall(r"^\| \[`\w+`\]\(#(\w+)\)", page, re.MULTILINE) == list(SIGNALS), "GitHub's anchors"
