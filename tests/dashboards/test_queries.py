"""Test the example queries of `QUERIES.md` without Spark. `tests/end_to_end/test_on_call.py` runs them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_TEXT = (Path(__file__).parents[2] / "dashboards" / "QUERIES.md").read_text()
QUERIES = dict(re.findall(r"^## \d+\. (.+?)$.*?```sql\n(.*?)```", _TEXT, re.DOTALL | re.MULTILINE))
EACH = pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())


@EACH
def test_a_query_never_mixes_groups_of_two_clusters(query: str):
    """All clusters share one folder of tables. The moves of two groups with the same name were added."""
    assert query.startswith("select cluster, ")
    for by in re.findall(r"(?:group|partition) by ([\w, ]+)", query):
        assert by.startswith("cluster, ")
    for by in re.findall(r"^order by (.+)$", query, re.MULTILINE):
        assert "cluster" in by


@EACH
def test_a_query_for_a_duration_at_the_last_sample_also_returns_the_duration_now(query: str):
    """A stopped group gets no new row until the next UTC date. So its lag in seconds was some hours too small."""
    selected = query.partition("\nfrom ")[0]
    for column in {"lag_seconds", "seconds_until_lost"} & {*re.findall(r"\w+", selected)}:
        assert "sampled_time" in selected
        assert f"{column}_now" in selected
