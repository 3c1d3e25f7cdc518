"""`dashboards/METRICS.md` is what the definitions say."""

from __future__ import annotations

import re

from streaming.signals import SIGNALS
from streaming.signals.reference import metrics_reference
from tests.metrics_reference import METRICS


def test_the_reference_is_the_one_the_definitions_give() -> None:
    """Regenerate with `python -m tests.metrics_reference`."""
    assert METRICS.read_text() == metrics_reference()


def test_every_metric_has_its_entry_and_the_contents_lead_to_it() -> None:
    page = metrics_reference()
    assert re.findall(r"^### `(\w+)`$", page, re.MULTILINE) == list(SIGNALS)
    assert re.findall(r"^\| \[`\w+`\]\(#(\w+)\)", page, re.MULTILINE) == list(SIGNALS), "GitHub's anchors"
