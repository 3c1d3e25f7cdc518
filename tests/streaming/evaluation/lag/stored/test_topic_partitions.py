"""Tests that row numbers of topic partitions equal those of a dictionary."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.lag.stored.topic_partitions import NO_ROW, TopicPartitionRows

Name = tuple[str, int]
NAMES = st.lists(
    st.tuples(st.sampled_from(["a", "b", "", "\N{ROCKET}"]), st.sampled_from([0, 1, 2**31 - 1, -1, -(2**31)])),
    max_size=12,
)


def columns(names: list[Name]) -> tuple[pa.Array, np.ndarray]:
    """Return names as columns."""
    return pa.array([topic for topic, _ in names], pa.string()), np.array([number for _, number in names], np.int64)


@given(st.lists(NAMES, max_size=5), NAMES)
def test_a_name_has_one_row_and_keeps_it(made: list[list[Name]], asked: list[Name]) -> None:
    """Negative partitions are included, because no broker checks the partition in a commit."""
    rows, model = TopicPartitionRows(), dict[Name, int]()
    for names in made:
        found = rows.make(*columns(names)).tolist()
        for name in names:
            model.setdefault(name, len(model))
        assert found == [model[name] for name in names]
    assert len(rows) == len(model)
    assert rows.find(*columns(asked)).tolist() == [model.get(name, NO_ROW) for name in asked]
    topics, partitions = rows.names()
    assert list(zip(topics.to_pylist(), partitions.tolist(), strict=True)) == list(model)


@given(NAMES, st.data())
def test_kept_names_get_new_numbers_and_the_others_are_removed(names: list[Name], data: st.DataObject) -> None:
    rows = TopicPartitionRows()
    rows.make(*columns(names))
    distinct = list(dict.fromkeys(names))
    kept = data.draw(st.lists(st.sampled_from(distinct), unique=True)) if distinct else []
    rows.keep(np.array([distinct.index(name) for name in kept], dtype=np.int64))
    assert rows.find(*columns(distinct)).tolist() == [kept.index(name) if name in kept else NO_ROW for name in distinct]
    again = [name for name in distinct if name not in kept]
    assert rows.make(*columns(again)).tolist() == list(range(len(kept), len(distinct)))
