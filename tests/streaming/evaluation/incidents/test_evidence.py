"""Which facts in the report of a group are evidence (rules 1, 2 and 4)."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from streaming.evaluation.causes.cause import Cause
from streaming.evaluation.conditions.condition_tracker import Condition
from streaming.evaluation.facts import GroupLag, Membership
from streaming.evaluation.incidents.coordinators import CoordinatorHistory
from streaming.evaluation.incidents.evidence import (
    LEADERLESS_MS,
    Coordinator,
    Evidence,
    GroupSurroundings,
    evidence_of,
)
from streaming.evaluation.incidents.incident import START_WINDOW_MS
from streaming.evaluation.limits import GroupLimits
from streaming.evaluation.rebalances.rebalance_summary import MemberName, RebalanceSummary
from streaming.evaluation.report import GroupReport

NOW_MS, SINCE_MS = 10_000_000, 9_000_000
LATE = GroupLag(seconds=601, worst_topic="orders", worst_partition=0)


def report(**fields: Any) -> GroupReport:  # noqa: ANN401 - fields of a report
    return GroupReport("orders", Membership("classic"), **fields)


def found(one: GroupReport, surroundings: GroupSurroundings = GroupSurroundings()) -> list[Evidence]:  # noqa: B008 - frozen
    return list(evidence_of(one, surroundings, NOW_MS))


class Case(NamedTuple):
    """A report, the names of its evidence with their starts, and the reason."""

    report: GroupReport
    names: dict[str, int]
    why: str


def condition(name: str) -> tuple[Condition, ...]:
    return (Condition(name, SINCE_MS, "detail"),)


CASES = [
    Case(report(), {}, "nothing is wrong"),
    Case(report(conditions=condition("rebalance_storm")), {"rebalance_storm": SINCE_MS}, "the table has its start"),
    Case(report(conditions=condition("rolling_restart")), {}, "rule 2: a normal deployment"),
    Case(report(conditions=condition("subscription_mismatch")), {}, "rule 2: it can last for months"),
    Case(report(cause=Cause("stopped", "no_commits", since_ms=SINCE_MS)), {"stopped": SINCE_MS}, "a known cause"),
    Case(
        report(cause=Cause("stopped", "no_members", since_ms=SINCE_MS)),
        {"no_members": SINCE_MS},
        "rule 1: nobody can restart the members of a group without members",
    ),
    Case(
        report(cause=Cause("unknown", "catching_up", since_ms=SINCE_MS), lag=GroupLag(seconds=40)),
        {},
        "rule 2: the group catches up and is not above its limit",
    ),
    Case(
        report(cause=Cause("unknown", "no_rule", since_ms=SINCE_MS), lag=LATE),
        {"unknown": SINCE_MS, "lag_above_limit": NOW_MS},
        "rule 2: above the limit, an unknown cause is better than no evidence",
    ),
    Case(
        report(cause=Cause("unknown", "open_transaction", since_ms=SINCE_MS), lag=LATE),
        {"open_transaction": SINCE_MS, "lag_above_limit": NOW_MS},
        "rule 1: an open transaction needs different advice than an unknown cause",
    ),
    Case(
        report(cause=Cause("unknown", "open_transaction", since_ms=SINCE_MS), lag=GroupLag(seconds=200)),
        {},
        "rule 2: a producer of Flink keeps a transaction open until the next checkpoint",
    ),
    Case(
        report(lag=LATE._replace(status="REWIND")),
        {"rewound": NOW_MS, "lag_above_limit": NOW_MS},
        "the incident said that the cause is unknown, although the monitor knew the reset",
    ),
    Case(report(lag=GroupLag(seconds=9, status="REWIND")), {}, "rule 2: a reset on purpose by a few records"),
    Case(report(lag=GroupLag(seconds=600)), {}, "the limit itself is allowed"),
    Case(report(lag=LATE), {"lag_above_limit": NOW_MS}, "no table has the start, so it is the first sample"),
    Case(report(lag=LATE, limits=GroupLimits(max_lag_seconds=3600)), {}, "the limit of this group is an hour"),
    Case(report(lag=GroupLag(records_lost=3)), {"records_lost": NOW_MS}, "retention deleted unread records"),
    Case(report(lag=GroupLag(records_lost=0)), {}, "nothing is lost"),
    Case(report(lag=GroupLag(seconds=None, records_lost=None)), {}, "unknown is no evidence"),
    Case(
        report(conditions=condition("silent_group"), lag=LATE, limits=GroupLimits(ignore_alerts=True)),
        {},
        "rule 2: ignore_alerts",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.why for case in CASES])
def test_a_problem_is_evidence_and_normal_work_is_not(case: Case) -> None:
    assert {one.name: one.since_ms for one in found(case.report)} == case.names


def test_evidence_names_the_hosts_of_members_that_left_or_rejoined() -> None:
    """A host that dies takes the members of many groups with it. A member that joined did not cause the storm."""
    left, joined = (MemberName(key, f"app@10.0.0.{key}", False) for key in "12")
    static = MemberName("pod-0", "app@x@10.0.0.3", True)
    recent = [RebalanceSummary(0, 1, "rebalance", (), "range", 3, (joined,), (left,), (static,))]
    storm = report(conditions=condition("rebalance_storm"))
    (one,) = found(storm, GroupSurroundings(recent=recent))
    assert one.client_hosts == ("/10.0.0.1", "/10.0.0.3")
    silent = report(conditions=condition("silent_group"))
    assert found(silent, GroupSurroundings(recent=recent))[0].client_hosts == (), "silence has no member"


def test_evidence_of_lag_names_the_host_and_the_topic_of_its_cause() -> None:
    hot = Cause("hot_partition", topic="clicks", partition=3, client_host="/10.0.0.9", since_ms=SINCE_MS)
    busy = Cause("under_provisioned", since_ms=SINCE_MS)
    (of_hot,) = found(report(cause=hot))
    assert (of_hot.client_hosts, of_hot.topics) == (("/10.0.0.9",), ("clicks",))
    of_busy, _ = found(report(cause=busy, lag=LATE))
    assert of_busy.topics == ("orders",), "producers of one topic can overload several groups"
    of_blocked, _ = found(report(cause=Cause("unknown", "open_transaction"), lag=LATE))
    assert of_blocked.topics == ("orders",), "an open transaction blocks all read_committed groups of the topic"


def test_topics_belong_to_the_problem_that_names_them() -> None:
    surroundings = GroupSurroundings(topics_by_name={"unowned_partitions": ["b", "a"], "records_lost": ["c"]})
    unowned, lost = found(
        report(conditions=condition("unowned_partitions"), lag=GroupLag(records_lost=1)), surroundings
    )
    assert (unowned.topics, lost.topics) == (("a", "b"), ("c",))


def test_the_coordinator_of_evidence_is_the_broker_that_died() -> None:
    """After a broker died, its partitions have new leaders within seconds. The groups fail minutes later."""
    history = CoordinatorHistory().after_sample({0: 3, 1: 1}, 0).after_sample({0: 1, 1: 1}, 5_000)
    assert history.coordinator(0) == Coordinator(3, is_gone=True)
    assert history.after_sample({0: 1, 1: 1}, 5_000 + START_WINDOW_MS).coordinator(0).broker_id == 3
    assert history.after_sample({0: 1, 1: 1}, 5_001 + START_WINDOW_MS).coordinator(0) == Coordinator(1)


@pytest.mark.parametrize(
    ("members", "leaderless_since_ms", "names"),
    [
        (2, NOW_MS - LEADERLESS_MS, ["no_coordinator"]),
        pytest.param(2, NOW_MS - LEADERLESS_MS + 1, [], id="a broker restarts"),
        pytest.param(2, None, [], id="the partition has a leader"),
        pytest.param(0, NOW_MS - LEADERLESS_MS, [], id="a group without members commits nothing"),
        pytest.param(None, NOW_MS - LEADERLESS_MS, [], id="the members are unknown"),
    ],
)
def test_a_group_with_members_needs_a_coordinator(
    members: int | None, leaderless_since_ms: int | None, names: list[str]
) -> None:
    one = GroupReport("orders", Membership("classic", members=members))
    evidence = found(one, GroupSurroundings(Coordinator(3, is_gone=True, leaderless_since_ms=leaderless_since_ms)))
    assert [each.name for each in evidence] == names
    assert all(each.since_ms == leaderless_since_ms for each in evidence)


@pytest.mark.parametrize(
    ("leaders", "coordinator", "why"),
    [
        ({0: 2, 1: 1, 2: 3}, Coordinator(2), "the leader moved, but broker 3 still leads a partition"),
        (
            {1: 1},
            Coordinator(3, is_gone=True, leaderless_since_ms=5_000),
            "the partition has no replica on a different broker",
        ),
        ({}, Coordinator(3, is_gone=True, leaderless_since_ms=5_000), "no partition has a leader any more"),
        ({0: 3, 1: 1}, Coordinator(3), "nothing changed"),
    ],
)
def test_a_coordinator_is_gone_if_it_leads_no_partition(
    leaders: dict[int, int], coordinator: Coordinator, why: str
) -> None:
    history = CoordinatorHistory().after_sample({0: 3, 1: 1}, 0).after_sample(leaders, 5_000)
    assert history.coordinator(0) == coordinator, why
    assert CoordinatorHistory().coordinator(0) == Coordinator(), "no sample, so unknown"
