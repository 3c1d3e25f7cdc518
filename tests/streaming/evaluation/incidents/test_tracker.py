"""The rules of incidents: what opens, joins, merges and ends one, and how its id is formed."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.evaluation.incidents.evidence import Evidence
from streaming.evaluation.incidents.incident import MAX_EVIDENCE, Link
from streaming.evaluation.incidents.same_cause import Population
from tests.streaming.evaluation.incidents.incidents import Followed, at_minute, evidence, population

FORTY = [f"group-{number:02}" for number in range(40)]
OTHERS = [f"other-{number:02}" for number in range(20)]
TWO_BROKERS = population({3: FORTY, 1: OTHERS})


class Case(NamedTuple):
    """Evidence that is active at the same sample, the number of incidents that it forms, and the reason."""

    active: list[Evidence]
    incidents: int
    why: str
    population: Population = TWO_BROKERS


def _silent(groups: list[str], coordinator: int = 3, *, is_gone: bool = False, minute: float = 0) -> list[Evidence]:
    return [evidence("silent_group", one, minute, coordinator=coordinator, is_gone=is_gone) for one in groups]


CASES = [
    Case([], 0, "nothing is wrong"),
    Case([evidence("silent_group")], 1, "rule 9: one fact is enough"),
    Case([evidence("silent_group"), evidence("stopped", source="lag_cause", minute=200)], 1, "rule 5: same group"),
    Case([evidence("silent_group", "a"), evidence("silent_group", "b")], 2, "nothing in common"),
    Case(_silent(FORTY), 1, "rule 6: forty groups of one broker"),
    Case(_silent(FORTY[:20]), 1, "rule 6: exactly half of the groups of the broker"),
    Case(_silent(FORTY[:19]), 19, "rule 6: less than half, so the broker works for most groups"),
    Case(_silent(FORTY[:4]), 4, "rule 6: fewer than five groups", population({3: FORTY[:4], 1: OTHERS})),
    Case(_silent(FORTY[:5]), 1, "rule 6: five groups", population({3: FORTY[:5], 1: OTHERS})),
    Case(_silent(FORTY), 40, "guard of rule 6: the cluster has a single broker", population({3: FORTY})),
    Case(_silent(FORTY, is_gone=True), 1, "rule 6: the only broker is gone", population({3: FORTY})),
    Case(
        [evidence("hot_partition", one, coordinator=3) for one in FORTY],
        40,
        "rule 6: a coordinator does not explain a hot partition",
    ),
    Case(
        [*_silent(FORTY[:10], minute=0), *_silent(FORTY[10:20], minute=16)],
        20,
        "a run ends after 15 minutes, and each run has less than half of the groups",
    ),
    Case([*_silent(FORTY[:10]), *_silent(FORTY[10:20], minute=15)], 1, "15 minutes are still one run"),
    Case(
        [evidence("flapping_member", one, hosts=["/10.0.0.7"]) for one in ("a", "b")],
        1,
        "rule 7: a and b have members on one host, and c has not",
        population({1: ["a", "b", "c"]}, {"/10.0.0.7": ["a", "b"]}),
    ),
    Case(
        [evidence("flapping_member", one, hosts=["/10.0.0.7"]) for one in ("a", "b")],
        2,
        "rule 7: three other groups on the host are well",
        population({1: ["x", "y", "z"]}, {"/10.0.0.7": ["a", "b", "c", "d", "e"]}),
    ),
    Case(
        [evidence("flapping_member", one, hosts=["/10.0.0.7"]) for one in ("a", "b")],
        2,
        "guard of rule 7: all groups share the host, as on a developer's machine",
        population({1: ["a", "b"]}, {"/10.0.0.7": ["a", "b"]}),
    ),
    Case(
        [evidence("flapping_member", one, hosts=["/127.0.0.1"]) for one in ("a", "b")],
        2,
        "guard of rule 7: a loopback address is a different host for each client",
        population({1: ["a", "b", "c"]}, {"/127.0.0.1": ["a", "b"]}),
    ),
    Case(
        [evidence("rebalance_storm", one, hosts=[f"/10.0.0.{number}" for number in range(4)]) for one in ("a", "b")],
        2,
        "guard of rule 7: evidence with four hosts is about the group",
    ),
    Case(
        [evidence("hot_partition", one, source="lag_cause", topics=["orders"]) for one in ("a", "b", "c")],
        1,
        "rule 8: three groups read the same hot partition",
    ),
    Case(
        [evidence("hot_partition", "a", topics=["orders"]), evidence("unowned_partitions", "b", topics=["orders"])],
        2,
        "rule 8: same topic, but different problems",
    ),
    Case(
        [evidence("unowned_partitions", one, topics=["t1", "t2", "t3", "t4"]) for one in ("a", "b")],
        2,
        "guard of rule 8: evidence with four topics is about the group",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.why for case in CASES])
def test_evidence_of_one_problem_is_one_incident(case: Case) -> None:
    assert len(Followed(case.population).sample(200, case.active)) == case.incidents


def test_forty_groups_behind_one_dead_broker_are_one_incident_from_the_first_to_the_last() -> None:
    """The facts come one after the other. The first four groups open incidents, which merge when the link shows."""
    followed = Followed(TWO_BROKERS)
    facts: list[Evidence] = []
    for number, group_id in enumerate(FORTY):
        facts += _silent([group_id], is_gone=True, minute=number / 10)
        followed.sample(number / 10, facts)
    (incident,) = followed.open
    assert incident.group_count == len(FORTY)
    assert incident.links == (Link("coordinator", "3"),)
    first = followed.rows[0]["incident_id"]
    assert incident.incident_id == first, "the oldest incident survives"
    merged = [row["merged_into"] for row in followed.last().values() if row["incident_id"] != first]
    assert merged
    assert set(merged) == {first}


def test_an_incident_ends_ten_minutes_after_its_last_evidence_and_its_end_is_the_end_of_this_evidence() -> None:
    followed = Followed()
    storm = evidence("rebalance_storm")
    followed.sample(0, [storm])
    followed.sample(5)
    assert followed.sample(14.9), "nothing has been wrong for less than ten minutes"
    assert not followed.sample(15)
    states = [(row["active"], row["quiet_since_time"] is None, row["end_time"] is None) for row in followed.rows]
    assert states == [(True, True, True), (True, False, True), (False, False, False)]
    assert followed.rows[-1]["end_time"].timestamp() * 1000 == at_minute(5)


def test_evidence_that_comes_back_within_ten_minutes_continues_the_incident() -> None:
    """A member that flaps with pauses is one incident, not one in each pause."""
    followed = Followed()
    (first,) = followed.sample(0, [evidence("flapping_member")])
    followed.sample(5)
    (again,) = followed.sample(12, [evidence("flapping_member", minute=12)])
    assert again == first
    followed.sample(30)
    followed.sample(41)
    (later,) = followed.sample(50, [evidence("flapping_member", minute=50)])
    assert later.incident_id != first.incident_id


def test_unknown_evidence_neither_ends_nor_keeps_an_ended_one_alive() -> None:
    """An open transaction hides the group for an hour (rule 3)."""
    followed, silent = Followed(), evidence("silent_group")
    followed.sample(0, [silent])
    followed.sample(1, unknown={silent.key})
    assert followed.sample(60, unknown={silent.key}) == followed.open
    assert followed.open[0].quiet_since_ms is None
    followed.sample(61)
    followed.sample(62, unknown={silent.key})
    assert followed.open[0].quiet_since_ms == at_minute(61)


def test_a_fact_that_arrives_late_joins_without_a_new_id_or_start() -> None:
    """The start of a condition can be earlier than the start of the incident, for example after a slow sample."""
    followed = Followed()
    (before,) = followed.sample(10, [evidence("rebalance_storm", minute=10)])
    (after,) = followed.sample(11, [evidence("rebalance_storm", minute=10), evidence("silent_group", minute=2)])
    assert (after.incident_id, after.since_ms) == (before.incident_id, before.since_ms)
    assert [one.name for one in after.evidence] == ["silent_group", "rebalance_storm"]


def test_when_three_incidents_merge_in_two_steps_all_point_to_a_survivor() -> None:
    """A joins b, then both join the older c: a reader who follows `merged_into` arrives at c."""
    followed = Followed()
    old = evidence("silent_group", "c", -30)
    hot = [evidence("hot_partition", name, minute, topics=["t"]) for name, minute in (("a", 1), ("b", 0))]
    followed.sample(0, [old])
    followed.sample(1, [old, replace(hot[0], topics=())])
    followed.sample(2, [old, replace(hot[0], topics=()), hot[1]])
    assert len(followed.open) == 3
    both = [evidence("under_provisioned", name, 3, topics=["t"]) for name in ("a", "b")]
    followed.sample(3, [old, replace(hot[0], topics=()), hot[1], *both])
    assert len(followed.open) == 2
    last = [evidence("stopped", name, 4, topics=["t"]) for name in ("b", "c")]
    (survivor,) = followed.sample(4, [old, replace(hot[0], topics=()), hot[1], *both, *last])
    assert survivor.since_ms == old.since_ms
    target = {row["incident_id"]: row["merged_into"] for row in followed.last().values()}
    for incident_id in target:
        reached = incident_id
        while (following := target[reached]) is not None:
            reached = following
        assert reached == survivor.incident_id


def test_an_incident_with_more_groups_than_it_can_list_counts_all_of_them() -> None:
    """Rule 13. Ten thousand groups of one broker must not make a row of many megabytes."""
    groups = [f"g-{number:04}" for number in range(MAX_EVIDENCE + 100)]
    followed = Followed(population({3: groups, 1: OTHERS}), restarts=True)
    (incident,) = followed.sample(0, _silent(groups))
    assert (len(incident.evidence), incident.group_count) == (MAX_EVIDENCE, len(groups))
    (later,) = followed.sample(1, _silent(groups))
    assert later == incident
    assert len(followed.rows) == 1
    followed.sample(2)
    followed.sample(12)
    assert followed.rows[-1]["group_count"] == len(groups)
    assert not followed.open


def _thousand_groups_of_a_dead_broker(minute: float) -> list[Evidence]:
    """Return the evidence at a minute. After 15 minutes, broker 1 and broker 2 coordinate the groups."""
    is_gone = minute <= 15
    return [
        fact
        for number, one in enumerate(THOUSAND)
        for fact in (
            evidence(
                "silent_group", one, number / 1_000, coordinator=3 if is_gone else 1 + number % 2, is_gone=is_gone
            ),
            evidence("lag_above_limit", one, minute, source="lag", coordinator=3 if is_gone else 1 + number % 2),
        )
    ]


THOUSAND = [f"g-{number:04}" for number in range(MAX_EVIDENCE + 700)]
DEAD_BROKER = population({3: [*THOUSAND, "late"], 1: OTHERS})
AFTER_THE_MOVE = population({1: [*THOUSAND[::2], *OTHERS], 2: THOUSAND[1::2]})


@pytest.mark.parametrize("restarts", [False, True])
def test_a_thousand_groups_of_a_dead_broker_are_one_incident_also_after_their_move(*, restarts: bool) -> None:
    """The incident lists 500 facts. After 15 minutes, the new leaders are the coordinators of the other groups."""
    followed = Followed(DEAD_BROKER, restarts)
    (first,) = followed.sample(2, _thousand_groups_of_a_dead_broker(2))
    for minute in (10, 15, 16, 40):
        followed.population = DEAD_BROKER if minute <= 15 else AFTER_THE_MOVE
        (incident,) = followed.sample(minute, _thousand_groups_of_a_dead_broker(minute))
        assert incident.incident_id == first.incident_id
        assert incident.groups == tuple(THOUSAND)
        assert incident.shown_at_groups == set(THOUSAND), "also the groups whose facts are not listed"
        assert incident.links == (Link("coordinator", "3"),)


def test_a_group_that_fails_later_still_joins_an_incident_with_more_groups_than_it_lists() -> None:
    """The 500 listed groups are less than half of the groups of the broker, but all 1,200 are more (rule 13)."""
    followed = Followed(DEAD_BROKER)
    followed.sample(2, _silent(THOUSAND, is_gone=True))
    (incident,) = followed.sample(3, _silent([*THOUSAND, "late"], is_gone=True))
    assert incident.groups == (*THOUSAND, "late")


def test_unlisted_facts_do_not_pull_a_new_problem_into_an_old_incident() -> None:
    """A lag starts at the first sample that shows it. So facts that are not listed seem to start at each sample."""
    followed = Followed(DEAD_BROKER)
    lags = [evidence("lag_above_limit", one, 0, source="lag", coordinator=3) for one in THOUSAND]
    followed.sample(0, lags)
    now = [replace(one, since_ms=at_minute(60)) for one in lags]
    old, new = followed.sample(60, [*now, evidence("lag_above_limit", "late", 60, source="lag", coordinator=3)])
    assert (old.groups, new.groups) == (tuple(THOUSAND), ("late",))


GROUPS = [f"g{number}" for number in range(7)]
FACTS = st.builds(
    evidence,
    st.sampled_from(["silent_group", "hot_partition", "stopped", "flapping_member"]),
    st.sampled_from(GROUPS),
    st.integers(-20, 20),
    coordinator=st.sampled_from([None, 1, 2]),
    is_gone=st.booleans(),
    hosts=st.sampled_from([(), ("/10.0.0.1",), ("/10.0.0.1", "/10.0.0.2")]),
    topics=st.sampled_from([(), ("orders",), ("orders", "clicks")]),
)
SAMPLES = st.lists(st.lists(FACTS, max_size=8, unique_by=lambda one: one.key), max_size=8)
POPULATION = population({1: GROUPS[:5], 2: GROUPS[5:]}, {"/10.0.0.1": GROUPS[:3]})


def _follow(samples: list[list[Evidence]], *, restarts: bool = False, is_reversed: bool = False) -> Followed:
    followed = Followed(POPULATION, restarts)
    for number, active in enumerate(samples):
        followed.sample(6 * number, active[::-1] if is_reversed else active)
        if is_reversed:
            followed.open = followed.open[::-1]
    return followed


@given(SAMPLES)
def test_a_restart_before_each_sample_changes_no_row(samples: list[list[Evidence]]) -> None:
    """Kill -9 at any time: the ids are in the table, and everything else follows from the table and the facts."""
    assert _follow(samples, restarts=True).rows == _follow(samples).rows


@given(SAMPLES)
def test_the_order_of_groups_and_incidents_does_not_matter(samples: list[list[Evidence]]) -> None:
    assert _follow(samples, is_reversed=True).rows == _follow(samples).rows


@given(SAMPLES)
def test_each_active_fact_is_in_exactly_one_open_incident(samples: list[list[Evidence]]) -> None:
    followed = Followed(POPULATION)
    for number, active in enumerate(samples):
        incidents = followed.sample(6 * number, active)
        listed = [one.key for incident in incidents for one in incident.evidence if one.until_ms is None]
        assert sorted(listed) == sorted(one.key for one in active)
        groups = [group_id for incident in incidents for group_id in incident.groups]
        assert len(groups) == len(set(groups)), "a group has at most one open incident"


@given(SAMPLES)
def test_an_id_and_its_start_never_change(samples: list[list[Evidence]]) -> None:
    starts: dict[str, object] = {}
    for row in _follow(samples).rows:
        assert starts.setdefault(row["incident_id"], row["since_time"]) == row["since_time"]


@given(st.lists(st.tuples(st.sampled_from([-500_000, -60, -1, 0.1, 6, 60, 500_000]), st.lists(FACTS, max_size=3))))
def test_no_time_of_an_incident_is_in_the_future_although_the_clock_is_set_back(
    samples: list[tuple[float, list[Evidence]]],
) -> None:
    """Rule 16: the clock was a year ahead for two samples. The incident was open for a year, or ended before its start.

    The first number of each sample is the number of minutes since the previous sample.
    """
    followed, minute = Followed(), 600_000.0
    for step, facts in samples:
        minute += step
        active = {one.key: replace(one, since_ms=one.since_ms + at_minute(minute) - at_minute(0)) for one in facts}
        first_row = len(followed.rows)
        for incident in followed.sample(minute, list(active.values())):
            times_ms = [incident.since_ms, incident.quiet_since_ms or 0]
            times_ms += [time_ms for one in incident.evidence for time_ms in (one.since_ms, one.until_ms or 0)]
            assert max(times_ms) <= at_minute(minute)
        for row in followed.rows[first_row:]:
            assert row["end_time"] is None or row["end_time"] >= row["since_time"]
    followed.sample(minute - 1)
    assert not followed.sample(minute + 10), "an incident ends ten minutes after its last evidence"


WITHOUT_HOSTS = FACTS.map(lambda one: replace(one, client_hosts=()))
"""Guards of rule 7 count healthy groups. So more evidence can mean fewer links, and the steps matter by design."""


@given(st.lists(WITHOUT_HOSTS, max_size=12, unique_by=lambda one: one.key), st.integers(0, 12), st.integers(0, 12))
def test_merging_has_the_same_result_in_one_step_and_in_several(facts: list[Evidence], first: int, second: int) -> None:
    """The same facts at the last sample form the same sets of groups, however they arrived."""
    at_once, in_steps = Followed(POPULATION), Followed(POPULATION)
    at_once.sample(21, facts)
    in_steps.sample(20, facts[: min(first, second)])
    in_steps.sample(20.5, facts[: max(first, second)])
    in_steps.sample(21, facts)
    assert {one.groups for one in at_once.open} == {one.groups for one in in_steps.open}


def test_a_living_broker_links_only_its_groups_without_a_coordinator() -> None:
    """Rule 6: one log directory of a broker failed. A storm of a third group of this broker is another problem."""
    groups = ["a", "b", "z", *(f"g{number}" for number in range(7))]
    orphans = [evidence("no_coordinator", one, 1, source="coordinator", coordinator=2) for one in ("a", "b")]
    storm = evidence("rebalance_storm", "z", coordinator=2)
    opened = Followed(population({2: groups, 1: ["other"]})).sample(2, [storm, *orphans])
    assert sorted(one.groups for one in opened) == [("a", "b"), ("z",)]
