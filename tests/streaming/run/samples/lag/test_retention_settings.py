"""Tests of the requests for retention settings: few, bounded, and never fatal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kafka.errors import KafkaConnectionError

from streaming.run.samples.lag.retention_settings import (
    KNOWN_FOR_MS,
    OFFSETS_RETENTION,
    RETRY_AFTER_MS,
    TOPIC_RETENTION,
    TOPICS_PER_SAMPLE,
    RetentionSettings,
)
from streaming.sampling.configs import TopicSettings

WEEK_MS = 7 * 24 * 3_600_000


class Configs:
    """Brokers that return some settings, and record the requests. No topic has a size limit."""

    def __init__(self, offsets_ms: int | None = WEEK_MS, **topics: int) -> None:
        self.offsets_ms, self.topics = offsets_ms, topics
        self.is_down = False
        self.offset_requests, self.topic_requests = 0, list[Sequence[str]]()

    def offsets_retention_ms(self) -> int | None:
        """Return the setting of the brokers."""
        self.offset_requests += 1
        if self.is_down:
            raise KafkaConnectionError
        return self.offsets_ms

    def topic_settings(self, topics: Sequence[str]) -> Mapping[str, TopicSettings]:
        """Return the settings of the known topics. Topics with the retention -1 are compacted."""
        self.topic_requests.append(topics)
        if self.is_down:
            raise KafkaConnectionError
        known = {topic: self.topics[topic] for topic in topics if topic in self.topics}
        return {
            topic: TopicSettings(None if ms < 0 else ms, is_compacted=ms < 0, has_size_limit=False)
            for topic, ms in known.items()
        }


def test_a_known_setting_is_requested_once_per_hour() -> None:
    configs = Configs(orders=WEEK_MS)
    settings = RetentionSettings("eu", configs)
    for now_ms in range(0, KNOWN_FOR_MS, 600_000):
        settings.request_if_due(["orders"], now_ms)
    assert (configs.offset_requests, configs.topic_requests) == (1, [["orders"]])
    configs.topics["orders"] = 1_000
    settings.request_if_due(["orders"], KNOWN_FOR_MS)
    assert settings.topic_retention_ms == {"orders": 1_000}
    assert configs.offset_requests == 2


def test_a_missing_permission_is_reported_and_requested_again_rarely() -> None:
    """The permissions are optional. The first report of `run` names them, so there is no log line for each request."""
    configs = Configs(None, orders=WEEK_MS)
    settings = RetentionSettings("eu", configs)
    for now_ms in range(0, RETRY_AFTER_MS, 5_000):
        settings.request_if_due(["orders", "secret"], now_ms)
    assert (configs.offset_requests, len(configs.topic_requests)) == (1, 1)
    assert settings.not_known == (OFFSETS_RETENTION, TOPIC_RETENTION)
    configs.offsets_ms, configs.topics["secret"] = WEEK_MS, WEEK_MS
    settings.request_if_due(["orders", "secret"], RETRY_AFTER_MS)
    assert (settings.not_known, settings.offsets_retention_ms) == ((), WEEK_MS)
    assert configs.topic_requests[1:] == [["secret"]], "the known topic is not requested again"


def test_a_topic_whose_lag_comes_and_goes_is_not_requested_in_each_sample() -> None:
    """Almost every healthy topic has a lag of 0 in some samples. Its setting was forgotten and requested each time."""
    configs = Configs(orders=WEEK_MS)
    settings = RetentionSettings("eu", configs)
    for now_ms in range(0, KNOWN_FOR_MS, 10_000):
        settings.request_if_due(["orders"], now_ms)
        settings.request_if_due([], now_ms + 5_000)
    assert configs.topic_requests == [["orders"]]
    settings.request_if_due([], KNOWN_FOR_MS)
    assert settings.topic_retention_ms == {}, "after an hour without lag, the topic is forgotten"


def test_many_topics_are_requested_in_several_samples() -> None:
    """A cluster with 10,000 topics must not get one request with all of them."""
    topics = [f"t{number:03}" for number in range(TOPICS_PER_SAMPLE + 30)]
    configs = Configs(**dict.fromkeys(topics, WEEK_MS))
    settings = RetentionSettings("eu", configs)
    for now_ms in (0, 5_000, 10_000):
        settings.request_if_due(topics, now_ms)
    assert [len(names) for names in configs.topic_requests] == [TOPICS_PER_SAMPLE, 30]
    assert settings.topic_retention_ms.keys() == set(topics)
    settings.request_if_due([], 5_000 + KNOWN_FOR_MS)
    assert settings.topic_retention_ms == {}, "deleted topics do not use memory for longer than an hour"


def test_a_topic_without_retention_by_time_is_known_and_has_no_limit() -> None:
    settings = RetentionSettings("eu", Configs(compacted=-1))
    settings.request_if_due(["compacted"], 0)
    assert (settings.topic_retention_ms, settings.not_known) == ({}, ())
    assert settings.compacted_topics == settings.topics_without_size_limit == {"compacted"}


def test_brokers_that_do_not_answer_do_not_fail_the_sample() -> None:
    configs = Configs(orders=WEEK_MS)
    configs.is_down = True
    settings = RetentionSettings("eu", configs)
    settings.request_if_due(["orders"], 0)
    assert settings.not_known == (OFFSETS_RETENTION, TOPIC_RETENTION)
