"""Tests of the part `tables` of the benchmark with a short history. The target itself needs a quiet machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import table_appends
from tests.bench.table_history import TableHistory


def test_an_append_to_an_old_table_is_compared_with_an_append_to_a_new_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_appends, "HISTORY", TableHistory(days=3, commits_per_day=40))
    monkeypatch.setattr(table_appends, "_APPENDS", 3)
    after, ratio, before, maintenance, entries = table_appends.table_append_figures(tmp_path)
    assert after.value > 0
    assert ratio.value == after.ratio
    assert before.baseline == after.baseline
    assert "(125 log entries)" in before.name
    assert maintenance.value > 0
    assert entries.value < 80, "the maintenance has deleted two of three days"
