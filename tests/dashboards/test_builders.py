"""Test the functions that build panels and alerts with inputs that no dashboard and no alert has today."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from grafana_foundation_sdk.builders import prometheus, stat

from dashboards.alerts import files
from dashboards.alerts.definition import AlertFile
from dashboards.alerts.rules import Rule, rule_groups
from dashboards.alerts.texts import by_label
from dashboards.panels import PanelSpec, fill_panel
from streaming.doctor.rules_checksum import RULES_CHECKSUM
from streaming.signals.lag import GROUP_LAG
from streaming.signals.partitions import PARTITION_LAG

SPEC = PanelSpec("Lag", "Lower is better.", "No group has lag.")


@pytest.mark.parametrize(
    ("metrics", "empty_text"),
    [
        ((), "unknown"),
        ((GROUP_LAG.name, PARTITION_LAG.name), "unknown"),
        ((PARTITION_LAG.name,), "unknown; only the worst groups have details"),
    ],
)
def test_a_panel_has_the_note_about_details_only_if_all_queries_need_details(metrics: Iterable[str], empty_text: str):
    """`all` of no queries is True."""
    panel = fill_panel(stat.Panel(), SPEC, [prometheus.Dataquery().expr(name) for name in metrics]).build()
    assert panel.field_config.defaults.no_value == empty_text


def test_the_text_for_a_single_label_value_needs_no_condition():
    """Go refuses the template `{{ {{ else }}one{{ end }}`."""
    assert by_label("x", {"a": "one"}) == "one"


def test_the_checksum_comes_from_the_rule_with_the_checksum(monkeypatch: pytest.MonkeyPatch):
    """The rule with the checksum is not necessarily the last recording rule."""

    def with_one_more(alerts: Iterable[AlertFile]) -> list[Rule]:
        groups = rule_groups(alerts)
        groups[0]["rules"].append({"record": "added", "expr": "1", "labels": {"checksum": "wrong"}})
        return groups

    monkeypatch.setattr(files, "rule_groups", with_one_more)
    assert f'"{RULES_CHECKSUM}"' in dict(files.alert_files())[Path("streaming/doctor/rules_checksum.py")]
