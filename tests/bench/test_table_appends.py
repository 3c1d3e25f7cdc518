"""The part `tables` of the benchmark, with a short past: the bound itself is a matter of a quiet machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench import table_appends
from tests.bench.table_history import Past


def test_an_append_to_an_old_table_is_measured_beside_one_to_a_young_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_appends, "PAST", Past(days=3, commits_per_day=40))
    monkeypatch.setattr(table_appends, "_APPENDS", 3)
    tidied, ratio, before, upkeep, entries = table_appends.table_append_figures(tmp_path)
    assert tidied.value > 0
    assert ratio.value == tidied.ratio
    assert before.plain == tidied.plain
    assert "(125 log entries)" in before.name
    assert upkeep.value > 0
    assert entries.value < 80, "two days of three are gone"
