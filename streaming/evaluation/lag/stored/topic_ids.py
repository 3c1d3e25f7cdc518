"""Detect by its topic id that a topic was deleted and created again (KIP-516).

The new topic has a new log. The end offsets of the new log can be as high as those of the old log, so only the topic id
is a proof. If a topic was created again, everything that the monitor stores about the old log is wrong, for example the
sampled end offsets.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from streaming.events import TopicMetadata


class TopicIds:
    """The last known id of each topic. Brokers before 2.8 have no topic ids, so the ids of their topics are unknown.

    >>> ids = TopicIds({"orders": "B3BDgJhtR2mEJtC2VAyvIQ"})
    >>> sorted(ids.update({"orders": TopicMetadata(3, 1_000, topic_id="Yzm9gVTsQ7GnpBNcXPE4Bw")}, stored=["orders"]))
    ['orders']
    """

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._known = dict(known or {})

    def stored(self) -> dict[str, str]:
        """Return the ids that the monitor loads at its next start."""
        return dict(self._known)

    def update(self, sampled: Mapping[str, TopicMetadata], stored: Container[str]) -> frozenset[str]:
        """Store the ids of a sample. Return the topics that were created again since an earlier sample.

        If one of the two ids is unknown, it is unknown whether the topic was created again. A deleted topic has no id
        in the sample. Its id is kept while `stored` contains the topic, because then the monitor still has values about
        the log of the topic.
        """
        ids = {topic: one.topic_id for topic, one in sampled.items() if one.topic_id is not None}
        recreated = frozenset(topic for topic, topic_id in ids.items() if self._known.get(topic, topic_id) != topic_id)
        self._known = {at: known for at, known in self._known.items() if at in sampled or at in stored} | ids
        return recreated
