"""Tests of requests for assignors: few per sample, every group in turn, and a failure never stops a sample."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest
from kafka.errors import KafkaError, KafkaTimeoutError

from streaming.evaluation.group_update import GroupState
from streaming.events import CONSUMER, AssignorReported
from streaming.feedback.assignors import ASK_AGAIN_SECONDS
from streaming.group.listing import DescribedGroup, Description, GroupListing, GroupNotFound, ListedGroup, Unanswered
from streaming.run.samples import assignors as module
from streaming.run.samples.assignors import AssignorRequests
from streaming.run.samples.feedback_writer import PendingFacts
from streaming.state.monitor_view import MonitorView
from tests.streaming.groups import advanced, epoch, formed, joined, modern_member, written

REPORTED = AssignorReported(3, "uniform")


class Coordinators:
    """Coordinators that give one answer for each group and record the requested groups."""

    def __init__(self) -> None:
        self.answer: Description | KafkaError = DescribedGroup("consumer", "Stable", "consumer", "uniform", (), 3, 3)
        self.requested: list[list[str]] = []

    def describe_groups(self, group_types: Mapping[str, str | None]) -> Mapping[str, Description]:
        """Describe each group in the same way."""
        assert set(group_types.values()) <= {CONSUMER}
        self.requested.append(list(group_types))
        if isinstance(self.answer, KafkaError):
            raise self.answer
        return dict.fromkeys(group_types, self.answer)


@pytest.fixture
def coordinators() -> Coordinators:
    return Coordinators()


@pytest.fixture
def requests(coordinators: Coordinators) -> AssignorRequests:
    return AssignorRequests("prod", coordinators)  # type: ignore[arg-type]


def listing_of(view: MonitorView) -> GroupListing:
    """Return a listing of all groups."""
    return GroupListing(0, dict.fromkeys(view.groups, ListedGroup("consumer", "consumer", "Stable", 1)))


def facts_of_sample(requests: AssignorRequests, view: MonitorView, now_seconds: float) -> PendingFacts:
    """Return the facts that one sample finds for the groups."""
    return requests.reported(view, listing_of(view), now_seconds)


WITHOUT_ASSIGNOR = GroupState(advanced(formed(0)))
WITH_ASSIGNOR = GroupState(advanced([*formed(0), REPORTED]))


def test_an_answer_is_sent_to_the_group_until_its_state_has_it(
    requests: AssignorRequests, coordinators: Coordinators
) -> None:
    view = MonitorView({"g": WITHOUT_ASSIGNOR})
    assert facts_of_sample(requests, view, 0) == facts_of_sample(requests, view, 5) == {"g": (REPORTED,)}
    assert facts_of_sample(requests, MonitorView({"g": WITH_ASSIGNOR}), 10) == {}
    assert coordinators.requested == [["g"]], "one request"


def test_groups_that_name_their_strategy_cause_no_request(
    requests: AssignorRequests, coordinators: Coordinators
) -> None:
    named = advanced([joined(0, "m", modern_member(server_assignor="range")), epoch(1)])
    view = MonitorView({"classic": GroupState(advanced([written(0, 1)])), "named": GroupState(named)})
    assert facts_of_sample(requests, view, 0) == {}
    assert coordinators.requested == [], "no request at all"


def test_groups_that_no_broker_lists_cause_no_request(requests: AssignorRequests, coordinators: Coordinators) -> None:
    """Such a group may be deleted, and the monitor would have to try every group type."""
    assert requests.reported(MonitorView({"g": WITHOUT_ASSIGNOR}), GroupListing(0, {}), 0) == {}
    assert coordinators.requested == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Unanswered("group_authorization_failed"), "the monitor lacks the permission DESCRIBE"),
        (Unanswered("unsupported_version"), "the broker does not support ConsumerGroupDescribe"),
        (GroupNotFound(), "the group was deleted after the listing"),
        (KafkaTimeoutError(), "no broker answers"),
    ],
)
def test_after_a_failure_the_assignor_is_unknown_and_requested_again_later(
    requests: AssignorRequests, coordinators: Coordinators, answer: Description | KafkaError, why: str
) -> None:
    good_answer, coordinators.answer = coordinators.answer, answer
    view = MonitorView({"g": WITHOUT_ASSIGNOR})
    assert facts_of_sample(requests, view, 0) == facts_of_sample(requests, view, ASK_AGAIN_SECONDS - 1) == {}, why
    assert len(coordinators.requested) == 1, "the next samples send no request"
    coordinators.answer = good_answer
    assert facts_of_sample(requests, view, ASK_AGAIN_SECONDS) == {"g": (REPORTED,)}, why


def test_a_known_assignor_survives_a_failure(requests: AssignorRequests, coordinators: Coordinators) -> None:
    assert facts_of_sample(requests, MonitorView({"g": WITHOUT_ASSIGNOR}), 0)
    coordinators.answer = Unanswered("coordinator_not_available")
    assert facts_of_sample(requests, MonitorView({"g": WITH_ASSIGNOR}), ASK_AGAIN_SECONDS) == {}


def test_a_new_default_reaches_the_group(requests: AssignorRequests, coordinators: Coordinators) -> None:
    assert facts_of_sample(requests, MonitorView({"g": WITH_ASSIGNOR}), 0) == {}
    coordinators.answer = DescribedGroup("consumer", "Stable", "consumer", "range", (), 3, 3)
    assert facts_of_sample(requests, MonitorView({"g": WITH_ASSIGNOR}), ASK_AGAIN_SECONDS) == {
        "g": (AssignorReported(3, "range"),)
    }


def test_one_sample_requests_few_groups_and_the_next_samples_the_others(
    requests: AssignorRequests, coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUPS_PER_SAMPLE", 3)
    view = MonitorView({f"g{number}": WITHOUT_ASSIGNOR for number in range(8)})
    for second in range(4):
        facts_of_sample(requests, view, second)
    assert [len(requested) for requested in coordinators.requested] == [3, 3, 2]
    assert sorted(one for requested in coordinators.requested for one in requested) == sorted(view.groups)
    facts_of_sample(requests, view, ASK_AGAIN_SECONDS + 1)
    assert set(coordinators.requested[-1]) == {*coordinators.requested[0]}, (
        "the groups with the oldest request come first"
    )


def test_one_sample_requests_few_members_and_a_large_group_alone(
    requests: AssignorRequests, coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MEMBERS_PER_SAMPLE", 2)
    large = GroupState(advanced([*formed(0), joined(5, "n"), joined(6, "o")]))
    view = MonitorView({"a": WITHOUT_ASSIGNOR, "b": WITHOUT_ASSIGNOR, "large": large, "z": WITHOUT_ASSIGNOR})
    for second in range(4):
        facts_of_sample(requests, view, second)
    assert coordinators.requested == [["a", "b"], ["large"], ["z"]]


def test_only_groups_without_a_known_assignor_are_remembered(requests: AssignorRequests) -> None:
    facts_of_sample(requests, MonitorView({"g": WITHOUT_ASSIGNOR, "h": WITHOUT_ASSIGNOR}), 0)
    facts_of_sample(requests, MonitorView({"h": WITHOUT_ASSIGNOR}), 1)
    assert requests._last.keys() == {"h"}


def test_a_reason_is_logged_once(
    requests: AssignorRequests, coordinators: Coordinators, caplog: pytest.LogCaptureFixture
) -> None:
    coordinators.answer = Unanswered("group_authorization_failed")
    with caplog.at_level(logging.WARNING):
        for second in (0, ASK_AGAIN_SECONDS, 2 * ASK_AGAIN_SECONDS):
            facts_of_sample(requests, MonitorView({"g": WITHOUT_ASSIGNOR}), second)
    assert [line.getMessage() for line in caplog.records] == [
        "prod: coordinators do not report the assignor of some KIP-848 groups: group_authorization_failed"
    ]
