"""The cause of an incident, and the sentences about it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple, get_args

import pytest

from streaming.delta.incident_rows import restore_incident
from streaming.evaluation.causes.cause import NO_MEMBERS, OPEN_TRANSACTION, Kind
from streaming.evaluation.incidents.evidence import NO_COORDINATOR, RECORDS_LOST, REWOUND, Evidence
from streaming.evaluation.incidents.incident import MAX_EVIDENCE, Incident
from streaming.evaluation.incidents.incident_cause import PRECEDENCE, UNKNOWN, IncidentCause, incident_cause
from streaming.evaluation.incidents.same_cause import Population
from streaming.evaluation.incidents.story import ADVICE, Story, headline, story
from streaming.evaluation.rebalances.condition_detectors import HARMLESS
from streaming.page.rendering import utc_text
from streaming.signals.rebalances import GROUP_CONDITION
from tests.streaming.evaluation.incidents.incidents import Followed, evidence, population

GROUPS = [f"g{number}" for number in range(6)]
TWO_BROKERS = population({3: GROUPS, 1: ["x", "y"]}, {"/10.0.0.7": ["g0", "g1"]})


class Case(NamedTuple):
    """The evidence of one incident, its cause and the reason."""

    active: list[Evidence]
    kind: str
    why: str
    population: Population = TWO_BROKERS


STOPPED = [evidence("stopped", one, source="lag_cause", coordinator=3) for one in GROUPS]
CASES = [
    Case(
        [*STOPPED[1:], evidence("stopped", "g0", source="lag_cause", coordinator=3, is_gone=True)],
        "coordinator_gone",
        "rule 1: one group saw that the broker was gone",
    ),
    Case(STOPPED, "coordinator", "rule 2"),
    Case(
        [*STOPPED, evidence("hot_partition", "g1", source="lag_cause")],
        "coordinator",
        "rule 2 before rule 4: the broker explains all groups, the hot partition only one",
    ),
    Case([evidence("flapping_member", one, hosts=["/10.0.0.7"]) for one in ("g0", "g1")], "client_host", "rule 3"),
    Case(
        [evidence("stopped"), evidence("hot_partition"), evidence(RECORDS_LOST, source="loss")],
        "hot_partition",
        "rule 4: the hot partition explains why the group is late, and lost records",
    ),
    Case([evidence("rebalance_storm"), evidence("flapping_member")], "flapping_member", "rule 4: it names the member"),
    Case(
        [
            *(evidence("stopped", one, topics=["orders"]) for one in ("a", "b", "c")),
            evidence("hot_partition", "a", topics=["clicks"]),
        ],
        "stopped",
        "rule 4: only one of three groups has a hot partition",
    ),
    Case(
        [evidence("no_members", source="lag_cause"), evidence("rebalancing", minute=2, source="lag_cause")],
        "no_members",
        "rule 4: when the application starts again, its members join",
    ),
    Case([evidence("lag_above_limit", source="lag")], "unknown", "rule 5"),
    Case([evidence("no_coordinator", source="coordinator", coordinator=3)], "no_coordinator", "rule 4: only one group"),
    Case(
        [evidence("no_coordinator", one, source="coordinator", coordinator=3, is_gone=True) for one in ("a", "b")],
        "coordinator_gone",
        "rule 1: a missing coordinator is proof, so two groups are enough",
    ),
    Case([evidence("unknown", source="lag_cause"), evidence("lag_above_limit", source="lag")], "unknown", "rule 5"),
    Case(
        [evidence("lag_above_limit", source="lag"), evidence(OPEN_TRANSACTION, minute=1, source="lag_cause")],
        "open_transaction",
        "rule 4: the headline was that the cause is unknown, although the monitor knew it",
    ),
    Case(
        [evidence("under_provisioned", source="lag_cause"), evidence(REWOUND, minute=9, source="lag")],
        "under_provisioned",
        "rule 4: one rewound partition with a few unread records hid the cause of the lag",
    ),
    Case(
        [evidence(REWOUND, source="lag"), evidence(RECORDS_LOST, minute=1, source="loss")],
        "rewound",
        "rule 4: after a reset to the earliest offset, retention deletes unread records",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.why for case in CASES])
def test_the_first_rule_that_applies_names_the_cause(case: Case) -> None:
    (incident,) = Followed(case.population).sample(0, case.active)
    assert incident_cause(incident).kind == case.kind


def test_every_condition_and_every_cause_of_lag_has_a_place_and_an_advice() -> None:
    """A new condition without a place in PRECEDENCE would be an incident of unknown cause."""
    others = {NO_MEMBERS, OPEN_TRANSACTION, REWOUND, RECORDS_LOST, NO_COORDINATOR}
    known = {*GROUP_CONDITION.label_values["condition"], *get_args(Kind), *others} - HARMLESS - {UNKNOWN}
    assert set(PRECEDENCE) == known
    assert ADVICE.keys() == known | {"coordinator_gone", "coordinator", "client_host", UNKNOWN}


def test_every_advice_names_a_section_of_the_runbook() -> None:
    runbook = Path("dashboards/RUNBOOK.md").read_text()
    sections = set(re.findall("^## (.+)$", runbook, re.MULTILINE))
    assert {advice.runbook_section for advice in ADVICE.values()} <= sections


@pytest.mark.parametrize("case", CASES, ids=[case.why for case in CASES])
def test_the_story_has_short_sentences_that_end(case: Case) -> None:
    """CONTRIBUTING.md: at most about 20 words. Times count as three words each."""
    (incident,) = Followed(case.population).sample(0, case.active)
    for answer in story(incident, utc_text):
        assert answer.endswith(".")
        assert ".." not in answer
        assert all(len(sentence.split()) <= 20 for sentence in answer.split(". "))


def test_the_story_answers_who_since_when_why_how_bad_and_what_now() -> None:
    followed = Followed(TWO_BROKERS)
    gone = [evidence("stopped", one, source="lag_cause", coordinator=3, is_gone=True) for one in GROUPS]
    followed.sample(0, gone)
    lost = evidence(RECORDS_LOST, "g4", 2, source="loss")
    (incident,) = followed.sample(2, [*gone[2:], lost])
    assert story(incident, utc_text) == Story(
        "Broker 3 no longer coordinates groups, and 6 groups of this broker are affected.",
        "The incident started at 2026-11-21 22:26:40 UTC.",
        "6 groups are affected: g0, g1, g2 and 3 more. 2 groups recovered.",
        "Retention deleted records that 1 group had not read: g4.",
        "Increase the retention of the topic. Keep the new value until the group has caught up. The section "
        "KafkaRecordsLost of the runbook describes all steps. "
        "If the broker is down, start it. Check the replicas of __consumer_offsets. Restart members only after the "
        "groups can commit again. The section KafkaCoordinatorTrouble of the runbook describes all steps.",
    )


def test_a_group_without_members_does_not_get_the_advice_to_restart_its_members() -> None:
    """The incident named the section KafkaGroupStopped. Its first sentence is "The group has members"."""
    (incident,) = Followed().sample(0, [evidence("no_members", source="lag_cause")])
    assert story(incident, utc_text).what_now == (
        "If the application is down, start it. The section KafkaGroupWithoutMembers of the runbook describes all steps."
    )


def test_an_open_incident_gives_the_advice_for_the_evidence_that_is_active() -> None:
    """A subscribed topic was missing. An engineer created the topic. Then the application stopped.

    The open incident still said "create the topic". After its end, the incident has its first cause again.
    """
    followed = Followed()
    followed.sample(0, [evidence("subscribed_topic_missing")])
    stopped = [
        evidence("no_members", minute=5, source="lag_cause"),
        evidence("lag_above_limit", minute=6, source="lag"),
    ]
    (incident,) = followed.sample(6, stopped)
    assert headline(incident) == "Group orders: no members."
    assert "create the topic" not in story(incident, utc_text).what_now
    assert followed.rows[-1]["runbook_section"] == "KafkaGroupWithoutMembers"
    (incident,) = followed.sample(7)
    assert incident_cause(incident).kind == "subscribed_topic_missing"


def test_while_a_group_catches_up_its_incident_keeps_the_cause_but_not_the_advice() -> None:
    """The members of a silent group were restarted. The incident said "restart the members" until the lag was small."""
    followed = Followed()
    late = evidence("lag_above_limit", minute=1, source="lag")
    followed.sample(1, [evidence("silent_group"), late])
    (incident,) = followed.sample(2, [late, evidence("unknown", minute=2, source="lag_cause")])
    assert headline(incident) == "Group orders: silent group."
    assert story(incident, utc_text).what_now == (
        "This problem has ended, but the lag still counts as too large. If the lag does not decrease, see the section"
        " KafkaGroupLagging of the runbook."
    )


def test_no_sentence_claims_that_the_lag_is_above_the_limit_now() -> None:
    """The evidence ends at half of the limit. With a lag between both, the headline was wrong for 40 minutes."""
    followed = Followed()
    late = evidence("lag_above_limit", source="lag")
    (active,) = followed.sample(0, [late])
    (ended,) = followed.sample(1)
    assert [headline(one) for one in (active, ended)] == 2 * [
        "The lag of orders exceeded the limit, and the cause is unknown."
    ]
    assert [story(one, utc_text).how_bad for one in (active, ended)] == 2 * [
        "The monitor has seen no lost records. The lag exceeded the limit."
    ]


def test_the_headline_names_a_group_whose_problem_is_active() -> None:
    """Two groups had the same problem, and the headline named the group that had recovered."""
    followed = Followed()
    storms = [evidence("rebalance_storm", one, topics=["orders"]) for one in ("a", "b")]
    followed.sample(0, storms)
    (incident,) = followed.sample(1, storms[1:])
    assert headline(incident) == "Group b: rebalance storm (1 more group with the same problem)."


def test_while_records_are_lost_the_first_advice_is_to_stop_the_loss() -> None:
    """The alert said "Immediately raise retention.ms". The page of the incident only said "restart the members"."""
    lost, stopped = evidence(RECORDS_LOST, minute=1, source="loss"), evidence("stopped", source="lag_cause")
    followed = Followed()
    (incident,) = followed.sample(1, [stopped, lost])
    assert story(incident, utc_text).what_now == (
        "Increase the retention of the topic. Keep the new value until the group has caught up. The section"
        " KafkaRecordsLost of the runbook describes all steps. Read the logs of the members. Then start or restart the"
        " members. The section KafkaGroupStopped of the runbook describes all steps."
    )
    (incident,) = followed.sample(2, [stopped])
    assert "retention" not in story(incident, utc_text).what_now, "no records are lost any more"
    (incident,) = Followed().sample(1, [lost])
    assert story(incident, utc_text).what_now.count("Increase the retention") == 1


def test_if_an_earlier_fact_joins_the_story_has_both_starts() -> None:
    """Rule 12: the start of the incident never changes. The first line of the evidence was earlier than this start."""
    followed = Followed()
    followed.sample(5, [evidence("rebalance_storm", minute=4)])
    (incident,) = followed.sample(6, [evidence("rebalance_storm", minute=4), evidence("flapping_member", minute=2)])
    assert story(incident, utc_text).since_when == (
        "The incident started at 2026-11-21 22:30:40 UTC."
        " The earliest problem started at 2026-11-21 22:28:40 UTC, but was added to the incident later."
    )


def test_one_group_does_not_look_like_two_groups() -> None:
    """The groups `a` and `b, c` looked like three groups, and the empty id like a missing word."""
    (incident,) = Followed().sample(0, [evidence("stopped", one, topics=["orders"]) for one in ("a", "b, c")])
    assert story(incident, utc_text).who == '2 groups are affected: a, "b, c".'
    (incident,) = Followed().sample(0, [evidence("rebalance_storm", "")])
    assert story(incident, utc_text).who == 'Only the group "" is affected.'
    assert headline(incident) == 'Group "": rebalance storm.'
    (incident,) = Followed().sample(0, [evidence("unknown", 'a", "b', source="lag_cause")])
    assert headline(incident) == 'The lag of "a\\", \\"b" exceeded the limit, and the cause is unknown.'


def test_the_story_of_an_ended_incident_is_in_the_past() -> None:
    followed = Followed()
    followed.sample(3, [evidence("rebalance_storm"), evidence("flapping_member", minute=3)])
    (quiet,) = followed.sample(5)
    assert story(quiet, utc_text).since_when == (
        "The incident started at 2026-11-21 22:26:40 UTC. The cause started at 2026-11-21 22:29:40 UTC."
        " No problem has been active since 2026-11-21 22:31:40 UTC."
    )
    followed.sample(15)
    assert followed.rows[-1]["story"][1].endswith(" The incident ended at 2026-11-21 22:31:40 UTC.")
    assert followed.rows[-1]["story"][2] == "Only the group orders was affected."
    assert followed.rows[-1]["story"][4] == (
        "The problem has ended. If it returns, see the section KafkaRebalanceStorm of the runbook."
    )


@pytest.mark.parametrize("case", CASES, ids=[case.why for case in CASES])
def test_no_sentence_of_an_ended_incident_is_about_the_present(case: Case) -> None:
    """The page of an incident of last week showed `are affected` and `Restart the slow member`."""
    followed = Followed(case.population)
    (before,) = followed.sample(0, case.active)
    (quiet,) = followed.sample(5)
    followed.sample(16)
    ended = restore_incident(followed.rows[-1])
    assert (before.is_active, quiet.is_active, ended.is_active, ended.is_open) == (True, False, False, False)
    for one in (quiet, ended):
        words = " ".join(story(one, utc_text)).replace("the cause is unknown", "").split()
        assert not {"is", "are", "have", "cannot", "Restart", "Start", "coordinates"} & set(words)


def test_twenty_hosts_in_common_do_not_hide_the_broker() -> None:
    """Broker 3 dies. Fifty groups storm, and each pair of them has members on one host. 20 links are stored."""
    groups = [f"g{number:02}" for number in range(50)]
    hosts = {f"/10.0.0.{number:02}": groups[2 * number : 2 * number + 2] for number in range(25)}
    storms = [
        evidence("rebalance_storm", group_id, coordinator=3, is_gone=True, hosts=[host])
        for host, on_host in hosts.items()
        for group_id in on_host
    ]
    (incident,) = Followed(population({3: groups, 1: ["x", "y"]}, hosts)).sample(0, storms)
    assert headline(incident) == "Broker 3 no longer coordinates groups, and 50 groups of this broker are affected."


def test_the_headline_names_the_host_that_links_the_groups() -> None:
    """Both groups also name a loopback address, which links nothing."""
    hosts = ["/127.0.0.1", "/192.168.1.5"]
    storms = [evidence("rebalance_storm", one, hosts=hosts) for one in ("a", "b")]
    followed = Followed(population({1: ["a", "b", "c"]}, {"/192.168.1.5": ["a", "b"]}))
    (incident,) = followed.sample(0, storms)
    assert headline(incident) == "On the host 192.168.1.5, members of 2 groups have a problem."


def test_the_headline_counts_groups_that_only_suffer_from_the_incident() -> None:
    (incident,) = Followed().sample(
        0,
        [
            *(evidence("hot_partition", one, topics=["orders"]) for one in ("a", "b")),
            *(evidence("stopped", one, topics=["clicks"]) for one in ("b", "c")),
        ],
    )
    assert headline(incident) == (
        "Group a: hot partition (1 more group with the same problem). 1 more group is affected."
    )


def test_the_sentences_of_a_full_incident_never_count_only_the_listed_facts() -> None:
    """Rule 13: 600 groups failed, and 500 facts are listed. Each group has one fact, and ten groups recovered."""
    names = [f"g{number:03}" for number in range(MAX_EVIDENCE + 100)]
    followed = Followed(population({3: names, 1: ["other"]}))
    failed = [evidence("stopped", one, source="lag_cause", coordinator=3, is_gone=True) for one in names]
    followed.sample(0, failed)
    (incident,) = followed.sample(1, failed[10:])
    sentences = story(incident, utc_text)
    assert sentences.what_happened == (
        "Broker 3 no longer coordinates groups, and at least 500 groups of this broker are affected."
        " 600 groups are affected in total."
    )
    assert sentences.who == "600 groups are affected: g000, g001, g002 and 597 more. At least 10 groups recovered."
    assert sentences.how_bad == "The listed evidence shows no lost records and no lag above the limit."
    lost = [evidence(RECORDS_LOST, one, source="loss", coordinator=3, is_gone=True) for one in names]
    (incident,) = Followed(population({3: names, 1: ["other"]})).sample(0, lost)
    assert story(incident, utc_text).how_bad == (
        "Retention deleted records that at least 500 groups had not read: g000, g001, g002 and 497 more."
    )


def test_the_sentences_find_the_cause_of_the_incident_only_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full incident has 500 facts."""
    (incident,) = Followed(TWO_BROKERS).sample(0, STOPPED)
    asked = list[Incident]()

    def find_cause(one: Incident) -> IncidentCause:
        asked.append(one)
        return incident_cause(one)

    monkeypatch.setattr("streaming.evaluation.incidents.story.incident_cause", find_cause)
    story(incident, utc_text)
    assert asked == [incident]
