"""Tests of the strategy that a group chooses at each step of a rolling change."""

from __future__ import annotations

import pytest

from assignors.what_if.rolling_change import Step, rebalance_protocol, rolling_change

EAGER, COOPERATIVE = ("eager",), ("cooperative",)
BOTH_PROTOCOLS = ("cooperative", "eager")
RANGE, STICKY = ("range",), ("cooperative-sticky",)
STICKY_FIRST, RANGE_FIRST = ("cooperative-sticky", "range"), ("range", "cooperative-sticky")


def results(*lists: tuple[str, ...], members: int = 3) -> list[tuple[int, str, str | None, tuple[str, ...]]]:
    """Return the results of a change in which all members have the same list before and after each restart."""
    return [
        (step.restart, f"{step.restarted_at_least}-{step.restarted_at_most}", step.strategy, step.rebalance_protocols)
        for step in rolling_change([[offer] * members for offer in lists])
    ]


def test_two_rolling_restarts_change_range_to_cooperative_sticky():
    """KIP-429. No step is rejected, and no member is cooperative while the group uses range."""
    assert results(RANGE, STICKY_FIRST, STICKY) == [
        (0, "0-0", "range", EAGER),
        (1, "1-2", "range", EAGER),
        (1, "3-3", "cooperative-sticky", EAGER),
        (2, "1-2", "cooperative-sticky", BOTH_PROTOCOLS),
        (2, "3-3", "cooperative-sticky", COOPERATIVE),
    ]


def test_one_rolling_restart_from_range_to_cooperative_sticky_is_rejected():
    """The most common mistake. Only after the last old member has left do the members have a strategy in common."""
    assert results(RANGE, STICKY) == [
        (0, "0-0", "range", EAGER),
        (1, "1-2", None, BOTH_PROTOCOLS),
        (1, "3-3", "cooperative-sticky", COOPERATIVE),
    ]


def test_kafkas_default_list_needs_only_one_rolling_restart():
    """Since Kafka 3.0 the default is ``range,cooperative-sticky``, so the first restart of KIP-429 is done."""
    assert results(RANGE_FIRST, STICKY) == [
        (0, "0-0", "range", EAGER),
        (1, "1-2", "cooperative-sticky", BOTH_PROTOCOLS),
        (1, "3-3", "cooperative-sticky", COOPERATIVE),
    ]


def test_a_change_of_preference_takes_effect_when_the_votes_change():
    """Each member votes for its first common strategy. With two votes each, the order of Java's HashMap decides."""
    assert results(("range", "roundrobin"), ("roundrobin", "range"), members=4) == [
        (0, "0-0", "range", EAGER),
        (1, "1-2", "range", EAGER),
        (1, "3-4", "roundrobin", EAGER),
    ]


def test_members_can_have_different_lists():
    """A deployment that stopped halfway. The restart continues with the first member."""
    steps = rolling_change([[RANGE, STICKY_FIRST], [STICKY_FIRST, STICKY_FIRST]])
    assert steps == [
        Step(0, 0, 0, (RANGE, STICKY_FIRST), "range", EAGER),
        Step(1, 1, 2, (STICKY_FIRST,), "cooperative-sticky", EAGER),
    ]


@pytest.mark.parametrize(
    ("offer", "protocol", "why"),
    [
        (STICKY_FIRST, "eager", "range supports only eager, and the member uses one protocol for its whole list"),
        (STICKY, "cooperative", "all strategies in the list support cooperative"),
        (("sticky",), "eager", "sticky is eager; only cooperative-sticky is cooperative"),
        (("mine",), "unknown", "the list does not show what a custom strategy supports"),
        (("mine", "cooperative-sticky"), "unknown", "it depends on the custom strategy"),
        (("mine", "range"), "eager", "range decides, whatever the custom strategy supports"),
    ],
)
def test_a_member_derives_its_rebalance_protocol_from_its_whole_list(offer: tuple[str, ...], protocol: str, why: str):
    """``ConsumerCoordinator`` takes the highest protocol that all assignors of the member support."""
    assert rebalance_protocol(offer) == protocol, why


@pytest.mark.parametrize("offers", [[], [[]], [[RANGE, RANGE], [RANGE]]])
def test_each_member_needs_a_list_at_each_step(offers: list[list[tuple[str, ...]]]):
    """A missing list would change the vote."""
    with pytest.raises(ValueError, match="a list for each of its members"):
        rolling_change(offers)
