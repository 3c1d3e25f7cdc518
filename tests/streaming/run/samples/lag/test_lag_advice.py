"""The advice for a late group, from commits and samples to the report. Only the brokers are simulated."""

from __future__ import annotations

from pathlib import Path

import pytest

from streaming.evaluation.what_if import inputs
from streaming.run.samples.lag import lag_advice
from tests.streaming.run.samples.orders import STEP_SECONDS, Orders, holding
from tests.streaming.run.samples.test_conditions import Monitor

EACH_FOUR = holding((0, 1, 2, 3), (4, 5, 6, 7))
TOO_MUCH = [50.0] * 8, [27.5] * 8
"""Each member receives 200 records/s and can consume 110."""
FOUR_MEMBERS = (
    "4 members are enough if each member consumes 110 records/s. With more than 8 members, some would be idle."
)
ALL_TO_A = holding((0, 1, 2, 3, 4, 5, 6, 7), ())
A_CAN_HELP = (
    "After a rebalance with range, the busiest member would receive 200 instead of 400 records/s. 4 partitions would"
    " move."
)


@pytest.fixture
def overloaded(tmp_path: Path) -> Orders:
    """Return a group that has been late for three minutes, because producers write too much."""
    group = Orders(Monitor(tmp_path), EACH_FOUR)
    group.run(180, *TOO_MUCH)
    return group


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each computation of an advice adds the kind of the cause."""
    kinds, advise = list[str](), lag_advice.advise

    def count(kind: str, late: object) -> object:
        kinds.append(kind)
        return advise(kind, late)  # type: ignore[arg-type]

    monkeypatch.setattr(lag_advice, "advise", count)
    return kinds


def advice(group: Orders) -> str | None:
    """Return the advice in the report of the group."""
    cause = group.cause()
    return cause and cause.advice


def test_a_group_with_too_much_input_learns_how_many_members_are_enough(overloaded: Orders) -> None:
    assert overloaded.kind() == "under_provisioned"
    assert advice(overloaded) == FOUR_MEMBERS


def test_a_member_that_became_slower_gets_no_advice_for_its_earlier_speed(tmp_path: Path) -> None:
    """The rates are averages over five minutes. The first rates after the slowdown are almost those from before."""
    group, shown = Orders(Monitor(tmp_path), holding(range(8))), set[str | None]()
    group.run(300, [10.0] * 8, [10.0] * 8)
    for _ in range(9):
        group.run(60, [10.0] * 8, [2.5] * 8)
        shown.add(advice(group))
    assert group.kind() == "under_provisioned"
    enough = "8 members are enough if each member consumes 20 records/s. With more than 8 members, some would be idle."
    assert shown == {None, enough}


def test_the_advice_comes_with_its_cause(tmp_path: Path) -> None:
    """Capacities are measured before a group is late. So no sample shows the cause without its advice."""
    group, shown = Orders(Monitor(tmp_path), EACH_FOUR), list[tuple[str | None, bool]]()
    for _ in range(36):
        group.run(STEP_SECONDS, *TOO_MUCH)
        shown.append((group.kind(), advice(group) is not None))
    named = shown.index(("under_provisioned", True))
    assert set(shown[:named]) == {(None, False)}
    assert set(shown[named:]) == {("under_provisioned", True)}


def test_a_group_with_an_unfair_assignment_learns_which_strategy_helps(tmp_path: Path) -> None:
    """Member b has no partition, although range gives it two."""
    group = Orders(Monitor(tmp_path), ALL_TO_A)
    group.run(180, *TOO_MUCH)
    group.put_fair_rate(largest=400, fair=200)
    group.run(STEP_SECONDS, *TOO_MUCH)
    assert group.kind() == "assignment"
    assert advice(group) == A_CAN_HELP


def test_the_advice_ends_with_its_cause(overloaded: Orders) -> None:
    overloaded.run(60, [50.0] * 8, [900.0] * 8)
    assert overloaded.cause() is None


def test_a_cause_without_advice_computes_nothing(tmp_path: Path, computed: list[str]) -> None:
    """The group stopped. No assignment and no new member would help."""
    group = Orders(Monitor(tmp_path), EACH_FOUR)
    group.run(120, [50.0] * 8, [50.0] * 8)
    group.run(180, [50.0] * 8, [0.0] * 8)
    assert group.kind() == "stopped"
    assert (advice(group), computed) == (None, [])


def test_the_advice_is_not_computed_again_at_each_sample(overloaded: Orders, computed: list[str]) -> None:
    """The sampler's thread also computes the lag of all other groups. Rates change slowly, so one minute is enough."""
    overloaded.run(120, *TOO_MUCH)
    assert len(computed) == 2
    assert advice(overloaded) == FOUR_MEMBERS


def test_a_new_assignment_has_new_advice_at_the_next_sample(overloaded: Orders, computed: list[str]) -> None:
    """Member b loses its partitions. Its capacity and that of a are unknown now, so old advice would be a guess."""
    overloaded.rebalance(ALL_TO_A)
    overloaded.run(STEP_SECONDS, *TOO_MUCH)
    assert (advice(overloaded), computed) == (None, [])
    overloaded.run(2 * STEP_SECONDS, *TOO_MUCH)
    assert advice(overloaded) == A_CAN_HELP
    assert computed == ["under_provisioned"]


def test_the_own_strategy_of_the_group_can_be_any_of_the_settings(tmp_path: Path) -> None:
    """By default, the settings begin with `range`. Once, groups with other strategies had no advice."""
    monitor = Monitor(tmp_path)
    monitor.strategies = ("sticky", "range")
    group = Orders(monitor, EACH_FOUR)
    group.run(180, *TOO_MUCH)
    assert advice(group) == FOUR_MEMBERS


@pytest.mark.parametrize("limit", ["MAX_PARTITIONS", "MAX_MEMBERS"])
def test_a_group_that_is_too_large_for_the_page_has_no_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """A simulation of a very large group would delay the next sample of all groups."""
    monkeypatch.setattr(inputs, limit, 1)
    group = Orders(Monitor(tmp_path), EACH_FOUR)
    group.run(180, *TOO_MUCH)
    assert group.kind() == "under_provisioned"
    assert advice(group) is None


def test_a_sample_without_time_for_advice_shows_none_and_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a broker failure, all groups can be late at once. Their advice comes with later samples."""
    monkeypatch.setattr(lag_advice, "MAX_SECONDS", 0.0)
    group = Orders(Monitor(tmp_path), EACH_FOUR)
    group.run(180, *TOO_MUCH)
    assert (group.kind(), advice(group)) == ("under_provisioned", None)
    monkeypatch.undo()
    group.run(STEP_SECONDS, *TOO_MUCH)
    assert advice(group) == FOUR_MEMBERS
