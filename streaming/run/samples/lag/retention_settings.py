"""Keep the retention settings of the brokers and of the topics with lag. Settings rarely change, so requests are rare.

1. A known setting is requested again after KNOWN_FOR_MS. An unknown setting is requested again after RETRY_AFTER_MS.
2. The monitor requests only the settings of topics with lag, at most TOPICS_PER_SAMPLE topics per sample. Topics
   without an earlier request come first.
3. The settings are optional. If a request fails, the sample still succeeds.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from kafka.errors import KafkaError

from streaming.sampling.configs import Configs, TopicSettings

_log = logging.getLogger(__name__)

KNOWN_FOR_MS = 3_600_000
RETRY_AFTER_MS = 600_000
TOPICS_PER_SAMPLE = 100

OFFSETS_RETENTION, TOPIC_RETENTION = "offsets_retention", "topic_retention"


_Value = TypeVar("_Value")


@dataclass(frozen=True, slots=True)
class _Setting(Generic[_Value]):
    value: _Value | None
    requested_at_ms: int

    def is_due(self, now_ms: int) -> bool:
        valid_ms = RETRY_AFTER_MS if self.value is None else KNOWN_FOR_MS
        return not 0 <= now_ms - self.requested_at_ms < valid_ms


class RetentionSettings:
    """The settings of one cluster. Only the sampler's thread calls the methods."""

    def __init__(self, cluster: str, configs: Configs) -> None:
        self._cluster = cluster
        self._configs = configs
        self._of_offsets: _Setting[int] | None = None
        self._of_topics: dict[str, _Setting[TopicSettings]] = {}

    @property
    def offsets_retention_ms(self) -> int | None:
        """Time in milliseconds for which the brokers keep committed offsets of inactive groups. None if unknown."""
        return None if self._of_offsets is None else self._of_offsets.value

    @property
    def topic_retention_ms(self) -> Mapping[str, int]:
        """`retention.ms` of the requested topics that delete records by time."""
        known = ((topic, settings.retention_ms) for topic, settings in self._known_topics())
        return {topic: retention_ms for topic, retention_ms in known if retention_ms is not None}

    @property
    def topics_without_size_limit(self) -> frozenset[str]:
        """The requested topics that never delete records because of their size."""
        return frozenset(topic for topic, settings in self._known_topics() if not settings.has_size_limit)

    @property
    def compacted_topics(self) -> frozenset[str]:
        """The requested topics that are compacted."""
        return frozenset(topic for topic, settings in self._known_topics() if settings.is_compacted)

    def _known_topics(self) -> Iterator[tuple[str, TopicSettings]]:
        return ((topic, one.value) for topic, one in self._of_topics.items() if one.value is not None)

    @property
    def not_known(self) -> tuple[str, ...]:
        """The settings that the brokers did not return."""
        is_unknown = {
            OFFSETS_RETENTION: self._of_offsets is not None and self._of_offsets.value is None,
            TOPIC_RETENTION: any(setting.value is None for setting in self._of_topics.values()),
        }
        return tuple(name for name, unknown in is_unknown.items() if unknown)

    def request_if_due(self, topics_with_lag: Collection[str], now_ms: int) -> None:
        """Request the due settings (rule 1). If a due setting belongs to a topic without lag, forget the setting."""
        if self._of_offsets is None or self._of_offsets.is_due(now_ms):
            self._of_offsets = _Setting(self._request_offsets_retention(), now_ms)
        with_lag, due = set(topics_with_lag), self._due_topics(topics_with_lag, now_ms)
        known = {
            topic: setting
            for topic, setting in self._of_topics.items()
            if topic in with_lag or not setting.is_due(now_ms)
        }
        found = self._request_topics(due) if due else {}
        self._of_topics = {**known, **{topic: _Setting(found.get(topic), now_ms) for topic in due}}

    def forget_topics(self, topics: Collection[str]) -> None:
        """Forget the settings of topics that were created again. They may have different settings now."""
        self._of_topics = {topic: setting for topic, setting in self._of_topics.items() if topic not in topics}

    def _due_topics(self, topics: Collection[str], now_ms: int) -> list[str]:
        requested = {topic: self._of_topics.get(topic) for topic in topics}
        due = [topic for topic, setting in requested.items() if setting is None or setting.is_due(now_ms)]
        return sorted(due, key=lambda topic: (requested[topic] is not None, topic))[:TOPICS_PER_SAMPLE]

    def _request_offsets_retention(self) -> int | None:
        try:
            return self._configs.offsets_retention_ms()
        except KafkaError as error:
            _log.debug("%s: %s", self._cluster, error)
            return None

    def _request_topics(self, topics: Sequence[str]) -> Mapping[str, TopicSettings]:
        try:
            return self._configs.topic_settings(topics)
        except KafkaError as error:
            _log.debug("%s: %s", self._cluster, error)
            return {}
