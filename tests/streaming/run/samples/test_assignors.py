"""Requests for assignors: few at a time, all in the end, and no failure that stops a sample."""

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
    """What coordinators answer, and which groups they were asked about."""

    def __init__(self) -> None:
        self.answer: Description | KafkaError = DescribedGroup("consumer", "Stable", "consumer", "uniform", (), 3, 3)
        self.asked: list[list[str]] = []

    def describe_groups(self, group_types: Mapping[str, str | None]) -> Mapping[str, Description]:
        """Describe each group in the same way."""
        assert set(group_types.values()) <= {CONSUMER}
        self.asked.append(list(group_types))
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


def sampled(requests: AssignorRequests, view: MonitorView, now_seconds: float) -> PendingFacts:
    """Return what one sample has for the groups."""
    return requests.reported(view, listing_of(view), now_seconds)


LACKING = GroupState(advanced(formed(0)))
KNOWING = GroupState(advanced([*formed(0), REPORTED]))


def test_an_answer_is_handed_back_until_the_group_has_it(
    requests: AssignorRequests, coordinators: Coordinators
) -> None:
    view = MonitorView({"g": LACKING})
    assert sampled(requests, view, 0) == sampled(requests, view, 5) == {"g": (REPORTED,)}
    assert sampled(requests, MonitorView({"g": KNOWING}), 10) == {}
    assert coordinators.asked == [["g"]], "asked once"


def test_groups_that_name_their_strategy_are_not_asked_about(
    requests: AssignorRequests, coordinators: Coordinators
) -> None:
    named = advanced([joined(0, "m", modern_member(server_assignor="range")), epoch(1)])
    view = MonitorView({"classic": GroupState(advanced([written(0, 1)])), "named": GroupState(named)})
    assert sampled(requests, view, 0) == {}
    assert coordinators.asked == [], "no request at all"


def test_groups_that_no_broker_lists_are_not_asked_about(
    requests: AssignorRequests, coordinators: Coordinators
) -> None:
    """Such a group may be gone, and every type would be asked for."""
    assert requests.reported(MonitorView({"g": LACKING}), GroupListing(0, {}), 0) == {}
    assert coordinators.asked == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Unanswered("group_authorization_failed"), "the right DESCRIBE is missing"),
        (Unanswered("unsupported_version"), "a broker without ConsumerGroupDescribe"),
        (GroupNotFound(), "gone since the listing"),
        (KafkaTimeoutError(), "nobody answers"),
    ],
)
def test_a_failure_leaves_the_assignor_unknown_and_is_tried_again_later(
    requests: AssignorRequests, coordinators: Coordinators, answer: Description | KafkaError, why: str
) -> None:
    works, coordinators.answer = coordinators.answer, answer
    view = MonitorView({"g": LACKING})
    assert sampled(requests, view, 0) == sampled(requests, view, ASK_AGAIN_SECONDS - 1) == {}, why
    assert len(coordinators.asked) == 1, "not in every sample"
    coordinators.answer = works
    assert sampled(requests, view, ASK_AGAIN_SECONDS) == {"g": (REPORTED,)}, why


def test_a_known_assignor_survives_a_failure(requests: AssignorRequests, coordinators: Coordinators) -> None:
    assert sampled(requests, MonitorView({"g": LACKING}), 0)
    coordinators.answer = Unanswered("coordinator_not_available")
    assert sampled(requests, MonitorView({"g": KNOWING}), ASK_AGAIN_SECONDS) == {}


def test_a_new_default_reaches_the_group(requests: AssignorRequests, coordinators: Coordinators) -> None:
    assert sampled(requests, MonitorView({"g": KNOWING}), 0) == {}
    coordinators.answer = DescribedGroup("consumer", "Stable", "consumer", "range", (), 3, 3)
    assert sampled(requests, MonitorView({"g": KNOWING}), ASK_AGAIN_SECONDS) == {"g": (AssignorReported(3, "range"),)}


def test_a_sample_asks_about_few_groups_and_the_next_about_others(
    requests: AssignorRequests, coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GROUPS_PER_SAMPLE", 3)
    view = MonitorView({f"g{number}": LACKING for number in range(8)})
    for second in range(4):
        sampled(requests, view, second)
    assert [len(asked) for asked in coordinators.asked] == [3, 3, 2]
    assert sorted(one for asked in coordinators.asked for one in asked) == sorted(view.groups)
    sampled(requests, view, ASK_AGAIN_SECONDS + 1)
    assert set(coordinators.asked[-1]) == {*coordinators.asked[0]}, "the longest unasked first"


def test_a_sample_asks_about_few_members_and_about_a_large_group_alone(
    requests: AssignorRequests, coordinators: Coordinators, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MEMBERS_PER_SAMPLE", 2)
    large = GroupState(advanced([*formed(0), joined(5, "n"), joined(6, "o")]))
    view = MonitorView({"a": LACKING, "b": LACKING, "large": large, "z": LACKING})
    for second in range(4):
        sampled(requests, view, second)
    assert coordinators.asked == [["a", "b"], ["large"], ["z"]]


def test_what_is_remembered_is_as_large_as_the_groups_that_lack_it(requests: AssignorRequests) -> None:
    sampled(requests, MonitorView({"g": LACKING, "h": LACKING}), 0)
    sampled(requests, MonitorView({"h": LACKING}), 1)
    assert requests._last.keys() == {"h"}


def test_a_reason_is_logged_once(
    requests: AssignorRequests, coordinators: Coordinators, caplog: pytest.LogCaptureFixture
) -> None:
    coordinators.answer = Unanswered("group_authorization_failed")
    with caplog.at_level(logging.WARNING):
        for second in (0, ASK_AGAIN_SECONDS, 2 * ASK_AGAIN_SECONDS):
            sampled(requests, MonitorView({"g": LACKING}), second)
    assert [line.getMessage() for line in caplog.records] == [
        "prod: coordinators do not report the assignor of some KIP-848 groups: group_authorization_failed"
    ]
