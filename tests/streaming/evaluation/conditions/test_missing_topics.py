"""Tests of the condition `subscribed_topic_missing`, by the numbered rules of `missing_topics.py`."""

from __future__ import annotations

import doctest
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

import streaming.evaluation.conditions.missing_topics
from streaming.evaluation.conditions.condition_tracker import ConditionInputs, ConditionTracker
from streaming.evaluation.conditions.missing_topics import SUBSCRIBED_TOPIC_MISSING, missing_topics_now
from streaming.evaluation.group_update import GroupState
from streaming.evaluation.lag.lag import ClusterSample
from streaming.evaluation.rebalances.condition_detectors import Limits
from streaming.events import DecodeFailed, GroupEvent, TopicMetadata
from streaming.group.listing import GroupListing, ListedGroup
from tests.streaming.evaluation.silences import silence
from tests.streaming.groups import SECOND_MS, advanced, at, epoch, joined, member, modern_member, sampled, written

TYPO = "ordres"
BOTH = ("orders", TYPO)
FIRST_SAMPLE_MS = 10_000


def group(*events: GroupEvent, typo: int | None = None) -> GroupState:
    """Return a group that received the first sample. In this sample, the topic `ordres` has `typo` partitions."""
    return GroupState(advanced([*events, sampled(FIRST_SAMPLE_MS, orders=2, **{TYPO: typo})]))


def sample(partitions: Mapping[str, int | None], *missing: str) -> ClusterSample:
    """Return a sample with these partition counts. `missing` are the topics that provably do not exist."""
    topics = {topic: TopicMetadata(count, 0) for topic, count in partitions.items()}
    return ClusterSample(0, topics, missing_topics=frozenset(missing))


MISSING = sample({"orders": 2, TYPO: None}, TYPO)


def condition(record: GroupState, sampled_now: ClusterSample, seconds: float) -> Mapping[str, str | None]:
    """Return the condition at this time after the first sample."""
    missing = missing_topics_now({"g": record}, sampled_now).get("g")
    return {} if missing is None else missing.condition(FIRST_SAMPLE_MS + int(1000 * seconds), Limits())


def text(topic_and_time: str, members: str) -> dict[str, str | None]:
    return {SUBSCRIBED_TOPIC_MISSING: f"topic {topic_and_time}; {members} to it"}


UNKNOWN = {SUBSCRIBED_TOPIC_MISSING: None}
TWO = written(0, 1, [member("a", topics=BOTH), member("b", topics=BOTH), member("c")])
KIP_848 = (joined(0, "m", modern_member(BOTH)), epoch(1))


@pytest.mark.parametrize(
    ("events", "now", "seconds", "expected", "why"),
    [
        (
            [TWO],
            MISSING,
            301,
            text("ordres has not existed for 5 minutes", "2 members subscribe"),
            "21: two of three members subscribe to a misspelled topic",
        ),
        ([TWO], MISSING, 300, {}, "21: a topic that was created a moment ago is possibly not known to every broker"),
        (
            [written(0, 1, [member("a", topics=[TYPO])])],
            MISSING,
            600,
            text("ordres has not existed for 10 minutes", "1 member subscribes"),
            "21: the only topic of the only member",
        ),
        (
            KIP_848,
            MISSING,
            600,
            text("ordres has not existed for 10 minutes", "1 member subscribes"),
            "21: a KIP-848 member that subscribes by name",
        ),
        (
            [joined(0, "m", modern_member(("orders",), regex="ord.*")), epoch(1)],
            MISSING,
            600,
            {},
            "21: nobody subscribes to this name",
        ),
        ([TWO], sample({"orders": 2, TYPO: 3}), 600, {}, "22: somebody created the topic"),
        (
            [TWO],
            sample({"orders": 2, TYPO: None}),
            600,
            UNKNOWN,
            "22: the brokers do not report the monitor's permissions",
        ),
        ([TWO], sample({"orders": 2}), 600, UNKNOWN, "23: the monitor lost the permission DESCRIBE on the topic"),
        ([written(0, 1, [member("a")])], MISSING, 600, {}, "21: the topic is missing, but no member subscribes to it"),
        ([written(0, 1, [])], MISSING, 600, {}, "21: the group has no members"),
    ],
)
def test_when_a_subscribed_topic_is_missing(
    events: Sequence[GroupEvent], now: ClusterSample, seconds: float, expected: Mapping[str, str | None], why: str
) -> None:
    assert condition(group(*events), now, seconds) == expected, why


