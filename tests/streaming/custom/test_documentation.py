"""Test the example in CUSTOM.md as a user would use it: as a module that is named by reference and guarded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import closing
from math import fsum
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

import assignors
from assignors import BUILT_IN, AssignorFailedError, TopicPartition
from assignors.fairness.heaviest_first import heaviest_first_loads
from assignors.fairness.invariants import violations
from assignors.fairness.measures import busiest_rate
from assignors.model import GroupAssignment, GroupSpec, MemberSubscription
from assignors.what_if.what_if import what_if
from streaming.custom.catalogue import Catalogue
from streaming.custom.guarded_assignor import FailureReason, GuardedAssignor
from streaming.custom.loading import ENTRY_POINT_GROUP
from tests.assignors.groups import groups
from tests.assignors.spelled import group
from tests.streaming.page.scene import scene
from tests.streaming.page.test_application import ask, pages_of

CUSTOM_MD = Path(assignors.__file__).with_name("CUSTOM.md")
REFERENCE = "rate_weighted:from_file"
TWO = group({"t": 4}, A="t", B="t")
RATES = {("t", 0): 100.0, ("t", 1): 90.0, ("t", 2): 90.0, ("t", 3): 20.0}


def code() -> str:
    """Return the only Python code of the document."""
    (found,) = re.findall(r"```python\n(.*?)```", CUSTOM_MD.read_text(), re.DOTALL)
    return str(found)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Save the document's code as a module, and return the folder of the module."""
    (tmp_path / "rate_weighted.py").write_text(code())
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


@pytest.fixture(scope="module")
def example() -> ModuleType:
    """Return the document's code as a module of this process."""
    module = ModuleType("rate_weighted")
    exec(compile(code(), "CUSTOM.md", "exec"), module.__dict__)  # noqa: S102 - our own document
    return module


def write_rates(folder: Path, rates: Mapping[TopicPartition, float | None]) -> None:
    """Write the fields of the API's answer that the example reads."""
    names = ("topic", "partition", "produced_records_per_second")
    rows = [dict(zip(names, (*partition, rate), strict=True)) for partition, rate in rates.items()]
    (folder / "rates.json").write_text(json.dumps({"group_id": "g", "partitions": rows}))


def guarded_answer(spec: GroupSpec) -> GroupAssignment:
    """Return the answer of the example's own process."""
    with closing(GuardedAssignor(REFERENCE)) as guarded:
        return guarded.assign(spec)


def test_the_worked_example_shares_the_rates(folder: Path):
    """Every built-in strategy gives 190 records/s to one member. By rates, no member gets more than 180."""
    write_rates(folder, RATES)
    answer = guarded_answer(TWO)
    assert answer.members == {"A": (("t", 0), ("t", 3)), "B": (("t", 1), ("t", 2))}
    built_in = what_if(TWO, {}, BUILT_IN.values(), produce_rates=RATES).outcomes
    assert {one.busiest_records_per_second for one in built_in} == {190}  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("rates", "expected", "why"),
    [
        ({**RATES, ("t", 3): None}, "t0 t2", "partition 3 counts like the mean, 93. With the weight 0, A would get it"),
        (
            {("t", 0): 100.0, ("t", 1): 90.0, ("t", 2): 50.0},
            "t0 t2",
            "partition 3 is new, so it counts like the mean, 80",
        ),
        ({}, "t0 t2", "no rate is known, so the numbers of partitions decide"),
        (dict.fromkeys(RATES, 0.0), "t0 t2", "nothing is produced, so the numbers of partitions decide"),
    ],
)
def test_an_unknown_rate_counts_like_the_mean(
    folder: Path, rates: Mapping[TopicPartition, float | None], expected: str, why: str
):
    """With the weight 0, all new partitions of a topic would go to the least busy member."""
    write_rates(folder, rates)
    answer = guarded_answer(TWO)
    assert " ".join(f"{topic}{number}" for topic, number in answer.members["A"]) == expected, why


def test_the_file_is_the_answer_of_the_api(folder: Path, tmp_path_factory: pytest.TempPathFactory):
    """The document tells users to save the answer without a change. The strategy also appears in the what-if."""
    had = scene(tmp_path_factory.mktemp("tables"))
    document = ask(pages_of(had.monitor_state, had.tables), "/api/v1/groups/billing")
    (folder / "rates.json").write_bytes(document.body)
    topics = tuple(sorted({one["topic"] for one in document.json()["partitions"]}))
    counts = {topic: sum(one["topic"] == topic for one in document.json()["partitions"]) for topic in topics}
    spec = GroupSpec(tuple(MemberSubscription(name, topics) for name in "abcd"), counts)
    rates = {(topic, number): 10.0 for topic in topics for number in range(counts[topic])}
    with closing(Catalogue([REFERENCE])) as catalogue:
        (outcome,) = what_if(spec, {}, [catalogue.assignor("rate-weighted")], produce_rates=rates).outcomes
    assert outcome.sizes == (7, 7, 8, 8)  # type: ignore[union-attr]
    assert outcome.busiest_records_per_second == 80  # type: ignore[union-attr]


def test_without_the_file_the_strategy_is_not_loaded_and_the_reason_names_the_file(folder: Path):
    """A user forgot to copy the file to the monitor."""
    assert not (folder / "rates.json").exists()
    with pytest.raises(AssignorFailedError, match=r"rates\.json") as failure:
        guarded_answer(TWO)
    assert failure.value.reason == FailureReason.NOT_LOADED


def rates_of(partitions: Iterable[TopicPartition], amounts: list[float]) -> dict[TopicPartition, float]:
    return {partition: amounts[at % len(amounts)] for at, partition in enumerate(sorted(partitions))}


@given(groups(), st.lists(st.sampled_from([0.0, 1.0, 7.0, 100.0]), min_size=1))
def test_the_worked_example_violates_no_rule(example: ModuleType, spec: GroupSpec, amounts: list[float]):
    """Subscriptions differ, topics do not exist, members have no subscription, and rates are missing."""
    partitions = [(topic, number) for topic, count in spec.partitions.items() for number in range(count)]
    strategy = example.RateWeightedAssignor(rates_of(partitions[::2], amounts))
    assert violations(spec, strategy.assign(spec)) == []
    shuffled = GroupSpec(spec.members[::-1], dict(reversed(spec.partitions.items())))
    assert strategy.assign(shuffled) == strategy.assign(spec)


@given(st.integers(1, 5), st.lists(st.sampled_from([0.0, 1.0, 7.0, 100.0]), min_size=1, max_size=12))
def test_the_worked_example_keeps_the_promise_of_the_advice(example: ModuleType, members: int, amounts: list[float]):
    """The advice names the rate of `heaviest_first` and refers to this example."""
    spec = group({"t": len(amounts)}, **dict.fromkeys("ABCDE"[:members], "t"))
    rates = {("t", number): rate for number, rate in enumerate(amounts)}
    found = busiest_rate(example.RateWeightedAssignor(rates).assign(spec), rates)
    assert found == max(heaviest_first_loads(spec, rates)) >= fsum(amounts) / members


def test_the_document_names_the_right_entry_point_group():
    """With a misspelled group the monitor would not find the strategy."""
    assert f'[project.entry-points."{ENTRY_POINT_GROUP}"]' in CUSTOM_MD.read_text()
    assert REFERENCE in CUSTOM_MD.read_text()
