"""Test the example queries of `QUERIES.md` without Spark. `tests/end_to_end/test_on_call.py` runs them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder, write_deltalake

from streaming.delta.tables import GROUP_LAG, PARTITION_STATUS, Table

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


def values_now(folder: Path, title: str, rows: Mapping[Table, Sequence[Mapping[str, Any]]]) -> dict[int, float | None]:
    """Run a query on these rows, and return its value of now for each partition. Each row is ten minutes old."""
    builder, sampled_time = QueryBuilder(), datetime.now(timezone.utc) - timedelta(minutes=10)
    for table, of_table in rows.items():
        key = {"cluster": "prod", "group_id": "g", "topic": "t", "sampled_time": sampled_time}
        stored = pa.Table.from_pylist([{**key, **row} for row in of_table], schema=table.schema)
        write_deltalake(str(folder / table.name), stored)
        builder = builder.register(table.name, DeltaTable(str(folder / table.name)))
    query = QUERIES[title].replace("unix_timestamp(", "date_part('epoch', ")
    query = query.replace("max_by(status, sampled_time)", "last_value(status order by sampled_time)")
    found = pa.table(builder.execute(query).read_all()).to_pylist()
    column = next(name for name in found[0] if name.endswith("_now"))
    return {row["partition"]: row[column] and round(row[column], -1) for row in found}


def test_the_time_until_a_loss_is_unknown_now_if_it_was_unknown_at_the_last_sample(tmp_path: Path):
    """`greatest` ignores null. So the query returned 0, as if the records were already lost."""
    known = [("STOP", None), ("STOP", 900.0), ("STALL", 60.0), ("WARN", 900.0)]
    rows = [
        {"partition": number, "status": status, "seconds_until_lost": seconds}
        for number, (status, seconds) in enumerate(known)
    ]
    title = "Which partitions make no progress or lost records?"
    assert values_now(tmp_path, title, {PARTITION_STATUS: rows}) == {0: None, 1: 300, 2: 0, 3: None}


def test_the_lag_in_seconds_grows_only_while_the_committed_offset_stands_still(tmp_path: Path):
    """The query added the age of the row for each group. So healthy groups had 36 s instead of 13 s."""
    title, lag = "Which partitions lag, and for how long?", {"lag": 5, "lag_seconds": 60.0}
    statuses = ["STOP", "STALL", "OK", "WARN", None]
    rows = {
        GROUP_LAG: [{"partition": number, **lag} for number in range(6)],
        PARTITION_STATUS: [{"partition": number, "status": status} for number, status in enumerate(statuses)],
    }
    assert values_now(tmp_path, title, rows) == {0: 660, 1: 660, 2: None, 3: None, 4: None, 5: None}