def test_without_the_right_describe_no_topic_is_ever_missing() -> None:
    """The brokers answer TOPIC_AUTHORIZATION_FAILED, so no sample contains the topic (`sampling/brokers.py`)."""
    record = GroupState(advanced([TWO, sampled(FIRST_SAMPLE_MS, orders=2)]))
    assert condition(record, sample({"orders": 2}), 600) == {}


def test_the_time_without_the_topic_survives_a_rebalance_and_a_restart() -> None:
    """Rule 21: the state of the group contains the first sample. A crashing member must not hide the typo."""
    again = advanced(
        [written(400, 2, [member("a", topics=BOTH)]), sampled(500_000, **{TYPO: None})], group(TWO).snapshot
    )
    assert condition(GroupState(again), MISSING, 600) == text(
        "ordres has not existed for 10 minutes", "1 member subscribes"
    )


def test_an_undecodable_record_hides_the_condition_and_keeps_its_time() -> None:
    """Rule 23. Before, such a record removed the samples of topics, so the time without the topic started again."""
    unreadable = advanced([DecodeFailed(at(400), "classic", "group", "")], group(TWO).snapshot)
    assert condition(GroupState(unreadable), MISSING, 600) == UNKNOWN
    again = advanced([written(401, 2, [member("a", topics=BOTH)])], unreadable)
    assert condition(GroupState(again), MISSING, 600) == text(
        "ordres has not existed for 10 minutes", "1 member subscribes"
    )


def test_several_missing_topics_are_listed() -> None:
    """The time is that of the topic that has been missing longest."""
    names = ("a1", "a2", "a3", "a4")
    record = advanced([written(0, 1, [member("m", topics=names)]), sampled(FIRST_SAMPLE_MS, a1=None, a2=None, a3=None)])
    record = advanced([sampled(FIRST_SAMPLE_MS + 60 * SECOND_MS, a4=None)], record)
    found = condition(GroupState(record), sample(dict.fromkeys(names), *names), 600)
    assert found == {
        SUBSCRIBED_TOPIC_MISSING: "4 subscribed topics do not exist, one of them for 10 minutes: a1, a2, a3 and 1 more"
    }


@pytest.mark.parametrize(
    ("listed_state", "names"),
    [("Stable", [SUBSCRIBED_TOPIC_MISSING]), ("PreparingRebalance", [SUBSCRIBED_TOPIC_MISSING]), ("Empty", [])],
)
def test_an_empty_group_misses_nothing(listed_state: str, names: list[str]) -> None:
    """The listing is newer than the last record of the group."""
    record = group(TWO)
    inputs = ConditionInputs(
        groups={"g": record},
        now_ms={0: FIRST_SAMPLE_MS + 600_000},
        silence=silence({}, {}),
        listing=GroupListing(0, {"g": ListedGroup("classic", "consumer", listed_state, 1)}),
        missing_topics=missing_topics_now({"g": record}, MISSING),
    )
    found = ConditionTracker(Limits()).evaluate(inputs)
    assert [one.name for one in found.active.get("g", ())] == names


def test_while_it_is_unknown_the_condition_does_not_end() -> None:
    """Rule 23: the permission was revoked. The condition ends when the topic exists."""
    record, tracker = group(TWO), ConditionTracker(Limits())
    inputs = ConditionInputs({"g": record}, {0: FIRST_SAMPLE_MS + 600_000}, silence({}, {}))
    changes = []
    for now in (MISSING, sample({"orders": 2}), MISSING, sample({"orders": 2, TYPO: 1})):
        found = tracker.evaluate(replace(inputs, missing_topics=missing_topics_now({"g": record}, now)))
        tracker.commit(found)
        changes.append([(one.condition.name, one.active) for one in found.changes])
    assert changes == [[(SUBSCRIBED_TOPIC_MISSING, True)], [], [], [(SUBSCRIBED_TOPIC_MISSING, False)]]


def test_the_examples_in_the_docstrings_are_correct() -> None:
    assert doctest.testmod(streaming.evaluation.conditions.missing_topics).failed == 0
